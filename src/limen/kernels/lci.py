"""Logarithmic construct intervals (LCI) with bitmap vectors (VCI, section 2.3).

At every value a begin k + 1 constructs, of the lengths 1, 2, 4..L = 2**k; the label of the one of length
2**l is a * (k + 1) + l (Eq. 2, from 0 on). A query is cut from its left end on, always with the longest
construct that fits. Bitmaps and search as in `sci.py`.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.bitmap_search import search as search
from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, Layout, cut, every
from limen.kernels.memory import I64


def layout(r: int, length: int, closed: int) -> Layout:
    levels = length.bit_length()
    n = r * levels
    level = np.arange(levels - 1, -1, -1) if closed else np.empty(0, np.int64)
    return Layout(
        heads=n,
        defined=n,
        pieces=r // length + levels,
        rows=r,
        bits=n,
        group=levels,
        endings=level - (1 << level) * levels,
    )


def constructs(r: int, length: int, closed: int) -> I64:
    first = np.arange(r)[:, None]
    widths = (1 << np.arange(length.bit_length()))[None, :]
    return every(first + 0 * widths, first + widths - 1 + closed)


@loop
def decompose(ix: Constructs, lo: I64, hi: I64, start: int, offsets: I64, pieces: I64) -> int:
    """Cut the queries from `start` on while there is room; returns the first that was not cut."""
    n = 0
    for i in range(start, len(lo)):
        if n + ix.r // ix.length + ix.levels > len(pieces):
            return i
        a, rest = lo[i], hi[i] - lo[i] + 1 - ix.closed
        point = rest == 0
        level = ix.levels - 1
        while rest > 0 or point:
            while level > 0 and 1 << level > rest:
                level -= 1
            width = 1 << level
            rest -= width
            label = a * ix.levels + level
            shared = point or (ix.closed and rest > 0)
            last = a + width - 1 + ix.closed
            n = cut(pieces, n, ~label if shared else label, a, last)
            a += width
            point = False
        offsets[i - start + 1] = n
    return len(lo)
