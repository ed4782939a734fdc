"""libglyd_cuda, found and loaded, and the words for a machine on which that cannot be."""

import os
from pathlib import Path

from .. import _capi_cuda
from .._capi import Library
from .._errors import NotFoundError

_library = None


def library_path():
    """GLYD_CUDA_LIB if set, else the library that was installed into the package."""
    named = os.environ.get("GLYD_CUDA_LIB")
    if named:
        if not os.path.isfile(named):
            raise NotFoundError(f"GLYD_CUDA_LIB={named}: no such file; it must name a built libglyd_cuda.so")
        return named
    package = Path(__file__).resolve().parents[1]
    found = sorted(package.glob("libglyd_cuda.so*"))
    if not found:
        raise NotFoundError(
            f"libglyd_cuda.so is not in {package}: this installation has no GPU support. Build it with nvcc 12.8 or "
            "newer (`cmake --preset cuda && ninja -C build/cuda glyd_cuda`) and set GLYD_CUDA_LIB to "
            "build/cuda/lib/libglyd_cuda.so, or load the model with device='cpu'."
        )
    return str(found[0])


def lib():
    """The loaded library."""
    global _library
    if _library is None:
        _library = Library(library_path(), _capi_cuda.SIGNATURES, "glyd_cuda", _capi_cuda.ABI_VERSION)
    return _library


def why_no_gpu():
    """None where torch can use a GPU, else why not and what to do."""
    import torch

    if torch.version.cuda is None:
        return (
            f"this torch ({torch.__version__}) is built without CUDA: install a CUDA build of torch "
            "(scripts/setup_env.sh does), or use device='cpu'"
        )
    if torch.cuda.is_available():
        return None
    try:
        torch.cuda.init()
    except Exception as error:  # torch's own words: no driver, or one too old for its CUDA
        said = str(error).splitlines()[0]
    else:
        said = "torch.cuda.device_count() is 0"
    return (
        f"torch finds no GPU that it can use: {said}. CUDA {torch.version.cuda} needs an NVIDIA driver "
        f"{'580' if torch.version.cuda.startswith('13') else '525'} or newer (`glyd doctor` says what is there); "
        "without a GPU use device='cpu'"
    )
