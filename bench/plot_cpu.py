#!/usr/bin/env python3
"""Draws the newest CPU results of a machine: each measured ratio against its limit. See bench/README.md."""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)

MET, MISSED, OPEN = "#2a7f62", "#c0392b", "#7f8c8d"


def read_results(folder):
    """The newest line of each (name, layout, tokens, threads, baseline), and the newest head line."""
    newest, head = {}, None
    for path in sorted(folder.glob("*.json"), key=lambda p: json.loads(p.read_text().splitlines()[0])["date"]):
        first, *lines = map(json.loads, path.read_text().splitlines())
        # The codec's results have a plot of their own, and parts of products no baseline.
        lines = [line for line in lines if line["name"].startswith("cpu.") and "ratio" in line]
        if not lines:
            continue
        head = first
        for line in lines:
            newest[(line["name"], line["layout"], line.get("tokens", 0), line["threads"], line["baseline"])] = line
    return head, [newest[key] for key in sorted(newest)]


def label_of(line):
    tokens = f", {line['tokens']} tok" if "tokens" in line else ""
    return f"{line['name'].removeprefix('cpu.')} {line['layout']}{tokens}, {line['threads']} thr"


def draw(axis, lines, title, what):
    for place, line in enumerate(lines):
        ratio, limit = line["ratio"], line.get("at_most", line.get("at_least"))
        colour = OPEN if limit is None else MET if line["met"] else MISSED
        axis.barh(place, ratio["median"], color=colour, height=0.6)
        axis.plot([ratio["min"], ratio["max"]], [place, place], color="black", linewidth=1)
        if limit is not None:
            axis.plot([limit, limit], [place - 0.4, place + 0.4], color="black", linewidth=2.5)
        axis.text(0.01, place, f"{ratio['median']:.2f}", va="center", ha="left", color="white", fontsize=8, fontweight="bold")
    axis.set_yticks(range(len(lines)), [label_of(line) for line in lines], fontsize=8)
    axis.invert_yaxis()
    highest = max([line["ratio"]["median"] for line in lines] + [line.get("at_most", line.get("at_least", 0)) for line in lines])
    axis.set_xlim(0, 1.25 * highest)
    axis.set_title(title, fontsize=10)
    axis.set_xlabel(what, fontsize=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="folder of one machine, such as bench/results/amd-epyc")
    parser.add_argument("--out", type=Path, help="picture to write (default: cpu.png in the folder)")
    args = parser.parse_args()
    head, lines = read_results(args.results)
    panels = [
        ("rate over the baseline's: right of the mark is good", [line for line in lines if line["ratio_of"] == "rate"],
         "decode / memcpy, pack and verify / sha256"),
        ("time over plain bf16's (own kernel): left of the mark is good",
         [line for line in lines if line["ratio_of"] == "time" and "torch" not in line["baseline"]], "time / own bf16 product"),
        ("time over torch F.linear bf16's: left of the mark is good",
         [line for line in lines if "torch" in line["baseline"]], "time / F.linear"),
    ]
    panels = [panel for panel in panels if panel[1]]
    figure, axes = plt.subplots(len(panels), 1, figsize=(9, 1.2 + sum(0.9 + 0.3 * len(panel[1]) for panel in panels)), squeeze=False,
                                height_ratios=[3 + len(panel[1]) for panel in panels])
    for axis, (title, group, what) in zip(axes[:, 0], panels):
        draw(axis, group, title, what)
    figure.suptitle(f"{head['cpu']}, {head['isa']}, {head['date'][:10]}, commit {head['commit']} (bars: median, lines: min to max)", fontsize=9)
    figure.tight_layout()
    figure.savefig(args.out or args.results / "cpu.png", dpi=130)


if __name__ == "__main__":
    main()
