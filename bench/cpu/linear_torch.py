#!/usr/bin/env python3
"""Times glyd_linear from packed weights against torch's F.linear in bf16, by turns in one process. See bench/README.md."""

import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
LAYOUTS = {"raw": 0, "fast": 1, "small": 2}
LIMITS = {1: 0.9, 8: 0.8, 64: 1.0}  # of torch's time, for layout fast


class Shape(ctypes.Structure):
    _fields_ = [("stack", ctypes.c_uint64), ("rows", ctypes.c_uint64), ("cols", ctypes.c_uint64),
                ("transposed", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class Glyd:
    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.glyd_last_error.restype = ctypes.c_char_p
        self.lib.glyd_cpu_isa.restype = ctypes.c_char_p
        self.lib.glyd_pack.argtypes = [ctypes.c_void_p, ctypes.POINTER(Shape), ctypes.c_int, ctypes.c_int, ctypes.c_void_p,
                                       ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]
        self.lib.glyd_linear.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64,
                                         ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int]

    def check(self, status):
        if status != 0:
            sys.exit(f"linear_torch.py: {self.lib.glyd_last_error().decode()}")

    def pack(self, weight, layout):
        shape = Shape(1, weight.shape[0], weight.shape[1], 0, 0)
        room, used = ctypes.c_uint64(), ctypes.c_uint64()
        self.check(self.lib.glyd_pack_bound(ctypes.byref(shape), ctypes.byref(room)))
        pack = torch.empty(room.value + 128, dtype=torch.uint8)
        start = -pack.data_ptr() % 128
        self.check(self.lib.glyd_pack(weight.data_ptr(), ctypes.byref(shape), LAYOUTS[layout], 0, pack.data_ptr() + start, room.value,
                                      ctypes.byref(used)))
        return pack[start:start + used.value].clone()

    def linear(self, pack, x, rows, y, threads):
        self.check(self.lib.glyd_linear(pack.data_ptr(), pack.numel(), 0, x.data_ptr(), x.shape[0], x.shape[1], None, y.data_ptr(), rows,
                                        threads))


def command_output(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def commit_of_tree():
    changed = command_output("git", "status", "--porcelain", "--untracked-files=no")
    return command_output("git", "rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def head_line(glyd, commit):
    return {"bench": "linear_torch.py", "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "command": " ".join(sys.argv),
            "commit": commit, "cpu": cpu_model(), "cpus": os.cpu_count(), "isa": glyd.lib.glyd_cpu_isa().decode(),
            "kernel": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}", "torch": torch.__version__,
            "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(), "load": os.getloadavg()[0]}


def seconds(body, index):
    start = time.perf_counter()
    body(index)
    return time.perf_counter() - start


def spread(values, unit=1.0):
    return {"min": round(min(values) * unit, 4), "median": round(statistics.median(values) * unit, 4), "max": round(max(values) * unit, 4)}


def measure(rounds, baseline, subject):
    """Pairs of times, the order alternating, after two rounds that are not counted."""
    pairs = []
    for index in range(-2, rounds):
        if index % 2:
            pair = seconds(baseline, index), seconds(subject, index)
        else:
            pair = tuple(reversed((seconds(subject, index), seconds(baseline, index))))
        if index >= 0:
            pairs.append(pair)
    return pairs


def check_agreement(glyd, pack, weight, x, threads):
    y = torch.empty(x.shape[0], weight.shape[0], dtype=torch.bfloat16)
    glyd.linear(pack, x, weight.shape[0], y, threads)
    exact = x.double() @ weight[:512].double().T
    error = (y[:, :512].double() - exact).abs().max().item()
    if error > 0.02 * exact.abs().max().item():
        sys.exit(f"linear_torch.py: products differ by {error}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default=ROOT / "build/bench/lib/libglyd.so", type=Path)
    parser.add_argument("--rows", type=int, default=12800)
    parser.add_argument("--cols", type=int, default=4096)
    parser.add_argument("--matrices", type=int, default=3, help="that products rotate through")
    parser.add_argument("--tokens", type=lambda text: [int(t) for t in text.split(",")], default=[1, 8, 64])
    parser.add_argument("--threads", type=lambda text: [int(t) for t in text.split(",")], default=[1, 2])
    parser.add_argument("--layouts", type=lambda text: text.split(","), default=["fast", "small"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--commit", help="what the library was built from, where this is no checkout of it")
    parser.add_argument("--out", type=Path, help="also write the lines to this file")
    return parser.parse_args()


def main():
    args = parse_arguments()
    glyd = Glyd(args.library)
    lines = []

    def emit(line):
        print(json.dumps(line), flush=True)
        lines.append(json.dumps(line))

    emit(head_line(glyd, args.commit or commit_of_tree()))
    torch.manual_seed(1)
    weights = [torch.empty(args.rows, args.cols).normal_(0, 0.02).to(torch.bfloat16) for _ in range(args.matrices)]
    packs = {layout: [glyd.pack(weight, layout) for weight in weights] for layout in args.layouts}
    for tokens in args.tokens:
        x = torch.randn(tokens, args.cols).to(torch.bfloat16)
        y = torch.empty(tokens, args.rows, dtype=torch.bfloat16)
        for layout in args.layouts:
            for threads in args.threads:
                torch.set_num_threads(threads)
                check_agreement(glyd, packs[layout][0], weights[0], x, threads)
                pairs = measure(
                    args.rounds,
                    lambda i: torch.nn.functional.linear(x, weights[i % args.matrices]),
                    lambda i: glyd.linear(packs[layout][i % args.matrices], x, args.rows, y, threads))
                ratio = spread([subject / baseline for baseline, subject in pairs])
                line = {"name": "cpu.linear", "layout": layout, "matrix": f"{args.rows}x{args.cols}", "tokens": tokens, "threads": threads,
                        "baseline": "torch F.linear bf16", "ratio_of": "time", "ratio": ratio}
                if layout == "fast" and tokens in LIMITS:
                    line |= {"at_most": LIMITS[tokens], "met": ratio["median"] <= LIMITS[tokens]}
                size = 2e-9 * args.rows * args.cols
                emit(line | {"rounds": args.rounds, "ms": spread([s for _, s in pairs], 1e3), "baseline_ms": spread([b for b, _ in pairs], 1e3),
                             "gb_s": spread([size / s for _, s in pairs]), "baseline_gb_s": spread([size / b for b, _ in pairs]),
                             "isa": glyd.lib.glyd_cpu_isa().decode()})
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
