"""GlydConfig: what config.json's `quantization_config` says, and how a model is to be packed or run."""

from transformers.utils.quantization_config import QuantizationConfigMixin

from .._errors import ForeignFormatError, InvalidArgumentError

FORMAT = "glyd-x1"
METHOD = "glyd"
LAYOUTS = {"auto": "auto", "fast": "fast", "small": "small", "mma12": "fast", "mma": "small"}
SAVED = ("quant_method", "format", "layout", "glyd_version")


class GlydConfig(QuantizationConfigMixin):
    """layout: "auto", "fast" or "small". exact: True, False or "auto". verify: every pack is decoded and compared.

    modules_to_not_convert: names of modules that stay bf16. compile: whether transformers may compile generate() with a
    static cache, on a GPU. merge: whether q, k and v run side by side in CUDA graphs (docs/python.md).
    """

    def __init__(
        self,
        layout="auto",
        exact="auto",
        merge=True,
        verify=False,
        compile=True,
        modules_to_not_convert=None,
        format=FORMAT,
        glyd_version=None,
        quant_method=METHOD,
    ):
        if format != FORMAT:
            raise ForeignFormatError(
                f"config.json: quantization_config has format {format!r}; this version of glyd reads {FORMAT!r}. "
                "Load it with the program that wrote it, or pack the model again."
            )
        if layout not in LAYOUTS:
            raise InvalidArgumentError(f"layout {layout!r}: the layouts are {', '.join(LAYOUTS)}")
        if not (exact is True or exact is False or exact == "auto"):
            raise InvalidArgumentError(f"exact {exact!r}: it is True, False or 'auto'")
        self.quant_method = quant_method
        self.format = format
        self.layout = LAYOUTS[layout]
        self.glyd_version = glyd_version
        self.exact = exact
        self.merge = merge
        self.verify = verify
        self.compile = compile
        self.failure = None  # the first error while packing
        self.checked = False  # the packed directory was looked at already
        self.modules_to_not_convert = list(modules_to_not_convert or [])

    def get_loading_attributes(self):
        """What a caller's GlydConfig may say of a packed directory: how it runs here."""
        return {name: getattr(self, name) for name in ("exact", "merge", "verify", "compile")}

    def to_dict(self):
        """What a saved config.json holds: how it is packed, not how this process runs it."""
        return {name: getattr(self, name) for name in SAVED if getattr(self, name) is not None}
