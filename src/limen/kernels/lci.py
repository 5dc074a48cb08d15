"""Logarithmic construct intervals (LCI) with bitmap vectors (VCI, section 2.3).

At every value a begin k + 1 constructs, of the lengths 1, 2, 4..L = 2**k; the label of the one of length
2**l is a * (k + 1) + l (Eq. 2, from 0 on). A query is cut from its left end on, always with the longest
construct that fits. Bitmaps and search as in `sci.py`.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.bitmap import lowest_bit
from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, Layout, cut, every, report
from limen.kernels.memory import I32, I64


def layout(r: int, length: int, closed: int) -> Layout:
    levels = length.bit_length()
    n = r * levels
    return Layout(heads=n, defined=n, pieces=r // length + levels, rows=r, bits=n)


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


@loop
def search(ix: Constructs, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Report the ids over each value from `start` on; returns the first for which room was lacking."""
    o = offsets[start]
    for e in range(start, len(xs)):
        j = xs[e]
        level = (
            ix.levels * ix.closed - 1
        )  # of the next construct that ends at j, in order of labels
        ending = (j - ix.length) * ix.levels + level
        first = ix.base + ix.step * j
        for w in range(ix.bits.shape[1]):
            word = ix.bits[j, w]
            while word != 0 and o >= 0:
                label = first + 64 * w + lowest_bit(word)
                word &= word - np.uint64(1)
                while ending < label and level >= 0:
                    level -= 1
                    ending = (j - (1 << max(level, 0))) * ix.levels + level
                o = report(ix, label, level >= 0 and ending == label, mode, out, o)
        if o < 0:
            return e
        offsets[e + 1] = o
    return len(xs)
