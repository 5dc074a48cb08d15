"""Search by bitmap vectors (VCI, sections 2.2 and 3): every set bit of a value's row is a list to report.

Whole rows and clipped ones are walked alike: a row begins at the label base + step * j. Of the constructs
that end at j, the labels lie at the distances `endings` from the first label of value j, in order.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.bitmap import lowest_bit
from limen.kernels.compiled import loop
from limen.kernels.id_lists import Constructs, report
from limen.kernels.memory import I32, I64


@loop
def search(ix: Constructs, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Report the ids over each value from `start` on; returns the first for which room was lacking."""
    o = offsets[start]
    for e in range(start, len(xs)):
        j = xs[e]
        first = ix.base + ix.step * j
        at = 0  # in endings
        for w in range(ix.bits.shape[1]):
            word = ix.bits[j, w]
            while word != 0 and o >= 0:
                label = first + 64 * w + lowest_bit(word)
                word &= word - np.uint64(1)
                back = label - j * ix.group
                while at < len(ix.endings) and ix.endings[at] < back:
                    at += 1
                at_end = at < len(ix.endings) and ix.endings[at] == back
                o = report(ix, label, at_end, mode, out, o)
        if o < 0:
            return e
        offsets[e + 1] = o
    return len(xs)
