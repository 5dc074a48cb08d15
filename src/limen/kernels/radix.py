"""Stable order of small non-negative integer keys, by two counting passes over their top bits.

Keys of more than 22 bits are ordered by their 22 highest bits only: the order serves locality,
where neighbours may swap. Cost: three passes over the keys, no comparison.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import compiled
from limen.kernels.memory import I32

PASS_BITS = 11


@compiled
def locality_order(keys: I32, bits: int) -> I32:
    """Positions of `keys`, ordered by key; `bits` is the width of the largest key."""
    n = len(keys)
    width = max(1, min(PASS_BITS, (bits + 1) // 2))
    drop = max(0, bits - 2 * width)
    mask = (1 << width) - 1
    low = np.zeros(mask + 2, np.int64)
    high = np.zeros(mask + 2, np.int64)
    for i in range(n):
        key = max(np.int64(keys[i]), 0) >> drop
        low[(key & mask) + 1] += 1
        high[(key >> width) + 1] += 1
    for d in range(mask + 1):
        low[d + 1] += low[d]
        high[d + 1] += high[d]
    halfway = np.empty(n, np.int64)
    for i in range(n):
        key = max(np.int64(keys[i]), 0) >> drop
        halfway[low[key & mask]] = (key << 32) | i
        low[key & mask] += 1
    order = np.empty(n, np.int32)
    for i in range(n):
        d = halfway[i] >> (32 + width)
        order[high[d]] = halfway[i] & 0xFFFFFFFF
        high[d] += 1
    return order
