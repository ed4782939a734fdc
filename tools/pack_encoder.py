"""A slow, plain encoder of packs, written from docs/spec/weights.md alone: what tools/make_vectors.py makes its files with.

Independent of the library: it shares no code with it, chooses parameters as it is told and can leave a rule broken on purpose.
Section numbers are those of the spec.
"""

import heapq
import struct
from dataclasses import dataclass, field

LAYOUTS = {"raw": 0, "fast": 1, "small": 2}


def ceil_div(a, b):
    return -(-a // b)


def round_up(a, n):
    return ceil_div(a, n) * n


def rotl(word, bits):
    return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@dataclass
class Tensor:
    """Values in the source's order; `rows` and `cols` are those of the packed matrix (1)."""

    stack: int
    rows: int
    cols: int
    values: list
    transposed: bool = False

    @property
    def strips(self):
        return self.stack * ceil_div(self.rows, 16)

    @property
    def steps(self):
        return ceil_div(self.cols, 16)

    def at(self, strip, step, lane, j):
        """The value of a lane's weight j (1.1), or None where it is padding."""
        g, q, r, h = lane // 4, lane % 4, j // 2, j % 2
        per_matrix = ceil_div(self.rows, 16)
        row = strip % per_matrix * 16 + g + 8 * (r % 2)
        col = step * 16 + 2 * q + 8 * (r // 2) + h
        if row >= self.rows or col >= self.cols:
            return None
        place = col * self.rows + row if self.transposed else row * self.cols + col
        return self.values[strip // per_matrix * self.rows * self.cols + place]

    def bf16(self):
        return struct.pack(f"<{len(self.values)}H", *self.values)


@dataclass
class Pack:
    """A header's fields and the four arrays (2). build() lays them out; what it is told to override stays as told."""

    layout: str
    tensor: Tensor
    arrays: list = field(default_factory=lambda: [bytearray() for _ in range(4)])
    parameters: bytearray = field(default_factory=lambda: bytearray(8))
    fusible: bool = False
    header: dict = field(default_factory=dict)  # offset in the header -> bytes that replace what stands there
    fix_crc: bool = True

    def array_at(self, number):
        return 128 + sum(round_up(len(array), 128) for array in self.arrays[:number])

    def build(self):
        body = bytearray()
        for array in self.arrays:
            body += array + bytes(-len(array) % 128)
        t = self.tensor
        head = bytearray(128)
        head[0:4] = b"GLYW"
        struct.pack_into("<HBB", head, 4, 1, LAYOUTS[self.layout], int(t.transposed) | int(self.fusible) << 1)
        struct.pack_into("<4Q", head, 8, t.stack, t.rows, t.cols, 128 + len(body))
        struct.pack_into("<4Q", head, 40, *(len(array) for array in self.arrays))
        head[72:80] = self.parameters
        for at, new in self.header.items():
            head[at : at + len(new)] = new
        struct.pack_into("<I", head, 124, crc32c(head[:124]) ^ (not self.fix_crc))
        return bytes(head + body)


def encode_raw(tensor):
    pack = Pack("raw", tensor)
    pack.arrays[0] += tensor.bf16()
    return pack


# ---- 4: fast ----

CLASSES = {14: 0, 13: 1, 16: 2, 0: 3}


def shifted(e, base):
    shift = base - 120
    return e if e in (0, 255) else 1 + (e - 1 - shift) % 254


def fast_fusible(values, base):
    for value in values:
        e, m = value >> 7 & 255, value & 127
        if (e == 0 and m) or (1 <= e <= 254 and not 1 <= e - (base - 120) <= 254):
            return False
    return True


def fast_chunk(tensor, base, strip, first, steps):
    """The two planes of one chunk and its patches {place: u} (4.2)."""
    low = bytearray(256 * steps)
    high = [[0] * 8 for _ in range(32)]
    patches = {}
    for step in range(steps):
        for lane in range(32):
            for j in range(8):
                value = tensor.at(strip, first + step, lane, j)
                if value is None:
                    continue
                e = shifted(value >> 7 & 255, base)
                c, u = e % 8, e // 8
                place = step // 2 * 512 + lane * 16 + step % 2 * 8 + j
                lone = step % 2 == 0 and step + 1 == steps
                low[step // 2 * 512 + lane * 8 + j if lone else place] = c % 2 * 128 | value & 127
                high[lane][2 * step + j // 4] |= ((value >> 15) * 128 | c // 2) << 8 * (j % 4)
                if u != 15:
                    patches[place] = u
    words = [[], [], []]
    for h in high:
        t = rotl(h[6], 5) | rotl(h[7], 2)
        for i in range(3):
            words[i].append(h[2 * i] | rotl(h[2 * i + 1], 3) | (t << 2 * i & 0x60606060))
    planes = bytes(low) + b"".join(struct.pack("<32I", *words[i]) for i in range(min(steps, 3)))
    return planes, patches


def fast_split(patches, slot):
    """Which of a record's patches {(chunk, place): u} stand in its slot and which in its group (4.4)."""
    classed = [key for key in sorted(patches) if patches[key] in CLASSES]
    counts = [sum(key[0] == chunk for key in classed) for chunk in (0, 1)]
    room = (slot - 2) * 8 // 12
    if len(classed) < len(patches) or len(patches) > room or max(counts) > 127:
        room = (slot - 6) * 8 // 12
    in_slot, taken = [], [0, 0]
    for key in classed:
        if len(in_slot) < room and taken[key[0]] < 127:
            in_slot.append(key)
            taken[key[0]] += 1
    return in_slot, [key for key in sorted(patches) if key not in set(in_slot)]


def fast_slot(slot, in_slot, patches, group_word):
    """One slot's bytes (4.3); group_word is None without a group."""
    bits = 0
    for i, (chunk, place) in enumerate(in_slot):
        bits |= (place | CLASSES[patches[chunk, place]] << 10) << 12 * i
    data = bytearray(slot)
    data[0] = sum(chunk == 0 for chunk, _ in in_slot) | (group_word is not None) << 7
    data[1] = sum(chunk == 1 for chunk, _ in in_slot)
    data[2:] = bits.to_bytes(slot - 2, "little")
    if group_word is not None:
        data[-4:] = struct.pack("<I", group_word)
    return data


def encode_fast(tensor, base=118, slot_bytes=64, split=fast_split):
    pack = Pack("fast", tensor, fusible=fast_fusible(tensor.values, base))
    struct.pack_into("<BBH", pack.parameters, 0, base, 0, slot_bytes)
    for strip in range(tensor.strips if tensor.steps else 0):
        for first in range(0, tensor.steps, 8):
            n = min(8, tensor.steps - first)
            patches = {}
            for chunk, steps in ((0, min(n, 4)), (1, max(n - 4, 0))):
                planes, found = fast_chunk(tensor, base, strip, first + 4 * chunk, steps)
                pack.arrays[0] += planes
                patches |= {(chunk, place): u for place, u in found.items()}
            slot = round_up(slot_bytes * n // 8, 16)
            if not slot:
                assert not patches, "patches, but no slots"
                continue
            in_slot, in_group = split(patches, slot)
            word = len(pack.arrays[2]) // 4 if in_group else None
            pack.arrays[1] += fast_slot(slot, in_slot, patches, word)
            if in_group:
                pack.arrays[2] += struct.pack("<I", len(in_group))
                for chunk, place in in_group:
                    pack.arrays[2] += struct.pack("<I", place | chunk << 10 | patches[chunk, place] << 16)
    return pack


# ---- 5: small ----


def pair_counts(tensor):
    """How often each pair of exponents stands at neighbouring columns (whole pairs only)."""
    counts = {}
    for strip in range(tensor.strips if tensor.steps else 0):
        for step in range(tensor.steps):
            for lane in range(32):
                for pair in range(4):
                    a, b = (tensor.at(strip, step, lane, 2 * pair + h) for h in (0, 1))
                    if a is not None and b is not None:
                        key = (a >> 7 & 255, b >> 7 & 255)
                        counts[key] = counts.get(key, 0) + 1
    return counts


def limited_lengths(counts, limit=11):
    """Code lengths of at most `limit` bits, by package-merge; {pair: length}."""
    if len(counts) == 1:
        return {pair: 1 for pair in counts}
    leaves = sorted((count, (pair,)) for pair, count in counts.items())
    packages = []
    for _ in range(limit):
        merged = list(heapq.merge(leaves, packages))
        packages = [(merged[i][0] + merged[i + 1][0], merged[i][1] + merged[i + 1][1]) for i in range(0, len(merged) - 1, 2)]
    lengths = dict.fromkeys(counts, 0)
    for _, pairs in packages[: len(counts) - 1]:
        for pair in pairs:
            lengths[pair] += 1
    return lengths


def canonical_codes(lengths, alphabet):
    """{pair of exponents: (length, code)} in the order of (length, pair number) (5.2)."""
    number = {exponent: i for i, exponent in enumerate(alphabet)}
    order = sorted(lengths, key=lambda p: (lengths[p], 16 * number[p[0]] + number[p[1]]))
    codes, code, previous = {}, -1, lengths[order[0]]
    for pair in order:
        code = (code + 1) << (lengths[pair] - previous)
        previous = lengths[pair]
        codes[pair] = (previous, code)
    return codes


class SmallEncoder:
    def __init__(self, tensor, alphabet=None, lengths=None, min_bits=None, patch=lambda *where: False):
        self.tensor, self.patch = tensor, patch
        if lengths is None:
            self.choose_codes()
        else:
            self.take_codes(alphabet, lengths)
        self.min_bits = self.least_min_bits() if min_bits is None else min_bits

    def take_codes(self, alphabet, lengths):
        self.alphabet, self.codes = alphabet, canonical_codes(lengths, alphabet)
        self.zero = next(iter(self.codes))
        assert 4 * self.codes[self.zero][0] <= 32, "four zero pairs must fit a lane's step (5.3)"

    def choose_codes(self):
        """The 16 commonest exponents and package-merge lengths, again without the pairs that are then never written (5.2)."""
        counts, weight = pair_counts(self.tensor), {}
        for (a, b), count in counts.items():
            weight[a] = weight.get(a, 0) + count
            weight[b] = weight.get(b, 0) + count
        alphabet = sorted(weight, key=lambda e: (-weight[e], e))[:16]
        counts = {p: c for p, c in counts.items() if p[0] in alphabet and p[1] in alphabet} or {(120, 120): 1}
        while True:
            self.take_codes(sorted({e for pair in counts for e in pair}), limited_lengths(counts))
            written = self.written()
            if counts.keys() <= written:
                return
            counts = {p: c for p, c in counts.items() if p in written}

    def written(self):
        """The pairs that stand in the codes, patched ones as the zero pair."""
        t = self.tensor
        places = ((strip, step, lane) for strip in range(t.strips) for step in range(t.steps) for lane in range(32))
        return {pair for place in places for pair in self.lane_step(*place)[0]}

    def table(self):
        data = bytearray(144)
        data[: len(self.alphabet)] = bytes(self.alphabet)
        for (a, b), (length, _) in self.codes.items():
            i, k = self.alphabet.index(a), self.alphabet.index(b)
            data[16 + 8 * i + k // 2] |= length << 4 * (k % 2)
        return data

    def lane_step(self, strip, step, lane):
        """The pairs of exponents of a lane's step as they are coded, and {pair number: exponents} of its patches."""
        coded, patches = [], {}
        for pair in range(4):
            a, b = (self.tensor.at(strip, step, lane, 2 * pair + h) for h in (0, 1))
            exponents = self.zero
            if a is not None:
                exponents = (a >> 7 & 255, self.zero[1] if b is None else b >> 7 & 255)
            if exponents != self.zero and (exponents not in self.codes or self.patch(strip, step, lane, pair)):
                patches[pair], exponents = exponents, self.zero
            coded.append(exponents)
        while sum(self.codes[p][0] for p in coded) > 32:  # 5.3
            longest = max(range(4), key=lambda i: self.codes[coded[i]][0])
            patches[longest], coded[longest] = coded[longest], self.zero
        return coded, patches

    def stream(self, strip, first, steps, stream):
        """The codes of the 32 lanes of a stream as strings of 0 and 1, and {bits 0-10 of a patch: exponents}."""
        strings, patches = [], {}
        for lane in range(32):
            string = ""
            for step in range(steps):
                coded, patched = self.lane_step(strip, first + step, lane)
                string += "".join(format(self.codes[p][1], f"0{self.codes[p][0]}b") for p in coded)
                for pair, exponents in patched.items():
                    patches[lane | pair << 5 | stream << 7 | step << 8] = exponents
            strings.append(string)
        return strings, patches

    def least_min_bits(self):
        """The smallest min_bits with which every region's length byte suffices."""
        least = 0
        for strip in range(self.tensor.strips if self.tensor.steps else 0):
            for first in range(0, self.tensor.steps, 8):
                steps = min(8, self.tensor.steps - first)
                strings, _ = self.stream(strip, first, steps, 0)
                longest = max(len(strings[2 * i] + strings[2 * i + 1]) for i in range(16))
                while least * steps // 8 + 255 < longest:
                    least += 1
        return least

    def record(self, strip, first, steps):
        """One record's bytes and its number of patches (5.3)."""
        lengths, text, patches = bytearray(), "", {}
        for stream in range(ceil_div(steps, 8)):
            t = min(steps, 8) if stream == 0 else steps - 8
            strings, found = self.stream(strip, first + 8 * stream, t, stream)
            patches |= found
            for i in range(16):
                up, down = strings[2 * i], strings[2 * i + 1][::-1]
                least = self.min_bits * t // 8
                extra = max(0, len(up) + len(down) - least)
                lengths.append(extra)
                text += up + "0" * (least + extra - len(up) - len(down)) + down
        assert len(patches) <= 255, "more than 255 patches in a record"
        words = ceil_div(len(text), 32)
        data = bytes(lengths) + int(text[::-1] or "0", 2).to_bytes(4 * words, "little")
        for where in sorted(patches):
            data += struct.pack("<I", where | patches[where][0] << 16 | patches[where][1] << 24)
        return data, len(patches)

    def planes(self):
        data = bytearray()
        for strip in range(self.tensor.strips if self.tensor.steps else 0):
            for step in range(self.tensor.steps):
                for lane in range(32):
                    v = [self.tensor.at(strip, step, lane, j) or 0 for j in range(8)]
                    p = [
                        (v[2 * i + 1] >> 15) << 31 | (v[2 * i + 1] & 127) << 16 | (v[2 * i] >> 15) << 15 | v[2 * i] & 127
                        for i in range(4)
                    ]
                    data += struct.pack("<2I", p[0] | rotl(p[1], 8), p[2] | rotl(p[3], 8))
        return data

    def pack(self):
        pack = Pack("small", self.tensor, fusible=255 not in self.zero)
        struct.pack_into("<HB", pack.parameters, 0, self.min_bits, len(self.alphabet))
        strips, records = self.tensor.strips, bytearray()
        for strip in range(strips):
            strip_word = len(pack.arrays[1]) // 4
            pack.arrays[2] += struct.pack("<Q", strip_word)
            for first in range(0, self.tensor.steps, 16):
                place = len(pack.arrays[1]) // 4 - strip_word
                data, patches = self.record(strip, first, min(16, self.tensor.steps - first))
                pack.arrays[1] += data
                records += struct.pack("<I", place | patches << 24)
        pack.arrays[0] += self.planes()
        pack.arrays[2] += struct.pack("<Q", len(pack.arrays[1]) // 4)
        pack.arrays[2] += bytes(-len(pack.arrays[2]) % 16) + records
        pack.arrays[3] += self.table()
        return pack


def encode_small(tensor, **options):
    return SmallEncoder(tensor, **options).pack()
