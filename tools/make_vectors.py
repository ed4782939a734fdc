#!/usr/bin/env python3
"""Makes the golden vectors: packs in tests/vectors/v1 from docs/spec/weights.md, packed checkpoints in tests/vectors/x1 from docs/spec/checkpoint.md.

    tools/make_vectors.py           write them
    tools/make_vectors.py --check   make them again and compare

valid/NAME.glydpack decodes to NAME.bf16. invalid/NAME.glydpack breaks one rule and hostile/NAME.glydpack is built to hurt a careless reader;
NAME.status holds the number of the glyd_status it gets and words of the message.

x1/valid/NAME/packed is a packed checkpoint, NAME/source what it unpacks to (a file or a directory) and NAME/directories names the source's empty
directories. x1/invalid/NAME and x1/hostile/NAME are valid/base with the files of NAME/changed in place of its own and without those that
NAME/removed names; NAME/status is as above. The files are the same at every run.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import checkpoint_invalid  # noqa: E402
import checkpoint_valid  # noqa: E402
import vectors_hostile  # noqa: E402
import vectors_invalid  # noqa: E402
import vectors_valid  # noqa: E402

TARGET = Path(__file__).resolve().parent.parent / "tests" / "vectors"


def pack_files():
    """{path: bytes}"""
    files = {}
    for name, pack, bf16 in vectors_valid.cases():
        files[f"valid/{name}.glydpack"] = pack
        files[f"valid/{name}.bf16"] = bf16
    for folder, module in (("invalid", vectors_invalid), ("hostile", vectors_hostile)):
        for name, pack, status, words in module.cases():
            assert f"{folder}/{name}.glydpack" not in files, name
            files[f"{folder}/{name}.glydpack"] = pack
            files[f"{folder}/{name}.status"] = f"{status} {words}\n".encode()
    return files


def valid_checkpoint(name, checkpoint):
    files = {f"{name}/packed/{path}": data for path, data in checkpoint.packed().items()}
    files |= {f"{name}/source/{path}".removesuffix("/"): data for path, data in checkpoint.source().items()}
    if checkpoint.directories:
        files[f"{name}/directories"] = "".join(f"{path}\n" for path in sorted(checkpoint.directories)).encode()
    return files


def checkpoint_files():
    """{path: bytes}"""
    files = {}
    for name, checkpoint in checkpoint_valid.cases():
        files |= {f"valid/{path}": data for path, data in valid_checkpoint(name, checkpoint).items()}
    base = checkpoint_valid.base().packed()
    for folder, cases in (("invalid", checkpoint_invalid.invalid_cases), ("hostile", checkpoint_invalid.hostile_cases)):
        for name, packed, status, words in cases():
            assert f"{folder}/{name}/status" not in files, name
            removed = [path for path in base if packed.get(path) is None]
            changed = {path: data for path, data in packed.items() if data is not None and data != base.get(path)}
            assert removed or changed, name
            files[f"{folder}/{name}/status"] = f"{status} {words}\n".encode()
            files |= {f"{folder}/{name}/changed/{path}": data for path, data in changed.items()}
            if removed:
                files[f"{folder}/{name}/removed"] = "".join(f"{path}\n" for path in removed).encode()
    return files


def all_files():
    """{path under tests/vectors: bytes}"""
    return {f"v1/{path}": data for path, data in pack_files().items()} | {f"x1/{path}": data for path, data in checkpoint_files().items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    files = all_files()
    here = {str(p.relative_to(TARGET)) for folder in ("v1", "x1") for p in (TARGET / folder).rglob("*") if p.is_file()}
    if check:
        wrong = sorted(n for n in files.keys() | here if n not in files or n not in here or (TARGET / n).read_bytes() != files[n])
        for name in wrong:
            print(f"{name}: {'differs' if name in files and name in here else 'missing' if name in files else 'unknown'}")
        return 1 if wrong else 0
    for name in here - files.keys():
        (TARGET / name).unlink()
    for name, data in files.items():
        (TARGET / name).parent.mkdir(parents=True, exist_ok=True)
        (TARGET / name).write_bytes(data)
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
