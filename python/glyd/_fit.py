"""The answer of glyd.fit, and reading a model's headers from the Hub without its weights."""

import contextlib
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field

from ._errors import NotFoundError


def size(count):
    """Bytes as `glyd fit` prints them: "22.4 GiB"."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    digits = 0 if units[0] == "B" or value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {units[0]}"


@dataclass(frozen=True)
class FitRow:
    layout: str
    weights_bytes: int
    total_bytes: int
    fits: bool
    measured: bool


@dataclass(frozen=True)
class Fit:
    """Weights, KV cache and working memory of a model against a GPU, for bf16 and each layout."""

    document: dict = field(repr=False)

    def __getattr__(self, name):
        if name.startswith("_") or name == "document" or name not in self.document:
            raise AttributeError(name)
        return self.document[name]

    @property
    def rows(self):
        names = FitRow.__dataclass_fields__
        return [FitRow(**{name: row[name] for name in names}) for row in self.document["rows"]]

    def row(self, layout):
        return next(row for row in self.rows if row.layout == layout)

    def to_dict(self):
        return json.loads(json.dumps(self.document))

    def __str__(self):
        head = (
            f"{self.model}: context {self.context}, batch {self.batch}, GPU {size(self.gpu_bytes)}\n"
            f"KV cache {size(self.kv_cache_bytes)}, working memory {size(self.runtime_bytes)}\n"
        )
        lines = [f"{'layout':8}{'weights':>12}{'in all':>12}  fits"]
        for row in self.rows:
            verdict = ("yes" if row.fits else "no") + ("" if row.measured else "  (estimated)")
            lines.append(f"{row.layout:8}{size(row.weights_bytes):>12}{size(row.total_bytes):>12}  {verdict}")
        if self.max_context is not None and self.context > self.max_context:
            lines.append(f"The model is made for {self.max_context:,} tokens of context.")
        return head + "\n".join(lines)

    __repr__ = __str__


def looks_like_repo_id(name):
    name = os.fspath(name)
    return isinstance(name, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not os.path.exists(name)


@contextlib.contextmanager
def headers_from_hub(repo_id, revision, token, missing):
    """A temporary directory with the repo's config and its safetensors headers over holes: right sizes, no weights."""
    try:
        import huggingface_hub
    except ImportError:
        raise NotFoundError(
            f"{missing} With the package huggingface_hub installed, its headers would be read from the Hub."
        ) from missing
    directory = tempfile.mkdtemp(prefix="glyd-fit-")
    try:
        _fetch_headers(huggingface_hub, repo_id, revision, token, directory)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _fetch_headers(hub, repo_id, revision, token, directory):
    try:
        config = hub.hf_hub_download(repo_id, "config.json", revision=revision, token=token)
        metadata = hub.get_safetensors_metadata(repo_id, revision=revision, token=token)
    except Exception as error:  # the Hub client's own errors: HTTP, offline, gated, no such repo
        raise NotFoundError(
            f"{repo_id}: not in the Hugging Face cache, and the Hub could not be read: {error}"
        ) from error
    shutil.copyfile(config, os.path.join(directory, "config.json"))
    for name, file in metadata.files_metadata.items():
        write_header_over_hole(os.path.join(directory, os.path.basename(name)), file.tensors)
    if metadata.sharded:
        index = {"metadata": {}, "weight_map": dict(metadata.weight_map)}
        with open(os.path.join(directory, "model.safetensors.index.json"), "w", encoding="utf-8") as out:
            json.dump(index, out)


def write_header_over_hole(path, tensors):
    """A safetensors file of the right header and length whose data was never written (a sparse file)."""
    entries = {
        name: {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": list(tensor.data_offsets)}
        for name, tensor in sorted(tensors.items(), key=lambda item: item[1].data_offsets)
    }
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    data_bytes = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    with open(path, "wb") as out:
        out.write(len(header).to_bytes(8, "little") + header)
        out.truncate(8 + len(header) + data_bytes)
