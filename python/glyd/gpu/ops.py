"""glyd's products as torch ops, for torch.compile and torch.export: glyd::linear, glyd::rows, glyd::unpack.

Eager modules go past them: the dispatcher costs more host time than the call. The ops run wherever the pack lies.
"""

import torch

from ..hf import tensors
from .runtime import on_gpu

_library = torch.library.Library("glyd", "DEF")
_library.define("linear(Tensor x, Tensor pack, Tensor? bias, int rows, bool exact) -> Tensor")
_library.define("rows(Tensor pack, Tensor indices, int cols) -> Tensor")
_library.define("unpack(Tensor pack, int[] shape) -> Tensor")


def _linear(x, pack, bias, rows, exact):
    if on_gpu(pack):
        from .products import product_of

        return product_of(pack, exact, bias is not None).general(x, bias, may_keep=False)
    from ..hf import products

    return products.exact(x, pack, bias, dtype=x.dtype) if exact else products.free(x, pack, bias)


def _rows(pack, indices, cols):
    return tensors.decode_rows(pack, indices)


def _unpack(pack, shape):
    return tensors.decode(pack, dimensions=len(shape))


for _name, _function in (("linear", _linear), ("rows", _rows), ("unpack", _unpack)):
    for _key in ("CPU", "CUDA"):
        _library.impl(_name, _function, _key)


@torch.library.register_fake("glyd::linear", lib=_library)
def _fake_linear(x, pack, bias, rows, exact):
    return x.new_empty((*x.shape[:-1], rows))


@torch.library.register_fake("glyd::rows", lib=_library)
def _fake_rows(pack, indices, cols):
    return pack.new_empty((*indices.shape, cols), dtype=torch.bfloat16)


@torch.library.register_fake("glyd::unpack", lib=_library)
def _fake_unpack(pack, shape):
    return pack.new_empty(shape, dtype=torch.bfloat16)


def _remember(ctx, inputs, output):
    x, pack, bias, rows, exact = inputs
    ctx.save_for_backward(pack)
    ctx.shape, ctx.has_bias = [rows, x.shape[-1]], bias is not None


def _gradients(ctx, gradient):
    """The weight is decoded and multiplied by; packed weights have no gradient."""
    (pack,) = ctx.saved_tensors
    to_x = to_bias = None
    if ctx.needs_input_grad[0]:
        to_x = gradient @ torch.ops.glyd.unpack(pack, ctx.shape).to(gradient.dtype)
    if ctx.has_bias and ctx.needs_input_grad[2]:
        to_bias = gradient.reshape(-1, gradient.shape[-1]).sum(0)
    return to_x, None, to_bias, None, None


torch.library.register_autograd("glyd::linear", _gradients, setup_context=_remember, lib=_library)
