"""Containment-encoded intervals: labels, guiding posts, decomposition, the labels over a point.

The paper's form (CEI, sections 3.1-3.3): a domain [0, r) of units in segments of L = 2**k; segment i
holds 2L - 1 intervals labelled as a perfect binary tree, local id 1 the whole segment, children
2l and 2l + 1; the global label is l + 2iL. `decompose` cuts [a, b) at the guiding posts and gives the
remnants to `best_partition`; `covering` climbs from a unit to its segment by halving its label.

`cover` is the same idea over the cells of a grid with one segment for all of it and with levels
`step` bits apart (step 1 is the paper's tree): fewer lists to visit over a point, more intervals
in a query. Its labels number the cells first, then each level above.

Invariant: the intervals of a decomposition are disjoint and their union is the range; with step 1
there is no smaller set that does it (Theorem 1). Cost: at most 2(2**step - 1) intervals a level.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I64


@leaf
def best_partition(s: int, e: int, post: int, length: int, labels: I64, n: int) -> int:
    """Append to labels[n:] the fewest labels whose intervals make up [s, e), within one segment.

    `post` is the segment's left guiding post; returns the new n (Fig. 6 of the paper).
    """
    while s < e:
        local = s - post + length
        size = 1
        while local % 2 == 0 and s + 2 * size <= e and size < length:
            local //= 2
            size *= 2
        labels[n] = 2 * post + local
        n += 1
        s += size
    return n


@leaf
def decompose_into(a: int, b: int, length: int, labels: I64, n: int) -> int:
    """Append to labels[n:] those of the intervals that make up [a, b); returns the new n."""
    left = length * ((a + length - 1) // length)
    right = length * (b // length)
    if left > right:
        return best_partition(a, b, right, length, labels, n)
    n = best_partition(a, left, left - length, length, labels, n)
    for post in range(left, right, length):
        labels[n] = 2 * post + 1
        n += 1
    return best_partition(right, b, right, length, labels, n)


@loop
def decompose(a: int, b: int, length: int, labels: I64) -> int:
    """Fill `labels` with those of the intervals that make up [a, b); returns how many."""
    return decompose_into(a, b, length, labels, 0)


@loop
def covering(unit: int, length: int, labels: I64) -> int:
    """Fill `labels` with those of the intervals that contain the unit; returns how many."""
    segment = unit // length
    local = unit - segment * length + length
    n = 0
    while local > 0:
        labels[n] = 2 * segment * length + local
        local //= 2
        n += 1
    return n


def level_starts(cells: int, step: int) -> I64:
    """The first label of each level over so many cells, and the number of labels at the end."""
    starts = [0]
    width = cells
    while True:
        starts.append(starts[-1] + width)
        if width <= 1:
            return np.array(starts, np.int64)
        width = (width + (1 << step) - 1) >> step


@leaf
def cover(first: int, last: int, starts: I64, step: int, labels: I64) -> int:
    """Fill `labels` with those of the intervals that make up cells first..last; returns how many."""
    n = 0
    level = 0
    side = 1 << step
    while first <= last:
        above_first = (first + side - 1) >> step
        above_last = ((last + 1) >> step) - 1
        if above_first > above_last or level + 2 == len(starts):
            for i in range(first, last + 1):
                labels[n] = starts[level] + i
                n += 1
            return n
        for i in range(first, above_first << step):
            labels[n] = starts[level] + i
            n += 1
        for i in range((above_last + 1) << step, last + 1):
            labels[n] = starts[level] + i
            n += 1
        first, last, level = above_first, above_last, level + 1
    return n
