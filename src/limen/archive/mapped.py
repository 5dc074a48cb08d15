"""Files as memory: what the system has of a file is looked at where it lies, and not copied.

A page that cannot be read, of a disk that fails or past the end of a file that was cut, ends a process
that looks at it. So a stretch is asked for before: then it is an error, where the kernel can tell (Linux
from 5.14 on). No file handle stays open, however many files are mapped.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
from pathlib import Path

import pyarrow as pa

READABLE = 22 if sys.platform == "linux" else None  # MADV_POPULATE_READ
FAILED = ctypes.c_void_p(-1).value

_libc = ctypes.CDLL(None, use_errno=True)
_map, _unmap, _advise = _libc.mmap, _libc.munmap, _libc.madvise
_map.restype = ctypes.c_void_p
_map.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class _Mapping:
    def __init__(self, path: Path | str, size: int) -> None:
        self.size, self.address = size, FAILED
        handle = os.open(path, os.O_RDONLY)
        try:
            self.address = _map(None, size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
        finally:
            os.close(handle)
        if self.address == FAILED:
            raise _error()

    def __del__(self) -> None:
        if self.address != FAILED:
            _unmap(self.address, self.size)


class Mapped:
    """A file that nobody changes, of a known size, for as long as anything refers to its bytes."""

    def __init__(self, path: Path | str, size: int) -> None:
        mapping = _Mapping(path, size)
        self.path = path
        self.bytes: pa.Buffer = pa.foreign_buffer(mapping.address, size, mapping)
        self.view = memoryview(self.bytes).cast("B")

    def check(self) -> None:
        """OSError if the file has gone or is cut."""
        if os.stat(self.path).st_size != len(self.view):
            raise OSError("it is cut, or longer than it was")

    def have(self, start: int, end: int) -> None:
        """See to it that a stretch can be looked at; OSError if it cannot."""
        failed = READABLE is not None and self._advise(start, end, READABLE)
        if failed and ctypes.get_errno() != errno.EINVAL:  # then the kernel is older
            raise _error()

    def let_go(self, start: int, end: int) -> None:
        """A stretch is no longer part of the memory of this process."""
        self._advise(start, end, mmap.MADV_DONTNEED)

    def _advise(self, start: int, end: int, advice: int) -> int:
        start -= start % mmap.PAGESIZE
        return int(_advise(self.bytes.address + start, end - start, advice))


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
