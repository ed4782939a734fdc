"""Which products may run fused and still be exact: asked of the library, then seen with torch's own linear.

The library compares its fused kernel with cuBLAS as torch calls it (glyd_cuda_prepare). Here the same product is also
compared with torch.nn.functional.linear in this process, with its flags. Only what passes both runs fused.
"""

import ctypes
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from .. import _capi_cuda
from .._errors import OutOfMemoryError
from .library import lib
from .runtime import on_gpu, runtime

# exact="auto" is exact where every product is at these numbers of tokens.
TOKENS = (*range(1, 17), 24, 32, 48, 64)
# A number of tokens above this is checked when a product meets it for the second time: prompts come in many lengths,
# and a check takes longer than the one decoding that it would save.
AT_FIRST_SIGHT = 64
LEAST_OUTPUTS, MOST_INPUTS = 20000, 16  # that torch's linear and the fused kernel are compared on
SEED = 20261130


def route(product, tokens):
    info = _capi_cuda.RouteInfo()
    lib().glyd_cuda_route(product.handle, tokens, int(product.with_bias), product.free, ctypes.byref(info))
    return info


def may_fuse(product, tokens):
    """(whether these tokens may run fused, whether that will stay so). Checks an exact product if it must."""
    found = route(product, tokens)
    if not product.exact:
        return bool(found.kind), True
    if not could_fuse(product, tokens):
        return False, True
    key = (product.rows, product.cols, tokens, product.with_bias)
    verdict = product.device.verdicts.get(key)
    if verdict is None:
        if runtime.capturing() or (tokens > AT_FIRST_SIGHT and not product.seen_before(tokens)):
            return False, False
        verdict = check(product, [tokens])[tokens]
        found = route(product, tokens)
    return verdict and bool(found.kind and found.exact), True


def could_fuse(product, tokens):
    """Whether a check could find the product fused and exact: the free route has the kernel."""
    info = _capi_cuda.RouteInfo()
    lib().glyd_cuda_route(product.handle, tokens, int(product.with_bias), 1, ctypes.byref(info))
    return bool(info.kind)


def check(product, tokens):
    """Checks the product at these numbers of tokens, unless its shape was: {tokens: whether fused is exact}."""
    verdicts = product.device.verdicts
    keys = {count: (product.rows, product.cols, count, product.with_bias) for count in tokens}
    new = [count for count, key in keys.items() if key not in verdicts]
    if new:
        array = (ctypes.c_uint64 * len(new))(*new)
        with runtime.guard(product.index), torch.no_grad():
            runtime.synchronize(product.index)  # the library works on a stream of its own
            try:
                lib().glyd_cuda_prepare(product.handle, array, len(new), int(product.with_bias))
            except OutOfMemoryError:  # it allocates beside torch, which may hold all that is free
                runtime.release_cached()
                lib().glyd_cuda_prepare(product.handle, array, len(new), int(product.with_bias))
            for count, same in zip(new, _same_as_torch(product, new), strict=True):
                verdicts[keys[count]] = same
    return {count: verdicts[key] for count, key in keys.items()}


def _same_as_torch(product, tokens):
    """For each number of tokens, whether the fused product gives the bits of torch's linear."""
    device = product.torch_device
    generator = torch.Generator(device=device).manual_seed(SEED)

    def random(*shape):
        return torch.randn(shape, generator=generator, device=device).to(torch.bfloat16)

    weight = product.weight()
    bias = random(product.rows) if product.with_bias else None
    answers = []
    for count in tokens:
        found = route(product, count)
        if not (found.kind and found.exact):
            answers.append(False)
            continue
        same = True
        inputs = min(MOST_INPUTS, max(2, -(-LEAST_OUTPUTS // (count * product.rows))))
        for _ in range(inputs):
            x = random(1, count, product.cols)
            y = torch.empty((1, count, product.rows), dtype=torch.bfloat16, device=device)
            status = product.launch_into(y, x, bias, count, 0)
            expected = F.linear(x, weight, bias)
            same = same and status == 0 and torch.equal(y.view(torch.int16), expected.view(torch.int16))
        answers.append(same)
    return answers


@dataclass
class Summary:
    """What is known of the products of a model: for each shape, where fused is exact, and why not where it is not."""

    shapes: dict = field(default_factory=dict)  # (rows, cols, layout, bias) -> {tokens: "fused" or the reason}
    others: dict = field(default_factory=dict)  # module -> why its products do not run fused

    def first_other(self):
        """What keeps the model from being fused and exact throughout, or None."""
        for name, why in self.others.items():
            return f"{name}: {why}"
        for (rows, cols, layout, bias), found in self.shapes.items():
            for tokens, value in found.items():
                if value != "fused":
                    with_bias = " with bias" if bias else ""
                    return f"{rows}x{cols}{with_bias} ({layout}) at {tokens} tokens: {value}"
        return None


def describe(product, tokens):
    """"fused", or why the exact product of these tokens decodes."""
    found = route(product, tokens)
    verdict = product.device.verdicts.get((product.rows, product.cols, tokens, product.with_bias))
    if product.exact and found.kind and found.exact and verdict is False:
        return "decode: the fused sums differ from torch's"
    return "fused" if found.kind and (verdict or not product.exact) else found.reason.decode()


def prepare(products, tokens=TOKENS):
    """Checks exact products before they are needed (and before a CUDA graph is captured). Gives a Summary."""
    summary = Summary()
    for product, layout in products:
        check(product, [count for count in tokens if could_fuse(product, count)])
        key = (product.rows, product.cols, layout, product.with_bias)
        summary.shapes.setdefault(key, {}).update({count: describe(product, count) for count in tokens})
        for count in tokens:
            product._decide(count)
    return summary


def products_of(model):
    """(Product, layout) of every packed matrix on a GPU that multiplies; and what cannot run fused, with why."""
    from ..hf.experts import GlydExperts
    from ..hf.modules import BUFFER, PackedMatrix, packed_modules
    from ..hf.tensors import info_of

    products, others = [], {}
    for name, module in packed_modules(model):
        if isinstance(module, GlydExperts):
            others[name] = "experts are decoded and multiplied by the model's own code"
        if not isinstance(module, PackedMatrix):
            continue
        pack = module._buffers[BUFFER]
        if not on_gpu(pack):
            continue
        product = module.glyd_bind(pack)
        if product is None:
            others[name] = "a weight stored [in, out] is decoded and multiplied by torch.addmm"
        else:
            products.append((product, info_of(pack).layout))
    return products, others


def prepare_model(model, tokens=TOKENS):
    """prepare() of every product of a model that is exact."""
    products, others = products_of(model)
    summary = prepare([(product, layout) for product, layout in products if product.exact], tokens)
    summary.others = others
    return summary
