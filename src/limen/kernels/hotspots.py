"""Hotspots tracked (section 2.2): groups with at least a share alpha of all intervals, kept apart.

An interval is either in one of the hot groups, of which there are at most 2 / alpha, or scattered: in the
refined partition of the others (`refined.py`). A scattered group becomes hot with alpha n intervals, a
hot one scattered with less than alpha n / 2. (It is shares that are compared: as floats 0.07 * 100 is
above 7, but 7 / 100 is 0.07.) Both go over as they are, with their trees; the demoted is a new group of
the partition. (In the paper its intervals are inserted one by one; what is promised of the
partition is kept either way, since it is reconstructed when its groups are too many.)

An update costs a look at the hot groups and what it costs in the partition, a promotion or demotion a
step for each interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from limen.kernels import avl
from limen.kernels.avl import HI, LO, MAX_LO, MIN_HI
from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64
from limen.kernels.refined import (
    DEMOTED,
    DISSOLVED,
    FITS,
    GREW,
    HOT,
    LARGEST,
    MEMBERS,
    MOVED,
    N_OLD,
    PROMOTED,
    SCOUTS,
    SHRANK,
    SPOTS,
    Refined,
    add,
    drop,
    give_back,
    has_room,
    is_due,
    leave_out,
    reconstruct,
    scout,
    take_in,
    tell,
)

# Counts, by their place in `tally`: hot groups, intervals in them, intervals moved out of the scattered
# ones and into them, groups promoted and demoted.
N_HOT, N_INSIDE, MOVED_OUT, MOVED_IN, PROMOTIONS, DEMOTIONS = range(6)
TALLY = 6


class Hot(NamedTuple):
    """The hot groups; `ranks` of the partition has the place of each, and `points` its `hi`."""

    groups: I32
    lo: I64  # their common intersections
    hi: I64
    sizes: I64
    tally: I64


@leaf
def _total(of: Refined, hot: Hot) -> int:
    return of.counts[MEMBERS] + hot.tally[N_INSIDE]


@leaf
def _note(of: Refined, hot: Hot, update: int, place: int) -> None:
    """Bring what is known of a hot group up to date with its tree; its point moves with it."""
    group = np.int64(hot.groups[place])
    root = of.roots[group]
    hot.lo[place], hot.hi[place] = of.nodes[root, MAX_LO], of.nodes[root, MIN_HI]
    hot.sizes[place] = of.nodes[root, avl.SIZE]
    if of.points[group] != hot.hi[place]:
        of.points[group] = hot.hi[place]
        tell(of, update, MOVED, group, avl.NONE)


@leaf
def _promote(of: Refined, hot: Hot, update: int, group: int) -> None:
    leave_out(of, group)
    place = hot.tally[N_HOT]
    n = avl.members(of.nodes, of.path, np.int64(of.roots[group]), of.fresh)
    for i in range(n):
        of.group_of[of.fresh[i]] = group
    of.kinds[group], of.ranks[group] = HOT, place
    hot.groups[place] = group
    of.counts[MEMBERS] -= n
    hot.tally[N_HOT] += 1
    hot.tally[N_INSIDE] += n
    hot.tally[MOVED_OUT] += n
    hot.tally[PROMOTIONS] += 1
    tell(of, update, PROMOTED, group, avl.NONE)
    _note(of, hot, update, place)


@leaf
def _is_large(size: int, n: int, alpha: float) -> bool:
    return size > 0 and size / n >= alpha


@leaf
def _is_small(size: int, n: int, alpha: float) -> bool:
    return size / n < alpha / 2


@leaf
def _promote_large(of: Refined, hot: Hot, update: int, group: int, n: int, alpha: float) -> None:
    if _is_large(of.nodes[of.roots[group], avl.SIZE], n, alpha):
        _promote(of, hot, update, group)


@leaf
def _remove(of: Refined, hot: Hot, place: int) -> None:
    """A group is no more a hot one."""
    hot.tally[N_HOT] -= 1
    last = hot.tally[N_HOT]
    hot.groups[place], hot.sizes[place] = hot.groups[last], hot.sizes[last]
    hot.lo[place], hot.hi[place] = hot.lo[last], hot.hi[last]
    of.ranks[hot.groups[place]] = place


@leaf
def _demote(of: Refined, hot: Hot, update: int, place: int) -> None:
    group, n = np.int64(hot.groups[place]), hot.sizes[place]
    _remove(of, hot, place)
    take_in(of, group)
    of.counts[MEMBERS] += n
    hot.tally[N_INSIDE] -= n
    hot.tally[MOVED_IN] += n
    hot.tally[DEMOTIONS] += 1
    tell(of, update, DEMOTED, group, avl.NONE)


@loop
def settle(of: Refined, hot: Hot, update: int, alpha: float, epsilon: float) -> None:
    """Demote and promote what is to be, and reconstruct if the partition has become too large."""
    n = _total(of, hot)
    place = np.int64(0)
    while place < hot.tally[N_HOT]:
        if _is_small(hot.sizes[place], n, alpha):
            _demote(of, hot, update, place)
        else:
            place += 1
    while True:
        if is_due(of, epsilon):
            reconstruct(of, update)
        if not _is_large(of.counts[LARGEST], n, alpha):
            return
        for place in range(of.counts[N_OLD]):
            if of.living[place] == place:
                _promote_large(of, hot, update, np.int64(of.order[place]), n, alpha)
        for i in range(avl.members(of.spots, of.path, of.counts[SPOTS], of.order_next)):
            _promote_large(of, hot, update, np.int64(of.order_next[i]), n, alpha)


@leaf
def _meets(hot: Hot, lo: int, hi: int) -> int:
    """The place of the first hot group whose common intersection [lo, hi] meets, or NONE."""
    for place in range(hot.tally[N_HOT]):
        if hot.lo[place] <= hi and hot.hi[place] >= lo:
            return np.int64(place)
    return np.int64(avl.NONE)


@leaf
def _is_settled(of: Refined, hot: Hot, alpha: float, epsilon: float) -> bool:
    n = _total(of, hot)
    small = False
    for place in range(hot.tally[N_HOT]):
        small |= _is_small(hot.sizes[place], n, alpha)
    return not small and not _is_large(of.counts[LARGEST], n, alpha) and not is_due(of, epsilon)


@leaf
def _add(of: Refined, hot: Hot, update: int, v: int) -> None:
    place = _meets(hot, of.nodes[v, LO], of.nodes[v, HI])
    if place < 0:
        add(of, update, v)
        return
    group = np.int64(hot.groups[place])
    of.roots[group] = avl.insert(of.nodes, of.path, np.int64(of.roots[group]), v)
    of.group_of[v] = group
    hot.tally[N_INSIDE] += 1
    tell(of, update, GREW, group, v)
    _note(of, hot, update, place)


@leaf
def _drop(of: Refined, hot: Hot, update: int, v: int) -> None:
    group = np.int64(of.group_of[v])
    if group < 0 or of.kinds[group] != HOT:
        drop(of, update, v)
        return
    place = np.int64(of.ranks[group])
    hot.tally[N_INSIDE] -= 1
    of.roots[group] = avl.delete(of.nodes, of.path, np.int64(of.roots[group]), v)
    if of.roots[group] >= 0:
        tell(of, update, SHRANK, group, v)
        _note(of, hot, update, place)
    else:
        _remove(of, hot, place)
        tell(of, update, DISSOLVED, group, v)
        give_back(of, group)


@loop
def update_many(
    of: Refined, hot: Hot, ids: I32, adds: bool, done: int, alpha: float, epsilon: float
) -> int:
    """Insert (or delete) these intervals one by one; returns how many are done when room is out."""
    for i in range(done, len(ids)):
        if not has_room(of):
            return i
        if (i - done) % SCOUTS == 0 and len(of.nodes) > FITS:
            scout(of, ids, i, adds)
        if adds:
            _add(of, hot, i, np.int64(ids[i]))
        else:
            _drop(of, hot, i, np.int64(ids[i]))
        if not _is_settled(of, hot, alpha, epsilon):
            settle(of, hot, i, alpha, epsilon)
    return len(ids)
