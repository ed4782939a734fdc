"""A target directory that appears whole or not at all: docs/spec/checkpoint.md 6, as the C library does it."""

import fcntl
import os
import re
import shutil
from pathlib import Path

from .._errors import BusyError, ExistsError, NotFoundError

# What a packed checkpoint has that is made anew each time.
OWN = re.compile(r"glyd\.json|glyd\.safetensors\.index\.json|glyd-\d{5}-of-\d{5}\.safetensors")


class Staging:
    """Everything is written to `new`; leaving without an error renames it to the target."""

    def __init__(self, target, overwrite):
        self.target = Path(os.path.abspath(os.fspath(target)))
        self.overwrite = overwrite
        self.directory = self.target.parent / f".{self.target.name}.glyd-staging"
        self.new = self.directory / "new"

    def __enter__(self):
        if not self.target.parent.is_dir():
            raise NotFoundError(f"{self.target.parent}: no such directory to write {self.target.name} in")
        self._check_target()
        self.directory.mkdir(exist_ok=True)
        self._lock = open(self.directory / "lock", "wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise BusyError(f"{self.target}: another process is writing it") from None
        for left in self.directory.iterdir():  # of a write that was killed
            if left.name != "lock":
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        self.new.mkdir()
        return self

    def _check_target(self):
        if not os.path.lexists(self.target):
            return
        replaceable = (self.target / "glyd.json").is_file() or (self.target.is_dir() and not any(self.target.iterdir()))
        if not self.overwrite:
            raise ExistsError(f"{self.target} exists already; overwrite=True replaces a packed checkpoint")
        if not replaceable:
            raise ExistsError(f"{self.target} exists and is not a packed checkpoint: it is not overwritten")

    def refuse_to_lose(self):
        """Raises if the target holds files (or empty directories) that `new` does not have, its shards aside."""
        if not self.target.is_dir():
            return
        lost = sorted(left for left in entries(self.target) - entries(self.new) if not OWN.fullmatch(left))
        if lost:
            named = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
            raise ExistsError(
                f"{self.target}: not overwritten, since that would lose what the new one does not have: {named}. "
                "Move it away, or choose another path; tokenizer=... writes the tokenizer's files."
            )

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self._commit()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._lock.close()

    def _commit(self):
        self.refuse_to_lose()  # again: somebody may have put files there meanwhile
        sync(self.new)
        if os.path.lexists(self.target):
            os.rename(self.target, self.directory / "old")
        os.rename(self.new, self.target)
        sync(self.target.parent)


def entries(directory):
    """Relative paths of the files below a directory, and with a slash of its empty directories."""
    found = set()
    for place, directories, files in os.walk(directory):
        path = os.path.relpath(place, directory)
        found.update(os.path.normpath(os.path.join(path, name)) for name in files)
        links = [name for name in directories if os.path.islink(os.path.join(place, name))]  # walk does not follow them
        found.update(os.path.normpath(os.path.join(path, name)) for name in links)
        if not directories and not files and path != ".":
            found.add(path + "/")
    return found


def sync(directory):
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
