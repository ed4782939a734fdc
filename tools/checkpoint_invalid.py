"""Packed checkpoints that break one rule each, or are built to hurt a careless reader. Used by make_vectors.py.

A case is (name, files, status, words): `files` is {path: bytes} of the whole directory, status the glyd_status it gets.
"""

import json

from checkpoint_encoder import INDEX, compact
from checkpoint_valid import base, carried, matrix

CORRUPT, UNSUPPORTED, FOREIGN, NOT_FOUND = 2, 4, 5, 8
SHARD1, SHARD2 = "glyd-00001-of-00002.safetensors", "glyd-00002-of-00002.safetensors"


def manifest(name, change, words="", status=CORRUPT):
    """A manifest with one statement changed and its own hash right."""
    return name, base(edit_manifest=change).packed(), status, words


def set_in(*path):
    """A change: the value at the end of a path of members. set_in("files", 0, "bytes", 5)"""
    *members, last, value = path

    def change(document):
        for member in members:
            document = document[member]
        document[last] = value

    return change


def without(*path):
    *members, last = path

    def change(document):
        for member in members:
            document = document[member]
        del document[last]

    return change


def text(name, old, new, words="", **more):
    """glyd.json with a piece of its text replaced, then hashed."""

    def edit(document):
        assert document.count(old) >= 1, old
        return document.replace(old, new, 1)

    return name, base(edit_text=edit, **more).packed(), CORRUPT, words


def document(name, edit, words=""):
    """The finished bytes of glyd.json changed, its hash as it was."""
    return name, base(edit_document=edit).packed(), CORRUPT, words


def json_cases():
    yield document("json-empty", lambda b: b"", "")
    yield document("json-cut", lambda b: b[: len(b) // 2])
    yield document("json-a-byte-changed", lambda b: b.replace(b'"model"', b'"modem"', 1), "its own sha256")
    yield document("json-text-behind-it", lambda b: b + b"{}")
    yield document("json-a-list", lambda b: b"[]\n")
    yield document("json-not-utf8", lambda b: b.replace(b'"model"', b'"mod\xff"', 1))
    yield text("json-member-twice", ' "layout": "fast",\n', ' "layout": "fast",\n "layout": "fast",\n', "duplicate")
    yield text("json-member-twice-deep", '"mode": 420,', '"mode": 420, "mode": 420,', "duplicate")
    yield text("json-comment", "{\n", "{ // hello\n")
    yield text("json-comma-too-many", '"directories": [', '"directories": [,')
    yield text("json-hash-with-an-escape", '"document_sha256": "0', '"document_sha256": "\\u0030')
    yield manifest("own-hash-upper-case", set_in("document_sha256", "ABCDEF" + "0" * 58), "document_sha256")
    yield manifest("own-hash-missing", without("document_sha256"), "document_sha256")


def schema_cases():
    for member in ("glyd_version", "layout", "source", "source_files", "tensors", "files", "directories", "config", "index_sha256"):
        yield manifest(f"without-{member.replace('_', '-')}", without(member), member)
    for member in ("bytes", "mode", "header", "sha256", "shard", "shard_bytes", "shard_header_sha256"):
        yield manifest(f"source-file-without-{member.replace('_', '-')}", without("source_files", 0, member), member)
    for member in ("file", "dtype", "shape", "sha256", "packed"):
        yield manifest(f"tensor-without-{member}", without("tensors", "embed", member), member)
    yield manifest("unknown-member", set_in("extra", None), "extra")
    yield manifest("unknown-member-of-source", set_in("source", "extra", 1), "extra")
    yield manifest("unknown-member-of-a-tensor", set_in("tensors", "embed", "extra", 1), "extra")
    yield manifest("unknown-parameter", set_in("tensors", "embed", "packed", "parameters", "extra", 1), "extra")
    yield manifest("layout-unknown", set_in("layout", "mma"), "layout")
    yield manifest("layout-raw", set_in("layout", "raw"), "layout")
    yield manifest("kind-unknown", set_in("source", "kind", "tape"), "kind")
    yield manifest("kind-file-with-other-files", set_in("source", "kind", "file"), "file")
    yield manifest("name-not-a-string", set_in("source", "name", 1), "name")
    for name, value in (("negative", -1), ("a-fraction", 8.0), ("a-string", "16"), ("true", True), ("2-to-64", 2**64)):
        yield manifest(f"bytes-{name}", set_in("files", 0, "bytes", value), "bytes")
    yield manifest("mode-above-511", set_in("files", 0, "mode", 512), "mode")
    yield manifest("hash-too-short", set_in("index_sha256", "a" * 63), "sha256")
    yield manifest("hash-upper-case", set_in("tensors", "embed", "sha256", "A" * 64), "sha256")
    yield manifest("config-original-elsewhere", set_in("config", "original", "README.md"), "original")


def path_cases():
    for name, path in (("up", "../README.md"), ("up-inside", "tokenizer/../../x"), ("absolute", "/etc/hostname"), ("dot", "./README.md"),
                       ("empty", ""), ("double-slash", "tokenizer//x"), ("slash-at-end", "tokenizer/"), ("nul", "README\0.md")):
        yield manifest(f"path-{name}", set_in("files", 0, "path", path), "path")
    yield manifest("path-of-source-file-up", set_in("source_files", 0, "path", "../model.safetensors"), "path")
    yield manifest("directory-up", set_in("directories", ["../runs"]), "directories")
    yield manifest("path-of-glyds-own", set_in("files", 0, "path", "glyd.json"), "glyd.json")
    yield manifest("path-of-the-kept-config", set_in("files", 0, "path", "glyd-source/config.json"), "glyd-source")
    yield manifest("files-not-sorted", lambda d: d["files"].reverse(), "sorted")
    yield manifest("file-twice", lambda d: d["files"].append(dict(d["files"][-1])), "twice")
    yield manifest("directories-not-sorted", set_in("directories", ["b", "a"]), "sorted")
    yield manifest("directory-inside-a-file", set_in("directories", ["README.md/x"]), "README.md")
    yield manifest("source-files-not-sorted", lambda d: (d["source_files"].reverse(), [f.update(shard=s) for f, s in zip(d["source_files"], (SHARD1, SHARD2), strict=True)]))
    yield manifest("shard-misnamed", set_in("source_files", 0, "shard", "model.safetensors"), "shard")
    yield manifest("no-source-files", lambda d: (d["source_files"].clear(), d["tensors"].clear()), "source files")


def tensor_cases():
    embed = ("tensors", "embed")
    yield manifest("tensor-of-no-file", set_in(*embed, "file", 2))
    yield manifest("tensor-of-another-file", set_in(*embed, "file", 1), "embed")
    yield manifest("tensor-of-another-dtype", set_in(*embed, "dtype", "F16"), "embed")
    yield manifest("tensor-of-unknown-dtype", set_in(*embed, "dtype", "BF17"), "dtype")
    yield manifest("tensor-of-another-shape", set_in(*embed, "shape", [48, 64]), "embed")
    yield manifest("tensor-missing", without("tensors", "norm"), "norm")
    yield manifest("tensor-too-many", lambda d: d["tensors"].update(ghost=dict(d["tensors"]["norm"])), "tensors")
    yield manifest("shape-not-of-integers", set_in(*embed, "shape", [64, "48"]), "shape")
    yield manifest("shape-negative", set_in(*embed, "shape", [-64, -48]), "shape")
    yield manifest("packed-bytes-not-a-pack", set_in(*embed, "packed", "bytes", 4000), "4000")
    yield manifest("packed-bytes-0", set_in(*embed, "packed", "bytes", 0), "0 bytes")
    yield manifest("packed-not-smaller", set_in(*embed, "packed", "bytes", 6144), "not smaller")
    yield manifest("packed-of-another-size", set_in(*embed, "packed", "bytes", 128))
    yield manifest("packed-in-raw", set_in(*embed, "packed", "layout", "raw"), "layout")
    yield manifest("packed-in-the-other-layout", lambda d: d["tensors"]["embed"]["packed"].update(layout="small", parameters={"min_bits": 0, "symbols": 8}), "layout")
    yield manifest("parameters-of-the-other-layout", set_in(*embed, "packed", "parameters", {"min_bits": 0, "symbols": 8}), "parameters")
    yield manifest("parameters-others", set_in(*embed, "packed", "parameters", "slot_bytes", 48), "parameters")
    yield manifest("axis-0", set_in(*embed, "packed", "reduction_axis", 0), "reduction_axis")
    yield manifest("axis-of-the-other", set_in(*embed, "packed", "reduction_axis", -2))
    norm = {"layout": "fast", "reduction_axis": -1, "bytes": 128, "parameters": {"base": 118, "slot_bytes": 64}}
    yield manifest("packed-vector", set_in("tensors", "norm", "packed", norm), "norm")
    yield manifest("packed-fp32", set_in("tensors", "scale", "packed", norm), "scale")
    yield manifest("packed-that-is-carried", set_in("tensors", "embed", "packed", None))


def hash_cases():
    wrong = "a" * 64
    yield manifest("hash-of-a-packed-tensor", set_in("tensors", "embed", "sha256", wrong), "embed")
    yield manifest("hash-of-a-carried-tensor", set_in("tensors", "scale", "sha256", wrong), "scale")
    yield manifest("hash-of-a-file", set_in("files", 0, "sha256", wrong), "README.md")
    yield manifest("hash-of-config", set_in("config", "sha256", wrong), "config.json")
    yield manifest("hash-of-kept-config", set_in("config", "original_sha256", wrong), "glyd-source/config.json")
    yield manifest("hash-of-index", set_in("index_sha256", wrong), INDEX)
    yield manifest("hash-of-shard-header", set_in("source_files", 0, "shard_header_sha256", wrong), SHARD1)
    yield manifest("hash-of-whole-file", set_in("source_files", 1, "sha256", wrong), "model-00002-of-00002")
    yield manifest("bytes-of-a-file", set_in("files", 0, "bytes", 5), "README.md")
    yield manifest("bytes-of-a-shard", set_in("source_files", 0, "shard_bytes", 5), SHARD1)
    yield manifest("bytes-of-a-source-file", set_in("source_files", 0, "bytes", 5))
    yield manifest("bytes-of-kept-config", set_in("config", "original_bytes", 5), "glyd-source/config.json")


def shard_header(name, change, words=SHARD1):
    """Shard 1's header changed, its hash right."""

    def edit(number, entries):
        return change(dict(entries)) if number == 0 else entries

    return name, base(edit_shard_header=edit).packed(), CORRUPT, words


def entry(entries, tensor, **change):
    return entries | {tensor: entries[tensor] | change}


def reordered(*names):
    return lambda entries: {name: entries[name] for name in names}


def shard_cases():
    size = 4864
    yield shard_header("shard-without-metadata", lambda e: {n: v for n, v in e.items() if n != "__metadata__"})
    yield shard_header("shard-metadata-of-another-format", lambda e: e | {"__metadata__": {"format": "pt", "glyd": "glyd-x0"}})
    yield shard_header("shard-metadata-with-more", lambda e: e | {"__metadata__": {"format": "pt", "glyd": "glyd-x1", "more": ""}})
    yield shard_header("shard-metadata-not-first", reordered("embed_glyd", "__metadata__", "norm"))
    yield shard_header("shard-header-not-in-data-order", reordered("__metadata__", "norm", "embed_glyd"))
    yield shard_header("shard-pack-of-another-dtype", lambda e: entry(e, "embed_glyd", dtype="I8"), "embed_glyd")
    yield shard_header("shard-pack-of-two-dimensions", lambda e: entry(e, "embed_glyd", shape=[size // 2, 2]), "embed_glyd")
    yield shard_header("shard-carried-of-another-dtype", lambda e: entry(e, "norm", dtype="F16"), "norm")
    yield shard_header("shard-tensor-of-another-name", lambda e: {("other" if n == "norm" else n): v for n, v in e.items()})
    yield shard_header("shard-tensor-missing", lambda e: entry({n: v for n, v in e.items() if n != "norm"}, "embed_glyd", data_offsets=[0, size + 16], shape=[size + 16]))
    yield shard_header("shard-hole", lambda e: entry(e, "embed_glyd", data_offsets=[0, size - 128], shape=[size - 128]))
    yield shard_header("shard-overlap", lambda e: entry(e, "norm", data_offsets=[size - 16, size]))
    yield shard_header("shard-past-its-end", lambda e: entry(e, "norm", data_offsets=[size, size + 32], shape=[16]))
    yield shard_header("shard-carried-before-packs", lambda e: {"__metadata__": e["__metadata__"], "norm": e["norm"] | {"data_offsets": [0, 16]}, "embed_glyd": e["embed_glyd"] | {"data_offsets": [16, size + 16]}})

    def text_of_shard1(change):
        return lambda number, header: change(header) if number == 0 else header

    def shard_text(name, change, words=SHARD1):
        return name, base(edit_shard_text=text_of_shard1(change)).packed(), CORRUPT, words

    yield shard_text("shard-data-not-aligned", lambda t: t + " " * 64)
    yield shard_text("shard-header-duplicate", lambda t: t.replace('"norm"', '"norm":{"dtype":"BF16","shape":[8],"data_offsets":[4864,4880]},"norm"'))
    yield shard_text("shard-header-not-an-object", lambda t: "[" + t[1:])
    yield shard_text("shard-header-comment", lambda t: t.replace(",", ", /* */", 1))

    def pack(name, change, words="embed"):
        return name, base(edit_pack=lambda n, data: change(bytearray(data)) if n == "embed" else data).packed(), CORRUPT, words

    def flip(at):
        def change(data):
            data[at] ^= 1
            return bytes(data)

        return change

    yield pack("pack-header-flipped", flip(20))
    yield pack("pack-plane-flipped", flip(1000))
    yield pack("pack-padding-not-zero", flip(-1))
    other = matrix("embed", seed=99).pack()[0]
    yield pack("pack-of-another-matrix", lambda data: other)
    yield pack("pack-of-another-shape", lambda data: matrix("embed", shape=(48, 64), seed=1).pack()[0])
    yield pack("pack-with-more-behind-it", lambda data: bytes(data) + bytes(128))


def directory_cases():
    whole = base().packed()

    def files(name, change, status=CORRUPT, words=""):
        return name, whole | change, status, words

    for name, path in (("a-shard", SHARD2), ("a-file", "README.md"), ("the-index", INDEX), ("config", "config.json"), ("the-kept-config", "glyd-source/config.json")):
        yield files(f"missing-{name}", {path: None}, words=path)
        yield files(f"longer-{name}", {path: whole[path] + b" "}, words=path)
        yield files(f"shorter-{name}", {path: whole[path][:-1]}, words=path)
        yield files(f"flipped-{name}", {path: whole[path][:-2] + bytes([whole[path][-2] ^ 4]) + whole[path][-1:]})
    yield files("missing-manifest", {"glyd.json": None}, NOT_FOUND, "not a packed checkpoint")
    yield files("one-file-too-many", {"model.safetensors": b""}, words="model.safetensors")
    yield files("one-file-too-many-deep", {"tokenizer/more.txt": b""}, words="more.txt")
    yield files("shards-exchanged", {SHARD1: whole[SHARD2], SHARD2: whole[SHARD1]})
    yield "config-not-named", base(edit_manifest=set_in("config", None)).packed(), CORRUPT, "config.json"

    def index(name, change):
        return name, base(edit_index=change).packed(), CORRUPT, INDEX

    yield index("index-names-another-shard", lambda i: i | {"weight_map": i["weight_map"] | {"norm": SHARD2}})
    yield index("index-lacks-a-tensor", lambda i: i | {"weight_map": {n: s for n, s in i["weight_map"].items() if n != "norm"}})
    yield index("index-names-a-ghost", lambda i: i | {"weight_map": i["weight_map"] | {"ghost": SHARD1}})
    yield index("index-names-the-bf16-tensor", lambda i: i | {"weight_map": {n.removesuffix("_glyd"): s for n, s in i["weight_map"].items()}})
    yield index("index-with-another-size", lambda i: i | {"metadata": {"total_size": 1}})
    yield index("index-without-weights", lambda i: {"metadata": i["metadata"]})

    def config(name, change):
        return name, base(edit_config=change).packed(), CORRUPT, "config.json"

    yield config("config-without-quantization", lambda c: {n: v for n, v in c.items() if n != "quantization_config"})
    yield config("config-of-another-method", lambda c: c | {"quantization_config": c["quantization_config"] | {"quant_method": "gptq"}})
    yield config("config-of-another-layout", lambda c: c | {"quantization_config": c["quantization_config"] | {"layout": "small"}})


def name_cases():
    """A carried tensor may not have the name that a pack has in the shard."""
    checkpoint = base()
    checkpoint.source_files[0].tensors[1] = carried("embed_glyd", "BF16", [8], 16, 2)
    yield "tensor-named-as-a-pack", checkpoint.packed(), CORRUPT, "embed_glyd"
    checkpoint = base()
    checkpoint.source_files[1].tensors[1] = carried("norm", "F32", [2, 2], 16, 4)
    for name, tensor in (("up", "norm/../x"), ("nul", "no\0rm"), ("empty", "")):
        climbing = base()
        climbing.source_files[0].tensors[1] = carried(tensor, "BF16", [8], 16, 2)
        yield f"tensor-name-{name}", climbing.packed(), CORRUPT, "name"
    yield "tensor-in-two-files", checkpoint.packed(), CORRUPT, "norm"


def foreign_cases():
    for name in ("glyd-v1", "glyd-v2", "glyd-v3", "glyd-x0", "glyd-x2", "gguf", ""):
        yield manifest(f"format-{name or 'empty'}", set_in("format", name), name, FOREIGN)
    yield manifest("format-missing", without("format"), "format")
    yield manifest("format-a-number", set_in("format", 1), "format")


def invalid_cases():
    for source in (json_cases, schema_cases, path_cases, tensor_cases, hash_cases, shard_cases, directory_cases, name_cases, foreign_cases):
        yield from source()


def hostile_cases():
    embed = ("tensors", "embed")
    yield manifest("shape-overflows", set_in(*embed, "shape", [2**33, 2**33]))
    yield manifest("shape-of-a-million-sides", set_in(*embed, "shape", [1] * 10000))
    yield manifest("shape-whose-product-wraps-to-its-size", set_in(*embed, "shape", [2**63, 2, 3072]))
    yield manifest("packed-bytes-2-to-63", set_in(*embed, "packed", "bytes", 2**63))
    yield manifest("file-of-an-exbibyte", set_in("files", 0, "bytes", 2**60), "README.md")
    yield manifest("shard-of-an-exbibyte", set_in("source_files", 0, "shard_bytes", 2**60), SHARD1)
    yield manifest("source-file-of-an-exbibyte", set_in("source_files", 0, "bytes", 2**60))
    yield manifest("kept-config-of-an-exbibyte", set_in("config", "original_bytes", 2**60), "config.json")
    yield manifest("tensor-of-file-2-to-63", set_in(*embed, "file", 2**63))
    yield manifest("ten-thousand-directories", set_in("directories", [f"d/{i}" for i in range(10000, 0, -1)]), "sorted")
    deep = "[" * 5000 + "]" * 5000
    yield text("json-nested-5000-deep", '"directories": [', f'"directories": [{deep},')
    yield text("json-objects-nested-5000-deep", '"config": {', '"config": {"x": ' + '{"x":' * 5000 + "1" + "}" * 5001 + ', "y": {')
    yield text("json-long-number", '"mode": 420', '"mode": ' + "4" * 5000)
    yield text("json-exponent", '"mode": 420', '"mode": 42e999999999')
    yield document("json-not-closed", lambda b: b'{"format": "glyd-x1", "tensors": {' + b'"a": {' * 2000)

    def length(name, value):
        files = base().packed()
        return name, files | {SHARD1: value.to_bytes(8, "little") + files[SHARD1][8:]}, CORRUPT, SHARD1

    yield length("shard-header-of-100-mb", 100_000_001)
    yield length("shard-header-past-the-end", 10_000)
    yield length("shard-header-2-to-64", 2**64 - 1)
    yield length("shard-header-of-nothing", 0)
    huge = compact({"embed": {"dtype": "BF16", "shape": [2**32, 2**31], "data_offsets": [0, 2**63]}})
    yield manifest("kept-header-of-8-exbibytes", set_in("source_files", 0, "header", huge))
    yield manifest("kept-header-offsets-wrap", set_in("source_files", 0, "header", json.dumps({"embed": {"dtype": "U8", "shape": [1], "data_offsets": [2**64 - 1, 2**64]}})))
    yield manifest("kept-header-not-json", set_in("source_files", 0, "header", "hello"))
    yield manifest("kept-header-empty", set_in("source_files", 0, "header", ""))
