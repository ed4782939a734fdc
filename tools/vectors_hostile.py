"""Packs built to hurt a careless reader: sizes that overflow, places far outside, files cut short. Used by make_vectors.py."""

import struct

from pack_encoder import Pack, Tensor, encode_fast, encode_small
from vectors_invalid import CORRUPT, fast_pack, small_tensor, words
from vectors_valid import SIDE, of_exponents, patch_at, trained

MAX = 2**64 - 1


def header_only(layout, stack, rows, cols, arrays, pack_bytes, parameters=b""):
    """A file of a header alone that declares what it is told."""
    pack = Pack(layout, Tensor(stack, rows, cols, []), fusible=layout != "raw")
    pack.header = {32: struct.pack("<Q", pack_bytes & MAX), 40: struct.pack("<4Q", *(size & MAX for size in arrays))}
    pack.parameters[: len(parameters)] = parameters
    return pack.build()


def declared_cases():
    fast, small = bytes([120, 0, 64, 0]), bytes([0, 0, 2])
    terabyte = 2**41
    yield "raw-declares-2-tebibytes", header_only("raw", 1, 2**20, 2**20, [terabyte, 0, 0, 0], 128 + terabyte), CORRUPT, ""
    planes = 2**16 * 2**13 * 2816
    slots = 2**16 * 2**13 * 64
    yield "fast-declares-2-tebibytes", header_only("fast", 1, 2**20, 2**20, [planes, slots, 0, 0], 128 + planes + slots, fast), CORRUPT, ""
    yield "fast-declares-them-in-128-bytes", header_only("fast", 1, 2**20, 2**20, [planes, slots, 0, 0], 128, fast), CORRUPT, ""
    planes, table = 2**16 * 2**16 * 256, 2**19 + 16 + 4 * 2**16 * 2**12
    whole = 128 + planes + table + 112 + 256
    yield "small-declares-2-tebibytes", header_only("small", 1, 2**20, 2**20, [planes, 0, table, 144], whole, small), CORRUPT, ""
    yield "small-strips-without-steps", header_only("small", SIDE, SIDE, 0, [0, 0, 8 * (SIDE * 2**27 + 2), 144], 128, small), CORRUPT, ""
    for layout, parameters in (("raw", b""), ("fast", fast), ("small", small)):
        for name, shape in (("rows-2-to-31", (1, 2**31, 1)), ("cols-2-to-63", (1, 1, 2**63)), ("stack-all-ones", (MAX, 1, 1))):
            yield f"{layout}-{name}", header_only(layout, *shape, [0, 0, 0, 0], 128, parameters), CORRUPT, ""
        yield f"{layout}-values-wrap-to-0", header_only(layout, 2**22, 2**21, 2**21, [0, 0, 0, 0], 128, parameters), CORRUPT, ""
        yield f"{layout}-all-sides-largest", header_only(layout, SIDE, SIDE, SIDE, [0, 0, 0, 0], 128, parameters), CORRUPT, ""
        yield f"{layout}-values-above-2-to-40", header_only(layout, 1, 2**20 + 1, 2**20, [0, 0, 0, 0], 128, parameters), CORRUPT, ""
        yield f"{layout}-tiles-above-2-to-36", header_only(layout, 2**40 // 513, 1, 513, [0, 0, 0, 0], 128, parameters), CORRUPT, ""
        yield f"{layout}-pack-bytes-all-ones", header_only(layout, 1, 1, 1, [2, 0, 0, 0], MAX, parameters), CORRUPT, ""
    yield "raw-array-wraps", header_only("raw", 1, 1, 1, [2**64 - 126, 0, 0, 0], 128), CORRUPT, ""
    yield "small-codes-array-all-ones", with_array_bytes(encode_small(trained(1, 4, 4)), 1, MAX - 3), CORRUPT, ""
    yield "small-codes-array-wraps", with_array_bytes(encode_small(trained(1, 4, 4)), 1, 2**64 - 128), CORRUPT, ""
    yield "fast-overflow-array-all-ones", with_array_bytes(encode_fast(trained(1, 4, 4)), 2, MAX - 3), CORRUPT, ""
    yield "fast-overflow-array-wraps", with_array_bytes(encode_fast(trained(1, 4, 4)), 2, 2**64 - 128), CORRUPT, ""


def with_array_bytes(pack, number, size):
    pack.header[40 + 8 * number] = struct.pack("<Q", size)
    return pack.build()


def fast_cases():
    for name, place in (("all-ones", 0xFFFFFFFF), ("2-to-30", 1 << 30), ("past-the-array", 3), ("2-to-31", 1 << 31)):
        pack = fast_pack()
        pack.arrays[1][60:64] = struct.pack("<I", place)
        yield f"fast-group-place-{name}", pack.build(), CORRUPT, ""
    for name, count in (("all-ones", 0xFFFFFFFF), ("2-to-30", 1 << 30), ("2-to-30-less-1", (1 << 30) - 1), ("2049", 2049)):
        pack = fast_pack()
        pack.arrays[2][0:4] = struct.pack("<I", count)
        yield f"fast-group-count-{name}", pack.build(), CORRUPT, ""
    full = fast_pack()
    full.arrays[1][:] = b"\xff" * len(full.arrays[1])
    yield "fast-slot-all-ones", full.build(), CORRUPT, ""
    full = fast_pack()
    full.arrays[0][:] = b"\xff" * len(full.arrays[0])
    yield "fast-planes-all-ones", full.build(), CORRUPT, ""
    # Two records that name one group.
    tensor = patch_at(of_exponents(1, 250, [120]), [0, 200], 20)
    shared = encode_fast(tensor, base=118, slot_bytes=16)
    shared.arrays[1][28:32] = words(0)
    yield "fast-two-records-one-group", shared.build(), CORRUPT, ""


def small_cases():
    tensor = small_tensor()
    for name, at, form, value in (
        ("first-offset-all-ones", 0, "<Q", MAX),
        ("first-offset-2-to-62", 0, "<Q", 1 << 62),
        ("last-offset-all-ones", 8, "<Q", MAX),
        ("last-offset-2-to-62", 8, "<Q", 1 << 62),
        ("record-offset-all-ones", 16, "<I", 0xFFFFFFFF),
        ("record-offset-far", 16, "<I", 0xFFFFFF),
    ):
        pack = encode_small(tensor)
        struct.pack_into(form, pack.arrays[2], at, value)
        yield f"small-{name}", pack.build(), CORRUPT, ""
    pack = encode_small(tensor)
    pack.arrays[1][0:32] = b"\xff" * 32
    yield "small-length-bytes-all-ones", pack.build(), CORRUPT, ""
    pack = encode_small(tensor)
    pack.arrays[1][32:] = b"\xff" * (len(pack.arrays[1]) - 32)
    yield "small-codes-all-ones", pack.build(), CORRUPT, ""
    pack = encode_small(tensor)
    pack.arrays[3][16:] = b"\xff" * 128
    yield "small-code-lengths-all-ones", pack.build(), CORRUPT, ""
    pack = encode_small(tensor, min_bits=704)
    pack.arrays[1][0:32] = b"\xff" * 32
    yield "small-longest-regions-declared", pack.build(), CORRUPT, ""
    pack = encode_small(tensor)
    pack.arrays[1].clear()
    yield "small-no-codes-at-all", pack.build(), CORRUPT, ""


def truncated_cases():
    """Cut at every boundary of a pack, once as it is and once with a header that admits it."""
    yield "empty-file", b"", CORRUPT, ""
    for name, pack in (("fast", fast_pack()), ("small", encode_small(small_tensor()))):
        whole = pack.build()
        cuts = {"header-less-1": 127, "header": 128, "magic": 4, "header-half": 64}
        for number, array in enumerate(pack.arrays):
            if array:
                cuts[f"array-{number}-begin"] = pack.array_at(number)
                cuts[f"array-{number}-end"] = pack.array_at(number) + len(array)
                cuts[f"array-{number}-end-less-1"] = pack.array_at(number) + len(array) - 1
        cuts["last-byte"] = len(whole) - 1
        for where, size in sorted(cuts.items()):
            yield f"{name}-cut-at-{where}", whole[:size], CORRUPT, ""
            if size >= 128 and size % 128 == 0:
                pack.header[32] = struct.pack("<Q", size)
                yield f"{name}-cut-at-{where}-and-admitted", pack.build()[:size], CORRUPT, ""
                pack.header.clear()


def cases():
    for source in (declared_cases, fast_cases, small_cases, truncated_cases):
        for name, pack, status, said in source():
            yield name, pack, status, said or "pack: "
