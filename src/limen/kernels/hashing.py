"""A table from int64 keys to small codes: open addressing, at most half full.

`slots` is a power of two long and holds codes (-1: free); `keys[code]` is the key. Looking up is one
multiplication and, nearly always, one comparison.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64

SPREAD = np.uint64(0x9E3779B97F4A7C15)


@leaf
def _home(key: int, bits: int) -> int:
    mixed = np.uint64(key) ^ (np.uint64(key) >> np.uint64(32))
    return np.int64((mixed * SPREAD) >> np.uint64(64 - bits))


@loop
def put_codes(slots: I32, bits: int, keys: I64, begin: int, end: int) -> None:
    """Enter keys[begin:end]; one that is in already gets the later code."""
    mask = (1 << bits) - 1
    for code in range(begin, end):
        at = _home(keys[code], bits)
        while slots[at] >= 0 and keys[slots[at]] != keys[code]:
            at = (at + 1) & mask
        slots[at] = code


@loop
def find_codes(slots: I32, bits: int, keys: I64, xs: I64, codes: I32) -> None:
    """codes[i] = the code of xs[i], or -1."""
    mask = (1 << bits) - 1
    for i in range(len(xs)):
        at = _home(xs[i], bits)
        while slots[at] >= 0 and keys[slots[at]] != xs[i]:
            at = (at + 1) & mask
        codes[i] = slots[at]
