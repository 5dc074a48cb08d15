"""The canonical stabbing partition: the greedy pass of Lemma 1 over intervals in order of left ends.

A group is a run of the order. It ends before the first interval that begins beyond the common
intersection, whose right end, the least of the group's right ends, is the group's stabbing point. So the
points alone tell the groups: an interval is in that of the first point at or above its left end.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import compiled
from limen.kernels.memory import I64, prefetch

AHEAD = 16


@compiled
def greedy(order: I64, lo: I64, hi: I64) -> tuple[I64, I64]:
    """Where in the order each group begins, and the end; and each group's stabbing point.

    `order` is by lo. Nothing at all, not even an end, if an interval is upside down. Cost: a pass, in
    which the intervals are met at random places in memory.
    """
    n = len(order)
    starts, points = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    groups, r = 0, np.int64(0)
    for i in range(n):
        if i + AHEAD < n:
            prefetch(lo, order[i + AHEAD])
            prefetch(hi, order[i + AHEAD])
        q = order[i]
        if groups == 0 or lo[q] > r:
            starts[groups] = i
            groups += 1
            r = hi[q]
        if lo[q] > hi[q]:
            return starts[:0].copy(), points[:0].copy()
        r = min(r, hi[q])
        points[groups - 1] = r
    starts[groups] = n
    return starts[: groups + 1].copy(), points[:groups].copy()
