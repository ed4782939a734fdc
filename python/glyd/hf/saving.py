"""glyd.save_pretrained: a packed model in memory as a packed checkpoint (docs/spec/checkpoint.md, kind "memory")."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from .._capi import lib
from .._errors import InvalidArgumentError
from . import tensors
from .config import FORMAT, METHOD
from .modules import packed_modules
from .staging import Staging
from .tensors import SUFFIX, info_of

SHARD_BYTES = 5_000_000_000  # of bf16 a shard
ALIGNMENT = 128
MODE = 0o644
DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
}


@dataclass
class Entry:
    """One tensor of the model: `name`, `shape` and `dtype` are the bf16 model's."""

    name: str
    dtype: str
    shape: tuple
    tensor: torch.Tensor  # the pack, or the carried tensor
    packed: bool

    @property
    def source_bytes(self):
        return info_of(self.tensor).bf16_bytes if self.packed else self.tensor.numel() * self.tensor.element_size()

    @property
    def stored_bytes(self):
        return self.tensor.numel() * self.tensor.element_size()


def save_pretrained(model, path, *, layout=None, tokenizer=None, overwrite=False):
    """Writes `model`, packed, to the new directory `path`.

    layout     None: each pack as it is; "fast" or "small": packed again where it is another.
    tokenizer  a tokenizer or processor (anything with save_pretrained) to be written beside the model.
    overwrite  replace a packed checkpoint at `path`; refused if that would lose files in it that the new one lacks.
    Returns {"target", "layout", "tensors_packed", "tensors_carried", "bf16_bytes", "packed_bytes"}, as glyd.pack does.
    Load it with glyd.from_pretrained or, after `import glyd`, with transformers. glyd.unpack gives bf16 files.
    """
    if layout not in (None, "fast", "small"):
        raise InvalidArgumentError(f"layout {layout!r}: None, 'fast' or 'small'")
    if not packed_modules(model):
        raise InvalidArgumentError(
            "this model has no packed modules: load it with glyd.from_pretrained, or use model.save_pretrained"
        )
    entries = model_entries(model, layout)
    with Staging(path, overwrite) as staging:
        write_checkpoint(model, entries, layout or main_layout(entries), tokenizer, staging)
    packed = [entry for entry in entries if entry.packed]
    return {
        "target": str(staging.target),
        "layout": layout or main_layout(entries),
        "tensors_packed": len(packed),
        "tensors_carried": len(entries) - len(packed),
        "bf16_bytes": sum(entry.source_bytes for entry in packed),
        "packed_bytes": sum(entry.stored_bytes for entry in packed),
    }


def main_layout(entries):
    layouts = [info_of(entry.tensor).layout for entry in entries if entry.packed]
    return max(("fast", "small"), key=layouts.count)


def model_entries(model, layout):
    """Every tensor of the model once, in the order of its state dict; tied ones under their first name."""
    dimensions = {name + SUFFIX: 3 if stack else 2 for name, stack in packed_names(model)}
    seen, entries = set(), []
    state = model.state_dict()
    ties = model.all_tied_weights_keys
    for name, tensor in state.items():
        if ties.get(name) in state and name.endswith(SUFFIX):
            continue  # a copy of its pack on another GPU
        identity = (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.shape)
        if identity in seen and tensor.numel() > 0:
            continue
        seen.add(identity)
        entries.append(entry_of(name, tensor, dimensions.get(name), layout))
    return entries


def packed_names(model):
    """(name of the bf16 tensor, is it a stack) of each pack."""
    for path, module in packed_modules(model):
        for buffer, _ in module.glyd_packs():
            name = buffer.removesuffix(SUFFIX)
            yield f"{path}.{name}", "." not in name and name in getattr(module, "glyd_stacks", {})


def entry_of(name, tensor, dimensions, layout):
    if dimensions is None:
        return Entry(name, dtype_name(name, tensor), tuple(tensor.shape), tensor.contiguous(), False)
    name = name.removesuffix(SUFFIX)
    info = info_of(tensor)
    shape = tuple(tensors.shape_of(info, dimensions))
    if layout is not None and layout != info.layout:
        tensor = tensors.pack_tensor(tensors.decode(tensor, dimensions=dimensions), layout, info.transposed)
        info = info_of(tensor)
    if info.layout == "raw" or tensor.numel() >= info.bf16_bytes:
        return Entry(name, "BF16", shape, tensors.decode(tensor, dimensions=dimensions), False)
    return Entry(name, "BF16", shape, tensor, True)


def dtype_name(name, tensor):
    try:
        return DTYPES[tensor.dtype]
    except KeyError:
        raise InvalidArgumentError(f"{name}: a tensor of {tensor.dtype} cannot be saved") from None


def write_checkpoint(model, entries, layout, tokenizer, staging):
    shards = split(entries)
    # The small files first: with them it is known what a target that is replaced would lose.
    version = lib().glyd_version().decode()
    config = write_configs(model, layout, version, staging.new)
    extra_files(model, entries, shards, tokenizer, staging.new)
    staging.refuse_to_lose()
    source_files, records, weight_map = [], {}, {}
    total = 0
    for number, shard in enumerate(shards):
        names = shard_names(number, len(shards))
        source_files.append(write_shard(shard, names, staging.new))
        for entry in shard:
            records[entry.name] = tensor_record(entry, number)
            weight_map[entry.name + (SUFFIX if entry.packed else "")] = names[1]
            total += entry.stored_bytes
    index = json_bytes({"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))})
    write_file(staging.new / "glyd.safetensors.index.json", index)
    made = {name for shard in source_files for name in (shard["shard"],)}
    made |= {"glyd.safetensors.index.json", "config.json", "glyd-source/config.json"}
    manifest = {
        "format": FORMAT,
        "glyd_version": version,
        "layout": layout,
        "source": {"kind": "memory", "name": name_of(model), "repo": None, "revision": None},
        "source_files": source_files,
        "tensors": records,
        "files": carried_files(staging.new, made),
        "directories": [],
        "config": config,
        "index_sha256": hashlib.sha256(index).hexdigest(),
    }
    write_file(staging.new / "glyd.json", sealed(manifest))


def name_of(model):
    """What fit and inspect call it: the name of the directory or repo that it came from, where that is known."""
    came_from = str(getattr(model.config, "_name_or_path", "") or "").rstrip("/")
    if "/" in came_from and not os.path.exists(came_from):
        return came_from  # a repo id
    return Path(came_from).name or type(model).__name__


def split(entries):
    shards, size = [[]], 0
    for entry in entries:
        if shards[-1] and size + entry.source_bytes > SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append(entry)
        size += entry.source_bytes
    return shards


def shard_names(number, count):
    tail = f"{number + 1:05d}-of-{count:05d}.safetensors"
    return ("model.safetensors" if count == 1 else f"model-{tail}", f"glyd-{tail}")


def header_bytes(entries, sizes, metadata, alignment):
    """The JSON header of a safetensors file with these tensors in this order."""
    header, offset = {"__metadata__": metadata}, 0
    for (name, dtype, shape), size in zip(entries, sizes, strict=True):
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return text + b" " * (-(8 + len(text)) % alignment)


def write_shard(shard, names, directory):
    source_name, shard_name = names
    source = header_bytes(
        [(e.name, e.dtype, e.shape) for e in shard], [e.source_bytes for e in shard], {"format": "pt"}, 8
    )
    stored = [e for e in shard if e.packed] + [e for e in shard if not e.packed]
    described = [(e.name + SUFFIX, "U8", (e.stored_bytes,)) if e.packed else (e.name, e.dtype, e.shape) for e in stored]
    header = header_bytes(described, [e.stored_bytes for e in stored], {"format": "pt", "glyd": FORMAT}, ALIGNMENT)
    start = len(header).to_bytes(8, "little") + header
    with open(directory / shard_name, "wb") as out:
        out.write(start)
        for entry in stored:
            out.write(memoryview_of(entry.tensor))
        out.flush()
        os.fsync(out.fileno())
    return {
        "path": source_name,
        "bytes": 8 + len(source) + sum(e.source_bytes for e in shard),
        "mode": MODE,
        "header": source.decode(),
        "sha256": None,
        "shard": shard_name,
        "shard_bytes": len(start) + sum(e.stored_bytes for e in stored),
        "shard_header_sha256": hashlib.sha256(start).hexdigest(),
    }


def memoryview_of(tensor):
    flat = tensor.detach().contiguous().view(-1).cpu()
    if flat.numel() == 0:
        return b""
    return memoryview(flat.view(torch.uint8).numpy())


def tensor_record(entry, file):
    record = {"file": file, "dtype": entry.dtype, "shape": list(entry.shape)}
    if not entry.packed:
        return record | {"sha256": hashlib.sha256(memoryview_of(entry.tensor)).hexdigest(), "packed": None}
    decoded = tensors.decode(entry.tensor, dimensions=len(entry.shape))
    found = tensors.pack_info(entry.tensor)
    layout = info_of(entry.tensor).layout
    members = ("base", "slot_bytes") if layout == "fast" else ("min_bits", "symbols")
    packed = {
        "layout": layout,
        "reduction_axis": -2 if info_of(entry.tensor).transposed else -1,
        "bytes": entry.stored_bytes,
        "parameters": {name: getattr(found, name) for name in members},
    }
    return record | {"sha256": hashlib.sha256(memoryview_of(decoded)).hexdigest(), "packed": packed}


def write_configs(model, layout, version, directory):
    config = json.loads(model.config.to_json_string(use_diff=True))
    for name in ("quantization_config", "transformers_weights", "_name_or_path"):
        config.pop(name, None)
    config["architectures"] = [type(model).__name__]
    original = json_bytes(config)
    (directory / "glyd-source").mkdir()
    write_file(directory / "glyd-source" / "config.json", original)
    config["quantization_config"] = {
        "quant_method": METHOD,
        "format": FORMAT,
        "layout": layout,
        "glyd_version": version,
    }
    edited = json_bytes(config)
    write_file(directory / "config.json", edited)
    return {
        "sha256": hashlib.sha256(edited).hexdigest(),
        "original": "glyd-source/config.json",
        "original_sha256": hashlib.sha256(original).hexdigest(),
        "original_bytes": len(original),
        "original_mode": MODE,
    }


def extra_files(model, entries, shards, tokenizer, directory):
    """Files that come back with unpack: the generation config, the tokenizer's, the index of several bf16 shards."""
    if model.can_generate():
        model.generation_config.save_pretrained(directory)
    if tokenizer is not None:
        tokenizer.save_pretrained(directory)
    if len(shards) > 1:
        weight_map = {e.name: shard_names(n, len(shards))[0] for n, shard in enumerate(shards) for e in shard}
        index = {"metadata": {"total_size": sum(e.source_bytes for e in entries)}, "weight_map": weight_map}
        write_file(directory / "model.safetensors.index.json", json_bytes(index))


def carried_files(directory, made):
    files = []
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        name = path.relative_to(directory).as_posix()
        if name not in made:
            data = path.read_bytes()
            mode = path.stat().st_mode & 0o777
            files.append({"path": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "mode": mode})
    return sorted(files, key=lambda file: file["path"].encode())


def sealed(manifest):
    """The manifest's bytes, its own hash in its last member."""
    zeros = "0" * 64
    blank = json_bytes(manifest | {"document_sha256": zeros})
    digest = hashlib.sha256(blank).hexdigest()
    head, tail = blank.rsplit(zeros.encode(), 1)
    return head + digest.encode() + tail


def json_bytes(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_file(path, data):
    with open(Path(path), "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
