"""Packed experts: the modules in which transformers keeps the experts of a layer as 3-D stacks of matrices.

A stack that arrives merged is one pack, the buffer `<parameter>_glyd`. Experts stored one by one stay one pack each:
the module gets children under the checkpoint's own names (`0.gate_proj` ...), each with a buffer `weight_glyd`, and
`gate_up_proj[e]` is the rows of `e.gate_proj` and then of `e.up_proj`.

Free: each chosen expert multiplies from its packed bytes; a stack on a GPU does so in one launch, without the host.
Exact: the same on a GPU, where that launch was seen to give the bits of what the model is set to (experts_check.py).
Else the experts that the router chose are decoded into a smaller stack and the class's own forward runs on it, the
choices renumbered; so whichever implementation the model is set to (grouped_mm, batched_mm, eager) gives its own bits.
"""

import torch
from torch import nn

from .._errors import CorruptError
from ..gpu.experts_check import ends_of
from ..gpu.runtime import index_of, on_gpu, runtime
from . import tensors
from .modules import BUFFER, Packed, change_class, packed_class, place_for, placeholder
from .tensors import SUFFIX, info_of

# A stack on a GPU multiplies this many rows (tokens times experts of each) from packed bytes; more are multiplied by the
# model's own code with the whole stack decoded.
MOST_ROWS_PACKED = 1024


class Holder(nn.Module):
    """A named place for one expert's pack."""


def stack_parameters(module):
    return [name for name, parameter in module._parameters.items() if parameter is not None and parameter.dim() == 3]


def is_experts_class(cls):
    return issubclass(cls, nn.Module) and "Experts" in cls.__name__


def is_experts(module):
    return is_experts_class(type(module)) and not isinstance(module, Packed) and bool(stack_parameters(module))


class GlydExperts(Packed):
    """Mixed in before a class of transformers' experts by packed_class."""

    def glyd_init(self, dtype):
        super().glyd_init(dtype)
        # parameter -> its shape, and None (one pack: the buffer) or, for each expert, the names of its parts
        self.glyd_stacks = {}

    @property
    def glyd_parameters(self):
        return tuple(self.__dict__.get("glyd_stacks", ()))

    def __getattr__(self, name):
        stacks = self.__dict__.get("glyd_stacks")
        if stacks and name in stacks:
            if not self.glyd_ready:
                return placeholder(stacks[name][0], self.glyd_dtype)
            return self.glyd_stack(name, range(stacks[name][0][0]))
        return super().__getattr__(name)

    def glyd_parts(self, name, expert):
        """(pack, matrix within it) of each part of one expert's matrix, in the order of its rows."""
        parts = self.glyd_stacks[name][1]
        if parts is None:
            return [(getattr(self, name + SUFFIX), expert)]
        return [(getattr(self.get_submodule(part), BUFFER), 0) for part in parts[expert]]

    glyd_most_rows = MOST_ROWS_PACKED

    def glyd_stack_packs(self):
        """The packs of the stacks, up and down; none where experts have packs of their own."""
        if any(parts is not None for _, parts in self.glyd_stacks.values()):
            return []
        return [getattr(self, name + SUFFIX) for name in self.glyd_stacks]

    def glyd_stack(self, name, experts):
        """The matrices of `experts`, decoded, as the parameter holds them: [len(experts), ...]."""
        shape, parts = self.glyd_stacks[name]
        first = self.glyd_parts(name, 0)[0][0]
        if parts is None and on_gpu(first) and len(experts) == shape[0]:  # a GPU decodes a stack at once
            return tensors.decode(getattr(self, name + SUFFIX), dimensions=3).to(self.glyd_dtype)
        out = torch.empty((len(experts), *shape[1:]), dtype=torch.bfloat16, device=first.device)
        for place, expert in enumerate(experts):
            row = 0
            for pack, matrix in self.glyd_parts(name, expert):
                info = info_of(pack)
                if info.transposed:
                    out[place] = tensors.decode_matrix(pack, matrix).t()
                else:
                    tensors.decode_matrix(pack, matrix, out[place, row : row + info.rows])
                row += info.rows
        return out.to(self.glyd_dtype)

    def glyd_own_forward(self, stacks, arguments, **members):
        """The class's own forward on a stand-in that has decoded stacks where this module has packs."""
        stand_in = object.__new__(self.glyd_base)
        stand_in.__dict__ = {**self.__dict__, **members, **stacks}
        return self.glyd_base.forward(stand_in, *arguments)

    @torch.compiler.disable
    def forward(self, *arguments, **named):
        self.glyd_calls += 1
        if named or not self._glyd_is_routed(arguments):
            stacks = {name: getattr(self, name) for name in self.glyd_stacks}
            return self.glyd_own_forward(stacks, (*arguments, *named.values()))
        hidden, choices, weights = arguments
        packed = hidden.dtype == torch.bfloat16 and hasattr(self, "has_gate") and self.glyd_can_multiply()
        packed = packed and not (torch.is_grad_enabled() and hidden.requires_grad)
        free = packed and not self.glyd_exact
        if on_gpu(hidden):
            at_once = free or (packed and self._glyd_is_proven(hidden, choices))
            found = self.glyd_at_once(hidden, choices, weights) if at_once else None
            if found is not None:
                return found
            if self.glyd_whole(choices):
                stacks = {name: getattr(self, name) for name in self.glyd_stacks}
                return self.glyd_own_forward(stacks, arguments)
        return self.glyd_free(hidden, choices, weights) if free else self.glyd_chosen(hidden, choices, weights)

    def _glyd_is_routed(self, arguments):
        """(hidden states, chosen experts [tokens, k], their weights [tokens, k]): how transformers 5 calls them."""
        if len(arguments) != 3 or not hasattr(self, "num_experts") or getattr(self, "_is_expert_parallel", False):
            return False
        hidden, choices, weights = arguments
        integers = isinstance(choices, torch.Tensor) and choices.dtype in (torch.int64, torch.int32)
        return integers and choices.dim() == 2 and choices.shape == weights.shape and hidden.dim() == 2

    def _glyd_is_proven(self, hidden, choices):
        """Whether the packed stacks give the bits of the implementation that the model is set to."""
        from ..gpu import experts_check

        rows = choices.numel()
        contiguous = hidden.is_contiguous() and not torch.is_autocast_enabled(hidden.device.type)
        return contiguous and rows <= self.glyd_most_rows and experts_check.proven(self, rows)

    def glyd_whole(self, choices):
        """On a GPU: whether every expert is decoded, rather than the host wait for what the router chose."""
        merged = any(parts is None for _, parts in self.glyd_stacks.values())
        return runtime.capturing(index_of(choices.device)) or (merged and 2 * choices.numel() >= self.num_experts)

    def glyd_chosen(self, hidden, choices, weights):
        chosen, renumbered = torch.unique(choices, return_inverse=True)
        experts = chosen.tolist()
        members = {"num_experts": len(experts)}
        if len(experts) == 0 or experts[-1] >= self.num_experts or experts[0] < 0:
            experts, renumbered, members = list(range(self.num_experts)), choices, {}
        stacks = {name: self.glyd_stack(name, experts) for name in self.glyd_stacks}
        for name, parameter in self._parameters.items():  # biases of the experts
            if parameter is not None and parameter.dim() >= 2 and parameter.shape[0] == self.num_experts:
                stacks[name] = parameter[experts]
        return self.glyd_own_forward(stacks, (hidden, renumbered.to(choices.dtype), weights), **members)

    def glyd_can_multiply(self):
        """The packs' rows are outputs: free products need no decoding."""
        return all(
            info_of(pack).transposed == bool(self.is_transposed)
            for name in self.glyd_stacks
            for pack, _ in self.glyd_parts(name, 0)
        )

    def glyd_product(self, name, expert, x):
        parts = self.glyd_parts(name, expert)
        rows = sum(info_of(pack).rows for pack, _ in parts)
        y = torch.empty((x.shape[0], rows), dtype=torch.bfloat16, device=x.device)
        column = 0
        for pack, matrix in parts:
            tensors.linear_into(y, column, x, pack, matrix)
            column += info_of(pack).rows
        bias = getattr(self, name + "_bias", None) if self.has_bias else None
        return y if bias is None else y + bias[expert]

    def glyd_at_once(self, hidden, choices, weights):
        """As glyd_free, each stack in one launch and nothing known to the host; None where that cannot be."""
        tokens, k = choices.shape
        up_name = "gate_up_proj" if self.has_gate else "up_proj"
        stacked = all(self.glyd_stacks[name][1] is None for name in (up_name, "down_proj"))
        if not stacked or tokens * k > self.glyd_most_rows:
            return None
        expert, order = choices.reshape(-1).sort(stable=True)
        ends = ends_of(expert, self.num_experts)
        up = self.glyd_stack_product(up_name, hidden[order // k], expert, ends)
        if up is None:
            return None
        inner = self._apply_gate(up) if self.has_gate else self.act_fn(up)
        down = self.glyd_stack_product("down_proj", inner.contiguous(), expert, ends)
        return None if down is None else self._glyd_weighted(torch.empty_like(down).index_copy_(0, order, down), weights)

    def glyd_stack_product(self, name, x, expert, ends):
        """Rows of x, sorted by expert, by each one's matrix; rows of no expert are zeros."""
        y = tensors.linear_experts(x, getattr(self, name + SUFFIX), ends)
        bias = getattr(self, name + "_bias", None) if self.has_bias else None
        return y if y is None or bias is None else y + bias[expert.clamp(max=self.num_experts - 1)]

    def glyd_free(self, hidden, choices, weights):
        tokens, k = choices.shape
        flat = choices.reshape(-1)
        out = torch.zeros((tokens * k, hidden.shape[-1]), dtype=torch.bfloat16, device=hidden.device)
        up_name = "gate_up_proj" if self.has_gate else "up_proj"
        for expert in torch.unique(flat).tolist():
            if expert >= self.num_experts:
                continue  # "no expert": its weight is zero
            slots = (flat == expert).nonzero().squeeze(1)
            up = self.glyd_product(up_name, expert, hidden[slots // k])
            inner = self._apply_gate(up) if self.has_gate else self.act_fn(up)
            out[slots] = self.glyd_product("down_proj", expert, inner.contiguous())
        return self._glyd_weighted(out, weights)

    def _glyd_weighted(self, out, weights):
        """The sum of each token's experts' outputs, [tokens * k, hidden] in the order of `choices`."""
        tokens, k = weights.shape
        if getattr(self, "has_post_expert_norm", False):
            out = self.post_expert_norm(out)
        weighted = out * weights.reshape(-1, 1)
        return weighted.view(tokens, k, -1).sum(dim=1).to(out.dtype)


def become_experts(module):
    """Makes an experts module packed in class, with no stack packed yet."""
    if not isinstance(module, GlydExperts):
        dtype = module._parameters[stack_parameters(module)[0]].dtype
        change_class(module, packed_class(GlydExperts, type(module)))
        module.glyd_init(dtype)
    return module


def hold_stack(module, name, pack):
    """`name` becomes one pack of the whole stack."""
    become_experts(module)
    parameter = module._parameters.pop(name)
    module.register_buffer(name + SUFFIX, pack)
    module.glyd_stacks[name] = (tuple(parameter.shape), None)


def hold_list(module, name, parts):
    """`name` becomes packs of single experts. parts[e]: for each (child, bytes of its pack or None, shape if bf16)."""
    become_experts(module)
    parameter = module._parameters.pop(name)
    for expert_parts in parts:
        for child, pack_bytes, shape in expert_parts:
            holder = _child(module, child)
            if pack_bytes is None:
                place = torch.empty(shape, dtype=parameter.dtype, device="meta")
                holder.weight = nn.Parameter(place, requires_grad=False)
            else:
                holder.register_buffer(BUFFER, place_for(pack_bytes))
    module.glyd_stacks[name] = (tuple(parameter.shape), [[part[0] for part in expert] for expert in parts])


def gather_lists(module, pack_of):
    """Experts that have packs of their own become one pack a stack, which a GPU multiplies by in one launch."""
    for name, (shape, parts) in list(module.glyd_stacks.items()):
        if parts is None:
            continue
        layout = info_of(module.glyd_parts(name, 0)[0][0]).layout
        pack = pack_of(module, name, module.glyd_stack(name, range(shape[0])).to(torch.bfloat16), layout)
        if pack.numel() >= 2 * shape[0] * shape[1] * shape[2]:
            continue
        for part in {part for expert in parts for part in expert}:
            del module.get_submodule(part)._buffers[BUFFER]
        pack._is_hf_initialized = True
        module.register_buffer(name + SUFFIX, pack)
        module.glyd_stacks[name] = (shape, None)
    _drop_empty(module)


def _drop_empty(module):
    """Holders that hold nothing any more."""
    for name, child in list(module._modules.items()):
        if isinstance(child, Holder):
            _drop_empty(child)
            if not child._modules and not child._buffers and not child._parameters:
                del module._modules[name]


def _child(module, path):
    for step in path.split("."):
        if step not in module._modules:
            module.add_module(step, Holder())
        module = module._modules[step]
    return module


def check_stacks(name, module):
    """The packs of a loaded experts module have the shapes that its parameters had."""
    for parameter, (shape, parts) in module.glyd_stacks.items():
        packs = [module.glyd_parts(parameter, expert) for expert in (range(shape[0]) if parts else [0])]
        for expert in packs:
            infos = [info_of(pack) for pack, _ in expert]
            found = [tensors.shape_of(info, 3 if parts is None else 2) for info in infos]
            whole = found[0] if parts is None else (sum(part[0] for part in found), found[0][-1])
            if tuple(whole) != (shape if parts is None else shape[1:]):
                raise CorruptError(f"{name}.{parameter}: packed {found}, the model needs {shape}")
