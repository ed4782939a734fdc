"""A GPU as glyd sees it: its context in libglyd_cuda, its workspaces, and what torch says about the current stream.

Everything of torch.cuda that the package uses is in CudaRuntime, so that tests can run the whole package over a
stand-in library whose "device" is the CPU.
"""

import ctypes
import threading
import weakref

import torch

from .. import _capi_cuda
from .._errors import UnsupportedError
from .library import lib, why_no_gpu

WORKSPACE_ALIGNMENT = 256
MOST_REMEMBERED = 4096


class CudaRuntime:
    type = "cuda"

    def why_unavailable(self):
        return why_no_gpu()

    def device_count(self):
        return torch.cuda.device_count()

    def current_device(self):
        return torch.cuda.current_device()

    def guard(self, index):
        return torch.cuda.device(index)

    def capturing(self, index):
        """Whether that GPU's current stream is being captured: torch asks the current GPU's alone."""
        if torch.cuda.current_device() == index:
            return torch.cuda.is_current_stream_capturing()
        with torch.cuda.device(index):
            return torch.cuda.is_current_stream_capturing()

    def synchronize(self, index):
        torch.cuda.synchronize(index)

    def release_cached(self):
        torch.cuda.empty_cache()

    def full_precision_reduction(self):
        return not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction

    def memory(self, index):
        """(free, all) bytes."""
        return torch.cuda.mem_get_info(index)

    def multiprocessors(self, index):
        return torch.cuda.get_device_properties(index).multi_processor_count

    def current_stream(self, index):
        return torch.cuda.current_stream(index)

    def new_stream(self, index):
        return torch.cuda.Stream(index)

    @property
    def stream_of(self):
        """A function: the number of a GPU -> its current stream, as an integer."""
        return torch._C._cuda_getCurrentRawStream


runtime = CudaRuntime()


def use(cls):
    """Tests: a stand-in for CudaRuntime. Gives the class before."""
    before, runtime.__class__ = runtime.__class__, cls
    _devices.clear()
    return before


def on_gpu(tensor):
    return tensor.device.type == runtime.type


def torch_device(index):
    return torch.device(runtime.type, index) if runtime.type == "cuda" else torch.device(runtime.type)


def index_of(device):
    """The number of a torch device: "cuda" is the current one."""
    device = torch.device(device)
    return runtime.current_device() if device.index is None else device.index


class Device:
    """One GPU. Made at its first use, kept as long as the process."""

    def __init__(self, index):
        problem = runtime.why_unavailable()
        if problem:
            raise UnsupportedError(f"device {runtime.type}:{index}: {problem}.")
        if index >= runtime.device_count():
            raise UnsupportedError(
                f"device {runtime.type}:{index}: there are {runtime.device_count()} GPUs, numbered from 0."
            )
        self.index = index
        self.torch_device = torch_device(index)
        self.number = index if runtime.type == "cuda" else -1  # Tensor.get_device() of what lies here
        self.multiprocessors = runtime.multiprocessors(index)
        self.verdicts = {}  # (rows, cols, tokens, bias) -> whether the fused product gave torch's bits
        self._seen = set()
        self.workspace_bytes = 0
        self._workspaces = {}  # stream -> tensor
        self._retired = []
        self._ahead = None
        self._sides = []  # streams
        self._lock = threading.RLock()
        options = _capi_cuda.CudaOptions(device=index, full_precision_reduction=runtime.full_precision_reduction())
        context = ctypes.c_void_p()
        with runtime.guard(index):
            torch.empty(0, device=self.torch_device)  # torch's own context first
            lib().glyd_cuda_create(ctypes.byref(options), ctypes.byref(context))
        self.context = context.value

    @property
    def ahead(self):
        if self._ahead is None:
            with self._lock:
                if self._ahead is None:
                    from .ahead import Ahead

                    self._ahead = Ahead(self.index)
        return self._ahead

    def seen(self, key):
        """Whether this was asked before; few things are remembered."""
        before = key in self._seen
        if len(self._seen) < MOST_REMEMBERED:
            self._seen.add(key)
        return before

    def stream(self):
        return runtime.stream_of(self.index)

    def make_side_streams(self, count):
        """Gets more streams and their workspaces ready, for graphs that are captured from now on."""
        with self._lock:
            while len(self._sides) < count:
                self._sides.append(runtime.new_stream(self.index))
            for side in self._sides:
                self.workspace(side.cuda_stream)

    def side_streams(self, count):
        """So many more streams, if their workspaces are ready: one made during a capture would be another's, too."""
        sides = self._sides[:count]
        ready = len(sides) == count and all(side.cuda_stream in self._workspaces for side in sides)
        return sides if ready else None

    def need_workspace(self, pack_handle):
        """Makes the workspaces large enough for the fused products of this pack. Not while a graph is captured."""
        whole, fused = ctypes.c_uint64(), ctypes.c_uint64()
        lib().glyd_cuda_linear_workspace(pack_handle, ctypes.byref(whole), ctypes.byref(fused))
        with self._lock:
            if fused.value > self.workspace_bytes:
                self.workspace_bytes = fused.value
                self._retired.extend(self._workspaces.values())  # captured graphs may use them still
                self._workspaces.clear()
            if not runtime.capturing(self.index):
                self._capture_workspace()
                self.make_side_streams(len(self._sides))

    def workspace(self, stream):
        """The address of the workspace of a stream.

        Graphs that are captured share one, made before: a workspace made during the capture would be initialised in
        that graph alone. So graphs of one GPU must not run at the same time, as is so of torch's own cuBLAS workspace.
        """
        found = self._workspaces.get(stream)
        if found is None:
            with self._lock:
                if runtime.capturing(self.index):
                    found = self._capture_workspace()
                else:
                    found = self._workspaces[stream] = self._new_workspace(stream)
        return found.data_ptr()

    def _capture_workspace(self):
        found = self._workspaces.get("capture")
        if found is None:
            if runtime.capturing(self.index):
                raise UnsupportedError(
                    "a CUDA graph is being captured before any packed product ran on this GPU: call the model once "
                    "before the capture, or glyd.gpu.prepare(model)."
                )
            found = self._workspaces["capture"] = self._new_workspace(self.stream())
            runtime.synchronize(self.index)  # other streams may use it from now on
        return found

    def _new_workspace(self, stream):
        room = in_another_thread(self._allocate, self.workspace_bytes + WORKSPACE_ALIGNMENT)
        room = room[-room.data_ptr() % WORKSPACE_ALIGNMENT :][: self.workspace_bytes]
        with runtime.guard(self.index):
            lib().glyd_cuda_init_workspace(self.context, room.data_ptr(), self.workspace_bytes, stream)
        return room

    def _allocate(self, size):
        with runtime.guard(self.index):
            room = torch.empty(size, dtype=torch.uint8, device=self.torch_device)
            runtime.synchronize(self.index)  # whatever used this memory before: it is any stream's from now on
        return room


def in_another_thread(function, *arguments):
    """function(*arguments), by a thread of its own.

    For memory that is kept. What a thread allocates while it warms up or records a graph of torch.compile comes from
    that graph's pool, where torch refuses anything that is not an output of the graph.
    """
    found = {}

    def work():
        try:
            found["value"] = function(*arguments)
        except BaseException as error:  # the caller's to see
            found["error"] = error

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if "error" in found:
        raise found["error"]
    return found["value"]


_devices = {}
_devices_lock = threading.Lock()


def device_of(tensor_or_index):
    """The Device of a tensor on a GPU, or of a GPU's number."""
    if isinstance(tensor_or_index, torch.Tensor):
        index = tensor_or_index.device.index or 0
    else:
        index = tensor_or_index
    found = _devices.get(index)
    if found is None:
        with _devices_lock:
            found = _devices.get(index)
            if found is None:
                found = _devices[index] = Device(index)
    return found


def finalize(owner, function, *arguments):
    """Calls function(*arguments) when `owner` is gone, but not while the interpreter goes down."""
    finalizer = weakref.finalize(owner, function, *arguments)
    finalizer.atexit = False
