"""Unit intervals (UI): a list for every unit of the domain (CEI, section 2.2).

A query is in the list of each unit it covers, and a value finds it in one list: the fastest search and
the most storage. With closed ends, [a, b] is the units of [a, b) and a point construct for b; the r
point constructs follow the units (CEI, section 3.4).
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, Layout, cut, every, report
from limen.kernels.memory import I32, I64


def layout(r: int, length: int, closed: int) -> Layout:
    return Layout(heads=r * (1 + closed), defined=r * (1 + closed), pieces=r)


def constructs(r: int, length: int, closed: int) -> I64:
    units = np.arange(r)
    return every(np.tile(units, 1 + closed), np.tile(units, 1 + closed))


@loop
def decompose(ix: Constructs, lo: I64, hi: I64, start: int, offsets: I64, pieces: I64) -> int:
    """Cut the queries from `start` on while there is room; returns the first that was not cut."""
    n = 0
    for i in range(start, len(lo)):
        p, q = lo[i], hi[i]
        if n + q - p + 1 > len(pieces):
            return i
        for u in range(p, q + 1):
            point = ix.closed and u == q
            n = cut(pieces, n, ix.r + u if point else u, u, u)
        offsets[i - start + 1] = n
    return len(lo)


@loop
def search(ix: Constructs, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Report the ids over each value from `start` on; returns the first for which room was lacking."""
    o = offsets[start]
    for e in range(start, len(xs)):
        o = report(ix, xs[e], False, mode, out, o)
        if o >= 0 and ix.closed:
            o = report(ix, ix.r + xs[e], False, mode, out, o)
        if o < 0:
            return e
        offsets[e + 1] = o
    return len(xs)
