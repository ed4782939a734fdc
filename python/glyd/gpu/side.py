"""Products of one input side by side, q, k and v or gate and up, in captured CUDA graphs: each on a stream of its own
and on a share of the multiprocessors, so that together they take as long as one product of all their rows.

Each product keeps its own launch and so its own order of sums: the bits are those of one after another. Outside of
graphs the host is what takes longest, and events would
cost it more than they save: there each product runs by itself. Graphs of torch.compile call ops and never come here: an
output that waits for its module would be memory of the graph that torch does not know of.
"""

import weakref

import torch

from .products import BUFFER_TOO_SMALL
from .runtime import device_of, on_gpu, runtime

# Children of one module that multiply one input, in the order in which models call them.
TOGETHER = (
    ("q_proj", "k_proj", "v_proj"),
    ("query", "key", "value"),
    ("q_lin", "k_lin", "v_lin"),
    ("gate_proj", "up_proj"),
)


class Group:
    """The first of its products to be called launches all; the others find theirs done."""

    def __init__(self, modules):
        self.leader, *self.followers = [weakref.ref(module) for module in modules]
        self.done = None  # (input, its version, {module: output}), from the leader's call to the last follower's

    def call(self, module, x):
        """The module's product of x, or None where it is to run by itself."""
        if self.leader() is module:
            product = module.glyd_fast
            return self._launch_all(module, x) if runtime.capturing(product.index) else None
        if self.done is None:
            return None
        known, version, outputs = self.done
        if known is not x or x._version != version:
            self.done = None
            return None
        y = outputs.pop(module, None)
        if not outputs:
            self.done = None
        return y

    def _launch_all(self, leader, x):
        self.done = None
        others = [module for module in (follower() for follower in self.followers) if module is not None]
        tokens = x.numel() // leader.glyd_fast.cols
        device = leader.glyd_fast.device
        if len(others) < len(self.followers) or not all(can_run(m, x, tokens, device) for m in (leader, *others)):
            return None
        sides = device.side_streams(len(others))
        if sides is None:
            return None
        current = runtime.current_stream(device.index)
        members = (leader, *others)
        outputs = {m: x.new_empty((*x.shape[:-1], m.glyd_fast.rows)) for m in members}
        shares = dict(zip(members, share([m.glyd_fast.rows for m in members], device.multiprocessors), strict=True))
        before = current.record_event()
        ran = {}
        for m, side in zip(others, sides, strict=True):
            side.wait_event(before)
            # The first on a stream waits for all that was before.
            ran[m] = launch(m, outputs[m], x, tokens, side.cuda_stream, False, shares[m])
        ran[leader] = launch(leader, outputs[leader], x, tokens, current.cuda_stream, True, shares[leader])
        for side in sides:
            current.wait_event(side.record_event())
        outputs = {module: y for module, y in outputs.items() if ran[module]}
        y = outputs.pop(leader, None)
        self.done = (x, x._version, outputs) if outputs else None
        return y


def can_run(module, x, tokens, device):
    """Whether the module's product of x runs fused: checked while nothing is launched yet."""
    product, bias = module.glyd_fast, module._parameters["bias"]
    return (
        product is not None
        and product.device is device
        and bool(product.fused.get(tokens))
        and type(x) is torch.Tensor
        and x.dtype is torch.bfloat16
        and x.is_contiguous()
        and x.shape[-1] == product.cols
        and x.get_device() == product.device_number
        and not (product.takes_no(bias) if bias is not None else product.with_bias)
        and not torch.is_autocast_enabled(product.autocast)
    )


# A much smaller product gets more than its part of the rows: its work comes in fewer pieces, and starting and ending
# cost it as much as the large one. Of 132 multiprocessors beside one of 4,096 rows, 1,024 rows did best with 28, by rows
# alone 22 (docs/adr/0014-side-by-side.md has the times).
SMALLER = 1.28


def share(rows, multiprocessors):
    """Multiprocessors for each of several products of one input: by their rows, those of half the largest's and less
    SMALLER times that; all in all, the first product the odd ones."""
    more = [SMALLER if 2 * part <= max(rows) else 1 for part in rows]
    shares = [max(1, int(multiprocessors * part * m / sum(rows))) for part, m in zip(rows, more, strict=True)]
    shares[0] = max(1, multiprocessors - sum(shares[1:]))
    return shares


def launch(module, y, x, tokens, stream, early, multiprocessors):
    """Whether it was launched: a product that would have to decode is not."""
    product = module.glyd_fast
    bias = module._parameters["bias"]
    status = product.launch_into(y, x, bias, tokens, product.free, 0, stream, early, multiprocessors)
    if status == BUFFER_TOO_SMALL:
        return False
    product.check(status)
    product.calls += 1
    return True


def link(model):
    """Groups the packed modules of a model that can run side by side."""
    from ..hf.modules import BUFFER, PackedMatrix

    for _, parent in model.named_modules():
        for names in TOGETHER:
            children = [parent._modules.get(name) for name in names]
            if not all(isinstance(child, PackedMatrix) for child in children):
                continue
            packs = [child._buffers.get(BUFFER) for child in children]
            if all(pack is not None and on_gpu(pack) for pack in packs) and len({pack.device for pack in packs}) == 1:
                group = Group(children)
                for child in children:
                    child.__dict__["glyd_group"] = group
                device_of(packs[0]).make_side_streams(len(names) - 1)


def unlink(model):
    for module in model.modules():
        module.__dict__.pop("glyd_group", None)
