#!/usr/bin/env python3
"""Checks the house's rules that no compiler checks: which folder may include which, file lengths, names, and what must not stand in a tracked file.

Prints each breach as `file:line: what` and exits 1 if there is one.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# folder -> folders it may include (besides itself, the standard library and third parties). Data flows one way.
ALLOWED = {
    "src/base": {"include/glyd"},
    "src/format": {"src/base"},
    "src/weights": {"src/base", "src/format"},
    "src/checkpoint": {"src/base", "src/format", "src/weights", "include/glyd"},
    "src/codec": {"src/base", "src/format"},
    "src/store": {"src/base", "src/format", "src/codec"},
    "src/cuda": {"src/base", "src/format", "include/glyd"},
    "src/cuda/capi": {"src/base", "src/format", "src/weights", "src/cuda", "include/glyd"},
    "src/capi": {"src/base", "src/format", "src/weights", "src/checkpoint", "src/codec", "src/store", "include/glyd"},
    "include/glyd": set(),
    "cli": {"include/glyd"},
    "examples": {"include/glyd"},
    "reference": set(),
}
MOST_LINES = 600
SOURCE = {".cpp", ".hpp", ".h", ".cu", ".cuh", ".c"}


def tracked_files():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [Path(name) for name in names.decode().split("\0") if name and (ROOT / name).is_file()]


def folder_of(path):
    """The longest key of ALLOWED that holds `path`, or None."""
    matches = [key for key in ALLOWED if path.as_posix().startswith(key + "/")]
    return max(matches, key=len) if matches else None


def target_folder(include, path):
    """Which of our folders an #include "..." names; None for a third party's file."""
    for prefix in ("src", "include", "."):
        candidate = Path(prefix) / include
        if (ROOT / candidate).is_file():
            return folder_of(candidate)
    sibling = path.parent / include
    return folder_of(sibling) if (ROOT / sibling).is_file() else None


def check_includes(path, lines):
    folder = folder_of(path)
    if folder is None:
        return
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match:
            continue
        target = target_folder(match.group(1), path)
        if target and target != folder and target not in ALLOWED[folder]:
            yield f"{path}:{number}: {folder} may not include {target}"


def check_text(path, lines):
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", line) and path.name != "check_layers.py":
            yield f"{path}:{number}: a TODO needs an issue number: TODO(#12)"


def main():
    problems, names = [], {}
    for path in tracked_files():
        if path.suffix not in SOURCE | {".py"}:
            continue
        lines = (ROOT / path).read_text(errors="replace").splitlines()
        problems += check_text(path, lines)
        if path.suffix in SOURCE:
            problems += check_includes(path, lines)
            if path.parts[0] == "src" and path.suffix != ".h":
                names.setdefault(path.name, []).append(path)
        if len(lines) > MOST_LINES:
            problems.append(f"{path}: {len(lines)} lines, more than {MOST_LINES}")
    problems += [f"{name}: named twice: {', '.join(map(str, paths))}" for name, paths in names.items() if len(paths) > 1]
    print("\n".join(problems) if problems else "layers, lengths and names: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
