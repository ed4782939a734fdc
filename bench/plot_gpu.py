#!/usr/bin/env python3
"""Draws results of bench/gpu: time over cuBLAS's by tokens, a layer and a matrix each, and the rate at which packed weights are read.

    bench/plot_gpu.py bench/results/nvidia-h200/DATE-linear.jsonl... [--out FILE.png]

Of several files a later one's measurement of the same product counts.
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
from matplotlib.ticker import ScalarFormatter  # noqa: E402

COPY_TB_S = 4.3  # what a copy on this GPU moves, read and written (design figure; bench's unpack lines have the run's own)
COLOURS = plt.rcParams["axes.prop_cycle"].by_key()["color"]


def read(paths):
    head, newest = None, {}
    for path in paths:
        lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        head = head or lines[0]
        for line in lines[1:]:
            if "ratio" in line and "tokens" in line:
                newest[line["matrix"], line["tokens"], line["launch"]] = line
    return head, list(newest.values())


def series(lines, matrix, launch):
    rows = sorted((row["tokens"], row) for row in lines if row["matrix"] == matrix and row["launch"] == launch)
    return [tokens for tokens, _ in rows], [row for _, row in rows]


def terabytes_a_second(matrix, row):
    rows, cols = map(int, matrix.split("x"))
    return rows * cols * row["bits"] / 8 / (row["time_us"] * 1e-6) / 1e12


def by_tokens(axis):
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.set_xlabel("tokens")


def draw_ratio(axis, lines, matrices, title):
    for place, matrix in enumerate(matrices):
        for launch, style in (("plain", "-"), ("early", ":")):
            tokens, rows = series(lines, matrix, launch)
            label = matrix.replace("_", " ") if launch == "plain" else None
            axis.plot(tokens, [row["ratio"] for row in rows], style, marker="o", markersize=3, color=COLOURS[place % 10], label=label)
    axis.axhline(1.0, color="grey", linewidth=0.8)
    axis.axhline(11.2 / 16, color="grey", linewidth=0.8, linestyle="--")
    axis.text(1, 11.2 / 16 - 0.035, "bytes: 0.70", fontsize=7, color="grey")
    by_tokens(axis)
    axis.set_ylim(0.5, 2.6)
    axis.set_ylabel("time / cuBLAS bf16")
    axis.set_title(title, fontsize=10)
    axis.legend(fontsize=7, title="solid: ordinary launch, dotted: early", title_fontsize=6)


def draw_rate(axis, lines, matrices):
    for place, matrix in enumerate(matrices):
        tokens, rows = series(lines, matrix, "plain")
        axis.plot(tokens, [terabytes_a_second(matrix, row) for row in rows], marker="o", markersize=3, color=COLOURS[place % 10], label=matrix)
    axis.axhline(COPY_TB_S, color="grey", linewidth=0.8)
    by_tokens(axis)
    axis.set_ylim(0, 4.6)
    axis.set_ylabel("packed weights read, TB/s")
    axis.set_title("Bandwidth (grey: a copy's)", fontsize=10)
    axis.legend(fontsize=7)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, help="default: linear.png beside the results")
    arguments = parser.parse_args()
    head, lines = read(arguments.results)
    matrices = list(dict.fromkeys(row["matrix"] for row in lines))
    layers = [name for name in matrices if name.endswith("_layer")]
    single = [name for name in matrices if not name.endswith("_layer")]
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.6))
    draw_ratio(axes[0], lines, layers, "The four products of a layer")
    draw_ratio(axes[1], lines, single, "Single products (rows × k)")
    draw_rate(axes[2], lines, single)
    differing = sum(row["differing_outputs"] for row in lines)
    figure.suptitle(f"Exact products from packed `fast`, {head['gpu']}: {differing} outputs differ", fontsize=11)
    figure.tight_layout()
    figure.savefig(arguments.out or arguments.results[0].parent / "linear.png", dpi=110)


if __name__ == "__main__":
    main()
