"""Packs as torch tensors: make, decode, look up, multiply, where the tensor lies. No policy here."""

import ctypes
from dataclasses import dataclass

import torch

from .. import _capi
from .._api import layout_number
from .._capi import lib
from .._errors import InvalidArgumentError, UnsupportedError
from ..gpu import packs
from ..gpu.runtime import on_gpu

SUFFIX = "_glyd"


@dataclass(frozen=True, slots=True)
class Info:
    """What a pack's header says. `shape` is the source tensor's."""

    stack: int
    rows: int
    cols: int
    transposed: bool
    layout: str
    pack_bytes: int
    bf16_bytes: int


def threads():
    return torch.get_num_threads()


def address(tensor):
    if tensor.device.type != "cpu":
        raise UnsupportedError(f"a packed tensor is on device {tensor.device}: glyd multiplies on CPUs and NVIDIA GPUs")
    return tensor.data_ptr()


def same_device(pack, tensor):
    if tensor.device != pack.device:
        raise RuntimeError(
            f"the packed weight is on {pack.device}, the input on {tensor.device}: inputs go to the GPU of the model's "
            "first layer, input_ids.to(model.device)"
        )


def pack_info(pack):
    """glyd_pack_info of a pack, wherever it lies."""
    if on_gpu(pack):
        return packs.read_info(pack)
    found = _capi.PackInfo()
    lib().glyd_pack_read_info(address(pack), pack.numel(), ctypes.byref(found))
    return found


def read_info(pack):
    """The header of a pack, checked (its CRC and sizes)."""
    found = pack_info(pack)
    shape = found.shape
    return Info(
        shape.stack,
        shape.rows,
        shape.cols,
        bool(shape.transposed),
        lib().glyd_layout_name(found.layout).decode(),
        found.pack_bytes,
        found.bf16_bytes,
    )


def info_of(pack):
    """read_info, remembered on the tensor."""
    info = getattr(pack, "_glyd_info", None)
    if info is None:
        info = read_info(pack)
        pack._glyd_info = info
    return info


def forget(pack):
    """The pack's bytes were overwritten: nothing read from its header holds any more."""
    if pack is not None:
        packs.forget(pack)


def shape_of(info, dimensions):
    """The source tensor's shape: packs do not say whether a stack of one was 2-D or 3-D."""
    matrix = (info.cols, info.rows) if info.transposed else (info.rows, info.cols)
    return matrix if dimensions == 2 else (info.stack, *matrix)


def pack_tensor(values, layout, transposed=False):
    """Packs a 2-D or 3-D bf16 tensor. `transposed`: its last two dimensions are [in, out]."""
    values = values.contiguous()
    outputs, inputs = values.shape[-2:]
    if transposed:
        outputs, inputs = inputs, outputs
    shape = _capi.Shape(values.shape[0] if values.dim() == 3 else 1, outputs, inputs, int(transposed), 0)
    if on_gpu(values):
        return packs.pack_tensor(values, shape, layout)
    size = ctypes.c_uint64()
    lib().glyd_pack_bound(ctypes.byref(shape), ctypes.byref(size))
    room = torch.empty(size.value, dtype=torch.uint8)
    lib().glyd_pack(
        address(values),
        ctypes.byref(shape),
        layout_number(layout),
        threads(),
        room.data_ptr(),
        room.numel(),
        ctypes.byref(size),
    )
    return room[: size.value].clone()


def decode(pack, out=None, dimensions=2):
    """The source tensor again, whole."""
    info = info_of(pack)
    values = info.stack * info.rows * info.cols
    if out is None:
        out = torch.empty(values, dtype=torch.bfloat16, device=pack.device)
    if on_gpu(pack):
        return packs.decode_into(pack, out).view(shape_of(info, dimensions))
    lib().glyd_decode(address(pack), pack.numel(), threads(), out.data_ptr(), values)
    return out.view(shape_of(info, dimensions))


def decode_matrix(pack, matrix, out=None):
    """One matrix of the stack as [rows, cols], which a transposed pack's source has the other way round."""
    info = info_of(pack)
    if out is None:
        out = torch.empty((info.rows, info.cols), dtype=torch.bfloat16, device=pack.device)
    if on_gpu(pack):
        return packs.matrix_into(pack, matrix, out)
    return decode_block(pack, matrix, 0, info.rows, out)


def decode_block(pack, matrix, row_begin, row_end, out):
    """Rows [row_begin, row_end) of one matrix into the contiguous tensor `out`, as [rows, cols]."""
    cols = info_of(pack).cols
    lib().glyd_decode_block(
        address(pack), pack.numel(), matrix, row_begin, row_end, 0, cols, threads(), out.data_ptr(), cols
    )
    return out


def decode_rows(pack, indices):
    """Row `i` of the matrix for every i in `indices`, as an embedding gives them.

    An index that is no row is an IndexError on the CPU, and a row of zeros on a GPU.
    """
    info = info_of(pack)
    same_device(pack, indices)
    flat = indices.reshape(-1).to(torch.int64).contiguous()
    out = torch.empty((flat.numel(), info.cols), dtype=torch.bfloat16, device=pack.device)
    if on_gpu(pack):
        return packs.rows_into(pack, flat, out).view(*indices.shape, info.cols)
    try:
        lib().glyd_decode_rows(address(pack), pack.numel(), flat.data_ptr(), flat.numel(), threads(), out.data_ptr())
    except InvalidArgumentError as error:
        raise IndexError(str(error)) from None  # what torch's embedding raises
    return out.view(*indices.shape, info.cols)


def linear_into(y, column, x, pack, matrix=0, bias=None):
    """y[:, column : column + rows] = x W^T (+ bias), from the packed bytes. x, y: bf16, 2-D, rows contiguous."""
    if on_gpu(pack):
        from ..gpu.products import linear_into as on_device

        return on_device(y, column, x, pack, matrix, bias)
    width = y.stride(0) if y.shape[0] > 1 else y.shape[1]
    stride = x.stride(0) if x.shape[0] > 1 else x.shape[1]
    lib().glyd_linear(
        address(pack),
        pack.numel(),
        matrix,
        address(x),
        x.shape[0],
        stride,
        None if bias is None else bias.data_ptr(),
        y.data_ptr() + 2 * column,
        width,
        threads(),
    )


def linear_experts(x, pack, ends):
    """Rows of x, sorted by expert, by the matrices of a stack on a GPU, in any order; None where that cannot be."""
    from ..gpu.products import linear_experts as on_device

    return on_device(x, pack, ends)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def bits(tensor):
    """The same bytes as integers, so that NaNs compare equal and -0 differs from 0."""
    return tensor.contiguous().view({2: torch.int16, 4: torch.int32}[tensor.element_size()])


def is_bf16_exactly(tensor):
    """Whether a float32 tensor holds bf16 values only (a bf16 checkpoint that was cast on its way in)."""
    return tensor.dtype == torch.float32 and not bool((bits(tensor) & 0xFFFF).any())
