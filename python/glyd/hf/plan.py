"""Where each tensor of a checkpoint goes in a model: transformers' own renaming, asked before it loads weights."""

import json
import os
from dataclasses import dataclass, field

from .._errors import CorruptError
from .tensors import SUFFIX

MAX_HEADER_BYTES = 100_000_000  # the safetensors library's own limit


def safetensors_header(path):
    """The JSON header of a safetensors file: {tensor: {"dtype", "shape", "data_offsets"}}."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MAX_HEADER_BYTES:
            raise CorruptError(
                f"{path}: its safetensors header claims {length} bytes; the file is damaged or is not safetensors"
            )
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise CorruptError(f"{path}: its safetensors header is not JSON ({error})") from None
    header.pop("__metadata__", None)
    return header


def checkpoint_tensors(files):
    """{tensor: (dtype, shape)} of all files of a checkpoint."""
    found = {}
    for path in files or []:
        if str(path).endswith(".safetensors"):
            header = safetensors_header(path)
            found |= {name: (entry["dtype"], tuple(entry["shape"])) for name, entry in header.items()}
        else:
            import torch

            state = torch.load(os.fspath(path), map_location="meta", weights_only=True)
            found |= {name: (str(tensor.dtype), tuple(tensor.shape)) for name, tensor in state.items()}
    return found


class Renamer:
    """transformers' key renaming for one model, as its loader will apply it."""

    def __init__(self, model, conversions=None):
        from transformers import core_model_loading
        from transformers.conversion_mapping import get_model_conversion_mapping

        self._rename = core_model_loading.rename_source_key
        if conversions is None:
            conversions = get_model_conversion_mapping(model)
        self.renamings = [entry for entry in conversions if isinstance(entry, core_model_loading.WeightRenaming)]
        self.converters = [entry for entry in conversions if isinstance(entry, core_model_loading.WeightConverter)]
        self.of_pattern = {pattern: entry for entry in self.converters for pattern in entry.source_patterns}
        self.prefix = model.base_model_prefix
        self.state = model.state_dict()

    def target(self, key):
        """(the model's name of checkpoint tensor `key` or None, the converter behind it and its pattern or None)."""
        name, pattern = self._rename(key, self.renamings, self.converters, self.prefix, self.state)
        if name not in self.state:
            if key in self.state:
                return key, None
            return None, None
        return name, None if pattern is None else (self.of_pattern[pattern], pattern)

    def renamed_only(self, key):
        """The key after renamings, before any conversion."""
        return self._rename(key, self.renamings, [], None, None)[0]


@dataclass
class ExpertPart:
    key: str  # of the bf16 tensor in the checkpoint, without the suffix
    pattern: int  # which of the converter's sources: parts of one expert follow each other in this order
    child: str = ""  # its name below the experts module


@dataclass
class Plan:
    """What a packed checkpoint's tensors become."""

    plain: dict = field(default_factory=dict)  # model's name -> checkpoint key of its pack
    experts: dict = field(default_factory=dict)  # model's name of a merged stack -> list of ExpertPart
    converted: list = field(default_factory=list)  # (converter, keys): decoded, then converted by transformers
    sizes: dict = field(default_factory=dict)  # checkpoint key (without suffix) -> bytes of its pack
    shapes: dict = field(default_factory=dict)  # checkpoint key -> shape, of carried tensors
    targets: dict = field(default_factory=dict)  # checkpoint key as stored -> the model's name to load it under


def is_merge_of_experts(converter):
    """Experts stored one by one, stacked and joined along their outputs: packs can stay as they are."""
    kinds = [(type(op).__name__, getattr(op, "dim", None)) for op in converter.operations]
    return kinds in ([("MergeModulelist", 0)], [("MergeModulelist", 0), ("Concatenate", 1)])


def child_of(renamed, target):
    """`...experts.3.gate_proj.weight` below the module of `...experts.gate_up_proj` -> `3.gate_proj`."""
    module = target.rpartition(".")[0]
    last = module.rpartition(".")[2]
    at = renamed.rfind(f"{last}.")
    if at < 0 or not renamed.endswith(".weight") or not (at == 0 or renamed[at - 1] == "."):
        return None
    return renamed[at + len(last) + 1 : -len(".weight")]


def plan_packed(model, tensors):
    """The plan of a packed checkpoint with these tensors (as checkpoint_tensors gives them)."""
    renamer = Renamer(model)
    plan = Plan()
    keys = {name.removesuffix(SUFFIX): name.endswith(SUFFIX) for name in tensors}
    by_converter = {}
    for key, packed in keys.items():
        dtype, shape = tensors[key + SUFFIX if packed else key]
        if packed:
            plan.sizes[key] = shape[0]
        else:
            plan.shapes[key] = shape
        target, conversion = renamer.target(key)
        if target is None:
            continue
        if conversion is not None:
            by_converter.setdefault((id(conversion[0]), target), (conversion[0], []))[1].append((key, conversion[1]))
        elif packed:
            plan.plain[target] = key
    for (_, target), (converter, found) in by_converter.items():
        if any(keys[key] for key, _ in found):
            _plan_conversion(model, renamer, plan, target, converter, found)
    return plan


def _plan_conversion(model, renamer, plan, target, converter, found):
    from transformers.core_model_loading import dot_natural_key

    from .experts import is_experts

    module = model.get_submodule(target.rpartition(".")[0])
    order = list(converter.source_patterns)
    parts = [ExpertPart(key, order.index(pattern)) for key, pattern in found]
    for part in parts:
        part.child = child_of(renamer.renamed_only(part.key), target)
    count = renamer.state[target].shape[0]
    keepable = is_experts(module) and is_merge_of_experts(converter) and all(part.child for part in parts)
    if keepable and len(parts) == count * len({part.pattern for part in parts}):
        parts.sort(key=lambda part: (part.pattern, dot_natural_key(part.key)))
        plan.experts[target] = parts
    else:
        plan.converted.append((converter, [key for key, _ in found]))
