"""glyd: lossless compression for bf16 model weights and other bytes.

    import glyd
    model = glyd.from_pretrained("path/or/repo")   # transformers' own class, weights packed

    frame = glyd.compress(data)                    # any buffer; glyd.decompress(frame), glyd.open("file.glyd")

`import glyd` needs neither torch nor transformers. Where transformers is installed, its `from_pretrained` reads packed
directories after `import glyd`.
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


def from_pretrained(name_or_path, **options):
    """A transformers model with packed weights; see glyd.hf.loading.from_pretrained for the options."""
    from .hf.loading import from_pretrained as load

    return load(name_or_path, **options)


def save_pretrained(model, path, **options):
    """Writes a packed model as a packed checkpoint; see glyd.hf.saving.save_pretrained for the options."""
    from .hf.saving import save_pretrained as save

    return save(model, path, **options)


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
