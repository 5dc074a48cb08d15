"""The RS list of the BMQ paper on arrays: borders in order, and where a value lies among them.

A query [lo, hi] has two borders: its begin at lo and its end at hi + 1; an end that no value can lie
beyond has none. The borders lie in order; `ids` says whose they are: q for a begin (the paper's +DQSet),
~q for an end (-DQSet). The stretch between two different keys is an RS node. A value's *position* is the
number of borders at or below it, so a value that moves from position p to p' has crossed exactly the
borders between the two.

Borders come in blocks of 64. The key of border i is bases[i // 64] + keys[i]: where the keys of all
blocks lie close enough together, in 16 bits, or in 32; otherwise `bases` are 0. To find a value's
position is to find the block and count the keys of the block that are not above it.

Several lists lie behind each other, one for each dimension and group of queries: list l has the borders
starts[l] to starts[l + 1], and positions are counted through all of them.

Beyond the paper there are *frames*: at some positions of a list, the ids of all queries there. Whoever
needs all the queries at a position begins at the nearest frame and goes on from border to border. After a
frame of n ids the next one comes 2 n borders later: a frame word for two borders, and what is looked at
on the way from a frame is about as much as is found. A list begins with a frame if queries are there
below its first border; otherwise with nothing. The ids of a frame are in the order of their ends: what
has ended some borders later is at its front.

The *span* of a query is the number of borders from its begin to its end. `spans` has the least of each
block, `widest` the greatest of each list: a stretch shorter than the least span of its blocks holds no
query's begin and end both, and no query reaches over one that is longer than the greatest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import compiled, leaf, loop
from limen.kernels.memory import I32, I64

Keys = npt.NDArray[Any]  # uint16, uint32 or int64

BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS
LEAST_GAP, GAP = 16, 2  # borders from a frame of n ids to the next: GAP * n, or so many at least
STEPS = 4  # borders that a value is looked for from one to the next
ENDLESS = 2**31 - 1  # the span of a query that has no begin or no end


class RSLists(NamedTuple):
    keys: Keys
    bases: I64  # by block
    top: npt.NDArray[np.uint64]  # one number: the greatest that a key can hold
    ids: I32
    starts: I64  # by list, and the end
    frames: I64  # by list: its first frame; and the end
    frame_at: I32  # positions of the frames, in order
    frame_starts: I64  # by frame: its first id; and the end
    frame_ids: I32
    frame_of: I32  # by block: the last frame at or before its first border, or -1
    spans: I32  # by block
    widest: I32  # by list
    usual: I32  # by list: what `nearest` costs on average


@leaf
def key_of(rs: RSLists, i: int) -> int:
    return rs.bases[i >> BLOCK_BITS] + np.int64(rs.keys[i])


@leaf
def _count(rs: RSLists, begin: int, end: int, x: int) -> int:
    """How many borders from begin to end, all of one block, are at or below x, if the first one is."""
    apart = np.uint64(x) - np.uint64(rs.bases[begin >> BLOCK_BITS])
    least = rs.keys.dtype.type(min(apart, rs.top[0]))
    some = rs.keys[begin:end]
    passed = np.int64(0)
    if len(some) == BLOCK:
        few = np.uint8(0)
        for i in range(BLOCK):  # of known length: all at once
            few = np.uint8(few + (some[i] <= least))
        return np.int64(few)
    for i in range(len(some)):
        passed += some[i] <= least
    return passed


@leaf
def moved(rs: RSLists, first: int, end: int, p: int, x: int) -> int:
    """The position of x in the list from first to end, looked for from p outwards: block by block,
    in longer and longer steps, and then by halves."""
    if first == end:
        return first
    low = min(p, end - 1) >> BLOCK_BITS  # the block is this or a later one
    if x >= key_of(rs, max(low << BLOCK_BITS, first)):
        high = low + 1  # and an earlier one than this
        last = (end - 1) >> BLOCK_BITS
        step = 1
        while high <= last and x >= key_of(rs, high << BLOCK_BITS):
            low = high
            high += step
            step *= 2
        high = min(high, last + 1)
    else:
        high = low
        step = 1
        while x < key_of(rs, max(low << BLOCK_BITS, first)):
            if low << BLOCK_BITS <= first:
                return first
            high = low
            low = max(low - step, first >> BLOCK_BITS)
            step *= 2
    while high - low > 1:
        middle = (low + high) >> 1
        if x >= key_of(rs, middle << BLOCK_BITS):
            low = middle
        else:
            high = middle
    begin = max(low << BLOCK_BITS, first)
    return begin + _count(rs, begin, min((low + 1) << BLOCK_BITS, end), x)


@leaf
def stepped(rs: RSLists, first: int, end: int, p: int, x: int) -> int:
    """As `moved`, for an x that is probably only a few borders away."""
    at = np.int64(p)
    for _ in range(STEPS):
        if at < end and key_of(rs, at) <= x:
            at += 1
        elif at > first and key_of(rs, at - 1) > x:
            at -= 1
        else:
            return at
    return moved(rs, first, end, at, x)


@leaf
def apart(rs: RSLists, begin: int, end: int) -> bool:
    """Are the borders from begin to end those of so many different queries?"""
    for block in range(begin >> BLOCK_BITS, ((end - 1) >> BLOCK_BITS) + 1):
        if rs.spans[block] < end - begin:
            return False
    return True


@leaf
def nearest(rs: RSLists, of: int, p: int) -> tuple[int, int, int]:
    """The frame from which position p of a list is best reached: (frame, its position, the cost).

    Frame -1 is the empty one at the list's begin. The cost is the ids and borders that are looked at; a
    frame behind p is taken only if it is far nearer, since going back takes more than a copy.
    """
    frame = np.int64(rs.frame_of[p >> BLOCK_BITS])
    end = rs.frames[of + 1]
    while frame + 1 < end and rs.frame_at[frame + 1] <= p:
        frame += 1
    frame = min(frame, end - 1)
    next_frame = max(frame + 1, rs.frames[of])
    at = rs.starts[of]
    cost = p - at
    if frame >= rs.frames[of]:
        at = np.int64(rs.frame_at[frame])
        cost = p - at + rs.frame_starts[frame + 1] - rs.frame_starts[frame]
    else:
        frame = np.int64(-1)
    if next_frame < end:
        ids = rs.frame_starts[next_frame + 1] - rs.frame_starts[next_frame]
        later = rs.frame_at[next_frame] - p + ids
        if 4 * later < cost:
            return next_frame, np.int64(rs.frame_at[next_frame]), later
    return frame, at, cost


@loop
def locate_many(rs: RSLists, first: int, lists: I32, xs: I64, at: I32) -> None:
    """at[i] = the position of xs[i] in list first + lists[i], or -1 where that is negative."""
    p = np.int64(0)
    for i in range(len(xs)):
        at[i] = -1
        if lists[i] >= 0:
            begin, end = rs.starts[first + lists[i]], rs.starts[first + lists[i] + 1]
            p = moved(rs, begin, end, min(max(p, begin), end), xs[i])
            at[i] = p


@loop
def pack_keys(keys: I64, bases: I64) -> int:
    """Fill bases with the least key of each block; returns the greatest difference to one.

    The keys are int64, and so may differ by more than that: such a difference is returned as -1.
    """
    most = np.int64(0)
    for block in range(len(bases)):
        begin, end = block << BLOCK_BITS, min((block + 1) << BLOCK_BITS, len(keys))
        if begin >= end:
            bases[block] = 0
            continue
        least, greatest = keys[begin], keys[begin]
        for i in range(begin, end):
            least, greatest = min(least, keys[i]), max(greatest, keys[i])
        bases[block] = least
        if greatest - least < 0:
            return -1
        most = max(most, greatest - least)
    return most


@compiled
def make_frames(
    ids: I32, starts: I64, open_ids: I32, opens: I64, most: int
) -> tuple[I64, I32, I64, I32, I32, I32, I32, I32]:
    """The frames and spans of all lists: the last eight fields of `RSLists`.

    List l has the queries open_ids[opens[l]:opens[l + 1]] before its first border; ids are below `most`.
    """
    lists = len(starts) - 1
    frames = np.zeros(lists + 1, np.int64)
    at = np.empty(len(ids) // LEAST_GAP + 2 * lists + 1, np.int32)
    frame_starts = np.zeros(len(at) + 1, np.int64)
    found = np.empty(len(ids) // GAP + len(open_ids) + most + 1, np.int32)
    spans = np.full((len(ids) >> BLOCK_BITS) + 1, ENDLESS, np.int32)
    widest, usual = np.zeros(lists, np.int32), np.zeros(lists, np.int32)
    there = np.empty(most, np.int32)
    place = np.empty(most, np.int32)  # of a query in there
    begin = np.empty(most, np.int32)
    end = np.empty(most, np.int32)
    n, total = 0, 0
    for at_list in range(lists):
        size = 0
        for i in range(opens[at_list], opens[at_list + 1]):
            there[size] = open_ids[i]
            place[open_ids[i]] = size
            begin[open_ids[i]], end[open_ids[i]] = -1, ENDLESS
            widest[at_list] = ENDLESS
            size += 1
        for p in range(starts[at_list], starts[at_list + 1]):
            if ids[p] >= 0:
                begin[ids[p]], end[ids[p]] = p, ENDLESS
        for p in range(starts[at_list], starts[at_list + 1]):
            q = ~ids[p]
            if q >= 0:
                end[q] = p
                if begin[q] >= 0:
                    span = np.int32(p - begin[q])
                    for border in (np.int64(begin[q]), p):
                        block = border >> BLOCK_BITS
                        spans[block] = min(spans[block], span)
                    widest[at_list] = max(widest[at_list], span)
        due = starts[at_list] if size > 0 else starts[at_list] + LEAST_GAP
        for p in range(starts[at_list], starts[at_list + 1] + 1):
            if p >= due and (p < starts[at_list + 1] or p == starts[at_list]):
                if total + size > len(found):
                    larger = np.empty(2 * (total + size), np.int32)
                    larger[:total] = found[:total]
                    found = larger
                by_end = np.argsort(end[there[:size]])
                found[total : total + size] = there[:size][by_end]
                total += size
                at[n] = p
                n += 1
                frame_starts[n] = total
                due = p + max(LEAST_GAP, GAP * size)
            if p < starts[at_list + 1]:
                q = ids[p]
                if q >= 0:
                    there[size] = q
                    place[q] = size
                    size += 1
                    if end[q] == ENDLESS:
                        widest[at_list] = ENDLESS
                else:
                    size -= 1
                    last = there[size]
                    there[place[~q]] = last
                    place[last] = place[~q]
        frames[at_list + 1] = n
        many = n - frames[at_list]
        if many > 0:
            each = (total - frame_starts[frames[at_list]]) // many
            usual[at_list] = each + max(LEAST_GAP, GAP * each) // 2
    frame_of = np.empty(len(spans), np.int32)
    frame = -1
    for block in range(len(frame_of)):
        while frame + 1 < n and at[frame + 1] <= block << BLOCK_BITS:
            frame += 1
        frame_of[block] = frame
    kept = at[:n].copy(), frame_starts[: n + 1].copy(), found[:total].copy()
    return frames, kept[0], kept[1], kept[2], frame_of, spans, widest, usual
