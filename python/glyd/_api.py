"""Packed checkpoints: the library's verbs as functions that return dicts (include/glyd/checkpoint.h)."""

import ctypes
import json
import os
import warnings

from . import _fit
from ._capi import FitOptions, Layout, Note, PackOptions, Progress, SizesOptions, UnpackOptions, VerifyOptions, lib
from ._errors import CancelledError, InvalidArgumentError, NotFoundError


def path_bytes(path):
    return os.fsencode(os.fspath(path))


def optional_bytes(text):
    return None if text is None else str(text).encode()


def layout_number(name):
    number = Layout()
    lib().glyd_layout_from_name(str(name).encode(), ctypes.byref(number))
    return number.value


class _Watch:
    """Carries the C progress callback to a Python one, and what that raised (Ctrl-C too) back out of the C call."""

    def __init__(self, callback):
        self._callback = callback
        self._raised = None
        self.function = Progress(self._step)
        self.note = Note(self._note)

    def _note(self, _user, text):
        try:
            warnings.warn(text.decode("utf-8", "replace"), stacklevel=5)
        except BaseException as error:  # a filter that makes warnings errors: the next step stops
            self._raised = error

    def _step(self, _user, done, total, what):
        if self._raised is not None:
            return 1
        try:
            if self._callback is not None and self._callback(done, total, what.decode("utf-8", "replace")):
                return 1
            return 0
        except BaseException as error:
            self._raised = error
            return 1

    def run(self, function, *arguments):
        try:
            return document(function, *arguments)
        except CancelledError:
            if self._raised is not None:
                raise self._raised from None
            raise


def document(function, *arguments):
    """Calls a C function that gives a JSON document, as a dict."""
    text = ctypes.c_void_p()
    try:
        function(*arguments, ctypes.byref(text))
        return json.loads(lib().glyd_text_data(text).decode())
    finally:
        lib().glyd_text_free(text)


def pack(
    source,
    target,
    *,
    layout="auto",
    threads=0,
    overwrite=False,
    verify=True,
    hash_files=False,
    revision=None,
    progress=None,
):
    """Packs a model directory, one .safetensors file or a cached repo into the new directory `target`.

    `progress(done, total, what)` is called now and then; a true result stops the work. What should be known though the
    work goes on (shards of a stopped pack that are packed again) is a warning.
    """
    if layout not in ("auto", "fast", "small", "mma12", "mma"):  # raw is what single tensors get, not to be asked for
        raise InvalidArgumentError(f"unknown layout {layout!r}: choose 'fast', 'small' or 'auto'")
    watch = _Watch(progress)
    options = PackOptions(
        layout=layout_number(layout),
        threads=threads,
        overwrite=overwrite,
        no_verify=not verify,
        hash_files=hash_files,
        revision=optional_bytes(revision),
        progress=watch.function,
        note=watch.note,
    )
    return watch.run(lib().glyd_checkpoint_pack, path_bytes(source), path_bytes(target), ctypes.byref(options))


def verify(directory, *, source=None, threads=0, revision=None, progress=None):
    """Checks every byte of a packed directory; with `source`, against it too. Its error has a line for each fault."""
    watch = _Watch(progress)
    options = VerifyOptions(
        threads=threads,
        source=None if source is None else path_bytes(source),
        revision=optional_bytes(revision),
        progress=watch.function,
    )
    return watch.run(lib().glyd_checkpoint_verify, path_bytes(directory), ctypes.byref(options))


def unpack(directory, target, *, threads=0, overwrite=False, salvage=False, progress=None):
    """The source's files again, byte for byte.

    salvage: of a damaged directory, restore what is intact, with zeros for damaged tensors; then CorruptError names
    everything that is not, a line each, though `target` is there.
    """
    watch = _Watch(progress)
    options = UnpackOptions(threads=threads, overwrite=overwrite, progress=watch.function, salvage=salvage)
    return watch.run(lib().glyd_checkpoint_unpack, path_bytes(directory), path_bytes(target), ctypes.byref(options))


def sizes(*sources, threads=0, revision=None, progress=None):
    """Every matrix of each source in both layouts, decoded and compared: bits a weight and bytes."""
    watch = _Watch(progress)
    options = SizesOptions(threads=threads, revision=optional_bytes(revision), progress=watch.function)
    names = (ctypes.c_char_p * len(sources))(*[path_bytes(source) for source in sources])
    return watch.run(lib().glyd_checkpoint_sizes, names, len(sources), ctypes.byref(options))


def inspect(path, *, revision=None):
    """What is in a packed directory, a source or one file, without decoding."""
    return document(lib().glyd_checkpoint_inspect, path_bytes(path), optional_bytes(revision))


def fit(name_or_path, *, gpu, context=8192, batch=1, revision=None, token=None):
    """Will it fit? A table when printed, with fields and to_dict(). `gpu`: "48GB", "H200", or a number of bytes.

    A repo id that is not in the cache is read from the Hub: its config and its safetensors headers alone.
    """
    if int(context) < 1 or int(batch) < 1:
        raise InvalidArgumentError(f"context {context} and batch {batch}: both are at least 1")
    options = FitOptions(
        gpu=str(gpu).encode(), context=int(context), batch=int(batch), revision=optional_bytes(revision)
    )
    try:
        found = document(lib().glyd_checkpoint_fit, path_bytes(name_or_path), ctypes.byref(options))
    except NotFoundError as missing:
        if not _fit.looks_like_repo_id(name_or_path):
            raise
        with _fit.headers_from_hub(str(name_or_path), revision, token, missing) as directory:
            options.revision = None  # the directory's files are that revision's
            found = document(lib().glyd_checkpoint_fit, path_bytes(directory), ctypes.byref(options))
            found["model"] = str(name_or_path)
    return _fit.Fit(found)


def doctor():
    """CPU, libraries, GPU and driver found, and what is missing."""
    return document(lib().glyd_doctor)
