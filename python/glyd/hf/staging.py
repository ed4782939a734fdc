"""A target directory that appears whole or not at all: docs/spec/checkpoint.md 6, as the C library does it."""

import fcntl
import os
import shutil
from pathlib import Path

from .._errors import BusyError, ExistsError, NotFoundError


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

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self._commit()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._lock.close()

    def _commit(self):
        sync(self.new)
        if os.path.lexists(self.target):
            os.rename(self.target, self.directory / "old")
        os.rename(self.new, self.target)
        sync(self.target.parent)


def sync(directory):
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
