"""The quantizer that transformers calls: it turns modules into packed ones around transformers' own loader.

Packed directory: modules are packed on the meta device, with placeholders of the packs' sizes, and the loader reads the
packs as it reads any tensor. bf16 checkpoint: the loader brings one tensor at a time, and each is packed as it arrives.
"""

import contextlib
import contextvars
import os
import re

import torch
from transformers.core_model_loading import ConversionOps, WeightConverter, WeightRenaming
from transformers.quantizers import auto
from transformers.quantizers.auto import (
    AUTO_QUANTIZER_MAPPING,
    register_quantization_config,
    register_quantizer,
)
from transformers.quantizers.base import HfQuantizer

from .._capi import lib
from .._errors import Error, InvalidArgumentError, MismatchError, UnsupportedError
from ..gpu.runtime import device_of, index_of, runtime
from . import finish, tensors
from .checking import check_packed
from .config import METHOD, GlydConfig
from .experts import GlydExperts, hold_list, hold_stack, is_experts
from .modules import become_packed, kind_of, place_for, placeholder
from .plan import Renamer, checkpoint_tensors, plan_packed
from .tensors import SUFFIX

INDEX_NAME = "glyd.safetensors.index.json"
BYTES_A_WEIGHT = 11.3 / 8  # for device maps, before anything is packed

_requested = contextvars.ContextVar("glyd_requested", default=None)


@contextlib.contextmanager
def requesting(config):
    """Options for a packed directory loaded in this context: its own config.json says only how it is packed."""
    token = _requested.set(config)
    try:
        yield
    finally:
        _requested.reset(token)


def register():
    if METHOD not in AUTO_QUANTIZER_MAPPING:
        register_quantization_config(METHOD)(GlydConfig)
        register_quantizer(METHOD)(GlydQuantizer)
        # Else a GlydConfig given for a packed directory would be dropped, exact=True with it.
        known = getattr(auto, "LOADING_ATTRIBUTES_CONFIG_TYPES", None)
        if isinstance(known, tuple):
            auto.LOADING_ATTRIBUTES_CONFIG_TYPES = (*known, GlydConfig)


class PackTensor(ConversionOps):
    """The last step of loading a bf16 tensor: its module becomes packed, the tensor its pack."""

    def __init__(self, quantizer):
        self.quantizer = quantizer

    def convert(self, input_dict, *, model=None, missing_keys=None, **_):
        out = {}
        for name, values in input_dict.items():
            values = values[0] if isinstance(values, list) else values
            try:
                pack = self.quantizer.pack_arriving(model, name, values)
            except (Error, torch.OutOfMemoryError) as error:  # the loader would go on, and report it among its own
                self.quantizer.options.failure = self.quantizer.options.failure or error
                raise
            if pack is None:
                out[name] = values
                continue
            out[name + SUFFIX] = pack
            if missing_keys is not None:
                missing_keys.discard(name)
        return out


class DecodePacks(ConversionOps):
    """The first step of a conversion some of whose sources are packed: transformers converts plain values."""

    def __init__(self, dtype):
        self.dtype = dtype

    def convert(self, input_dict, **_):
        return {
            pattern: [self._plain(tensor) for tensor in (found if isinstance(found, list) else [found])]
            for pattern, found in input_dict.items()
        }

    def _plain(self, tensor):
        if tensor.dtype != torch.uint8:
            return tensor
        info = tensors.info_of(tensor)
        return tensors.decode(tensor, dimensions=3 if info.stack != 1 else 2).to(self.dtype)


class GlydQuantizer(HfQuantizer):
    requires_calibration = False

    def __init__(self, quantization_config, **kwargs):
        super().__init__(quantization_config, **kwargs)
        wanted = _requested.get()
        self.options = wanted if self.pre_quantized and wanted is not None else quantization_config
        self.plan = None
        self.model = None  # while it is loaded
        self.compileable = False
        self.packable = {}  # bf16 checkpoint: the model's name of each tensor to pack -> "matrix" or "stack"
        self.decode_later = []  # packed directory: tensors of modules that cannot multiply packed
        self.spread_over = None  # the GPUs that a map such as "auto", which transformers makes, may use
        self.ties = []  # (name that shares, name that has the pack, whether both were in the checkpoint)

    # What transformers asks of a quantizer.

    def validate_environment(self, *args, device_map=None, **kwargs):
        lib()  # a missing library is an error here, not one for each tensor
        for target, source, _ in self.ties:  # see adjust_max_memory
            if (target, source) in self.model.all_tied_weights_keys.items():
                self.model.all_tied_weights_keys.pop(target)
        devices = list(device_map.values()) if isinstance(device_map, dict) else [device_map]
        check_devices(devices)
        if self.spread_over and {str(device) for device in devices} == {"cpu"}:
            raise UnsupportedError(
                "device_map: no layer of this model fits the memory that its GPUs have free (or that max_memory allows), "
                "so that all of it would be on the CPU. glyd.fit says how much it needs; layout='small' takes less, and "
                "device='cpu' puts it on the CPU."
            )

    def adjust_max_memory(self, max_memory):
        """transformers asks before it infers a device map, and calls validate_environment right after.

        In between, tied weights are in its list of ties again, so that they go to one GPU and share their pack.
        """
        self.model.all_tied_weights_keys |= {target: source for target, source, _ in self.ties}
        self.spread_over = [device for device, room in max_memory.items() if isinstance(device, int) and room]
        return max_memory

    def update_attn_implementation(self, config):
        return self._point_at_shards(config)

    def update_tp_plan(self, config):  # the hook of transformers 5.17 that sees the config this early
        return self._point_at_shards(config)

    def _point_at_shards(self, config):
        if self.pre_quantized:
            config.transformers_weights = INDEX_NAME
        return config

    def param_needs_quantization(self, model, param_name, **kwargs):
        return param_name in self.packable or param_name.endswith(SUFFIX)

    def param_element_size(self, model, param_name, param):
        return BYTES_A_WEIGHT if param_name in self.packable else param.element_size()

    def get_quantize_ops(self):
        return PackTensor(self)

    def get_weight_conversions(self):
        return []

    def is_serializable(self, *args, **kwargs):
        # transformers asks in save_pretrained alone, and its own error would not say what to do.
        raise InvalidArgumentError(
            "this model is packed: save it with glyd.save_pretrained(model, path), or save the bf16 model that "
            "model.dequantize() gives"
        )

    @property
    def is_trainable(self):
        return False

    @property
    def is_compileable(self):
        """Whether generate() with a static cache may be compiled: the products are torch ops. Experts are not."""
        return self.compileable and os.environ.get("GLYD_COMPILE", "1") != "0"

    # Before the weights are loaded.

    def _process_model_before_weight_loading(self, model, checkpoint_files=None, dtype=None, **kwargs):
        device_map = kwargs.get("device_map")
        check_devices(list(device_map.values()) if isinstance(device_map, dict) else [])
        found = checkpoint_tensors(checkpoint_files)
        if self.pre_quantized:
            if checkpoint_files and not self.options.checked:
                check_packed(os.path.dirname(checkpoint_files[0]), everything=self.options.verify)
            self.plan = plan_packed(model, found)
            self._place_packs(model, dtype)
            present = set(self.plan.plain)
        else:
            self._choose_packable(model)
            present = {Renamer(model).target(name)[0] for name in found} if found else set()
        self._plan_ties(model, present)
        self.model, self.dtype = model, dtype
        return model

    def _choose_packable(self, model):
        skip = self.options.modules_to_not_convert
        for name, module in model.named_modules():
            if any(name == part or name.endswith("." + part) or name.startswith(part + ".") for part in skip):
                continue
            if kind_of(module) is not None and module._parameters.get("weight") is not None:
                self.packable[f"{name}.weight"] = "matrix"
            elif is_experts(module):
                for parameter, value in module._parameters.items():
                    if value is not None and value.dim() == 3:
                        self.packable[f"{name}.{parameter}"] = "stack"

    def _place_packs(self, model, dtype):
        planned = PlannedDtypes(model, dtype)
        for target, key in self.plan.plain.items():
            place = place_for(self.plan.sizes[key])
            path, _, name = target.rpartition(".")
            module = model.get_submodule(path)
            if name == "weight" and kind_of(module) is not None:
                become_packed(module, place, planned.of(target, module.weight))
            elif (is_experts(module) or isinstance(module, GlydExperts)) and module._parameters[name].dim() == 3:
                hold_stack(module, name, place)
            else:
                self._decode_at_load(module, path, name, place, planned.of(target, getattr(module, name)))
        for target, parts in self.plan.experts.items():
            path, _, name = target.rpartition(".")
            module = model.get_submodule(path)
            count = module._parameters[name].shape[0]
            each = [
                [
                    (part.child, self.plan.sizes.get(part.key), self.plan.shapes.get(part.key))
                    for part in parts[e::count]
                ]
                for e in range(count)
            ]
            hold_list(module, name, each)

    def _decode_at_load(self, module, path, name, place, dtype):
        held_as = "parameter" if name in module._parameters else "buffer"
        held = (module._parameters if held_as == "parameter" else module._buffers).pop(name)
        module.register_buffer(name + SUFFIX, place)
        module.__dict__[name] = placeholder(held.shape, dtype)
        self.decode_later.append((path, name, held_as, dtype))

    def _plan_ties(self, model, present):
        """Tied tensors share one pack. transformers ties parameters, so packed ones leave its list while it loads."""
        for target, source in list(model.all_tied_weights_keys.items()):
            names = {"target": target, "source": source}
            if not all(self._is_to_pack(model, name) for name in names.values()):
                continue
            if target in present and source in present:
                self.ties.append((target, source, True))
            elif source in present or not present:
                self._leave_empty(model, target)
                self.ties.append((target, source, False))
            elif target in present:
                self._leave_empty(model, source)
                self.ties.append((source, target, False))
            else:
                continue
            model.all_tied_weights_keys.pop(target)

    def _is_to_pack(self, model, name):
        if not self.pre_quantized:
            return self.packable.get(name) == "matrix"
        path, _, last = name.rpartition(".")
        module = model.get_submodule(path)
        return last == "weight" and (
            name in self.plan.plain or (kind_of(module) is not None and self._pair_is_packed(model, name))
        )

    def _pair_is_packed(self, model, name):
        pairs = model.all_tied_weights_keys.items()
        return any(name in pair and any(other in self.plan.plain for other in pair) for pair in pairs)

    def _leave_empty(self, model, name):
        module = model.get_submodule(name.rpartition(".")[0])
        if kind_of(module) is not None:
            become_packed(module, None)
        self.packable.pop(name, None)

    def update_weight_conversions(self, weight_conversions, model=None):
        if not self.pre_quantized:
            return weight_conversions
        converted = {tuple(converter.source_patterns) for converter, _ in self.plan.converted}
        for entry in weight_conversions:
            if not isinstance(entry, WeightConverter):
                continue
            # Patterns of some versions would match `weight_glyd` as `weight`.
            entry.compiled_sources = re.compile(f"(?:{entry.compiled_sources.pattern})(?!{SUFFIX})")
            if tuple(entry.source_patterns) in converted:
                entry.operations = [DecodePacks(self.dtype), *entry.operations]
        keys = [re.escape(key) for _, keys in self.plan.converted for key in keys if key in self.plan.sizes]
        plain_names = [WeightRenaming(f"^({'|'.join(keys)}){SUFFIX}$", r"\1")] if keys else []
        conversions = plain_names + list(weight_conversions)
        return conversions + self._corrections(conversions)

    def _corrections(self, conversions):
        """Renamings for the packs that transformers' own patterns would not bring to their place."""
        model = self.model
        renamer = Renamer(model, conversions)
        wanted = {key + SUFFIX: target + SUFFIX for target, key in self.plan.plain.items()}
        for target, parts in self.plan.experts.items():
            path = target.rpartition(".")[0]
            for part in parts:
                if part.key in self.plan.sizes:
                    wanted[part.key + SUFFIX] = f"{path}.{part.child}.weight{SUFFIX}"
        out = []
        for key, target in wanted.items():
            if renamer.target(key)[0] != target:
                out.append(WeightRenaming(f"^{re.escape(renamer.renamed_only(key))}$", target))
        return out

    # While and after the weights are loaded.

    def pack_arriving(self, model, name, values):
        """The pack of an arriving tensor, its module packed; None where it is not bf16 or packing would not pay."""
        if self.packable.get(name) is None:
            return None
        dtype = values.dtype
        if dtype != torch.bfloat16:
            if not tensors.is_bf16_exactly(values):
                return None
            values = values.to(torch.bfloat16)
        module = model.get_submodule(name.rpartition(".")[0])
        pack = finish.pack_for(module, name, values, self.options.layout)
        if pack.numel() >= values.numel() * 2:
            return None
        if self.options.verify and not tensors.same_bits(tensors.decode(pack, dimensions=values.dim()), values):
            raise MismatchError(f"{name}: decoding its pack does not give its bf16 values back; please report it")
        if self.packable[name] == "matrix":
            become_packed(module, place_for(pack.numel()), dtype)
        else:
            hold_stack(module, name.rpartition(".")[2], place_for(pack.numel()))
        return pack

    def _process_model_after_weight_loading(self, model, **kwargs):
        self.model = None
        check_devices(list((getattr(model, "hf_device_map", None) or {}).values()))
        if hasattr(model.config, "transformers_weights"):
            del model.config.transformers_weights
        finish.finish_loading(model, self)
        self.compileable = bool(self.options.compile) and finish.can_be_compiled(model)
        return model

    def _dequantize(self, model, dtype=None):
        return finish.to_bf16(model, dtype)


class PlannedDtypes:
    """The dtype each parameter is to have: transformers keeps some modules in float32."""

    def __init__(self, model, dtype):
        from transformers.core_model_loading import build_glob_alternation

        self._plan = model._get_dtype_plan(dtype) if dtype is not None else {}
        if self._plan:
            self._search, self._group_to_glob, _ = build_glob_alternation(list(self._plan))

    def of(self, name, parameter):
        match = self._search.search(name) if self._plan else None
        return self._plan[self._group_to_glob[match.lastgroup]] if match else parameter.dtype


def check_devices(devices):
    """Raises where packed weights cannot be multiplied on one of these devices of a device map."""
    named = {device if isinstance(device, int) else str(device) for device in devices if device is not None}
    named -= {"auto", "balanced", "balanced_low_0", "sequential", "meta"}
    if "disk" in named:
        raise UnsupportedError("device_map: packed weights cannot be offloaded to disk; use device_map='cpu'")
    gpus = {device for device in named if device != "cpu"}
    if gpus and "cpu" in named:
        raise UnsupportedError(
            "device_map: part of the model would be on the CPU and part on a GPU. Packed weights are not offloaded: "
            "use a GPU (or several) that holds the model (glyd.fit says how much it needs), layout='small', or "
            "device='cpu' for all of it."
        )
    for device in gpus:
        number = device if isinstance(device, int) else index_of(device) if is_gpu(device) else None
        if number is None:
            raise UnsupportedError(f"device {device}: packed weights run on NVIDIA GPUs and on the CPU")
        device_of(number)


def is_gpu(device):
    return device.isdigit() or torch.device(device).type == runtime.type


register()
