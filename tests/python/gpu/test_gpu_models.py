"""The trained models and tiny models of many families on the GPU: packed, they give the bf16 model's bits."""

import copy
import pickle

import glyd
import pytest
import torch
import transformers
from conftest import MODELS, same_bits, token_ids
from test_families import tiny_model
from test_models import steps_between_best_two

DEVICE = "cuda:0"
DENSE = ("llama", "llama-tied-bias", "qwen2", "qwen3", "mistral", "gemma", "phi", "gpt-neox", "opt", "falcon", "gpt2")
DENSE = (*DENSE, "granite", "gemma3")
EXPERTS = ("mixtral", "gpt-oss", "olmoe")

_references = {}


def reference(name):
    if name not in _references:
        model = transformers.AutoModelForCausalLM.from_pretrained(MODELS[name], device_map={"": DEVICE})
        _references[name] = model.eval()
    return _references[name]


@torch.no_grad()
def logits(model, ids):
    return model(ids.to(model.device)).logits


@pytest.fixture(scope="module", params=["fast", "small"])
def packed(request, model_name):
    return glyd.from_pretrained(MODELS[model_name], device="cuda", layout=request.param, exact=True, verify=True)


@pytest.mark.parametrize("batch", [1, 3, 4, 8])
def test_exact_logits(model_name, packed, batch):
    for length in (1, 2, 17, 100):
        ids = token_ids(length, batch, seed=length)
        assert same_bits(logits(packed, ids), logits(reference(model_name), ids)), f"length {length}"


def test_greedy_text(model_name, packed):
    ids = token_ids(9, 2).to(DEVICE)
    texts = [
        model.generate(ids, max_new_tokens=64, min_new_tokens=64, do_sample=False)
        for model in (packed, reference(model_name))
    ]
    assert torch.equal(*texts)


def test_static_cache_text(model_name, packed):
    ids = token_ids(9, 1).to(DEVICE)
    options = {"max_new_tokens": 16, "min_new_tokens": 16, "do_sample": False, "cache_implementation": "static"}
    options["disable_compile"] = True
    assert torch.equal(packed.generate(ids, **options), reference(model_name).generate(ids, **options))


def test_everything_is_on_the_gpu_and_packed(model_name, packed):
    assert {t.device.type for t in [*packed.parameters(), *packed.buffers()]} == {"cuda"}
    found = packed.glyd_report().to_dict()
    assert found["device"] == DEVICE and found["packed_bytes"] <= 0.75 * found["bf16_bytes"]


def test_free_logits_are_close(model_name, packed):
    ids = token_ids(21, 2)
    expected = logits(reference(model_name), ids)
    glyd.set_exact(packed, False)
    try:
        found = logits(packed, ids)
    finally:
        glyd.set_exact(packed, True)
    assert (found - expected).abs().max() <= 0.05 * expected.abs().max()


def test_save_load_verify(model_name, packed, tmp_path):
    glyd.save_pretrained(packed, tmp_path / "saved")
    assert glyd.verify(tmp_path / "saved")["ok"] is True
    again = glyd.from_pretrained(tmp_path / "saved", exact=True, verify=True)
    assert again.device == torch.device(DEVICE)
    ids = token_ids(11, 3)
    assert same_bits(logits(again, ids), logits(reference(model_name), ids))
    other = "small" if "fast" in again.glyd_report().to_dict()["layouts"] else "fast"
    converted = glyd.from_pretrained(tmp_path / "saved", exact=True, layout=other)
    assert set(converted.glyd_report().to_dict()["layouts"]) == {other}
    assert same_bits(logits(converted, ids), logits(reference(model_name), ids))


def test_packed_on_the_gpu_is_packed_on_the_cpu(model_name):
    ours = glyd.from_pretrained(MODELS[model_name], device="cuda", exact=False).state_dict()
    theirs = glyd.from_pretrained(MODELS[model_name], device="cpu", exact=False).state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        if name.endswith("_glyd"):
            assert torch.equal(ours[name].cpu(), tensor), name


def test_moves_and_copies(model_name, packed):
    ids = token_ids(7)
    expected = logits(reference(model_name), ids)
    moved = glyd.from_pretrained(MODELS[model_name], device="cpu", exact=True).to(DEVICE)
    assert same_bits(logits(moved, ids), expected)
    for again in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert same_bits(logits(again, ids), expected)


def test_compress_in_place(model_name):
    model = transformers.AutoModelForCausalLM.from_pretrained(MODELS[model_name], device_map={"": DEVICE})
    assert glyd.gpu.compress(model, exact=True, verify=True) is model
    ids = token_ids(7, 3)
    assert same_bits(logits(model, ids), logits(reference(model_name), ids))


@pytest.mark.parametrize("family", sorted(set(DENSE) | set(EXPERTS)))
def test_family(family, tmp_path):
    tiny_model(family, tmp_path / "bf16")
    bf16 = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "bf16", device_map={"": DEVICE})
    ours = glyd.from_pretrained(tmp_path / "bf16", device="cuda", exact=True, verify=True)
    glyd.save_pretrained(ours, tmp_path / "packed")
    assert glyd.verify(tmp_path / "packed")["ok"] is True
    again = glyd.from_pretrained(tmp_path / "packed", device="cuda", exact=True)
    glyd.pack(tmp_path / "bf16", tmp_path / "packed-files")
    from_files = glyd.from_pretrained(tmp_path / "packed-files", device="cuda", exact=True)
    for batch, length in ((1, 1), (3, 24), (8, 5), (1, 100)):
        ids = token_ids(length, batch, vocabulary=320)
        expected = logits(bf16, ids)
        for which, model in (("loaded", ours), ("saved", again), ("packed files", from_files)):
            assert same_bits(logits(model, ids), expected), f"{which}, batch {batch}, {length} tokens"


def test_image_text_model(tmp_path):
    text = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    text = transformers.LlamaConfig(**text, vocab_size=320, intermediate_size=176)
    vision = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    vision = transformers.CLIPVisionConfig(**vision, image_size=32, patch_size=8)
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_id=300)
    torch.manual_seed(5)
    model = transformers.AutoModelForImageTextToText.from_config(config, dtype=torch.bfloat16).to(DEVICE).eval()
    ids = token_ids(30, 2, vocabulary=299).to(DEVICE)
    ids[:, 3:19] = 300
    pixels = torch.randn(2, 3, 32, 32, device=DEVICE, dtype=torch.bfloat16)
    with torch.no_grad():
        expected = model(input_ids=ids, pixel_values=pixels).logits
        glyd.gpu.compress(model, exact=True)
        assert same_bits(model(input_ids=ids, pixel_values=pixels).logits, expected)
        assert model.glyd_report().to_dict()["packed_modules"] > 20
        glyd.save_pretrained(model, tmp_path / "packed")
        assert glyd.verify(tmp_path / "packed")["ok"] is True
        again = glyd.from_pretrained(tmp_path / "packed", device="cuda", exact=True)
        assert type(again) is type(model)
        assert same_bits(again(input_ids=ids, pixel_values=pixels).logits, expected)


def test_compiled_product():
    """A packed Linear is one op of a compiled graph, with its own bits."""
    import torch._dynamo

    torch._dynamo.reset()
    model = glyd.from_pretrained(MODELS["tiny-qwen3"], exact=True)
    module = model.model.layers[0].mlp.down_proj
    x = torch.randn(5, module.in_features, device=DEVICE, dtype=torch.bfloat16)
    assert same_bits(torch.compile(module, fullgraph=True)(x), module(x))
    torch._dynamo.reset()


def test_compiled_text():
    """transformers compiles generate() with a static cache: no graph break. What inductor fuses around the products it
    rounds as it likes, so texts may part where two tokens are as good."""
    import torch._dynamo

    ids = token_ids(9, 1).to(DEVICE)
    options = {"max_new_tokens": 24, "min_new_tokens": 24, "do_sample": False, "cache_implementation": "static"}
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    found = glyd.from_pretrained(MODELS["tiny-qwen3"], exact=True).generate(ids, **options)[0].tolist()
    assert not torch._dynamo.utils.counters["graph_break"], dict(torch._dynamo.utils.counters["graph_break"])
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 1, "nothing was compiled"
    torch._dynamo.reset()
    model = reference("tiny-qwen3")
    expected = model.generate(ids, **options, disable_compile=True)[0].tolist()
    if found != expected:
        parting = next(i for i, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b)
        steps = steps_between_best_two(logits(model, torch.tensor([expected[:parting]]))[0, -1])
        assert steps <= 4, f"token {parting}: {found[parting]} for {expected[parting]}, {steps} steps apart"

