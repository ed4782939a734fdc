#!/usr/bin/env python3
"""Makes the inputs of the command line tests: small models, whole and broken. Standard library only.

    make_inputs.py KIND PATH [ARGUMENT]
    make_inputs.py set-manifest DIR VALUE MEMBER...    # a value in glyd.json, with the right document_sha256
    make_inputs.py flip FILE OFFSET                    # one bit

`make_inputs.py --list` names the kinds. A model directory is made of the same bytes each time.
"""

import hashlib
import json
import os
import random
import struct
import sys

BF16_BYTES = 2
DTYPE_BYTES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "I8": 1, "I64": 8}


def bf16_weights(count, seed):
    """Values as a trained matrix has them: normal, standard deviation 0.02."""
    generator = random.Random(seed)
    block = [struct.pack(">f", generator.gauss(0, 0.02))[:2][::-1] for _ in range(min(count, 4096))]
    # Long tensors repeat a block in other orders: drawing every value would make the tests slow.
    data = b"".join(block)
    while len(data) < count * BF16_BYTES:
        generator.shuffle(block)
        data += b"".join(block)
    return data[: count * BF16_BYTES]


def tensor_bytes(dtype, shape, seed):
    count = 1
    for extent in shape:
        count *= extent
    if dtype == "BF16":
        return bf16_weights(count, seed)
    return random.Random(seed).randbytes(count * DTYPE_BYTES[dtype])


def safetensors(tensors, metadata=None, header=None):
    """The file's bytes: `tensors` is a list of (name, dtype, shape); `header` replaces the right header's JSON."""
    entries, data = {}, b""
    if metadata:
        entries["__metadata__"] = metadata
    for seed, (name, dtype, shape) in enumerate(tensors):
        value = tensor_bytes(dtype, shape, seed)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(value)]}
        data += value
    text = json.dumps(entries, separators=(",", ":")).encode() if header is None else header
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


HIDDEN, INTERMEDIATE, VOCABULARY = 64, 96, 160
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": HIDDEN, "intermediate_size": INTERMEDIATE,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": VOCABULARY,
    "max_position_embeddings": 512, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}


def layer(index, dtype="BF16"):
    prefix = f"model.layers.{index}."
    return [
        (prefix + "input_layernorm.weight", dtype, [HIDDEN]),
        (prefix + "self_attn.q_proj.weight", dtype, [HIDDEN, HIDDEN]),
        (prefix + "self_attn.k_proj.weight", dtype, [HIDDEN // 2, HIDDEN]),
        (prefix + "self_attn.v_proj.weight", dtype, [HIDDEN // 2, HIDDEN]),
        (prefix + "self_attn.o_proj.weight", dtype, [HIDDEN, HIDDEN]),
        (prefix + "mlp.gate_proj.weight", dtype, [INTERMEDIATE, HIDDEN]),
        (prefix + "mlp.up_proj.weight", dtype, [INTERMEDIATE, HIDDEN]),
        (prefix + "mlp.down_proj.weight", dtype, [HIDDEN, INTERMEDIATE]),
    ]


def model_tensors(dtype="BF16"):
    embedding = [("model.embed_tokens.weight", dtype, [VOCABULARY, HIDDEN])]
    return embedding + layer(0, dtype) + layer(1, dtype) + [("model.norm.weight", dtype, [HIDDEN])]


def side_files(path):
    write(f"{path}/config.json", json.dumps(CONFIG, indent=2) + "\n")
    write(f"{path}/README.md", "# A model for tests\n")
    write(f"{path}/tokenizer/vocabulary.txt", "a\nb\nc\n")


def model(path, dtype="BF16"):
    """A whole model in one file: 2 layers, a README, a subfolder."""
    side_files(path)
    write(f"{path}/model.safetensors", safetensors(model_tensors(dtype), {"format": "pt"}))


def sharded(path, weight_map=None):
    """The same in two shards with an index; with a subfolder that holds another safetensors file."""
    side_files(path)
    parts = {"model-00001-of-00002.safetensors": model_tensors()[:9], "model-00002-of-00002.safetensors": model_tensors()[9:]}
    mapped = {}
    for name, tensors in parts.items():
        write(f"{path}/{name}", safetensors(tensors, {"format": "pt"}))
        mapped.update({tensor[0]: name for tensor in tensors})
    mapped.update(weight_map or {})
    write(f"{path}/model.safetensors.index.json", json.dumps({"metadata": {"total_size": 0}, "weight_map": mapped}, indent=2))
    write(f"{path}/extra/adapter.safetensors", safetensors([("lora", "F32", [4, 4])]))


def large(path, mebibytes="64"):
    """One file of large matrices, so that a signal finds the pack at work."""
    rows = int(mebibytes) * 2**20 // BF16_BYTES // 1024 // 8
    entries, data, block = {}, b"", bf16_weights(2**20, 7)
    size = rows * 1024 * BF16_BYTES
    for index in range(8):
        entries[f"layers.{index}.weight"] = {"dtype": "BF16", "shape": [rows, 1024], "data_offsets": [index * size, (index + 1) * size]}
        data += (block * (size // len(block) + 1))[:size]
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    write(f"{path}/model.safetensors", struct.pack("<Q", len(text)) + text + data)


def many_shards(path, shards="6", mebibytes="8"):
    """Several shards of one large matrix each, without an index, so that a stopped pack has finished some."""
    block = bf16_weights(2**19, 7)
    rows = int(mebibytes) * 2**20 // BF16_BYTES // 1024
    size = rows * 1024 * BF16_BYTES
    for index in range(int(shards)):
        text = json.dumps({f"layers.{index}.weight": {"dtype": "BF16", "shape": [rows, 1024], "data_offsets": [0, size]}}).encode()
        text += b" " * (-len(text) % 8)
        write(f"{path}/part-{index}.safetensors", struct.pack("<Q", len(text)) + text + (block * (size // len(block) + 1))[:size])


def one_tensor(path, header):
    """A model directory whose one file has exactly this header and 32 KiB of data."""
    side_files(path)
    data = bf16_weights(128 * 128, 1)
    write(f"{path}/model.safetensors", struct.pack("<Q", len(header)) + header + data)


def entry(name, begin, end, shape=None, dtype="BF16"):
    shape = [(end - begin) // BF16_BYTES // 128, 128] if shape is None else shape
    return f'{json.dumps(name)}:{{"dtype":"{dtype}","shape":{json.dumps(shape)},"data_offsets":[{begin},{end}]}}'


def broken_header(*entries):
    return lambda path: one_tensor(path, ("{" + ",".join(entries) + "}").encode())


def header_too_long(path):
    """The length says more than the file has, and more than any header may have."""
    side_files(path)
    write(f"{path}/model.safetensors", struct.pack("<Q", 2**40) + b"{}" + bytes(64))


def header_past_end(path):
    side_files(path)
    write(f"{path}/model.safetensors", struct.pack("<Q", 4096) + b'{"a":' + bytes(64))


def cut(path, keep):
    """A whole model whose tensor file was cut after `keep` bytes from the front, or minus so many from the end."""
    model(path)
    file = f"{path}/model.safetensors"
    size = os.path.getsize(file)
    os.truncate(file, keep if keep >= 0 else size + keep)


def over_long(path):
    model(path)
    with open(f"{path}/model.safetensors", "ab") as file:
        file.write(b"more")


def hub_cache(path):
    """A Hugging Face cache that holds org/tiny: snapshots of symbolic links to blobs."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repo = f"{path}/models--org--tiny"
    model(f"{repo}/plain")
    os.makedirs(f"{repo}/blobs")
    os.makedirs(f"{repo}/snapshots/{commit}")
    for index, name in enumerate(("config.json", "README.md", "model.safetensors")):
        os.rename(f"{repo}/plain/{name}", f"{repo}/blobs/{index:064x}")
        os.symlink(f"../../blobs/{index:064x}", f"{repo}/snapshots/{commit}/{name}")
    os.remove(f"{repo}/plain/tokenizer/vocabulary.txt")
    os.removedirs(f"{repo}/plain/tokenizer")
    write(f"{repo}/refs/main", commit)


def conv1d(path):
    """A GPT-2: its Conv1D weights are stored [in, out]."""
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 64, "n_layer": 1, "n_head": 4, "vocab_size": 128}
    write(f"{path}/config.json", json.dumps(config))
    tensors = [("h.0.attn.c_attn.weight", "BF16", [64, 192]), ("h.0.attn.c_attn.bias", "BF16", [192]), ("wte.weight", "BF16", [128, 64])]
    write(f"{path}/model.safetensors", safetensors(tensors))


def nested_json(path):
    side_files(path)
    write(f"{path}/model.safetensors", struct.pack("<Q", 200000) + b'{"a":' * 40000)


KINDS = {
    "model": model,
    "sharded": sharded,
    "large": large,
    "shards": many_shards,
    "conv1d": conv1d,
    "hub-cache": hub_cache,
    "mixed-dtypes": lambda path: (side_files(path), write(f"{path}/model.safetensors", safetensors(
        layer(0) + [("scale", "F32", [8, 8]), ("half.weight", "F16", [32, 32]), ("byte.weight", "F8_E4M3", [32, 32]), ("ids", "I64", [4])]))),
    "fp16": lambda path: model(path, "F16"),
    "zero-length": lambda path: (side_files(path), write(f"{path}/model.safetensors", b"")),
    "truncated": lambda path: cut(path, -1000),
    "cut-in-length": lambda path: cut(path, 5),
    "over-long": over_long,
    "header-too-long": header_too_long,
    "header-past-end": header_past_end,
    "header-not-json": lambda path: one_tensor(path, b"this is not JSON"),
    "header-not-object": lambda path: one_tensor(path, b"[1, 2, 3]"),
    "header-not-utf8": lambda path: one_tensor(path, b'{"\xff\xfe":1}'),
    "header-nested": nested_json,
    "overlap": broken_header(entry("a", 0, 16384), entry("b", 8192, 32768)),
    "hole": broken_header(entry("a", 0, 8192), entry("b", 16384, 32768)),
    "wrong-size": broken_header(entry("a", 0, 32768, [64, 128])),
    "size-overflow": broken_header(entry("a", 0, 32768, [2**33, 2**33])),
    "duplicate": broken_header(entry("a", 0, 16384), entry("a", 16384, 32768)),
    "past-end": broken_header(entry("a", 0, 65536)),
    "offsets-backwards": broken_header(entry("a", 32768, 0, [128, 128])),
    "offset-overflow": broken_header(entry("a", 0, 2**64 - 2, [1, 1])),
    "unknown-dtype": broken_header(entry("a", 0, 32768, [128, 128], "BF17")),
    "missing-member": broken_header('"a":{"dtype":"BF16","shape":[128,128]}'),
    "path-name": broken_header(entry("model/../../escape", 0, 32768)),
    "index-missing-shard": lambda path: sharded(path, {"model.norm.weight": "model-00003-of-00003.safetensors"}),
    "index-missing-tensor": lambda path: sharded(path, {"model.ghost.weight": "model-00001-of-00002.safetensors"}),
    "index-escapes": lambda path: sharded(path, {"model.norm.weight": "../outside.safetensors"}),
    "index-not-json": lambda path: (sharded(path), write(f"{path}/model.safetensors.index.json", "{")),
    "no-tensors": side_files,
    "empty-directory": lambda path: os.makedirs(path),
    "empty-header": lambda path: (side_files(path), write(f"{path}/model.safetensors", safetensors([]))),
}


def set_manifest(path, value, *members):
    """Gives a member of a packed directory's glyd.json another value (JSON) and makes its document_sha256 right again."""
    with open(f"{path}/glyd.json", encoding="utf-8") as file:
        document = json.load(file)
    place = document
    for member in members[:-1]:
        place = place[int(member) if isinstance(place, list) else member]
    if members[-1] not in place:
        sys.exit(f"make_inputs: {path}/glyd.json has no member {members}")
    place[members[-1]] = json.loads(value)
    document["document_sha256"] = "0" * 64
    text = json.dumps(document, indent=1) + "\n"
    write(f"{path}/glyd.json", text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest()))


def flip(path, offset):
    """Flips the lowest bit of one byte; a negative offset counts from the end."""
    with open(path, "r+b") as file:
        file.seek(int(offset), os.SEEK_END if int(offset) < 0 else os.SEEK_SET)
        place = file.tell()
        value = file.read(1)[0]
        file.seek(place)
        file.write(bytes([value ^ 1]))


def main(words):
    if words == ["--list"]:
        print("\n".join(sorted(KINDS)))
    elif words[0] == "set-manifest" and len(words) >= 4:
        set_manifest(*words[1:])
    elif words[0] == "flip" and len(words) == 3:
        flip(*words[1:])
    elif words[0] in KINDS and len(words) >= 2:
        KINDS[words[0]](*words[1:])
    else:
        sys.exit("usage: make_inputs.py KIND PATH [ARGUMENT] | set-manifest DIR VALUE MEMBER... | flip FILE OFFSET | --list")


if __name__ == "__main__":
    main(sys.argv[1:])
