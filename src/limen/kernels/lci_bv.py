"""LCI with virtual bitmaps (VCI, section 4): no bitmap at all.

A search looks at the head of every list in the covering segment of the value; where there is a list,
the ends of the construct are computed from its label by a division, to see whether it covers the value.
"""

from __future__ import annotations

from limen.kernels import lci
from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, Layout, report
from limen.kernels.memory import I32, I64

constructs, decompose = lci.constructs, lci.decompose


def layout(r: int, length: int, closed: int) -> Layout:
    return lci.layout(r, length, closed)._replace(rows=0, bits=0)


@loop
def search(ix: Constructs, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Report the ids over each value from `start` on; returns the first for which room was lacking."""
    o = offsets[start]
    for e in range(start, len(xs)):
        j = xs[e]
        least = max(0, (j - ix.length + 1 - ix.closed) * ix.levels + ix.levels - 1)
        for label in range(least, (j + 1) * ix.levels):
            if ix.head[label] != 0 and o >= 0:
                first = label // ix.levels
                last = first + (1 << (label - first * ix.levels)) - 1 + ix.closed
                if j <= last:
                    o = report(ix, label, ix.closed != 0 and j == last, mode, out, o)
        if o < 0:
            return e
        offsets[e + 1] = o
    return len(xs)
