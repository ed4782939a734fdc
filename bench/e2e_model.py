"""The models of e2e.py: loaded from files, or made of random weights on the GPU, plain or packed as they are made."""

import zlib

import torch
import transformers

QWEN3 = {
    "head_dim": 128,
    "num_key_value_heads": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
SHAPES = {
    "qwen3-8b": QWEN3
    | {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32},
    "qwen3-4b": QWEN3
    | {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32},
    "tiny": QWEN3
    | {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 2, "num_attention_heads": 16}
    | {"vocab_size": 4096},
}
STD = 0.02


def config_of(shape, layers=None):
    members = dict(SHAPES[shape])
    if layers:
        members["num_hidden_layers"] = layers
    return transformers.Qwen3Config(**members)


def build(shape, seed, device, layout=None, exact="auto", layers=None, merge=True):
    """A random model. With a layout it is packed module by module: a bf16 copy of it never exists."""
    config = config_of(shape, layers)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
    for name, module in list(model.named_modules()):
        fill(module, name, seed, device)
        if layout is not None:
            from glyd.gpu.compress_model import pack_module

            pack_module(module, layout)
    model.eval()
    if layout is not None:
        from glyd.hf import finish, modules

        for _, module in modules.packed_modules(model):
            module.glyd_ready = True
        finish.settle(model, exact, merge=merge)
    return model


def fill(module, name, seed, device):
    """The module's own parameters: matrices normal, norms around one, each from a seed of its name."""
    for key, parameter in module._parameters.items():
        if parameter is None:
            continue
        generator = torch.Generator(device=device).manual_seed(zlib.crc32(f"{seed} {name}.{key}".encode()))
        values = torch.empty(parameter.shape, dtype=parameter.dtype, device=device)
        values.normal_(0.0, STD, generator=generator)
        if parameter.dim() < 2 and key == "weight":
            values.add_(1.0)
        module._parameters[key] = torch.nn.Parameter(values, requires_grad=False)
    if any(buffer is not None and buffer.is_meta for buffer in module._buffers.values()):
        made = type(module)(module.config)  # rotary embeddings: a buffer computed from the config
        for key, buffer in made._buffers.items():
            module._buffers[key] = buffer.to(device)
        for key, value in vars(made).items():
            if isinstance(value, torch.Tensor):
                setattr(module, key, value.to(device))


def load(path, device, layout, exact, merge=True):
    if layout is not None:
        import glyd

        return glyd.from_pretrained(path, device=device, layout=layout, exact=exact, merge=merge).eval()
    import glyd.hf.loading

    config = transformers.AutoConfig.from_pretrained(path)
    auto = glyd.hf.loading.auto_class(config, False)
    return auto.from_pretrained(path, dtype=torch.bfloat16, device_map={"": device}).eval()
