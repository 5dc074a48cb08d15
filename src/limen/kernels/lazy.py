"""The lazy dynamic stabbing partition (appendix A.1) between two reconstructions.

Of every group there is a part of its members' common intersection in `spots`, a tree over the groups
(`avl.py`, node = group). An interval goes to the first group whose part it meets, which shrinks to what
they share; if it meets none it makes a group of its own. So the parts stay disjoint and in order. When an
interval goes, its group's part stays as it is. A group's point is the right end of its part.

An update costs a search among the groups. `update_many` stops when a reconstruction is due: it is a sort
of everything, and not done here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.kernels import avl
from limen.kernels.avl import HI, LEFT, LO, NONE, RIGHT
from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64
from limen.kernels.refined import CREATED, DISSOLVED, GREW, MOVED, SHRANK

# Counts, by their place in `counts`. LOST: intervals gone that were in at the last reconstruction.
N_GROUPS, TAU, LOST, SPOTS, FREED, USED, N_CHANGES, MEMBERS = range(8)
COUNTS = 8

MOST_TOLD = 2  # of an update


class Lazy(NamedTuple):
    lo: I64
    hi: I64
    group_of: I32
    settled: npt.NDArray[np.bool_]  # by interval: it was in at the last reconstruction
    sizes: I32  # by group; 0 if it is not there
    spots: I64  # by group
    free: I32  # groups that have gone, a stack
    path: I64  # scratch space
    counts: I64
    changes: I64


@leaf
def _tell(of: Lazy, update: int, what: int, group: int, interval: int) -> None:
    row = of.counts[N_CHANGES]
    of.changes[row, 0], of.changes[row, 1] = update, what
    of.changes[row, 2], of.changes[row, 3] = group, interval
    of.counts[N_CHANGES] = row + 1


@leaf
def _met(of: Lazy, lo: int, hi: int) -> int:
    """The first group whose part [lo, hi] meets, or NONE."""
    found, at = np.int64(NONE), of.counts[SPOTS]
    while at >= 0:
        if of.spots[at, HI] >= lo:
            found = at
            at = of.spots[at, LEFT]
        else:
            at = of.spots[at, RIGHT]
    if found >= 0 and of.spots[found, LO] > hi:
        return np.int64(NONE)
    return found


@leaf
def _add(of: Lazy, update: int, v: int) -> None:
    group, what, moves = _met(of, of.lo[v], of.hi[v]), GREW, False
    if group >= 0:
        moves = of.hi[v] < of.spots[group, HI]
        of.spots[group, LO] = max(of.spots[group, LO], of.lo[v])
        of.spots[group, HI] = min(of.spots[group, HI], of.hi[v])
    else:
        what = CREATED
        if of.counts[FREED] > 0:
            of.counts[FREED] -= 1
            group = np.int64(of.free[of.counts[FREED]])
        else:
            group = of.counts[USED]
            of.counts[USED] += 1
        of.spots[group, LO], of.spots[group, HI] = of.lo[v], of.hi[v]
        of.counts[SPOTS] = avl.insert(of.spots, of.path, of.counts[SPOTS], group)
        of.sizes[group] = 0
        of.counts[N_GROUPS] += 1
    of.group_of[v], of.settled[v] = group, False
    of.sizes[group] += 1
    of.counts[MEMBERS] += 1
    _tell(of, update, what, group, v)
    if moves:
        _tell(of, update, MOVED, group, NONE)


@leaf
def _drop(of: Lazy, update: int, v: int) -> None:
    group = np.int64(of.group_of[v])
    of.sizes[group] -= 1
    of.counts[MEMBERS] -= 1
    of.counts[LOST] += np.int64(of.settled[v])
    if of.sizes[group] > 0:
        _tell(of, update, SHRANK, group, v)
        return
    of.counts[SPOTS] = avl.delete(of.spots, of.path, of.counts[SPOTS], group)
    of.free[of.counts[FREED]] = group
    of.counts[FREED] += 1
    of.counts[N_GROUPS] -= 1
    _tell(of, update, DISSOLVED, group, v)


@leaf
def is_due(of: Lazy, epsilon: float) -> bool:
    """The relaxed condition: |P| >= (1 + epsilon) (tau_0 - m)."""
    needed = of.counts[TAU] - of.counts[LOST]
    return of.counts[N_GROUPS] > 0 and of.counts[N_GROUPS] >= (1 + epsilon) * needed


@loop
def update_many(of: Lazy, ids: I32, adds: bool, done: int, epsilon: float) -> int:
    """Insert (or delete) these intervals one by one; returns how many are done when a reconstruction is
    due, or room for groups or changes is out."""
    for i in range(done, len(ids)):
        room = of.counts[N_CHANGES] + MOST_TOLD <= len(of.changes)
        if not room or of.counts[USED] - of.counts[FREED] >= len(of.sizes):
            return i
        if adds:
            _add(of, i, np.int64(ids[i]))
        else:
            _drop(of, i, np.int64(ids[i]))
        if is_due(of, epsilon):
            return i + 1
    return len(ids)


@loop
def lay_out(of: Lazy, ids: I32, order: I64, starts: I64, points: I64, made: I64) -> None:
    """Take the canonical partition of these intervals for the groups; there are no others."""
    for g in range(len(points)):
        first = points[g]
        for i in range(starts[g], starts[g + 1]):
            v = ids[order[i]]
            of.group_of[v], of.settled[v] = g, True
            first = of.lo[v]  # the last is the greatest
        of.spots[g, LO], of.spots[g, HI] = first, points[g]
        of.sizes[g] = starts[g + 1] - starts[g]
        made[g, 3] = g
    of.counts[:] = 0
    of.counts[N_GROUPS] = of.counts[TAU] = of.counts[USED] = len(points)
    of.counts[MEMBERS] = len(order)
    of.counts[SPOTS] = avl.plant(of.spots, made[:, 3], 0, len(points), made)


@loop
def around(of: Lazy, x: int) -> tuple[int, int]:
    """The groups of the last point at or before x and of the first point after it, or NONE."""
    root = of.counts[SPOTS]
    return avl.last_to(of.spots, root, x), avl.first_after(of.spots, root, x)


@loop
def list_groups(of: Lazy, groups: I32) -> int:
    return avl.members(of.spots, of.path, of.counts[SPOTS], groups)
