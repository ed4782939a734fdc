"""Packed models on NVIDIA GPUs.

    model = glyd.gpu.compress(model)             # a bf16 model that is on a GPU already, packed in place
    glyd.gpu.prepare(model, tokens=[1, 7, 100])  # checks exact products ahead of their use

`python -m glyd.gpu fit|pack|verify` are the program's verbs. Importing this module needs no torch.
"""


def compress(model, *, layout="auto", exact="auto", merge=True, compile=True, verify=False):
    """Packs the weights of a loaded bf16 model in place; see glyd.gpu.compress_model.compress."""
    from .compress_model import compress as run

    return run(model, layout=layout, exact=exact, merge=merge, compile=compile, verify=verify)


def prepare(model, tokens=None):
    """Finds out which exact products of a packed model run fused at these numbers of tokens, and remembers it.

    Call it before capturing CUDA graphs of other numbers of tokens than 1-16, 24, 32, 48 and 64, for which loading
    does it. Gives {(rows, cols, layout, bias): {tokens: "fused" or why not}}.
    """
    from . import exactness

    return exactness.prepare_model(model, exactness.TOKENS if tokens is None else tuple(tokens)).shapes


def available():
    """Whether torch finds a GPU and libglyd_cuda serves it."""
    return why_unavailable() is None


def why_unavailable():
    """None where packed models can run on a GPU here, else why not."""
    from .._errors import Error
    from .runtime import device_of, runtime

    problem = runtime.why_unavailable()
    if problem:
        return problem
    try:
        device_of(0)
    except Error as error:
        return str(error)
    return None
