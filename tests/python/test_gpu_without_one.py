"""The GPU side of the package over a stand-in for libglyd_cuda whose device is the CPU (gpu_host.py)."""

import collections
import copy
import gc

import glyd
import pytest
import torch
import torch.nn.functional as F
from conftest import MODELS, load_bf16, same_bits, token_ids
from glyd.gpu import ahead, exactness, experts_check, packs, runtime, side
from glyd.hf import experts, finish, tensors
from gpu_host import DECODED, EXPERTS, FUSED, UNPACK, HostRuntime, HostStream, packed_linear, whole_numbers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM


@pytest.mark.parametrize("bias", [False, True])
@torch.no_grad()
def test_proven_products_run_fused(device, bias):
    module, weight, added = packed_linear(64, 128, bias)
    for tokens in (1, 3, 16, 48):
        x = whole_numbers(2, tokens, 128)[:1]
        with device.counting(FUSED) as fused, device.counting(UNPACK) as unpacked:
            assert same_bits(module(x), F.linear(x, weight, added))
        assert (fused, unpacked) == ([1], [0]), f"{tokens} tokens"


@torch.no_grad()
def test_what_is_not_proven_is_decoded_and_multiplied_by_torch(device):
    device.agree(False)
    module, weight, _ = packed_linear(64, 128)
    for tokens in (1, 5, 100):
        x = torch.randn(1, tokens, 128).to(torch.bfloat16)
        with device.counting(FUSED) as fused, device.counting(UNPACK) as unpacked, device.counting(DECODED) as decoded:
            assert same_bits(module(x), F.linear(x, weight))
        assert (fused, unpacked, decoded) == ([0], [1], [0])


@torch.no_grad()
def test_room_for_the_decoded_matrix_where_the_route_wants_it(device, monkeypatch):
    """The stand-in refuses scratch that its route has no use for, and decodes where it is missing."""
    module, weight, _ = packed_linear(64, 128)
    x = whole_numbers(1, 258, 128)  # fused given scratch; met for the second time, it is checked
    launches = []
    for _ in range(3):
        with device.counting(FUSED) as fused:
            assert same_bits(module(x), F.linear(x, weight))
        launches += fused
    assert launches[0] == 0 and launches[1] > 0 and launches[2] == 1

    module, weight, _ = packed_linear(64, 256)
    x = whole_numbers(1, 258, 256)
    module(x)
    empty = torch.empty
    with monkeypatch.context() as patch:  # no memory for the check: the product decodes, and is checked another time

        def full(*size, **options):
            if options.get("dtype") is torch.uint8:
                raise torch.OutOfMemoryError("full")
            return empty(*size, **options)

        patch.setattr(torch, "empty", full)
        with device.counting(FUSED) as fused:
            assert same_bits(module(x), F.linear(x, weight))
        assert fused == [0]
    with device.counting(FUSED) as fused:
        assert same_bits(module(x), F.linear(x, weight))
    assert fused[0] > 0


@torch.no_grad()
def test_a_verdict_needs_torchs_own_linear(device, monkeypatch):
    """The library says the product is exact; torch's linear gives something else: it is decoded."""
    module, weight, _ = packed_linear(64, 128, exact=False)
    glyd.set_exact(module, True)
    torchs = F.linear
    with monkeypatch.context() as patch:
        patch.setattr(exactness.F, "linear", lambda x, w, b=None: torchs(x, w, b) + 1)
        summary = exactness.prepare_model(torch.nn.Sequential(module), [4])
    assert list(summary.routes()["64x128 fast"]) == ["decode: the fused sums differ from torch's"]
    with device.counting(UNPACK) as unpacked:
        assert same_bits(module(whole_numbers(4, 128)), F.linear(whole_numbers(4, 128), weight))
    assert unpacked == [1]


@torch.no_grad()
def test_inputs_that_the_kernel_cannot_take(device):
    module, weight, bias = packed_linear(64, 128, True)
    x = whole_numbers(1, 4, 128)
    module(x)
    product = module.glyd_fast
    product.device_number, product.torch_device = 1, torch.device("cuda:1")  # as if the pack were on another GPU
    with device.counting(FUSED) as fused, pytest.raises(RuntimeError, match="the input is on cpu, .* on cuda:1"):
        module(x)
    assert fused == [0]
    product.device_number, product.torch_device = -1, x.device
    with pytest.raises(RuntimeError):
        module(whole_numbers(1, 4, 64))
    module.bias = torch.nn.Parameter(bias.detach().float())
    assert torch.equal(module(x.float()), F.linear(x.float(), weight.float(), bias.float()))
    for wrong in (bias.detach().float(), bias.detach().repeat(2), bias.detach().repeat(2)[::2][:32]):
        module.bias = torch.nn.Parameter(wrong)
        with device.counting(FUSED) as fused, pytest.raises(RuntimeError):
            module(x)
        assert fused == [0]


@torch.no_grad()
def test_the_last_tokens_of_several_prompts(device, monkeypatch):
    monkeypatch.setattr(exactness, "LEAST_OUTPUTS", 100)
    module, weight, _ = packed_linear(64, 128)
    prompts = whole_numbers(4, 9, 128)
    last = prompts[:, -1:, :]
    with device.counting(FUSED) as fused:
        assert same_bits(module(last), F.linear(last, weight))
    assert fused == [1]
    for other in (prompts[:, 3:5], whole_numbers(4, 129)[:, :128]):
        with device.counting(FUSED) as fused:
            assert same_bits(module(other), F.linear(other, weight))
        assert fused == [0]


@torch.no_grad()
def test_long_prompts_decode_ahead(device):
    chain = torch.nn.Sequential(*(torch.nn.Linear(128, 128, bias=False, dtype=torch.bfloat16) for _ in range(4)))
    weights = [module.weight.data.clone() for module in chain]
    glyd.gpu.compress(chain, exact=True)
    x = torch.randn(1, ahead.LEAST_TOKENS, 128).to(torch.bfloat16)
    for order in ((0, 1, 2, 3), (0, 1, 2, 3), (1, 0, 2, 3), (1, 0, 2, 3), (1, 0, 2, 3)):
        for place in order:
            assert same_bits(chain[place](x), F.linear(x, weights[place]))
    for order, least in (((1, 0, 2, 3), 4), ((1, 0, 2, 3), 4)):
        with device.counting(UNPACK) as unpacked:
            for place in order:
                assert same_bits(chain[place](x), F.linear(x, weights[place]))
        assert unpacked == [least]  # each matrix once: what was learned holds


@torch.no_grad()
def test_decoding_ahead_waits_for_memory_and_for_what_it_made(device):
    chain = torch.nn.Sequential(*(torch.nn.Linear(64, 64, bias=False, dtype=torch.bfloat16) for _ in range(2)))
    glyd.gpu.compress(chain, exact=True)
    HostStream.log.clear()
    x = torch.randn(ahead.LEAST_TOKENS, 64).to(torch.bfloat16)
    chain[0](x)
    first = HostStream.log[:]
    assert first == [("record", 7), ("wait", 8, 1), ("record", 8)]
    chain[1](x)
    assert HostStream.log[3] == ("wait", 7, 3)


@torch.no_grad()
def test_what_runs_fused_is_not_decoded_ahead(device):
    chain = torch.nn.Sequential(*(torch.nn.Linear(64, 64, bias=False, dtype=torch.bfloat16) for _ in range(2)))
    glyd.gpu.compress(chain, exact=True)
    x = torch.randn(ahead.LEAST_TOKENS, 64).to(torch.bfloat16)
    chain[1].glyd_fast.fused[ahead.LEAST_TOKENS] = True
    chain[0](x)
    assert chain[0].glyd_fast.device.ahead.decoded == []


@torch.no_grad()
def test_short_prompts_and_captures_do_not_decode_ahead(device):
    chain = torch.nn.Sequential(*(torch.nn.Linear(64, 64, bias=False, dtype=torch.bfloat16) for _ in range(2)))
    glyd.gpu.compress(chain, exact=True)
    HostStream.log.clear()
    chain(torch.randn(ahead.LEAST_TOKENS - 1, 64).to(torch.bfloat16))
    HostRuntime.captures = True
    chain(torch.randn(ahead.LEAST_TOKENS, 64).to(torch.bfloat16))
    assert HostStream.log == []


class Attention(torch.nn.Module):
    """q, k and v of one input, as models have them."""

    def __init__(self, rows=(64, 32, 32), bias=False):
        super().__init__()
        for name, outputs in zip(("q_proj", "k_proj", "v_proj"), rows, strict=True):
            module = torch.nn.Linear(128, outputs, bias=bias, dtype=torch.bfloat16)
            module.weight.data = whole_numbers(outputs, 128, seed=ord(name[0]))
            if bias:
                module.bias.data = whole_numbers(outputs, seed=3)
            self.add_module(name, module)

    def forward(self, x):
        return torch.cat([self.q_proj(x), self.k_proj(x), self.v_proj(x)], -1)


@pytest.mark.parametrize("bias", [False, True])
@torch.no_grad()
def test_products_of_one_input_run_side_by_side_in_a_graph(device, bias):
    model = Attention(bias=bias)
    plain = copy.deepcopy(model)
    glyd.gpu.compress(model, layout="fast", exact=True)
    x = whole_numbers(4, 128)
    expected = plain(x)
    HostStream.log.clear()
    assert same_bits(model(x), expected) and HostStream.log == []  # not outside of a capture
    HostRuntime.captures = True
    with device.counting(FUSED) as fused:
        assert same_bits(model(x), expected)
    assert fused == [3]
    begin = [("record", 7), ("wait", 8, 1), ("wait", 9, 1)]
    assert HostStream.log == [*begin, ("record", 8), ("wait", 7, 4), ("record", 9), ("wait", 7, 6)]
    assert model.q_proj.glyd_group.done is None
    assert [module.glyd_count() for module in (model.q_proj, model.k_proj, model.v_proj)] == [2, 2, 2]


def test_products_share_the_multiprocessors_by_their_rows():
    assert side.share([4096, 1024, 1024], 132) == [76, 28, 28]
    assert side.share([12288, 12288], 132) == [66, 66]
    assert side.share([100, 99, 99], 132) == [46, 43, 43]
    assert side.share([100, 7], 132) == [121, 11]
    assert side.share([8, 8, 100000], 4) == [1, 1, 3]  # the launches then take turns


@torch.no_grad()
def test_what_was_launched_ahead_is_used_for_its_input_alone(device):
    model = Attention()
    plain = copy.deepcopy(model)
    glyd.gpu.compress(model, layout="fast", exact=True)
    HostRuntime.captures = True
    x, other = whole_numbers(4, 128), whole_numbers(4, 128, seed=5)
    model.q_proj(x)
    assert same_bits(model.k_proj(other), plain.k_proj(other))
    model.q_proj(x)
    x.add_(1)
    assert same_bits(model.v_proj(x), plain.v_proj(x))
    for unusual in (whole_numbers(128, 4).t(), whole_numbers(21, 128), torch.randn(100, 128).to(torch.bfloat16)):
        with device.counting(UNPACK) as unpacked:
            assert same_bits(model(unusual), plain(unusual))
        assert unpacked == [3]
    again = copy.deepcopy(model)
    assert again.q_proj.glyd_group is None and same_bits(again(x), plain(x))
    glyd.set_exact(model, False)
    assert same_bits(model(x), plain(x))


@torch.no_grad()
def test_merge_can_be_turned_off(device):
    model = Attention()
    glyd.gpu.compress(model, layout="fast", exact=True, merge=False)
    HostStream.log.clear()
    HostRuntime.captures = True
    model(whole_numbers(4, 128))
    assert HostStream.log == [] and model.q_proj.glyd_group is None


@torch.no_grad()
def test_nothing_is_checked_while_a_graph_is_captured(device):
    module, weight, _ = packed_linear(64, 128, exact=False)
    glyd.set_exact(module, True)
    HostRuntime.captures = True
    x = whole_numbers(21, 128)
    with device.counting(UNPACK) as unpacked:
        assert same_bits(module(x), F.linear(x, weight))
    assert unpacked == [1] and 21 not in module.glyd_fast.fused
    HostRuntime.captures = False
    module(x)
    assert module.glyd_fast.fused[21]


def test_auto_is_exact_where_little_is_decoded(device, capsys):
    def chosen():
        model = glyd.from_pretrained(MODELS["tiny-qwen3"])
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("glyd:")]
        return model.glyd_report().to_dict(), said

    found, said = chosen()
    assert found["exact"] is True and "no product has to be decoded" in found["reason"] and len(said) == 1
    assert {"fused"} <= {route for routes in found["routes"].values() for route in routes}
    device.agree(False)
    runtime._devices.clear()  # and their verdicts
    found, said = chosen()
    assert found["exact"] is False and "100% of the weights" in found["reason"] and "free products" in said[0]


def test_a_model_runs_saves_and_loads(device, tmp_path):
    device.agree(False)
    ids = token_ids(20, 2)
    with torch.no_grad():
        expected = load_bf16("tiny-qwen3")(ids).logits
        model = glyd.from_pretrained(MODELS["tiny-qwen3"], exact=True, verify=True)
        assert same_bits(model(ids).logits, expected)
        assert same_bits(copy.deepcopy(model)(ids).logits, expected)
        glyd.save_pretrained(model, tmp_path / "packed")
        again = glyd.from_pretrained(tmp_path / "packed", exact=True)
        assert same_bits(again(ids).logits, expected)
    assert "decode" in str(again.glyd_report())


@torch.no_grad()
def test_experts(device):
    """Exact: the bf16 model's bits, the chosen experts decoded or all. Free: one launch a stack, the host not asked."""
    device.agree(False)
    model = glyd.from_pretrained(MODELS["tiny-qwen3-moe"], exact=True)
    reference = load_bf16("tiny-qwen3-moe")
    for ids in (token_ids(1), token_ids(30, 2)):
        assert same_bits(model(ids).logits, reference(ids).logits)
    glyd.set_exact(model, False)
    expected = reference(ids).logits
    for captures in (False, True):
        HostRuntime.captures = captures
        with device.counting(EXPERTS) as launches:
            found = model(ids, use_cache=False).logits
        layers = model.config.num_hidden_layers
        assert launches == [2 * layers] and (found - expected).abs().max() <= 0.05 * expected.abs().max()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experts.GlydExperts, "glyd_most_rows", 10)
        with device.counting(EXPERTS) as launches:
            model(ids)
        assert launches == [0]


class Experts(torch.nn.Module):
    """Eight experts of small whole numbers, whose products are exact in any order."""

    def __init__(self, implementation):
        super().__init__()
        from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeConfig, Qwen3MoeExperts

        sizes = {"hidden_size": 64, "moe_intermediate_size": 64, "num_experts": 8, "num_experts_per_tok": 2}
        config = Qwen3MoeConfig(**sizes, hidden_act="relu")
        config._experts_implementation = implementation
        self.experts = Qwen3MoeExperts(config).to(torch.bfloat16)
        self.experts.gate_up_proj.data = whole_numbers(8, 128, 64, seed=1)
        self.experts.down_proj.data = whole_numbers(8, 64, 64, seed=2)

    def forward(self, x):
        generator = torch.Generator().manual_seed(x.shape[0])
        choices = torch.stack([torch.randperm(8, generator=generator)[:2] for _ in range(x.shape[0])])
        weights = torch.rand(x.shape[0], 2, generator=generator).to(torch.bfloat16)
        return self.experts(x, choices, weights)


@pytest.mark.parametrize("implementation", ["grouped_mm", "batched_mm", "eager"])
@torch.no_grad()
def test_experts_that_are_proven_multiply_in_one_launch(device, monkeypatch, implementation):
    monkeypatch.setattr(experts_check, "random", lambda device, *shape: whole_numbers(*shape))
    model = Experts(implementation)
    plain = copy.deepcopy(model)
    glyd.gpu.compress(model, layout="fast", exact=True)
    for tokens in (1, 5, 40):
        x = whole_numbers(tokens, 64, seed=tokens)
        expected = plain(x)
        model(x)  # what was not checked as the model was packed is now
        for captures in (False, True):
            HostRuntime.captures = captures
            with device.counting(EXPERTS) as launches, device.counting(UNPACK) as unpacked:
                assert same_bits(model(x), expected)
            proven = implementation != "eager"
            assert (launches, unpacked == [0]) == ([2 if proven else 0], proven), f"{tokens} tokens"
        HostRuntime.captures = False


@torch.no_grad()
def test_experts_that_differ_from_the_models_own_are_decoded(device, monkeypatch):
    monkeypatch.setattr(experts_check, "random", lambda device, *shape: whole_numbers(*shape))
    monkeypatch.setattr(experts_check, "reference", lambda *arguments: torch.zeros(1))
    model = Experts("grouped_mm")
    plain = copy.deepcopy(model)
    glyd.gpu.compress(model, layout="fast", exact=True)
    x = torch.randn(5, 64).to(torch.bfloat16)
    with device.counting(EXPERTS) as launches:
        assert same_bits(model(x), plain(x))
    assert launches == [0]
    assert not any(experts_check.proven(model.experts, rows) for rows in (2, 10))


@torch.no_grad()
def test_experts_of_files_become_stacks(device, tmp_path):
    device.agree(False)
    glyd.pack(MODELS["tiny-qwen3-moe"], tmp_path / "packed")
    model = glyd.from_pretrained(tmp_path / "packed", exact=True)
    modules = [module for module in model.modules() if isinstance(module, experts.GlydExperts)]
    assert modules and {len(module.glyd_stack_packs()) for module in modules} == {2}
    assert not any(isinstance(child, experts.Holder) for child in model.modules())
    reference, ids = load_bf16("tiny-qwen3-moe"), token_ids(9, 2)
    assert same_bits(model(ids).logits, reference(ids).logits)
    glyd.save_pretrained(model, tmp_path / "again")
    assert same_bits(glyd.from_pretrained(tmp_path / "again", exact=True)(ids).logits, reference(ids).logits)


@torch.no_grad()
def test_a_model_with_hooks_is_packed(device):
    """accelerate's hooks, as a model over several GPUs has them, hold the forward of each module."""
    from accelerate import dispatch_model

    device.agree(False)
    model = AutoModelForCausalLM.from_pretrained(MODELS["tiny-qwen3"])
    ids = token_ids(9, 2)
    expected = model(ids).logits
    model = dispatch_model(model, {"": "cpu"}, force_hooks=True)
    glyd.gpu.compress(model, layout="fast", exact=True)
    assert "_old_forward" in model.model.embed_tokens.__dict__
    assert same_bits(model(ids).logits, expected)
    assert all(model.glyd_report().to_dict()["calls"].values())
    assert same_bits(finish.to_bf16(model)(ids).logits, expected)


def test_a_map_that_transformers_makes_keeps_ties_together(device, monkeypatch):
    from transformers.integrations import accelerate

    seen, infer = [], accelerate.infer_auto_device_map

    def noted(model, **options):
        seen.append(dict(model.all_tied_weights_keys))
        return infer(model, **options)

    monkeypatch.setattr(accelerate, "infer_auto_device_map", noted)
    model = glyd.from_pretrained(MODELS["tiny-qwen3"], device_map="auto", exact=True)
    assert seen == [{"lm_head.weight": "model.embed_tokens.weight"}]
    assert model.all_tied_weights_keys == {"lm_head.weight_glyd": "model.embed_tokens.weight_glyd"}
    assert model.lm_head.weight_glyd is model.model.embed_tokens.weight_glyd


class Operations(TorchDispatchMode):
    """Counts torch's operations that would be kernels: views and allocations are none."""

    NO_KERNELS = {"empty", "new_empty", "view", "_unsafe_view", "t", "transpose", "unsqueeze", "expand", "slice"}

    def __init__(self):
        super().__init__()
        self.found = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name not in self.NO_KERNELS:
            self.found[name] += 1
        return function(*args, **(kwargs or {}))


@torch.no_grad()
def test_a_step_adds_no_operations_to_the_bf16_models(device):
    """Products and the look-up are the library's; nothing else of a step may be more than in bf16."""
    model = glyd.from_pretrained(MODELS["tiny-qwen3"], exact=False)
    ids = token_ids(1, 4)
    model(ids, use_cache=False)
    counts = []
    for each in (load_bf16("tiny-qwen3"), model):
        with Operations() as operations:
            each(ids, use_cache=False)
        counts.append(operations.found)
    plain, packed = counts
    assert packed - plain == collections.Counter()
    assert set(plain - packed) <= {"mm", "addmm", "linear", "embedding"} and plain != packed


@torch.no_grad()
def test_other_packs_in_a_module_are_bound_anew(device):
    module, _, _ = packed_linear(64, 128)
    x = whole_numbers(3, 128)
    module(x)
    other = whole_numbers(64, 128, seed=9)
    module.weight_glyd = tensors.pack_tensor(other, "fast")
    assert same_bits(module(x), F.linear(x, other))
    third = whole_numbers(64, 128, seed=10)
    state = {"weight_glyd": tensors.pack_tensor(third, "fast")}
    if state["weight_glyd"].shape == module.weight_glyd.shape:
        module.load_state_dict(state)
        assert same_bits(module(x), F.linear(x, third))


def test_a_handle_goes_with_its_pack(device):
    pack = tensors.pack_tensor(whole_numbers(64, 128), "fast")
    tensors.decode(pack)
    place = pack.data_ptr()
    assert place in packs._open and packs.open_pack(pack[:]) is packs.open_pack(pack)
    del pack
    gc.collect()
    assert place not in packs._open


@torch.no_grad()
def test_a_model_compiles_without_graph_breaks(device):
    device.agree(False)
    model = glyd.from_pretrained(MODELS["tiny-qwen3"], exact=True)
    assert model.hf_quantizer.is_compileable
    ids = token_ids(5)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert same_bits(compiled(ids, use_cache=False).logits, model(ids, use_cache=False).logits)
    assert not glyd.from_pretrained(MODELS["tiny-qwen3"], exact=True, compile=False).hf_quantizer.is_compileable
    assert not glyd.from_pretrained(MODELS["tiny-qwen3-moe"], exact=True).hf_quantizer.is_compileable
