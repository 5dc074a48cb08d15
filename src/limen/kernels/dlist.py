"""Direct listing (Dlist): for every value the list of all queries that contain it (VCI, section 5.1).

What unit intervals are to half-open queries, this is to closed ones: [x, y] is in the lists of the
y - x + 1 integers from x to y, and a value finds it in one list.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, Layout, cut, every, report
from limen.kernels.memory import I32, I64


def layout(r: int, length: int, closed: int) -> Layout:
    return Layout(heads=r, defined=r, pieces=r)


def constructs(r: int, length: int, closed: int) -> I64:
    return every(np.arange(r), np.arange(r))


@loop
def decompose(ix: Constructs, lo: I64, hi: I64, start: int, offsets: I64, pieces: I64) -> int:
    """Cut the queries from `start` on while there is room; returns the first that was not cut."""
    n = 0
    for i in range(start, len(lo)):
        if n + hi[i] - lo[i] + 1 > len(pieces):
            return i
        for z in range(lo[i], hi[i] + 1):
            n = cut(pieces, n, z, z, z)
        offsets[i - start + 1] = n
    return len(lo)


@loop
def search(ix: Constructs, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Report the ids over each value from `start` on; returns the first for which room was lacking."""
    o = offsets[start]
    for e in range(start, len(xs)):
        o = report(ix, xs[e], False, mode, out, o)
        if o < 0:
            return e
        offsets[e + 1] = o
    return len(xs)
