"""Products with a pack on a GPU, y = x W^T (+ bias), with as little host time a call as Python allows.

Exact: the fused kernel, where this process has seen it give the bits of torch.nn.functional.linear for the decoded
weights at this number of tokens; else the matrix is decoded to temporary memory and torch's own linear runs on it.
Free: the fused kernel wherever it can run. Matrices of long prompts that are decoded are decoded ahead (ahead.py).
"""

import ctypes
import struct

import torch
import torch.nn.functional as F

from .. import _capi_cuda
from .._errors import OutOfMemoryError, UnsupportedError
from ..hf.tensors import info_of
from . import ahead, exactness
from .library import lib
from .packs import open_pack
from .runtime import runtime

BUFFER_TOO_SMALL = 11  # GLYD_ERROR_BUFFER_TOO_SMALL: the call would have to decode
NO_SCRATCH = 256  # up to so many tokens no fused product needs room for the decoded matrix
MOST_REMEMBERED = 4096  # numbers of tokens whose route a product remembers

# glyd_cuda_linear_call as bytes: a call's own copy, so that threads may share a product.
CALL = struct.Struct("=8Q2I3QI4x2Q")
CALL_BYTES = ctypes.sizeof(_capi_cuda.LinearCall)
assert CALL.size == CALL_BYTES


def raw(name, *arguments):
    """A function of the library without checks or conversions; it gives its status."""
    return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)((name, lib()._cdll))


class Product:
    """One pack, exact or free, with a bias or without. It holds only numbers: who holds it holds its pack too."""

    def __init__(self, opened, info, exact, with_bias):
        self.device = opened.device
        self.torch_device = opened.device.torch_device
        self.index = self.device.index
        self.rows, self.cols = info.rows, info.cols
        self.stored_by_inputs = info.transposed
        self.exact, self.with_bias = exact, with_bias
        self.fused = {}  # tokens -> whether the fused kernel may run
        self.scratch = {}  # (tokens, whether the order is free) -> bytes
        self.seen = set()  # numbers of tokens that decoded once and were not checked
        self.calls = 0
        self.free = 0 if exact else 1
        self.place, self.following = 0, None  # among the model's products; the one after it, for ahead.py
        self.handle = opened.handle
        self.linear = raw("glyd_cuda_linear", ctypes.c_void_p, ctypes.c_char_p)
        self.unpack = raw("glyd_cuda_unpack", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self.device_number = self.device.number
        self.stream_of = runtime.stream_of
        self.workspaces = self.device._workspaces
        self.autocast = runtime.type

    def __call__(self, x, bias):
        """The product of a tensor whose last dimension is `cols`. No gradients."""
        if (
            type(x) is not torch.Tensor
            or x.dtype is not torch.bfloat16
            or not x.is_contiguous()
            or x.get_device() != self.device_number
            or (self.takes_no(bias) if bias is not None else self.with_bias)
            or torch.is_autocast_enabled(self.autocast)
        ):
            return self.general(x, bias)
        shape = x.shape
        tokens = x.numel() // self.cols
        if shape[-1] != self.cols or tokens > NO_SCRATCH or not self.fused.get(tokens):
            return self.general(x, bias)
        y = x.new_empty((*shape[:-1], self.rows))
        stream = self.stream_of(self.index)
        workspace = self.workspaces.get(stream)
        call = CALL.pack(
            CALL_BYTES,
            0,
            x.data_ptr(),
            tokens,
            self.cols,
            0 if bias is None else bias.data_ptr(),
            y.data_ptr(),
            self.rows,
            self.free,
            1,
            self.device.workspace(stream) if workspace is None else workspace.data_ptr(),
            self.device.workspace_bytes,
            stream,
            0,
            0,
            0,
        )
        status = self.linear(self.handle, call)
        if status:
            return self._after(status, x, bias)
        self.calls += 1
        return y

    def takes_no(self, bias):
        """Whether the fused kernel cannot take this bias."""
        return not (
            self.with_bias
            and bias.dtype is torch.bfloat16
            and bias.get_device() == self.device_number
            and bias.dim() == 1
            and bias.shape[0] == self.rows
            and bias.is_contiguous()
        )

    def take_calls(self):
        calls, self.calls = self.calls, 0
        return calls

    def _after(self, status, x, bias, may_keep=True):
        if status != BUFFER_TOO_SMALL:
            self.check(status)
        return self.decoded(x, bias, may_keep)

    def check(self, status):
        if status:
            raise lib().error_of(status)

    def general(self, x, bias, may_keep=True):
        """As __call__, for every input that torch.nn.functional.linear takes.

        may_keep: whether a matrix decoded ahead may outlive the call. In a graph of torch.compile nothing may.
        """
        if x.device != self.torch_device:
            raise RuntimeError(f"the input is on {x.device}, the packed weight on {self.torch_device}")
        if self.cols == 0 or self.rows == 0 or x.numel() == 0 or not self._may_fuse(x, bias):
            return self.decoded(x, bias, may_keep)
        tokens = x.numel() // self.cols
        if not self._decide(tokens):
            return self.decoded(x, bias, may_keep)
        if not x.is_contiguous():
            if self.exact and not (bias is None and exactness.may_copy(self, x, tokens)):
                return self.decoded(x, bias, may_keep)
            x = x.contiguous()
        return self._launch(x, bias, tokens, may_keep)

    def _may_fuse(self, x, bias):
        return (
            x.dtype is torch.bfloat16
            and x.dim() > 0
            and x.shape[-1] == self.cols
            and not torch.is_autocast_enabled(self.autocast)
            and (self.with_bias is False if bias is None else not self.takes_no(bias))
        )

    def _decide(self, tokens):
        """Whether `tokens` run fused."""
        known = self.fused.get(tokens)
        if known is None:
            try:
                known, final = exactness.may_fuse(self, tokens)
            except (OutOfMemoryError, torch.OutOfMemoryError):  # of the check; the product itself needs less
                return False
            if final:
                if len(self.fused) >= MOST_REMEMBERED:
                    self.fused.clear()
                self.fused[tokens] = known
        return known

    def seen_before(self, tokens):
        if tokens in self.seen:
            return True
        if len(self.seen) < MOST_REMEMBERED:
            self.seen.add(tokens)
        return False

    def _launch(self, x, bias, tokens, may_keep):
        y = torch.empty((*x.shape[:-1], self.rows), dtype=torch.bfloat16, device=self.torch_device)
        status = self.launch_into(y, x, bias, tokens, self.free)
        if status:
            return self._after(status, x, bias, may_keep)
        self.calls += 1
        return y

    def launch_into(self, y, x, bias, tokens, free, matrix=0, stream=None, early=True, multiprocessors=0):
        """Runs the library's product, on the current stream and all multiprocessors unless other is given; gives its
        status."""
        scratch = None
        if tokens > NO_SCRATCH and stream is None:  # torch gives its memory to work behind this on the current stream
            room = self.scratch_bytes(tokens, free)
            if room:
                scratch = torch.empty(room, dtype=torch.uint8, device=self.torch_device)
        stream = self.stream_of(self.index) if stream is None else stream
        return self.linear(
            self.handle,
            CALL.pack(
                CALL_BYTES,
                matrix,
                x.data_ptr(),
                tokens,
                x.stride(-2) if x.dim() > 1 and tokens > 1 else self.cols,
                0 if bias is None else bias.data_ptr(),
                y.data_ptr(),
                y.stride(-2) if y.dim() > 1 and tokens > 1 else self.rows,
                free,
                early,
                self.device.workspace(stream),
                self.device.workspace_bytes,
                stream,
                multiprocessors,
                0 if scratch is None else scratch.data_ptr(),
                0 if scratch is None else scratch.numel(),
            ),
        )

    def scratch_bytes(self, tokens, free):
        """Of the decoded matrix, where the product is fused and wants it."""
        known = self.scratch.get((tokens, free))
        if known is None:
            found = exactness.route(self, tokens, free)
            known = found.scratch_bytes
            if found.kind:  # else a check may change it
                if len(self.scratch) >= MOST_REMEMBERED:
                    self.scratch.clear()
                self.scratch[tokens, free] = known
        return known

    def unpack_to(self, values, stream):
        """Decodes into `values`, in the order of the source, on a stream."""
        self.check(self.unpack(self.handle, values.data_ptr(), stream))

    def weight(self, dtype=torch.bfloat16):
        """[rows, cols], decoded to temporary memory."""
        shape = (self.cols, self.rows) if self.stored_by_inputs else (self.rows, self.cols)
        values = torch.empty(shape, dtype=torch.bfloat16, device=self.torch_device)
        self.unpack_to(values, self.stream_of(self.index))
        return (values.t() if self.stored_by_inputs else values).to(dtype)

    def decoded(self, x, bias, may_keep=True):
        self.calls += 1
        dtype = torch.bfloat16 if torch.is_autocast_enabled(self.autocast) else x.dtype
        long = may_keep and x.numel() >= ahead.LEAST_TOKENS * self.cols and dtype is torch.bfloat16
        if long and ahead.may_decode(self) and not runtime.capturing(self.index):
            return self.device.ahead.multiply(self, x, bias)
        return F.linear(x, self.weight(dtype), bias)


def product_of(pack, exact, with_bias):
    """The Product of a pack: one for each kind, shared by all modules that hold the pack."""
    opened = open_pack(pack)
    key = (bool(exact), bool(with_bias))
    found = opened.products.get(key)
    if found is None:
        found = opened.products[key] = Product(opened, info_of(pack), *key)
    return found


def linear_into(y, column, x, pack, matrix, bias):
    """y[:, column : column + rows] = x W^T (+ bias), sums in any order. x, y: bf16, 2-D, rows contiguous."""
    product = product_of(pack, False, bias is not None)
    part = y[:, column : column + product.rows]
    status = product.launch_into(part, x, bias, x.shape[0], 1, matrix)
    if status == BUFFER_TOO_SMALL:
        from ..hf import tensors

        weight = tensors.decode(pack, dimensions=3)[matrix]
        part.copy_(F.linear(x, weight.t() if product.stored_by_inputs else weight, bias))
    elif status:
        raise lib().error_of(status)


def linear_experts(x, pack, ends):
    """y[i] = W_e x[i] for rows of x that are sorted by expert: e's end at ends[e]. Sums in any order, one launch.

    Rows of no expert give zeros. None where the library has no kernel for the pack.
    """
    opened, info = open_pack(pack), info_of(pack)
    y = torch.zeros((x.shape[0], info.rows), dtype=torch.bfloat16, device=x.device)
    call = _capi_cuda.ExpertsCall(
        x=x.data_ptr(),
        tokens=x.shape[0],
        x_stride=info.cols,
        ends=ends.data_ptr(),
        y=y.data_ptr(),
        y_stride=info.rows,
        any_order=1,
        stream=opened.device.stream(),
    )
    try:
        lib().glyd_cuda_linear_experts(opened.handle, ctypes.byref(call))
    except UnsupportedError:
        return None
    return y
