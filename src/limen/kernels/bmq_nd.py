"""BMQ-Index in several dimensions: an RS list for each, and the cross-check of section 4.3.

A query met at a crossed border of dimension k has perhaps been entered, or perhaps been left; the query
table (`ranges`: by query and dimension, both ends) tells. It has been entered if the value is in all its
ranges now and was not in the range of dimension k before. A query whose range was entered in several
dimensions at once is met in each of them and reported in the first. Likewise for leaving.

Beyond the paper, the list of a dimension is cut into *strips* by the next dimension's values: a border
lies in the lists of those strips only that its query reaches into, and a value crosses the borders of the
strip that it is in. So most of the queries that the cross-check would turn down are not met at all.
Whoever moves into another strip, or crosses much, does not walk: the candidates at either end come from
the nearest frame (`borders.py`) of their strips, in the dimension where that costs least, and each is
checked.

The stream table also has the *room* of an entity: from the borders next below its values to those next
above, in its strips. While it stays in there it crosses nothing, and nothing else needs a look.

Cost: as in one dimension, summed over the dimensions, and a look into the query table for each query met.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.bmq import SHORT
from limen.kernels.borders import RSLists, key_of, moved, nearest, stepped
from limen.kernels.chain import FIRST, LATE, PLAIN, RETURNED, Flags
from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64, prefetch

AHEAD = 8
FEW = 64  # queries to look at: so few that it is not worth choosing well
BEFORE, AFTER = 0, 1  # rows of points
FAR_BELOW, FAR_ABOVE = np.int64(-(2**63)), np.int64(2**63 - 1)


@leaf
def _within(ranges: I64, q: int, k: int, x: int) -> bool:
    return (ranges[q, k, 0] <= x) & (x <= ranges[q, k, 1])


@leaf
def _inside(ranges: I64, q: int, points: I64, a: int, dims: int) -> bool:
    inside = True
    for k in range(dims):
        inside &= _within(ranges, q, k, points[a, k])
    return inside


@leaf
def _only(ranges: I64, q: int, points: I64, a: int, alone: bool, dims: int) -> bool:
    """Is points[a] in the query and, unless it is alone, the other not?"""
    here, there = True, not alone
    for k in range(dims):
        here &= _within(ranges, q, k, points[a, k])
        there &= _within(ranges, q, k, points[1 - a, k])
    return here & (not there)


@leaf
def _crossed(ranges: I64, q: int, k: int, points: I64, a: int, dims: int) -> bool:
    """Is points[a] in the query, and the other not, on account of dimension k and of none before it?"""
    crossed = not _within(ranges, q, k, points[1 - a, k])
    for j in range(k):
        crossed &= _within(ranges, q, j, points[1 - a, j])
    return crossed & _inside(ranges, q, points, a, dims)


@leaf
def strip_of(cuts: I64, k: int, x: int, hint: int) -> int:
    """The number of dimension k's cuts at or below x: the strip that it is in, tried at first."""
    low, high = np.int64(0), np.int64(cuts.shape[1])
    if (hint == low or cuts[k, hint - 1] <= x) and (hint == high or x < cuts[k, hint]):
        return hint
    many = high
    while many > 0:  # low is at most the answer, and that at most low + many
        half = (many + 1) >> 1
        low += half if cuts[k, low + half - 1] <= x else 0
        many -= half
    return low


@leaf
def list_of(cuts: I64, groups: int, group: int, k: int, strips: I32, row: int) -> int:
    """The list of dimension k and a group, in the strip of the dimension behind it."""
    dims = cuts.shape[0]
    strip = strips[row, k + 1 if k + 1 < dims else 0]
    return (k * groups + group) * (cuts.shape[1] + 1) + strip


@leaf
def _make_room(
    rs: RSLists, cuts: I64, of: int, k: int, strips: I32, row: int, p: int, rooms: I64, s: int
) -> None:
    """What dimension k may do without crossing a border of its list, or into another strip."""
    low, high = FAR_BELOW, FAR_ABOVE
    strip = strips[row, k]
    if strip > 0:
        low = cuts[k, strip - 1]
    if strip < cuts.shape[1]:
        high = cuts[k, strip] - 1
    if p > rs.starts[of]:
        low = max(low, key_of(rs, p - 1))
    if p < rs.starts[of + 1]:
        high = min(high, key_of(rs, p) - 1)
    rooms[s, k, 0], rooms[s, k, 1] = low, high


@leaf
def _best(
    rs: RSLists, cuts: I64, groups: int, group: int, strips: I32, at: I32, row: int
) -> tuple[int, int, int, int]:
    """Where to begin with the queries at a place: (dimension, frame, its position, the cost).

    That is the dimension in which they are fewest to look at; where there are usually few, without
    looking at each.
    """
    best, least = 0, np.int64(-1)
    for k in range(cuts.shape[0]):
        of = list_of(cuts, groups, group, k, strips, row)
        cost = np.int64(rs.usual[of])
        if cost > FEW:
            _, _, cost = nearest(rs, of, np.int64(at[row, k]))
        if least < 0 or cost < least:
            best, least = k, cost
    of = list_of(cuts, groups, group, best, strips, row)
    frame, begin, cost = nearest(rs, of, np.int64(at[row, best]))
    return best, frame, begin, cost


@leaf
def _enumerate(
    rs: RSLists,
    ranges: I64,
    frame: int,
    at: int,
    p: int,
    points: I64,
    a: int,
    alone: bool,
    n: int,
    found: I32,
) -> int:
    """Report the queries that contain points[a] but, unless it is alone, not the other.

    They are reported as entered if a is AFTER, as left if it is BEFORE. They are among those of the frame
    at position `at` of a list, and those whose begin (or, going back, whose end) lies between it and
    position p; no query is among them twice. Each is written down, and the next one over it if it does
    not count: about half do not, and a branch that goes either way costs more than the comparisons.
    """
    dims = points.shape[1]
    turned = np.int32(a - 1)
    if frame >= 0:
        there = rs.frame_ids[rs.frame_starts[frame] : rs.frame_starts[frame + 1]]
        for i in range(len(there)):
            if i + AHEAD < len(there):
                prefetch(ranges, 2 * dims * np.int64(there[i + AHEAD]))
            found[n] = there[i] ^ turned
            n += _only(ranges, there[i], points, a, alone, dims)
    met = rs.ids[min(at, p) : max(at, p)]
    ends = np.int32(0 if at <= p else -1)  # what is met going forward are begins
    for i in range(len(met)):
        if i + AHEAD < len(met):
            prefetch(ranges, 2 * dims * np.int64(met[i + AHEAD] ^ (met[i + AHEAD] >> 31)))
        q = met[i] ^ ends
        found[n] = q ^ turned
        n += (q >= 0) & _only(ranges, max(q, 0), points, a, alone, dims)
    return n


@leaf
def _walk(
    rs: RSLists, ranges: I64, at: I32, s: int, to: I32, points: I64, n: int, found: I32
) -> int:
    """Report what is entered and left on the way from one place to another, dimension by dimension."""
    dims = points.shape[1]
    for k in range(dims):
        p, end = np.int64(at[s, k]), np.int64(to[0, k])
        turned = np.int32(0 if end > p else -1)  # backwards, a begin is left and an end is entered
        met = rs.ids[min(p, end) : max(p, end)]
        for i in range(len(met)):
            if i + AHEAD < len(met):
                prefetch(ranges, 2 * dims * np.int64(met[i + AHEAD] ^ (met[i + AHEAD] >> 31)))
            crossing = met[i] ^ turned
            a = 1 + (crossing >> 31)  # AFTER for a query entered
            found[n] = crossing
            n += _crossed(ranges, crossing ^ (crossing >> 31), k, points, a, dims)
    return n


@loop
def cross_nd(
    rs: RSLists,
    ranges: I64,
    cuts: I64,
    corners: I32,
    groups: int,
    entities: I32,
    xs: I64,
    in_group: I32,
    order: I64,
    done: int,
    flags: Flags,
    before: I32,
    last: I64,
    at: I32,
    strips: I32,
    group_of: I32,
    rooms: I64,
    to: I32,
    to_strips: I32,
    points: I64,
    ends: I64,
    found: I32,
    accessed: I64,
) -> int:
    """As `bmq.cross`, with a column of xs, `at`, `strips` and `rooms` for each dimension.

    What an entity had before is in the row `before` of xs, or else in `last`. `to`, `to_strips` and
    `points` are scratch space: one row, one, and two.
    """
    dims = xs.shape[1]
    n = ends[done]
    for i in range(done, len(order)):
        if i + AHEAD < len(order):
            prefetch(rooms, 2 * dims * np.int64(entities[order[i + AHEAD]]))
        e = order[i]
        ends[i + 1] = n
        flag = flags[e]
        if flag == LATE:
            continue
        s = np.int64(entities[e])
        old = np.int64(-1) if flag == FIRST else np.int64(group_of[s])
        new = np.int64(in_group[e]) if len(in_group) > 0 else np.int64(0)
        if new == old and flag == PLAIN and _inside(rooms, s, xs, e, dims):
            continue
        if old < 0 and new < 0:
            at[s, :] = group_of[s] = -1
            continue
        same = new == old and flag != RETURNED
        long, near = np.int64(0), same
        if new >= 0:
            for k in range(dims):
                to_strips[0, k] = strips[s, k]
                if not same or not _within(rooms, s, k, xs[e, k]):
                    to_strips[0, k] = strip_of(cuts, k, xs[e, k], strips[s, k] if old >= 0 else 0)
                    near &= to_strips[0, k] == strips[s, k]
            for k in range(dims):
                of = list_of(cuts, groups, new, k, to_strips, 0)
                if not near:
                    first = np.int64(corners[of, to_strips[0, k]])
                    end = np.int64(corners[of, to_strips[0, k] + 1])
                    to[0, k] = moved(rs, first, end, first, xs[e, k])
                elif _within(rooms, s, k, xs[e, k]):
                    to[0, k] = at[s, k]
                else:
                    to[0, k] = stepped(rs, rs.starts[of], rs.starts[of + 1], at[s, k], xs[e, k])
                    long += abs(to[0, k] - at[s, k])
        ys, row = (xs, np.int64(before[e])) if before[e] >= 0 else (last, s)
        for k in range(dims):
            points[BEFORE, k], points[AFTER, k] = ys[row, k], xs[e, k]
        none = 0, np.int64(-1), np.int64(0), np.int64(0)
        (a_dim, a_frame, a_at, a_cost), (b_dim, b_frame, b_at, b_cost) = none, none
        if long > SHORT or not near:
            if old >= 0:
                a_dim, a_frame, a_at, a_cost = _best(rs, cuts, groups, old, strips, at, s)
            if new >= 0:
                b_dim, b_frame, b_at, b_cost = _best(rs, cuts, groups, new, to_strips, to, 0)
        walks = near and (long <= SHORT or long <= a_cost + b_cost)
        cost = long if walks else a_cost + b_cost
        if n + cost > len(found):
            return i
        accessed[0] += cost
        if walks:
            n = _walk(rs, ranges, at, s, to, points, n, found)
        else:
            if old >= 0:
                p = np.int64(at[s, a_dim])
                n = _enumerate(rs, ranges, a_frame, a_at, p, points, BEFORE, not same, n, found)
            if new >= 0:
                p = np.int64(to[0, b_dim])
                n = _enumerate(rs, ranges, b_frame, b_at, p, points, AFTER, not same, n, found)
        for k in range(dims):
            at[s, k] = to[0, k] if new >= 0 else -1
            strips[s, k] = to_strips[0, k] if new >= 0 else 0
            if new < 0:
                rooms[s, k, 0], rooms[s, k, 1] = FAR_ABOVE, FAR_BELOW
            elif not near or not _within(rooms, s, k, xs[e, k]):
                of = list_of(cuts, groups, new, k, to_strips, 0)
                _make_room(rs, cuts, of, k, to_strips, 0, np.int64(to[0, k]), rooms, s)
        group_of[s] = new
        ends[i + 1] = n
    return len(order)
