"""What happens to a model once its packs are there: checks, ties, another layout, exact or free, the report."""

import sys
import time

import torch
from torch import nn

from .._errors import CorruptError, UnsupportedError
from ..gpu import side
from ..gpu.exactness import TOKENS, prepare_model
from ..gpu.runtime import on_gpu
from . import products, report, tensors
from .experts import GlydExperts, Holder, check_stacks, gather_lists, is_experts, stack_parameters
from .modules import (
    BUFFER,
    GlydConv1D,
    Packed,
    PackedMatrix,
    become_packed,
    change_class,
    kind_of,
    packed_modules,
    placed,
    set_exact,
)
from .tensors import SUFFIX, info_of

MOST_EXACT_COST = 1.10  # exact="auto": exact products may take at most this much of a free one's time


def pack_for(module, name, values, layout):
    """A pack of `values`, in the orientation in which `module` multiplies by it."""
    if values.dim() == 3:
        transposed = bool(getattr(module, "is_transposed", False))
    else:
        transposed = kind_of(module) is GlydConv1D or isinstance(module, GlydConv1D)
    return tensors.pack_tensor(values, layout, transposed)


def finish_loading(model, quantizer):
    options = quantizer.options
    decoded = decode_the_rest(model, quantizer.decode_later)
    pack_carried_parts(model, options.layout)
    if quantizer.plan is not None and quantizer.plan.converted:
        pack_what_was_converted(model, options.layout)
    tie(model, quantizer.ties)
    modules = packed_modules(model)
    for name, module in modules:
        check_loaded(name, module)
        module.glyd_ready = True
        if isinstance(module, GlydExperts) and any(on_gpu(pack) for _, pack in module.glyd_packs()):
            gather_lists(module, pack_for)
    release_mapped_file(model)
    if not modules:
        raise UnsupportedError(why_nothing_is_packed(model))
    wanted = options.layout
    if quantizer.pre_quantized and wanted != "auto" and wanted != quantizer.quantization_config.layout:
        repack(model, wanted)
        quantizer.quantization_config.layout = wanted
    settle(model, options.exact, decoded, options.merge)


def settle(model, asked, decoded_at_load=(), merge=True):
    """The last steps of every way to a packed model: exact or free, and what the report says."""
    exact, reason, summary = choose_exact(model, asked)
    set_exact(model, exact)
    if any_on_gpu(model) and (summary is None or not exact):
        summary = prepare_model(model, TOKENS if exact else ())
    side.link(model) if merge else side.unlink(model)
    model.glyd_state = {
        "exact": exact,
        "reason": reason,
        "asked": asked,
        "routes": summary.routes() if summary else {},
        "decoded_at_load": list(decoded_at_load),
    }
    report.install()


def release_mapped_file(model):
    """Carried tensors are views of the mapped file: a copy lets go of its pages, bf16 weights among them."""
    packs = {id(pack) for _, module in packed_modules(model) for _, pack in module.glyd_packs()}
    for tensor in {id(t): t for t in [*model.parameters(), *model.buffers()]}.values():
        if id(tensor) not in packs and tensor.device.type == "cpu":
            tensor.data = tensor.data.clone()


def decode_the_rest(model, decode_later):
    for path, name, held_as, dtype in decode_later:
        module = model.get_submodule(path)
        pack = module._buffers.pop(name + SUFFIX)
        module.__dict__.pop(name)  # the placeholder
        check_pack(f"{path}.{name}", pack)
        values = tensors.decode(pack)
        dimensions = 3 if info_of(pack).stack != 1 else 2
        values = values.view(tensors.shape_of(info_of(pack), dimensions)).to(dtype)
        if held_as == "parameter":
            module.register_parameter(name, nn.Parameter(values))
        else:
            module.register_buffer(name, values)
    return [f"{path}.{name}" for path, name, _, _ in decode_later]


def pack_carried_parts(model, layout):
    """Single experts that were carried as bf16 beside packed ones: one kind of part is simpler to multiply by."""
    for name, module in model.named_modules():
        parameter = module._parameters.get("weight") if isinstance(module, Holder) else None
        if parameter is None:
            continue
        if not getattr(parameter, "_is_hf_initialized", False):
            raise CorruptError(f"{name}.weight is missing from the checkpoint")
        del module.weight
        pack = tensors.pack_tensor(parameter.data.to(torch.bfloat16), layout)
        pack._is_hf_initialized = True
        module.register_buffer(BUFFER, pack)


def pack_what_was_converted(model, layout):
    for name, module in list(model.named_modules()):
        if kind_of(module) is not None:
            values = module._parameters.get("weight")
            if values is None or values.dtype != torch.bfloat16:
                continue
            pack = pack_for(module, name, values.data, layout)
            if pack.numel() < 2 * values.numel():
                pack._is_hf_initialized = True
                become_packed(module, pack)
        elif is_experts(module):
            from .experts import hold_stack

            for parameter in stack_parameters(module):
                pack = pack_for(module, name, module._parameters[parameter].data, layout)
                pack._is_hf_initialized = True
                hold_stack(module, parameter, pack)


def tie(model, ties):
    for sharing, having, both_loaded in ties:
        target = model.get_submodule(sharing.rpartition(".")[0])
        source = model.get_submodule(having.rpartition(".")[0])
        pack = source._buffers.get(BUFFER)
        own = target._buffers.get(BUFFER)
        if both_loaded and (pack is None or own is None or not torch.equal(pack, own.to(pack.device))):
            continue  # both were in the checkpoint and differ: transformers does not tie such weights either
        if pack is None:  # it was not packed: not bf16, or packing would not pay
            untie_to_parameter(target, on_device_of(model, sharing, source.weight))
            continue
        target._buffers[BUFFER] = on_device_of(model, sharing, pack)
        model.all_tied_weights_keys[sharing + SUFFIX] = having + SUFFIX
    rename_ties(model, {sharing for sharing, _, _ in ties} | {having for _, having, _ in ties})


def on_device_of(model, name, tensor):
    """`tensor`, or a copy of it where a device map puts what is called `name` on another GPU."""
    from transformers.integrations.accelerate import get_device

    mapped = getattr(model, "hf_device_map", None)
    return placed(tensor, get_device(mapped, name)) if mapped else tensor


def untie_to_parameter(target, parameter):
    """A module that was to share a pack shares a parameter after all."""
    if isinstance(target, Packed):
        target._buffers.pop(BUFFER)
        change_class(target, target.glyd_base)
    target._parameters["weight"] = parameter


def rename_ties(model, packed_names):
    """tie_weights() called later finds the packs by their names."""
    from transformers import PreTrainedModel

    for path, module in model.named_modules():
        if not isinstance(module, PreTrainedModel) or not module._tied_weights_keys:
            continue
        prefix = path + "." if path else ""
        renamed = {}
        for target, source in module._tied_weights_keys.items():
            packed = {prefix + target, prefix + source} <= packed_names and is_packed_name(module, target)
            renamed[target + SUFFIX if packed else target] = source + SUFFIX if packed else source
        if renamed != module._tied_weights_keys:
            module._tied_weights_keys = renamed


def is_packed_name(module, name):
    return isinstance(module.get_submodule(name.rpartition(".")[0]), Packed)


def check_pack(name, pack):
    """A pack that the loader filled: there, whole, and what its header says."""
    if pack is None or pack.device.type == "meta" or not getattr(pack, "_is_hf_initialized", False):
        raise CorruptError(f"{name}{SUFFIX} is missing from the checkpoint")
    try:
        return info_of(pack)
    except CorruptError as error:
        raise CorruptError(f"{name}{SUFFIX}: {error}") from None


def check_loaded(name, module):
    for buffer, pack in module.glyd_packs():
        check_pack(f"{name}.{buffer.removesuffix(SUFFIX)}", pack)
    if isinstance(module, GlydExperts):
        check_stacks(name, module)
        return
    pack = getattr(module, BUFFER)
    if pack is None:
        raise CorruptError(f"{name}.{BUFFER} is missing from the checkpoint")
    needed = module.glyd_shape()
    found = tuple(tensors.shape_of(info_of(pack), 2))
    if found != needed or info_of(pack).stack != 1:
        raise CorruptError(f"{name}.{BUFFER} packs a tensor of shape {found}, the model needs {needed}")


def why_nothing_is_packed(model):
    if getattr(getattr(model, "hf_quantizer", None), "pre_quantized", False):
        return (
            "no weight of this packed directory is packed: its source's matrices were not bfloat16, and were carried "
            "as they are. Load the source itself (glyd.unpack gives it back) with glyd.from_pretrained(source, "
            "dtype=torch.bfloat16), which rounds its weights to bfloat16 and packs them."
        )
    dtypes = sorted({str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.dim() >= 2})
    if dtypes == ["bfloat16"]:
        return (
            "no weight of this model was packed: packing would not pay for any of its matrices. layout='fast' packs "
            "those that it makes smaller at all."
        )
    return (
        f"no weight of this model was packed: its matrices are {', '.join(dtypes) or 'absent'}, and glyd packs "
        "bfloat16. With dtype=torch.bfloat16 its weights are first rounded to bfloat16, which changes them."
    )


def repack(model, layout):
    done = {}
    for _, module in packed_modules(model):
        for owner in module.modules():
            for buffer, pack in list(owner._buffers.items()):
                if pack is None or not buffer.endswith(SUFFIX):
                    continue
                if id(pack) not in done:
                    info = info_of(pack)
                    values = tensors.decode(pack, dimensions=3 if info.stack != 1 else 2)
                    again = tensors.pack_tensor(values, layout, info.transposed)
                    again._is_hf_initialized = True
                    done[id(pack)] = (again, pack)  # the old pack is held so that its id stays its own
                owner._buffers[buffer] = done[id(pack)][0]


def choose_exact(model, asked):
    """(exact?, why, what is known of the products on a GPU or None)."""
    if asked is True or asked is False:
        return asked, f"exact={asked} was asked for", None
    summary = None
    if any_on_gpu(model):
        set_exact(model, True)
        summary = prepare_model(model)
        exact, reason = summary.worth_it(), summary.reason()
    else:  # exact where one token's exact product of the largest matrix costs at most 10% more
        ratio, rows, cols = exact_cost(model)
        exact = ratio <= MOST_EXACT_COST
        reason = f"an exact product of {rows}x{cols} takes {ratio:.1f} times as long as a free one on this CPU"
    say_choice(exact, reason)
    return exact, reason, summary


def say_choice(exact, reason):
    says = (
        "exact products (the bf16 model's bits)" if exact else "free products (exact=True gives the bf16 model's bits)"
    )
    print(f"glyd: {says}: {reason}", file=sys.stderr)


def any_on_gpu(model):
    return any(on_gpu(pack) for _, module in packed_modules(model) for _, pack in module.glyd_packs())


def can_be_compiled(model):
    """On a GPU, where every packed module but experts is a torch op."""
    return any_on_gpu(model) and not any(isinstance(module, GlydExperts) for _, module in packed_modules(model))


_cost_of_shape = {}


def exact_cost(model):
    best = None
    for _, module in packed_modules(model):
        if isinstance(module, PackedMatrix) and not isinstance(module, GlydConv1D):
            info = info_of(getattr(module, BUFFER))
            if best is None or info.bf16_bytes > best[0]:
                best = (info.bf16_bytes, info, getattr(module, BUFFER))
    if best is None:
        return 1.0, 0, 0
    _, info, pack = best
    shape = (info.rows, info.cols, info.layout, tensors.threads())
    if shape not in _cost_of_shape:
        x = torch.full((1, info.cols), 0.5, dtype=torch.bfloat16)
        with torch.no_grad():
            free = best_time(lambda: products.free(x, pack))
            _cost_of_shape[shape] = best_time(lambda: products.exact(x, pack)) / free
    return _cost_of_shape[shape], info.rows, info.cols


def best_time(call, runs=3):
    call()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def to_bf16(model, dtype=None):
    """The model with plain weights again."""
    made = []
    for _, module in packed_modules(model):
        names = module.glyd_parameters
        values = {name: getattr(module, name).to(dtype or module.glyd_dtype) for name in names}
        module.glyd_unbind()  # it holds the pack
        for name in [name for name in module._buffers if name.endswith(SUFFIX)]:
            del module._buffers[name]
        for name in [name for name, child in module._modules.items() if isinstance(child, Holder)]:
            del module._modules[name]
        change_class(module, module.glyd_base)
        for name, value in values.items():
            module._parameters[name] = nn.Parameter(value)
            made.append((module, name, module._parameters[name]))
    side.unlink(model)
    if hasattr(model, "all_tied_weights_keys"):
        tie_plain(model, made)
    return model


def tie_plain(model, made):
    """Ties weights that are plain again, each with those of its own GPU."""
    names = model.all_tied_weights_keys
    model.all_tied_weights_keys = {k.removesuffix(SUFFIX): v.removesuffix(SUFFIX) for k, v in names.items()}
    for module in model.modules():
        module.__dict__.pop("_tied_weights_keys", None)  # the class's own names the parameters
    model.tie_weights()
    for module, name, parameter in made:
        if module._parameters[name].device != parameter.device:
            module._parameters[name] = parameter
