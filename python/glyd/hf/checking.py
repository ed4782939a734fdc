"""What is looked at before a model is loaded, so that errors name the file and the remedy.

Names, and the structure of packed directories (docs/spec/checkpoint.md 5).
"""

import difflib
import os
import re
import warnings
from pathlib import Path

from .. import _api
from .._errors import InvalidArgumentError, NotFoundError

OPTIONS = ("device", "layout", "exact", "merge", "verify", "compile", "revision", "token", "dtype", "device_map")


def check_name(name_or_path):
    """Raises for a path at which no model is. What may be a repo id is left to transformers."""
    text = os.fspath(name_or_path)
    if os.path.isdir(text):
        if not os.path.isfile(os.path.join(text, "config.json")):
            raise NotFoundError(f"{text}: no config.json in it, so it is no directory of a model that can be loaded")
        return
    if os.path.exists(text):
        raise InvalidArgumentError(f"{text}: a file; give the directory of the model")
    parent = os.path.dirname(text)
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", text) or text.startswith(".") or (parent and os.path.isdir(parent)):
        raise NotFoundError(f"{text}: no such directory")


def not_loaded(name_or_path, error):
    """The error for a name that is no directory here and that transformers found no model under either."""
    if os.path.isdir(name_or_path):
        return error
    return NotFoundError(
        f"{name_or_path}: no such directory, and no model of that name on the Hub or in its cache: {error}"
    )


def check_packed(directory, everything=False):
    """Checks a packed directory: sizes, headers and hashes of headers of all shards; or every byte."""
    directory = Path(directory)
    if not (directory / "glyd.json").is_file():
        if directory.parent.name == "snapshots":  # of the Hub's cache, where only what was asked for lies
            return
        raise NotFoundError(
            f"{directory}: no glyd.json in it, though its config.json says that glyd packed it; fetch it again"
        )
    if everything:
        _api.verify(directory)
    elif _api.inspect(directory).get("config_changed"):
        warnings.warn(
            f"{directory / 'config.json'} is not the one that was packed with these weights: edited since, or another "
            f"model's. It is used as it is; glyd.unpack gives the packed one back, verify=True refuses the directory.",
            stacklevel=3,
        )


def unknown_option(error, hf_kwargs):
    """The error for an option that neither glyd nor the model's class knows; None if `error` is about something else."""
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    if not found or found[1] not in hf_kwargs:
        return None
    near = difflib.get_close_matches(found[1], OPTIONS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f": {error}"
    return InvalidArgumentError(f"unknown option {found[1]!r}{hint}")
