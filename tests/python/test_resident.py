"""A process that generates from packed weights holds at most 0.75 of bf16's bytes, and never a bf16 copy."""

import json

import glyd
import pytest
import torch
import transformers
from conftest import run_python

WORKING_BYTES = 40 << 20  # activations, a block of rows, the allocator; far below the bf16 weights' 163 MB

MEASURE = """
import json, sys, torch, transformers, glyd

def rss(field):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field))

shape = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
config = transformers.LlamaConfig(**shape)
tiny = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
tiny.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=4, min_new_tokens=4)  # all that is imported late is there now
import glyd.hf.loading
before = rss("VmRSS")
model = glyd.from_pretrained(sys.argv[1], device="cpu", exact=(sys.argv[2] == "exact"))
with open("/proc/self/clear_refs", "w") as refs:
    refs.write("5")  # the peak starts again from here: it then covers generate() alone
model.generate(torch.tensor([[5, 6, 7]]), max_new_tokens=4, min_new_tokens=4)
held = {p.data_ptr(): p.numel() * p.element_size() for p in [*model.parameters(), *model.buffers()]}
report = model.glyd_report().to_dict()
print(json.dumps({"growth": rss("VmHWM") - before, "held": sum(held.values()), "calls": report["calls"],
                  "packed": report["packed_bytes"]}))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """(bf16 directory, packed directory, bytes of the bf16 weights) of a random model of 82 million weights."""
    root = tmp_path_factory.mktemp("large")
    config = transformers.LlamaConfig(
        vocab_size=16000,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=8,
        num_attention_heads=12,
        max_position_embeddings=128,
        tie_word_embeddings=False,
    )
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(root / "bf16")
    glyd.pack(root / "bf16", root / "packed", verify=False)
    return root / "bf16", root / "packed", 2 * model.num_parameters()


@pytest.mark.parametrize("source", ["packed", "bf16"])
@pytest.mark.parametrize("products", ["exact", "free"])
def test_resident_weights(large, source, products):
    from_bf16, from_packed, bf16_bytes = large
    directory = from_packed if source == "packed" else from_bf16
    code = f"import sys; sys.argv = ['', {str(directory)!r}, {products!r}]\n" + MEASURE
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["held"] <= 0.75 * bf16_bytes
    assert found["packed"] >= 0.6 * bf16_bytes  # the weights are there, and packed
    assert found["growth"] <= 0.75 * bf16_bytes + WORKING_BYTES
    assert len(found["calls"]) == 8 * 7 + 2 and all(count == 4 for count in found["calls"].values())
