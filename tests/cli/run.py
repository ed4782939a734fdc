#!/usr/bin/env python3
"""Runs command line transcripts. Standard library only. See README.md.

    run.py --glyd build/dev/bin/glyd [--update] [CASE...]

A case is cases/NAME.cmd, a shell script, with what it must print and return: NAME.stdout and NAME.stderr (a missing file is an empty one) and
NAME.exit (missing: 0). Exit status: 0 all as expected, 1 not, 77 all were left out.
"""

import argparse
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE / "cases"
TIMEOUT_SECONDS = 120
SKIPPED = 77

PROLOGUE = """
set -eu
"""


def directives(script):
    """The words of "# requires: ..." and the like at the top of a case."""
    found = {}
    for line in script.splitlines():
        match = re.fullmatch(r"# (requires|leaves): (.*)", line)
        if match:
            found.setdefault(match[1], []).extend(match[2].split())
    return found


def missing_requirement(words, options):
    for word in words:
        if word == "no-sanitizer":  # address sanitizers reserve terabytes of address space and change allocation failures
            if options.sanitized:
                return "built with a sanitizer"
        elif word == "root":
            if os.geteuid() != 0:
                return "not root"
        elif shutil.which(word) is None:
            return f"no {word} here"
    return None


def make_tools(directory, glyd):
    """What cases may call: glyd itself and the tools beside this file."""
    directory.mkdir()
    (directory / "glyd").symlink_to(glyd)
    for tool, source in (("make-input", "make_inputs.py"), ("signal-when", "signal_when.py"), ("on-terminal", "on_terminal.py")):
        path = directory / tool
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / source}" "$@"\n')
        path.chmod(0o755)


def environment(tools, home, options):
    kept = {name: value for name, value in os.environ.items() if name.startswith(("ASAN_", "UBSAN_", "TSAN_", "LSAN_", "LD_"))}
    return kept | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "MODELS": str(options.models),
        "SHARE": str(HERE.parent.parent / "share"),
    }


def normalised(text, scratch, options, version):
    text = text.replace(str(scratch), "$SCRATCH").replace(str(options.models), "$MODELS")
    text = re.sub(rf"\b{re.escape(version)}\b", "VERSION", text)
    text = re.sub(r"\b\d+\.\d+ s\b", "TIME s", text)
    text = re.sub(r'("seconds": ?)[-+.\de]+', r"\1TIME", text)
    text = re.sub(r"stopped while working on \S+;", "stopped while working on SOMETHING;", text)  # where a signal hit it
    # How full a disk is depends on the machine.
    return re.sub(r"\b[\d.]+ ([kMGTP]B|bytes) are free\b", "SPACE are free", text)


def run_case(name, options, version):
    """Returns (problems, reason for leaving it out)."""
    script = (CASES / f"{name}.cmd").read_text()
    wanted = directives(script)
    reason = missing_requirement(wanted.get("requires", []), options)
    if reason:
        return [], reason
    with tempfile.TemporaryDirectory(prefix="glyd-cli-") as scratch_name:
        scratch = pathlib.Path(scratch_name).resolve()
        make_tools(scratch / "bin", options.glyd)
        work = scratch / "work"
        work.mkdir()
        process = subprocess.Popen(["bash", "-c", PROLOGUE + script], cwd=work, env=environment(scratch / "bin", work, options),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return [f"{name}: still running after {TIMEOUT_SECONDS} s"], None
        actual = {
            "stdout": normalised(out.decode(errors="replace"), work, options, version),
            "stderr": normalised(err.decode(errors="replace"), work, options, version),
            "exit": f"{process.returncode}\n",
        }
        problems = compare(name, actual, options.update)
        problems += leftovers(name, work, process.returncode, wanted.get("leaves", []))
    return problems, None


def leftovers(name, work, returncode, allowed):
    """Half-written things: staging directories, and `out` after a failure, unless the case says that it leaves them."""
    left = [path.name for path in work.glob(".*.glyd-staging")]
    if returncode != 0 and os.path.lexists(work / "out"):
        left.append("out")
    return [f"{name}: left {path} behind" for path in left if path not in allowed]


def compare(name, actual, update):
    problems = []
    for kind, text in actual.items():
        path = CASES / f"{name}.{kind}"
        default = "0\n" if kind == "exit" else ""
        expected = path.read_text() if path.exists() else default
        if text == expected:
            continue
        if update and "Traceback (most recent call last)" in text:
            problems.append(f"{name}: a tool failed, nothing rewritten:\n{text}")
        elif update:
            if text == default:
                path.unlink(missing_ok=True)
            else:
                path.write_text(text)
            print(f"{name}: {kind} rewritten")
        else:
            problems.append(difference(name, kind, expected, text))
    return problems


def difference(name, kind, expected, text):
    lines = difflib.unified_diff(expected.splitlines(True), text.splitlines(True), f"{name}.{kind} expected", "found")
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def main():
    parser = argparse.ArgumentParser(description="Runs the command line's transcripts.")
    parser.add_argument("--glyd", required=True, type=pathlib.Path, help="the program to test")
    parser.add_argument("--models", default=HERE.parent.parent / "models", type=pathlib.Path, help="the repository's models")
    parser.add_argument("--sanitized", action="store_true", help="the program was built with a sanitizer")
    parser.add_argument("--update", action="store_true", help="write what was found as what is expected")
    parser.add_argument("cases", nargs="*", help="names, without .cmd; all if none is given")
    options = parser.parse_args()
    options.glyd = options.glyd.resolve()
    options.models = options.models.resolve()
    version = subprocess.run([options.glyd, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    names = options.cases or sorted(path.stem for path in CASES.glob("*.cmd"))
    failed = skipped = 0
    for name in names:
        problems, reason = run_case(name, options, version)
        if reason:
            skipped += 1
            print(f"{name}: left out: {reason}")
        if problems:
            failed += 1
            print("\n".join(problems))
    print(f"{len(names)} cases: {len(names) - failed - skipped} passed, {failed} failed, {skipped} left out")
    return 1 if failed else SKIPPED if skipped == len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
