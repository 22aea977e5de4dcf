"""One family of exceptions. Each is also the builtin that people would catch.

>>> import mnp
>>> try:
...     mnp.load("no such model")
... except mnp.Error as error:
...     print(type(error).__name__, isinstance(error, OSError))
FileError True
"""

from __future__ import annotations

from . import _structs as c


class Error(Exception):
    """What the library, or this package, refused; the text says what and the remedy."""


class InvalidError(Error, ValueError):
    """An argument or an option is wrong."""


class OutOfMemoryError(Error, MemoryError):
    """Memory could not be had."""


class FileError(Error, OSError):
    """The operating system refused a read or a write."""


class FormatError(Error, ValueError):
    """A file or a table is not what it claims to be."""


class UnsupportedError(Error, NotImplementedError):
    """This build or this device cannot do it."""


class NotInstalledError(UnsupportedError, ImportError):
    """A further Python package is needed."""


class DeviceError(Error, RuntimeError):
    """The accelerator failed."""


class NumericError(Error, ArithmeticError):
    """A NaN or an infinity appeared where none may."""


class CancelledError(Error, RuntimeError):
    """The work was stopped."""


class PeerError(Error, ConnectionError):
    """Another process of the job failed or is silent."""


class ClosedError(Error, ValueError):
    """The object was closed before."""


class LibraryError(Error, ImportError):
    """libmnp.so is missing, or it is another library or another version."""


class Warning(UserWarning):  # the name by which people filter: mnp.Warning
    """There is an answer, and something doubtful about it.

    >>> import mnp, warnings
    >>> process = mnp.load("mnp-monotonic")
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", mnp.Warning)  # x is far from what it was trained on
    ...     mean = process.condition([0.1], [0.0]).mean([500.0])
    """


OF_STATUS = {
    c.MNP_EINVAL: InvalidError,
    c.MNP_ENOMEM: OutOfMemoryError,
    c.MNP_EIO: FileError,
    c.MNP_EFORMAT: FormatError,
    c.MNP_EUNSUPPORTED: UnsupportedError,
    c.MNP_EDEVICE: DeviceError,
    c.MNP_ENUMERIC: NumericError,
    c.MNP_ECANCELLED: CancelledError,
    c.MNP_EPEER: PeerError,
}
