"""glyd.open: compressed files as file objects."""

import io
import os
import random
import threading

import glyd
import pytest
from test_codec import CONTENT, FRAME, UNIT

LINES = b"".join(b"line %d of the file\n" % i for i in range(40_000))


@pytest.fixture
def path(tmp_path):
    with glyd.open(tmp_path / "file.glyd", "wb", unit_bytes=UNIT, metadata=b"about it") as file:
        assert file.write(LINES[:100_000]) == 100_000 and file.tell() == 100_000
        file.write(memoryview(LINES)[100_000:])
    return tmp_path / "file.glyd"


def test_read_and_attributes(path):
    with glyd.open(path) as file:
        assert file.readable() and file.seekable() and not file.writable()
        assert file.info["content_bytes"] == len(LINES) and file.info["units"] > 5 and file.metadata == b"about it"
        assert file.read() == LINES and file.read() == b"" and file.tell() == len(LINES)
    with pytest.raises(ValueError, match="closed"):
        file.read()
    assert glyd.decompress(path.read_bytes()) == LINES


def test_seek_tell_and_readinto(path):
    generator = random.Random(1)
    with glyd.open(path) as file:
        for _ in range(200):
            begin, size = generator.randrange(len(LINES) + 100), generator.choice((1, 10, 5000, 200_000))
            assert file.seek(begin) == begin == file.tell()
            expected = LINES[begin : begin + size]
            if size % 2:
                assert file.read(size) == expected
            else:
                part = bytearray(size)
                count = file.readinto(part)
                while 0 < count < len(expected) and (more := file.readinto(memoryview(part)[count:])):
                    count += more
                assert part[:count] == expected
            assert file.tell() == begin + len(expected)
        assert file.seek(-5, io.SEEK_END) == len(LINES) - 5 and file.read() == LINES[-5:]
        file.seek(10)
        assert file.seek(5, io.SEEK_CUR) == 15 and file.peek(3)[:3] == LINES[15:18]
        with pytest.raises(ValueError):
            file.seek(-1)


def test_iteration_and_text(path):
    with glyd.open(path) as file:
        assert list(file) == LINES.splitlines(keepends=True)
        file.seek(0)
        assert file.readline() == b"line 0 of the file\n"
    with glyd.open(path, "rt", encoding="ascii") as file:
        assert sum(1 for line in file if line.startswith("line 7")) == LINES.count(b"line 7")
    with glyd.open(path.with_name("text.glyd"), "wt", encoding="utf-8", newline="\n") as file:
        file.write("naïve\nsecond\n")
    assert glyd.decompress(path.with_name("text.glyd").read_bytes()).decode() == "naïve\nsecond\n"


def test_a_range_reads_what_it_needs(path):
    class Counting(io.FileIO):
        taken = 0

        def read(self, size=-1):
            piece = super().read(size)
            Counting.taken += len(piece)
            return piece

    with Counting(path) as raw, glyd.open(raw) as file:
        file.seek(3 * UNIT + 1000)
        assert file.read(100) == LINES[3 * UNIT + 1000 : 3 * UNIT + 1100]
        assert Counting.taken < os.path.getsize(path) / 3


def test_small_reads_do_not_decode_a_unit_each(path):
    class Counting(io.BytesIO):
        reads = 0

        def read(self, size=-1):
            Counting.reads += 1
            return super().read(size)

    with glyd.open(Counting(path.read_bytes())) as file:
        for begin in range(0, len(LINES), 9973):
            file.seek(begin)
            assert file.read(10) == LINES[begin : begin + 10]
        assert Counting.reads < 40


def test_sources_of_every_kind(path):
    data = path.read_bytes()
    for source in (str(path), data, bytearray(data), memoryview(data), io.BytesIO(data)):
        with glyd.open(source) as file:
            assert file.read(7) == LINES[:7] and file.seek(700_000) and file.read(7) == LINES[700_000:700_007]
    with io.BytesIO(b"before" + data) as later:
        later.seek(6)
        with glyd.open(later) as file:
            assert file.read() == LINES
    with io.open(path, "rb") as plain, glyd.open(plain) as file:
        assert file.read() == LINES


def test_a_pipe_only_goes_forward():
    here, there = os.pipe()

    def send():
        with os.fdopen(there, "wb") as pipe:
            pipe.write(FRAME)

    thread = threading.Thread(target=send)
    thread.start()
    with os.fdopen(here, "rb") as pipe, glyd.open(pipe) as file:
        assert not file.seekable() and file.read(10) == CONTENT[:10] and file.read() == CONTENT[10:]
    thread.join()


def test_frames_in_a_row():
    parts = [b"first\n" * 1000, b"", CONTENT, b"last"]
    row = b"".join(glyd.compress(part, unit_bytes=UNIT) for part in parts)
    whole = b"".join(parts)
    with glyd.open(row) as file:
        assert file.read() == whole
        for begin in range(0, len(whole), 40_009):
            file.seek(begin)
            assert file.read(50) == whole[begin : begin + 50]


def test_writing_is_all_or_nothing(tmp_path):
    target = tmp_path / "file.glyd"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError, match="on the way"), glyd.open(target, "wb") as file:
        file.write(CONTENT)
        raise RuntimeError("on the way")
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["file.glyd"]
    glyd.open(target, "wb").write(CONTENT)  # dropped without close
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["file.glyd"]
    with glyd.open(target, "wb", "ultra") as file:
        file.write(CONTENT)
    assert glyd.decompress(target.read_bytes()) == CONTENT and os.listdir(tmp_path) == ["file.glyd"]
    with pytest.raises(ValueError, match="closed"):
        file.write(b"more")


def test_exclusive(tmp_path):
    target = tmp_path / "file.glyd"
    with glyd.open(target, "xb") as file:
        file.write(b"first")
    with pytest.raises(glyd.ExistsError, match="exists"):
        glyd.open(target, "x")
    assert glyd.open(target).read() == b"first" and os.listdir(tmp_path) == ["file.glyd"]


def test_writing_to_a_file_object():
    target = io.BytesIO()
    with glyd.open(target, "wb", unit_bytes=UNIT) as file:
        for at in range(0, len(CONTENT), 12_345):
            file.write(CONTENT[at : at + 12_345])
    assert glyd.decompress(target.getvalue()) == CONTENT and not target.closed


def test_errors(tmp_path, path):
    with pytest.raises(FileNotFoundError):
        glyd.open(tmp_path / "nothing.glyd")
    with pytest.raises(FileNotFoundError, match="/file.glyd'$"):
        glyd.open(tmp_path / "no folder" / "file.glyd", "wb")
    with pytest.raises(glyd.InvalidArgumentError, match="mode"):
        glyd.open(path, "a")
    (tmp_path / "other").write_bytes(b"not a frame at all, not at all")
    with pytest.raises(glyd.ForeignFormatError):
        glyd.open(tmp_path / "other")
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    with glyd.open(data) as file:
        file.seek(2 * UNIT)
        assert file.read(100) == LINES[2 * UNIT : 2 * UNIT + 100]  # the damage is elsewhere
        file.seek(0)
        with pytest.raises(glyd.CorruptError, match="check"):
            file.read(10)
    with pytest.raises(glyd.CorruptError):
        glyd.open(path.read_bytes()[:-1])
