"""Packed checkpoints that every reader must take, with the source each must restore. Used by make_vectors.py."""

import json
import struct

from checkpoint_encoder import Checkpoint, SourceFile, SourceTensor, compact
from vectors_valid import SPECIALS, Random, trained

ROWS, COLS = 64, 48  # small, but a pack of it pays
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 48, "rms_norm_eps": 1e-05, "torch_dtype": "bfloat16"}


def config(model_type="llama"):
    return (json.dumps(CONFIG | {"model_type": model_type, "limits": [float("-inf"), float("inf"), float("nan")]}, indent=2) + "\n").encode()


def noise(count, seed):
    random = Random(seed)
    return bytes(random.bits(8) for _ in range(count))


def matrix(name, layout="fast", shape=(ROWS, COLS), seed=1, transposed=False, specials=False):
    """A trained-looking bf16 tensor; `layout` None carries it."""
    stack, a, b = (1,) * (3 - len(shape)) + tuple(shape) if len(shape) < 3 else shape
    tensor = trained(stack, a, b, seed=seed)
    values = list(tensor.values)
    if specials:
        for at, value in SPECIALS.items():
            values[at] = value
    return SourceTensor(name, "BF16", list(shape), struct.pack(f"<{len(values)}H", *values), layout, transposed)


def carried(name, dtype, shape, size, seed):
    return SourceTensor(name, dtype, shape, noise(size, seed))


def source_index(files, weight_map=None):
    names = {t.name: f.path for f in files for t in f.tensors}
    return (json.dumps({"metadata": {"total_size": 0}, "weight_map": names | (weight_map or {})}, indent=2) + "\n").encode()


def base(**edits):
    """What the invalid cases are made from: two shards, one pack and one carried tensor in each, files, an empty directory."""
    files = [
        SourceFile("model-00001-of-00002.safetensors", [matrix("embed", seed=1), carried("norm", "BF16", [8], 16, 2)]),
        SourceFile("model-00002-of-00002.safetensors", [matrix("head", seed=3), carried("scale", "F32", [2, 2], 16, 4)]),
    ]
    others = {"README.md": b"# A model\n", "tokenizer/vocabulary.txt": b"a\nb\n", "model.safetensors.index.json": source_index(files)}
    return Checkpoint(files, others, ["runs/none"], config(), hash_files=True, **edits)


def every_dtype(layout):
    """Tensors of all kinds: a stack, a scalar, one without values, other dtypes, bf16 that is not packed."""
    tensors = [
        matrix("experts", layout, (2, 40, 64), 5), matrix("odd", layout, (61, 47), 6, specials=True), matrix("noisy", None, (4, 5), 7),
        carried("half", "F16", [3, 5], 30, 8), carried("scalar", "F32", [], 4, 9), carried("empty", "I64", [0], 0, 10),
        carried("byte", "I8", [7], 7, 11), carried("flag", "BOOL", [3], 3, 12), carried("eighth", "F8_E4M3", [5, 3], 15, 13), carried("nibbles", "F4", [2, 4], 4, 14)]
    return Checkpoint([SourceFile("model.safetensors", tensors)], {"LICENSE": b""}, config=config(), layout=layout)


def conv1d(layout):
    """Stored [in, out]: packed as the transpose."""
    tensors = [matrix("h.0.attn.c_attn.weight", layout, (48, 96), 15, transposed=True), matrix("wte.weight", layout, (ROWS, COLS), 16)]
    return Checkpoint([SourceFile("model.safetensors", tensors)], config=config("gpt2"), layout=layout)


def in_memory():
    """Saved from memory: the packer made the source headers and, since there are several, their index."""
    files = [SourceFile(f"model-0000{i}-of-00002.safetensors", [matrix(f"layer.{i}", "small", seed=20 + i)]) for i in (1, 2)]
    return Checkpoint(files, {"model.safetensors.index.json": source_index(files), "generation_config.json": b"{}\n"}, config=config(), kind="memory", layout="small")


def strange_names():
    tensors = [
        matrix('a "quoted" \\ name', seed=30), matrix("na\u00efve/..weight", seed=31), matrix("__init__", seed=32), carried("\t tab and \u2028", "F32", [1], 4, 33)]
    others = {"na\u00efve folder/\u6a21\u578b 1.txt": b"x", ".hidden": b"y", "config.json.bak": b"z"}
    return Checkpoint([SourceFile("model.safetensors", tensors)], others, [".empty", "a/b c"])


def header_in_another_order():
    """The source's header names its tensors in another order than their data, spaced as nobody does; it comes back verbatim."""
    tensors = [matrix("z", seed=40), carried("y", "F32", [2], 8, 41), matrix("x", seed=42)]
    entries, at = {}, 0
    for t in tensors:
        entries[t.name] = {"data_offsets": [at, at + len(t.data)], "shape": t.shape, "dtype": t.dtype}
        at += len(t.data)
    text = json.dumps({"x": entries["x"], "__metadata__": {"b": "2", "a": "\u00e9"}, "z": entries["z"], "y": entries["y"]}, indent=3)
    return Checkpoint([SourceFile("weights.safetensors", tensors, text.replace("\n", "\r\n") + "\t ")])


def tensors_without_values():
    """They have no order among themselves: the source's header and the shard's differ."""
    empties = [carried(name, "F32", [0, n], 0, 0) for name, n in (("e1", 1), ("e2", 2), ("e3", 3))]
    checkpoint = Checkpoint([SourceFile("model.safetensors", [*empties, matrix("w", seed=50), carried("last", "F16", [0], 0, 0)])])

    def reverse(_, entries):
        names = ["__metadata__", "w_glyd", "e3", "e1", "last", "e2"]
        return {name: entries[name] for name in names}

    checkpoint.edit_shard_header = reverse
    return checkpoint


def much_padding():
    """A shard's header may be padded with any number of spaces."""
    checkpoint = Checkpoint([SourceFile("model.safetensors", [matrix("w", seed=60)])])
    checkpoint.edit_shard_text = lambda _, text: text + " " * 1280
    return checkpoint


def without_an_index():
    """All safetensors files of a directory, whatever their names; the shards follow the order of their paths."""
    names = ("b.safetensors", "consolidated.00.safetensors", "expert.safetensors")
    return Checkpoint([SourceFile(name, [matrix(f"w{i}", seed=70 + i)]) for i, name in enumerate(names)], {"sub/other.safetensors": b"not one of them"})


def cases():
    yield "base", base()
    for layout in ("fast", "small"):
        yield f"every-dtype-{layout}", every_dtype(layout)
        yield f"stored-in-out-{layout}", conv1d(layout)
    both = [matrix("a", "fast", seed=80), matrix("b", "small", seed=81)]
    yield "both-layouts", Checkpoint([SourceFile("model.safetensors", both)], layout="small")
    yield "one-file", Checkpoint([SourceFile("adapter.safetensors", [matrix("w", seed=82), carried("b", "BF16", [3], 6, 83)])], kind="file", hash_files=True)
    nothing = [carried("w", "F32", [4, 4], 64, 84)]
    yield "nothing-packed", Checkpoint([SourceFile("model.safetensors", nothing)], config=config())
    yield "no-tensors", Checkpoint([SourceFile("model.safetensors", [], compact({}))])
    yield "from-memory", in_memory()
    yield "strange-names", strange_names()
    yield "header-in-another-order", header_in_another_order()
    yield "tensors-without-values", tensors_without_values()
    yield "much-padding", much_padding()
    yield "without-an-index", without_an_index()
