"""The refined dynamic stabbing partition (appendix A.2): an update touches one group; and Fig. 21.

The groups of the last reconstruction are the *old* ones; `at` has their stabbing points in order. An
old group's members begin beyond the points of all old groups before it and not beyond its own (the
paper's invariant (*)), so an interval's old group is that of the first point, among groups that are not
empty, at or above its left end. An interval that no point stabs makes a *new* group of its own, with its
right end for a point; the new groups' points are in a search tree (`spots`, `avl.py`, node = group). By
the paper's footnote, an interval goes to the leftmost point that stabs it, old or new.

Reconstruction when the groups are (1 + epsilon) times as many as are certainly needed. Those certainly
needed are the *sound* old groups, which still have a member that ends at the group's point: these members
are disjoint. (The paper takes tau_0 - m, where m counts every deletion of an interval that was there at
the last reconstruction; a group of a hundred loses a hundred by that, and here one.)

A group is a number, given anew after it has gone. What happens to groups is told in `changes`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.kernels import avl
from limen.kernels.avl import HI, LO, MAX_LO, MIN_HI, NONE
from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64, prefetch

FREE, OLD, NEW, HOT = range(4)  # kinds of groups; HOT: not in the partition, see `hotspots.py`

# What has happened to a group; a row of changes is (update, what, group, interval). REBUILT: its members
# are others; MOVED: its point is another; RESET: so it may be with any group, there are too many to tell.
CREATED, GREW, SHRANK, DISSOLVED, REBUILT, MOVED, PROMOTED, DEMOTED, RESET = range(9)

# Counts, by their place in `counts`. SPOTS is the root of `spots`; MISSED: changes had no room.
N_GROUPS, N_OLD, SOUND, SPOTS, FREED, USED, N_CHANGES, MISSED, RECONSTRUCTED = range(9)
MEMBERS, LARGEST, COUNTS = 9, 10, 11

AHEAD = 4
SCOUTS = 16  # updates that are looked ahead for at once
FITS = 1 << 14  # intervals whose nodes are in the caches without being asked for


class Refined(NamedTuple):
    nodes: I64  # by interval: a row of `avl.py`
    group_of: I32  # by interval: its new or hot group, or NONE in an old one
    kinds: npt.NDArray[np.uint8]  # by group
    roots: I32  # by group: its tree
    points: I64  # by group
    ranks: I32  # by old or hot group: its place among them
    spots: I64  # by new group: its node in the search tree
    free: I32  # groups that have gone, a stack
    order: I32  # old groups in order of their points
    at: I64  # their points
    living: I32  # by place in the order: itself, or a later one to look at if the group has gone
    order_next: I32  # scratch space for the next order
    fresh: I32  # scratch space for the intervals of new groups
    path: I64  # scratch space for walks in trees
    more: I64
    scouts: I64  # scratch space for walks that are only a look ahead
    counts: I64
    changes: I64
    sizes: I32  # by size: how many groups of the partition have it


@leaf
def tell(of: Refined, update: int, what: int, group: int, interval: int) -> None:
    row = of.counts[N_CHANGES]
    if row == len(of.changes):
        of.counts[MISSED] = 1
        return
    of.changes[row, 0], of.changes[row, 1] = update, what
    of.changes[row, 2], of.changes[row, 3] = group, interval
    of.counts[N_CHANGES] = row + 1


@leaf
def has_room(of: Refined) -> bool:
    """Is there room for another group, and one in the making, and for what a reconstruction tells?"""
    worst = 2 * of.counts[N_GROUPS] + 8
    groups = of.counts[USED] - of.counts[FREED] + 2 < len(of.kinds)
    return groups and of.counts[N_CHANGES] + worst <= len(of.changes)


@leaf
def _take(of: Refined, kind: int, root: int, point: int) -> int:
    """A row for a group."""
    if of.counts[FREED] > 0:
        of.counts[FREED] -= 1
        group = np.int64(of.free[of.counts[FREED]])
    else:
        group = of.counts[USED]
        of.counts[USED] += 1
    of.kinds[group], of.roots[group], of.points[group] = kind, root, point
    return group


@leaf
def give_back(of: Refined, group: int) -> None:
    of.kinds[group] = FREE
    of.free[of.counts[FREED]] = group
    of.counts[FREED] += 1


@leaf
def _resize(of: Refined, before: int, after: int) -> None:
    """A group of the partition has another size; 0 if it is not there."""
    if before > 0:
        of.sizes[before] -= 1
    if after > 0:
        of.sizes[after] += 1
        of.counts[LARGEST] = max(of.counts[LARGEST], np.int64(after))
    while of.counts[LARGEST] > 0 and of.sizes[of.counts[LARGEST]] == 0:
        of.counts[LARGEST] -= 1


@leaf
def _place_of(of: Refined, x: int) -> int:
    """The place of the first old group whose point is at x or later."""
    low, many = np.int64(0), of.counts[N_OLD]
    while many > 0:
        half = (many + 1) >> 1
        low += half if of.at[low + half - 1] < x else 0
        many -= half
    return low


@leaf
def _living_from(of: Refined, first: int) -> int:
    """The first place from this one on whose old group is not empty; N_OLD if there is none."""
    low, place, end = np.int64(first), np.int64(first), of.counts[N_OLD]
    while place < end and of.living[place] != place:
        place = np.int64(of.living[place])
    while low < place:  # the next time it is a shorter way
        following = np.int64(of.living[low])
        of.living[low] = place
        low = following
    return place


@leaf
def _first_old(of: Refined, x: int) -> int:
    """The place of the first old group, of those not empty, whose point is at x or later."""
    return _living_from(of, _place_of(of, x))


@leaf
def is_sound(of: Refined, group: int) -> bool:
    root = of.roots[group]
    return root >= 0 and of.nodes[root, MIN_HI] == of.points[group]


@leaf
def take_in(of: Refined, group: int) -> None:
    """A group with a tree and a point is a new one of the partition."""
    of.kinds[group] = NEW
    of.spots[group, LO] = of.spots[group, HI] = of.points[group]
    of.counts[SPOTS] = avl.insert(of.spots, of.path, of.counts[SPOTS], group)
    of.counts[N_GROUPS] += 1
    _resize(of, 0, of.nodes[of.roots[group], avl.SIZE])


@leaf
def add(of: Refined, update: int, v: int) -> None:
    """Put interval v, which is set in nodes, into the partition."""
    lo, hi = of.nodes[v, LO], of.nodes[v, HI]
    of.counts[MEMBERS] += 1
    group = np.int64(NONE)
    place = _first_old(of, lo)
    if place < of.counts[N_OLD] and of.at[place] <= hi:
        group = np.int64(of.order[place])
    spot = avl.first_from(of.spots, of.counts[SPOTS], lo)
    if spot >= 0 and of.points[spot] <= hi and (group < 0 or of.points[spot] < of.points[group]):
        group = spot
    if group < 0:
        group = _take(of, NEW, avl.alone(of.nodes, v, lo, hi), hi)
        take_in(of, group)
        of.group_of[v] = group
        tell(of, update, CREATED, group, v)
        return
    many = avl.size(of.nodes, np.int64(of.roots[group]))
    sound = of.kinds[group] == OLD and is_sound(of, group)
    of.roots[group] = avl.insert(of.nodes, of.path, np.int64(of.roots[group]), v)
    if of.kinds[group] == OLD:
        of.group_of[v] = NONE
        of.counts[SOUND] += np.int64(is_sound(of, group)) - np.int64(sound)
    else:
        of.group_of[v] = group
    _resize(of, many, many + 1)
    tell(of, update, GREW, group, v)


@leaf
def group_of(of: Refined, v: int) -> int:
    if of.group_of[v] >= 0:
        return np.int64(of.group_of[v])
    return np.int64(of.order[_first_old(of, of.nodes[v, LO])])


@leaf
def leave_out(of: Refined, group: int) -> None:
    """A group of the partition, of whatever members, is no more one of it."""
    _resize(of, avl.size(of.nodes, np.int64(of.roots[group])), 0)
    of.counts[N_GROUPS] -= 1
    if of.kinds[group] == OLD:
        of.counts[SOUND] -= np.int64(is_sound(of, group))
        of.living[of.ranks[group]] = of.ranks[group] + 1
    else:
        of.counts[SPOTS] = avl.delete(of.spots, of.path, of.counts[SPOTS], group)


@leaf
def drop(of: Refined, update: int, v: int) -> None:
    """Take interval v out of the partition."""
    group = group_of(of, v)
    of.counts[MEMBERS] -= 1
    root = np.int64(of.roots[group])
    many = of.nodes[root, avl.SIZE]
    if many == 1:
        leave_out(of, group)
        tell(of, update, DISSOLVED, group, v)
        give_back(of, group)
        return
    sound = of.kinds[group] == OLD and is_sound(of, group)
    of.roots[group] = avl.delete(of.nodes, of.path, root, v)
    if of.kinds[group] == OLD:
        of.counts[SOUND] += np.int64(is_sound(of, group)) - np.int64(sound)
    _resize(of, many, many - 1)
    tell(of, update, SHRANK, group, v)


@leaf
def is_due(of: Refined, epsilon: float) -> bool:
    return of.counts[N_GROUPS] >= (1 + epsilon) * of.counts[SOUND] and of.counts[N_GROUPS] > 0


@leaf
def _gather(of: Refined, update: int) -> int:
    """The intervals of all new groups into `fresh`, in order of their left ends; the groups are gone."""
    tree = np.int64(NONE)
    while of.counts[SPOTS] >= 0:
        group = of.counts[SPOTS]
        of.counts[SPOTS] = avl.delete(of.spots, of.path, of.counts[SPOTS], group)
        n = avl.members(of.nodes, of.path, np.int64(of.roots[group]), of.fresh)
        of.sizes[n] -= 1
        for i in range(n):
            of.group_of[of.fresh[i]] = NONE
            tree = avl.insert(of.nodes, of.path, tree, np.int64(of.fresh[i]))
        tell(of, update, DISSOLVED, group, NONE)
        give_back(of, group)
    return avl.members(of.nodes, of.path, tree, of.fresh)


@loop
def reconstruct(of: Refined, update: int) -> None:
    """The stage of Fig. 21: the greedy partition, out of the trees of the groups.

    J is the group in the making: a tree of parts of old groups (U) and intervals of new ones (V), which
    are a stretch of `fresh`. K, the next group, is the one whose common intersection begins first. If it
    meets that of J, all of K joins J. If not, what begins early enough of the next old group still does,
    J is done, and K begins the next one.

    The rest of an old group that was split keeps the group's number, and so does one that joins nothing
    or is joined by others; an old group whose members did not change is not told of. New groups are gone.
    """
    fresh = _gather(of, update)
    old, taken, made = np.int64(0), np.int64(0), np.int64(0)  # next old group, next fresh one, done
    n_old = of.counts[N_OLD]
    tree, r, first_v = np.int64(NONE), np.int64(0), np.int64(0)
    keeper, changed, begun = np.int64(NONE), False, False
    of.counts[LARGEST] = 0
    cut, counted = False, np.int64(NONE)  # the next old group has lost a part; is not in `sizes`
    while True:
        while old < n_old and of.living[old] != old:
            old += 1
        has_old, has_fresh = old < n_old, taken < fresh
        group, root = np.int64(NONE), np.int64(NONE)
        if has_old:
            group = np.int64(of.order[old])
            root = np.int64(of.roots[group])
            if counted < old:
                of.sizes[of.nodes[root, avl.SIZE]] -= 1
                counted = old
            if old + AHEAD < n_old:
                ahead = np.int64(of.roots[of.order[old + AHEAD]])
                if ahead >= 0:
                    prefetch(of.nodes, avl.WORDS * ahead)
        is_fresh = has_fresh and (
            not has_old or of.nodes[of.fresh[taken], LO] < of.nodes[root, MAX_LO]
        )
        over = not has_old and not has_fresh
        far = True
        if not over:
            begin = of.nodes[of.fresh[taken], LO] if is_fresh else of.nodes[root, MAX_LO]
            far = begin > r
        if begun and far:  # J is done
            if has_old and of.nodes[avl.least(of.nodes, root), LO] <= r:
                part, root = avl.split(of.nodes, of.path, of.more, root, r)
                tree = avl.join(of.nodes, of.path, tree, part)
                of.roots[group] = root
                changed = cut = True
            for i in range(first_v, taken):
                tree = avl.insert(of.nodes, of.path, tree, np.int64(of.fresh[i]))
                changed = True
            _finish(of, update, keeper, changed, tree, r, made)
            made += 1
        if over:
            break
        if not begun or far:
            tree, keeper, changed, first_v = np.int64(NONE), np.int64(NONE), False, taken
            r = of.nodes[of.fresh[taken], HI] if is_fresh else of.nodes[root, MIN_HI]
            begun = True
        if is_fresh:
            r = min(r, of.nodes[of.fresh[taken], HI])
            taken += 1
            continue
        r = min(r, of.nodes[root, MIN_HI])
        if keeper < 0:
            keeper = group
            changed |= cut | (tree >= 0)
        else:
            changed = True
            tell(of, update, DISSOLVED, group, NONE)
            give_back(of, group)
        tree = avl.join(of.nodes, of.path, tree, root)
        cut = False
        old += 1
    for i in range(made):
        group = np.int64(of.order_next[i])
        of.order[i], of.at[i], of.living[i] = group, of.points[group], i
        of.ranks[group] = i
    of.counts[N_OLD] = of.counts[N_GROUPS] = of.counts[SOUND] = made
    of.counts[RECONSTRUCTED] += 1


@leaf
def _finish(
    of: Refined, update: int, keeper: int, changed: bool, tree: int, point: int, made: int
) -> None:
    group = np.int64(keeper)
    if group < 0:
        group = _take(of, OLD, tree, point)
        tell(of, update, CREATED, group, NONE)
    elif changed:
        tell(of, update, REBUILT, group, NONE)
    elif of.points[group] != point:
        tell(of, update, MOVED, group, NONE)
    of.kinds[group], of.roots[group], of.points[group] = OLD, tree, point
    of.order_next[made] = group
    _resize(of, 0, of.nodes[tree, avl.SIZE])


@leaf
def scout(of: Refined, ids: I32, begin: int, adds: bool) -> None:
    """Bring closer what the next updates will walk down: their waits for memory overlap.

    The walks go together, a level at a time, and ask for both children of a node: rebalancing looks at
    the other one. It is only a look, so it does not matter that the first of these updates may turn the
    tree of the others, nor that the group found may not be the one. DEEP ends a walk that went astray.
    """
    many = min(SCOUTS, len(ids) - begin)
    for j in range(many):
        prefetch(of.nodes, avl.WORDS * np.int64(ids[begin + j]))
        prefetch(of.group_of, np.int64(ids[begin + j]))
    for j in range(many):
        place = _place_of(of, of.nodes[ids[begin + j], LO])
        of.scouts[j] = place
        prefetch(of.order, place)
    for j in range(many):
        group = np.int64(NONE) if adds else np.int64(of.group_of[ids[begin + j]])
        if group < 0 and of.scouts[j] < of.counts[N_OLD]:
            group = np.int64(of.order[of.scouts[j]])
        of.scouts[j] = group
        prefetch(of.roots, group)
        prefetch(of.kinds, group)
        prefetch(of.points, group)
    for j in range(many):
        if of.scouts[j] >= 0:
            of.scouts[j] = of.roots[of.scouts[j]]
            prefetch(of.nodes, avl.WORDS * of.scouts[j])
    walking, level = many, 0
    while walking > 0 and level < avl.DEEP:
        walking = 0
        level += 1
        for j in range(many):
            at = of.scouts[j]
            if at >= 0:
                walking += 1
                left, right = of.nodes[at, avl.LEFT], of.nodes[at, avl.RIGHT]
                prefetch(of.nodes, avl.WORDS * left)
                prefetch(of.nodes, avl.WORDS * right)
                of.scouts[j] = (
                    left if avl.is_before(of.nodes, np.int64(ids[begin + j]), at) else right
                )


@loop
def update_many(of: Refined, ids: I32, adds: bool, done: int, epsilon: float) -> int:
    """Insert (or delete) these intervals one by one; returns how many are done when room is out."""
    for i in range(done, len(ids)):
        if not has_room(of):
            return i
        if (i - done) % SCOUTS == 0 and len(of.nodes) > FITS:
            scout(of, ids, i, adds)
        if adds:
            add(of, i, np.int64(ids[i]))
        else:
            drop(of, i, np.int64(ids[i]))
        if is_due(of, epsilon):
            reconstruct(of, i)
    return len(ids)


@loop
def lay_out(of: Refined, order: I64, starts: I64, points: I64, made: I64) -> None:
    """Take the canonical partition of these intervals for the old groups; there are no others."""
    for g in range(len(points)):
        root = avl.plant(of.nodes, order, starts[g], starts[g + 1], made)
        group = _take(of, OLD, root, points[g])
        of.order[g], of.at[g], of.living[g], of.ranks[group] = group, points[g], g, g
        _resize(of, 0, starts[g + 1] - starts[g])
    for i in range(len(order)):
        of.group_of[order[i]] = NONE
    of.counts[N_OLD] = of.counts[N_GROUPS] = of.counts[SOUND] = len(points)
    of.counts[MEMBERS] = len(order)


@loop
def list_groups(of: Refined, groups: I32, points: I64, sizes: I64) -> int:
    """The groups of the partition in order of their points; returns how many they are."""
    n, place, old = 0, np.int64(0), of.counts[N_OLD]
    spot, spots = 0, avl.members(of.spots, of.path, of.counts[SPOTS], of.fresh)
    while True:
        while place < old and of.living[place] != place:
            place += 1
        if place >= old and spot >= spots:
            return n
        if spot < spots and (place >= old or of.points[of.fresh[spot]] < of.at[place]):
            group = np.int64(of.fresh[spot])
            spot += 1
        else:
            group = np.int64(of.order[place])
            place += 1
        groups[n], points[n] = group, of.points[group]
        sizes[n] = of.nodes[of.roots[group], avl.SIZE]
        n += 1


@loop
def around(of: Refined, x: int) -> tuple[int, int]:
    """The groups of the partition with the last point at or before x and the first after it, or NONE.

    Points that are equal are in the order of `list_groups`. Cost: a search among the old groups and in
    the tree of the new ones; log n looks for one that is not empty, the shortest way that is known.
    """
    place, many = np.int64(0), of.counts[N_OLD]
    while many > 0:
        half = (many + 1) >> 1
        place += half if of.at[place + half - 1] <= x else 0
        many -= half
    before, after = np.int64(NONE), np.int64(NONE)
    following = _living_from(of, place)
    if following < of.counts[N_OLD]:
        after = np.int64(of.order[following])
    last, first, reach = np.int64(NONE), place, np.int64(1)
    while first > 0 and last < 0:  # further and further back
        first = max(np.int64(0), place - reach)
        reach *= 2
        living = _living_from(of, first)
        last = living if living < place else last
    end = place
    while last >= 0 and last + 1 < end:
        middle = (last + end) >> 1
        living = _living_from(of, middle)
        if living < place:
            last = living
        else:
            end = middle
    if last >= 0:
        before = np.int64(of.order[last])
    spot = avl.last_to(of.spots, of.counts[SPOTS], x)
    if spot >= 0 and (before < 0 or of.points[spot] >= of.points[before]):
        before = spot
    spot = avl.first_after(of.spots, of.counts[SPOTS], x)
    if spot >= 0 and (after < 0 or of.points[spot] < of.points[after]):
        after = spot
    return before, after


@loop
def groups_of(of: Refined, ids: I32, found: I32) -> None:
    for i in range(len(ids)):
        found[i] = group_of(of, np.int64(ids[i]))
