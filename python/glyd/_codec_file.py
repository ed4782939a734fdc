"""Compressed files as file objects: `glyd.open`."""

import ctypes
import io
import os
import threading
import weakref

from ._buffers import Buffer, new_bytes, window
from ._capi import FrameInfo, ReadAt, lib
from ._codec import MEMORY_LIMIT, Calls, Compressor, Decompressor, decompress_options, info_dict
from ._errors import ExistsError, InvalidArgumentError

_CACHE_BYTES = 64 << 20  # a unit larger than this is decoded again for each small read


class _Path:
    """A file by descriptor: several threads read it at once."""

    def __init__(self, path):
        self._file = io.FileIO(path)
        self.size = os.fstat(self._file.fileno()).st_size

    def read_at(self, offset, target):
        while target:
            got = os.preadv(self._file.fileno(), [target], offset)
            if got == 0:
                raise OSError(f"{self._file.name} became shorter while it was read")
            target, offset = target[got:], offset + got

    def close(self):
        self._file.close()


class _FileObject:
    """A file object that can seek, from where it stands to its end; one reader at a time."""

    def __init__(self, file):
        self._file, self._lock = file, threading.Lock()
        self._begin = file.tell()
        self.size = file.seek(0, io.SEEK_END) - self._begin

    def read_at(self, offset, target):
        with self._lock:
            self._file.seek(self._begin + offset)
            while target:
                piece = self._file.read(len(target))
                if not piece:
                    raise OSError("the file became shorter while it was read")
                target[: len(piece)] = piece
                target = target[len(piece) :]

    def close(self):
        pass


class _Memory:
    """Anything with the buffer protocol."""

    def __init__(self, data):
        self._held = Buffer(data)
        self.size = self._held.size

    def read_at(self, offset, target):
        ctypes.memmove(ctypes.addressof(ctypes.c_char.from_buffer(target)), self._held.address + offset, len(target))

    def close(self):
        self._held.release()


class _RawReader(io.RawIOBase):
    """Content at any place; the unit that was read last is kept, so that small reads do not decode it again."""

    def __init__(self, source, threads, memory_limit, progress):
        self._handle = ctypes.c_void_p()
        self._source = source
        self._calls = Calls(progress)
        self._options = decompress_options(self._calls, threads, memory_limit)
        self._function = ReadAt(self._calls.guard(self._read_at))
        self._position = 0
        self._cache, self._cache_begin = b"", 0
        self._calls.run(lib().glyd_reader_open, self._function, None, source.size, ctypes.byref(self._handle))
        info = FrameInfo()
        lib().glyd_reader_info(self._handle, ctypes.byref(info))
        self.info = info_dict(info)

    def _read_at(self, _context, offset, address, size):
        self._source.read_at(offset, window(address, size))

    def _read(self, begin, address, size):
        self._check_open()
        self._calls.run(lib().glyd_reader_read, self._handle, ctypes.byref(self._options), begin, address, size)

    def _check_open(self):
        if self.closed:
            raise ValueError("I/O operation on closed file")

    @property
    def metadata(self):
        self._check_open()
        size = self.info["metadata_bytes"]
        result, address = new_bytes(size)
        lib().glyd_reader_metadata(self._handle, address, size)
        return result

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        self._check_open()
        return self._position

    def seek(self, offset, whence=io.SEEK_SET):
        self._check_open()
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.info["content_bytes"]}
        if whence not in base or base[whence] + offset < 0:
            raise ValueError(f"seek({offset}, {whence}): before the beginning, or no such whence")
        self._position = base[whence] + offset
        return self._position

    def readinto(self, buffer):
        with Buffer(buffer, writable=True) as target:
            count = max(0, min(target.size, self.info["content_bytes"] - self._position))
            unit = self.info["largest_unit_bytes"]
            if count and count < unit <= _CACHE_BYTES:
                count = self._read_cached(target.address, count)
            elif count:
                self._read(self._position, target.address, count)
        self._position += count
        return count

    def _read_cached(self, address, count):
        at = self._position - self._cache_begin
        if not 0 <= at < len(self._cache):
            # A window of one unit's size, on its multiples, is one unit of all frames but the last of a row.
            unit = self.info["largest_unit_bytes"]
            begin = self._position // unit * unit
            cache, cache_address = new_bytes(min(unit, self.info["content_bytes"] - begin))
            self._read(begin, cache_address, len(cache))
            self._cache, self._cache_begin = cache, begin
            at = self._position - begin
        piece = memoryview(self._cache)[at : at + count]
        window(address, len(piece))[:] = piece
        return len(piece)

    def readall(self):
        left = max(0, self.info["content_bytes"] - self._position)
        content, address = new_bytes(left)
        if left:
            self._read(self._position, address, left)
        self._position += left
        return content

    def close(self):
        if not self.closed:
            super().close()
            handle, self._handle = self._handle, ctypes.c_void_p()
            if handle:
                lib().glyd_reader_free(handle)
            self._source.close()


class _RawStream(io.RawIOBase):
    """Content of a source that only goes forward."""

    def __init__(self, source, threads, memory_limit, progress):
        self._decompressor = Decompressor(source, threads=threads, memory_limit=memory_limit, progress=progress)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._decompressor.readinto(buffer)

    def close(self):
        if not self.closed:
            super().close()
            self._decompressor.close()


class CompressedFile(io.BufferedReader):
    """A compressed file's content: read, readinto, seek, tell, lines; its `info` (glyd.frame_info) and `metadata`."""

    @property
    def info(self):
        return self.raw.info

    @property
    def metadata(self):
        return self.raw.metadata


class CompressedWriter(io.BufferedIOBase):
    """Takes content and writes a frame. A path's file appears when it is closed, and not at all after an error."""

    def __init__(self, target, *, exclusive=False, **options):
        self._compressor = self._file = self._path = self._staging = None
        self._position = 0
        if hasattr(target, "write"):
            self._file = target
        else:
            self._begin(os.fsdecode(target), exclusive)
        try:
            put = weakref.WeakMethod(self._put)  # so that a dropped file goes at once
            self._compressor = Compressor(write=lambda piece: put()(piece), **options)
        except BaseException:
            self.discard()
            raise

    def _begin(self, target, exclusive):
        if exclusive and os.path.lexists(target):
            raise ExistsError(f"{target}: exists already")
        path = os.path.realpath(target)
        folder, name = os.path.split(path)
        staging = os.path.join(folder, f".{name}.{os.getpid()}-{id(self):x}.glyd-staging")
        try:
            self._file = io.open(staging, "xb", buffering=0)
        except OSError as error:
            error.filename = target  # what was asked for
            raise
        self._path, self._staging, self._exclusive = path, staging, exclusive

    def _put(self, piece):
        while piece:
            put = self._file.write(piece)
            piece = piece[len(piece) if put is None else put :]

    def writable(self):
        return True

    def tell(self):
        return self._position

    def write(self, data):
        if self.closed:
            raise ValueError("write to closed file")
        self._compressor.compress(data)
        size = memoryview(data).nbytes
        self._position += size
        return size

    def close(self):
        if self.closed or self._compressor is None:
            return
        try:
            self._compressor.flush()
            if self._path is not None:
                self._file.close()
                self._take_name()
        except BaseException:
            self.discard()
            raise
        super().close()

    def _take_name(self):
        if not self._exclusive:
            os.replace(self._staging, self._path)
            return
        try:
            os.link(self._staging, self._path)
        except FileExistsError:
            raise ExistsError(f"{self._path}: was made by somebody else meanwhile; it is kept") from None
        os.unlink(self._staging)

    def discard(self):
        """Ends without a frame: of a path nothing is left."""
        if self._compressor is not None:
            self._compressor.close()
        if self._path is not None:
            self._file.close()
            if os.path.lexists(self._staging):
                os.unlink(self._staging)
        super().close()

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self):
        if not self.closed:  # never closed: not a frame that anybody asked for
            self.discard()


def open(  # noqa: A001 - glyd.open, as gzip.open
    file,
    mode="rb",
    level="max",
    *,
    threads=0,
    memory_limit=MEMORY_LIMIT,
    unit_bytes=0,
    metadata=b"",
    progress=None,
    encoding=None,
    errors=None,
    newline=None,
):
    """A compressed file as a file object. `file`: a path, a file object, or (to read) bytes of any kind.

    Modes "r" (which can seek wherever `file` can), "w" and "x", with "b" (the default) or "t". `level`, `unit_bytes`
    and `metadata` are of writing, `memory_limit` of reading.
    """
    kinds = mode.replace("b", "").replace("t", "")
    if kinds not in ("r", "w", "x") or ("b" in mode and "t" in mode):
        raise InvalidArgumentError(f'mode "{mode}": choose r, w or x, with b or t')
    if kinds == "r":
        binary = _open_to_read(file, threads, memory_limit, progress)
    else:
        options = dict(level=level, threads=threads, unit_bytes=unit_bytes, metadata=metadata, progress=progress)
        binary = CompressedWriter(file, exclusive=kinds == "x", **options)
    if "t" not in mode:
        return binary
    return io.TextIOWrapper(binary, encoding, errors, newline)


def _open_to_read(file, threads, memory_limit, progress):
    if isinstance(file, (str, os.PathLike)):
        source = _Path(file)
    elif not hasattr(file, "read"):
        source = _Memory(file)
    elif not file.seekable():
        return io.BufferedReader(_RawStream(file, threads, memory_limit, progress), 1 << 20)
    else:
        source = _FileObject(file)
    try:
        raw = _RawReader(source, threads, memory_limit, progress)
    except BaseException:
        source.close()
        raise
    return CompressedFile(raw)
