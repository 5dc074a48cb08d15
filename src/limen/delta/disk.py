"""Files that are on disk when we say so, names that deltalake takes, and its errors in plain words."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake.exceptions import DeltaError

WRITE = 2  # SYNC_FILE_RANGE_WRITE

_process: int | None = None
_start = getattr(ctypes.CDLL(None), "sync_file_range", None)  # of Linux
if _start is not None:
    _start.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]


def to_disk(path: Path) -> None:
    """What was written to a file, or the names in a folder, survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def begin_to_disk(handle: int, start: int, length: int) -> None:
    """Have a stretch of a file written while we go on, so that `to_disk` has less to wait for."""
    if _start is not None:
        _start(handle, start, length, WRITE)


def folder_of(path: str | Path, what: str) -> Path:
    """The folder of a table, in full. Raises ValueError with what is wrong with its name."""
    if "://" in str(path):
        raise ValueError(
            f"{path}: {what} is a folder in a file system that the driver and all workers see, "
            "not an address"
        )
    folder = os.path.abspath(Path(path).expanduser())
    if re.search(r"%[0-9A-Fa-f]{2}|\\|[\x00-\x1f]", folder):  # deltalake reads them as an address
        raise ValueError(
            f"{folder!r}: the name of {what} has no backslash, no control character and no % before "
            "two hexadecimal digits"
        )
    return Path(folder)


def is_forked() -> bool:
    """Was deltalake in use before a fork? It has threads, which a fork does not take along."""
    global _process
    _process = _process or os.getpid()
    return _process != os.getpid()


@contextmanager
def unpanicked() -> Iterator[None]:
    """A panic of deltalake, which is no Exception to Python, as one of its errors."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise DeltaError(str(error)) from None


def plain(error: Exception) -> str:
    """On one line, without the colours and the stack that deltalake's errors bring along."""
    text = re.split(r"\n\s+0: ", str(error))[0]
    return " ".join(re.sub(r"\x1b\[\d+m|↳", "", text).split())[:300]
