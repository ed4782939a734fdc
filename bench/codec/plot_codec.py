#!/usr/bin/env python3
"""Draws a run of glyd_bench_codec: ratio against rate, each level beside its peer. See bench/README.md."""

import argparse
import json
import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
import matplotlib.ticker  # noqa: E402

COLOURS = {"default": "#2a7f62", "max": "#2b5fa3", "ultra": "#8e44ad"}


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def points(lines, level, key):
    """(rate, ratio) of glyd and of its peer, geometric means over the files that count."""
    chosen = [line for line in lines if line["name"] == f"codec.{level}" and line["in_mean"]]
    if not chosen:
        return None
    ours = (mean([line[key]["mb_s"] for line in chosen]), mean([line["raw_bytes"] / line["bytes"] for line in chosen]))
    peer = (mean([line[key]["peer_mb_s"] for line in chosen]), mean([line["raw_bytes"] / line["peer_bytes"] for line in chosen]))
    return ours, peer, chosen[0]["peer"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="file of JSON lines")
    parser.add_argument("--out", type=Path, help="picture to write (default: beside the results)")
    args = parser.parse_args()
    head, *lines = map(json.loads, args.results.read_text().splitlines())
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.5))
    for axis, key in zip(axes, ("write", "read")):
        for level, colour in COLOURS.items():
            found = points(lines, level, key)
            if found is None:
                continue
            ours, peer, name = found
            axis.plot(*zip(ours, peer), color=colour, linewidth=1, alpha=0.5)
            axis.plot(*ours, "o", color=colour, markersize=9)
            axis.plot(*peer, "o", color=colour, markersize=9, fillstyle="none")
            axis.annotate(f"glyd {level}", ours, xytext=(7, 4), textcoords="offset points", fontsize=9)
            axis.annotate(name, peer, xytext=(7, -11), textcoords="offset points", fontsize=9)
        axis.set_xscale("log")
        axis.margins(x=0.35, y=0.1)  # room for the names
        plain = matplotlib.ticker.StrMethodFormatter("{x:.0f}")
        low, high = axis.get_xlim()
        axis.xaxis.set_major_formatter(plain)
        axis.xaxis.set_minor_formatter(plain if high < 10 * low else matplotlib.ticker.NullFormatter())
        axis.set_xlabel(f"{key}: MB/s, one thread")
        axis.set_ylabel("raw / stored")
        axis.grid(alpha=0.3)
    figure.suptitle(f"{head['cpu']}, {head['isa']}, {head['date']}, commit {head['commit']}", fontsize=9)
    figure.tight_layout()
    figure.savefig(args.out or args.results.with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
