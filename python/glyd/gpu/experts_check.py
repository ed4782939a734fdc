"""Which experts may multiply from packed bytes and still be exact: seen, not assumed, as in exactness.py.

The library multiplies a stack in one launch, each output summed in ascending k. Whether that gives the bits of what the
model would run (torch's grouped_mm, or a batched product of the chosen matrices) is found out by comparing the two on
random inputs, for each implementation, shape and number of rows.
"""

import torch

from .._errors import UnsupportedError
from .runtime import device_of, on_gpu, runtime

IMPLEMENTATIONS = ("grouped_mm", "batched_mm")  # of transformers; others decode
LEAST_OUTPUTS, MOST_INPUTS = 20000, 16  # compared
AT_FIRST_SIGHT = 512  # rows; more are checked when they are met for the second time
MOST_GATHERED_BYTES = 1 << 30  # of matrices that a batched product copies for its rows
SEED = 20261130


def random(device, *shape):
    generator = torch.Generator(device=device).manual_seed(SEED + len(shape) + shape[0])
    return torch.randn(shape, generator=generator, device=device).to(torch.bfloat16)


def reference(implementation, x, stack, expert, ends, transposed):
    from transformers.integrations import moe

    if implementation == "grouped_mm":
        return moe._grouped_linear(x, stack, ends, is_transposed=transposed)
    return moe._batched_linear(x, stack[expert], is_transposed=transposed)


def ends_of(expert, experts):
    """Where each expert's rows end, of rows sorted by expert."""
    numbers = torch.arange(experts, dtype=expert.dtype, device=expert.device)
    return torch.searchsorted(expert, numbers, right=True).to(torch.int32)


def same(pack, info, implementation, rows):
    """Whether so many rows of random inputs by random experts give the same bits both ways."""
    from ..hf import tensors

    if info.layout != "fast":
        return False
    if implementation == "batched_mm" and 2 * rows * info.rows * info.cols > MOST_GATHERED_BYTES:
        return False
    stack = tensors.decode(pack, dimensions=3)
    inputs = min(MOST_INPUTS, max(2, -(-LEAST_OUTPUTS // max(rows * info.rows, 1))))
    for number in range(inputs):
        x = random(pack.device, number + rows + 1, info.cols)[number + 1 :]
        generator = torch.Generator().manual_seed(SEED + number)
        # Every other time few experts share the rows, as in a prompt.
        most = info.stack if number % 2 == 0 else max(1, info.stack // 8)
        expert = torch.randint(0, most, (rows,), generator=generator).sort().values.to(pack.device)
        ends = ends_of(expert, info.stack)
        found = tensors.linear_experts(x, pack, ends)
        if found is None:
            return False
        if not tensors.same_bits(found, reference(implementation, x, stack, expert, ends, info.transposed)):
            return False
    return True


def proven(module, rows, implementation=None, first_sight=False):
    """Whether all stacks of an experts module are known to be exact for `rows` (tokens times experts of each)."""
    from ..hf.tensors import info_of

    implementation = implementation or getattr(module.config, "_experts_implementation", None)
    if implementation not in IMPLEMENTATIONS or rows == 0:
        return False
    for pack in module.glyd_stack_packs():
        device, info = device_of(pack), info_of(pack)
        key = ("experts", implementation, info.stack, info.rows, info.cols, info.transposed, rows)
        verdict = device.verdicts.get(key)
        if verdict is None:
            if runtime.capturing(device.index) or not (first_sight or rows <= AT_FIRST_SIGHT or device.seen(key)):
                return False
            try:
                with runtime.guard(device.index), torch.no_grad():
                    verdict = same(pack, info, implementation, rows)
            except (torch.OutOfMemoryError, UnsupportedError):
                return False
            device.verdicts[key] = verdict
        if not verdict:
            return False
    return True


def experts_of_a_token(module):
    config = getattr(module, "config", None)
    found = getattr(config, "num_experts_per_tok", None) or getattr(module, "top_k", None)
    return found if isinstance(found, int) else None


def implementations(module):
    """What generate() runs: it takes batched_mm for the steps of a model that is set to grouped_mm."""
    found = getattr(getattr(module, "config", None), "_experts_implementation", None)
    return ("grouped_mm", "batched_mm") if found == "grouped_mm" else (found,)


def prepare(module, tokens):
    """{"8 experts of 512x256 by grouped_mm": {"fused": [1, 2, ...], "decode": [3]}} for these numbers of tokens."""
    from ..hf.tensors import info_of

    k = experts_of_a_token(module)
    packs = module.glyd_stack_packs()
    if k is None or not packs or not on_gpu(packs[0]) or not module.glyd_can_multiply():
        return {}
    shapes = " and ".join(f"{info_of(pack).rows}x{info_of(pack).cols}" for pack in packs)
    found = {}
    for implementation in implementations(module):
        routes = found.setdefault(f"{info_of(packs[0]).stack} experts of {shapes} by {implementation}", {})
        for count in tokens:
            fused = count * k <= module.glyd_most_rows and proven(module, count * k, implementation, first_sight=True)
            routes.setdefault("fused" if fused else "decode", []).append(count)
    return found
