"""What the tests share: the models of the repo, and packed and bf16 copies of them."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

torch.set_num_threads(1)  # the models are tiny: more threads only wait for each other

ROOT = Path(__file__).resolve().parents[2]
MODELS = {name: ROOT / "models" / name for name in ("tiny-qwen3", "tiny-qwen3-moe")}


@pytest.fixture(scope="session", params=sorted(MODELS))
def model_name(request):
    return request.param


@pytest.fixture(scope="session")
def bf16(model_name):
    """(directory, transformers' own bf16 model)."""
    return load_bf16(model_name)


_loaded = {}


def load_bf16(name):
    from transformers import AutoModelForCausalLM

    if name not in _loaded:
        _loaded[name] = AutoModelForCausalLM.from_pretrained(MODELS[name])
    return _loaded[name]


@pytest.fixture(scope="session")
def packed_directory(model_name, tmp_path_factory):
    """The model packed by glyd.pack, in layout fast."""
    return pack_once(model_name, "fast", tmp_path_factory)


_packed = {}


def pack_once(name, layout, tmp_path_factory):
    import glyd

    if (name, layout) not in _packed:
        target = tmp_path_factory.mktemp("packed") / f"{name}-{layout}"
        glyd.pack(MODELS[name], target, layout=layout)
        _packed[name, layout] = target
    return _packed[name, layout]


def run_python(code, **environment):
    """Runs code in a fresh interpreter; gives its CompletedProcess, output as text."""
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **environment},
    )


def token_ids(count, batch=1, seed=0, vocabulary=4096):
    import torch

    return torch.randint(0, vocabulary, (batch, count), generator=torch.Generator().manual_seed(seed))


def same_bits(a, b):
    import torch

    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.view(torch.int16), b.view(torch.int16))


def pytest_collection_modifyitems(items):
    """Tests below gpu/ need a GPU that libglyd_cuda serves."""
    on_gpu = [item for item in items if item.path.parent.name == "gpu"]
    if on_gpu:
        from glyd import gpu

        problem = gpu.why_unavailable()
        if problem:
            for item in on_gpu:
                item.add_marker(pytest.mark.skip(reason=problem.splitlines()[0]))


@pytest.fixture(autouse=True)
def free_gpu_memory(request):
    yield
    if request.path.parent.name == "gpu":
        gc.collect()
        torch.cuda.empty_cache()


@pytest.fixture(scope="session")
def library_file(tmp_path_factory):
    """The stand-in for libglyd_cuda."""
    import gpu_host

    return gpu_host.build(tmp_path_factory.mktemp("host_device"))


@pytest.fixture
def device(library_file, monkeypatch):
    """The CPU, as the GPU."""
    import gpu_host
    from glyd.gpu import exactness

    # Sums of small whole numbers are exact in any order, so the stand-in's fused products are torch's.
    monkeypatch.setattr(exactness.TorchCheck, "random", lambda check, *shape: gpu_host.whole_numbers(*shape))
    with gpu_host.host_gpu(library_file) as found:
        found.agree(True)
        yield found
