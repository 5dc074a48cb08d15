"""Simple construct intervals (SCI) with bitmap vectors (VCI, section 2.2).

At every value a begin L constructs, of the lengths 1..L; the label of the one of length w is
a * L + w - 1 (Eq. 1, from 0 on). A query is cut into constructs of length L from its left end on, and
a remnant. Each value has a bitmap with a bit for every construct there is, so that a search finds the
active constructs over a value by the bits that are set: storage grows with the square of the domain.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.bitmap_search import search as search
from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, Layout, cut, every
from limen.kernels.memory import I64


def layout(r: int, length: int, closed: int) -> Layout:
    n = r * length
    widths = np.arange(length, 0, -1) if closed else np.empty(0, np.int64)
    return Layout(
        heads=n,
        defined=n,
        pieces=r // length + 1,
        rows=r,
        bits=n,
        group=length,
        endings=widths - 1 - widths * length,
    )


def constructs(r: int, length: int, closed: int) -> I64:
    first = np.arange(r)[:, None]
    widths = np.arange(1, length + 1)[None, :]
    return every(first + 0 * widths, first + widths - 1 + closed)


@loop
def decompose(ix: Constructs, lo: I64, hi: I64, start: int, offsets: I64, pieces: I64) -> int:
    """Cut the queries from `start` on while there is room; returns the first that was not cut."""
    n = 0
    for i in range(start, len(lo)):
        if n + ix.r // ix.length + 1 > len(pieces):
            return i
        a, rest = lo[i], hi[i] - lo[i] + 1 - ix.closed
        point = rest == 0
        while rest > 0 or point:
            width = max(1, min(rest, ix.length))
            rest -= width
            label = a * ix.length + width - 1
            shared = point or (ix.closed and rest > 0)
            last = a + width - 1 + ix.closed
            n = cut(pieces, n, ~label if shared else label, a, last)
            a += width
            point = False
        offsets[i - start + 1] = n
    return len(lo)
