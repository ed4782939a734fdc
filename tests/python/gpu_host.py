"""A GPU for tests without one: torch's CPU as the device, host_device.cpp as libglyd_cuda."""

import contextlib
import ctypes
import os
import subprocess
from pathlib import Path

import glyd
import pytest
import torch
from glyd import _capi
from glyd.gpu import library, runtime

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).parent / "host_device" / "host_device.cpp"
FUSED, DECODED, UNPACK, ROWS, EXPERTS = range(5)


class HostStream:
    """A stream whose work is done as it is queued; `log` has what was queued, in order."""

    log = []

    def __init__(self, number):
        self.cuda_stream = number

    def __eq__(self, other):
        return self.cuda_stream == other.cuda_stream

    def record_event(self):
        HostStream.log.append(("record", self.cuda_stream))
        return len(HostStream.log)

    def wait_event(self, event):
        HostStream.log.append(("wait", self.cuda_stream, event))


class HostRuntime(runtime.CudaRuntime):
    type = "cpu"
    captures = False
    streams = 7  # the number of the last: 7 is the current one

    def why_unavailable(self):
        return None

    def device_count(self):
        return 1

    def current_device(self):
        return 0

    def guard(self, index):
        return contextlib.nullcontext()

    def capturing(self, index):
        return HostRuntime.captures

    def synchronize(self, index):
        pass

    def full_precision_reduction(self):
        return False

    def memory(self, index):
        return 1 << 30, 2 << 30

    def current_stream(self, index):
        return HostStream(7)

    def multiprocessors(self, index):
        return 8

    def new_stream(self, index):
        HostRuntime.streams += 1
        return HostStream(HostRuntime.streams)

    @property
    def stream_of(self):
        return lambda index: 7


def build(directory):
    """Compiles the stand-in against the libglyd that the tests use."""
    target = Path(directory) / "libglyd_cuda.so"
    used = Path(_capi.library_path()).resolve()
    command = ["g++", "-std=c++20", "-O1", "-fPIC", "-shared", f"-I{ROOT / 'include'}", str(SOURCE), str(used)]
    done = subprocess.run([*command, f"-Wl,-rpath,{used.parent}", "-o", str(target)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.fail(f"the stand-in for libglyd_cuda does not compile: {done.stderr}")
    return target


class HostDevice:
    """What a test asks the stand-in."""

    def __init__(self):
        self._count = library.lib()._cdll.host_device_calls
        self._count.restype, self._count.argtypes = ctypes.c_uint64, [ctypes.c_int]

    def agree(self, verdict):
        """What the stand-in's glyd_cuda_prepare says from now on: the fused products are exact, or not."""
        library.lib()._cdll.host_device_agree(int(verdict))

    def calls(self, kind):
        return self._count(kind)

    @contextlib.contextmanager
    def counting(self, kind):
        """Gives a list that holds, afterwards, the number of calls of `kind` within."""
        before, found = self.calls(kind), []
        yield found
        found.append(self.calls(kind) - before)


@contextlib.contextmanager
def host_gpu(library_file):
    """The CPU is the GPU, for as long as this lasts."""
    _capi.lib()  # the stand-in finds libglyd by its soname, whatever its file is called
    before = os.environ.get("GLYD_CUDA_LIB")
    os.environ["GLYD_CUDA_LIB"] = str(library_file)
    loaded, library._library = library._library, None
    cls = runtime.use(HostRuntime)
    try:
        yield HostDevice()
    finally:
        HostRuntime.captures = False
        HostRuntime.streams = 7
        runtime.use(cls)
        library._library = loaded
        os.environ.pop("GLYD_CUDA_LIB") if before is None else os.environ.update(GLYD_CUDA_LIB=before)


def whole_numbers(*shape, seed=0):
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(seed)).to(torch.bfloat16)


def packed_linear(rows, cols, bias=False, exact=True):
    module = torch.nn.Linear(cols, rows, bias=bias, dtype=torch.bfloat16)
    module.weight.data = whole_numbers(rows, cols, seed=rows)
    if bias:
        module.bias.data = whole_numbers(rows, seed=3)
    weight = module.weight.data.clone()
    box = torch.nn.Sequential(module)
    glyd.gpu.compress(box, layout="fast", exact=exact)
    return box[0], weight, module.bias
