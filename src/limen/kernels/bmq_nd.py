"""BMQ-Index in several dimensions: an RS list for each, and the cross-check of section 4.3.

A query met at a crossed border of dimension k has perhaps been entered, or perhaps been left; the query
table (`ranges`: by query and dimension, both ends) tells. It has been entered if the value is in all its
ranges now and was not in the range of dimension k before. A query whose range was entered in several
dimensions at once is met in each of them and reported in the first. Likewise for leaving.

Beyond the paper, a jump that crosses much is not walked: the candidates at either end come from the
nearest frame (`borders.py`) in the dimension where that costs least, and each is checked in all.

Cost: as in one dimension, summed over the dimensions, and a look into the query table for each query met.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.bmq import SHORT
from limen.kernels.borders import RSLists, moved, nearest
from limen.kernels.chain import FIRST, LATE, RETURNED, Flags
from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64, prefetch

AHEAD = 8


@leaf
def _inside(ranges: I64, q: int, xs: I64, row: int, dims: int) -> bool:
    inside = True
    for k in range(dims):
        inside &= ranges[q, k, 0] <= xs[row, k] <= ranges[q, k, 1]
    return inside


@leaf
def _crossed(
    ranges: I64, q: int, k: int, xs: I64, row: int, ys: I64, other: int, dims: int
) -> bool:
    """Is xs[row] in the query, and ys[other] not, on account of dimension k and of none before it?"""
    if ranges[q, k, 0] <= ys[other, k] <= ranges[q, k, 1]:
        return False
    for j in range(k):
        if ys[other, j] < ranges[q, j, 0] or ys[other, j] > ranges[q, j, 1]:
            return False
    return _inside(ranges, q, xs, row, dims)


@leaf
def _cheapest(rs: RSLists, of: int, at: I32, row: int, groups: int, dims: int) -> tuple[int, int]:
    """The dimension in which the queries at a place are fewest to look at, and their number."""
    best, least = 0, np.int64(-1)
    for k in range(dims):
        _, _, cost = nearest(rs, k * groups + of, np.int64(at[row, k]))
        if least < 0 or cost < least:
            best, least = k, cost
    return best, least


@leaf
def _enumerate(
    rs: RSLists,
    ranges: I64,
    of: int,
    p: int,
    xs: I64,
    row: int,
    ys: I64,
    other: int,
    dims: int,
    turned: int,
    n: int,
    found: I32,
) -> int:
    """Report the queries that contain xs[row] but not ys[other] (or any, where other is negative).

    With `turned` -1 they are reported as left, with 0 as entered. They are among those of the nearest
    frame and those whose begin (or, going back, whose end) lies between it and position p of list `of`;
    no query is among them twice.
    """
    frame, at, _ = nearest(rs, of, p)
    if frame >= 0:
        for i in range(rs.frame_starts[frame], rs.frame_starts[frame + 1]):
            if i + AHEAD < rs.frame_starts[frame + 1]:
                prefetch(ranges, 2 * dims * np.int64(rs.frame_ids[i + AHEAD]))
            q = rs.frame_ids[i]
            if _inside(ranges, q, xs, row, dims) and (
                other < 0 or not _inside(ranges, q, ys, other, dims)
            ):
                found[n] = q ^ turned
                n += 1
    for i in range(min(at, p), max(at, p)):
        q = rs.ids[i]
        if (q >= 0) != (at <= p):
            continue
        if q < 0:
            q = ~q
        if _inside(ranges, q, xs, row, dims) and (
            other < 0 or not _inside(ranges, q, ys, other, dims)
        ):
            found[n] = q ^ turned
            n += 1
    return n


@loop
def cross_nd(
    rs: RSLists,
    ranges: I64,
    groups: int,
    entities: I32,
    xs: I64,
    lists: I32,
    order: I64,
    done: int,
    flags: Flags,
    before: I32,
    last: I64,
    at: I32,
    list_of: I32,
    to: I32,
    ends: I64,
    found: I32,
    accessed: I64,
) -> int:
    """As `bmq.cross`, with a column of xs and of `at` for each dimension.

    List k * groups + g is that of dimension k and group g; `lists` and `list_of` hold the group. What an
    entity had before is in the row `before` of xs, or else in `last`. `to` is scratch space: one row.
    """
    dims = xs.shape[1]
    n = ends[done]
    for i in range(done, len(order)):
        e = order[i]
        ends[i + 1] = n
        if flags[e] == LATE:
            continue
        s = np.int64(entities[e])
        old = np.int64(-1) if flags[e] == FIRST else np.int64(list_of[s])
        new = np.int64(lists[e]) if len(lists) > 0 else np.int64(0)
        if old < 0 and new < 0:
            at[s, :] = list_of[s] = -1
            continue
        same = new == old and flags[e] != RETURNED
        ys, row = (xs, np.int64(before[e])) if before[e] >= 0 else (last, s)
        long = np.int64(0)
        if new >= 0:
            for k in range(dims):
                of = k * groups + new
                p = np.int64(at[s, k]) if same else rs.starts[of]
                to[0, k] = moved(rs, rs.starts[of], rs.starts[of + 1], p, xs[e, k])
                if same:
                    long += abs(to[0, k] - at[s, k])
        if same and long == 0:
            continue
        a_dim, b_dim, a_cost, b_cost = 0, 0, np.int64(0), np.int64(0)
        if long > SHORT or not same:
            if old >= 0:
                a_dim, a_cost = _cheapest(rs, old, at, s, groups, dims)
            if new >= 0:
                b_dim, b_cost = _cheapest(rs, new, to, 0, groups, dims)
        walk = same and (long <= SHORT or long <= a_cost + b_cost)
        cost = long if walk else a_cost + b_cost
        if n + cost > len(found):
            return i
        accessed[0] += cost
        if walk:
            for k in range(dims):
                p, end = np.int64(at[s, k]), np.int64(to[0, k])
                forward = end > p
                for j in range(min(p, end), max(p, end)):
                    q = rs.ids[j]
                    begin = q >= 0
                    if not begin:
                        q = ~q
                    if begin == forward:
                        found[n] = q
                        n += _crossed(ranges, q, k, xs, e, ys, row, dims)
                    else:
                        found[n] = ~q
                        n += _crossed(ranges, q, k, ys, row, xs, e, dims)
        else:
            if old >= 0:
                n = _enumerate(
                    rs,
                    ranges,
                    a_dim * groups + old,
                    np.int64(at[s, a_dim]),
                    ys,
                    row,
                    xs,
                    e if same else np.int64(-1),
                    dims,
                    -1,
                    n,
                    found,
                )
            if new >= 0:
                n = _enumerate(
                    rs,
                    ranges,
                    b_dim * groups + new,
                    np.int64(to[0, b_dim]),
                    xs,
                    e,
                    ys,
                    row if same else np.int64(-1),
                    dims,
                    0,
                    n,
                    found,
                )
        for k in range(dims):
            at[s, k] = to[0, k] if new >= 0 else -1
        list_of[s] = new
        ends[i + 1] = n
    return len(order)
