#!/usr/bin/env python3
"""Draws results of bench/e2e.py: tokens a second and memory by batch, bf16 against glyd.

    bench/plot.py bench/results/nvidia-h200 [--model qwen3-8b] [--mode graph] [--out FILE.png]

Of each (layout, exact, batch) the newest result counts. RESULTS: files e2e-*.json, or a folder of them.
"""

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)

GLYD, BF16, MISSED = "#2a7f62", "#8a939c", "#c0392b"
LEAST_RATIO = {1: 1.10, 4: 1.10, 8: 1.10, 16: 1.10, 32: 1.05, 64: 1.0}  # issue C: tokens/s over bf16's, as graphs
MOST_MEMORY = 0.72  # of bf16's weights, beside what bf16 uses besides


def documents(paths):
    files = [file for path in paths for file in (path.glob("e2e-*.json") if path.is_dir() else [path])]
    files.sort(key=lambda file: file.stem)  # else "-2.json" comes before ".json"
    found = [json.loads(file.read_text()) for file in files]
    return sorted(found, key=lambda document: document["date"])  # sorting keeps the order of names within a day


def newest(found, model, mode):
    """(the newest document, {(layout, exact): {batch: row}}) of one model and mode."""
    head, series = None, {}
    for document in found:
        for row in document["results"]:
            asked = row["model_shape"] == model and row["mode"] == mode and row.get("merge", True)
            if asked and not row.get("layers") and "bf16_peak_bytes" in row:
                head = document
                series.setdefault((row["layout"], row["exact"]), {})[row["batch"]] = row
    return head, series


def draw_speed(axis, batches, rows, with_limits):
    width = 0.38
    for place, batch in enumerate(batches):
        row = rows[batch]
        ratio, limit = row["tokens_per_s_ratio"], LEAST_RATIO.get(batch) if with_limits else None
        axis.bar(place - width / 2, 1.0, width, color=BF16)
        axis.bar(place + width / 2, ratio, width, color=MISSED if limit and ratio < limit else GLYD)
        axis.text(place + width / 2, ratio + 0.015, f"{ratio:.2f}", ha="center", fontsize=9, fontweight="bold")
        for shift, name in ((-width / 2, "bf16_tokens_per_s"), (width / 2, "tokens_per_s")):
            inside = {"ha": "center", "fontsize": 7, "color": "white", "rotation": 90}
            axis.text(place + shift, 0.03, f"{row[name]:,.0f}", **inside)
        if limit:
            axis.plot([place, place + width], [limit, limit], color="black", linewidth=2)
    axis.set_title("tokens a second over bf16's (in the bars: tokens a second)", fontsize=10)
    axis.set_ylim(0, max(1.3, 1.15 * max(row["tokens_per_s_ratio"] for row in rows.values())))


def draw_memory(axis, batches, rows):
    width = 0.38
    for place, batch in enumerate(batches):
        row = rows[batch]
        limit = MOST_MEMORY * row["bf16_weights_bytes"] + row["bf16_peak_bytes"] - row["bf16_weights_bytes"]
        for shift, peak, weights, colour in (
            (-width / 2, row["bf16_peak_bytes"], row["bf16_weights_bytes"], BF16),
            (width / 2, row["peak_bytes"], row["weights_bytes"], MISSED if row["peak_bytes"] > limit else GLYD),
        ):
            axis.bar(place + shift, weights / 1e9, width, color=colour)
            axis.bar(place + shift, (peak - weights) / 1e9, width, bottom=weights / 1e9, color=colour, alpha=0.45)
            above = max(peak, limit if shift > 0 else 0) / 1e9 + 0.15
            axis.text(place + shift, above, f"{peak / 1e9:.1f}", ha="center", fontsize=8)
        axis.plot([place, place + width], [limit / 1e9, limit / 1e9], color="black", linewidth=2)
    axis.set_title("peak memory in GB (full colour: weights)", fontsize=10)


def draw(head, series, model, mode, out):
    figure, grid = plt.subplots(len(series), 2, figsize=(11, 0.9 + 3.6 * len(series)), squeeze=False)
    for (speed, memory), ((layout, exact), rows) in zip(grid, sorted(series.items()), strict=True):
        batches = sorted(rows)
        draw_speed(speed, batches, rows, mode == "graph")
        draw_memory(memory, batches, rows)
        same = sum(row["logits_bit_identical"] for row in rows.values())
        speed.set_ylabel(f"layout {layout}, {'exact' if exact else 'free'}\nlogits identical: {same} of {len(rows)}", fontsize=9)
        for axis in (speed, memory):
            axis.set_xticks(range(len(batches)), batches)
            axis.set_xlabel("batch", fontsize=9)
            axis.spines[["top", "right"]].set_visible(False)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (BF16, GLYD)]
    handles.append(plt.Line2D([], [], color="black", linewidth=2))
    names = ["bf16", "glyd (red: outside the limit)", "limit"]
    figure.legend(handles, names, loc="lower center", ncols=3, fontsize=9, frameon=False)
    title = f"{model}, {mode} steps, {head['gpu']}, torch {head['torch']}, transformers {head['transformers']}"
    figure.suptitle(f"{title}, {head['date']}, commit {head['commit']}", fontsize=9)
    figure.tight_layout(rect=(0, 0.05 / len(series) + 0.02, 1, 1))
    figure.savefig(out, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--model", default="qwen3-8b")
    parser.add_argument("--mode", default="graph", choices=["graph", "eager", "compiled"])
    parser.add_argument("--out", type=Path, help="e2e-MODEL-MODE.png beside the results, if not given")
    arguments = parser.parse_args()
    head, series = newest(documents(arguments.results), arguments.model, arguments.mode)
    if head is None:
        sys.exit(f"plot.py: no result of {arguments.model} ({arguments.mode}) with a bf16 baseline")
    folder = arguments.results[0] if arguments.results[0].is_dir() else arguments.results[0].parent
    out = arguments.out or folder / f"e2e-{arguments.model}-{arguments.mode}.png"
    draw(head, series, arguments.model, arguments.mode, out)
    print(out)


if __name__ == "__main__":
    main()
