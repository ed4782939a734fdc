#!/usr/bin/env python3
"""A model in bf16 and packed, side by side on one GPU: tokens a second, memory, time to the first token, and whether
the logits and the text are the same.

    bench/e2e.py MODEL [--layout auto] [--exact auto] [--batch 1,8,32] [--mode graph,eager] [--prefill 2048] [--json FILE]

MODEL is a directory or repo in bf16, or the name of a shape (qwen3-8b, qwen3-4b, tiny): then the weights are random,
made on the GPU layer by layer from the same seeds for both, and packed as they are made. Decode steps run with a static
cache, captured as CUDA graphs in the same way for both, or eagerly.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from e2e_load import measure_loading
from e2e_model import SHAPES, build, load
from e2e_run import Runner, release, same_tokens

GREEDY_TOKENS = 128
TIMED_STEPS = 64


def parser():
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("model", help=f"a directory, a repo, or one of {', '.join(SHAPES)}")
    top.add_argument("--layout", "--format", default="auto")
    top.add_argument("--exact", default="auto", choices=["auto", "true", "false"])
    top.add_argument("--batch", default="1,8", type=numbers)
    top.add_argument("--mode", default="graph,eager")
    top.add_argument("--prompt", default=17, type=int, help="tokens of the prompts before decoding")
    top.add_argument("--lengths", default="1,17,300", type=numbers, help="prompts whose logits are compared")
    top.add_argument("--prefill", default="2048", type=numbers, help="prompts whose first token is timed")
    top.add_argument("--tokens", default=GREEDY_TOKENS, type=int, help="greedy tokens that are compared")
    top.add_argument("--steps", default=TIMED_STEPS, type=int, help="decode steps that are timed")
    top.add_argument("--layers", type=int, help="fewer layers than the shape has")
    top.add_argument("--seed", default=1, type=int)
    top.add_argument("--no-baseline", dest="baseline", action="store_false", help="glyd alone, no bf16")
    top.add_argument("--profile", type=int, default=0, metavar="N", help="prints the N kernels that take longest")
    top.add_argument("--load", metavar="DIR", help="also times loading, from files written below DIR")
    top.add_argument("--no-merge", dest="merge", action="store_false", help="q, k and v one after another in graphs")
    top.add_argument("--device", default="cuda:0")
    top.add_argument("--json", metavar="FILE")
    for name in ("--fused", "--merge", "--baseline"):  # accepted, as published commands have them: they are the default
        top.add_argument(name, action="store_true", default=True, help=argparse.SUPPRESS)
    return top


def numbers(text):
    return [int(part) for part in str(text).split(",") if part]


def commit():
    named = os.environ.get("GLYD_COMMIT")
    if named:
        return named
    here = Path(__file__).resolve().parents[1]
    done = subprocess.run(["git", "-C", here, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def environment(arguments):
    import transformers

    return {
        "command": "python " + " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "gpu": torch.cuda.get_device_name(arguments.device) if torch.cuda.is_available() else "none",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "seed": arguments.seed,
    }


def make(arguments, packed):
    exact = {"auto": "auto", "true": True, "false": False}[arguments.exact]
    layout = arguments.layout if packed else None
    if arguments.model in SHAPES:
        return build(arguments.model, arguments.seed, arguments.device, layout, exact, arguments.layers, arguments.merge)
    return load(arguments.model, arguments.device, layout, exact, arguments.merge)


def measure(arguments, packed):
    """Everything of one model: {"weights": bytes, "logits": ..., "decode": ..., "prefill": ...}."""
    began = time.perf_counter()
    model = make(arguments, packed)
    torch.cuda.synchronize()
    made_s = time.perf_counter() - began
    print(f"{'glyd' if packed else 'bf16'}: made in {made_s:.1f} s", file=sys.stderr)
    if packed:
        print(model.glyd_report(), file=sys.stderr)
    runner = Runner(model, arguments)
    found = runner.run()
    found["made_s"] = made_s
    if packed:
        found["report"] = {k: v for k, v in model.glyd_report().to_dict().items() if k != "calls"}
    return found


def compare(arguments, glyd, bf16):
    """The rows of "results"."""
    rows = []
    for (mode, batch), ours in glyd["decode"].items():
        row = {
            "model_shape": arguments.model if arguments.model in SHAPES else Path(arguments.model).name,
            "layers": arguments.layers,
            "layout": max(glyd["report"]["layouts"], key=glyd["report"]["layouts"].get),
            "mode": mode,
            "exact": glyd["report"]["exact"],
            "merge": arguments.merge,
            "batch": batch,
            "tokens_per_s": ours["tokens_per_s"],
            "peak_bytes": ours["peak_bytes"],
            "weights_bytes": glyd["weights_bytes"],
        }
        if bf16:
            theirs = bf16["decode"][mode, batch]
            same = {key: torch.equal(glyd["logits"][key].view(torch.int16), bf16["logits"][key].view(torch.int16))
                    for key in glyd["logits"] if key[0] in (1, batch)}  # fmt: skip
            row |= {
                "bf16_tokens_per_s": theirs["tokens_per_s"],
                "tokens_per_s_ratio": ours["tokens_per_s"] / theirs["tokens_per_s"],
                "bf16_peak_bytes": theirs["peak_bytes"],
                "bf16_weights_bytes": bf16["weights_bytes"],
                "logits_bit_identical": all(same.values()),
                "logits_compared": [f"{b}x{t}{'' if ok else ' DIFFER'}" for (b, t), ok in same.items()],
                "tokens_identical": same_tokens(ours["tokens"], theirs["tokens"]),
                "tokens_compared": ours["tokens"].shape[1],
                "tokens_attention": "scaled_dot_product_attention without cuDNN, whose results do not repeat",
                "bf16_tokens_repeated_by_default_attention": bf16["decode"]["graph", batch].get("repeats")
                if ("graph", batch) in bf16["decode"]
                else None,
            }
        rows.append(row)
    return rows


def prefill_rows(glyd, bf16):
    rows = []
    for length, seconds in glyd["prefill"].items():
        row = {"prompt": length, "first_token_s": seconds}
        if bf16:
            row |= {"bf16_first_token_s": bf16["prefill"][length], "ratio": seconds / bf16["prefill"][length]}
        rows.append(row)
    return rows


def show(document):
    print(f"{'mode':6}{'batch':>6}{'tok/s':>10}{'bf16':>10}{'ratio':>8}{'GB':>8}{'bf16':>8}  logits  tokens")
    for row in document["results"]:
        print(
            f"{row['mode']:6}{row['batch']:6}{row['tokens_per_s']:10.1f}{row.get('bf16_tokens_per_s', 0):10.1f}"
            f"{row.get('tokens_per_s_ratio', 0):8.3f}{row['peak_bytes'] / 1e9:8.2f}"
            f"{row.get('bf16_peak_bytes', 0) / 1e9:8.2f}  {row.get('logits_bit_identical', '-')!s:6}  "
            f"{row.get('tokens_identical', '-')} of {row.get('tokens_compared', '-')}"
        )
    for row in document["prefill"]:
        print(" ".join(f"{name} {value:.4g}" for name, value in row.items()))
    print(f"host time of a layer's products: {document['host']}; made in: {document['made_s']}")
    for name, value in document.get("loading", {}).items():
        print(f"{name}: {value}")


def main():
    arguments = parser().parse_args()
    document = environment(arguments)
    bf16 = measure(arguments, False) if arguments.baseline else None
    release()
    glyd = measure(arguments, True)
    document["results"] = compare(arguments, glyd, bf16)
    document["prefill"] = prefill_rows(glyd, bf16)
    document["report"] = glyd["report"]
    document["made_s"] = {"glyd": glyd["made_s"], "bf16": bf16 and bf16["made_s"]}
    document["host"] = {"glyd_layer_us": glyd["host_us"], "bf16_layer_us": bf16 and bf16["host_us"]}
    if arguments.load:
        torch.cuda.empty_cache()
        document["loading"] = measure_loading(arguments)
    show(document)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
