"""The C ABI of libglyd_cuda, declared once as _capi.py declares libglyd's: include/glyd/cuda.h. No logic."""

from ctypes import POINTER, c_char_p, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from ._capi import Layout, Out64, OutHandle, Shape, Sized, Status

ABI_VERSION = 1
HEADERS = ("cuda.h",)

RouteKind = c_int  # enum glyd_cuda_route_kind


class CudaOptions(Sized):  # glyd_cuda_options
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("full_precision_reduction", c_uint32),
        ("cublas_workspace_bytes", c_uint64),
        ("verdict_file", c_char_p),
    ]


class PackCall(Sized):  # glyd_cuda_pack_call
    _fields_ = [
        ("struct_size", c_size_t),
        ("bf16", c_void_p),
        ("shape", Shape),
        ("layout", Layout),
        ("pack", c_void_p),
        ("pack_capacity", c_uint64),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
        ("stream", c_void_p),
    ]


class LinearCall(Sized):  # glyd_cuda_linear_call
    _fields_ = [
        ("struct_size", c_size_t),
        ("matrix", c_uint64),
        ("x", c_void_p),
        ("tokens", c_uint64),
        ("x_stride", c_uint64),
        ("bias", c_void_p),
        ("y", c_void_p),
        ("y_stride", c_uint64),
        ("any_order", c_uint32),
        ("early_launch", c_uint32),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
        ("stream", c_void_p),
        ("multiprocessors", c_uint32),
        ("scratch", c_void_p),
        ("scratch_bytes", c_uint64),
    ]


class ExpertsCall(Sized):  # glyd_cuda_experts_call
    _fields_ = [
        ("struct_size", c_size_t),
        ("x", c_void_p),
        ("tokens", c_uint64),
        ("x_stride", c_uint64),
        ("ends", c_void_p),
        ("most_tokens", c_uint64),
        ("bias", c_void_p),
        ("y", c_void_p),
        ("y_stride", c_uint64),
        ("any_order", c_uint32),
        ("stream", c_void_p),
    ]


class RouteInfo(Sized):  # glyd_cuda_route_info
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", RouteKind),
        ("exact", c_uint32),
        ("splits", c_uint32),
        ("reason", c_char_p),
        ("scratch_bytes", c_uint64),
    ]


STRUCTS = {
    "glyd_cuda_options": CudaOptions,
    "glyd_cuda_pack_call": PackCall,
    "glyd_cuda_linear_call": LinearCall,
    "glyd_cuda_experts_call": ExpertsCall,
    "glyd_cuda_route_info": RouteInfo,
}

# name: (result, arguments). Contexts and packs are handles (c_void_p), and so are streams and device memory.
SIGNATURES = {
    "glyd_cuda_abi_version": (c_uint32, []),
    "glyd_cuda_status_text": (c_char_p, [Status]),
    "glyd_cuda_last_error": (c_char_p, []),
    "glyd_cuda_create": (Status, [POINTER(CudaOptions), OutHandle]),
    "glyd_cuda_verdict_file_text": (c_char_p, [c_void_p]),
    "glyd_cuda_destroy": (None, [c_void_p]),
    "glyd_cuda_open": (Status, [c_void_p, c_void_p, c_uint64, c_void_p, OutHandle]),
    "glyd_cuda_close": (None, [c_void_p]),
    "glyd_cuda_pack_bound": (Status, [POINTER(Shape), Out64, Out64]),
    "glyd_cuda_pack_tensor": (Status, [c_void_p, POINTER(PackCall), c_void_p, Out64]),
    "glyd_cuda_unpack": (Status, [c_void_p, c_void_p, c_void_p]),
    "glyd_cuda_unpack_matrix": (Status, [c_void_p, c_uint64, c_void_p, c_void_p]),
    "glyd_cuda_rows": (Status, [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p]),
    "glyd_cuda_linear_workspace": (Status, [c_void_p, Out64, Out64]),
    "glyd_cuda_init_workspace": (Status, [c_void_p, c_void_p, c_uint64, c_void_p]),
    "glyd_cuda_linear": (Status, [c_void_p, POINTER(LinearCall)]),
    "glyd_cuda_linear_group": (Status, [POINTER(c_void_p), POINTER(LinearCall), c_uint64]),
    "glyd_cuda_linear_experts": (Status, [c_void_p, POINTER(ExpertsCall)]),
    "glyd_cuda_prepare": (Status, [c_void_p, Out64, c_uint64, c_uint32]),
    "glyd_cuda_route": (Status, [c_void_p, c_uint64, c_uint32, c_uint32, POINTER(RouteInfo)]),
    "glyd_cuda_self_check": (Status, [c_void_p, c_uint64, c_uint32, Out64]),
}
