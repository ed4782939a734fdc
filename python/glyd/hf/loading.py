"""glyd.from_pretrained: a transformers model whose weights are packed, from a packed or a bf16 checkpoint."""

import os
import sys

import torch
import transformers
from transformers import AutoConfig

from .. import _api
from .._errors import InvalidArgumentError, UnsupportedError
from ..gpu.memory import out_of_memory
from ..gpu.runtime import device_of, index_of, runtime, torch_device
from .checking import check_name, check_packed, not_loaded, unknown_option
from .config import METHOD, GlydConfig
from .quantizer import requesting


def from_pretrained(
    name_or_path,
    *,
    device=None,
    layout="auto",
    exact="auto",
    merge=True,
    verify=False,
    compile=True,
    revision=None,
    token=None,
    **hf_kwargs,
):
    """glyd.from_pretrained, whose text says what the options mean."""
    config = GlydConfig(layout=layout, exact=exact, merge=merge, verify=verify, compile=compile)
    placed = placement(device, hf_kwargs)
    hub = {"revision": revision, "token": token}
    hub = {name: value for name, value in hub.items() if value is not None}
    hf_config = hf_kwargs.pop("config", None)
    if hf_config is None:
        trust = {name: hf_kwargs[name] for name in ("trust_remote_code", "cache_dir", "subfolder") if name in hf_kwargs}
        check_name(name_or_path)
        try:
            hf_config = AutoConfig.from_pretrained(name_or_path, **hub, **trust)
        except OSError as error:
            raise not_loaded(name_or_path, error) from error
    packed = packed_by_glyd(hf_config)
    if packed and verify:
        name_or_path = verified(name_or_path, hub)
        config.checked = True
    elif packed and os.path.isdir(name_or_path):
        check_packed(name_or_path)  # before transformers meets what is missing or cut
        config.checked = True
    if not packed:
        hf_kwargs["quantization_config"] = config
    auto = auto_class(hf_config, hf_kwargs.get("trust_remote_code", False))
    try:
        with requesting(config):
            return auto.from_pretrained(name_or_path, config=hf_config, **hub, **placed, **hf_kwargs)
    except TypeError as error:
        raise unknown_option(error, hf_kwargs) or error from error
    except torch.OutOfMemoryError as error:
        raise out_of_memory(name_or_path, hub, error) from error
    except RuntimeError as error:
        if isinstance(config.failure, torch.OutOfMemoryError):
            raise out_of_memory(name_or_path, hub, config.failure) from error
        raise (config.failure or error) from error


def placement(device, hf_kwargs):
    """The device_map for transformers: of `device`, or the caller's own."""
    if hf_kwargs.get("device_map") is not None:
        if device is not None:
            raise InvalidArgumentError("device and device_map were both given: one of them says where the model goes")
        return {}
    if device is None:
        device = default_device()
    device = torch.device(device)
    if device.type == "cpu" and runtime.type != "cpu":
        return {}
    if device.type != runtime.type:
        raise UnsupportedError(f"device {device}: packed models run on NVIDIA GPUs (cuda) and on the CPU")
    problem = runtime.why_unavailable()
    if problem:
        raise UnsupportedError(f"device {device}: {problem}.")
    index = index_of(device)
    device_of(index)  # libglyd_cuda is there and serves this GPU
    return {"device_map": {"": torch_device(index)}}


def default_device():
    """The first GPU, where torch finds one and libglyd_cuda serves it."""
    from .. import gpu

    if runtime.why_unavailable():
        return "cpu"
    problem = gpu.why_unavailable()
    if problem is None:
        return f"{runtime.type}:0"
    print(f"glyd: the model goes to the CPU, not to the GPU: {problem}", file=sys.stderr)
    return "cpu"


def packed_by_glyd(config):
    found = getattr(config, "quantization_config", None)
    if found is None:
        return False
    method = found.get("quant_method") if isinstance(found, dict) else getattr(found, "quant_method", None)
    if method != METHOD:
        raise UnsupportedError(
            f"the checkpoint is quantized already (quant_method {method!r}): glyd packs bf16 weights. "
            "Load it with transformers."
        )
    return True


def verified(name_or_path, hub):
    """The packed directory, every byte of it checked."""
    directory = name_or_path
    if not os.path.isdir(directory):
        from huggingface_hub import snapshot_download

        directory = snapshot_download(str(name_or_path), **hub)
    _api.verify(directory)
    return directory


def auto_class(config, trust_remote_code):
    """The class that config.json names, if transformers has it; else a causal LM, image-text-to-text or base class."""
    from transformers.models.auto import modeling_auto

    named = getattr(transformers, (config.architectures or [""])[0] or " ", None)
    if isinstance(named, type) and issubclass(named, transformers.PreTrainedModel):
        return named
    if type(config) in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING or trust_remote_code:
        return transformers.AutoModelForCausalLM
    if type(config) in modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return transformers.AutoModelForImageTextToText
    return transformers.AutoModel
