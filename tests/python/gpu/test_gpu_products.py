"""Products on the GPU: routes, exactness, CUDA graphs, streams, ops, gradients, memory, errors."""

import copy

import glyd
import pytest
import torch
import torch.nn.functional as F
from conftest import MODELS, same_bits, token_ids
from glyd.gpu import exactness, ops, products  # noqa: F401
from glyd.hf import tensors

DEVICE = "cuda:0"
SHAPES = [(512, 1024), (1024, 512), (4096, 4096), (1000, 256), (77, 100)]


def linear_of(rows, cols, bias=False, seed=0):
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    module = torch.nn.Linear(cols, rows, bias=bias, dtype=torch.bfloat16, device=DEVICE)
    module.weight.data.normal_(0, 0.02, generator=generator)
    return module


def packed_linear(rows, cols, bias=False, exact=True, layout="fast"):
    """(packed module, bf16 weight, bias)."""
    module = linear_of(rows, cols, bias)
    weight = module.weight.data.clone()
    box = torch.nn.Sequential(module)
    glyd.gpu.compress(box, layout=layout, exact=exact)
    return box[0], weight, module.bias


def inputs(tokens, cols, seed=1):
    return torch.randn(1, tokens, cols, generator=torch.Generator().manual_seed(seed)).to(DEVICE, torch.bfloat16)


@pytest.mark.parametrize("layout", ["fast", "small"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@torch.no_grad()
def test_exact_products_are_torchs(shape, bias, layout):
    module, weight, added = packed_linear(*shape, bias, layout=layout)
    assert same_bits(module.weight, weight)
    for tokens in (1, 2, 3, 8, 16, 17, 24, 33, 64, 65, 300):
        x = inputs(tokens, shape[1], tokens)
        for again in (x, x[0], x[:, :, None].transpose(1, 2).contiguous()):
            assert same_bits(module(again), F.linear(again, weight, added)), f"{tokens} tokens"
    strided = inputs(8, 2 * shape[1])[:, :, : shape[1]]
    assert same_bits(module(strided), F.linear(strided, weight, added))


@torch.no_grad()
def test_large_shapes_run_fused_and_exact():
    module, weight, _ = packed_linear(4096, 4096)
    summary = exactness.prepare_model(torch.nn.Sequential(module))
    assert summary.share == 0 and summary.worth_it(), summary.reason()
    assert list(summary.routes()) == ["4096x4096 fast"] and list(summary.routes()["4096x4096 fast"]) == ["fused"]
    product = module.glyd_fast
    assert all(product.fused[tokens] for tokens in exactness.TOKENS)
    for tokens in exactness.TOKENS:
        x = inputs(tokens, 4096, 100 + tokens)
        assert same_bits(module(x), F.linear(x, weight)), f"{tokens} tokens"


@torch.no_grad()
def test_a_graph_gives_the_same_bits():
    module, weight, _ = packed_linear(4096, 4096)
    small, small_weight, _ = packed_linear(4096, 4096, layout="small")
    glyd.gpu.prepare(torch.nn.Sequential(module))
    for tokens in (1, 8, 100):
        x = inputs(tokens, 4096)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = small(module(x))
        for seed in (5, 6):
            x.copy_(inputs(tokens, 4096, seed))
            graph.replay()
            assert same_bits(y, F.linear(F.linear(x, weight), small_weight)), f"{tokens} tokens"


class Attention(torch.nn.Module):
    """q, k and v of one input, as models have them, and something that reads all three."""

    def __init__(self, rows, cols, bias):
        super().__init__()
        for seed, (name, outputs) in enumerate(zip(("q_proj", "k_proj", "v_proj"), rows, strict=True)):
            self.add_module(name, linear_of(outputs, cols, bias, seed))
        self.o_proj = linear_of(cols, sum(rows), bias, 9)

    def forward(self, x):
        return self.o_proj(torch.cat([self.q_proj(x), self.k_proj(x), self.v_proj(x)], -1))


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("rows, cols, bias", [((4096, 1024, 1024), 4096, False), ((512, 256, 256), 1024, True)])
@torch.no_grad()
def test_q_k_and_v_run_side_by_side_in_a_graph(rows, cols, bias, exact):
    layers = torch.nn.Sequential(*(Attention(rows, cols, bias) for _ in range(3)))
    plain = copy.deepcopy(layers)
    glyd.gpu.compress(layers, exact=exact)
    for tokens in (1, 2, 3, 7, 8, 16, 24, 32, 48, 64, 100):
        x = inputs(tokens, cols) * 4
        expected = plain(x) if exact else layers(x)  # both once before the capture
        assert same_bits(layers(x), expected)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = layers(x)
        for seed in (5, 6, 7):
            x.copy_(inputs(tokens, cols, seed) * 4)
            graph.replay()
            assert same_bits(y, plain(x) if exact else layers(x)), f"{tokens} tokens"


@torch.no_grad()
def test_a_product_that_was_never_checked_decodes_in_a_graph():
    module, weight, _ = packed_linear(2048, 2048)
    x = inputs(21, 2048)
    assert same_bits(module(inputs(1, 2048)), F.linear(inputs(1, 2048), weight))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = module(x)
    graph.replay()
    assert same_bits(y, F.linear(x, weight)) and 21 not in module.glyd_fast.fused


@torch.no_grad()
def test_the_last_tokens_of_several_prompts_need_no_decoding():
    """The rows of x lie apart: a head must not decode its matrix for them."""
    module, weight, _ = packed_linear(32768, 2048)
    glyd.gpu.prepare(torch.nn.Sequential(module))
    for batch, length in ((2, 17), (8, 17), (8, 5), (16, 100), (64, 9)):
        last = inputs(batch * length, 2048).view(batch, length, 2048)[:, -1:, :]
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        y = module(last)
        assert torch.cuda.max_memory_allocated() - before < weight.numel(), f"{batch} prompts decode the matrix"
        assert same_bits(y, F.linear(last, weight)), f"{batch} prompts of {length}"


@torch.no_grad()
def test_decoding_ahead():
    made = [packed_linear(rows, cols) for rows, cols in ((4096, 1024), (1024, 4096), (2048, 1024))]
    chain = torch.nn.Sequential(*(module for module, _, _ in made))
    glyd.gpu.prepare(chain)
    x = inputs(2048, 1024)
    streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    for round in range(12):
        with torch.cuda.stream(streams[round // 2 % 3]):
            streams[round // 2 % 3].wait_stream(streams[(round // 2 - 1) % 3])
            y, expected = x * (round + 1), x * (round + 1)
            for place in (0, 1, 2) if round % 5 else (0, 1, 0, 1, 2):
                module, weight, _ = made[place]
                if module.in_features == y.shape[-1]:
                    y, expected = module(y), F.linear(expected, weight)
                    noise = torch.empty(32 << 20, dtype=torch.uint8, device=DEVICE).fill_(255)  # freed memory is used
                    del noise
            assert same_bits(y, expected), f"round {round}"


@torch.no_grad()
def test_experts_multiply_in_a_graph():
    model = glyd.from_pretrained(MODELS["tiny-qwen3-moe"], exact=False)
    ids = token_ids(6, 2).to(DEVICE)
    expected = model(ids, use_cache=False).logits
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = model(ids, use_cache=False).logits
    graph.replay()
    assert same_bits(found, expected)


@torch.no_grad()
def test_streams():
    module, weight, _ = packed_linear(4096, 4096)
    x = inputs(4, 4096)
    expected = F.linear(x, weight)
    module(x)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(3)]
    for _ in range(20):
        found = []
        for stream in streams:
            with torch.cuda.stream(stream):
                found.append(module(x))
        torch.cuda.synchronize()
        assert all(same_bits(y, expected) for y in found)


def test_opcheck():
    module, weight, bias = packed_linear(512, 1024, True)
    pack = module.weight_glyd
    x = inputs(5, 1024)
    torch.library.opcheck(torch.ops.glyd.linear.default, (x, pack, None, 512, True))
    torch.library.opcheck(torch.ops.glyd.linear.default, (x, pack, bias.detach(), 512, False))
    torch.library.opcheck(torch.ops.glyd.unpack.default, (pack, [512, 1024]))
    torch.library.opcheck(torch.ops.glyd.rows.default, (pack, torch.tensor([[1, 2, 511]], device=DEVICE), 1024))


@torch.no_grad()
def test_compiled_products():
    module, weight, bias = packed_linear(512, 1024, True)
    glyd.gpu.prepare(torch.nn.Sequential(module))
    compiled = torch.compile(module, fullgraph=True)
    x = inputs(4, 1024)
    assert same_bits(compiled(x), F.linear(x, weight, bias))


def test_rows():
    table = torch.nn.Embedding(1000, 264, dtype=torch.bfloat16, device=DEVICE)
    weight = table.weight.data.clone()
    box = torch.nn.Sequential(table)
    glyd.gpu.compress(box, exact=True)
    for ids in (torch.tensor([0, 999, 5, 5]), torch.randint(0, 1000, (3, 17)), torch.zeros(0, dtype=torch.int64)):
        assert same_bits(box(ids.to(DEVICE)), F.embedding(ids.to(DEVICE), weight))
        assert same_bits(box(ids.to(DEVICE, torch.int32)), F.embedding(ids.to(DEVICE), weight))
    assert not box(torch.tensor([1000], device=DEVICE)).any()


def test_gradients():
    module, weight, bias = packed_linear(512, 1024, True)
    x = inputs(6, 1024).requires_grad_()
    module(x).float().pow(2).sum().backward()
    plain = x.detach().clone().requires_grad_()
    F.linear(plain, weight, bias.detach().requires_grad_()).float().pow(2).sum().backward()
    assert torch.allclose(x.grad, plain.grad, rtol=0.02, atol=0.02 * plain.grad.abs().max().item())
    assert module.bias.grad is not None
    with pytest.raises(glyd.UnsupportedError, match="packed"):
        module.weight = torch.nn.Parameter(weight)


@torch.no_grad()
def test_autocast_and_other_dtypes():
    module, weight, _ = packed_linear(512, 1024)
    x = inputs(4, 1024)
    assert torch.equal(module(x.float()), F.linear(x.float(), weight.float()))
    with torch.autocast("cuda", dtype=torch.float16):
        assert torch.equal(module(x), F.linear(x, weight))


def test_memory_is_freed():
    torch.cuda.synchronize()
    linear_of(64, 64)
    before = torch.cuda.memory_allocated()
    module, weight, _ = packed_linear(4096, 4096)
    with torch.no_grad():
        module(inputs(1, 4096))
    del module, weight
    assert torch.cuda.memory_allocated() - before <= 2 * (5 << 20)  # workspaces stay


def test_peak_memory_of_loading(tmp_path):
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=32000, hidden_size=2048, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=16
    )
    torch.manual_seed(3)
    with torch.device(DEVICE):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(tmp_path / "bf16")
    largest = max(2 * p.numel() for p in model.parameters())
    bf16_bytes = 2 * model.num_parameters()
    del model
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    packed = glyd.from_pretrained(tmp_path / "bf16", device="cuda", exact=False)
    held = torch.cuda.memory_allocated() - before
    peak = torch.cuda.max_memory_allocated() - before
    print(f"bf16 {bf16_bytes / 1e6:.0f} MB, held {held / 1e6:.0f} MB, peak {peak / 1e6:.0f} MB")
    assert held <= 0.75 * bf16_bytes + (16 << 20)
    assert peak <= held + largest + (256 << 20)
    glyd.save_pretrained(packed, tmp_path / "packed")
    del packed
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    packed = glyd.from_pretrained(tmp_path / "packed", device="cuda", exact=False)
    assert torch.cuda.max_memory_allocated() - before <= held + (256 << 20)


def test_auto_says_what_it_chose(capsys):
    model = glyd.from_pretrained(MODELS["tiny-qwen3"])
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("glyd:")]
    assert len(said) == 1 and ("exact" in said[0] or "free" in said[0])
    print(said[0])
    assert model.glyd_report().to_dict()["reason"]


def test_errors():
    with pytest.raises(glyd.UnsupportedError, match="GPU"):
        glyd.from_pretrained(MODELS["tiny-qwen3"], device="cuda:99")
    with pytest.raises(glyd.InvalidArgumentError, match="device_map"):
        glyd.from_pretrained(MODELS["tiny-qwen3"], device="cuda", device_map="auto")
    with pytest.raises(glyd.UnsupportedError, match="offload"):
        glyd.from_pretrained(
            MODELS["tiny-qwen3"], device_map={"model": 0, "lm_head": "cpu", "model.embed_tokens": "cpu"}
        )
    module, _, _ = packed_linear(512, 1024)
    with torch.no_grad():
        module(inputs(1, 1024))
        with pytest.raises(RuntimeError, match="cuda:0"):
            module(torch.ones(1, 1024, dtype=torch.bfloat16))
    torch.cuda.synchronize()  # nothing was launched on the host's address


def test_device_map_auto():
    model = glyd.from_pretrained(MODELS["tiny-qwen3"], device_map="auto", exact=True)
    assert model.device.type == "cuda"
    with torch.no_grad():
        assert torch.isfinite(model(token_ids(5).to(model.device)).logits).all()


def test_a_pack_is_found_again_only_while_it_lives():
    values = torch.randn(256, 256, device=DEVICE).to(torch.bfloat16)
    first = tensors.pack_tensor(values, "fast")
    size, address = first.numel(), first.data_ptr()
    assert same_bits(tensors.decode(first), values)
    del first
    other = (values.float() * 2.0**-20).to(torch.bfloat16)  # the same codes from another base
    second = tensors.pack_tensor(other, "fast")
    if (second.numel(), second.data_ptr()) != (size, address):
        print("the allocator gave another place")
    assert same_bits(tensors.decode(second), other)
