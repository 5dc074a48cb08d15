"""Counting what a value finds, mostly without looking at a query.

Every cell is cut into up to 2**bits parts. Where no query begins or ends inside a part, all its values
find equally many, and the count is kept; where one does, the value's cell is looked at. The table of
counts belongs to one state of the index and is made anew after a change.

Cost: one look-up a value; a part takes 2 bytes, or 4 where a value finds 65,535 queries or more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.kernels import cells as cell
from limen.kernels.cei import Arrays, Scratch, address_of
from limen.kernels.compiled import compiled, leaf, loop
from limen.kernels.grid import BRANCH, locate
from limen.kernels.memory import I32, I64

Tallies = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
NO_TALLY = 0xFFFFFFFF  # in uint16, its low half


@leaf
def _count_above(levels: I64, heads: I64, step: int, top: int, c: int) -> int:
    found = 0
    for level in range(1, top + 1):
        k = levels[level] - levels[1] + (c >> (step * level))
        found += heads[k, 1] & 0xFFFFFFFF
    return found


@compiled
def part_layout(nodes: I64, bits: int) -> tuple[I64, int]:
    """Cut every cell into up to 2**bits parts: by node its first part and its bits, and how many.

    A part is the unit of counting: where no query begins or ends inside it, its count is one number.
    """
    layout = np.zeros((len(nodes), 2), np.int64)
    parts = 0
    for node in range(len(nodes)):
        shift, last = nodes[node, 1], nodes[node, 2]
        if shift < BRANCH:
            layout[node, 0] = parts
            layout[node, 1] = min(bits, shift)
            parts += (last + 1) << layout[node, 1]
    return layout, parts


@leaf
def _part(nodes: I64, layout: I64, node: int, x: int) -> int:
    while True:
        origin, shift, last = nodes[node, 0], nodes[node, 1], nodes[node, 2]
        cut = layout[node, 1]
        slot = ((last + 1) << cut) - 1
        if x < origin:
            slot = 0
        else:
            at = np.uint64(x - origin) >> np.uint64((shift & (BRANCH - 1)) - cut)
            if at < np.uint64(slot):
                slot = np.int64(at)
        if shift < BRANCH:
            return layout[node, 0] + slot
        node = nodes[node, 3] + slot


@leaf
def _parts_before(change: int, first: int, width: int, parts: int) -> int:
    """How many of a cell's parts begin before the ordinal `change`."""
    if change <= first:
        return 0
    whole = np.uint64(change - first - 1) >> np.uint64(width)
    return parts if whole >= np.uint64(parts) else np.int64(whole) + 1


@leaf
def _tally_cell(
    mem64: I64,
    data: int,
    counts: I64,
    first: int,
    width: int,
    parts: int,
    at: int,
    tallies: npt.NDArray[np.uint32],
) -> None:
    """Add to the tallies of a cell's parts the queries that begin or end in the cell."""
    opens = cell.ends_at(data, counts, cell.OPENS)
    closes = cell.ends_at(data, counts, cell.CLOSES)
    within = cell.ends_at(data, counts, cell.WITHIN)
    for j in range(counts[cell.OPENS]):
        for part in range(_parts_before(mem64[opens + j], first, width, parts), parts):
            tallies[at + part] += np.uint32(1)
    for j in range(counts[cell.CLOSES]):
        for part in range(_parts_before(mem64[closes + j] + 1, first, width, parts)):
            tallies[at + part] += np.uint32(1)
    for j in range(counts[cell.WITHIN]):
        begin = _parts_before(mem64[within + j], first, width, parts)
        end = _parts_before(mem64[within + counts[cell.WITHIN] + j] + 1, first, width, parts)
        for part in range(begin, end):
            tallies[at + part] += np.uint32(1)
    for j in range(counts[cell.OPENS] + counts[cell.CLOSES] + 2 * counts[cell.WITHIN]):
        ending = counts[cell.OPENS] <= j < counts[cell.OPENS] + counts[cell.CLOSES]
        ending |= j >= counts[cell.OPENS] + counts[cell.CLOSES] + counts[cell.WITHIN]
        change = mem64[opens + j] + ending  # the first ordinal with another count
        part = 0
        if change > first:
            part = _parts_before(change, first, width, parts)  # the part that begins with it ..
            if part < parts and change == first + (part << width):
                continue
            part -= 1  # .. or the one that it splits
        tallies[at + part] = NO_TALLY


@loop
def tally(
    ix: Arrays, scratch: Scratch, top: int, layout: I64, tallies: npt.NDArray[np.uint32]
) -> int:
    """Fill the count of every part, NO_TALLY where a query begins or ends inside it.

    Returns no less than the largest count.

    The first part of a group reaches down to the lowest ordinal and its last up to the highest:
    a change at the very start of a cell can only be in such a first part, hence inside it.
    """
    mem, mem64, own, own64 = ix.mem, ix.mem64, ix.own, ix.own64
    nodes, levels, moved, heads = ix.nodes, ix.levels, ix.moved, ix.heads
    base = len(mem)
    counts = scratch.old
    most = np.int64(0)
    for node in range(len(nodes)):
        origin, shift, last = nodes[node, 0], nodes[node, 1], nodes[node, 2]
        if shift >= BRANCH:
            continue
        cut = layout[node, 1]
        for slot in range(last + 1):
            c = nodes[node, 3] + slot
            at = layout[node, 0] + (slot << cut)
            first, width, parts = origin + (slot << shift), shift - cut, 1 << cut
            address = address_of(moved, c)
            if address < base:
                data, _ = cell.read(mem, mem64, address, counts)
            else:
                data, _ = cell.read(own, own64, address - base, counts)
            above = counts[cell.FULL] + _count_above(levels, heads, ix.step, top, c)
            ending = counts[cell.OPENS] + counts[cell.CLOSES] + counts[cell.WITHIN]
            most = max(most, above + ending)
            for part in range(parts):
                tallies[at + part] = above
            if address < base:
                _tally_cell(mem64, data, counts, first, width, parts, at, tallies)
            else:
                _tally_cell(own64, data, counts, first, width, parts, at, tallies)
    return most


@loop
def count(
    ix: Arrays,
    scratch: Scratch,
    top: int,
    layout: I64,
    tallies: Tallies,
    groups: I32,
    xs: I64,
    found: I32,
) -> None:
    """found[i] = how many queries xs[i] finds; the tallies may be left out (empty)."""
    mem, mem64, own, own64 = ix.mem, ix.mem64, ix.own, ix.own64
    nodes, levels, moved, heads = ix.nodes, ix.levels, ix.moved, ix.heads
    base = len(mem)
    counts = scratch.old
    none = NO_TALLY >> (32 - 8 * tallies.itemsize)
    flat = len(groups) == 0 and len(tallies) > 0 and nodes[0, 1] < BRANCH
    origin, width, last = nodes[0, 0], np.uint64(0), np.uint64(0)
    if flat:  # the common grid, its few numbers kept in registers
        width = np.uint64(nodes[0, 1] - layout[0, 1])
        last = np.uint64(((nodes[0, 2] + 1) << layout[0, 1]) - 1)
    for i in range(len(xs)):
        x = xs[i]
        group = np.int64(groups[i]) if len(groups) > 0 else 0
        if group < 0:
            found[i] = 0
            continue
        if len(tallies) > 0:
            if flat:
                part = min(np.uint64(max(x, origin) - origin) >> width, last)
                n = np.int64(tallies[part])
            else:
                n = np.int64(tallies[_part(nodes, layout, group, x)])
            if n != none:
                found[i] = n
                continue
        c = locate(nodes, group, x)
        address = address_of(moved, c)
        if address < base:
            n = cell.count(mem, mem64, address, x, counts)
        else:
            n = cell.count(own, own64, address - base, x, counts)
        found[i] = n + _count_above(levels, heads, ix.step, top, c)
