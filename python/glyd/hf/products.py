"""Products with a packed matrix on the CPU: free (from the packed bytes) and exact (torch's own sums).

Exact: blocks of rows are decoded into a small buffer and torch's own linear is called on each, with the same tokens as
the whole product has. That gives the whole product's bits as long as torch's kernel sums a row alike in both. It did
for every shape tried (docs/exactness.md), but it is checked, not assumed: the first product of a kind is computed both
ways and compared, and where they differ the whole matrix is decoded for each product.
"""

import threading

import torch
import torch.nn.functional as F

from . import tensors
from .tensors import info_of

BLOCK_BYTES = 2 << 20  # of decoded rows: within a core's L2 or L3 share, and few calls a matrix
CHECK_BYTES = 16 << 20  # decoded at once to check a kind of product; a larger matrix is checked on its first rows

_scratch = threading.local()
_blocks_agree = {}  # kind of product -> whether blocks give the whole product's bits


def scratch(values):
    """A bf16 buffer of this thread, kept between calls: at most a block or a small matrix."""
    buffer = getattr(_scratch, "buffer", None)
    if buffer is None or buffer.numel() < values:
        buffer = torch.empty(values, dtype=torch.bfloat16)
        if 2 * values <= 2 * BLOCK_BYTES:
            _scratch.buffer = buffer
    return buffer[:values]


def block_rows(info):
    return max(16, BLOCK_BYTES // (2 * max(info.cols, 1)) // 16 * 16)


def free(x, pack, bias=None, matrix=0):
    """x W^T (+ bias) from the packed bytes; bf16 in and out."""
    rows = info_of(pack).rows
    x2 = x.reshape(-1, x.shape[-1])
    if x2.stride(-1) != 1:
        x2 = x2.contiguous()
    y = torch.empty((x2.shape[0], rows), dtype=torch.bfloat16)
    fused = bias if bias is not None and bias.dtype == torch.bfloat16 and bias.is_contiguous() else None
    tensors.linear_into(y, 0, x2, pack, matrix, fused)
    if bias is not None and fused is None:
        y += bias
    return y.view(*x.shape[:-1], rows)


def _rows_of(pack, matrix, begin, end, dtype):
    cols = info_of(pack).cols
    block = tensors.decode_block(pack, matrix, begin, end, scratch((end - begin) * cols))
    return block.view(end - begin, cols).to(dtype)


def _by_blocks(x, weight_of, rows, step, bias):
    y = None
    for begin in range(0, rows, step):
        end = min(begin + step, rows)
        part = F.linear(x, weight_of(begin, end), None if bias is None else bias[begin:end])
        if y is None:
            y = part.new_empty((*part.shape[:-1], rows))
        y[..., begin:end] = part
    return y


def _check(x, pack, matrix, bias, step, dtype):
    """Whether blocks of `step` rows give the bits of one product over many more rows."""
    info = info_of(pack)
    rows = min(info.rows, max(2 * step, CHECK_BYTES // (2 * info.cols)))
    weight = torch.empty((rows, info.cols), dtype=torch.bfloat16)
    weight = tensors.decode_block(pack, matrix, 0, rows, weight).to(dtype)
    part = None if bias is None else bias[:rows]
    whole = F.linear(x, weight, part)
    return tensors.same_bits(whole, _by_blocks(x, lambda a, b: weight[a:b], rows, step, part))


def exact(x, pack, bias=None, matrix=0, dtype=torch.bfloat16):
    """The bits of torch.nn.functional.linear on the decoded matrix, cast to `dtype` (the parameter's own)."""
    info = info_of(pack)
    step = block_rows(info)
    if info.rows <= step:
        return F.linear(x, _rows_of(pack, matrix, 0, info.rows, dtype), bias)
    tokens = x.numel() // max(info.cols, 1)
    kind = (info.rows, info.cols, tokens, x.dim(), bias is None, x.dtype, dtype, tensors.threads())
    agree = _blocks_agree.get(kind)
    if agree is None:
        agree = _blocks_agree[kind] = _check(x, pack, matrix, bias, step, dtype)
    if agree:
        return _by_blocks(x, lambda a, b: _rows_of(pack, matrix, a, b, dtype), info.rows, step, bias)
    weight = torch.empty((info.rows, info.cols), dtype=torch.bfloat16)
    return F.linear(x, tensors.decode_block(pack, matrix, 0, info.rows, weight).to(dtype), bias)


def kinds_that_differ():
    """Kinds of product for which blocks did not give the whole product's bits on this machine."""
    return [kind for kind, agree in _blocks_agree.items() if not agree]
