"""A model on several GPUs: device maps, and products, graphs and streams of a GPU that is not the current one."""

import threading

import glyd
import pytest
import torch
import torch.nn.functional as F
import transformers
from conftest import MODELS, same_bits, token_ids
from glyd.gpu import exactness
from glyd.gpu.runtime import device_of
from glyd.hf import tensors
from glyd.hf.modules import packed_modules
from test_families import tiny_model

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
FIRST, SECOND = "cuda:0", "cuda:1"


def split_map(model_name):
    """The first layers on one GPU, the others and the head, whose weight is the embedding's, on the other.

    bf16 models do not run so: accelerate ties the two again once it has spread them, and the embedding's hook moves its
    inputs to a GPU where its weight no longer is. What packed models give is compared with bf16 on one GPU.
    """
    layers = transformers.AutoConfig.from_pretrained(MODELS[model_name]).num_hidden_layers
    placed = {f"model.layers.{i}": int(i >= layers // 2) for i in range(layers)}
    return {"model.embed_tokens": 0, "model.rotary_emb": 0, **placed, "model.norm": 1, "lm_head": 1}


def load_bf16(directory, device_map):
    return transformers.AutoModelForCausalLM.from_pretrained(directory, device_map=device_map).eval()


@torch.no_grad()
def logits(model, ids):
    return model(ids.to(model.device)).logits.to(FIRST)


def linear_on(device, rows, cols, bias=False, exact=True):
    """(packed module, bf16 weight, bias), made while another GPU is the current one."""
    generator = torch.Generator(device=device).manual_seed(rows)
    module = torch.nn.Linear(cols, rows, bias=bias, dtype=torch.bfloat16, device=device)
    module.weight.data.normal_(0, 0.02, generator=generator)
    weight = module.weight.data.clone()
    box = torch.nn.Sequential(module)
    glyd.gpu.compress(box, exact=exact)
    return box[0], weight, module.bias


def inputs_on(device, tokens, cols, seed=1):
    return torch.randn(1, tokens, cols, generator=torch.Generator().manual_seed(seed)).to(device, torch.bfloat16)


@pytest.fixture(autouse=True)
def the_current_gpu_stays():
    torch.cuda.set_device(0)
    yield
    assert torch.cuda.current_device() == 0


@pytest.fixture(scope="module")
def whole_bf16(model_name):
    return load_bf16(MODELS[model_name], {"": 0})


@pytest.fixture(scope="module")
def split(model_name):
    return glyd.from_pretrained(MODELS[model_name], device_map=split_map(model_name), exact=True, verify=True)


def test_a_map_gives_the_bits_of_bf16(model_name, split, whole_bf16):
    for batch, length in ((1, 1), (3, 17), (8, 5), (1, 600)):
        ids = token_ids(length, batch, seed=length)
        assert same_bits(logits(split, ids), logits(whole_bf16, ids)), f"batch {batch}, {length} tokens"


def test_packs_lie_where_the_map_says(model_name, split):
    for name, module in packed_modules(split):
        index = next(index for prefix, index in split_map(model_name).items() if f"{name}.".startswith(f"{prefix}."))
        assert {pack.device.index for _, pack in module.glyd_packs()} == {index}, name
    assert split.glyd_report().to_dict()["device"] == f"{FIRST}, {SECOND}"


def test_text_over_two_gpus(model_name, split, whole_bf16):
    ids = token_ids(9, 3).to(FIRST)
    options = {"max_new_tokens": 80, "min_new_tokens": 80, "do_sample": False}
    expected = whole_bf16.generate(ids, **options)
    assert torch.equal(split.generate(ids, **options), expected)
    static = {"cache_implementation": "static", "disable_compile": True}
    assert torch.equal(split.generate(ids, **options, **static), whole_bf16.generate(ids, **options, **static))
    with torch.cuda.device(1):  # whichever is current
        assert torch.equal(split.generate(ids, **options), expected)


def test_free_logits_are_close(split, whole_bf16):
    ids = token_ids(21, 2)
    expected = logits(whole_bf16, ids)
    glyd.set_exact(split, False)
    try:
        found = logits(split, ids)
    finally:
        glyd.set_exact(split, True)
    assert (found - expected).abs().max() <= 0.05 * expected.abs().max()


@pytest.mark.parametrize(
    "device_map, used", [("auto", {0, 1}), ("balanced", {0, 1}), ("balanced_low_0", {1}), ("sequential", {0})]
)
def test_maps_that_transformers_makes(device_map, used):
    bf16 = load_bf16(MODELS["tiny-qwen3"], {"": 0})
    model = glyd.from_pretrained(MODELS["tiny-qwen3"], device_map=device_map, exact=True)
    found = {pack.device.index for _, module in packed_modules(model) for _, pack in module.glyd_packs()}
    assert used <= found, model.hf_device_map
    head, embedding = model.lm_head.weight_glyd, model.model.embed_tokens.weight_glyd
    assert head is embedding or not model.config.tie_word_embeddings, "tied weights went to two GPUs"
    ids = token_ids(24, 2)
    assert same_bits(logits(model, ids), logits(bf16, ids))


def test_the_second_gpu_alone(model_name):
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(0)
    model = glyd.from_pretrained(MODELS[model_name], device=SECOND, exact=True, verify=True)
    ids = token_ids(12, 3).to(SECOND)
    expected = load_bf16(MODELS[model_name], {"": 1})
    with torch.no_grad():
        assert same_bits(model(ids).logits, expected(ids).logits)
    options = {"max_new_tokens": 16, "min_new_tokens": 16, "do_sample": False}
    assert torch.equal(model.generate(ids, **options), expected.generate(ids, **options))
    assert torch.cuda.memory_allocated(0) <= before, "something was put on the current GPU"


def test_save_and_load_over_two_gpus(model_name, split, whole_bf16, tmp_path):
    glyd.save_pretrained(split, tmp_path / "saved")
    assert glyd.verify(tmp_path / "saved")["ok"] is True
    ids = token_ids(11, 3)
    for options in ({"device_map": split_map(model_name)}, {"device_map": "auto"}, {"device": SECOND}):
        again = glyd.from_pretrained(tmp_path / "saved", exact=True, **options)
        with torch.no_grad():
            found = again(ids.to(again.device)).logits.to(FIRST)
        assert same_bits(found, logits(whole_bf16, ids)), options
    other = glyd.from_pretrained(tmp_path / "saved", exact=True, layout="small", device_map=split_map(model_name))
    assert same_bits(logits(other, ids), logits(whole_bf16, ids))


def test_a_tied_head_on_another_gpu(tmp_path):
    tiny_model("llama-tied-bias", tmp_path / "bf16")
    device_map = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.layers.0": 0, "model.layers.1": 1}
    device_map |= {"model.norm": 1, "lm_head": 1}
    ids = token_ids(24, 3, vocabulary=320)
    expected = logits(load_bf16(tmp_path / "bf16", {"": 0}), ids)
    model = glyd.from_pretrained(tmp_path / "bf16", device_map=device_map, exact=True)
    assert model.lm_head.weight_glyd.device.index == 1 and model.model.embed_tokens.weight_glyd.device.index == 0
    assert same_bits(logits(model, ids), expected)
    glyd.save_pretrained(model, tmp_path / "saved")
    assert glyd.verify(tmp_path / "saved")["ok"] is True
    one = glyd.from_pretrained(tmp_path / "saved", device=SECOND, exact=True)
    assert one.lm_head.weight_glyd is one.model.embed_tokens.weight_glyd
    again = glyd.from_pretrained(tmp_path / "saved", device_map=device_map, exact=True)
    assert same_bits(logits(again, ids), expected)


@pytest.mark.parametrize("head", [0, 1])
def test_a_model_spread_in_bf16_is_packed_in_place(model_name, whole_bf16, head):
    model = load_bf16(MODELS[model_name], split_map(model_name) | {"lm_head": head})
    glyd.gpu.compress(model, exact=True, verify=True)
    ids = token_ids(7, 3)
    assert same_bits(logits(model, ids), logits(whole_bf16, ids))
    calls = model.glyd_report().to_dict()["calls"]
    assert all(calls[name] for name in calls), "hooks ran the old forward of a packed module"
    assert model.lm_head.weight_glyd.device.index == head and model.model.embed_tokens.weight_glyd.device.index == 0


def test_offloading_is_refused(model_name):
    for part, device in (("lm_head", "cpu"), ("model.norm", "disk")):
        with pytest.raises(glyd.UnsupportedError, match="offload"):
            glyd.from_pretrained(MODELS[model_name], device_map=split_map(model_name) | {part: device})
    with pytest.raises(glyd.UnsupportedError, match="offload"):
        glyd.from_pretrained(MODELS[model_name], device_map="auto", max_memory={0: "4MB", 1: "2MB", "cpu": "20GB"})
    with pytest.raises(glyd.UnsupportedError, match="GPU"):
        glyd.from_pretrained(MODELS[model_name], device_map=split_map(model_name) | {"lm_head": 77})


@pytest.mark.parametrize("bias", [False, True])
@torch.no_grad()
def test_products_of_a_gpu_that_is_not_current(bias):
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(0)
    module, weight, added = linear_on(SECOND, 4096, 1024, bias)
    for tokens in (1, 2, 3, 8, 16, 17, 33, 64, 65, 100, 300, 700, 700):
        x = inputs_on(SECOND, tokens, 1024, tokens)
        assert same_bits(module(x), F.linear(x, weight, added)), f"{tokens} tokens"
    strided = inputs_on(SECOND, 8, 2048)[:, :, :1024]
    assert same_bits(module(strided), F.linear(strided, weight, added))
    assert same_bits(module.weight, weight)
    stream = torch.cuda.Stream(SECOND)
    stream.wait_stream(torch.cuda.current_stream(SECOND))
    x = inputs_on(SECOND, 4, 1024)
    torch.cuda.synchronize(SECOND)
    with torch.cuda.stream(stream):  # makes that GPU current, too
        y = module(x)
    stream.synchronize()
    assert same_bits(y, F.linear(x, weight, added))
    assert torch.cuda.memory_allocated(0) <= before, "something was put on the current GPU"
    with pytest.raises(RuntimeError, match="cuda:0"):
        module(x.to(FIRST))


@torch.no_grad()
def test_ops_of_a_gpu_that_is_not_current():
    module, weight, bias = linear_on(SECOND, 512, 1024, True)
    pack, x = module.weight_glyd, inputs_on(SECOND, 5, 1024)
    assert same_bits(torch.ops.glyd.linear(x, pack, bias, 512, True), F.linear(x, weight, bias))
    assert same_bits(torch.ops.glyd.unpack(pack, [512, 1024]), weight)
    ids = torch.tensor([[1, 2, 511]], device=SECOND)
    assert same_bits(torch.ops.glyd.rows(pack, ids, 1024), F.embedding(ids, weight))
    torch.library.opcheck(torch.ops.glyd.linear.default, (x, pack, None, 512, True))
    with pytest.raises(RuntimeError):
        torch.ops.glyd.rows(pack, ids.to(FIRST), 1024)


def test_gradients_on_a_gpu_that_is_not_current():
    module, weight, bias = linear_on(SECOND, 512, 1024, True)
    x = inputs_on(SECOND, 6, 1024).requires_grad_()
    module(x).float().pow(2).sum().backward()
    plain = x.detach().clone().requires_grad_()
    F.linear(plain, weight, bias.detach()).float().pow(2).sum().backward()
    assert torch.allclose(x.grad, plain.grad, rtol=0.02, atol=0.02 * plain.grad.abs().max().item())


@torch.no_grad()
def test_verdicts_and_workspaces_are_each_gpus_own():
    found = {}
    for device in (FIRST, SECOND):
        module, weight, _ = linear_on(device, 2048, 1536)
        x = inputs_on(device, 4, 1536)
        assert same_bits(module(x), F.linear(x, weight))
        found[device] = device_of(torch.device(device).index)
        assert {t.device for t in found[device]._workspaces.values()} == {torch.device(device)}
        assert (2048, 1536, 4, False) in found[device].verdicts
    assert found[FIRST].context != found[SECOND].context
    assert found[FIRST].verdicts is not found[SECOND].verdicts


@torch.no_grad()
def test_a_graph_on_each_gpu():
    graphs = []
    for device in (FIRST, SECOND):
        module, weight, _ = linear_on(device, 4096, 4096)
        glyd.gpu.prepare(torch.nn.Sequential(module))
        x = inputs_on(device, 8, 4096)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device), torch.cuda.graph(graph, stream=torch.cuda.Stream(device)):
            y = module(module(x))
        graphs.append((device, module, weight, x, graph, y))
    for seed in (5, 6, 7):
        for device, _, _, x, graph, _ in graphs:  # both run at once
            x.copy_(inputs_on(device, 8, 4096, seed))
            with torch.cuda.device(device):
                graph.replay()
        for device, _, weight, x, _, y in graphs:
            assert same_bits(y, F.linear(F.linear(x, weight), weight)), f"{device}, seed {seed}"


@torch.no_grad()
def test_a_capture_is_seen_from_the_other_gpu():
    """A product whose number of tokens was never checked decodes while its own GPU captures, whichever is current."""
    module, weight, _ = linear_on(SECOND, 2048, 2048)
    assert exactness.check(module.glyd_bind(module.weight_glyd), [1])
    x, graph = inputs_on(SECOND, 21, 2048), torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream(SECOND)  # torch's own for captures is of the GPU that captured first
    with torch.cuda.device(SECOND), torch.cuda.graph(graph, stream=stream), torch.cuda.device(FIRST):
        y = module(x)
    with torch.cuda.device(SECOND):
        graph.replay()
    assert same_bits(y, F.linear(x, weight)) and 21 not in module.glyd_fast.fused


@torch.no_grad()
def test_a_thread_for_each_gpu():
    made = {device: linear_on(device, 4096, 1024) for device in (FIRST, SECOND)}
    failed = []

    def work(device):
        module, weight, _ = made[device]
        for round in range(60):
            x = inputs_on(device, 1 + round % 20, 1024, round)
            if not same_bits(module(x), F.linear(x, weight)):
                failed.append((device, round))

    threads = [threading.Thread(target=work, args=(device,)) for device in made for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@torch.no_grad()
def test_embeddings_and_packs_move_between_gpus():
    table = torch.nn.Embedding(1000, 264, dtype=torch.bfloat16, device=FIRST)
    weight = table.weight.data.clone()
    box = glyd.gpu.compress(torch.nn.Sequential(table), exact=True)
    ids = torch.randint(0, 1000, (3, 17))
    for device in (FIRST, SECOND, FIRST):
        box.to(device)
        assert same_bits(box(ids.to(device)), F.embedding(ids.to(device), weight.to(device)))
    pack = tensors.pack_tensor(weight.to(SECOND), "small")
    assert pack.device.index == 1 and same_bits(tensors.decode(pack), weight.to(SECOND))
