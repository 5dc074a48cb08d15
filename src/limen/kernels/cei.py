"""The CEI index on arrays: put queries into it, take them out, report what a value finds.

A query is laid over the grid: the cells in which it begins and ends carry its exact ends
(`cells.py`), and the cells between are decomposed into containment-encoded intervals
(`containment.cover`), of which level 0 is the cell itself and the others are plain id lists. A value
therefore finds every query once: in its cell, or in one list of one level above it.

Two memories make one address space: `mem`, frozen (a memory-mapped file that all processes on a
machine share, or nothing), and `own` behind it, private. An address below len(mem) is in the first.
What an update touches is rewritten in `own` if it was frozen: a cell leaves its new address in
`moved`, a list in `heads`. A changed index thus costs a probe what a fresh one does, and memory in
proportion to the change.

Invariant: each live query stands in exactly the cells and lists of its decomposition; the ends in a
cell are ordered. Costs: O(pieces) a query to put or take (amortised; bulk operations rewrite each
touched cell once), O(levels + found) a value to report.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from limen.kernels import cells as cell
from limen.kernels.compiled import leaf, loop
from limen.kernels.containment import cover
from limen.kernels.grid import span
from limen.kernels.memory import I32, I64, LINE_WORDS, copy_words, prefetch, put

MAX_PIECES = 512
FAR, NEAR = 24, 12  # how many values ahead a cell, then its data, is asked for


class Arrays(NamedTuple):
    """Everything a probe reads."""

    nodes: I64  # the grid
    levels: I64  # first label of each level; labels below levels[1] are cells
    mem: I32
    mem64: I64  # the same memory as int64
    own: I32
    own64: I64
    moved: I64  # by cell: its address, or 0 where it is at home (empty if none can move)
    heads: I64  # by list: address, and length | capacity << 32
    step: int  # bits between two levels: 2**step intervals of one make one of the next


class Scratch(NamedTuple):
    """Space that the loops below need and may not create."""

    labels: I64  # MAX_PIECES
    old: I64  # 4
    new: I64  # 4
    words: I32  # the data of the largest cell that is rewritten


def scratch() -> Scratch:
    return Scratch(
        np.empty(MAX_PIECES, np.int64),
        np.empty(4, np.int64),
        np.empty(4, np.int64),
        np.empty(4096, np.int32),
    )


class Pieces(NamedTuple):
    """Where one query goes: a cell each or -1, and the cells that it covers whole."""

    opens: int
    closes: int
    within: int
    first: int
    last: int


@leaf
def pieces(nodes: I64, group: int, lo: int, hi: int) -> Pieces:
    a, a_first, a_last = span(nodes, group, lo)
    b, _, b_last = span(nodes, group, hi)
    if a == b:
        if lo == a_first and hi == a_last:
            return Pieces(-1, -1, -1, a, a)
        if lo == a_first:
            return Pieces(-1, a, -1, 0, -1)
        if hi == a_last:
            return Pieces(a, -1, -1, 0, -1)
        return Pieces(-1, -1, a, 0, -1)
    opens, first = (-1, a) if lo == a_first else (a, a + 1)
    closes, last = (-1, b) if hi == b_last else (b, b - 1)
    return Pieces(opens, closes, -1, first, last)


@leaf
def address_of(moved: I64, c: int) -> int:
    if len(moved) > 0 and moved[c] > 0:
        return moved[c]
    return c * LINE_WORDS


@loop
def plan(
    ix: Arrays,
    scratch: Scratch,
    groups: I32,
    lo: I64,
    hi: I64,
    order: I32,
    adds: I32,
    touched: I32,
) -> int:
    """Count into adds (by cell: four kinds; then by list) how many queries meet each place.

    Lists the places in `touched` and returns how many they are.
    """
    nodes, levels = ix.nodes, ix.levels
    n_cells = levels[1]
    labels = scratch.labels
    n = 0
    for i in range(len(order)):
        q = order[i]
        p = pieces(nodes, groups[q] if len(groups) > 0 else 0, lo[q], hi[q])
        for j in range(cover(p.first, p.last, levels, ix.step, labels)):
            label = labels[j]
            if label < n_cells:
                n = _touch(adds, touched, n, label, cell.FULL)
            else:
                if adds[3 * n_cells + label] == 0:
                    touched[n] = label
                    n += 1
                adds[3 * n_cells + label] += 1
        n = _touch(adds, touched, n, p.opens, cell.OPENS)
        n = _touch(adds, touched, n, p.closes, cell.CLOSES)
        n = _touch(adds, touched, n, p.within, cell.WITHIN)
    return n


@leaf
def _touch(adds: I32, touched: I32, n: int, c: int, kind: int) -> int:
    if c >= 0:
        at = 4 * c
        if adds[at] + adds[at + 1] + adds[at + 2] + adds[at + 3] == 0:
            touched[n] = c
            n += 1
        adds[at + kind] += 1
    return n


@loop
def room(
    ix: Arrays, scratch: Scratch, adds: I32, touched: I32, n: int, gaining: bool
) -> tuple[int, int]:
    """Words of own that the touched places may take to gain `adds` (or to be rewritten).

    And the words of the largest cell among them, as it is.
    """
    mem, mem64, own, own64 = ix.mem, ix.mem64, ix.own, ix.own64
    moved, heads = ix.moved, ix.heads
    base = len(mem)
    n_cells = ix.levels[1]
    counts = scratch.old
    need, largest = 0, 0
    for i in range(n):
        label = np.int64(touched[i])
        if label < n_cells:
            address = address_of(moved, label)
            if address < base:
                cell.read(mem, mem64, address, counts)
                need += 2 * LINE_WORDS
                capacity = cell.INLINE_WORDS
            else:
                _, capacity = cell.read(own, own64, address - base, counts)
            largest = max(largest, cell.words(counts))
            if gaining:
                for kind in range(4):
                    counts[kind] += adds[4 * label + kind]
            if cell.words(counts) > capacity:
                need += _roomy(cell.words(counts))
        else:
            start, length, capacity = _head(heads, label - n_cells)
            if gaining:
                length += adds[3 * n_cells + label]
            if start < base or length > capacity:
                need += _roomy(length)
    return need, largest


@leaf
def _roomy(n: int) -> int:
    """An even capacity for n words, with slack."""
    return (n + (n >> 2) + 5) & ~1


@leaf
def _head(heads: I64, k: int) -> tuple[int, int, int]:
    return heads[k, 0], heads[k, 1] & 0xFFFFFFFF, heads[k, 1] >> 32


@leaf
def _set_head(heads: I64, k: int, start: int, length: int, capacity: int) -> None:
    heads[k, 0] = start
    heads[k, 1] = length | (capacity << 32)


@leaf
def _thaw(moved: I64, c: int, base: int, tail: int) -> int:
    """A place in own, on two whole lines, for the header of a frozen cell that is rewritten."""
    row = (tail + LINE_WORDS - 1) & ~(LINE_WORDS - 1)
    moved[c] = base + row
    return row


@loop
def grow(ix: Arrays, scratch: Scratch, adds: I32, touched: I32, n: int, tail: int) -> int:
    """Make room in every touched place for what it is to gain; returns the new tail of own."""
    mem, mem64, own, own64 = ix.mem, ix.mem64, ix.own, ix.own64
    moved, heads = ix.moved, ix.heads
    base = len(mem)
    n_cells = ix.levels[1]
    old, new, aside = scratch.old, scratch.new, scratch.words
    for i in range(n):
        label = np.int64(touched[i])
        if label >= n_cells:
            k = label - n_cells
            start, length, capacity = _head(heads, k)
            gain = np.int64(adds[3 * n_cells + label])
            if start < base or length + gain > capacity:
                capacity = _roomy(length + gain)
                for j in range(length):
                    own[tail + j] = mem[start + j] if start < base else own[start - base + j]
                start = base + tail
                tail += capacity
            _set_head(heads, k, start, length + gain, capacity)
            continue
        address = address_of(moved, label)
        frozen = address < base
        if frozen:
            data, _ = cell.read(mem, mem64, address, old)
            row = _thaw(moved, label, base, tail)
            tail = row + LINE_WORDS
            to, capacity = row + 2, cell.INLINE_WORDS
        else:
            row = address - base
            data, capacity = cell.read(own, own64, row, old)
            to = data
        for kind in range(4):
            new[kind] = old[kind] + adds[4 * label + kind]
        if cell.words(new) > capacity:
            to, capacity = tail, _roomy(cell.words(new))
            tail += capacity
        if frozen:
            cell.spread(mem, data, old, own, to, new)
        elif to != data:
            cell.spread(own, data, old, own, to, new)
        elif cell.words(new) - cell.words(old) == adds[4 * label + cell.FULL]:
            cell.make_room_behind_full(own, data, old, adds[4 * label + cell.FULL])
        else:
            copy_words(aside, 0, own, data, cell.words(old))
            cell.spread(aside, 0, old, own, to, new)
        cell.write(own, own64, row, new, to, capacity)
    return tail


@loop
def fill(
    ix: Arrays,
    scratch: Scratch,
    ids: I32,
    groups: I32,
    lo: I64,
    hi: I64,
    order: I32,
    adds: I32,
) -> int:
    """Write the queries into the room that `grow` made; adds is zero again after it.

    Returns the highest level that took one.
    """
    nodes, levels, own, own64 = ix.nodes, ix.levels, ix.own, ix.own64
    moved, heads = ix.moved, ix.heads
    base = len(ix.mem)
    n_cells = levels[1]
    labels, counts = scratch.labels, scratch.old
    highest = n_cells - 1
    for i in range(len(order)):
        q = order[i]
        p = pieces(nodes, groups[q] if len(groups) > 0 else 0, lo[q], hi[q])
        k = cover(p.first, p.last, levels, ix.step, labels)
        for j in range(k + 3):
            kind = cell.FULL
            if j < k:
                label = labels[j]
            else:
                kind = j - k + 1
                label = p.opens if j == k else (p.closes if j == k + 1 else p.within)
                if label < 0:
                    continue
            if label >= n_cells:
                start, length, _ = _head(heads, label - n_cells)
                own[start - base + length - adds[3 * n_cells + label]] = ids[q]
                adds[3 * n_cells + label] -= 1
                highest = max(highest, label)
                continue
            w = address_of(moved, label) - base
            data, _ = cell.read(own, own64, w, counts)
            at = counts[kind] - adds[4 * label + kind]
            adds[4 * label + kind] -= 1
            own[cell.ids_at(data, counts, kind) + at] = ids[q]
            if kind != cell.FULL:
                ends = cell.ends_at(data, counts, kind) + at
                own64[ends] = hi[q] if kind == cell.CLOSES else lo[q]
                if kind == cell.WITHIN:
                    own64[ends + counts[kind]] = hi[q]
    level = 0
    while levels[level + 1] <= highest:
        level += 1
    return level


@loop
def settle(ix: Arrays, scratch: Scratch, touched: I32, n: int) -> int:
    """Order the ends in the touched cells; returns the largest number of queries within one."""
    own, own64, moved = ix.own, ix.own64, ix.moved
    base = len(ix.mem)
    n_cells = ix.levels[1]
    counts = scratch.old
    most = 0
    for i in range(n):
        c = np.int64(touched[i])
        if c < n_cells:
            data, _ = cell.read(own, own64, address_of(moved, c) - base, counts)
            ends, ids = data >> 1, cell.ids_at(data, counts, cell.OPENS)
            opens, closes = counts[cell.OPENS], counts[cell.CLOSES]
            cell.sort_ends(own, own64, ends, ids, opens, False)
            cell.sort_ends(own, own64, ends + opens, ids + opens, closes, True)
            most = max(most, counts[cell.WITHIN])
    return most


@loop
def take(
    ix: Arrays,
    scratch: Scratch,
    touched: I32,
    n: int,
    dead: npt.NDArray[np.bool_],
    tail: int,
) -> int:
    """Remove the dead ids from every touched place; returns the new tail of own."""
    mem, mem64, own, own64 = ix.mem, ix.mem64, ix.own, ix.own64
    moved, heads = ix.moved, ix.heads
    base = len(mem)
    n_cells = ix.levels[1]
    old, new, aside = scratch.old, scratch.new, scratch.words
    for i in range(n):
        label = np.int64(touched[i])
        if label >= n_cells:
            k = label - n_cells
            start, length, capacity = _head(heads, k)
            to = start - base
            if start < base:
                to, capacity = tail, (length + 1) & ~1
                tail += capacity
            left = 0
            for j in range(length):
                who = mem[start + j] if start < base else own[start - base + j]
                if not dead[who]:
                    own[to + left] = who
                    left += 1
            _set_head(heads, k, base + to, left, capacity)
            continue
        address = address_of(moved, label)
        if address < base:
            data, _ = cell.read(mem, mem64, address, old)
            row = _thaw(moved, label, base, tail)
            tail = row + LINE_WORDS
            to, capacity = row + 2, cell.INLINE_WORDS
            if cell.words(old) > capacity:
                to, capacity = tail, (cell.words(old) + 1) & ~1
                tail += capacity
            copy_words(aside, 0, mem, data, cell.words(old))
        else:
            row = address - base
            to, capacity = cell.read(own, own64, row, old)
            copy_words(aside, 0, own, to, cell.words(old))
        cell.prune(aside, old, dead, own, to, new)
        cell.write(own, own64, row, new, to, capacity)
    return tail


@leaf
def ask_for(mem: I32, own: I32, address: int) -> None:
    """Prefetch an address, without a branch on which memory it is in."""
    base = len(mem)
    prefetch(mem, min(address, max(base - 1, 0)))
    prefetch(own, max(address - base, 0))


@loop
def report(ix: Arrays, top: int, xs: I64, at: I32, begin: int, offsets: I64, out: I32) -> int:
    """Write what xs[begin:] find to out, from offsets[begin] on; offsets[i + 1] ends that of i.

    at[i] is the cell of xs[i], or -1. Returns the first i that did not fit (len(xs) if all did).
    """
    mem, mem64, own, own64 = ix.mem, ix.mem64, ix.own, ix.own64
    levels, moved, heads, step = ix.levels, ix.moved, ix.heads, ix.step
    base = len(mem)
    n = len(xs)
    o = offsets[begin]
    for i in range(begin, n):
        if i + 2 * FAR < n:
            if len(moved) > 0:
                prefetch(moved, max(np.int64(at[i + 2 * FAR]), 0))
            c = max(np.int64(at[i + FAR]), 0)
            ask_for(mem, own, address_of(moved, c))
            ask_for(mem, own, address_of(moved, c) + LINE_WORDS // 2)
            c = max(np.int64(at[i + NEAR]), 0)
            for level in range(1, top + 1):
                k = levels[level] - levels[1] + (c >> (step * level))
                ask_for(mem, own, heads[k, 0])
        c = np.int64(at[i])
        if c >= 0:
            address = address_of(moved, c)
            if address < base:
                o = cell.report(mem, mem64, address, xs[i], out, o)
            else:
                o = cell.report(own, own64, address - base, xs[i], out, o)
            if o < 0:
                return i
            for level in range(1, top + 1):
                start, length, _ = _head(heads, levels[level] - levels[1] + (c >> (step * level)))
                if o + length + LINE_WORDS > len(out):
                    return i
                put(out, o, mem, own, start, length)
                o += length
        offsets[i + 1] = o
    return n
