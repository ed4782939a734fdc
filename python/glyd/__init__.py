"""glyd: lossless compression for bf16 model weights and other bytes.

    import glyd
    model = glyd.from_pretrained("path/or/repo")   # transformers' own class, weights packed

    frame = glyd.compress(data)                    # any buffer; glyd.decompress(frame), glyd.open("file.glyd")

`import glyd` needs neither torch nor transformers. Where transformers is installed, its `from_pretrained` reads packed
directories after `import glyd`; glyd.GlydConfig(layout, exact, ...) is its quantization_config. Errors are subclasses of
glyd.Error. docs/python.md has the rest.
"""

from ._api import doctor, fit, inspect, pack, sizes, unpack, verify
from ._codec import Compressor, Decompressor, compress, decompress, frame_info
from ._codec_file import open
from ._errors import (
    BufferTooSmallError,
    BusyError,
    CancelledError,
    CorruptError,
    Error,
    ExistsError,
    ForeignFormatError,
    InternalError,
    InvalidArgumentError,
    IoError,
    MismatchError,
    NotFoundError,
    OutOfMemoryError,
    UnsupportedError,
)
from ._fit import Fit
from ._register import register_when_transformers_is_imported

__all__ = [
    "BufferTooSmallError",
    "BusyError",
    "CancelledError",
    "Compressor",
    "CorruptError",
    "Decompressor",
    "Error",
    "ExistsError",
    "Fit",
    "ForeignFormatError",
    "GlydConfig",
    "InternalError",
    "InvalidArgumentError",
    "IoError",
    "MismatchError",
    "NotFoundError",
    "OutOfMemoryError",
    "UnsupportedError",
    "compress",
    "decompress",
    "doctor",
    "fit",
    "frame_info",
    "from_pretrained",
    "gpu",
    "inspect",
    "open",
    "pack",
    "report",
    "save_pretrained",
    "set_exact",
    "sizes",
    "unpack",
    "verify",
]


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
    """Loads a transformers model with packed weights. `name_or_path`: a packed or bf16 directory, or a repo id.

    device   "cuda:0" where there is a GPU, else "cpu". Several GPUs: device_map="auto", as transformers takes it.
    layout   "auto": a packed directory's own, else "fast"; "fast" or "small": packed (again) so.
    exact    True: the bits of the bf16 model. False: the fastest sums. "auto": True where that costs little. On a GPU:
             where at 1-16 tokens at most 3% of the weights must be decoded for torch's bits; on a CPU: at most 10%
             of a product's time.
    verify   packed directory: every sha256 is checked first, not sizes and headers alone; bf16: every pack is decoded
             and compared as it is made.
    compile  whether transformers may compile generate() with a static cache, on a GPU (GLYD_COMPILE=0: never).
    merge    whether q, k and v run side by side in CUDA graphs, each with its own sums.
    Everything else goes to transformers' from_pretrained.
    """
    from .hf.loading import from_pretrained as load

    return load(
        name_or_path,
        device=device,
        layout=layout,
        exact=exact,
        merge=merge,
        verify=verify,
        compile=compile,
        revision=revision,
        token=token,
        **hf_kwargs,
    )


def save_pretrained(model, path, *, layout=None, tokenizer=None, overwrite=False):
    """Writes a packed model to the new directory `path`, as a packed checkpoint; gives a dict as glyd.pack does.

    layout     None: each pack as it is; "fast" or "small": packed again where it is another.
    tokenizer  a tokenizer or processor (anything with save_pretrained) to be written beside the model.
    overwrite  replace a packed checkpoint; refused if that would lose files in it that the new one does not have.
    """
    from .hf.saving import save_pretrained as save

    return save(model, path, layout=layout, tokenizer=tokenizer, overwrite=overwrite)


def report(model):
    """What is packed in `model`, how it multiplies and how often; print it or take to_dict()."""
    from .hf.report import report as make

    return make(model)


def set_exact(model, exact):
    """Switches a packed model between exact (True) and free (False) products."""
    from .hf.modules import set_exact as switch

    return switch(model, exact)


def __getattr__(name):
    if name == "GlydConfig":
        from .hf.config import GlydConfig

        return GlydConfig
    if name == "gpu":
        import importlib

        return importlib.import_module("glyd.gpu")
    if name == "__version__":
        from ._capi import lib

        return lib().glyd_version().decode()
    raise AttributeError(f"module 'glyd' has no attribute {name!r}")


register_when_transformers_is_imported()
