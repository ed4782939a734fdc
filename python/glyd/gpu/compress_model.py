"""glyd.gpu.compress: a loaded bf16 model, packed in place, a tensor at a time."""

import torch

from .._errors import MismatchError, UnsupportedError
from ..hf import finish, tensors
from ..hf.config import GlydConfig
from ..hf.experts import hold_stack, is_experts, stack_parameters
from ..hf.modules import become_packed, kind_of, packed_modules, where_it_runs


def compress(model, *, layout="auto", exact="auto", merge=True, compile=True, verify=False):
    """Packs every Linear, embedding, untied head and stack of experts of `model`, where its weights lie.

    layout   "auto" and "fast", or "small". exact, merge: as in glyd.from_pretrained.
    compile  transformers compiles generate() with a static cache of a model that it did not load packed; False: not.
    verify   every pack is decoded and compared before its weight is let go.
    Needs, besides the model, room for the largest weight's pack twice. Gives `model`.
    """
    options = GlydConfig(layout=layout, exact=exact, merge=merge, verify=verify, compile=compile)
    if packed_modules(model):
        raise UnsupportedError("this model is packed already: save it and load it with layout=... to change its layout")
    names = ties_of(model)
    shared = {}  # id of a parameter -> (parameter, its pack), for tied ones
    for _, module in list(model.named_modules()):
        pack_module(module, options.layout, verify, shared)
    shared.clear()
    modules = packed_modules(model)
    if not modules:
        raise UnsupportedError(finish.why_nothing_is_packed(model))
    for _, module in modules:
        module.glyd_ready = True
    if names:
        tie_names(model, names)
    finish.settle(model, options.exact, merge=options.merge)
    if not compile and getattr(model, "generation_config", None) is not None:
        model.generation_config.disable_compile = True
    return model


def ties_of(model):
    """{name that shares: name it shares with}, where the two are one parameter."""
    found = {}
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for target, source in (getattr(model, "all_tied_weights_keys", None) or {}).items():
        if target in parameters and parameters[target] is parameters.get(source):
            found[target] = source
    return found


def tie_names(model, names):
    """tie_weights(), called later, finds the packs by their names."""
    packed = {f"{path}.weight" for path, _ in packed_modules(model)}
    for target, source in names.items():
        if {target, source} <= packed:
            model.all_tied_weights_keys.pop(target, None)
            model.all_tied_weights_keys[target + tensors.SUFFIX] = source + tensors.SUFFIX
    finish.rename_ties(model, packed)


def pack_module(module, layout="fast", verify=False, shared=None):
    """Packs the weights of one module, if it is of a kind that can be and they are bf16. Gives whether it did."""
    if kind_of(module) is not None:
        names = ["weight"]
    elif is_experts(module):
        names = stack_parameters(module)
    else:
        return False
    done = False
    for name in names:
        parameter = module._parameters.get(name)
        if parameter is None or parameter.dtype != torch.bfloat16 or parameter.device.type == "meta":
            continue
        known = None if shared is None else shared.get(id(parameter))
        pack = known[1] if known else packed_parameter(module, name, parameter.data, layout, verify)
        if shared is not None:
            shared[id(parameter)] = (parameter, pack)  # held, so that its id stays its own
        if pack is None:
            continue
        done = True
        pack = where_it_runs(module, pack)
        if name == "weight" and kind_of(module) is not None:
            become_packed(module, pack)
        else:
            hold_stack(module, name, pack)
        parameter.data = parameter.data.new_empty(0)  # whoever else holds the parameter, its memory is free
    return done


def packed_parameter(module, name, values, layout, verify):
    pack = finish.pack_for(module, name, values, layout)
    if pack.numel() >= 2 * values.numel():
        return None
    if verify and not tensors.same_bits(tensors.decode(pack, dimensions=values.dim()), values):
        raise MismatchError(f"{name}: decoding its pack does not give its bf16 values back; please report it")
    pack._is_hf_initialized = True
    return pack
