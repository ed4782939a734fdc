"""The C ABI of libglyd, declared once. No logic: tests/python/test_capi.py compares it with include/glyd/*.h."""

import ctypes
import os
from ctypes import POINTER, Structure, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

from . import _errors

ABI_VERSION = 1
HEADERS = ("status.h", "weights.h", "checkpoint.h", "codec.h")

LAYOUT_RAW, LAYOUT_FAST, LAYOUT_SMALL, LAYOUT_AUTO = 0, 1, 2, 255

Status = c_int  # enum glyd_status
Layout = c_int  # enum glyd_layout
Level = c_int  # enum glyd_level
Progress = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64, c_char_p)
Note = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
CodecProgress = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64)
ReadAt = ctypes.CFUNCTYPE(Status, c_void_p, c_uint64, c_void_p, c_size_t)  # glyd_read_at
Write = ctypes.CFUNCTYPE(Status, c_void_p, c_void_p, c_size_t)  # glyd_write
Read = ctypes.CFUNCTYPE(Status, c_void_p, c_void_p, c_size_t, POINTER(c_size_t))  # glyd_read
Salvaged = ctypes.CFUNCTYPE(Status, c_void_p, c_uint64, c_void_p, c_size_t)  # glyd_salvaged


class Shape(Structure):  # glyd_shape
    _fields_ = [
        ("stack", c_uint64),
        ("rows", c_uint64),
        ("cols", c_uint64),
        ("transposed", c_uint32),
        ("reserved", c_uint32),
    ]


class Sized(Structure):
    """A struct that begins with its own size."""

    def __init__(self, **members):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **members)


class PackInfo(Sized):  # glyd_pack_info
    _fields_ = [
        ("struct_size", c_size_t),
        ("shape", Shape),
        ("layout", Layout),
        ("fusible", c_uint32),
        ("pack_bytes", c_uint64),
        ("bf16_bytes", c_uint64),
        ("base", c_uint32),
        ("slot_bytes", c_uint32),
        ("min_bits", c_uint32),
        ("symbols", c_uint32),
    ]


class PackOptions(Sized):  # glyd_pack_options
    _fields_ = [
        ("struct_size", c_size_t),
        ("layout", Layout),
        ("threads", c_int),
        ("overwrite", c_int),
        ("no_verify", c_int),
        ("hash_files", c_int),
        ("revision", c_char_p),
        ("progress", Progress),
        ("user", c_void_p),
        ("note", Note),
    ]


class VerifyOptions(Sized):  # glyd_verify_options
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_int),
        ("source", c_char_p),
        ("revision", c_char_p),
        ("progress", Progress),
        ("user", c_void_p),
    ]


class UnpackOptions(Sized):  # glyd_unpack_options
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_int),
        ("overwrite", c_int),
        ("progress", Progress),
        ("user", c_void_p),
        ("salvage", c_int),
    ]


class SizesOptions(Sized):  # glyd_sizes_options
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_int),
        ("revision", c_char_p),
        ("progress", Progress),
        ("user", c_void_p),
    ]


class FitOptions(Sized):  # glyd_fit_options
    _fields_ = [
        ("struct_size", c_size_t),
        ("gpu", c_char_p),
        ("context", c_uint64),
        ("batch", c_uint64),
        ("revision", c_char_p),
    ]


class CompressOptions(Sized):  # glyd_compress_options
    _fields_ = [
        ("struct_size", c_size_t),
        ("level", Level),
        ("threads", c_int),
        ("unit_bytes", c_uint64),
        ("metadata", c_void_p),
        ("metadata_bytes", c_size_t),
        ("progress", CodecProgress),
        ("progress_context", c_void_p),
        ("content_bytes", c_uint64),
        ("has_content_bytes", c_uint32),
    ]


class DecompressOptions(Sized):  # glyd_decompress_options
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_int),
        ("memory_limit", c_uint64),
        ("progress", CodecProgress),
        ("progress_context", c_void_p),
    ]


class FrameInfo(Sized):  # glyd_frame_info
    _fields_ = [
        ("struct_size", c_size_t),
        ("content_bytes", c_uint64),
        ("frame_bytes", c_uint64),
        ("frames", c_uint64),
        ("units", c_uint64),
        ("largest_unit", c_uint64),
        ("memory_bytes", c_uint64),
        ("level", Level),
        ("metadata_bytes", c_uint64),
    ]


class UnitInfo(Sized):  # glyd_unit_info
    _fields_ = [
        ("struct_size", c_size_t),
        ("content_begin", c_uint64),
        ("content_bytes", c_uint64),
        ("frame_offset", c_uint64),
        ("stored_bytes", c_uint64),
    ]


class SalvageReport(Sized):  # glyd_salvage_report
    _fields_ = [
        ("struct_size", c_size_t),
        ("recovered_bytes", c_uint64),
        ("content_end", c_uint64),
        ("lost_ranges", c_uint64),
        ("complete", c_uint32),
    ]


STRUCTS = {
    "glyd_shape": Shape,
    "glyd_pack_info": PackInfo,
    "glyd_pack_options": PackOptions,
    "glyd_verify_options": VerifyOptions,
    "glyd_unpack_options": UnpackOptions,
    "glyd_sizes_options": SizesOptions,
    "glyd_fit_options": FitOptions,
    "glyd_compress_options": CompressOptions,
    "glyd_decompress_options": DecompressOptions,
    "glyd_frame_info": FrameInfo,
    "glyd_unit_info": UnitInfo,
    "glyd_salvage_report": SalvageReport,
}

Document = POINTER(c_void_p)  # glyd_text**
Out64 = POINTER(c_uint64)
OutSize = POINTER(c_size_t)
OutHandle = POINTER(c_void_p)  # of an opaque struct

# name: (result, arguments). Pointers to values are addresses (c_void_p): torch's data_ptr() goes in as it is.
SIGNATURES = {
    "glyd_status_text": (c_char_p, [Status]),
    "glyd_last_error": (c_char_p, []),
    "glyd_version": (c_char_p, []),
    "glyd_abi_version": (c_uint32, []),
    "glyd_layout_from_name": (Status, [c_char_p, POINTER(Layout)]),
    "glyd_layout_name": (c_char_p, [Layout]),
    "glyd_pack_bound": (Status, [POINTER(Shape), Out64]),
    "glyd_pack": (Status, [c_void_p, POINTER(Shape), Layout, c_int, c_void_p, c_uint64, Out64]),
    "glyd_pack_read_info": (Status, [c_void_p, c_uint64, POINTER(PackInfo)]),
    "glyd_pack_validate": (Status, [c_void_p, c_uint64, c_int]),
    "glyd_decode": (Status, [c_void_p, c_uint64, c_int, c_void_p, c_uint64]),
    "glyd_decode_block": (
        Status,
        [c_void_p, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_uint64, c_int, c_void_p, c_uint64],
    ),
    "glyd_decode_rows": (Status, [c_void_p, c_uint64, c_void_p, c_uint64, c_int, c_void_p]),
    "glyd_linear": (
        Status,
        [c_void_p, c_uint64, c_uint64, c_void_p, c_uint64, c_uint64, c_void_p, c_void_p, c_uint64, c_int],
    ),
    "glyd_cpu_isa": (c_char_p, []),
    "glyd_text_data": (c_char_p, [c_void_p]),
    "glyd_text_free": (None, [c_void_p]),
    "glyd_checkpoint_pack": (Status, [c_char_p, c_char_p, POINTER(PackOptions), Document]),
    "glyd_checkpoint_verify": (Status, [c_char_p, POINTER(VerifyOptions), Document]),
    "glyd_checkpoint_unpack": (Status, [c_char_p, c_char_p, POINTER(UnpackOptions), Document]),
    "glyd_checkpoint_sizes": (Status, [POINTER(c_char_p), c_size_t, POINTER(SizesOptions), Document]),
    "glyd_checkpoint_inspect": (Status, [c_char_p, c_char_p, Document]),
    "glyd_checkpoint_fit": (Status, [c_char_p, POINTER(FitOptions), Document]),
    "glyd_doctor": (Status, [Document]),
    "glyd_level_from_name": (Status, [c_char_p, POINTER(Level)]),
    "glyd_compress_bound": (Status, [c_uint64, POINTER(CompressOptions), Out64]),
    "glyd_compress": (Status, [c_void_p, c_size_t, POINTER(CompressOptions), c_void_p, c_size_t, OutSize]),
    "glyd_is_frame": (c_int, [c_void_p, c_size_t]),
    "glyd_frame_read_info": (Status, [c_void_p, c_size_t, POINTER(FrameInfo)]),
    "glyd_decompress": (Status, [c_void_p, c_size_t, POINTER(DecompressOptions), c_void_p, c_size_t, OutSize]),
    "glyd_decompress_range": (
        Status,
        [c_void_p, c_size_t, POINTER(DecompressOptions), c_uint64, c_void_p, c_size_t],
    ),
    "glyd_frame_verify": (Status, [c_void_p, c_size_t, POINTER(DecompressOptions)]),
    "glyd_reader_open": (Status, [ReadAt, c_void_p, c_uint64, OutHandle]),
    "glyd_reader_info": (Status, [c_void_p, POINTER(FrameInfo)]),
    "glyd_reader_metadata": (Status, [c_void_p, c_void_p, c_size_t]),
    "glyd_reader_read": (Status, [c_void_p, POINTER(DecompressOptions), c_uint64, c_void_p, c_size_t]),
    "glyd_reader_verify": (Status, [c_void_p, POINTER(DecompressOptions)]),
    "glyd_reader_unit": (Status, [c_void_p, c_uint64, POINTER(UnitInfo)]),
    "glyd_reader_free": (None, [c_void_p]),
    "glyd_compressor_create": (Status, [POINTER(CompressOptions), Write, c_void_p, OutHandle]),
    "glyd_compressor_write": (Status, [c_void_p, c_void_p, c_size_t]),
    "glyd_compressor_finish": (Status, [c_void_p]),
    "glyd_compressor_free": (None, [c_void_p]),
    "glyd_decompressor_create": (Status, [POINTER(DecompressOptions), Read, c_void_p, OutHandle]),
    "glyd_decompressor_read": (Status, [c_void_p, c_void_p, c_size_t, OutSize]),
    "glyd_decompressor_free": (None, [c_void_p]),
    "glyd_salvage": (Status, [c_void_p, c_size_t, Salvaged, c_void_p, POINTER(SalvageReport)]),
}


def library_path():
    """GLYD_LIB if set, else the library that was installed into this package."""
    named = os.environ.get("GLYD_LIB")
    if named:
        return named
    here = Path(__file__).resolve().parent
    found = sorted(here.glob("libglyd.so*"))
    if not found:
        raise _errors.NotFoundError(
            f"libglyd.so is not in {here}. Install the package with `pip install .` from the source tree, "
            "or set GLYD_LIB to the path of a built libglyd.so (build/release/lib/libglyd.so)."
        )
    return str(found[0])


class Library:
    """Functions of a C library, bound at their first use. A non-zero status raises."""

    def __init__(self, path, signatures, prefix, abi_version):
        """`prefix`: of the functions that every library has, "glyd" or "glyd_cuda"."""
        try:
            self._cdll = ctypes.CDLL(path)
        except OSError as error:
            raise _errors.NotFoundError(
                f"{path}: {error}. {prefix.upper()}_LIB must name a lib{prefix}.so of this machine."
            ) from error
        self.path = path
        self._signatures = signatures
        self._last_error = self._function(f"{prefix}_last_error")
        self._status_text = self._function(f"{prefix}_status_text")
        found = self._function(f"{prefix}_abi_version")()
        if found != abi_version:
            raise _errors.UnsupportedError(
                f"{path} has ABI version {found}, this package needs {abi_version}: install both from one source tree."
            )

    def __getattr__(self, name):
        if name not in self._signatures:
            raise AttributeError(name)
        function = self._function(name)
        if self._signatures[name][0] is Status:
            function.errcheck = self._check
        setattr(self, name, function)
        return function

    def _function(self, name):
        result, arguments = self._signatures[name]
        try:
            function = getattr(self._cdll, name)
        except AttributeError:
            raise _errors.UnsupportedError(f"{self.path} has no {name}: it is older than this package.") from None
        function.restype, function.argtypes = result, arguments
        return function

    def _check(self, status, function, arguments):
        if status != 0:
            raise self.error_of(status)

    def error_of(self, status):
        """The exception for a status that the last call in this thread gave."""
        message = self._last_error().decode("utf-8", "replace") or self._status_text(status).decode()
        return _errors.BY_STATUS.get(status, _errors.Error)(message)


_library = None


def lib():
    """The loaded library."""
    global _library
    if _library is None:
        _library = Library(library_path(), SIGNATURES, "glyd", ABI_VERSION)
    return _library
