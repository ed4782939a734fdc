"""What to say when a model does not fit into a GPU's memory."""

from .. import _api
from .._errors import Error, OutOfMemoryError
from .runtime import runtime

GB = 1e9


def out_of_memory(name_or_path, hub, error):
    """An OutOfMemoryError that says how much the model needs and what would fit."""
    said = str(error).splitlines()[0]
    free, whole = runtime.memory(runtime.current_device())
    text = f"{name_or_path}: the GPU's memory is full ({said}). It has {whole / GB:.1f} GB, {free / GB:.1f} GB are free"
    try:
        found = _api.fit(name_or_path, gpu=whole, revision=hub.get("revision"), token=hub.get("token"))
    except Error:
        return OutOfMemoryError(f"{text}. `glyd fit` says how much the model needs.")
    needs = ", ".join(f"{row.layout} {row.weights_bytes / GB:.1f} GB" for row in found.rows)
    fitting = [row.layout for row in found.rows if row.fits and row.layout != "bf16"]
    if not fitting:
        advice = "no layout of it fits this GPU with a context of 8192: use device_map='auto' over several GPUs"
    elif fitting == ["small"]:
        advice = "layout='small' would fit"
    else:
        advice = f"layout='{fitting[0]}' would fit if nothing else held memory of this GPU (nvidia-smi shows what does)"
    return OutOfMemoryError(f"{text}. Its weights take: {needs}; {advice}.")
