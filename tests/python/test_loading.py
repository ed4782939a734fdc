"""How packed models come and go: transformers' own from_pretrained, options, wrong input, copies, gradients."""

import copy
import json
import pickle
import shutil

import glyd
import pytest
import torch
import transformers
from conftest import MODELS, load_bf16, pack_once, run_python, same_bits, token_ids

NAME = "tiny-qwen3"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return pack_once(NAME, "fast", tmp_path_factory)


@pytest.fixture
def damaged(directory, tmp_path):
    return shutil.copytree(directory, tmp_path / "damaged")


@pytest.fixture(scope="module")
def packed(directory):
    return glyd.from_pretrained(directory, device="cpu", exact=True)


@torch.no_grad()
def logits(model, ids):
    return model(ids).logits


LOAD = "from transformers import AutoModelForCausalLM\nmodel = AutoModelForCausalLM.from_pretrained({path!r})\n"
USE = "print(type(model).__name__, len(model.glyd_report().to_dict()['calls']))\n"


@pytest.mark.parametrize("order", ["import glyd\n" + LOAD, LOAD.replace("\n", "\nimport glyd\n", 1)])
def test_transformers_loads_a_packed_directory_after_import_glyd(directory, order):
    done = run_python(order.format(path=str(directory)) + USE)
    assert done.stdout.split() == ["Qwen3ForCausalLM", "44"], done.stderr


def test_transformers_fails_without_import_glyd(directory):
    """On a missing file: a loader that does not know glyd must never start a random model."""
    done = run_python(LOAD.format(path=str(directory)) + "print('loaded')\n")
    assert done.returncode != 0 and "loaded" not in done.stdout
    assert "OSError" in done.stderr and "model.safetensors" in done.stderr


BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "numpy", "safetensors", "huggingface_hub"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
"""


def test_import_without_torch():
    source = str(MODELS[NAME])
    code = (
        BLOCK
        + f"import glyd; print(round(glyd.sizes({source!r})['models'][0]['total']['fast_bits'], 1), glyd.__version__)"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    bits, version = done.stdout.split()
    assert 11 < float(bits) < 11.6 and version.count(".") == 2


def test_import_does_not_import_torch():
    done = run_python("import sys, glyd; print('torch' in sys.modules, 'transformers' in sys.modules)")
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_quantization_config_packs_a_bf16_directory():
    config = glyd.GlydConfig(layout="small", exact=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(MODELS[NAME], quantization_config=config)
    assert set(model.glyd_report().to_dict()["layouts"]) == {"small"}
    ids = token_ids(11)
    assert same_bits(logits(model, ids), logits(load_bf16(NAME), ids))


def test_modules_to_not_convert_stay_bf16():
    config = glyd.GlydConfig(exact=True, modules_to_not_convert=["o_proj"])
    model = transformers.AutoModelForCausalLM.from_pretrained(MODELS[NAME], quantization_config=config)
    attention = model.model.layers[0].self_attn
    assert type(attention.o_proj) is torch.nn.Linear and type(attention.q_proj) is not torch.nn.Linear
    ids = token_ids(11)
    assert same_bits(logits(model, ids), logits(load_bf16(NAME), ids))


def test_another_layout_packs_again(directory):
    model = glyd.from_pretrained(directory, device="cpu", layout="small", exact=True)
    assert set(model.glyd_report().to_dict()["layouts"]) == {"small"}
    ids = token_ids(11)
    assert same_bits(logits(model, ids), logits(load_bf16(NAME), ids))


def test_tied_head_shares_the_embeddings_pack(packed):
    assert packed.lm_head.weight_glyd is packed.model.embed_tokens.weight_glyd
    packed.tie_weights()
    assert packed.lm_head.weight_glyd is packed.model.embed_tokens.weight_glyd
    assert len(packed.glyd_report().to_dict()["calls"]) == packed.glyd_report().to_dict()["packs"] + 1


def test_names_and_weight(packed):
    reference = load_bf16(NAME)
    names = {name.removesuffix("_glyd") for name in packed.state_dict()}
    assert names == set(reference.state_dict())
    assert same_bits(packed.model.layers[2].mlp.up_proj.weight, reference.model.layers[2].mlp.up_proj.weight)
    assert same_bits(packed.lm_head.weight, reference.lm_head.weight)


def test_exact_auto_says_what_it_chose(directory, capsys):
    model = glyd.from_pretrained(directory, device="cpu")
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("glyd:")]
    assert len(lines) == 1 and "free" in lines[0] and lines[0].count("exact") >= 1
    found = model.glyd_report().to_dict()
    assert found["exact"] in (True, False) and "times as long as a free one" in found["reason"]


def test_report_reads_as_text(packed):
    text = str(packed.glyd_report())
    assert "44 modules packed in 43 packs, lm_head sharing model.embed_tokens's" in text
    assert "fast 43" in text and "exact" in text


def test_save_load_verify(packed, tmp_path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODELS[NAME])
    glyd.save_pretrained(packed, tmp_path / "saved", layout="small", tokenizer=tokenizer)
    assert glyd.verify(tmp_path / "saved")["layout"] == "small"
    assert not list(tmp_path.glob(".*staging"))
    with pytest.raises(glyd.ExistsError, match="saved"):
        glyd.save_pretrained(packed, tmp_path / "saved")
    again = glyd.from_pretrained(tmp_path / "saved", device="cpu", exact=True, verify=True)
    ids = token_ids(11)
    assert same_bits(logits(again, ids), logits(load_bf16(NAME), ids))
    glyd.unpack(tmp_path / "saved", tmp_path / "back")
    back = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "back")
    for name, tensor in load_bf16(NAME).state_dict().items():
        assert same_bits(back.state_dict()[name], tensor), name
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "back")("def").input_ids == tokenizer("def").input_ids


def test_saving_over_a_packed_directory_loses_no_file(packed, damaged):
    (damaged / "notes.txt").write_text("mine")
    (damaged / "checkpoint-5").mkdir()
    with pytest.raises(glyd.ExistsError, match=r"would lose.*checkpoint-5/.*notes\.txt"):
        glyd.save_pretrained(packed, damaged, overwrite=True)
    assert (damaged / "notes.txt").read_text() == "mine" and glyd.inspect(damaged)
    assert not list(damaged.parent.glob(".*staging"))


def test_saving_over_what_it_made_itself(packed, tmp_path):
    first = glyd.save_pretrained(packed, tmp_path / "saved")
    again = glyd.save_pretrained(packed, tmp_path / "saved", layout="small", overwrite=True)
    assert (first["layout"], again["layout"]) == ("fast", "small") and again["packed_bytes"] < first["packed_bytes"]
    assert again["tensors_packed"] == 43 and again["target"] == str(tmp_path / "saved")
    assert glyd.verify(tmp_path / "saved")["ok"] and glyd.inspect(tmp_path / "saved")["source"]["name"]


def test_transformers_save_pretrained_names_the_call(packed, tmp_path):
    with pytest.raises(ValueError, match=r"glyd\.save_pretrained\(model, path\)"):
        packed.save_pretrained(tmp_path / "no")


def test_copies(packed):
    ids = token_ids(7)
    expected = logits(packed, ids)
    for again in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert same_bits(logits(again, ids), expected)
        assert again.lm_head.weight_glyd is again.model.embed_tokens.weight_glyd


def test_gradients_reach_inputs_and_not_packed_weights(packed):
    reference = load_bf16(NAME)
    ids = token_ids(6)
    gradients = []
    for model in (packed, reference):
        inputs = reference.model.embed_tokens(ids).detach().requires_grad_()
        model(inputs_embeds=inputs).logits.float().pow(2).mean().backward()
        gradients.append(inputs.grad.float())
    assert torch.allclose(*gradients, rtol=0.05, atol=0.02 * gradients[1].abs().max().item())


def test_setting_a_packed_weight_is_refused(packed):
    linear = packed.model.layers[0].mlp.up_proj
    with pytest.raises(glyd.UnsupportedError, match=r"weight is packed.*bf16"):
        linear.weight = torch.nn.Parameter(torch.zeros(768, 256))


def test_dequantize_gives_plain_modules(directory):
    model = glyd.from_pretrained(directory, device="cpu", exact=True).dequantize()
    assert type(model.lm_head) is torch.nn.Linear and model.lm_head.weight is model.model.embed_tokens.weight
    ids = token_ids(7)
    assert same_bits(logits(model, ids), logits(load_bf16(NAME), ids))


def test_other_dtypes(directory):
    """float32 asked for: the packed bf16 values, multiplied as float32."""
    reference = transformers.AutoModelForCausalLM.from_pretrained(MODELS[NAME], dtype=torch.float32)
    ids = token_ids(7)
    for source in (directory, MODELS[NAME]):
        model = glyd.from_pretrained(source, device="cpu", dtype=torch.float32, exact=True)
        found = logits(model, ids)
        assert found.dtype == torch.float32 and torch.equal(found, logits(reference, ids))
        assert model.glyd_report().to_dict()["packed_modules"] == 44


CASTS = {
    "to": lambda model: model.to(torch.float16),
    "device and dtype": lambda model: model.to("cpu", torch.float16),
    "half": lambda model: model.half(),
    "float": lambda model: model.float(),
    "double": lambda model: model.double(),
    "base model": lambda model: model.model.to(torch.float16),
    "a layer": lambda model: model.model.layers[0].half(),
}


@pytest.mark.parametrize("cast", CASTS)
def test_a_cast_is_refused_and_nothing_is_cast(packed, cast):
    with pytest.raises(glyd.UnsupportedError, match=r"dequantize\(\)\.to\(torch\.\w+\)"):
        CASTS[cast](packed)
    assert {parameter.dtype for parameter in packed.parameters()} == {torch.bfloat16}
    assert packed.model.rotary_emb.inv_freq.dtype == torch.float32


def test_moves_and_casts_to_bf16_work(directory):
    ids = token_ids(7)
    model = glyd.from_pretrained(directory, device="cpu", exact=True)
    before = logits(model, ids)
    assert same_bits(logits(model.to("cpu").cpu(), ids), before)
    plain = transformers.AutoModelForCausalLM.from_pretrained(MODELS[NAME])
    assert same_bits(logits(model.to(torch.bfloat16), ids), logits(plain.to(torch.bfloat16), ids))
    assert plain.half().dtype == torch.float16  # models without packed modules are as they were


def test_a_float32_load_may_become_bf16(directory):
    model = glyd.from_pretrained(directory, device="cpu", dtype=torch.float32, exact=True)
    model.to(torch.float32)
    plain = transformers.AutoModelForCausalLM.from_pretrained(MODELS[NAME], dtype=torch.float32)
    ids = token_ids(7)
    assert same_bits(logits(model.to(torch.bfloat16), ids), logits(plain.to(torch.bfloat16), ids))


# Wrong input.


def test_a_model_without_bf16_weights_is_an_error(tmp_path):
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, vocab_size=64
    )
    transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(tmp_path / "fp32")
    with pytest.raises(glyd.UnsupportedError, match=r"no weight.*float32.*dtype=torch.bfloat16"):
        glyd.from_pretrained(tmp_path / "fp32", device="cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_is_refused_with_what_to_do(directory):
    with pytest.raises(glyd.UnsupportedError, match=r"cuda:0: .*(CUDA|NVIDIA).*device='cpu'"):
        glyd.from_pretrained(directory, device="cuda:0")


@pytest.mark.parametrize(
    ("options", "text"),
    [({"layout": "tiny"}, "fast"), ({"exact": "maybe"}, "True, False or 'auto'")],
)
def test_unknown_options_are_refused(directory, options, text):
    with pytest.raises(glyd.InvalidArgumentError, match=text):
        glyd.from_pretrained(directory, **options)


def test_a_foreign_format_is_refused_by_name(damaged):
    config = json.loads((damaged / "config.json").read_text())
    config["quantization_config"]["format"] = "glyd-v2"
    (damaged / "config.json").write_text(json.dumps(config))
    with pytest.raises(glyd.ForeignFormatError, match="glyd-v2.*glyd-x1"):
        glyd.from_pretrained(damaged, device="cpu")


def test_a_model_quantized_by_others_is_refused(tmp_path):
    shutil.copytree(MODELS[NAME], tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (tmp_path / "other" / "config.json").write_text(json.dumps(config))
    with pytest.raises(glyd.UnsupportedError, match="gptq"):
        glyd.from_pretrained(tmp_path / "other", device="cpu")


def flip(directory, key, offset):
    """Flips a bit of the tensor `key` of the packed directory's one shard."""
    path = next(directory.glob("glyd-*.safetensors"))
    data = bytearray(path.read_bytes())
    header_bytes = int.from_bytes(data[:8], "little")
    begin, _ = json.loads(data[8 : 8 + header_bytes])[key]["data_offsets"]
    data[8 + header_bytes + begin + offset] ^= 1
    path.write_bytes(data)


def test_a_flipped_bit_is_found_by_verify(damaged):
    flip(damaged, "model.layers.3.mlp.up_proj.weight_glyd", 5000)
    with pytest.raises(glyd.CorruptError, match=r"model\.layers\.3\.mlp\.up_proj\.weight"):
        glyd.from_pretrained(damaged, device="cpu", verify=True)


@pytest.mark.parametrize("load", [glyd.from_pretrained, transformers.AutoModelForCausalLM.from_pretrained])
def test_an_edited_config_is_used_and_said(damaged, load):
    config = damaged / "config.json"
    document = json.loads(config.read_text())
    config.write_text(json.dumps(document | {"max_position_embeddings": 77}))
    with pytest.warns(UserWarning, match="config.json is not the one that was packed"):
        model = load(damaged)
    assert model.config.max_position_embeddings == 77
    with pytest.raises(glyd.CorruptError, match=r"config\.json"):
        glyd.from_pretrained(damaged, device="cpu", verify=True)


def test_an_untouched_config_is_not_mentioned(directory, recwarn):
    glyd.from_pretrained(directory, device="cpu", exact=False)
    assert not [warning for warning in recwarn if "config.json" in str(warning.message)]


def test_a_broken_pack_header_is_found_by_every_load(damaged):
    flip(damaged, "model.layers.3.mlp.up_proj.weight_glyd", 17)
    with pytest.raises(glyd.CorruptError, match=r"model\.layers\.3\.mlp\.up_proj\.weight.*header's checksum"):
        glyd.from_pretrained(damaged, device="cpu")


def cut(path, keep=-100):
    data = path.read_bytes()
    path.write_bytes(data[:keep])


DAMAGES = {
    "missing shard": (lambda d: next(d.glob("glyd-0*.safetensors")).unlink(), r"glyd-00001.*: missing"),
    "cut shard": (lambda d: cut(next(d.glob("glyd-0*.safetensors"))), r"glyd-00001.*truncated or damaged"),
    "damaged header": (lambda d: flip_at(next(d.glob("glyd-0*.safetensors")), 40), r"glyd-00001.*header.*damaged"),
    "cut index": (lambda d: cut(d / "glyd.safetensors.index.json", 100), r"index\.json: .*damaged"),
    "missing index": (lambda d: (d / "glyd.safetensors.index.json").unlink(), r"index\.json: missing"),
    "damaged manifest": (lambda d: flip_at(d / "glyd.json", 3000), r"glyd\.json.*fetch this file again"),
    "missing manifest": (lambda d: (d / "glyd.json").unlink(), r"no glyd\.json in it"),
    "missing config": (lambda d: (d / "config.json").unlink(), r"no config\.json in it"),
}


def flip_at(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_load_checks_the_structure(damaged, damage):
    break_it, says = DAMAGES[damage]
    break_it(damaged)
    with pytest.raises(glyd.Error, match=says):
        glyd.from_pretrained(damaged, device="cpu")


@pytest.mark.parametrize("damage", ["damaged manifest", "missing manifest", "cut shard"])
def test_a_load_by_transformers_checks_the_structure(damaged, damage):
    break_it, says = DAMAGES[damage]
    break_it(damaged)
    with pytest.raises(glyd.Error, match=says):
        transformers.AutoModelForCausalLM.from_pretrained(damaged)


def test_a_config_given_to_transformers_says_how_it_runs(directory):
    with pytest.warns(UserWarning, match="already has a `quantization_config`"):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            directory, quantization_config=glyd.GlydConfig(exact=True)
        )
    assert model.glyd_report().to_dict()["exact"] is True
    glyd.set_exact(model, False)
    assert "free (set by set_exact(model, False))" in str(model.glyd_report())


@pytest.mark.parametrize("name", ["./nowhere", "some/path/nowhere", "{here}/nowhere"])
def test_a_missing_directory_is_an_error_at_once(tmp_path, name):
    with pytest.raises(glyd.NotFoundError, match=r"nowhere: no such directory$"):
        glyd.from_pretrained(name.format(here=tmp_path), device="cpu")


def test_a_missing_repo_is_no_directory_either(monkeypatch):
    with pytest.raises(glyd.NotFoundError, match=r"^nost: no such directory, and no model of that name"):
        glyd.from_pretrained("nost", device="cpu")


def test_a_file_is_refused(damaged):
    with pytest.raises(glyd.InvalidArgumentError, match="a file; give the directory"):
        glyd.from_pretrained(damaged / "config.json", device="cpu")


def test_a_misspelt_option_is_named(directory):
    with pytest.raises(glyd.InvalidArgumentError, match="unknown option 'layot'; did you mean 'layout'"):
        glyd.from_pretrained(directory, device="cpu", layot="fast")


def test_a_packed_directory_of_another_dtype_says_what_to_load(tmp_path):
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, vocab_size=64
    )
    transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(tmp_path / "fp32")
    glyd.pack(tmp_path / "fp32", tmp_path / "packed")
    with pytest.raises(glyd.UnsupportedError, match="Load the source itself"):
        glyd.from_pretrained(tmp_path / "packed", device="cpu", dtype=torch.bfloat16)
    assert glyd.from_pretrained(tmp_path / "fp32", device="cpu", dtype=torch.bfloat16).glyd_report()


def test_ids_outside_the_vocabulary_are_an_error(packed):
    with pytest.raises(IndexError, match="4096"):
        packed(torch.tensor([[4096]]))
