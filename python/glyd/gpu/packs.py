"""Packs in device memory: made, opened, decoded, looked up.

The library makes a pack's GPU current for the length of each call, so callers need not: streams are the pack's GPU's.
"""

import ctypes
import weakref

import torch

from .. import _capi, _capi_cuda
from .._api import layout_number
from .._errors import BufferTooSmallError
from .library import lib
from .runtime import device_of, finalize, runtime

HEADER_BYTES = 128
_SLACK_BYTES = 1 << 20

_open = weakref.WeakValueDictionary()  # address of a pack -> DevicePack


class DevicePack:
    """A pack's handle in libglyd_cuda. It lives as long as the tensor that holds the pack (or any other holder)."""

    def __init__(self, pack, header):
        self.device = device_of(pack)
        self.address = pack.data_ptr()
        self.bytes = pack.numel()
        handle = ctypes.c_void_p()
        lib().glyd_cuda_open(self.device.context, header, self.bytes, self.address, ctypes.byref(handle))
        self.handle = handle.value
        finalize(self, lib().glyd_cuda_close, self.handle)
        self.device.need_workspace(self.handle)
        self.products = {}  # (exact, with bias) -> Product

    def __reduce__(self):  # a copy of the tensor lies elsewhere and opens its pack itself
        return type(None), ()


def header_of(pack):
    """A pack's first 128 bytes, in host memory."""
    known = getattr(pack, "_glyd_header", None)
    if known is not None:
        return known
    return pack[:HEADER_BYTES].cpu().numpy().tobytes()


def open_pack(pack, header=None):
    """The DevicePack of a uint8 tensor on a GPU; remembered on the tensor, and found again from its views."""
    found = getattr(pack, "_glyd_device_pack", None)
    if found is not None and found.address == pack.data_ptr():
        return found
    found = _open.get(pack.data_ptr())
    if found is None or found.bytes != pack.numel():
        found = DevicePack(pack, header or header_of(pack))
        _open[found.address] = found
    pack._glyd_device_pack = found
    return found


def forget(pack):
    """The tensor's bytes have changed: what was read from its header is void."""
    found = pack.__dict__.pop("_glyd_device_pack", None)
    pack.__dict__.pop("_glyd_info", None)
    pack.__dict__.pop("_glyd_header", None)
    if found is not None and _open.get(found.address) is found:
        del _open[found.address]


def pack_tensor(values, shape, layout):
    """Packs a contiguous bf16 tensor on a GPU, where it is: the CPU packer's bytes."""
    device = device_of(values)
    bound, work = ctypes.c_uint64(), ctypes.c_uint64()
    lib().glyd_cuda_pack_bound(ctypes.byref(shape), ctypes.byref(bound), ctypes.byref(work))
    # Real weights pack to 0.7; the bound is for those that do not.
    likely = min(bound.value, values.numel() * 2 * 3 // 4 + _SLACK_BYTES)
    for room_bytes in (likely, bound.value):
        try:
            return _pack_into(device, values, shape, layout, room_bytes, work.value)
        except BufferTooSmallError:
            if room_bytes == bound.value:
                raise
    raise AssertionError("the bound is enough")


def _pack_into(device, values, shape, layout, room_bytes, work_bytes):
    with runtime.guard(device.index):
        room = torch.empty(room_bytes, dtype=torch.uint8, device=values.device)
        work = torch.empty(max(work_bytes, 16), dtype=torch.uint8, device=values.device)
        call = _capi_cuda.PackCall(
            bf16=values.data_ptr(),
            shape=shape,
            layout=layout_number(layout),
            pack=room.data_ptr(),
            pack_capacity=room_bytes,
            workspace=work.data_ptr(),
            workspace_bytes=work.numel(),
            stream=device.stream(),
        )
        header = ctypes.create_string_buffer(HEADER_BYTES)
        size = ctypes.c_uint64()
        lib().glyd_cuda_pack_tensor(device.context, ctypes.byref(call), header, ctypes.byref(size))
        pack = room[: size.value].clone()
        pack._glyd_header = header.raw
        return pack


def read_info(pack):
    """glyd_pack_info of a pack on a GPU."""
    found = _capi.PackInfo()
    header = header_of(pack)
    _capi.lib().glyd_pack_read_info(header, pack.numel(), ctypes.byref(found))
    open_pack(pack, header)
    return found


def decode_into(pack, out):
    """The whole tensor, in the source's order, into the contiguous bf16 tensor `out`."""
    opened = open_pack(pack)
    lib().glyd_cuda_unpack(opened.handle, out.data_ptr(), opened.device.stream())
    return out


def matrix_into(pack, matrix, out):
    """One matrix of the stack, [rows, cols], into the contiguous bf16 tensor `out`."""
    opened = open_pack(pack)
    lib().glyd_cuda_unpack_matrix(opened.handle, matrix, out.data_ptr(), opened.device.stream())
    return out


def rows_into(pack, indices, out):
    """Rows `indices` (int64, contiguous, on the same GPU) of the matrix, one after another, into `out`."""
    opened = open_pack(pack)
    lib().glyd_cuda_rows(opened.handle, indices.data_ptr(), indices.numel(), out.data_ptr(), opened.device.stream())
    return out
