"""A grid of cells fitted to where the queries end, one domain per group of queries.

Computes a monotone map from (group, ordinal) to a cell number; the cells of a group are numbered in
the order of its domain, and each one is a closed span of ordinals. The first and the last cell of a
group reach to the ends of the int64 range, so every ordinal has a cell.

A row of ``nodes`` is (origin, shift, last, base): slot ``min((x - origin) >> shift, last)``, and
``base + slot`` is a cell where the node is flat, or the next node where it branches (shift >= 64
marks that). Node g is the root of group g. Where the ends lie evenly the root is flat and finding
a cell takes no memory access; where they crowd, a branch gives the crowd a finer grid of its own.

Cost: one subtraction and one shift a level; one level for even data, at most eleven for any.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import compiled, leaf, loop
from limen.kernels.memory import I32, I64

BRANCH = 64
BRANCH_BITS = 8  # a branching node splits its span into at most 2**BRANCH_BITS slots
FEW_POINTS = 8  # a node of so few points is not worth a closer look
UNEVEN = 4  # how much worse than even the mean crowding may be before a node branches
FEW_TO_SAMPLE, MANY_TO_SAMPLE = 256, 1 << 16  # queries of a group looked at, at least and at most
LOWEST = -(1 << 63)
HIGHEST = (1 << 63) - 1


@leaf
def _bit_length(value: np.uint64) -> int:
    bits = 0
    while value > np.uint64(0):
        value >>= np.uint64(1)
        bits += 1
    return bits


@leaf
def _uneven(points: I64, a: int, b: int, origin: int, shift: int, slots: int) -> bool:
    """Do points[a:b] crowd into few of the slots?"""
    m = b - a
    while slots > max(m // 4, 1):
        shift += 1
        slots = (slots + 1) >> 1
    crowding = 0
    load = 0
    slot = np.uint64(0)
    for i in range(a, b):
        at = np.uint64(points[i] - origin) >> np.uint64(shift)
        if i > a and at != slot:
            crowding += load * load
            load = 0
        slot = at
        load += 1
    crowding += load * load
    return crowding * slots > UNEVEN * m * (slots + m)


@compiled
def sample_ends(groups: I32, n_groups: int, lo: I64, hi: I64) -> tuple[I64, I64, I64]:
    """Distinct sorted ends of the queries, by group: points, starts and weights as `fit` takes them.

    Large groups are sampled. The ends of the int64 range are left out: they mean "open-ended".
    """
    n = len(lo)
    sizes = np.zeros(n_groups, np.int64)
    for i in range(n):
        sizes[groups[i] if len(groups) > 0 else 0] += 1
    strides = np.ones(n_groups, np.int64)
    starts = np.zeros(n_groups + 1, np.int64)
    for g in range(n_groups):
        take = min(max(FEW_TO_SAMPLE, sizes[g] // 4), MANY_TO_SAMPLE)
        strides[g] = max(1, sizes[g] // take)
        starts[g + 1] = starts[g] + 2 * (sizes[g] // strides[g] + 1)
    points = np.empty(starts[n_groups], np.int64)
    filled = starts[:n_groups].copy()
    seen = np.zeros(n_groups, np.int64)
    for i in range(n):
        g = groups[i] if len(groups) > 0 else 0
        if seen[g] % strides[g] == 0:
            if lo[i] != LOWEST:
                points[filled[g]] = lo[i]
                filled[g] += 1
            if hi[i] != HIGHEST:
                points[filled[g]] = hi[i]
                filled[g] += 1
        seen[g] += 1
    kept = 0
    for g in range(n_groups):
        part = np.sort(points[starts[g] : filled[g]])
        starts[g] = kept
        for j in range(len(part)):
            if j == 0 or part[j] != part[j - 1]:
                points[kept] = part[j]
                kept += 1
    starts[n_groups] = kept
    return points[:kept].copy(), starts, strides


@compiled
def fit(points: I64, starts: I64, weights: I64, per_cell: int) -> tuple[I64, int]:
    """Nodes and the number of cells for distinct sorted points (a sample of the queries' ends).

    Group g has points[starts[g]:starts[g+1]], each standing for weights[g] ends; a cell is made to
    hold `per_cell` to twice that many.
    """
    groups = len(starts) - 1
    nodes = np.empty((groups + 1024, 4), np.int64)
    used = groups
    cells = 0
    todo = np.empty((64 * (1 << BRANCH_BITS), 4), np.int64)  # node, a, b, bits of its span
    for g in range(groups):
        a, b = starts[g], starts[g + 1]
        span = np.uint64(0)
        if b > a:
            span = np.uint64(points[b - 1] - points[a])
        nodes[g, 0] = points[a] if b > a else 0
        todo[0, 0], todo[0, 1], todo[0, 2], todo[0, 3] = g, a, b, _bit_length(span)
        depth = 1
        while depth > 0:
            depth -= 1
            node, a, b, bits = todo[depth, 0], todo[depth, 1], todo[depth, 2], todo[depth, 3]
            origin = nodes[node, 0]
            want = max(1, (b - a) * weights[g] // per_cell)
            top = span if node == g else (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
            shift = min(bits, 63)
            while shift > 0 and (top >> np.uint64(shift - 1)) < np.uint64(want):
                shift -= 1
            slots = np.int64(top >> np.uint64(shift)) + 1
            if b - a > FEW_POINTS and shift > 0 and _uneven(points, a, b, origin, shift, slots):
                shift = max(0, bits - BRANCH_BITS)
                slots = np.int64(top >> np.uint64(shift)) + 1
                if used + slots > len(nodes):
                    larger = np.empty((2 * (used + slots), 4), np.int64)
                    larger[:used] = nodes[:used]
                    nodes = larger
                nodes[node, 1], nodes[node, 2], nodes[node, 3] = BRANCH + shift, slots - 1, used
                end = b
                for slot in range(slots - 1, -1, -1):  # the leftmost is taken up first
                    first = end
                    while first > a and (
                        np.uint64(points[first - 1] - origin) >> np.uint64(shift) == np.uint64(slot)
                    ):
                        first -= 1
                    nodes[used + slot, 0] = origin + (slot << shift)
                    todo[depth, 0], todo[depth, 1] = used + slot, first
                    todo[depth, 2], todo[depth, 3] = end, shift
                    depth += 1
                    end = first
                used += slots
            else:
                nodes[node, 1], nodes[node, 2], nodes[node, 3] = shift, slots - 1, cells
                cells += slots
    return nodes[:used].copy(), cells


@leaf
def _slot(nodes: I64, node: int, x: int) -> int:
    origin, shift, last = nodes[node, 0], nodes[node, 1], nodes[node, 2]
    if x < origin:
        return 0
    at = np.uint64(x - origin) >> np.uint64(shift & (BRANCH - 1))
    return np.int64(at) if at < np.uint64(last) else last


@leaf
def locate(nodes: I64, node: int, x: int) -> int:
    """The cell of ordinal x in the group whose root is `node`."""
    while True:
        shift = nodes[node, 1]
        node = nodes[node, 3] + _slot(nodes, node, x)
        if shift < BRANCH:
            return node


@loop
def locate_many(nodes: I64, groups: I32, xs: I64, cells: I32) -> None:
    """cells[i] = the cell of xs[i] in groups[i] (all in group 0 if empty; -1 if the group is)."""
    one = len(groups) == 0
    for i in range(len(xs)):
        if one:
            cells[i] = locate(nodes, 0, xs[i])
        elif groups[i] < 0:
            cells[i] = -1
        else:
            cells[i] = locate(nodes, groups[i], xs[i])


@leaf
def span(nodes: I64, node: int, x: int) -> tuple[int, int, int]:
    """The cell of x, and the first and the last ordinal that lie in it."""
    leftmost, rightmost = True, True
    while True:
        origin, shift, last = nodes[node, 0], nodes[node, 1], nodes[node, 2]
        slot = _slot(nodes, node, x)
        leftmost &= slot == 0
        rightmost &= slot == last
        node = nodes[node, 3] + slot
        if shift < BRANCH:
            first = LOWEST if leftmost else origin + (slot << shift)
            final = HIGHEST if rightmost else origin + ((slot + 1) << shift) - 1
            return node, first, final
