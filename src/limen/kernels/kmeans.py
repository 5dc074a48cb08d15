"""Weighted k-means of points on a line (appendix B of the continuous joins paper).

Points come in order of their values, rising or falling; a clustering is k runs of them, given by `ends`:
run j has the points ends[j] to ends[j + 1] - 1. Its cost is the sum of w * (y - c)**2 over its points,
where its centre c is their weighted mean. With the sums of w, w * y and w * y * y before each point the
cost and the centre of a run take constant time. If weights are about 1 / y**2, as in histograms, give the
points with the greatest values first: what is summed early is then small, and no digits are lost.

`lloyd` is the iterative algorithm: from a clustering to a better one until nothing changes; a round takes
k bisections. `layer` is exact: k layers give the best clustering of m points in k * m * log m steps. It
divides and conquers: in order of values, the cost of runs satisfies the quadrangle inequality, so the
last run of the best clustering never begins earlier when there are more points.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import compiled, leaf, loop
from limen.kernels.memory import I64

F64 = npt.NDArray[np.float64]

DEPTH = 66  # halves of halves of up to 2**64 points wait to be done


@compiled
def sums(values: F64, weights: F64) -> F64:
    """In row i the sums of w, w * y and w * y * y over the first i points."""
    found = np.zeros((len(values) + 1, 3), np.float64)
    for i in range(len(values)):
        y, w = values[i], weights[i]
        found[i + 1, 0] = found[i, 0] + w
        found[i + 1, 1] = found[i, 1] + w * y
        found[i + 1, 2] = found[i, 2] + w * y * y
    return found


@leaf
def cost(before: F64, first: int, end: int) -> float:
    """Of a run, from the sums before each point; 0 if its points have no weight."""
    w, y = before[end, 0] - before[first, 0], before[end, 1] - before[first, 1]
    if w <= 0.0:
        return 0.0
    return max(0.0, before[end, 2] - before[first, 2] - y * y / w)


@leaf
def centre(values: F64, before: F64, first: int, end: int) -> float:
    """Of a run; halfway between its ends if its points have no weight. Never outside its values."""
    one, other = values[first], values[end - 1]
    w = before[end, 0] - before[first, 0]
    mean = (one + other) / 2
    if w > 0.0:
        mean = (before[end, 1] - before[first, 1]) / w
    return min(max(mean, min(one, other)), max(one, other))


@compiled
def centres(values: F64, before: F64, ends: I64) -> F64:
    found = np.empty(len(ends) - 1, np.float64)
    for j in range(len(found)):
        found[j] = centre(values, before, ends[j], ends[j + 1])
    return found


@loop
def total(before: F64, ends: I64) -> float:
    """The cost of a clustering."""
    found = 0.0
    for j in range(len(ends) - 1):
        found += cost(before, ends[j], ends[j + 1])
    return found


@compiled
def even_runs(values: F64, weights: F64, k: int) -> I64:
    """The ends of k runs (m, if there are fewer points) that cost about the same: where `lloyd` starts.

    Of many points with density d of weight, the best clustering has its centres as dense as the cube root
    of d (Panter and Dite). So each run gets an equal share of the sum of cbrt(w * dy * dy), where dy is
    the distance to the point before. This does not need the points to be in order: a large step
    has a large share, and a run ends there. Cost: one pass.
    """
    m = len(values)
    k = min(k, m)
    reached = np.empty(m, np.float64)
    so_far = 0.0
    for i in range(m):
        if i > 0:
            step = values[i] - values[i - 1]
            so_far += np.cbrt((weights[i - 1] + weights[i]) * step * step)
        reached[i] = so_far
    ends = np.empty(k + 1, np.int64)
    ends[0], i = 0, 0
    for j in range(1, k):
        if so_far > 0.0:
            while i < m and reached[i] <= so_far * j / k:
                i += 1
        else:
            i = m * j // k
        i = min(max(i, ends[j - 1] + 1), m - (k - j))
        ends[j] = i
    ends[k] = m
    return ends


@loop
def lloyd(values: F64, before: F64, ends: I64, rounds: int) -> int:
    """Improve a clustering in place until it stays the same, or so many rounds; returns how many it took.

    A round moves each end to halfway between the centres beside it. Runs stay non-empty and the cost
    never rises.
    """
    k, m = len(ends) - 1, len(values)
    falling = values[0] > values[m - 1] if m > 0 else False
    for done in range(rounds):
        changed = False
        left = centre(values, before, 0, ends[1])
        for j in range(1, k):
            right = centre(values, before, ends[j], ends[j + 1])
            halfway = (left + right) / 2
            low, high = ends[j - 1] + 1, m - (k - j)
            while low < high:
                middle = (low + high) // 2
                y = values[middle]
                if (y > halfway) if falling else (y < halfway):
                    low = middle + 1
                else:
                    high = middle
            changed = changed or low != ends[j]
            ends[j] = low
            left = right
        if not changed:
            return done
    return rounds


@compiled
def layer(before: F64, fewer: F64) -> tuple[F64, I64]:
    """By i, the least cost of the first i points in one run more, and where the last run then begins.

    `fewer` has the least costs with one run fewer; before the first layer that is 0 for no points and
    infinite for any. Runs may be empty, so a layer never costs more than the one before it.
    """
    m = len(before) - 1
    costs, begins = np.empty(m + 1, np.float64), np.empty(m + 1, np.int64)
    stack = np.empty((DEPTH, 4), np.int64)
    height = _push(stack, 0, 0, m, 0, m)
    while height > 0:
        height -= 1
        low, high = stack[height, 0], stack[height, 1]
        first, last = stack[height, 2], stack[height, 3]
        i = (low + high) // 2
        least, begin = np.inf, min(last, i)
        for j in range(min(last, i), first - 1, -1):
            found = fewer[j] + cost(before, j, i)
            if found < least:
                least, begin = found, j
        costs[i], begins[i] = least, begin
        if low < i:
            height = _push(stack, height, low, i - 1, first, begin)
        if i < high:
            height = _push(stack, height, i + 1, high, begin, last)
    return costs, begins


@leaf
def _push(stack: I64, height: int, low: int, high: int, first: int, last: int) -> int:
    stack[height, 0], stack[height, 1] = low, high
    stack[height, 2], stack[height, 3] = first, last
    return height + 1
