"""A cell of the index: which queries are found by a value in it, in two cache lines where they fit.

A query meets a cell in one of four ways: it covers the whole cell (FULL), begins inside it and goes
on to its end (OPENS), ends inside it having covered its beginning (CLOSES), or lies within it
(WITHIN). The ids stand in that order behind the exact ends of the last three::

    ends of OPENS, ascending | ends of CLOSES, descending | WITHIN begins | WITHIN ends |
    ids FULL | ids OPENS | ids CLOSES | ids WITHIN

so a value finds all of FULL, a prefix of OPENS and of CLOSES, and must be compared with both ends
only for WITHIN. Words are int32; an end is an int64 and takes two.

The header is word 0: the four counts, a byte each, with the data at word 2; or, in a cell that has
outgrown its 32 words, -1, then the data's place in the same array, the counts and the capacity.

Cost of a probe: the cell's two lines, and a copy of what it reports.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import leaf
from limen.kernels.memory import I32, I64, LINE_WORDS, put

FULL, OPENS, CLOSES, WITHIN = 0, 1, 2, 3
INLINE_WORDS = LINE_WORDS - 2
SHORT = 4  # so many ends are compared without a branch


@leaf
def words(counts: I64) -> int:
    """How many words the data of a cell with these four counts takes."""
    full, opens, closes, within = counts[0], counts[1], counts[2], counts[3]
    return full + 3 * opens + 3 * closes + 5 * within


@leaf
def read(mem: I32, mem64: I64, w: int, counts: I64) -> tuple[int, int]:
    """Fill the counts of the cell whose header is at w; returns its data's place and capacity."""
    packed = mem[w]
    if packed >= 0:
        for kind in range(4):
            counts[kind] = (packed >> (8 * kind)) & 0xFF
        return w + 2, INLINE_WORDS
    for kind in range(4):
        counts[kind] = mem[w + 4 + kind]
    return mem64[(w + 2) >> 1], mem[w + 8]


@leaf
def write(mem: I32, mem64: I64, w: int, counts: I64, data: int, capacity: int) -> None:
    """Set the header at w."""
    if data == w + 2:
        packed = 0
        for kind in range(4):
            packed |= counts[kind] << (8 * kind)
        mem[w] = packed
        return
    mem[w] = -1
    mem64[(w + 2) >> 1] = data
    for kind in range(4):
        mem[w + 4 + kind] = counts[kind]
    mem[w + 8] = capacity


@leaf
def ends_at(data: int, counts: I64, kind: int) -> int:
    """Index in the int64 view of the first end of OPENS, CLOSES or WITHIN."""
    at = data >> 1
    if kind > OPENS:
        at += counts[OPENS]
    if kind > CLOSES:
        at += counts[CLOSES]
    return at


@leaf
def ids_at(data: int, counts: I64, kind: int) -> int:
    """Index of the first id of a kind."""
    at = data + 2 * (counts[OPENS] + counts[CLOSES] + 2 * counts[WITHIN])
    for before in range(kind):
        at += counts[before]
    return at


@leaf
def spread(src: I32, s: int, old: I64, dst: I32, d: int, new: I64) -> None:
    """Lay the data at src[s:] (counts old) out at dst[d:] for larger counts, gaps at the ends."""
    src_ends, dst_ends = s, d
    for kind in (OPENS, CLOSES, WITHIN, WITHIN):
        for j in range(2 * old[kind]):
            dst[dst_ends + j] = src[src_ends + j]
        src_ends += 2 * old[kind]
        dst_ends += 2 * new[kind]
    for kind in range(4):
        for j in range(old[kind]):
            dst[dst_ends + j] = src[src_ends + j]
        src_ends += old[kind]
        dst_ends += new[kind]


@leaf
def make_room_behind_full(mem: I32, data: int, old: I64, gain: int) -> None:
    """`spread` in place for a cell that gains FULL ids only: what stands behind them moves up."""
    first = ids_at(data, old, OPENS)
    for at in range(first + old[OPENS] + old[CLOSES] + old[WITHIN] - 1, first - 1, -1):
        mem[at + gain] = mem[at]


@leaf
def prune(src: I32, old: I64, dead: npt.NDArray[np.bool_], dst: I32, d: int, new: I64) -> None:
    """Copy to dst[d:] the data at src[0:] without the dead ids; fills the new counts.

    src is scratch: its dead ids are overwritten with -1.
    """
    src_ids = ids_at(0, old, FULL)
    at = src_ids
    for kind in range(4):
        new[kind] = old[kind]
        for j in range(at, at + old[kind]):
            if dead[src[j]]:
                src[j] = -1
                new[kind] -= 1
        at += old[kind]
    src_ends, dst_ends = 0, d
    at = src_ids + old[FULL]
    for kind in (OPENS, CLOSES, WITHIN, WITHIN):
        for j in range(old[kind]):
            if src[at + j] >= 0:
                dst[dst_ends] = src[src_ends + 2 * j]
                dst[dst_ends + 1] = src[src_ends + 2 * j + 1]
                dst_ends += 2
        src_ends += 2 * old[kind]
        if kind != WITHIN:
            at += old[kind]
    n_ids = old[FULL] + old[OPENS] + old[CLOSES] + old[WITHIN]
    for j in range(src_ids, src_ids + n_ids):
        dst[dst_ends] = src[j]
        dst_ends += src[j] >= 0


@leaf
def sort_ends(mem: I32, mem64: I64, ends: int, ids: int, n: int, descending: bool) -> None:
    """Order n (end, id) pairs by end, in place."""
    sign = -1 if descending else 0  # ~e reverses the order of e
    ordered = True
    for j in range(1, n):
        if (mem64[ends + j] ^ sign) < (mem64[ends + j - 1] ^ sign):
            ordered = False
            break
    if ordered:
        return
    gap = 1
    while 9 * gap < 4 * n:  # Shell's sort with gaps growing by 9/4: in place, and fast when short
        gap = (9 * gap + 3) // 4
    while gap > 0:
        for j in range(gap, n):
            end, who, i = mem64[ends + j], mem[ids + j], j
            while i >= gap and (mem64[ends + i - gap] ^ sign) > (end ^ sign):
                mem64[ends + i] = mem64[ends + i - gap]
                mem[ids + i] = mem[ids + i - gap]
                i -= gap
            mem64[ends + i] = end
            mem[ids + i] = who
        gap = 4 * gap // 9 if gap > 2 else gap - 1


@leaf
def reached(mem64: I64, at: int, n: int, x: int, sign: int) -> int:
    """How many of n ordered ends are met by x: those with (end ^ sign) <= (x ^ sign)."""
    x ^= sign
    met = 0
    for j in range(SHORT):
        met += ((mem64[at + j] ^ sign) <= x) & (j < n)
    if n > SHORT:
        first, last = 0, n
        while first < last:
            middle = (first + last) >> 1
            if (mem64[at + middle] ^ sign) <= x:
                first = middle + 1
            else:
                last = middle
        met = first
    return met


@leaf
def report(mem: I32, mem64: I64, w: int, x: int, out: I32, o: int) -> int:
    """Write the ids that x finds in the cell at w to out[o:]; returns the new o, or -1 if no room.

    Room means LINE_WORDS more than the cell could report: copies write past their end.
    """
    packed = np.int64(mem[w])
    data = w + 2
    full, opens = packed & 0xFF, (packed >> 8) & 0xFF
    closes, within = (packed >> 16) & 0xFF, packed >> 24
    if packed < 0:
        data = mem64[(w + 2) >> 1]
        full, opens = np.int64(mem[w + 4]), np.int64(mem[w + 5])
        closes, within = np.int64(mem[w + 6]), np.int64(mem[w + 7])
    if o + full + opens + closes + within + LINE_WORDS > len(out):
        return -1
    ends = data >> 1
    ids = data + 2 * (opens + closes + 2 * within)
    met = full + reached(mem64, ends, opens, x, 0)
    put(out, o, mem, mem, ids, met)
    o += met
    ids += full + opens
    met = reached(mem64, ends + opens, closes, x, -1)
    put(out, o, mem, mem, ids, met)
    o += met
    if within > 0:
        ids += closes
        ends += opens + closes
        for j in range(within):
            out[o] = mem[ids + j]
            o += (mem64[ends + j] <= x) & (x <= mem64[ends + within + j])
    return o


@leaf
def count(mem: I32, mem64: I64, w: int, x: int, counts: I64) -> int:
    """How many ids `report` would write."""
    data, _ = read(mem, mem64, w, counts)
    found = counts[FULL] + reached(mem64, ends_at(data, counts, OPENS), counts[OPENS], x, 0)
    found += reached(mem64, ends_at(data, counts, CLOSES), counts[CLOSES], x, -1)
    at, within = ends_at(data, counts, WITHIN), counts[WITHIN]
    for j in range(within):
        found += (mem64[at + j] <= x) & (x <= mem64[at + within + j])
    return found
