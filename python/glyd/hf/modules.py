"""Packed modules. A module is packed in place: its class becomes a subclass that holds the buffer `weight_glyd`.

Names, biases, hooks and isinstance() stay as they were. `module.weight` decodes the whole matrix each time it is read.
"""

import functools

import torch
from torch import nn

from .._errors import UnsupportedError
from ..gpu import ops  # noqa: F401  registers torch.ops.glyd
from ..gpu.runtime import on_gpu
from . import products, tensors
from .tensors import SUFFIX, info_of

BUFFER = "weight" + SUFFIX


def placeholder(shape, dtype):
    """What transformers' initialisation finds in a packed weight's place: it leaves what has this mark as it is."""
    tensor = torch.empty(shape, dtype=dtype, device="meta")
    tensor._is_hf_initialized = True
    return tensor


class Packed:
    """What every packed module has."""

    glyd_base = None  # the class the module had before it was packed
    glyd_parameters = ("weight",)
    glyd_fast = None  # on a GPU: what runs a call without gradients (gpu.products.Product); made at the first call
    glyd_group = None  # on a GPU: products of the same input that may run beside this one (gpu.side.Group)

    def glyd_init(self, dtype):
        self.glyd_dtype = dtype  # of the parameter that the pack stands for
        self.glyd_exact = True
        self.glyd_calls = 0  # products (or look-ups) from packed bytes
        self.glyd_ready = False  # while transformers loads the model, a weight that is read is a placeholder

    def glyd_packs(self):
        """(state-dict name below this module, pack) of every pack it holds."""
        return [(name, tensor) for name, tensor in self.named_buffers(remove_duplicate=False) if name.endswith(SUFFIX)]

    def __setattr__(self, name, value):
        if name in self.glyd_parameters:
            raise UnsupportedError(
                f"{type(self).__name__}.{name} is packed and cannot be set or trained. For weights that change, load "
                "the model in bf16 (glyd.unpack gives its files back)."
            )
        if name.endswith(SUFFIX):
            self.glyd_unbind()
        super().__setattr__(name, value)

    def glyd_unbind(self):
        """The packs are others, or elsewhere, or to be multiplied in another order."""
        if self.__dict__.get("glyd_fast") is not None:
            self.glyd_calls += self.glyd_fast.take_calls()
        self.__dict__.pop("glyd_fast", None)
        self.__dict__.pop("glyd_held", None)

    def glyd_count(self):
        """Products (or look-ups) from packed bytes so far."""
        return self.glyd_calls + (self.glyd_fast.calls if self.glyd_fast is not None else 0)

    def _apply(self, fn, recurse=True):
        refuse_dtype(self, fn)
        self.glyd_unbind()
        return super()._apply(fn, recurse)

    def _load_from_state_dict(self, *args, **kwargs):
        super()._load_from_state_dict(*args, **kwargs)
        self.glyd_unbind()
        for name, pack in self._buffers.items():
            if name.endswith(SUFFIX):
                tensors.forget(pack)

    def __reduce_ex__(self, protocol):
        state = self.__dict__.copy()
        state.pop("glyd_fast", None)
        state.pop("glyd_held", None)
        state.pop("glyd_group", None)
        return _restore, (self.glyd_base,), state


def refuse_dtype(module, fn):
    """Raises where `fn`, what .to() and .half() do to each tensor of a packed module, gives its weight another dtype."""
    found = fn(torch.empty(0, dtype=torch.bfloat16)).dtype
    if found not in (torch.bfloat16, module.glyd_dtype):
        name = str(found).removeprefix("torch.")
        raise UnsupportedError(
            f"packed weights are bfloat16 and cannot become {name}. model.dequantize().to(torch.{name}) gives a plain "
            f"model of that dtype, glyd.from_pretrained(..., dtype=torch.{name}) one that multiplies in it, its weights "
            "still packed."
        )
    if found != module.glyd_dtype and fn(torch.empty(0, dtype=module.glyd_dtype)).dtype == torch.bfloat16:
        module.glyd_dtype = torch.bfloat16


def guard_casts():
    """transformers' models with packed modules refuse other dtypes before anything is cast, and can be dequantized."""
    from transformers import PreTrainedModel

    def guarded(name):
        original = getattr(PreTrainedModel, name)

        @functools.wraps(original)
        def method(self, *args, **kwargs):
            cast = {"half": torch.Tensor.half, "float": torch.Tensor.float}.get(name) or args[0]
            for module in self.modules():
                if isinstance(module, Packed):
                    refuse_dtype(module, cast)
            return original(self, *args, **kwargs)

        method.glyd_guards = True
        return method

    for name in ("_apply", "half", "float"):
        if not hasattr(getattr(PreTrainedModel, name), "glyd_guards"):
            setattr(PreTrainedModel, name, guarded(name))
    if not hasattr(PreTrainedModel.dequantize, "glyd_guards"):
        PreTrainedModel.dequantize = dequantizing(PreTrainedModel.dequantize)


def dequantizing(original):
    """dequantize() for models that glyd.gpu.compress packed, too: they have no quantizer of transformers."""

    @functools.wraps(original)
    def method(self, dtype=None):
        if getattr(self, "hf_quantizer", None) is None and packed_modules(self):
            from .finish import to_bf16

            return to_bf16(self, dtype)
        return original(self, dtype)

    method.glyd_guards = True
    return method


def _read_weight(module):
    if not module.glyd_ready:
        return placeholder(module.glyd_shape(), module.glyd_dtype)
    return module.glyd_decoded()


class _PackedProduct(torch.autograd.Function):
    """A product whose backward decodes: gradients reach the inputs and the bias, never the packed weight."""

    @staticmethod
    def forward(ctx, x, bias, module):
        ctx.module = module
        ctx.has_bias = bias is not None
        return module.glyd_product(x, bias)

    @staticmethod
    def backward(ctx, gradient):
        to_x = to_bias = None
        if ctx.needs_input_grad[0]:
            to_x = gradient @ ctx.module.glyd_outputs_by_inputs().to(gradient.dtype)
        if ctx.has_bias and ctx.needs_input_grad[1]:
            to_bias = gradient.reshape(-1, gradient.shape[-1]).sum(0)
        return to_x, to_bias, None


class PackedMatrix(Packed):
    """A Linear or Conv1D: one pack, one product."""

    weight = property(_read_weight)

    def glyd_decoded(self):
        return tensors.decode(getattr(self, BUFFER)).to(self.glyd_dtype)

    def forward(self, x):
        if not torch.compiler.is_compiling():
            fast = self.glyd_fast
            if fast is not None and not torch.is_grad_enabled():
                beside = None if self.glyd_group is None else self.glyd_group.call(self, x)
                return fast(x, self._parameters["bias"]) if beside is None else beside
            return self.glyd_forward(x)
        if on_gpu(self._buffers[BUFFER]):
            return self.glyd_traced(x)
        return self.glyd_forward(x)

    @torch.compiler.disable
    def glyd_forward(self, x):
        bias = self.bias
        if torch.is_grad_enabled() and (x.requires_grad or (bias is not None and bias.requires_grad)):
            return _PackedProduct.apply(x, bias, self)
        return self.glyd_product(x, bias)

    def glyd_product(self, x, bias):
        pack = getattr(self, BUFFER)
        if on_gpu(pack):
            return self.glyd_gpu_product(x, pack, bias)
        self.glyd_calls += 1
        free = not self.glyd_exact and x.dtype == torch.bfloat16 and not torch.is_autocast_enabled("cpu")
        if free and self.glyd_multiplies(pack):
            return products.free(x, pack, bias)
        dtype = self.glyd_dtype if torch.is_autocast_enabled("cpu") else x.dtype
        return self.glyd_exact_product(x, pack, bias, dtype)

    def glyd_multiplies(self, pack):
        """Whether products come from the packed bytes: the pack's rows are this module's outputs."""
        return info_of(pack).transposed == self.glyd_transposed

    def glyd_gpu_product(self, x, pack, bias):
        fast = self.glyd_fast or self.glyd_bind(pack)
        if fast is not None:
            return fast(x, bias)
        self.glyd_calls += 1
        autocast = torch.is_autocast_enabled(x.device.type)
        return self.glyd_exact_product(x, pack, bias, self.glyd_dtype if autocast else x.dtype)

    def glyd_bind(self, pack):
        """Gets ready for calls on a GPU: later ones take the short way in forward."""
        if not self.glyd_multiplies(pack):
            return None
        from ..gpu.products import product_of

        self.__dict__["glyd_held"] = pack
        self.__dict__["glyd_fast"] = product_of(pack, self.glyd_exact, self.bias is not None)
        return self.glyd_fast

    def glyd_traced(self, x):
        """What torch.compile sees: ops with fake kernels."""
        pack = self._buffers[BUFFER]
        if self.glyd_multiplies(pack):
            rows = self.glyd_shape()[1 if self.glyd_transposed else 0]
            return torch.ops.glyd.linear(x, pack, self.bias, rows, self.glyd_exact)
        weight = torch.ops.glyd.unpack(pack, list(self.glyd_shape())).to(x.dtype)
        return self.glyd_plain_product(x, weight, self.bias)


class GlydLinear(PackedMatrix, nn.Linear):
    glyd_base = nn.Linear
    glyd_transposed = False

    def glyd_shape(self):
        return self.out_features, self.in_features

    def glyd_exact_product(self, x, pack, bias, dtype):
        if info_of(pack).transposed or on_gpu(pack):
            return self.glyd_plain_product(x, tensors.decode(pack).to(dtype), bias)
        return products.exact(x, pack, bias, dtype=dtype)

    def glyd_plain_product(self, x, weight, bias):
        return nn.functional.linear(x, weight, bias)

    def glyd_outputs_by_inputs(self):
        return self.glyd_decoded()


class GlydConv1D(PackedMatrix):
    """transformers' Conv1D (GPT-2), whose weight is stored [in, out]. packed_class adds Conv1D as the second base."""

    glyd_transposed = True

    def glyd_shape(self):
        return self.nx, self.nf

    def glyd_multiplies(self, pack):
        """On a GPU exact products decode: torch.addmm on [in, out] sums in an order of its own."""
        return super().glyd_multiplies(pack) and not (self.glyd_exact and on_gpu(pack))

    def glyd_exact_product(self, x, pack, bias, dtype):
        return self.glyd_plain_product(x, tensors.decode(pack).to(dtype), bias)

    def glyd_plain_product(self, x, weight, bias):
        y = torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight)
        return y.view(*x.shape[:-1], self.nf)

    def glyd_outputs_by_inputs(self):
        return self.glyd_decoded().t()


class GlydEmbedding(Packed, nn.Embedding):
    glyd_base = nn.Embedding
    weight = property(_read_weight)

    def glyd_shape(self):
        return self.num_embeddings, self.embedding_dim

    def glyd_decoded(self):
        return tensors.decode(getattr(self, BUFFER)).to(self.glyd_dtype)

    def forward(self, ids):
        if torch.compiler.is_compiling() and on_gpu(self._buffers[BUFFER]):
            return torch.ops.glyd.rows(self._buffers[BUFFER], ids, self.embedding_dim).to(self.glyd_dtype)
        return self.glyd_look_up(ids)

    @torch.compiler.disable
    def glyd_look_up(self, ids):
        self.__dict__["glyd_calls"] += 1
        return tensors.decode_rows(self._buffers[BUFFER], ids).to(self.glyd_dtype)


def conv1d_class():
    from transformers.pytorch_utils import Conv1D

    return Conv1D


def kind_of(module):
    """GlydLinear, GlydEmbedding or GlydConv1D for a module whose weight can be packed, else None."""
    if isinstance(module, Packed):
        return None
    if isinstance(module, nn.Linear):
        return GlydLinear
    if isinstance(module, nn.Embedding):
        return GlydEmbedding if module.max_norm is None and not module.sparse else None
    if isinstance(module, conv1d_class()):
        return GlydConv1D
    return None


_classes = {}


def packed_class(kind, base):
    """The class of a packed `base`. A subclass of Linear or Embedding comes first: its own code runs around ours."""
    found = _classes.get((kind, base))
    if found is None:
        if kind.glyd_base is base:
            found = kind
        else:
            bases = (base, kind) if kind in (GlydLinear, GlydEmbedding) else (kind, base)
            found = type("Glyd" + base.__name__, bases, {"glyd_base": base, "__module__": __name__})
        _classes[kind, base] = found
    return found


def _restore(base):
    from .experts import GlydExperts, is_experts_class

    if base is nn.Linear or issubclass(base, nn.Linear):
        kind = GlydLinear
    elif issubclass(base, nn.Embedding):
        kind = GlydEmbedding
    elif issubclass(base, conv1d_class()):
        kind = GlydConv1D
    else:
        assert is_experts_class(base), base
        kind = GlydExperts
    cls = packed_class(kind, base)
    return cls.__new__(cls)


def place_for(pack_bytes):
    """A placeholder on the meta device for a pack still to be loaded."""
    return torch.empty(pack_bytes, dtype=torch.uint8, device="meta")


def change_class(module, cls):
    """Turns a module into one of another class. A hook of accelerate holds the forward that it runs: from now on ours."""
    module.__class__ = cls
    if "_old_forward" in module.__dict__:
        module.__dict__["_old_forward"] = cls.forward.__get__(module)


def where_it_runs(module, tensor):
    """`tensor`, or a copy of it on the GPU to which a hook of accelerate moves the module's inputs.

    A tied weight lies on one GPU even if its modules run on two: accelerate ties parameters again after it has spread
    a model, so that in bf16 such a model does not run.
    """
    hook = module.__dict__.get("_hf_hook")
    for one in getattr(hook, "hooks", [hook]):
        device = getattr(one, "execution_device", None)
        if device is not None:
            return placed(tensor, device)
    return tensor


def placed(tensor, device):
    moved = tensor.to(device)
    if moved is tensor:
        return tensor
    moved._is_hf_initialized = True
    return nn.Parameter(moved, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else moved


def become_packed(module, pack, dtype=None):
    """Turns a Linear, Embedding or Conv1D into its packed class with `pack` (None: another module's, to come)."""
    kind = kind_of(module)
    parameter = module._parameters.pop("weight")
    change_class(module, packed_class(kind, type(module)))
    module.register_buffer(BUFFER, pack)
    module.glyd_init(dtype or parameter.dtype)
    return module


def packed_modules(model):
    return [(name, module) for name, module in model.named_modules() if isinstance(module, Packed)]


def set_exact(model, exact):
    """exact=True: torch's own sums, the bits of the bf16 model. exact=False: straight from the packed bytes."""
    for _, module in packed_modules(model):
        if module.glyd_exact != bool(exact):
            module.glyd_exact = bool(exact)
            module.glyd_unbind()
    state = getattr(model, "glyd_state", None)
    if state:
        model.glyd_state = state | {"exact": bool(exact), "reason": f"set by set_exact(model, {bool(exact)})"}
    return model
