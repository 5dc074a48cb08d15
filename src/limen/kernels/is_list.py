"""The interval skip list: a skip list over the ends of the queries whose edges carry their ids.

After Hanson and Johnson, "Selection predicate indexing for active databases using interval skip
lists" (1996). There is a node for every distinct end of a range. A node of height h has an edge at
each level below h, to the next node that is as high; half of the nodes are higher than 1, half of
these higher than 2, and so on. With closed = 1 the range [lo, hi] ends at its nodes lo and hi and
contains both; with closed = 0 it stands for [lo, hi + 1): its right node is hi + 1, which it does
not contain.

Markers are ids in linked lists, one list an edge and one a node (`eq`). Nodes and heights determine
them; this is the invariant:

- An edge from X to Y carries the ranges that contain all between X and Y, unless an edge at a higher
  level above it does too. The edges of a range are thus a path from its left node to its right one,
  a staircase up and down.
- A node carries the ranges that contain it and have a marked edge that begins or ends there, or that
  consist of it alone.

A search for x goes down the levels. It meets on each the one edge over x, unless it ends at a node x,
where `eq` has the rest: so every range is found once.

When a new node splits edges, the markers on them can move up, as the two halves are shorter: an edge
that a range could not fill may now begin or end at the node. When a node goes, they move down. A
node goes when no range ends there any more; all ranges that are marked on an edge into it then go on
behind it.

Node 0 is the header: as high as a node can be, left of all, without a key. As nothing leads to it, 0
as an edge's end is the end of the list; entry 0 is the end of a list of markers. Zeroed memory
thus is an empty list. Nodes (by height) and entries that are given up are used again.

Costs, expected: O(log n + found) a search, O(log n) edges a range, O(log n) to put it in, and besides
that what the markers cost that a new node moves; taking out walks the list of every edge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import leaf, loop
from limen.kernels.id_lists import FIND, REPORT, lay_out
from limen.kernels.memory import I32, I64

I8 = npt.NDArray[np.int8]

MAX_HEIGHT = 24
SEED = 0x2545F4914F6CDD1D
MOST = 2**31 - 1  # rows of a pool

# Where `state` has what.
RANDOM = 0  # the generator's state, never 0
TOP = 1  # levels in use
NODES, SLOTS, ENTRIES = 2, 3, 4  # begun: the header and entry 0 are among them
FREE_ENTRY, FREE_ENTRIES = 5, 6  # the first entry to use again, and how many there are
LIVE_NODES, LIVE_LEVELS = 7, 8  # in use, the header not counted
SHORT = 9  # the pool that has run out: NODES, SLOTS or ENTRIES
FREE_NODE = 10  # + height: the first node to use again; the next is where its lowest edge leads


class Arrays(NamedTuple):
    key: I64  # by node
    height: I8
    slot: I32  # where its levels begin
    eq: I32  # its first marker
    owners: I32  # how many ends of ranges are there
    forward: I32  # by slot: the node that the edge leads to
    marks: I32  # the edge's first marker
    entries: I32  # (n, 2): id, next
    state: I64
    path: I32  # scratch: the last node before a key, by level
    ways: I64  # scratch, (2, MAX_HEIGHT): edges between a node's neighbours
    closed: int


def empty(
    closed: int, *, nodes: int = 16, slots: int = 64, entries: int = 64, seed: int = SEED
) -> Arrays:
    """No ranges, and pools of these sizes."""
    slots = max(slots, MAX_HEIGHT)
    state = np.zeros(FREE_NODE + MAX_HEIGHT + 1, np.int64)
    state[RANDOM] = seed
    state[NODES], state[SLOTS], state[ENTRIES] = 1, MAX_HEIGHT, 1
    height = np.zeros(nodes, np.int8)
    height[0] = MAX_HEIGHT
    return Arrays(
        key=np.zeros(nodes, np.int64),
        height=height,
        slot=np.zeros(nodes, np.int32),
        eq=np.zeros(nodes, np.int32),
        owners=np.zeros(nodes, np.int32),
        forward=np.zeros(slots, np.int32),
        marks=np.zeros(slots, np.int32),
        entries=np.zeros((entries, 2), np.int32),
        state=state,
        path=np.zeros(MAX_HEIGHT, np.int32),
        ways=np.zeros((2, MAX_HEIGHT), np.int64),
        closed=closed,
    )


def _resized(ix: Arrays, pool: int, rows: int) -> Arrays:
    def resized(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        other = np.zeros((rows, *array.shape[1:]), array.dtype)
        kept = int(ix.state[pool])
        other[:kept] = array[:kept]
        return other

    names = {
        NODES: ("key", "height", "slot", "eq", "owners"),
        SLOTS: ("forward", "marks"),
        ENTRIES: ("entries",),
    }
    return ix._replace(**{name: resized(getattr(ix, name)) for name in names[pool]})


def enlarge(ix: Arrays) -> Arrays:
    """With twice the pool that has run out."""
    pool = int(ix.state[SHORT])
    rows = len({NODES: ix.key, SLOTS: ix.forward, ENTRIES: ix.entries}[pool])
    if rows == MOST:
        raise MemoryError(
            "an interval skip list numbers at most 2**31 - 1 nodes, levels or markers"
        )
    return _resized(ix, pool, min(2 * rows + 8, MOST))


def trim(ix: Arrays) -> Arrays:
    """With pools that end where what is in use does."""
    for pool in (NODES, SLOTS, ENTRIES):
        ix = _resized(ix, pool, int(ix.state[pool]))
    return ix


def compact(ix: Arrays) -> Arrays:
    """With the markers of every list in one stretch."""
    held = int(ix.state[ENTRIES] - ix.state[FREE_ENTRIES])
    laid = np.zeros((held, 2), np.int32)
    used = lay_out(ix.eq, ix.entries, laid, 1)
    used = lay_out(ix.marks, ix.entries, laid, used)
    ix.state[[ENTRIES, FREE_ENTRY, FREE_ENTRIES]] = used, 0, 0
    return ix._replace(entries=laid)


@leaf
def _room(ix: Arrays) -> int:
    """Entries to be had."""
    return len(ix.entries) - ix.state[ENTRIES] + ix.state[FREE_ENTRIES]


@leaf
def _push(ix: Arrays, heads: I32, at: int, who: int) -> None:
    entries, state = ix.entries, ix.state
    entry = state[FREE_ENTRY]
    if entry != 0:
        state[FREE_ENTRY] = entries[entry, 1]
        state[FREE_ENTRIES] -= 1
    else:
        entry = state[ENTRIES]
        state[ENTRIES] += 1
    entries[entry, 0] = who
    entries[entry, 1] = heads[at]
    heads[at] = entry


@leaf
def _free(ix: Arrays, entry: int) -> None:
    ix.entries[entry, 1] = ix.state[FREE_ENTRY]
    ix.state[FREE_ENTRY] = entry
    ix.state[FREE_ENTRIES] += 1


@leaf
def _pull(ix: Arrays, heads: I32, at: int, who: int) -> None:
    entries = ix.entries
    before = np.int32(0)
    entry = heads[at]
    while entry != 0 and entries[entry, 0] != who:
        before = entry
        entry = entries[entry, 1]
    if entry != 0:
        if before == 0:
            heads[at] = entries[entry, 1]
        else:
            entries[before, 1] = entries[entry, 1]
        _free(ix, entry)


@leaf
def _pull_all(ix: Arrays, heads: I32, at: int) -> None:
    entry = heads[at]
    heads[at] = 0
    while entry != 0:
        after = ix.entries[entry, 1]
        _free(ix, entry)
        entry = after


@leaf
def _draw(state: I64) -> int:
    """A height: xorshift, whose lowest bits are counted as long as they are set."""
    bits = state[RANDOM]
    bits ^= bits << 13
    bits ^= (bits >> 7) & ((1 << 57) - 1)
    bits ^= bits << 17
    state[RANDOM] = bits
    height = 1
    while height < MAX_HEIGHT and bits & 1:
        bits >>= 1
        height += 1
    return height


@leaf
def _find(ix: Arrays, key: int) -> int:
    """The node at key, or 0; the path to it is left in `path`."""
    x, y = 0, 0
    for level in range(ix.state[TOP] - 1, -1, -1):
        y = ix.forward[ix.slot[x] + level]
        while y != 0 and ix.key[y] < key:
            x = y
            y = ix.forward[ix.slot[x] + level]
        ix.path[level] = x
    return y if y != 0 and ix.key[y] == key else 0


@leaf
def _new_node(ix: Arrays, key: int, height: int) -> int:
    """A node without edges; there is room."""
    state = ix.state
    x = state[FREE_NODE + height]
    if x != 0:
        state[FREE_NODE + height] = ix.forward[ix.slot[x]]
    else:
        x = state[NODES]
        ix.height[x] = height
        ix.slot[x] = state[SLOTS]
        state[NODES] += 1
        state[SLOTS] += height
    state[LIVE_NODES] += 1
    state[LIVE_LEVELS] += height
    ix.key[x] = key
    return x


@leaf
def _make(ix: Arrays, lo: I64, hi: I64, key: int) -> int:
    """The node at key, made if there is none; 0, and nothing changed, if there is no room."""
    slot, forward, marks, path, state = ix.slot, ix.forward, ix.marks, ix.path, ix.state
    x = _find(ix, key)
    if x != 0:
        return x
    if state[NODES] == len(ix.key):
        state[SHORT] = NODES
        return 0
    if state[SLOTS] + MAX_HEIGHT > len(forward):
        state[SHORT] = SLOTS
        return 0
    drawn = state[RANDOM]
    height = _draw(state)
    split = 0
    for level in range(height):
        if level >= state[TOP]:
            path[level] = 0
        entry = marks[slot[path[level]] + level]
        while entry != 0:
            split += 1
            entry = ix.entries[entry, 1]
    if _room(ix) < 2 * split:
        state[RANDOM] = drawn
        state[SHORT] = ENTRIES
        return 0
    x = _new_node(ix, key, height)
    state[TOP] = max(state[TOP], height)
    for level in range(height):
        at = slot[path[level]] + level
        forward[slot[x] + level] = forward[at]
        forward[at] = x
    _raise_markers(ix, lo, hi, x)
    return x


@leaf
def _raise_markers(ix: Arrays, lo: I64, hi: I64, x: int) -> None:
    """Spread what was on the edges that node x splits over those before it and behind it.

    A range that was on the edge at level i gets the highest edge behind x, and the highest before x,
    that it fills. The edge at level j + 1 behind x replaces that at level j and the level's path from
    there on; that path is marked, as the edges above it were too long for the range.
    The highest level is first: what is put on an edge is not met again.
    """
    key, slot, eq, entries = ix.key, ix.slot, ix.eq, ix.entries
    forward, marks, path = ix.forward, ix.marks, ix.path
    mine, height = slot[x], ix.height[x]
    for i in range(height - 1, -1, -1):
        at = slot[path[i]] + i
        entry = marks[at]
        marks[at] = 0
        while entry != 0:
            after = entries[entry, 1]
            who = entries[entry, 0]
            left, right = lo[who], hi[who] + (1 - ix.closed)
            j = i
            y = forward[mine + j]
            while j + 1 < height:
                end = forward[mine + j + 1]
                if end == 0 or key[end] > right:
                    break
                while y != end:
                    _pull(ix, marks, slot[y] + j, who)
                    _pull(ix, eq, y, who)
                    y = forward[slot[y] + j]
                j += 1
            _push(ix, marks, mine + j, who)
            j = i
            while j + 1 < height:
                y = path[j + 1]
                if y == 0 or key[y] < left:
                    break
                while y != path[j]:
                    _pull(ix, marks, slot[y] + j, who)
                    y = forward[slot[y] + j]
                    _pull(ix, eq, y, who)
                j += 1
            at_j = slot[path[j]] + j
            entries[entry, 1] = marks[at_j]
            marks[at_j] = entry
            _push(ix, eq, x, who)
            entry = after


@leaf
def _step(ix: Arrays, x: int, level: int, right: int) -> int:
    """The highest level whose edge from x ends at or before `right`; the search begins at `level`.

    There is one, and x is higher than `level`.
    """
    at = ix.slot[x]
    while level + 1 < ix.height[x]:
        y = ix.forward[at + level + 1]
        if y == 0 or ix.key[y] > right:
            break
        level += 1
    y = ix.forward[at + level]
    while y == 0 or ix.key[y] > right:
        level -= 1
        y = ix.forward[at + level]
    return level


@leaf
def _edges(ix: Arrays, x: int, right: int) -> int:
    """On how many edges a range from node x to `right` is marked."""
    n, level = 0, 0
    while ix.key[x] < right:
        level = _step(ix, x, level, right)
        x = ix.forward[ix.slot[x] + level]
        n += 1
    return n


@loop
def put(ix: Arrays, ids: I32, lo: I64, hi: I64, start: int) -> int:
    """Put ids[start:] in; lo and hi have the ranges of all, by id.

    Returns the first that was not put in as a pool lacked room (len(ids) if there was none). After
    `enlarge` it must be called again from there: an end of that range may have its node already.
    """
    slot, eq, marks, state = ix.slot, ix.eq, ix.marks, ix.state
    for i in range(start, len(ids)):
        who = ids[i]
        last = hi[who]
        right = last + (1 - ix.closed)
        x = _make(ix, lo, hi, lo[who])
        if x == 0 or _make(ix, lo, hi, right) == 0:
            return i
        if _room(ix) < 2 * state[NODES] and _room(ix) < 2 * _edges(ix, x, right) + 1:
            state[SHORT] = ENTRIES
            return i
        ix.owners[x] += 1
        _push(ix, eq, x, who)
        level = 0
        while ix.key[x] < right:
            level = _step(ix, x, level, right)
            _push(ix, marks, slot[x] + level, who)
            x = ix.forward[slot[x] + level]
            if ix.key[x] <= last:
                _push(ix, eq, x, who)
        ix.owners[x] += 1
    return len(ids)


@loop
def take(ix: Arrays, ids: I32, lo: I64, hi: I64) -> None:
    """Take the markers of these ranges off; `sweep` must follow."""
    slot, eq, marks = ix.slot, ix.eq, ix.marks
    for i in range(len(ids)):
        who = ids[i]
        last = hi[who]
        right = last + (1 - ix.closed)
        x = _find(ix, lo[who])
        ix.owners[x] -= 1
        _pull(ix, eq, x, who)
        level = 0
        while ix.key[x] < right:
            level = _step(ix, x, level, right)
            _pull(ix, marks, slot[x] + level, who)
            x = ix.forward[slot[x] + level]
            if ix.key[x] <= last:
                _pull(ix, eq, x, who)
        ix.owners[x] -= 1


@loop
def sweep(ix: Arrays, ids: I32, lo: I64, hi: I64, levels: I8, start: int) -> int:
    """Remove the nodes at the ends of ids[start:], all taken, at which no range ends any more.

    `levels` is scratch by id. Returns the first for which room for entries was lacking (len(ids) if
    there was none): to be called again from there after `enlarge`.
    """
    for i in range(start, len(ids)):
        for end in range(2):
            who = ids[i]
            x = _find(ix, lo[who] if end == 0 else hi[who] + (1 - ix.closed))
            if x != 0 and ix.owners[x] == 0 and not _remove(ix, x, levels):
                return i
    return len(ids)


@leaf
def _remove(ix: Arrays, x: int, levels: I8) -> bool:
    """Take out node x, to which `path` leads; False, and nothing changed, if there is no room."""
    slot, forward, marks, path, state = ix.slot, ix.forward, ix.marks, ix.path, ix.state
    mine, height = slot[x], ix.height[x]
    for level in range(height):
        entry = marks[mine + level]
        while entry != 0:
            levels[ix.entries[entry, 0]] = level
            entry = ix.entries[entry, 1]
    if _room(ix) < _needed(ix, x, levels):
        state[SHORT] = ENTRIES
        return False
    _pull_all(ix, ix.eq, x)
    for level in range(height):
        _pull_all(ix, marks, mine + level)
        forward[slot[path[level]] + level] = forward[mine + level]
    _lower_markers(ix, x, levels)
    forward[mine] = state[FREE_NODE + height]
    state[FREE_NODE + height] = x
    state[LIVE_NODES] -= 1
    state[LIVE_LEVELS] -= height
    while state[TOP] > 0 and forward[state[TOP] - 1] == 0:
        state[TOP] -= 1
    return True


@leaf
def _needed(ix: Arrays, x: int, levels: I8) -> int:
    """How many entries `_lower_markers` will put in new places, at most."""
    slot, forward, path, ways = ix.slot, ix.forward, ix.path, ix.ways
    mine, height = slot[x], ix.height[x]
    ways[0, 0] = 0
    ways[1, 0] = 0
    for j in range(height - 1):
        n, y = 0, path[j + 1]
        while y != 0 and y != path[j]:
            y = forward[slot[y] + j]
            n += 1
        ways[0, j + 1] = ways[0, j] + n
        n, y = 0, forward[mine + j]
        while forward[mine + j + 1] != 0 and y != forward[mine + j + 1]:
            y = forward[slot[y] + j]
            n += 1
        ways[1, j + 1] = ways[1, j] + n
    needed = 0
    for a in range(height):
        entry = ix.marks[slot[path[a]] + a]
        while entry != 0:
            b = levels[ix.entries[entry, 0]]
            low = min(a, b)
            needed += 2 * (ways[0, a] - ways[0, low] + ways[1, b] - ways[1, low])
            entry = ix.entries[entry, 1]
    return needed


@leaf
def _lower_markers(ix: Arrays, x: int, levels: I8) -> None:
    """Bring what was on the edges into node x, at level a, to where it belongs without x.

    levels[id] is the level b at which the range went on behind x. It fills the joined edge at the
    lower of the two levels and none above. On the side that was higher it goes down to there: from
    the neighbour at level a on the path of level a - 1 to the neighbour at that level, and so on.
    The lowest level is first: what is put on an edge is not met again.
    """
    slot, eq, entries, forward, marks = ix.slot, ix.eq, ix.entries, ix.forward, ix.marks
    path = ix.path
    mine, height = slot[x], ix.height[x]
    for a in range(height):
        at = slot[path[a]] + a
        entry = marks[at]
        marks[at] = 0
        while entry != 0:
            after = entries[entry, 1]
            who = entries[entry, 0]
            b = levels[who]
            low = min(a, b)
            for j in range(low, a):
                y = path[j + 1]
                while y != path[j]:
                    _push(ix, marks, slot[y] + j, who)
                    y = forward[slot[y] + j]
                    _push(ix, eq, y, who)
            for j in range(low, b):
                y = forward[mine + j]
                while y != forward[mine + j + 1]:
                    _push(ix, marks, slot[y] + j, who)
                    _push(ix, eq, y, who)
                    y = forward[slot[y] + j]
            at_low = slot[path[low]] + low
            entries[entry, 1] = marks[at_low]
            marks[at_low] = entry
            entry = after


@leaf
def _collect(entries: I32, entry: int, label: int, mode: int, out: I32, o: int) -> int:
    """Add the ids of a list (or its label) to the o found so far; -1 if there is no room for them."""
    if mode == FIND and entry != 0:
        if o == len(out):
            return -1
        out[o] = label
        return o + 1
    while entry != 0:
        if mode == REPORT:
            if o == len(out):
                return -1
            out[o] = entries[entry, 0]
        o += 1
        entry = entries[entry, 1]
    return o


@loop
def search(ix: Arrays, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
    """Find the ranges over each value from `start` on, of which offsets[start] is given.

    offsets[i + 1] is the running total after xs[i], of ids (COUNT), which REPORT also writes to out,
    or of lists that are not empty (FIND), of which the slot is written, or ~node for the node's own.
    Returns the first value for which room was lacking.
    """
    key, slot, forward, marks, entries = ix.key, ix.slot, ix.forward, ix.marks, ix.entries
    top = ix.state[TOP]
    o = offsets[start]
    for i in range(start, len(xs)):
        k = xs[i]
        x = 0
        for level in range(top - 1, -1, -1):
            y = forward[slot[x] + level]
            while y != 0 and key[y] < k:
                x = y
                y = forward[slot[x] + level]
            if y != 0 and key[y] == k:  # lower edges end there too
                o = _collect(entries, ix.eq[y], ~y, mode, out, o)
                break
            at = slot[x] + level
            o = _collect(entries, marks[at], at, mode, out, o)
            if o < 0:
                break
        if o < 0:
            return i
        offsets[i + 1] = o
    return len(xs)
