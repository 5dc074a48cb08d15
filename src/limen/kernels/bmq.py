"""BMQ-Index in one dimension: what a value crosses on its way from its last position.

The differential query sets of section 3.3 are the queries met at the crossed borders, less those met
twice (begin and end both crossed). Where the spans of the queries say that none can be met twice, the
stretch is copied out as it is. Otherwise a first pass marks every query met and unmarks it when it is met
again, and a second reports those that are marked. No query table is needed.

Beyond the paper, a jump over a long stretch is not walked. The queries at either end are enumerated from
the nearest frames (`borders.py`), and what both have in common is left out, if anything reaches so far.
Both costs are known before either is begun, so a jump costs no more than the cheaper.

The answer to a batch is in CSR form: reading order[i] has found[ends[i]:ends[i + 1]], q for a query
entered and ~q for one left.

Cost: one comparison where no border is crossed; otherwise O(log) of the stretch to find the position and
O(the shorter of the stretch and what lies at its ends) to report.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.kernels.borders import BLOCK, RSLists, apart, moved, nearest
from limen.kernels.chain import FIRST, LATE, RETURNED, Flags
from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64, prefetch

Marks = npt.NDArray[np.uint8]

LANES = 16  # borders that are copied at a time
AHEAD = 6  # readings: so far ahead is asked for what they will need
SHORT = 64  # borders that are always walked
LIVE, MARK = np.uint8(128), np.uint8(1)  # of a query: it is in; it has been met


@leaf
def _walk(rs: RSLists, marks: Marks, p: int, to: int, n: int, found: I32) -> int:
    """Report the queries that lie across one of the two positions and not the other."""
    begin, end = min(p, to), max(p, to)
    turned = np.int32(0 if to > p else -1)  # backwards, a begin is left and an end is entered
    if apart(rs, begin, end):
        for i in range(0, end - begin, LANES):  # in whole lanes, with room behind both arrays
            met, out = rs.ids[begin + i : begin + i + LANES], found[n + i : n + i + LANES]
            for j in range(LANES):
                out[j] = met[j] ^ turned
        return n + end - begin
    for j in range(begin, end):
        q = rs.ids[j]
        marks[q ^ (q >> 31)] ^= MARK
    for j in range(begin, end):
        q = rs.ids[j] ^ (rs.ids[j] >> 31)
        found[n] = rs.ids[j] ^ turned
        n += marks[q] & MARK
        marks[q] &= ~MARK
    return n


@leaf
def _enumerate(rs: RSLists, marks: Marks, frame: int, at: int, p: int, n: int, found: I32) -> int:
    """Write down the queries at position p, which is reached from a frame; returns where they end."""
    first, last = np.int64(0), np.int64(0)
    if frame >= 0:
        first, last = rs.frame_starts[frame], rs.frame_starts[frame + 1]
    if at == p or (at < p and apart(rs, at, p)):
        for j in range(at, p):  # the ends met are of queries at the front of the frame
            q = rs.ids[j]
            found[n] = q
            n += 1 - (q < 0)
            first += q < 0
        there, out = rs.frame_ids[first:last], found[n:]
        for j in range(len(there)):
            out[j] = there[j]
        return n + last - first
    for j in range(first, last):
        marks[rs.frame_ids[j]] ^= MARK
    for j in range(min(at, p), max(at, p)):
        q = rs.ids[j]
        marks[q ^ (q >> 31)] ^= MARK
    for j in range(first, last):
        q = rs.frame_ids[j]
        found[n] = q
        n += marks[q] & MARK
        marks[q] &= ~MARK
    for j in range(min(at, p), max(at, p)):
        q = rs.ids[j] ^ (rs.ids[j] >> 31)
        found[n] = q
        n += marks[q] & MARK
        marks[q] &= ~MARK
    return n


@leaf
def _leave_out(marks: Marks, a: int, b: int, end: int, found: I32) -> tuple[int, int]:
    """What found[a:b] and found[b:end] have in common is taken out of both.

    Both stay behind each other from a on; returns where each ends.
    """
    for j in range(b, end):
        marks[found[j]] |= MARK
    n = a
    for j in range(a, b):
        q = found[j]
        found[n] = q
        n += 1 - (marks[q] & MARK)
        marks[q] &= ~MARK
    middle = n
    for j in range(b, end):
        q = found[j]
        found[n] = q
        n += marks[q] & MARK
        marks[q] &= ~MARK
    return middle, n


@loop
def cross(
    rs: RSLists,
    marks: Marks,
    entities: I32,
    xs: I64,
    lists: I32,
    order: I64,
    done: int,
    flags: Flags,
    at: I32,
    list_of: I32,
    ends: I64,
    found: I32,
    accessed: I64,
) -> int:
    """Report the crossings of readings order[done:], as far as there is room for them.

    `at` and `list_of` hold each entity's position and list (-1: it is in none) and are brought up to
    date. What was looked at, ids and borders, is added to accessed[0]. Returns the place in `order` from
    which to go on.
    """
    n = ends[done]
    for i in range(done, len(order)):
        if i + AHEAD < len(order):
            near = np.int64(at[entities[order[i + AHEAD]]])
            if near >= 0:
                prefetch(rs.keys, near & ~(BLOCK - 1))
                prefetch(rs.ids, near)
        e = order[i]
        flag = flags[e]
        ends[i + 1] = n
        if flag == LATE:
            continue
        s = entities[e]
        old = np.int64(-1) if flag == FIRST else np.int64(list_of[s])
        new = np.int64(lists[e]) if len(lists) > 0 else np.int64(0)
        if old < 0 and new < 0:
            at[s] = list_of[s] = -1
            continue
        p, to = np.int64(at[s]), np.int64(-1)
        same = new == old and flag != RETURNED
        if new >= 0:
            first, end = rs.starts[new], rs.starts[new + 1]
            to = moved(rs, first, end, p if same else first, xs[e])
        if same and to == p:
            continue
        long = abs(to - p)
        a_frame, a_at, a_cost = np.int64(-1), np.int64(0), np.int64(0)
        b_frame, b_at, b_cost = np.int64(-1), np.int64(0), np.int64(0)
        if not same or long > SHORT:
            if old >= 0:
                a_frame, a_at, a_cost = nearest(rs, old, p)
            if new >= 0:
                b_frame, b_at, b_cost = nearest(rs, new, to)
        walks = same and (long <= SHORT or long <= a_cost + b_cost)
        cost = long if walks else a_cost + b_cost
        if n + cost + LANES > len(found):
            return i
        accessed[0] += cost
        if walks:
            n = _walk(rs, marks, p, to, n, found)
        else:
            before, middle = n, n
            if old >= 0:
                middle = _enumerate(rs, marks, a_frame, a_at, p, n, found)
            n = middle
            if new >= 0:
                n = _enumerate(rs, marks, b_frame, b_at, to, middle, found)
            if same and long < rs.widest[new]:
                middle, n = _leave_out(marks, before, middle, n, found)
            for j in range(before, middle):
                found[j] = ~found[j]
        ends[i + 1] = n
        at[s] = to
        list_of[s] = new
    return len(order)
