"""Containment-encoded intervals as the paper has them: unit cells, linked id lists (CEI, section 3).

Labels, guiding posts and BestPartition are those of `containment.py`; the production index of
`cei.py` is what has become of them. With closed ends, [a, b] is [a, b) and a point construct for b;
the r point constructs follow the others (section 3.4).
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import loop
from limen.kernels.containment import decompose_into
from limen.kernels.id_lists import Constructs, Layout, cut, every, report
from limen.kernels.memory import I32, I64


def layout(r: int, length: int, closed: int) -> Layout:
    whole = _whole(r, length)
    levels = length.bit_length()
    return Layout(
        heads=2 * whole + closed * r,
        defined=2 * whole - whole // length + closed * r,
        pieces=whole // length + 2 * levels + 1,
    )


def _whole(r: int, length: int) -> int:
    """The domain in whole segments."""
    return -(-r // length) * length


def constructs(r: int, length: int, closed: int) -> I64:
    whole = _whole(r, length)
    segment, local = np.divmod(np.arange(2 * whole), 2 * length)
    local = np.maximum(local, 1)
    level = np.floor(np.log2(local)).astype(np.int64)
    size = length >> level
    first = segment * length + (local - (1 << level)) * size
    points = np.arange(r * closed)
    rows = every(np.concatenate([first, points]), np.concatenate([first + size - 1, points]))
    return rows[(rows[:, 0] >= 2 * whole) | (rows[:, 0] % (2 * length) != 0)]


@loop
def decompose(ix: Constructs, lo: I64, hi: I64, start: int, offsets: I64, pieces: I64) -> int:
    """Cut the queries from `start` on while there is room; returns the first that was not cut."""
    n = 0
    labels = pieces[:, 0]
    most = ix.r // ix.length + 2 * ix.levels + 2
    whole = (ix.r + ix.length - 1) // ix.length * ix.length
    for i in range(start, len(lo)):
        if n + most > len(pieces):
            return i
        begin = n
        a, b = lo[i], hi[i] + 1 - ix.closed
        n = decompose_into(a, b, ix.length, labels, n)
        for j in range(begin, n):
            size, local = ix.length, labels[j] % (2 * ix.length)
            while local > 1:
                local //= 2
                size //= 2
            pieces[j, 1], pieces[j, 2] = a, a + size - 1
            a += size
        if ix.closed:
            n = cut(pieces, n, 2 * whole + b, b, b)
        offsets[i - start + 1] = n
    return len(lo)


@loop
def search(ix: Constructs, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Report the ids over each value from `start` on; returns the first for which room was lacking."""
    shift = ix.levels - 1
    points = 2 * ((ix.r + ix.length - 1) >> shift << shift)
    o = offsets[start]
    for e in range(start, len(xs)):
        post = xs[e] >> shift << shift
        local = xs[e] - post + ix.length
        while local > 0 and o >= 0:
            o = report(ix, 2 * post + local, False, mode, out, o)
            local >>= 1
        if o >= 0 and ix.closed:
            o = report(ix, points + xs[e], False, mode, out, o)
        if o < 0:
            return e
        offsets[e + 1] = o
    return len(xs)
