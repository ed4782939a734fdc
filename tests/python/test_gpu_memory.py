"""Memory of a GPU that is kept, and on which GPU: over the stand-in of gpu_host.py, or with nothing but torch."""

import gc
import threading
import weakref

import glyd
import pytest
import torch
import torch.nn.functional as F
from conftest import MODELS, load_bf16, same_bits, token_ids
from glyd.gpu import ahead, compress_model, ops, runtime
from glyd.hf import finish, tensors
from glyd.hf.modules import packed_modules, where_it_runs
from glyd.hf.quantizer import GlydQuantizer
from gpu_host import DECODED, UNPACK, HostRuntime, HostStream, packed_linear, whole_numbers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM


class Pool(TorchDispatchMode):
    """What this thread allocates, as a graph of torch.compile sees it: afterwards only its outputs may be there."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor) and not function.is_view:
            self.made.append(weakref.ref(found.untyped_storage()))
        return found

    def kept(self, *outputs):
        gc.collect()
        known = {output.untyped_storage().data_ptr() for output in outputs}
        alive = [storage for storage in (made() for made in self.made) if storage is not None]
        return [storage.nbytes() for storage in alive if storage.data_ptr() not in known]


def on_stream(number, monkeypatch):
    """The current stream of what is opened from now on: one that is new has no workspace."""
    monkeypatch.setattr(HostRuntime, "stream_of", property(lambda self: lambda index: number))


@torch.no_grad()
def test_a_compiled_graph_keeps_nothing_but_its_outputs(device):
    """torch.compile warms its CUDA graphs up on a stream of their own and refuses other memory of their pool."""
    module, weight, _ = packed_linear(64, 128)
    x = whole_numbers(4, 128)
    module(x)
    used = module.glyd_fast.device
    for stream in (21, 22):
        module.glyd_fast.stream_of = lambda index: stream  # noqa: B023
        with Pool() as pool:
            y = ops._linear(x, module.weight_glyd, None, 64, True)
        assert stream in used._workspaces and same_bits(y, F.linear(x, weight))
        assert pool.made and pool.kept(x, weight, y) == []


@torch.no_grad()
def test_a_compiled_graph_opens_a_pack_and_keeps_nothing(device, monkeypatch):
    first, _, _ = packed_linear(64, 128)
    first(whole_numbers(4, 128))
    weight = whole_numbers(96, 128, seed=5)
    pack = tensors.pack_tensor(weight, "fast").clone()  # not opened yet
    on_stream(23, monkeypatch)
    x = whole_numbers(4, 128)
    with Pool() as pool:
        y = ops._linear(x, pack, None, 96, True)
    assert same_bits(y, F.linear(x, weight)) and 23 in runtime.device_of(pack)._workspaces
    assert pool.kept(x, y, pack, weight) == []


@torch.no_grad()
def test_ops_do_not_decode_ahead(device):
    chain = torch.nn.Sequential(*(torch.nn.Linear(64, 64, bias=False, dtype=torch.bfloat16) for _ in range(2)))
    weights = [module.weight.data.clone() for module in chain]
    glyd.gpu.compress(chain, exact=True)
    x = torch.randn(ahead.LEAST_TOKENS, 64).to(torch.bfloat16)
    chain[0](x)
    assert len(chain[0].glyd_fast.device.ahead.decoded) == 1  # a module does
    for module, weight in zip(chain, weights, strict=True):
        module.glyd_fast.device.ahead.decoded.clear()
        with Pool() as pool, device.counting(UNPACK) as unpacked, device.counting(DECODED) as decoded:
            y = ops._linear(x, module.weight_glyd, None, 64, True)
        assert same_bits(y, F.linear(x, weight)) and unpacked[0] + decoded[0] == 1
        assert module.glyd_fast.device.ahead.decoded == [] and pool.kept(x, weight, y) == []


@torch.no_grad()
def test_compiled_products_do_not_run_side_by_side(device):
    model = glyd.from_pretrained(MODELS["tiny-qwen3"], exact=False)
    ids = token_ids(5)
    expected = model(ids, use_cache=False).logits
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    compiled(ids, use_cache=False)
    HostStream.log.clear()
    HostRuntime.captures = True
    assert same_bits(compiled(ids, use_cache=False).logits, expected) and HostStream.log == []
    assert same_bits(model(ids, use_cache=False).logits, expected) and HostStream.log != []


def test_what_another_thread_raises_is_raised():
    assert runtime.in_another_thread(lambda x: (x, threading.get_ident()), 3) != (3, threading.get_ident())
    with pytest.raises(torch.OutOfMemoryError, match="no room"):
        runtime.in_another_thread(raise_, torch.OutOfMemoryError("no room"))


def raise_(error):
    raise error


def on_hooks(model, name, place):
    """As if accelerate had spread the model and run the module `name` on `place`."""
    from accelerate import dispatch_model

    dispatch_model(model, {"": "cpu"}, force_hooks=True)
    hook = model.get_submodule(name)._hf_hook
    for one in getattr(hook, "hooks", [hook]):
        one.execution_device = place
    return model


def test_a_tied_weight_is_packed_where_each_module_runs():
    """accelerate ties parameters again once a model is spread: both lie on one GPU, and one module runs on another."""
    model = AutoModelForCausalLM.from_pretrained(MODELS["tiny-qwen3"])
    on_hooks(model, "model.embed_tokens", "meta")
    shared = {}
    embedding, head = model.model.embed_tokens, model.lm_head
    assert embedding.weight is head.weight
    for module in (embedding, head, model.model.layers[0].mlp.up_proj):
        assert compress_model.pack_module(module, shared=shared)
    assert embedding.weight_glyd.device.type == "meta" and head.weight_glyd.device.type == "cpu"
    assert model.model.layers[0].mlp.up_proj.weight_glyd.device.type == "cpu"


def test_where_a_module_without_hooks_runs():
    tensor = torch.zeros(3)
    assert where_it_runs(torch.nn.Linear(2, 2), tensor) is tensor
    parameter = torch.nn.Parameter(tensor, requires_grad=False)
    moved = finish.placed(parameter, "meta")
    assert type(moved) is torch.nn.Parameter and not moved.requires_grad and moved.device.type == "meta"
    assert finish.placed(parameter, "cpu") is parameter


def test_accelerate_ties_again_what_a_map_put_on_two_gpus():
    """Why a bf16 model whose map parts a tied head from its embedding cannot be what packed ones are compared with."""
    from accelerate.utils.modeling import retie_parameters
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = torch.nn.ModuleDict({"embedding": torch.nn.Embedding(8, 4), "head": torch.nn.Linear(4, 8, bias=False)})
        model.embedding.weight = torch.nn.Parameter(torch.empty(8, 4, device="cuda:0"))
        model.head.weight = torch.nn.Parameter(torch.empty(8, 4, device="cuda:1"))
        retie_parameters(model, [["head.weight", "embedding.weight"]])
        assert model.embedding.weight.device == model.head.weight.device == torch.device("cuda:1")


def test_dequantized_weights_are_tied_on_one_gpu_alone():
    model = AutoModelForCausalLM.from_pretrained(MODELS["tiny-qwen3"])
    head = torch.nn.Parameter(model.lm_head.weight.data.to("meta"))
    model.lm_head.weight = head
    finish.tie_plain(model, [(model.lm_head, "weight", head)])
    assert model.lm_head.weight is head and model.model.embed_tokens.weight.device.type == "cpu"
    own = torch.nn.Parameter(model.model.embed_tokens.weight.data.clone())
    model.lm_head.weight = own
    finish.tie_plain(model, [(model.lm_head, "weight", own)])
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_a_map_that_leaves_all_on_the_cpu_is_refused():
    for device_map in ("auto", "sequential"):
        with pytest.raises(glyd.UnsupportedError, match="no layer of this model fits"):
            glyd.from_pretrained(MODELS["tiny-qwen3"], device_map=device_map, max_memory={0: 10, "cpu": "20GB"})
    for room in ({"cpu": 1000}, {0: 0, "cpu": 1000}):  # no GPU was to be used
        quantizer = GlydQuantizer(glyd.GlydConfig())
        quantizer.model = torch.nn.Module()
        quantizer.model.all_tied_weights_keys = {}
        quantizer.adjust_max_memory(room)
        quantizer.validate_environment(device_map={"": "cpu"})


@torch.no_grad()
def test_a_compressed_model_is_dequantized(device):
    model = AutoModelForCausalLM.from_pretrained(MODELS["tiny-qwen3"])
    reference, ids = load_bf16("tiny-qwen3"), token_ids(9, 2)
    glyd.gpu.compress(model, layout="fast", exact=False)
    model(ids)
    packs = [weakref.ref(pack) for _, module in packed_modules(model) for _, pack in module.glyd_packs()]
    assert model.dequantize() is model and packed_modules(model) == []
    assert same_bits(model(ids).logits, reference(ids).logits)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert all(same_bits(a, b) for a, b in zip(model.parameters(), reference.parameters(), strict=True))
    gc.collect()
    assert not any(pack() is not None for pack in packs), "packs of a dequantized model were kept"
    with pytest.raises(ValueError, match="quantize"):  # transformers' own, of a model that is not packed
        model.dequantize()


@torch.no_grad()
def test_a_plain_module_is_decoded(device):
    box = torch.nn.Sequential(torch.nn.Linear(128, 64, dtype=torch.bfloat16))
    weight = box[0].weight.data.clone()
    glyd.gpu.compress(box, layout="fast", exact=True)
    assert same_bits(finish.to_bf16(box)[0].weight, weight) and type(box[0]) is torch.nn.Linear
