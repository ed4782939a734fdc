"""Packs that break one rule of docs/spec/weights.md each, the header's checksum put right so that the rule is reached. Used by make_vectors.py."""

import struct

from pack_encoder import CLASSES, SmallEncoder, Tensor, encode_fast, encode_raw, encode_small
from vectors_valid import SIDE, of_exponents, patch_at, trained

CORRUPT, FOREIGN = 2, 5
WINDOW = 118


def words(*values):
    return struct.pack(f"<{len(values)}I", *values)


# ---- The header (2) ----


def header_cases():
    def raw():
        return encode_raw(trained(1, 5, 9))

    def with_header(pack, at, new):
        pack.header[at] = new
        return pack.build()

    yield "header-magic", with_header(raw(), 0, b"GLYX"), CORRUPT, "GLYW"
    yield "header-version-0", with_header(raw(), 4, b"\0\0"), FOREIGN, "version 0"
    yield "header-version-2", with_header(raw(), 4, b"\2\0"), FOREIGN, "version 2"
    wrong_crc = raw()
    wrong_crc.fix_crc = False
    yield "header-checksum", wrong_crc.build(), CORRUPT, "checksum"
    yield "header-layout-3", with_header(raw(), 6, b"\3"), CORRUPT, "layout"
    yield "header-unknown-flag", with_header(raw(), 7, b"\4"), CORRUPT, "flags"
    yield "header-raw-fusible", with_header(raw(), 7, b"\2"), CORRUPT, ""
    yield "header-raw-parameters", with_header(raw(), 72, b"\1"), CORRUPT, ""
    yield "header-reserved-byte-80", with_header(raw(), 80, b"\1"), CORRUPT, ""
    yield "header-reserved-byte-123", with_header(raw(), 123, b"\1"), CORRUPT, ""
    yield "header-pack-bytes-too-small", with_header(raw(), 32, struct.pack("<Q", 128)), CORRUPT, ""
    yield "header-pack-bytes-too-large", with_header(raw(), 32, struct.pack("<Q", 384)), CORRUPT, ""
    yield "header-array-too-small", with_header(raw(), 40, struct.pack("<Q", 88)), CORRUPT, ""
    yield "header-array-too-large", with_header(raw(), 40, struct.pack("<Q", 92)), CORRUPT, ""
    yield "header-raw-array-3", with_header(raw(), 64, struct.pack("<Q", 1)), CORRUPT, ""
    yield "header-rows-other-than-packed", with_header(raw(), 16, struct.pack("<Q", 4)), CORRUPT, ""
    yield "padding-behind-an-array", raw().build()[:-1] + b"\1", CORRUPT, "padding"
    yield "bytes-behind-the-pack", raw().build() + bytes(128), CORRUPT, ""
    longer = raw()
    longer.header[32] = struct.pack("<Q", 384)
    yield "bytes-behind-the-last-array", longer.build() + bytes(128), CORRUPT, ""
    yield "half-a-line-behind-the-pack", raw().build() + bytes(64), CORRUPT, ""


# ---- fast (4): one record of 7 steps, padding in rows and columns ----


def fast_pack(slot_bytes=64):
    tensor = of_exponents(15, 100, list(range(WINDOW, WINDOW + 8)))
    return encode_fast(patch_at(patch_at(tensor, [3, 120, 1499], 117), [99, 1000], 20), base=WINDOW, slot_bytes=slot_bytes)


def fast_parameter_cases():
    def with_parameters(at, new, rest=b""):
        pack = fast_pack()
        pack.parameters[at : at + len(new)] = new
        return pack.build() + rest

    yield "fast-base-0", with_parameters(0, b"\0"), CORRUPT, "base"
    yield "fast-base-248", with_parameters(0, b"\xf8"), CORRUPT, "base"
    yield "fast-parameter-73", with_parameters(1, b"\1"), CORRUPT, ""
    yield "fast-parameter-76", with_parameters(4, b"\1"), CORRUPT, ""
    yield "fast-parameter-79", with_parameters(7, b"\1"), CORRUPT, ""
    yield "fast-slot-bytes-not-16", with_parameters(2, b"\x48\0"), CORRUPT, "slot"
    yield "fast-slot-bytes-400", with_parameters(2, b"\x90\1"), CORRUPT, "slot"
    yield "fast-slot-bytes-other-than-packed", with_parameters(2, b"\x50\0"), CORRUPT, ""
    for name, shape in (("no-stack", (0, 20, 20)), ("no-rows", (2, 0, 20)), ("no-cols", (2, 20, 0)), ("huge-rows-no-cols", (SIDE, SIDE, 0))):
        yield f"fast-{name}", encode_fast(Tensor(*shape, [])).build(), CORRUPT, "without values"
    flagged = encode_fast(Tensor(1, 1, 2, [0x3C00, 235 << 7]), base=100, slot_bytes=16 * 8)
    flagged.fusible = True
    yield "fast-fusible-with-a-wrapped-exponent", flagged.build(), CORRUPT, "fusible"
    flagged = fast_pack()
    flagged.fusible = not flagged.fusible
    yield "fast-fusible-but-not-flagged" if not flagged.fusible else "fast-flagged-but-not-fusible", flagged.build(), CORRUPT, "fusible"
    subnormal = encode_fast(Tensor(1, 2, 2, [0x3C01, 0x0001, 0x3C80, 0]), base=WINDOW, slot_bytes=16 * 8)
    subnormal.fusible = True
    yield "fast-fusible-with-a-subnormal", subnormal.build(), CORRUPT, "fusible"


def fast_slot_cases():
    """The slot of fast_pack has 56 -> 64 bytes: entries of chunk 0 and 1, a group."""

    def with_slot(change):
        pack = fast_pack()
        change(pack.arrays[1])
        return pack.build()

    def entry(slot, index, value):
        bits = int.from_bytes(slot, "little")
        at = 16 + 12 * index
        slot[:] = (bits & ~(0xFFF << at) | value << at).to_bytes(len(slot), "little")

    def set_byte(at, value):
        def change(slot):
            slot[at] = value

        return change

    def swap(slot):
        a, b = (int.from_bytes(slot, "little") >> 16 + 12 * i & 0xFFF for i in (0, 1))
        entry(slot, 0, b)
        entry(slot, 1, a)

    def twice(slot):
        entry(slot, 1, int.from_bytes(slot, "little") >> 16 & 0xFFF)

    yield "fast-slot-entries-past-room", with_slot(lambda slot: slot.__setitem__(slice(0, 2), b"\xff\x7f")), CORRUPT, ""
    four_steps = encode_fast(trained(1, 16, 64, top=125), base=WINDOW, slot_bytes=32)
    four_steps.arrays[1][1] += 1
    yield "fast-slot-patch-in-a-missing-chunk", four_steps.build(), CORRUPT, ""
    yield "fast-slot-byte-1-bit-7", with_slot(lambda slot: slot.__setitem__(1, slot[1] | 128)), CORRUPT, ""
    yield "fast-slot-unused-bit-behind-entries", with_slot(set_byte(30, 1)), CORRUPT, ""
    yield "fast-slot-unused-bit-before-group", with_slot(set_byte(59, 0x80)), CORRUPT, ""
    yield "fast-slot-entries-descend", with_slot(swap), CORRUPT, ""
    yield "fast-slot-entry-twice", with_slot(twice), CORRUPT, ""
    yield "fast-slot-patch-in-a-missing-step", with_slot(lambda slot: entry(slot, 2, 512 + 8)), CORRUPT, ""
    yield "fast-slot-patch-in-a-padding-row", with_slot(lambda slot: entry(slot, 2, 31 * 16 + 2)), CORRUPT, ""
    yield "fast-slot-patch-in-a-padding-column", with_slot(lambda slot: entry(slot, 2, 512 + 2 * 16)), CORRUPT, ""
    yield "fast-group-place-wrong", with_slot(set_byte(60, 1)), CORRUPT, ""
    yield "fast-group-place-huge", with_slot(lambda slot: slot.__setitem__(slice(60, 64), b"\xff\xff\xff\xff")), CORRUPT, ""

    def drop_group(slot):
        slot[0] &= 127

    yield "fast-group-of-no-record", with_slot(drop_group), CORRUPT, ""


def fast_group_cases():
    def with_overflow(data):
        pack = fast_pack()
        pack.arrays[2][:] = data
        return pack.build()

    count, first, second = struct.unpack("<3I", fast_pack().arrays[2])
    assert count == 2
    slot_bits = int.from_bytes(fast_pack().arrays[1], "little") >> 16
    slot_place = slot_bits & 1023
    yield "fast-group-empty", with_overflow(words(0, first, second)), CORRUPT, ""
    yield "fast-group-without-entries", with_overflow(words(0)), CORRUPT, ""
    yield "fast-group-past-the-array", with_overflow(words(3, first, second)), CORRUPT, ""
    yield "fast-group-count-huge", with_overflow(words(0xFFFFFFFF, first, second)), CORRUPT, ""
    yield "fast-group-shorter-than-its-array", with_overflow(words(1, first, second)), CORRUPT, ""
    yield "fast-overflow-not-words", with_overflow(words(2, first, second) + b"\0\0"), CORRUPT, ""
    yield "fast-overflow-missing", with_overflow(b""), CORRUPT, ""
    yield "fast-group-entries-descend", with_overflow(words(2, second, first)), CORRUPT, ""
    yield "fast-group-entry-twice", with_overflow(words(2, first, first)), CORRUPT, ""
    yield "fast-group-entry-bit-11", with_overflow(words(2, first | 1 << 11, second)), CORRUPT, ""
    yield "fast-group-entry-bit-15", with_overflow(words(2, first | 1 << 15, second)), CORRUPT, ""
    yield "fast-group-entry-bit-21", with_overflow(words(2, first | 1 << 21, second)), CORRUPT, ""
    yield "fast-group-entry-bit-31", with_overflow(words(2, first, second | 1 << 31)), CORRUPT, ""
    yield "fast-group-entry-gives-the-window", with_overflow(words(2, first, second & ~(31 << 16) | 15 << 16)), CORRUPT, ""
    yield "fast-group-patches-a-slot-patch", with_overflow(words(2, slot_place | 3 << 16, second)), CORRUPT, ""
    yield "fast-group-patch-in-a-padding-row", with_overflow(words(2, first, 31 * 16 + 2 | 1 << 10 | 3 << 16)), CORRUPT, ""
    yield "fast-group-patch-in-a-missing-step", with_overflow(words(2, first, 512 + 8 | 1 << 10 | 3 << 16)), CORRUPT, ""


def fast_split_cases():
    """Patches on the wrong side of slot and group (4.4)."""

    def all_to_group(patches, _slot):
        return [], sorted(patches)

    def every_second(patches, _slot):
        classed = [key for key in sorted(patches) if patches[key] in CLASSES]
        return classed[::2], [key for key in sorted(patches) if key not in classed[::2]]

    def past_the_room_with_group(patches, slot):
        return sorted(patches)[: (slot - 6) * 8 // 12 - 1], sorted(patches)[(slot - 6) * 8 // 12 - 1 :]

    base = of_exponents(16, 128, list(range(WINDOW, WINDOW + 8)))
    spread = patch_at(base, range(0, 2048, 50), 117)
    yield "fast-split-all-in-the-group", encode_fast(spread, base=WINDOW, slot_bytes=64, split=all_to_group).build(), CORRUPT, ""
    yield "fast-split-every-second", encode_fast(spread, base=WINDOW, slot_bytes=64, split=every_second).build(), CORRUPT, ""
    yield "fast-split-leaves-room", encode_fast(spread, base=WINDOW, slot_bytes=48, split=past_the_room_with_group).build(), CORRUPT, ""
    fitting = patch_at(base, range(9), 117)  # 9 entries fill a slot of 16 bytes
    yield "fast-split-though-all-fit", encode_fast(fitting, base=WINDOW, slot_bytes=16, split=past_the_room_with_group).build(), CORRUPT, ""


def fast_plane_cases():
    def with_planes(at, value):
        pack = fast_pack()
        pack.arrays[0][at] |= value
        return pack.build()

    padding_row = 31 * 16 + 2  # lane 31 (g = 7), j = 2 (+ 8 rows): row 15
    yield "fast-padding-row-in-the-low-plane", with_planes(padding_row, 1), CORRUPT, ""
    yield "fast-padding-row-code-bit", with_planes(padding_row, 128), CORRUPT, ""
    yield "fast-padding-row-sign", with_planes(1024 + 31 * 4 + 2, 128), CORRUPT, ""
    yield "fast-padding-column-in-the-low-plane", with_planes(1408 + 512 + 2 * 8, 1), CORRUPT, ""
    yield "fast-high-plane-of-a-missing-step", with_planes(1408 + 768 + 5 * 4, 0x20), CORRUPT, ""
    one_step = encode_fast(trained(1, 16, 16, top=125), base=WINDOW)
    one_step.arrays[0][256 + 4] |= 0x40
    yield "fast-high-plane-of-missing-steps-one-step", one_step.build(), CORRUPT, ""


# ---- small (5): one record of 11 steps, padding in rows and columns ----


def small_tensor():
    return trained(1, 15, 161, seed=5)


def small_pack(**options):
    return encode_small(small_tensor(), **options)


def small_parameter_cases():
    def with_parameters(at, new):
        pack = small_pack(min_bits=200)
        pack.parameters[at : at + len(new)] = new
        return pack.build()

    yield "small-min-bits-705", with_parameters(0, struct.pack("<H", 705)), CORRUPT, "min_bits"
    yield "small-min-bits-other-than-packed", with_parameters(0, struct.pack("<H", 196)), CORRUPT, ""
    yield "small-symbols-0", with_parameters(2, b"\0"), CORRUPT, "symbols"
    yield "small-symbols-17", with_parameters(2, b"\x11"), CORRUPT, "symbols"
    yield "small-parameter-75", with_parameters(3, b"\1"), CORRUPT, ""
    yield "small-parameter-79", with_parameters(7, b"\1"), CORRUPT, ""
    flagged = small_pack()
    flagged.fusible = False
    yield "small-fusible-but-not-flagged", flagged.build(), CORRUPT, "fusible"
    flagged = encode_small(Tensor(1, 2, 4, [0x7F80] * 8))
    flagged.fusible = True
    yield "small-flagged-but-not-fusible", flagged.build(), CORRUPT, "fusible"


def small_table_cases():
    """Two symbols, four codes of 2 bits."""
    tensor = of_exponents(4, 16, [120, 121, 121, 121, 120])
    lengths = {(a, b): 2 for a in (120, 121) for b in (120, 121)}

    def with_table(*changes, symbols=2):
        pack = encode_small(tensor, alphabet=[120, 121], lengths=lengths)
        for at, value in changes:
            pack.arrays[3][at] = value
        pack.parameters[2] = symbols
        return pack.build()

    yield "small-alphabet-descends", with_table((0, 122)), CORRUPT, "alphabet"
    yield "small-alphabet-twice-the-same", with_table((0, 121)), CORRUPT, "alphabet"
    yield "small-alphabet-behind-its-last", with_table((2, 130)), CORRUPT, "alphabet"
    yield "small-alphabet-byte-15", with_table((15, 1)), CORRUPT, "alphabet"
    yield "small-more-symbols-than-alphabet", with_table(symbols=3), CORRUPT, "alphabet"
    yield "small-code-of-12-bits", with_table((16, 0xC2)), CORRUPT, ""
    yield "small-code-of-15-bits", with_table((24, 0x2F)), CORRUPT, ""
    yield "small-code-outside-the-alphabet-second", with_table((17, 0x0B), (16, 0x02)), CORRUPT, ""
    yield "small-code-outside-the-alphabet-first", with_table((32, 0x0B), (16, 0x02)), CORRUPT, ""
    yield "small-codes-break-kraft", with_table((16, 0x12)), CORRUPT, "Kraft"
    three = encode_small(tensor, alphabet=[120, 121, 122], lengths=lengths)
    yield "small-symbol-without-a-code", three.build(), CORRUPT, ""
    yield "small-pair-with-a-code-never-written", encode_small(of_exponents(4, 16, [120]), alphabet=[120, 121], lengths=lengths).build(), CORRUPT, ""
    for name, shape in (("no-stack", (0, 20, 20)), ("no-rows", (2, 0, 20)), ("no-cols", (2, 20, 0))):
        empty = encode_small(Tensor(*shape, []), alphabet=[120], lengths={(120, 120): 1})
        yield f"small-{name}", empty.build(), CORRUPT, "without values"
    yield "small-no-code", with_table((16, 0), (24, 0)), CORRUPT, ""


def small_offset_cases():
    """Two strips of two records each."""
    tensor = trained(2, 3, 260, seed=6)

    def changed(array, at, form, change):
        pack = encode_small(tensor)
        old = struct.unpack_from(form, pack.arrays[array], at)[0]
        struct.pack_into(form, pack.arrays[array], at, change(old))
        return pack.build()

    yield "small-first-offset", changed(2, 0, "<Q", lambda old: 1), CORRUPT, ""
    yield "small-second-strip-offset", changed(2, 8, "<Q", lambda old: old + 1), CORRUPT, ""
    yield "small-last-offset-early", changed(2, 16, "<Q", lambda old: old - 1), CORRUPT, ""
    yield "small-last-offset-late", changed(2, 16, "<Q", lambda old: old + 1), CORRUPT, ""
    yield "small-padding-between-offsets", changed(2, 24, "<Q", lambda old: 1), CORRUPT, ""
    yield "small-record-offset", changed(2, 36, "<I", lambda old: old + 1), CORRUPT, ""
    yield "small-first-record-offset", changed(2, 32, "<I", lambda old: old + 1), CORRUPT, ""
    yield "small-patch-count-more", changed(2, 36, "<I", lambda old: old + (1 << 24)), CORRUPT, ""
    yield "small-patch-count-255", changed(2, 44, "<I", lambda old: old | 255 << 24), CORRUPT, ""
    yield "small-region-longer", changed(1, 3, "<B", lambda old: old + 1), CORRUPT, ""
    yield "small-region-shorter", changed(1, 3, "<B", lambda old: old - 1), CORRUPT, ""
    yield "small-regions-all-255-bits", changed(1, 0, "<Q", lambda old: (1 << 64) - 1), CORRUPT, ""
    trailing = encode_small(tensor)
    trailing.arrays[1] += bytes(4)
    yield "small-codes-behind-the-last-record", trailing.build(), CORRUPT, ""
    odd = encode_small(tensor)
    odd.arrays[1] += bytes(2)
    yield "small-codes-not-words", odd.build(), CORRUPT, ""
    short = encode_small(tensor)
    del short.arrays[1][-4:]
    yield "small-codes-end-early", short.build(), CORRUPT, ""


def small_region_cases():
    long_regions = small_pack(min_bits=600)
    long_regions.arrays[1][32 + 40] |= 0x10  # far behind lane 0's codes and before lane 1's
    yield "small-bit-between-two-lanes", long_regions.build(), CORRUPT, ""

    longer = encode_small(Tensor(1, 16, 16, [0x3C00] * 256), min_bits=0)
    longer.arrays[1][:] = b"\x09" + longer.arrays[1][1:] + bytes(4)
    longer.arrays[2][8] += 1
    yield "small-length-byte-not-the-least", longer.build(), CORRUPT, ""
    # One code of 1 bit: lanes 0 and 1 take 4 bits each of a region made one bit too short, so that they overlap in a zero bit.
    plain = Tensor(1, 16, 16, [0x3C00] * 256)
    overlap = encode_small(plain)
    assert overlap.arrays[1][0] == 8
    overlap.arrays[1][0:2] = b"\7\x09"
    yield "small-lanes-overlap", overlap.build(), CORRUPT, ""
    empty = encode_small(plain)
    empty.arrays[1][0:3] = b"\0\x0c\x0c"
    yield "small-codes-past-an-empty-region", empty.build(), CORRUPT, ""
    no_code = encode_small(plain)
    no_code.arrays[1][16] |= 1
    yield "small-bits-that-begin-no-code", no_code.build(), CORRUPT, ""
    tail = encode_small(Tensor(1, 16, 16, [0x3C00] * 256))
    tail.arrays[1][15] = 7  # 127 bits used, but lane 31 then has 3; the last bit is padding
    yield "small-last-region-one-bit-short", tail.build(), CORRUPT, ""
    tensor = trained(1, 15, 30, seed=5)
    padded = encode_small(tensor, min_bits=0)
    total = sum(padded.arrays[1][:16])
    assert total % 32, "this seed leaves padding bits"
    last = 16 + 4 * -(-total // 32) - 1
    padded.arrays[1][last] |= 0x80
    yield "small-padding-behind-the-codes", padded.build(), CORRUPT, ""

    class LongSteps(SmallEncoder):
        def lane_step(self, strip, step, lane):
            coded = [(120, 121)] * 4 if lane == 6 else [self.zero] * 4
            return coded, {}

    tensor = Tensor(1, 16, 16, [0x3C00] * 256)
    lengths = {(120, 120): 1, (120, 121): 9}
    yield "small-36-bits-in-a-step", LongSteps(tensor, alphabet=[120, 121], lengths=lengths).pack().build(), CORRUPT, ""


def small_patch_cases():
    """16 x 16 of the zero pair (120, 120), or 15 x 15 where padding is broken; patches as told."""
    lengths = {(120, 120): 1, (120, 121): 2, (121, 121): 3}

    def patched(rows, cols, told, coded=None):
        class Told(SmallEncoder):
            def lane_step(self, strip, step, lane):
                pairs = [self.zero] * 4
                if coded and lane == coded[0]:
                    pairs[coded[1]] = coded[2]
                return pairs, {}

            def record(self, strip, first, steps):
                data, _ = super().record(strip, first, steps)
                return data + words(*told), len(told)

        return Told(Tensor(1, rows, cols, [0x3C00] * rows * cols), alphabet=[120, 121], lengths=lengths).pack().build()

    def patch(lane, pair, stream=0, step=0, exponents=(7, 9)):
        return lane | pair << 5 | stream << 7 | step << 8 | exponents[0] << 16 | exponents[1] << 24

    yield "small-patch-unused-bit-11", patched(16, 16, [patch(3, 1) | 1 << 11]), CORRUPT, ""
    yield "small-patch-unused-bit-15", patched(16, 16, [patch(3, 1) | 1 << 15]), CORRUPT, ""
    yield "small-patches-descend", patched(16, 16, [patch(3, 2), patch(3, 1)]), CORRUPT, ""
    yield "small-patch-twice", patched(16, 16, [patch(3, 2), patch(3, 2)]), CORRUPT, ""
    yield "small-patch-in-a-missing-step", patched(16, 16, [patch(3, 2, step=1)]), CORRUPT, ""
    yield "small-patch-in-a-missing-stream", patched(16, 16, [patch(3, 2, stream=1)]), CORRUPT, ""
    yield "small-patch-in-a-missing-step-of-stream-1", patched(16, 144, [patch(3, 2, stream=1, step=1)]), CORRUPT, ""
    yield "small-patch-of-a-coded-pair", patched(16, 16, [patch(3, 2)], coded=(3, 2, (120, 121))), CORRUPT, ""
    yield "small-patch-gives-the-zero-pair", patched(16, 16, [patch(3, 2, exponents=(120, 120))]), CORRUPT, ""
    yield "small-patch-in-a-padding-row", patched(15, 16, [patch(28, 1)]), CORRUPT, ""
    yield "small-patch-in-a-padding-column", patched(16, 6, [patch(0, 2)]), CORRUPT, ""
    yield "small-patch-gives-a-padding-exponent", patched(16, 15, [patch(3, 2, exponents=(7, 9))]), CORRUPT, ""
    yield "small-padding-pair-coded", patched(15, 16, [], coded=(28, 1, (120, 121))), CORRUPT, ""
    yield "small-padding-exponent-coded", patched(16, 15, [], coded=(3, 2, (120, 121))), CORRUPT, ""


def small_plane_cases():
    def with_planes(tensor, at, value):
        pack = encode_small(tensor)
        pack.arrays[0][at] |= value
        return pack.build()

    # Lane 28 holds rows 7 and 15, columns 0, 1, 8, 9: its pair 1 lies in row 15. Lane 3, pair 2: columns 14 and 15.
    yield "small-padding-row-mantissa", with_planes(trained(1, 15, 16), 28 * 8 + 1, 1), CORRUPT, ""
    yield "small-padding-row-sign", with_planes(trained(1, 15, 16), 28 * 8 + 0, 0x80), CORRUPT, ""
    yield "small-padding-column-mantissa", with_planes(trained(1, 16, 15), 3 * 8 + 6, 1), CORRUPT, ""
    yield "small-padding-column-sign", with_planes(trained(1, 16, 15), 3 * 8 + 7, 0x80), CORRUPT, ""


# Words of the message by the beginning of the name, where a case gives none.
WORDS = {
    "bytes-behind": "its header says",
    "half-a-line": "its header says",
    "header-array": "the shape and parameters make it",
    "header-pack-bytes": "its header says",
    "header-raw-array": "array 3",
    "header-raw-fusible": "fusible",
    "header-raw-parameters": "parameter",
    "header-reserved": "reserved",
    "header-rows": "the shape and parameters make it",
    "fast-group-entries-descend": "overflow entries out of order",
    "fast-group-entry-bit": "zero bits of an overflow entry",
    "fast-group-entry-gives": "a patch into the window",
    "fast-group-entry-twice": "overflow entries out of order",
    "fast-group-of-no-record": "of overflow",
    "fast-group-shorter": "of overflow",
    "fast-group-patches-a-slot-patch": "two patches of one weight",
    "fast-group-patch-in": "a patch of a padding weight",
    "fast-group-": "overflow group",
    "fast-high-plane": "bits of a step that is not there",
    "fast-overflow-missing": "overflow group",
    "fast-overflow-not-words": "of overflow",
    "fast-padding": "a padding weight is not zero",
    "fast-parameter-73": "byte 73",
    "fast-parameter": "parameter",
    "fast-slot-byte-1": "second byte",
    "fast-slot-bytes-other": "patches",
    "fast-slot-entries-descend": "patches out of order",
    "fast-slot-entry-twice": "patches out of order",
    "fast-slot-entries-past": "entries in a slot",
    "fast-slot-patch": "a patch of a padding weight",
    "fast-slot-unused": "unused bits of the slot",
    "fast-split": "strip 0, record 0",
    "small-36-bits": "a step of more than 32",
    "small-bit-between": "bits between codes",
    "small-bits-that-begin-no-code": "bits that are no code",
    "small-code-of": "has a code of",
    "small-code-outside": "not in the alphabet",
    "small-codes-past": "its codes take",
    "small-codes-": "of codes",
    "small-codes-behind": "the codes end",
    "small-codes-end": "the codes end",
    "small-first-offset": "first strip",
    "small-first-record": "strip 0, record 0",
    "small-lanes": "its codes take",
    "small-last-offset": "the codes end",
    "small-last-region": "its codes take",
    "small-length-byte": "its codes take",
    "small-min-bits-other": "its codes take",
    "small-no-code": "symbol",
    "small-symbol": "symbol",
    "small-padding-behind": "bits behind the last region",
    "small-padding-between": "between the tables",
    "small-padding": "a padding weight is not zero",
    "small-pair-with": "never written",
    "small-parameter": "parameter",
    "small-patch-count": "ends at word",
    "small-patch-gives-a-padding": "gives padding",
    "small-patch-gives-the-zero": "gives the zero pair",
    "small-patch-in": "a patch of a pair of padding",
    "small-patch-of": "not written as the zero pair",
    "small-patch-twice": "patches out of order",
    "small-patch-unused": "zero bits of a patch",
    "small-patches": "patches out of order",
    "small-record-offset": "ends at word",
    "small-region": "its codes take",
    "small-second-strip": "ends at word",
}


def words_of(name):
    return WORDS[max((beginning for beginning in WORDS if name.startswith(beginning)), key=len)]


def cases():
    for source in (header_cases, fast_parameter_cases, fast_slot_cases, fast_group_cases, fast_split_cases, fast_plane_cases, small_parameter_cases, small_table_cases,
                   small_offset_cases, small_region_cases, small_patch_cases, small_plane_cases):
        for name, pack, status, said in source():
            yield name, pack, status, said or words_of(name)
