"""Packs that every decoder must take, with what they hold. Used by make_vectors.py."""

from pack_encoder import Tensor, encode_fast, encode_raw, encode_small

SIDE = 2**31 - 1
WINDOW = 118  # base of the window that `trained` values lie in


class Random:
    """A small generator of our own, so that the files never change with Python (splitmix64)."""

    def __init__(self, seed):
        self.state = seed

    def bits(self, count):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (1 << 64) - 1
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
        z = (z ^ z >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
        return (z ^ z >> 31) >> (64 - count)

    def below(self, limit):
        return self.bits(64) % limit


def bf16(sign, exponent, mantissa):
    return sign << 15 | exponent << 7 | mantissa


def trained(stack, rows, cols, seed=1, top=124, transposed=False):
    """Values as of trained weights: exponents fall off geometrically below `top`."""
    random = Random(seed)
    values = []
    for _ in range(stack * rows * cols):
        exponent = top
        while exponent > 1 and random.bits(8) < 120:
            exponent -= 1
        values.append(bf16(random.bits(1), exponent, random.bits(7)))
    return Tensor(stack, rows, cols, values, transposed)


def of_exponents(rows, cols, exponents, seed=2):
    """Exponents in turn out of a list, mantissas and signs at random."""
    random = Random(seed)
    return Tensor(1, rows, cols, [bf16(random.bits(1), exponents[i % len(exponents)], random.bits(7)) for i in range(rows * cols)])


def with_values(tensor, changes):
    values = list(tensor.values)
    for at, value in changes.items():
        values[at] = value
    return Tensor(tensor.stack, tensor.rows, tensor.cols, values, tensor.transposed)


def patch_at(tensor, places, exponent):
    """The tensor with `exponent` at these indexes."""
    return with_values(tensor, {i: tensor.values[i] & 0x807F | exponent << 7 for i in places})


SPECIALS = {0: 0x0000, 1: 0x8000, 2: 0x0001, 3: 0x807F, 5: 0x7F80, 8: 0xFF80, 13: 0x7FC0, 21: 0xFFFF, 34: 0x7F81, 40: 0x0080, 41: 0x7F7F, 42: 0xFF7F}


def raw_cases():
    for name, shape in (("nothing", (0, 0, 0)), ("no-stack", (0, 20, 20)), ("no-rows", (2, 0, 20)), ("no-cols", (2, 20, 0)), ("huge-rows-no-cols", (SIDE, SIDE, 0))):
        yield f"raw-{name}", encode_raw(Tensor(*shape, []))
    yield "raw-one-value", encode_raw(Tensor(1, 1, 1, [0x3F80]))
    yield "raw-3x5", encode_raw(trained(1, 3, 5))
    yield "raw-stack-of-3", encode_raw(trained(3, 5, 7))
    yield "raw-transposed-9x4", encode_raw(trained(1, 9, 4, transposed=True))
    yield "raw-64-values-no-padding", encode_raw(trained(1, 8, 8))
    yield "raw-65-values", encode_raw(trained(1, 13, 5))
    yield "raw-all-65536-values", encode_raw(Tensor(1, 256, 256, list(range(65536))))


def shape_cases():
    """Both layouts over the sizes at which something begins or ends."""
    shapes = [(1, 1), (15, 16), (16, 15), (16, 16), (16, 17), (17, 16), (1, 33), (31, 2), (5, 127), (5, 128), (5, 129), (3, 255), (3, 256), (3, 257), (16, 1)]
    for rows, cols in shapes:
        tensor = trained(1, rows, cols, seed=100 * rows + cols)
        yield f"fast-{rows}x{cols}", encode_fast(tensor)
        yield f"small-{rows}x{cols}", encode_small(tensor)
    for stack, rows, cols, transposed in [(3, 17, 21, False), (2, 5, 40, True), (1, 33, 20, True), (1, 1, 50, True)]:
        tensor = trained(stack, rows, cols, seed=7, transposed=transposed)
        name = f"stack-{stack}x{rows}x{cols}" + "-transposed" * transposed
        yield f"fast-{name}", encode_fast(tensor)
        yield f"small-{name}", encode_small(tensor, min_bits=150)


def fast_step_cases():
    for steps in range(1, 9):
        tensor = trained(1, 16, 16 * steps, seed=steps, top=125)
        tensor = patch_at(tensor, range(3, len(tensor.values), 97), 30)  # no class: the overflow group
        tensor = patch_at(tensor, range(5, len(tensor.values), 61), 0)
        yield f"fast-{steps}-steps-in-the-last-record", encode_fast(tensor, base=WINDOW, slot_bytes=48)


def fast_patch_cases():
    base = of_exponents(16, 128, list(range(WINDOW, WINDOW + 8)))
    yield "fast-slot-0", encode_fast(base, base=WINDOW, slot_bytes=0)
    yield "fast-empty-slots", encode_fast(base, base=WINDOW, slot_bytes=16)
    for count in (9, 10):  # a slot of 16 bytes holds 9 entries, or 6 and a group
        yield f"fast-{count}-patches-in-a-slot-of-16-bytes", encode_fast(patch_at(base, range(count), 117), base=WINDOW, slot_bytes=16)
    chunk0 = [row * 128 + col for row in range(16) for col in range(64)]
    chunk1 = [i + 64 for i in chunk0]
    for count in (127, 128):  # a chunk's count has 7 bits
        yield f"fast-{count}-patches-in-a-chunk", encode_fast(patch_at(base, chunk0[:count] + chunk1[:20], 117), base=WINDOW, slot_bytes=384)
    yield "fast-full-slot-of-384-bytes", encode_fast(patch_at(base, chunk0[:127] + chunk1[:127], 117), base=WINDOW, slot_bytes=384)
    yield "fast-patches-in-chunk-1-only", encode_fast(patch_at(base, chunk1[::100], 130), base=WINDOW, slot_bytes=64)
    yield "fast-patch-at-the-last-place", encode_fast(patch_at(base, [len(base.values) - 1], 130), base=WINDOW, slot_bytes=64)
    yield "fast-every-weight-overflows", encode_fast(of_exponents(16, 16, [1, 200, 254]), base=WINDOW, slot_bytes=16)
    long = of_exponents(2, 300, list(range(WINDOW, WINDOW + 8)))
    yield "fast-overflow-group-at-last-record", encode_fast(patch_at(long, [299, 599], 60), base=WINDOW, slot_bytes=32)
    yield "fast-overflow-groups-in-all-records", encode_fast(patch_at(long, [0, 130, 299], 60), base=WINDOW, slot_bytes=32)


def fast_value_cases():
    plain = trained(1, 8, 16, seed=11)
    yield "fast-specials", encode_fast(with_values(plain, SPECIALS), base=WINDOW, slot_bytes=64)
    yield "fast-all-zero", encode_fast(Tensor(1, 16, 32, [0] * 512), base=120, slot_bytes=384)
    yield "fast-all-nan", encode_fast(Tensor(1, 4, 16, [0x7FC1, 0xFFC0] * 32), base=120, slot_bytes=96)
    yield "fast-zeros-and-infinities-are-fusible", encode_fast(with_values(plain, {0: 0, 1: 0x8000, 2: 0x7F80}), base=WINDOW, slot_bytes=64)
    yield "fast-subnormal-is-not-fusible", encode_fast(with_values(plain, {0: 1}), base=WINDOW, slot_bytes=64)
    for base in (1, 2, 119, 120, 121, 246, 247):
        every = of_exponents(16, 16, list(range(256)))
        yield f"fast-every-exponent-base-{base}", encode_fast(every, base=base, slot_bytes=64)
    # The edges of the shifted range: e - shift of 1 and 254 is fusible, 0 and 255 wrap round.
    low, high = 100, 140
    yield "fast-shifted-to-254-is-fusible", encode_fast(with_values(plain, {3: bf16(0, 234, 5), 4: 0}), base=low, slot_bytes=384)
    yield "fast-shifted-past-254-wraps", encode_fast(with_values(plain, {3: bf16(0, 235, 5)}), base=low, slot_bytes=384)
    yield "fast-shifted-to-1-is-fusible", encode_fast(with_values(plain, {3: bf16(1, 21, 9)}), base=high, slot_bytes=384)
    yield "fast-shifted-below-1-wraps", encode_fast(with_values(plain, {3: bf16(1, 20, 9)}), base=high, slot_bytes=384)


def small_step_cases():
    for steps in range(1, 17):
        rows, cols = (16, 16 * steps) if steps < 9 else (2, 16 * steps - 5)
        yield f"small-{steps}-steps-in-the-last-record", encode_small(trained(1, rows, cols, seed=steps), min_bits=130 if steps % 2 else None)


def small_code_cases():
    tensor = trained(1, 12, 40, seed=21)
    yield "small-one-symbol", encode_small(Tensor(1, 16, 16, [0xBF80, 0x3F81] * 128))
    yield "small-one-code-the-rest-patched", encode_small(of_exponents(16, 16, [120, 120, 120, 120, 120, 121]), alphabet=[120], lengths={(120, 120): 1})
    yield "small-one-code-of-8-bits", encode_small(of_exponents(2, 16, [120]), alphabet=[120], lengths={(120, 120): 8})
    yield "small-incomplete-code", encode_small(of_exponents(4, 16, [120, 121, 121, 120]), alphabet=[120, 121], lengths={(120, 121): 2, (121, 120): 3})
    four = {(a, b): 2 for a in (120, 121) for b in (120, 121)}
    yield "small-complete-code-of-equal-lengths", encode_small(of_exponents(16, 33, [120, 121, 121, 121, 120]), alphabet=[120, 121], lengths=four)
    skewed = {(120, 120 + i): min(i + 1, 11) for i in range(11)} | {(121, 120): 11}
    spaced = [e for first, second in skewed for e in (120, 120) * 4 + (first, second)]
    yield "small-codes-of-1-to-11-bits", encode_small(of_exponents(16, 16, spaced), alphabet=list(range(120, 131)), lengths=skewed)
    long = {(120, 120): 1, (120, 121): 11}
    yield "small-32-bits-in-a-step-are-not-passed", encode_small(of_exponents(16, 16, [120, 121]), alphabet=[120, 121], lengths=long)
    yield "small-16-symbols-of-any-exponents", encode_small(of_exponents(16, 32, [0, 255, 1, 254, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204]))
    for min_bits in (1, 100, 704):
        yield f"small-min-bits-{min_bits}", encode_small(tensor, min_bits=min_bits)
    yield "small-encoder-patches-coded-pairs", encode_small(tensor, patch=lambda strip, step, lane, pair: lane % 5 == 0)
    mixed = of_exponents(16, 128, [120] * 8 + [9])
    yield "small-many-patches-in-a-record", encode_small(mixed, alphabet=[120], lengths={(120, 120): 1})


def small_value_cases():
    plain = trained(1, 8, 17, seed=31)
    yield "small-specials", encode_small(with_values(plain, SPECIALS))
    yield "small-all-zero", encode_small(Tensor(1, 16, 32, [0] * 512))
    yield "small-negative-zero-beside-padding", encode_small(Tensor(1, 3, 5, [0x8000] * 15))
    yield "small-all-nan-is-not-fusible", encode_small(Tensor(1, 4, 16, [0x7FC1, 0xFFC0] * 32))
    yield "small-every-exponent", encode_small(of_exponents(4, 64, list(range(256))))
    odd = of_exponents(16, 21, [120] * 20 + [77])
    yield "small-odd-cols-last-column-patched", encode_small(odd, alphabet=[120], lengths={(120, 120): 1})
    odd = of_exponents(16, 21, [120] * 20 + [121])
    yield "small-odd-cols-last-column-coded", encode_small(odd, alphabet=[120, 121], lengths={(120, 120): 1, (121, 120): 2})


def cases():
    for source in (raw_cases, shape_cases, fast_step_cases, fast_patch_cases, fast_value_cases, small_step_cases, small_code_cases, small_value_cases):
        for name, pack in source():
            yield name, pack.build(), pack.tensor.bf16()
