"""LCI with virtual bitmaps and a distance table (VCI, section 4.1).

The constructs that cover a value lie at the same distances from the least label of its covering segment,
whatever the value: one table of 2L + k distances (closed; 2L - 1 half-open) serves them all, and a search
adds instead of dividing. Left of the first L values some of the labels are below 0: no such construct.

The constructs that end at the value stand first in the table (`ends` of them); otherwise it is in the
order of the labels.
"""

from __future__ import annotations

import numpy as np

from limen.kernels import lci, lci_bv
from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, Layout, report
from limen.kernels.memory import I32, I64

constructs, decompose = lci.constructs, lci.decompose


def layout(r: int, length: int, closed: int) -> Layout:
    distances, ends = distance_table(length, closed)
    return lci_bv.layout(r, length, closed)._replace(distances=distances, ends=ends)


def distance_table(length: int, closed: int) -> tuple[I64, int]:
    """The distances, those of the constructs that end at the value first, and how many these are."""
    levels = length.bit_length()
    least = (1 - closed - length) * levels + levels - 1
    ending = [(-1 << level) * levels + level for level in range(levels)] if closed else []
    over = [back * levels + level for level in range(levels) for back in range(1 - (1 << level), 1)]
    return np.array(sorted(ending) + sorted(over), np.int64) - least, len(ending)


@loop
def search(ix: Constructs, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Report the ids over each value from `start` on; returns the first for which room was lacking."""
    o = offsets[start]
    for e in range(start, len(xs)):
        least = (xs[e] - ix.length + 1 - ix.closed) * ix.levels + ix.levels - 1
        for i in range(len(ix.distances)):
            label = least + ix.distances[i]
            if label >= 0 and ix.head[label] != 0 and o >= 0:
                o = report(ix, label, i < ix.ends, mode, out, o)
        if o < 0:
            return e
        offsets[e + 1] = o
    return len(xs)
