#!/usr/bin/env python3
"""Whether a bf16 model gives the same greedy text twice on this GPU, by kind of attention: what "exact" can be held against.

    bench/attention_repeats.py [qwen3-8b] [--batch 8,32] [--layers N]

For each kind, the first token at which two replays of the same CUDA graph part, or "equal". Random weights.
"""

import argparse
import contextlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from e2e_model import SHAPES, build
from e2e_run import Decoding, same_tokens
from torch.nn.attention import SDPBackend, sdpa_kernel

PROMPT, TOKENS = 17, 96


def text_twice(model, prompt, kind):
    with sdpa_kernel([kind]) if kind else contextlib.nullcontext(), torch.no_grad():
        decoding = Decoding(model, prompt, PROMPT + TOKENS + 4)
        decoding.capture()
        return same_tokens(decoding.greedy(TOKENS), decoding.greedy(TOKENS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", nargs="?", default="qwen3-8b", choices=SHAPES)
    parser.add_argument("--batch", default="4,8,32")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--device", default="cuda:0")
    arguments = parser.parse_args()
    model = build(arguments.shape, 1, arguments.device, layers=arguments.layers)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name(arguments.device)}")
    for batch in map(int, arguments.batch.split(",")):
        prompt = torch.randint(0, model.config.vocab_size, (batch, PROMPT), device=arguments.device)
        for name, kind in (("default", None), ("cuDNN", SDPBackend.CUDNN_ATTENTION), ("plain", SDPBackend.MATH)):
            same = text_twice(model, prompt, kind)
            print(f"batch {batch}, {name} attention: " + ("equal" if same == TOKENS else f"part after {same} tokens"))


if __name__ == "__main__":
    main()
