"""An output buffer kept for the next batch: memory that the kernel need not be asked for again.

Fresh memory costs a page fault every 4 KiB, which for short answers is a quarter of a probe and for long
ones most of it. So the last buffer is kept, and used again if nobody looks at it any more: every
array or Arrow buffer made of it holds a reference, which is counted.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

KEEP_BYTES = 256 << 20  # a larger buffer is given back
OURS = 2  # references to a buffer that only this object holds: its own, and the count's


class Spare:
    def __init__(self, dtype: type[np.generic]) -> None:
        self._dtype = dtype
        self._kept: npt.NDArray[Any] = np.empty(0, dtype)

    def empty(self, n: int) -> npt.NDArray[Any]:
        """At least n elements of anything, of which the caller hands out views only."""
        if len(self._kept) >= n and sys.getrefcount(self._kept) == OURS:
            return self._kept
        fresh = np.empty(n, self._dtype)
        if fresh.nbytes <= KEEP_BYTES:
            self._kept = fresh
        return fresh
