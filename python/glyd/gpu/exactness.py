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
from . import ahead, experts_check
from .library import lib
from .runtime import on_gpu, runtime

# Checked as a model is loaded.
TOKENS = (*range(1, 17), 24, 32, 48, 64)
# What exact="auto" weighs: at these numbers of tokens, those of decode steps of small batches, exact products may
# decode at most this share of the weights that free ones would read packed. A product that decodes is exact too, but
# reads and writes about four times the bytes.
WEIGHED = range(1, 17)
MOST_DECODED = 0.03
# A number of tokens above this is checked when a product meets it for the second time: prompts come in many lengths,
# and a check takes longer than the one decoding that it would save.
AT_FIRST_SIGHT = 64
LEAST_OUTPUTS, MOST_INPUTS = 20000, 16  # that torch's linear and the fused kernel are compared on
# Rows of x apart, in rows: the last token of each of several prompts. Checked where one input gives enough outputs, as
# a head does; other strides are then taken to be alike.
APART = (3, 17)
ROWS_APART = "rows apart"
SEED = 20261130


def route(product, tokens, free=None):
    """What the library would run; `free` if it is not the product's own."""
    info = _capi_cuda.RouteInfo()
    free = product.free if free is None else free
    lib().glyd_cuda_route(product.handle, tokens, int(product.with_bias), free, ctypes.byref(info))
    return info


def may_fuse(product, tokens):
    """(whether these tokens may run fused, whether that will stay so). Checks an exact product if it must."""
    found = route(product, tokens)
    if not product.exact:
        return bool(found.kind), True
    if not could_fuse(product, tokens):
        return False, True
    verdict = product.device.verdicts.get(_key(product, tokens))
    if verdict is None:
        if runtime.capturing(product.index) or (tokens > AT_FIRST_SIGHT and not product.seen_before(tokens)):
            return False, False
        verdict = check(product, [tokens])[tokens]
        found = route(product, tokens)
    return verdict and bool(found.kind and found.exact), True


def could_fuse(product, tokens):
    """Whether a check could find the product fused and exact: the free route has the kernel."""
    return bool(route(product, tokens, 1).kind)


def check(product, tokens):
    """Checks the product at these numbers of tokens, unless its shape was: {tokens: whether fused is exact}."""
    verdicts = product.device.verdicts
    keys = {count: _key(product, count) for count in tokens}
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
            _compare_with_torch(product, new)
    return {count: verdicts[key] for count, key in keys.items()}


def may_copy(product, x, tokens):
    """Whether the fused product of a contiguous copy of x gives the bits of torch's linear on x itself."""
    if not product.device.verdicts.get(_key(product, tokens, ROWS_APART)):
        return False
    one_a_prompt = x.dim() == 2 or (x.dim() == 3 and x.shape[1] == 1)
    return one_a_prompt and x.stride(-1) == 1 and x.stride(0) > product.cols and x.stride(0) % 8 == 0


def _key(product, tokens, *more):
    return (product.rows, product.cols, tokens, product.with_bias, *more)


class TorchCheck:
    """Compares fused products of one shape with torch's linear on the decoded weights."""

    def __init__(self, product):
        self.product, self.device = product, product.torch_device
        self.generator = torch.Generator(device=self.device).manual_seed(SEED)
        self.weight = product.weight()
        self.bias = self.random(product.rows) if product.with_bias else None

    def random(self, *shape):
        return torch.randn(shape, generator=self.generator, device=self.device).to(torch.bfloat16)

    def same(self, x, copy, tokens):
        """Whether the fused product of `copy`, which is contiguous, is torch's of x."""
        y = torch.empty((*x.shape[:-1], self.product.rows), dtype=torch.bfloat16, device=self.device)
        status = self.product.launch_into(y, copy, self.bias, tokens, 0)
        return status == 0 and torch.equal(y.view(torch.int16), F.linear(x, self.weight, self.bias).view(torch.int16))

    def same_at(self, tokens):
        inputs = min(MOST_INPUTS, max(2, -(-LEAST_OUTPUTS // (tokens * self.product.rows))))
        return all(self.same(x, x, tokens) for x in (self.random(1, tokens, self.product.cols) for _ in range(inputs)))

    def same_apart(self, tokens):
        if tokens == 1 or tokens * self.product.rows < LEAST_OUTPUTS or self.product.with_bias:
            return False
        rows = (self.random(tokens, apart, self.product.cols)[:, -1:] for apart in APART)
        return all(self.same(x, x.contiguous(), tokens) for x in rows)


def _compare_with_torch(product, tokens):
    """Adds verdicts for these numbers of tokens: whether the fused product gives the bits of torch's linear."""
    checks, verdicts = TorchCheck(product), product.device.verdicts
    for count in tokens:
        found = route(product, count)
        exact = bool(found.kind and found.exact) and checks.same_at(count)
        if exact and count <= AT_FIRST_SIGHT:
            verdicts[_key(product, count, ROWS_APART)] = checks.same_apart(count)
        verdicts[_key(product, count)] = exact


@dataclass
class Summary:
    """What is known of the exact products of a model."""

    shapes: dict = field(default_factory=dict)  # (rows, cols, layout, bias) -> {tokens: "fused" or why it decodes}
    others: dict = field(default_factory=dict)  # module -> why its products do not run fused
    experts: dict = field(default_factory=dict)  # stacks and implementation -> {route: [tokens]}
    share: float = 0.0  # the most of the weights that exact products decode and free ones would not, for WEIGHED tokens
    share_tokens: int = 0  # ... at this number of tokens
    largest: str = ""  # ... one such product, and why it decodes

    def worth_it(self):
        return self.share <= MOST_DECODED

    def reason(self):
        if not self.share:
            return f"at {WEIGHED[0]}-{WEIGHED[-1]} tokens no product has to be decoded for torch's bits"
        where = f"at {self.share_tokens} tokens" if self.share_tokens else "at any number of tokens"
        return f"{where} {self.share:.0%} of the weights are decoded for torch's bits ({self.largest})"

    def routes(self):
        """{"4096x12288 fast": {"fused": [1, 2, ...], why not: [48]}}"""
        found = {}
        for (rows, cols, layout, bias), counts in self.shapes.items():
            routes = found.setdefault(f"{rows}x{cols}{' with bias' if bias else ''} {layout}", {})
            for tokens, route in sorted(counts.items()):
                routes.setdefault(route, []).append(tokens)
        return found | self.experts | {name: {why: []} for name, why in self.others.items()}


def describe(product, tokens):
    """"fused", or why the exact product of these tokens decodes."""
    found = route(product, tokens)
    verdict = product.device.verdicts.get(_key(product, tokens))
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
    """(Product, layout, bytes) of each packed matrix that multiplies on a GPU; {module: (why not, bytes)} of others."""
    from ..hf.experts import GlydExperts
    from ..hf.modules import BUFFER, PackedMatrix, packed_modules
    from ..hf.tensors import info_of

    products, others = [], {}
    for name, module in packed_modules(model):
        if isinstance(module, GlydExperts) and module.glyd_exact and not experts_fuse(module):
            size = sum(info_of(pack).bf16_bytes for _, pack in module.glyd_packs())
            others[name] = ("experts are decoded and multiplied by the model's own code", size)
        if not isinstance(module, PackedMatrix):
            continue
        pack = module._buffers[BUFFER]
        if not on_gpu(pack):
            continue
        product = module.glyd_bind(pack)
        size = info_of(pack).bf16_bytes
        if product is None:
            others[name] = ("a weight stored [in, out] is decoded and multiplied by torch.addmm", size)
        else:
            products.append((product, info_of(pack).layout, size))
    return products, others


def experts_fuse(module):
    """Whether exact experts multiply from packed bytes in the prompts and steps of generate(), as far as is weighed."""
    routes = experts_check.prepare(module, WEIGHED)
    return bool(routes) and all(set(found) == {"fused"} for found in routes.values())


def experts_routes(model, tokens):
    from ..hf.experts import GlydExperts
    from ..hf.modules import packed_modules

    found = {}
    for _, module in packed_modules(model):
        if isinstance(module, GlydExperts) and module.glyd_exact:
            found |= experts_check.prepare(module, tokens)
    return found


def weigh(summary, products, others):
    """How much of the model exact products have to decode at WEIGHED tokens that free ones would read packed."""
    everything = sum(size for _, _, size in products) + sum(size for _, size in others.values())
    always = sum(size for _, size in others.values())
    if everything == 0:
        return
    if others:
        name, (why, _) = next(iter(others.items()))
        summary.share, summary.largest = always / everything, f"{name}: {why}"
    for tokens in WEIGHED:
        decoding = [found for found in products if could_fuse(found[0], tokens) and not found[0]._decide(tokens)]
        share = (always + sum(size for _, _, size in decoding)) / everything
        if share > summary.share:
            product, layout, _ = decoding[0]
            why = f"{product.rows}x{product.cols} ({layout}): {describe(product, tokens)}"
            summary.share, summary.share_tokens, summary.largest = share, tokens, summary.largest or why


def prepare_model(model, tokens=TOKENS):
    """prepare() of every product of a model that is exact; says which module's product follows which."""
    products, others = products_of(model)
    ahead.link([product for product, _, _ in products])
    summary = prepare([(product, layout) for product, layout, _ in products if product.exact], tokens)
    summary.others = {name: why for name, (why, _) in others.items()}
    summary.experts = experts_routes(model, tokens)
    weigh(summary, products, others)
    return summary
