"""Simple construct intervals (SCI) with bitmap vectors (VCI, section 2.2).

At every value a begin L constructs, of the lengths 1..L; the label of the one of length w is
a * L + w - 1 (Eq. 1, from 0 on). A query is cut into constructs of length L from its left end on, and
a remnant. Each value has a bitmap with a bit for every construct there is, so that a search finds the
active constructs over a value by the bits that are set: storage grows with the square of the domain.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.bitmap import lowest_bit
from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, Layout, cut, every, report
from limen.kernels.memory import I32, I64


def layout(r: int, length: int, closed: int) -> Layout:
    n = r * length
    return Layout(heads=n, defined=n, pieces=r // length + 1, rows=r, bits=n)


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


@loop
def search(ix: Constructs, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Report the ids over each value from `start` on; returns the first for which room was lacking."""
    o = offsets[start]
    for e in range(start, len(xs)):
        j = xs[e]
        width = (
            ix.length * ix.closed
        )  # of the next construct that ends at j, in the order of labels
        ending = (j - width) * ix.length + width - 1
        first = ix.base + ix.step * j
        for w in range(ix.bits.shape[1]):
            word = ix.bits[j, w]
            while word != 0 and o >= 0:
                label = first + 64 * w + lowest_bit(word)
                word &= word - np.uint64(1)
                while ending < label and width > 0:
                    width -= 1
                    ending = (j - width) * ix.length + width - 1
                o = report(ix, label, width > 0 and ending == label, mode, out, o)
        if o < 0:
            return e
        offsets[e + 1] = o
    return len(xs)
