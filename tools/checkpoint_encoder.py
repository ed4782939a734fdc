"""A slow, plain packer of checkpoints, written from docs/spec/checkpoint.md alone: what tools/make_vectors.py makes its directories with.

Independent of the library, as pack_encoder.py is, and able to leave any rule broken on purpose. Section numbers are those of the spec.
"""

import hashlib
import json
import math
import struct
from dataclasses import dataclass, field

from pack_encoder import Tensor, encode_fast, encode_small

FORMAT, VERSION = "glyd-x1", "0.1.0"
INDEX = "glyd.safetensors.index.json"
BITS = {"BF16": 16, "F16": 16, "F32": 32, "I64": 64, "I8": 8, "BOOL": 8, "F8_E4M3": 8, "F4": 4}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@dataclass
class SourceTensor:
    name: str
    dtype: str
    shape: list
    data: bytes
    layout: str = None  # packed in it
    transposed: bool = False

    def __post_init__(self):
        assert math.prod(self.shape) * BITS[self.dtype] == 8 * len(self.data), self.name

    def pack(self):
        """The pack's bytes and the manifest's `packed` (3)."""
        stack, a, b = [1] * (3 - len(self.shape)) + self.shape
        rows, cols = (b, a) if self.transposed else (a, b)
        values = list(struct.unpack(f"<{len(self.data) // 2}H", self.data))
        tensor = Tensor(stack, rows, cols, values, self.transposed)
        pack = encode_fast(tensor) if self.layout == "fast" else encode_small(tensor)
        data = pack.build()
        if self.layout == "fast":
            base, slot_bytes = struct.unpack_from("<BxH", data, 72)
            parameters = {"base": base, "slot_bytes": slot_bytes}
        else:
            min_bits, symbols = struct.unpack_from("<HB", data, 72)
            parameters = {"min_bits": min_bits, "symbols": symbols}
        entry = {"layout": self.layout, "reduction_axis": -2 if self.transposed else -1, "bytes": len(data), "parameters": parameters}
        return data, entry


@dataclass
class SourceFile:
    path: str
    tensors: list  # in data order
    header: str = None  # a header of its own making, for tensors listed in another order

    def text(self):
        if self.header is not None:
            return self.header
        entries, at = {"__metadata__": {"format": "pt"}}, 0
        for t in self.tensors:
            entries[t.name] = {"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, at + len(t.data)]}
            at += len(t.data)
        text = compact(entries)
        return text + " " * (-len(text.encode()) % 8)

    def bytes(self):
        header = self.text().encode()
        return struct.pack("<Q", len(header)) + header + b"".join(t.data for t in self.tensors)


@dataclass
class Checkpoint:
    """A source and how it is packed. `edit_*` functions, where given, change a part before what hashes it is made."""

    source_files: list
    files: dict = field(default_factory=dict)  # path -> bytes, carried
    directories: list = field(default_factory=list)
    config: bytes = None
    kind: str = "directory"
    layout: str = "fast"
    hash_files: bool = False
    edit_shard_header: object = None  # (shard number, entries as a dict) -> entries
    edit_shard_text: object = None  # (shard number, header text) -> text
    edit_pack: object = None  # (name, pack's bytes) -> bytes
    edit_index: object = None  # index as a dict -> dict
    edit_config: object = None  # edited config.json as a dict -> dict
    edit_manifest: object = None  # manifest as a dict -> None, in place
    edit_text: object = None  # glyd.json's text before its hash is put in -> text
    edit_document: object = None  # glyd.json's bytes, hash and all -> bytes

    def shard_names(self):
        return [f"glyd-{i + 1:05}-of-{len(self.source_files):05}.safetensors" for i in range(len(self.source_files))]

    def shard(self, number, tensors_out):
        """A shard's header and data (2); tells the manifest's `tensors` about it."""
        stored = []
        for t in self.source_files[number].tensors:
            entry = {"file": number, "dtype": t.dtype, "shape": t.shape, "sha256": sha256(t.data), "packed": None}
            if t.layout:
                data, entry["packed"] = t.pack()
                data = self.edit_pack(t.name, data) if self.edit_pack else data
                stored.append((f"{t.name}_glyd", "U8", [len(data)], data))
            tensors_out[t.name] = entry
        stored += [(t.name, t.dtype, t.shape, t.data) for t in self.source_files[number].tensors if not t.layout]
        entries, at = {"__metadata__": {"format": "pt", "glyd": FORMAT}}, 0
        for name, dtype, shape, data in stored:
            entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
        entries = self.edit_shard_header(number, entries) if self.edit_shard_header else entries
        text = compact(entries)
        text += " " * (-(8 + len(text.encode())) % 128)
        text = self.edit_shard_text(number, text) if self.edit_shard_text else text
        header = text.encode()
        return struct.pack("<Q", len(header)) + header, b"".join(data for *_, data in stored)

    def manifest(self, shards, tensors, index, config):
        source_files = []
        for file, name, (header, data) in zip(self.source_files, self.shard_names(), shards, strict=True):
            whole = file.bytes()
            source_files.append({
                "path": file.path, "bytes": len(whole), "mode": 0o644, "header": file.text(), "sha256": sha256(whole) if self.hash_files else None,
                "shard": name, "shard_bytes": len(header) + len(data), "shard_header_sha256": sha256(header)})
        kept = None
        if config is not None:
            kept = {"sha256": sha256(config), "original": "glyd-source/config.json", "original_sha256": sha256(self.config),
                    "original_bytes": len(self.config), "original_mode": 0o644}
        return {
            "format": FORMAT, "glyd_version": VERSION, "layout": self.layout,
            "source": {"kind": self.kind, "name": "model", "repo": None, "revision": None},
            "source_files": source_files, "tensors": dict(sorted(tensors.items())),
            "files": [{"path": path, "bytes": len(self.files[path]), "sha256": sha256(self.files[path]), "mode": 0o644} for path in sorted(self.files)],
            "directories": sorted(self.directories), "config": kept, "index_sha256": sha256(index), "document_sha256": "0" * 64}

    def stored_bytes(self, tensors):
        """Of all tensors in the shards, as the manifest has them."""
        sizes = ((tensors[t.name]["packed"], len(t.data)) for file in self.source_files for t in file.tensors)
        return sum(packed["bytes"] if packed else size for packed, size in sizes)

    def packed(self):
        """{path: bytes} of the packed directory."""
        tensors, shards = {}, []
        for number in range(len(self.source_files)):
            shards.append(self.shard(number, tensors))
        weight_map = {name + "_glyd" * (entry["packed"] is not None): self.shard_names()[entry["file"]] for name, entry in sorted(tensors.items())}
        index = {"metadata": {"total_size": self.stored_bytes(tensors)}, "weight_map": dict(sorted(weight_map.items()))}
        index = self.edit_index(index) if self.edit_index else index
        index = (json.dumps(index, indent=2) + "\n").encode()
        out = {INDEX: index} | self.files
        config = None
        if self.config is not None:
            config = json.loads(self.config) | {
                "quantization_config": {"quant_method": "glyd", "format": FORMAT, "layout": self.layout, "glyd_version": VERSION}}
            config = self.edit_config(config) if self.edit_config else config
            config = (json.dumps(config, indent=2) + "\n").encode()
            out |= {"config.json": config, "glyd-source/config.json": self.config}
        for name, (header, data) in zip(self.shard_names(), shards, strict=True):
            out[name] = header + data
        out["glyd.json"] = self.manifest_text(self.manifest(shards, tensors, index, config))
        return out

    def manifest_text(self, manifest):
        if self.edit_manifest:
            self.edit_manifest(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        text = self.edit_text(text) if self.edit_text else text
        place = text.rfind("0" * 64)
        if place >= 0:  # a broken document may have no place for its hash
            text = text[:place] + sha256(text.encode()) + text[place + 64 :]
        return self.edit_document(text.encode()) if self.edit_document else text.encode()

    def source(self):
        """{path: bytes} of what unpack must restore; a file source is {"": bytes}."""
        if self.kind == "file":
            return {"": self.source_files[0].bytes()}
        out = {file.path: file.bytes() for file in self.source_files} | self.files
        return out | ({"config.json": self.config} if self.config is not None else {})
