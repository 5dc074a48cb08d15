"""How many of a set of closed intervals contain x: a step function of x, its parts, its best histogram.

A step function is a row of pieces, each with its first x and its height; a piece ends before the next
begins, and before the first the height is 0. Neighbours differ in height. Intervals are those of int64
ordinals, both ends included; one that reaches the greatest int64 never ends.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import compiled
from limen.kernels.memory import I64

F64 = npt.NDArray[np.float64]

NO_END = 2**63 - 1


@compiled
def steps(lo: I64, hi: I64) -> tuple[I64, I64]:
    """The first x and the height of each piece; lo and hi are in order, each by itself.

    Cost: one merging pass.
    """
    n = len(lo)
    firsts, heights = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    m, begun, ended, before = 0, 0, 0, 0
    while begun < n or (ended < n and hi[ended] != NO_END):
        if begun < n and (hi[ended] == NO_END or lo[begun] <= hi[ended] + 1):
            x = lo[begun]
        else:
            x = hi[ended] + 1
        while begun < n and lo[begun] == x:
            begun += 1
        while ended < n and hi[ended] < x:
            ended += 1
        if begun - ended != before:
            before = begun - ended
            firsts[m], heights[m] = x, before
            m += 1
    return firsts[:m].copy(), heights[:m].copy()


@compiled
def rise(lo: I64, point: int) -> tuple[I64, I64, I64]:
    """How many of some intervals that all contain `point` contain an x up to it: x from, x to, height.

    lo is in order. Pieces are told from the point outward, so heights fall.
    """
    n = len(lo)
    firsts, lasts, heights = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    m, last = 0, np.int64(point)
    for i in range(n - 1, -1, -1):
        if i == n - 1 or lo[i] != lo[i + 1]:
            firsts[m], lasts[m], heights[m] = lo[i], last, i + 1
            last = lo[i] - 1
            m += 1
    return firsts[:m].copy(), lasts[:m].copy(), heights[:m].copy()


@compiled
def fall(hi: I64) -> tuple[I64, I64, I64]:
    """The same beyond the point, which is the least of their right ends; hi is in order."""
    n = len(hi)
    firsts, lasts, heights = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    m = 0
    for i in range(1, n):
        if hi[i] != hi[i - 1]:
            firsts[m], lasts[m], heights[m] = hi[i - 1] + 1, hi[i], n - i
            m += 1
    return firsts[:m].copy(), lasts[:m].copy(), heights[:m].copy()


@compiled
def extremes(firsts: I64, heights: I64, edges: I64) -> tuple[I64, I64]:
    """The least and the greatest height in each bucket.

    Bucket b has the x from edges[b] to before edges[b + 1], the last one all that are left; edges[0] is
    the least int64. Cost: one merging pass.
    """
    least, most = np.empty(len(edges), np.int64), np.empty(len(edges), np.int64)
    i, height = 0, np.int64(0)
    for b in range(len(edges)):
        while i < len(firsts) and firsts[i] <= edges[b]:
            height = heights[i]
            i += 1
        low, high = height, height
        while i < len(firsts) and (b + 1 == len(edges) or firsts[i] < edges[b + 1]):
            height = heights[i]
            low, high = min(low, height), max(high, height)
            i += 1
        least[b], most[b] = low, high
    return least, most


@compiled
def evenly_below(xs: I64, first: int, last: int, more: int) -> F64:
    """The share of the integers first..last that is below each x; with `more` 1, below x or x itself."""
    begin = np.uint64(np.int64(first))
    width = np.float64(np.uint64(np.int64(last)) - begin) + 1.0
    found = np.empty(len(xs), np.float64)
    for i in range(len(xs)):
        if xs[i] < first:
            found[i] = 0.0
        elif xs[i] > last:
            found[i] = 1.0
        else:
            found[i] = (np.float64(np.uint64(xs[i]) - begin) + more) / width
    return found


@compiled
def weigh(
    firsts: I64, below: F64, last: int, up_to: float, by: I64, by_below: F64, heights: I64
) -> F64:
    """By piece, the sum of phi / max(height, 1)**2, where the heights are those of other pieces.

    The pieces begin at `firsts`, and below[i] is the share of values below piece i; the last one ends
    with `last`, and up_to is the share up to there. The others, `by` and `by_below`, begin at the least
    int64. Cost: one merging pass.
    """
    m, n = len(firsts), len(by)
    found = np.zeros(m, np.float64)
    j = np.searchsorted(by, firsts[0], "right") - 1 if m > 0 else 0
    for i in range(m):
        final = i + 1 == m
        at, stop = below[i], up_to if final else below[i + 1]
        end = last if final else firsts[i + 1] - 1
        while j + 1 < n and by[j + 1] <= end:
            high = np.float64(max(heights[j], 1))
            found[i] += (by_below[j + 1] - at) / (high * high)
            at = by_below[j + 1]
            j += 1
        high = np.float64(max(heights[j], 1))
        found[i] += (stop - at) / (high * high)
        if j + 1 < n and not final and by[j + 1] == firsts[i + 1]:
            j += 1
    return found


@compiled
def least_costs(weights: F64, heights: F64, buckets: int) -> F64:
    """HIST-OPT: in row k, column i the least cost of the first i pieces in k buckets.

    A bucket's cost is the sum of w * (y - c)**2 over its pieces, with the best c. `cuts` tells where the
    buckets are.

    Cost: buckets * m**2 / 2 steps for m pieces, each an addition and a comparison along two rows of
    memory. It is quadratic because heights rise and fall: a longer prefix may want an *earlier* last
    bucket, so the quadrangle inequality, by which k-means in order of values gets away with m log m,
    does not hold. The costs of all buckets that end at a piece are found once for all k, by running sums,
    which lose no digits to cancellation as differences of prefix sums do. That, and four minima at a
    time, is 3.5 times as fast as the usual three loops with the cost computed innermost.
    """
    m = len(weights)
    found = np.full((buckets + 1, m + 1), np.inf)
    found[0, 0] = 0.0
    alone = np.empty(m, np.float64)
    for i in range(1, m + 1):
        _bucket_costs(weights, heights, i, alone)
        for k in range(1, buckets + 1):
            fewer = found[k - 1]
            a, b, c, d = np.inf, np.inf, np.inf, np.inf
            j = 0
            while j + 4 <= i:
                a = min(a, fewer[j] + alone[j])
                b = min(b, fewer[j + 1] + alone[j + 1])
                c = min(c, fewer[j + 2] + alone[j + 2])
                d = min(d, fewer[j + 3] + alone[j + 3])
                j += 4
            while j < i:
                a = min(a, fewer[j] + alone[j])
                j += 1
            found[k, i] = min(min(a, b), min(c, d))
    return found


@compiled
def _bucket_costs(weights: F64, heights: F64, end: int, costs: F64) -> None:
    """costs[j] becomes the cost of a bucket of the pieces j to end - 1."""
    w, wy, wyy = 0.0, 0.0, 0.0
    for j in range(end - 1, -1, -1):
        y = heights[j]
        w += weights[j]
        wy += weights[j] * y
        wyy += weights[j] * y * y
        costs[j] = max(0.0, wyy - wy * wy / w) if w > 0.0 else 0.0


@compiled
def cuts(weights: F64, heights: F64, costs: F64, buckets: int) -> I64:
    """Where each of the best buckets begins, and m: from the table of `least_costs`.

    There must be as many pieces. Cost: buckets * m.
    """
    m = len(weights)
    ends = np.empty(buckets + 1, np.int64)
    alone = np.empty(m, np.float64)
    ends[buckets] = m
    for k in range(buckets, 0, -1):
        i = ends[k]
        _bucket_costs(weights, heights, i, alone)
        least, begin = np.inf, k - 1
        for j in range(k - 1, i):
            if costs[k - 1, j] + alone[j] < least:
                least, begin = costs[k - 1, j] + alone[j], j
        ends[k - 1] = begin
    return ends
