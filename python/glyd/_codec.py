"""The general compressor: from memory to memory, and streams in pieces (include/glyd/codec.h)."""

import ctypes
import weakref

from ._buffers import Buffer, new_bytes, window
from ._capi import CodecProgress, CompressOptions, DecompressOptions, FrameInfo, Level, Read, Write, lib
from ._errors import Error, InvalidArgumentError

MEMORY_LIMIT = 2 << 30  # of decoding, unless told otherwise: all that the levels write, not all that a frame may ask
_OK, _IO = 0, 7
_LEVELS = {0: "max", 1: "default", 2: "ultra"}


class Calls:
    """Carries what a Python function raised inside a C call (Ctrl-C too) back out of it, and the progress callback.

    C holds its functions weakly: an object that is dropped goes at once, and its memory with it.
    """

    def __init__(self, progress=None):
        self._progress = progress
        self._raised = None
        step = weakref.WeakMethod(self._step)
        self.function = CodecProgress(lambda _context, content_bytes: step()(content_bytes))

    def _step(self, content_bytes):
        try:
            return 1 if self._progress is not None and self._progress(content_bytes) else 0
        except BaseException as error:
            self._raised = error
            return 1

    def guard(self, method):
        """`method` for C: a status instead of an exception."""
        held = weakref.WeakMethod(method)

        def guarded(*arguments):
            try:
                held()(*arguments)
                return _OK
            except BaseException as error:
                self._raised = error
                return _IO

        return guarded

    def run(self, function, *arguments):
        try:
            function(*arguments)
        except Error:
            raised, self._raised = self._raised, None
            if raised is not None:
                raise raised from None
            raise


def level_number(name):
    number = Level()
    lib().glyd_level_from_name(str(name).encode(), ctypes.byref(number))
    return number.value


def compress_options(calls, level, threads, unit_bytes, metadata):
    """The C struct, and what it points into."""
    held = Buffer(metadata)
    options = CompressOptions(
        level=level_number(level),
        threads=threads,
        unit_bytes=unit_bytes,
        metadata=held.address,
        metadata_bytes=held.size,
        progress=calls.function,
    )
    return options, held


def decompress_options(calls, threads, memory_limit):
    return DecompressOptions(threads=threads, memory_limit=memory_limit or 0, progress=calls.function)


def info_dict(info):
    return {
        "content_bytes": info.content_bytes,
        "frame_bytes": info.frame_bytes,
        "frames": info.frames,
        "units": info.units,
        "largest_unit_bytes": info.largest_unit,
        "memory_bytes": info.memory_bytes,
        "level": _LEVELS.get(info.level, "max"),
        "metadata_bytes": info.metadata_bytes,
    }


def compress(data, level="max", *, threads=0, unit_bytes=0, metadata=b"", progress=None):
    """One frame of `data`, which is anything with the buffer protocol, read in place.

    `level`: "default", "max" or "ultra". `unit_bytes`: what is decoded by itself, a power of two; 0 is the level's own.
    `progress(content_bytes)` is called now and then; a true result stops the work. `threads` never changes the bytes.
    """
    calls = Calls(progress)
    options, held = compress_options(calls, level, threads, unit_bytes, metadata)
    with held, Buffer(data) as content:
        bound, used = ctypes.c_uint64(), ctypes.c_size_t()
        lib().glyd_compress_bound(content.size, ctypes.byref(options), ctypes.byref(bound))
        frame, address = new_bytes(bound.value)
        calls.run(
            lib().glyd_compress,
            content.address,
            content.size,
            ctypes.byref(options),
            address,
            bound.value,
            ctypes.byref(used),
        )
    return frame[: used.value]


def frame_info(data):
    """What frames hold, from their headers and indexes alone: a dict of content_bytes, frame_bytes, frames, units,
    largest_unit_bytes, memory_bytes (of decoding), level and metadata_bytes."""
    info = FrameInfo()
    with Buffer(data) as frame:
        lib().glyd_frame_read_info(frame.address, frame.size, ctypes.byref(info))
    return info_dict(info)


def decompress(data, *, out=None, max_bytes=None, threads=0, memory_limit=MEMORY_LIMIT, progress=None):
    """The content of frames, as bytes; or into `out`, anything writable, and the number of bytes it took.

    More content than `max_bytes`, or more working memory than `memory_limit` bytes, is an error before anything is
    decoded; 0 or None lifts either.
    """
    calls = Calls(progress)
    options = decompress_options(calls, threads, memory_limit)
    with Buffer(data) as frame:
        info, used = FrameInfo(), ctypes.c_size_t()
        lib().glyd_frame_read_info(frame.address, frame.size, ctypes.byref(info))
        if max_bytes and info.content_bytes > max_bytes:
            size = info.content_bytes
            raise InvalidArgumentError(f"the content has {size} bytes, max_bytes is {max_bytes}: raise it")

        def run(address, capacity):
            source, room = (frame.address, frame.size, ctypes.byref(options)), (address, capacity, ctypes.byref(used))
            calls.run(lib().glyd_decompress, *source, *room)

        if out is not None:
            with Buffer(out, writable=True) as target:
                run(target.address, target.size)
            return used.value
        content, address = new_bytes(info.content_bytes)
        run(address, info.content_bytes)
        return content


class Compressor:
    """A frame in pieces: `compress(data)` takes content and gives what is ready of the frame, `flush()` the rest.

    With `write`, a function of bytes-like pieces, they go there instead, and both give b"". The frame is the same
    whatever the pieces; its header does not know the content's size unless `content_bytes` tells it.
    """

    def __init__(
        self, level="max", *, threads=0, unit_bytes=0, metadata=b"", content_bytes=None, write=None, progress=None
    ):
        self._handle = ctypes.c_void_p()
        self._calls = Calls(progress)
        self._pieces = []
        self._write = write
        self._function = Write(self._calls.guard(self._take))
        options, held = compress_options(self._calls, level, threads, unit_bytes, metadata)
        if content_bytes is not None:
            options.content_bytes, options.has_content_bytes = content_bytes, 1
        with held:
            create, handle = lib().glyd_compressor_create, ctypes.byref(self._handle)
            self._calls.run(create, ctypes.byref(options), self._function, None, handle)

    def _take(self, _context, address, size):
        piece = window(address, size)
        if self._write is None:
            self._pieces.append(bytes(piece))
        else:
            self._write(piece)

    def _ready(self):
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def _open(self):
        if not self._handle:
            raise InvalidArgumentError("the frame is finished: a Compressor makes one")
        return self._handle

    def compress(self, data):
        handle = self._open()
        with Buffer(data) as content:
            self._calls.run(lib().glyd_compressor_write, handle, content.address, content.size)
        return self._ready()

    def flush(self):
        """The end of the frame, without which it is truncated."""
        try:
            self._calls.run(lib().glyd_compressor_finish, self._open())
        finally:
            self.close()
        return self._ready()

    def close(self):
        """Gives the memory back; a frame that was not flushed stays truncated."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            lib().glyd_compressor_free(handle)

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()


class Decompressor:
    """The content of frames that arrive in pieces: `read(size)`, `readinto(buffer)`, or piece by piece in a `for`.

    `source` is a file object, or anything that can be iterated for bytes-like pieces, such as the body of a download.
    What lies before an error or a cut is given first; then it is raised.
    """

    def __init__(self, source, *, threads=0, memory_limit=MEMORY_LIMIT, progress=None):
        self._handle = ctypes.c_void_p()
        self._calls = Calls(progress)
        self._rest = memoryview(b"")
        self._next = source.read if hasattr(source, "read") else self._iterate(iter(source))
        self._function = Read(self._calls.guard(self._give))
        options = decompress_options(self._calls, threads, memory_limit)
        create = lib().glyd_decompressor_create
        self._calls.run(create, ctypes.byref(options), self._function, None, ctypes.byref(self._handle))

    @staticmethod
    def _iterate(pieces):
        def following(_size):
            return next((piece for piece in pieces if len(piece)), b"")

        return following

    def _give(self, _context, address, capacity, count):
        if not self._rest:
            piece = self._next(capacity)
            self._rest = memoryview(piece if piece is not None else b"").cast("B")
        size = min(capacity, len(self._rest))
        window(address, size)[:] = self._rest[:size]
        self._rest = self._rest[size:]
        count[0] = size

    def readinto(self, buffer):
        if not self._handle:
            raise InvalidArgumentError("the Decompressor is closed")
        got = ctypes.c_size_t()
        with Buffer(buffer, writable=True) as target:
            read = lib().glyd_decompressor_read
            self._calls.run(read, self._handle, target.address, target.size, ctypes.byref(got))
        return got.value

    def read(self, size=-1):
        """Up to `size` bytes, b"" at the end; all that is left without `size`."""
        if size is None or size < 0:
            return b"".join(self)
        part = bytearray(min(size, 1 << 20))
        return bytes(part[: self.readinto(part)]) if size else b""

    def __iter__(self):
        part = bytearray(1 << 20)
        while count := self.readinto(part):
            yield bytes(part[:count])

    def close(self):
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            lib().glyd_decompressor_free(handle)

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()
