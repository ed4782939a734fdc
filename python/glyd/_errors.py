"""Exceptions: one class a status code of include/glyd/status.h."""


class Error(Exception):
    """Base of every error that glyd raises. `status` is the C library's code, or None where Python found the fault."""

    status = None


class InvalidArgumentError(Error, ValueError):
    """The call is wrong: an unknown option, a shape that does not fit."""

    status = 1


class CorruptError(Error):
    """The data breaks its format's rules, or its checksum."""

    status = 2


class MismatchError(Error):
    """Two things that should be equal differ."""

    status = 3


class UnsupportedError(Error):
    """Valid, but not by this build or on this machine."""

    status = 4


class ForeignFormatError(Error):
    """Another program's format, or a version that this one does not read."""

    status = 5


class OutOfMemoryError(Error, MemoryError):
    status = 6


class IoError(Error, OSError):
    """Reading or writing failed: a full disk, a permission."""

    status = 7


class NotFoundError(Error, FileNotFoundError):
    """A file, directory, repo or tensor is missing."""

    status = 8


class ExistsError(Error, FileExistsError):
    """The target is there already."""

    status = 9


class BusyError(Error):
    """Another process is writing the same target."""

    status = 10


class BufferTooSmallError(Error):
    status = 11


class CancelledError(Error):
    """The progress callback asked to stop."""

    status = 12


class InternalError(Error):
    """A bug in the library; please report it."""

    status = 13


BY_STATUS = {cls.status: cls for cls in Error.__subclasses__()}
