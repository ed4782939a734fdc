"""Families of models, tiny and random: packed as they load, from memory and from files, they give bf16's logits."""

import glyd
import pytest
import torch
import transformers
from conftest import same_bits, token_ids

SMALL = {"vocab_size": 320, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
LLAMA = {**SMALL, "num_key_value_heads": 2, "intermediate_size": 176, "max_position_embeddings": 128}
EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 4}
GPT2 = {"vocab_size": 320, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}

FAMILIES = {
    "llama": ("LlamaConfig", {**LLAMA, "tie_word_embeddings": False}),
    "llama-tied-bias": (
        "LlamaConfig",
        {**LLAMA, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
    ),
    "qwen2": ("Qwen2Config", LLAMA),
    "qwen3": ("Qwen3Config", {**LLAMA, "head_dim": 16}),
    "mistral": ("MistralConfig", LLAMA),
    "gemma": ("GemmaConfig", {**LLAMA, "head_dim": 16}),
    "granite": ("GraniteConfig", LLAMA),
    "phi": ("PhiConfig", {**LLAMA, "num_key_value_heads": 4}),
    "falcon": ("FalconConfig", {**SMALL, "max_position_embeddings": 128}),
    "gemma3": ("Gemma3TextConfig", {**LLAMA, "head_dim": 16}),
    "gpt2": ("GPT2Config", GPT2),
    "opt": ("OPTConfig", {**SMALL, "ffn_dim": 128, "max_position_embeddings": 128, "word_embed_proj_dim": 64}),
    "gpt-neox": ("GPTNeoXConfig", {**SMALL, "intermediate_size": 128, "max_position_embeddings": 128}),
    "mixtral": ("MixtralConfig", {**LLAMA, **EXPERTS}),
    "gpt-oss": (
        "GptOssConfig",
        {**LLAMA, **EXPERTS, "head_dim": 16, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}},
    ),
    "olmoe": ("OlmoeConfig", {**LLAMA, "num_experts": 4, "num_experts_per_tok": 2}),
}
if hasattr(transformers, "HrmTextConfig"):  # transformers splits its gate and up, q and k and v, as it loads
    FAMILIES["hrm"] = ("HrmTextConfig", {**LLAMA, "num_key_value_heads": 4, "head_dim": 16})
FREE_TOLERANCE = 0.05


def tiny_model(family, directory):
    """Writes the model and gives transformers' own load of it."""
    config_name, members = FAMILIES[family]
    torch.manual_seed(7)
    config = getattr(transformers, config_name)(**members)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    for name, parameter in model.named_parameters():
        if "bias" in name or "sink" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(directory)
    return transformers.AutoModelForCausalLM.from_pretrained(directory)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_family(family, tmp_path):
    reference = tiny_model(family, tmp_path / "bf16")
    ids = token_ids(24, batch=3, vocabulary=320)
    packed = glyd.from_pretrained(tmp_path / "bf16", device="cpu", exact=True, verify=True)
    glyd.save_pretrained(packed, tmp_path / "packed")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "packed")
    assert type(again) is type(packed) is type(reference)
    glyd.set_exact(again, True)
    with torch.no_grad():
        expected = reference(ids).logits
        assert same_bits(packed(ids).logits, expected)
        assert same_bits(again(ids).logits, expected)
        assert same_bits(again(ids[:1]).logits, reference(ids[:1]).logits)
        glyd.set_exact(again, False)
        free = again(ids).logits
    assert (free - expected).abs().max() <= FREE_TOLERANCE * expected.abs().max()
    left = [name for name, p in again.named_parameters() if p.dim() >= 2 and p.numel() > 64 * 64 and "bias" not in name]
    assert left == []
    found = again.glyd_report().to_dict()
    if family != "falcon":  # its own Linear multiplies by `.weight`, which decodes
        assert sum(found["calls"].values()) >= 3 * found["packed_modules"] - 3
    assert glyd.verify(tmp_path / "packed")["ok"] is True
    # The same from files packed by the library, under the checkpoint's own names (experts one by one, for example).
    glyd.pack(tmp_path / "bf16", tmp_path / "packed-files")
    from_files = glyd.from_pretrained(tmp_path / "packed-files", device="cpu", exact=True)
    with torch.no_grad():
        assert same_bits(from_files(ids).logits, expected)
    glyd.unpack(tmp_path / "packed", tmp_path / "back")
    back = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "back")
    with torch.no_grad():
        assert same_bits(back(ids).logits, expected)
