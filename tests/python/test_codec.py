"""The general compressor: memory, streams in pieces, buffers, errors, threads."""

import array
import io
import mmap
import random
import threading

import glyd
import pytest

KIB = 1 << 10
UNIT = 128 * KIB
LEVELS = ("default", "max", "ultra")


def text(size, seed=1):
    generator = random.Random(seed)
    words = [bytes(generator.choices(b"abcdefgh", k=generator.randint(2, 9))) for _ in range(300)]
    return b" ".join(generator.choices(words, k=size // 4))[:size]


CONTENT = text(700_000)
FRAME = glyd.compress(CONTENT, unit_bytes=UNIT)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", (0, 1, UNIT - 1, UNIT, UNIT + 1, 300_000))
def test_round_trip(level, size):
    content = CONTENT[:size]
    frame = glyd.compress(content, level, unit_bytes=UNIT)
    assert type(frame) is bytes and glyd.decompress(frame) == content
    assert size < 1000 or len(frame) < 0.7 * size


def test_the_bytes_do_not_depend_on_threads():
    assert all(glyd.compress(CONTENT, unit_bytes=UNIT, threads=threads) == FRAME for threads in (1, 2, 5))


def test_any_buffer_in(tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    numbers = array.array("d", [0.5 * i for i in range(1000)])
    with open(tmp_path / "file", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for data in (CONTENT, bytearray(CONTENT), memoryview(CONTENT), memoryview(CONTENT).toreadonly(), mapped):
            assert glyd.compress(data, unit_bytes=UNIT) == FRAME
    assert glyd.decompress(glyd.compress(numbers)) == numbers.tobytes()
    assert glyd.decompress(bytearray(FRAME)) == glyd.decompress(memoryview(FRAME)) == CONTENT
    assert glyd.decompress(memoryview(b"xx" + FRAME)[2:]) == CONTENT
    for nothing in (b"", memoryview(b""), bytearray()):
        assert glyd.decompress(glyd.compress(nothing)) == b""


def test_numpy_arrays_in_place():
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(60_000, dtype="float32").reshape(200, 300)
    back = numpy.empty_like(values)
    assert glyd.decompress(glyd.compress(values), out=back) == values.nbytes and (back == values).all()
    values.flags.writeable = False
    assert glyd.compress(values) == glyd.compress(values.tobytes())
    with pytest.raises(glyd.InvalidArgumentError, match="one block"):
        glyd.compress(values[:, ::2])


def test_into_a_buffer():
    room = bytearray(len(CONTENT) + 10)
    assert glyd.decompress(FRAME, out=memoryview(room)[5:]) == len(CONTENT)
    assert room[5:-5] == CONTENT and not any(room[:5]) and not any(room[-5:])
    with pytest.raises(glyd.BufferTooSmallError, match=str(len(CONTENT))):
        glyd.decompress(FRAME, out=bytearray(10))
    with pytest.raises(glyd.InvalidArgumentError, match="written"):
        glyd.decompress(FRAME, out=bytes(len(CONTENT)))


def test_no_copy_of_the_input():
    """The frame of 64 MiB of zeros is tiny, so that memory would show a copy of the input."""
    import tracemalloc

    content = bytes(64 << 20)
    decoded = bytearray(len(content))
    tracemalloc.start()
    try:
        with io.BytesIO() as target, glyd.open(target, "wb", "default", threads=1) as file:
            file.write(content)
            frame_peak = tracemalloc.get_traced_memory()[1]
            file.close()
            frame = target.getvalue()
        tracemalloc.reset_peak()
        glyd.decompress(frame, out=decoded)
        assert max(frame_peak, tracemalloc.get_traced_memory()[1]) < 4 << 20
    finally:
        tracemalloc.stop()
    assert decoded == content


def test_str_is_refused_with_the_remedy():
    with pytest.raises(glyd.InvalidArgumentError, match="encode"):
        glyd.compress("text")
    with pytest.raises(glyd.InvalidArgumentError, match="default, max or ultra"):
        glyd.compress(b"", "best")
    with pytest.raises(glyd.InvalidArgumentError, match="power of two"):
        glyd.compress(b"", unit_bytes=1000)


def test_a_tensor_is_refused_with_what_packs_it():
    torch = pytest.importorskip("torch")
    weight = torch.ones(4, 4, dtype=torch.bfloat16)
    for data in (weight, torch.nn.Linear(2, 2)):
        with pytest.raises(glyd.InvalidArgumentError, match=r"glyd\.pack\(.*glyd\.gpu\.compress\(model\)"):
            glyd.compress(data)
    frame = glyd.compress(weight.cpu().contiguous().view(torch.uint8).numpy())
    assert glyd.decompress(frame) == b"\x80\x3f" * 16


def test_frame_info():
    info = glyd.frame_info(glyd.compress(CONTENT, "ultra", unit_bytes=UNIT, metadata=b"mine"))
    assert info["content_bytes"] == len(CONTENT) and info["level"] == "ultra" and info["units"] == 6
    assert info["metadata_bytes"] == 4 and info["frames"] == 1 and info["largest_unit_bytes"] == UNIT


def test_damage_is_found():
    for at in (0, 4, 30, 1000, len(FRAME) // 2, len(FRAME) - 20, len(FRAME) - 1):
        broken = bytearray(FRAME)
        broken[at] ^= 1
        with pytest.raises((glyd.CorruptError, glyd.ForeignFormatError)):
            glyd.decompress(broken)
    for size in (0, 10, 100, len(FRAME) - 1):
        with pytest.raises(glyd.CorruptError):
            glyd.decompress(FRAME[:size])
    with pytest.raises(glyd.CorruptError, match="follow"):
        glyd.decompress(FRAME + b"more")
    with pytest.raises(glyd.ForeignFormatError, match="GLYC"):
        glyd.decompress(b"\x1f\x8b" + bytes(100))
    assert glyd.decompress(FRAME + FRAME) == CONTENT * 2


def test_bombs_are_capped_and_the_cap_is_easily_lifted():
    bomb = glyd.compress(bytes(50 << 20))
    assert len(bomb) < 60 * KIB
    with pytest.raises(glyd.InvalidArgumentError, match="max_bytes is 1000000"):
        glyd.decompress(bomb, max_bytes=1_000_000)
    assert len(glyd.decompress(bomb, max_bytes=50 << 20)) == 50 << 20
    with pytest.raises(glyd.OutOfMemoryError, match="raise it"):
        glyd.decompress(bomb, memory_limit=1 << 20)
    hostile = glyd.Compressor(unit_bytes=1 << 30, threads=1)
    hostile = hostile.compress(b"small") + hostile.flush()
    with pytest.raises(glyd.OutOfMemoryError, match="raise it"):
        glyd.Decompressor([hostile], threads=1).read()
    assert glyd.Decompressor([hostile], threads=1, memory_limit=None).read() == b"small"


def test_progress_reports_and_stops():
    steps = []
    frame = glyd.compress(CONTENT, unit_bytes=UNIT, threads=1, progress=lambda done: steps.append(done) and None)
    assert frame == FRAME and steps == sorted(steps) and steps[-1] == len(CONTENT) and len(steps) > 3
    steps.clear()
    assert glyd.decompress(FRAME, threads=1, progress=lambda done: steps.append(done) and None) == CONTENT
    assert steps[-1] == len(CONTENT)
    with pytest.raises(glyd.CancelledError):
        glyd.compress(CONTENT, progress=lambda _: True)
    with pytest.raises(glyd.CancelledError):
        glyd.decompress(FRAME, progress=bool)


def test_what_progress_raises_comes_out():
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        glyd.compress(CONTENT, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        glyd.decompress(FRAME, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        glyd.Decompressor([FRAME], progress=interrupt).read()


def test_the_gil_is_released():
    """Python goes on while C works: a thread counts during one call that never comes back to Python."""
    content = random.Random(3).randbytes(1 << 20) * 8
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted[0]
        glyd.compress(content, "ultra", threads=1)
        during = counted[0] - before
    finally:
        stop.set()
        thread.join()
    assert during > 1000


def test_many_threads_at_once():
    results = [None] * 6

    def work(index):
        part = CONTENT[index * 1000 :]
        results[index] = glyd.decompress(glyd.compress(part, LEVELS[index % 3], unit_bytes=UNIT)) == part

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results)


@pytest.mark.parametrize("piece", (1000, 99_999, 1 << 20))
def test_compressor(piece):
    compressor = glyd.Compressor(unit_bytes=UNIT, content_bytes=len(CONTENT))
    parts = [compressor.compress(CONTENT[at : at + piece]) for at in range(0, len(CONTENT), piece)]
    parts.append(compressor.flush())
    assert b"".join(parts) == FRAME
    with pytest.raises(glyd.InvalidArgumentError, match="finished"):
        compressor.compress(b"more")
    with pytest.raises(glyd.InvalidArgumentError, match="finished"):
        compressor.flush()


def test_compressor_writes():
    target = io.BytesIO()
    compressor = glyd.Compressor("ultra", write=target.write)
    assert compressor.compress(CONTENT) == b"" and compressor.flush() == b""
    assert glyd.decompress(target.getvalue()) == CONTENT

    def full(_):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        glyd.Compressor(write=full)
    with pytest.raises(glyd.InvalidArgumentError, match="announced"):
        glyd.Compressor(content_bytes=3).flush()


@pytest.mark.parametrize("size", (1, 777, 1 << 20))
def test_decompressor(size):
    frame = FRAME[:50_000] if size == 1 else FRAME + FRAME
    pieces = (frame[at : at + size] for at in range(0, len(frame), size))
    decompressor = glyd.Decompressor(pieces)
    if size > 1:
        assert b"".join(decompressor) == CONTENT * 2
        return
    got = []
    with pytest.raises(glyd.CorruptError, match="truncated"):
        got.extend(iter(lambda: decompressor.read(10_000), b""))
        pytest.fail("no end was there")
    before = b"".join(got)
    assert before == CONTENT[: len(before)] and decompressor.read(0) == b""


def test_decompressor_of_files_and_odd_pieces():
    assert glyd.Decompressor(io.BytesIO(FRAME)).read() == CONTENT
    assert glyd.Decompressor(iter([b"", bytearray(FRAME[:99]), b"", memoryview(FRAME)[99:]])).read() == CONTENT
    part = bytearray(1000)
    assert glyd.Decompressor([FRAME]).readinto(part) == 1000 and part == CONTENT[:1000]
    assert glyd.Decompressor([glyd.compress(b"")]).read() == b""

    def broken():
        yield FRAME[:1000]
        raise ConnectionError("the line is dead")

    with pytest.raises(ConnectionError, match="dead"):
        glyd.Decompressor(broken()).read()
    with pytest.raises(glyd.CorruptError, match="no frame"):
        glyd.Decompressor([FRAME, b"junk"]).read()
    closed = glyd.Decompressor([FRAME])
    closed.close()
    with pytest.raises(glyd.InvalidArgumentError, match="closed"):
        closed.read(1)


@pytest.mark.parametrize(
    "content",
    (
        b"[" * 200_000 + b"]" * 200_000,
        b'{"a":' * 50_000 + b"1.10000000000000000555" + b"}" * 50_000,
        b'a,"b ""c""",d\r\n"unclosed,e\r\n' * 5000,
        b"0.1,1e-7,1E-07,-0.0,+1,00.10,1.,.5,NaN\n" * 3000,
        b"\x00\xff\xfe\x80 null and no UTF-8 \xc3\x28\n" * 4000,
        b"x" * 3_000_000 + b"\n" + b"y" * 1_000_000,
        b"GLYC^\xc9\x93\xe4\x16\x3b\x5d" * 20_000,
        FRAME,
    ),
    ids=("deep arrays", "deep objects", "quotes and CRLF", "numbers", "bytes", "long lines", "our own marks", "a frame"),
)
def test_what_trips_parsers_comes_back_exactly(content):
    """Content is bytes and never parsed: digits, quotes, line ends and depth are as they were."""
    for level in LEVELS:
        assert glyd.decompress(glyd.compress(content, level)) == content
