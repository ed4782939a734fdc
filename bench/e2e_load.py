"""How long models take to load, and how much memory: transformers' bf16, glyd from bf16, glyd from packed files."""

import gc
import shutil
import time
from pathlib import Path

import torch


def measure_loading(arguments):
    """Writes the model below arguments.load and loads it in each way, files in the page cache."""
    from e2e_model import SHAPES, build, load

    root = Path(arguments.load)
    bf16, packed = root / "e2e-bf16", root / "e2e-packed"
    try:
        if arguments.model in SHAPES:
            model = build(arguments.model, arguments.seed, arguments.device, None, layers=arguments.layers)
            model.save_pretrained(bf16)
            del model
            free()
        else:
            bf16 = Path(arguments.model)
        found = {"bf16": timed(lambda: load(bf16, arguments.device, None, None))[0]}
        exact = {"auto": "auto", "true": True, "false": False}[arguments.exact]
        found["glyd_from_bf16"], model = timed(lambda: load(bf16, arguments.device, arguments.layout, exact), keep=True)
        import glyd

        began = time.perf_counter()
        glyd.save_pretrained(model, packed)
        found["save_s"] = time.perf_counter() - began
        del model
        free()
        found["glyd_from_packed"] = timed(lambda: load(packed, arguments.device, "auto", exact))[0]
        # Without the checks of exactness, which need each shape once a process: they were done above.
        for name in ("glyd_from_bf16", "glyd_from_packed"):
            found[name]["ratio"] = found[name]["seconds"] / found["bf16"]["seconds"]
        return found
    finally:
        shutil.rmtree(packed, ignore_errors=True)
        if arguments.model in SHAPES:
            shutil.rmtree(bf16, ignore_errors=True)


def free():
    gc.collect()
    torch.cuda.empty_cache()


def timed(make, keep=False):
    """({"seconds", "peak_bytes", "bytes"} of the better of two runs, the model or None)."""
    best, model = None, None
    for _ in range(2):
        del model
        free()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        began = time.perf_counter()
        model = make()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        if best is None or seconds < best["seconds"]:
            best = {
                "seconds": seconds,
                "peak_bytes": torch.cuda.max_memory_allocated() - before,
                "bytes": torch.cuda.memory_allocated() - before,
            }
    if not keep:
        model = None
        free()
    return best, model
