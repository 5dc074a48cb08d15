"""Stabbing by scanning queries sorted by their beginning: the baseline that every index must beat.

A value can only be in queries that begin at or before it, a prefix of the sorted array; the prefix is
scanned from its end towards its start, and stops where the running maximum of the ends falls below
the value. Cost: O(log n) to find the prefix, then every query up to the last one that reaches x.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import compiled, loop
from limen.kernels.memory import I32, I64


@compiled
def running_max(hi: I64) -> I64:
    """The largest end among hi[:i + 1], for every i."""
    reach = np.empty(len(hi), np.int64)
    for i in range(len(hi)):
        reach[i] = hi[i] if i == 0 else max(hi[i], reach[i - 1])
    return reach


@loop
def count(lo: I64, hi: I64, reach: I64, xs: I64, found: I32) -> None:
    for e in range(len(xs)):
        x = xs[e]
        i = np.searchsorted(lo, x, side="right") - 1
        n = 0
        while i >= 0 and reach[i] >= x:
            n += hi[i] >= x
            i -= 1
        found[e] = n


@loop
def report(lo: I64, hi: I64, reach: I64, ids: I32, xs: I64, offsets: I64, out: I32) -> None:
    for e in range(len(xs)):
        x = xs[e]
        i = np.searchsorted(lo, x, side="right") - 1
        o = offsets[e]
        while i >= 0 and reach[i] >= x:
            if hi[i] >= x:
                out[o] = ids[i]
                o += 1
            i -= 1
