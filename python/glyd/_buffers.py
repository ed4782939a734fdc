"""Memory that Python objects own, by address: what the C functions read and write without a copy."""

import ctypes
from ctypes import c_int, c_ssize_t, c_void_p, py_object

from ._errors import InvalidArgumentError

_SIMPLE, _WRITABLE = 0, 1
TENSOR_HINT = (
    ". Of a tensor, give its bytes: tensor.cpu().contiguous().view(torch.uint8).numpy(). Weights to multiply by are "
    "packed instead: glyd.pack(directory, target) takes a checkpoint, glyd.gpu.compress(model) a model in memory, "
    "glyd_pack in C (glyd/weights.h) one matrix"
)


class _PyBuffer(ctypes.Structure):  # Py_buffer of the stable ABI
    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_void_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = [py_object, ctypes.POINTER(_PyBuffer), c_int], c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = [ctypes.POINTER(_PyBuffer)], None
_new_bytes = ctypes.pythonapi.PyBytes_FromStringAndSize
_new_bytes.argtypes, _new_bytes.restype = [c_void_p, c_ssize_t], py_object
_bytes_address = ctypes.pythonapi.PyBytes_AsString
_bytes_address.argtypes, _bytes_address.restype = [py_object], c_void_p


class Buffer:
    """The bytes of any object with the buffer protocol, held in place for a `with` block: `.address`, `.size`."""

    def __init__(self, data, writable=False):
        self._view = _PyBuffer()
        try:
            _get_buffer(data, self._view, _WRITABLE if writable else _SIMPLE)
        except (TypeError, BufferError, ValueError) as error:
            what = f"a {type(data).__name__}"
            if isinstance(data, str):
                problem = f"{what} is not bytes: encode it first, as text.encode()"
            elif writable:
                problem = f"{what} cannot be written to as one block of bytes ({error})"
            else:
                problem = f"{what} has no bytes in one block ({error})"
                if type(data).__module__.split(".")[0] == "torch" or hasattr(data, "named_parameters"):
                    problem += TENSOR_HINT
            raise InvalidArgumentError(problem) from None
        self.address, self.size = self._view.buf, self._view.len

    def release(self):
        _release_buffer(self._view)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


def new_bytes(size):
    """A bytes object of `size` bytes to be filled by C before anybody else sees it, and their address."""
    result = _new_bytes(None, size)
    return result, _bytes_address(result)


def window(address, size):
    """`size` writable bytes at `address`, which must outlive it."""
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")
