#!/usr/bin/env python3
"""Makes the golden vectors in tests/vectors/v1 from docs/spec/weights.md: packs and what each must decode to or be refused for.

    tools/make_vectors.py           write them
    tools/make_vectors.py --check   make them again and compare

valid/NAME.glydpack decodes to NAME.bf16. invalid/NAME.glydpack breaks one rule and hostile/NAME.glydpack is built to hurt a careless reader;
NAME.status holds the number of the glyd_status it gets and words of the message. The files are the same at every run.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import vectors_hostile  # noqa: E402
import vectors_invalid  # noqa: E402
import vectors_valid  # noqa: E402

TARGET = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "v1"


def all_files():
    """{path under v1: bytes}"""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    files = all_files()
    here = {str(p.relative_to(TARGET)) for p in TARGET.rglob("*") if p.is_file()}
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
