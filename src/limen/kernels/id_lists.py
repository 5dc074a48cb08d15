"""Lists of query ids behind virtual constructs, as the CEI and VCI papers keep them.

Both papers cut a query into predefined intervals, the virtual constructs, each with a label; the list of
a construct holds the ids of the queries cut into it. A list is linked: `head[label]` is its first
entry, an entry is an id and the next entry, new ids come first, 0 is the end. So a construct costs
4 bytes and an entry 8, which is the papers' own count (CEI, section 4).

How queries are cut and which constructs lie over a value is each index's own (`ui.py`, `dlist.py`,
`cei_plain.py`, `sci.py`, `lci.py` and what they have derived from them). They share the frame:

- Positions 0..r-1 stand for the values of the domain. With closed = 0 position u is the unit [u, u + 1)
  and any real value in it; with closed = 1 it is the integer u. A query is the positions p..q.
- A piece of a query is a row (label, first, last): a construct and the positions it covers. Closed
  constructs that follow each other share an end, where the query would be found twice; the papers do
  not say what to do about it. Here, a piece whose last position another piece covers too (or that is
  not the query's at all, as when a single point is held in the construct [p, p + 1]) has its label as
  ~label, its id is kept as ~id, and a search that stands on that last position passes it over.
- With bitmaps, row j of `bits` has a bit for every label from base + step * j on: 1 if the construct
  covers j and its list is not empty. Bits are set for the first entry of a list and cleared after the
  last (VCI, section 2.2).

Cost: an id is put in O(1) a piece, taken out by walking half of its lists on average.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limen.kernels.bitmap import clear_bits, set_bits
from limen.kernels.compiled import leaf, loop
from limen.kernels.memory import I32, I64

U64 = npt.NDArray[np.uint64]

USED, FREE, HELD = 0, 1, 2  # of `state`: entries begun, first one to use again, entries in lists
FIND, COUNT, REPORT = (
    0,
    1,
    2,
)  # a search writes the labels of lists with ids, counts ids, writes ids


class Layout(NamedTuple):
    """What an index over a domain consists of, before there is a query in it."""

    heads: int  # lists, that is labels
    defined: int  # constructs, as the papers count them
    pieces: int  # that a query has at most
    rows: int = 0  # of bits
    bits: int = 0  # a row
    base: int = 0
    step: int = 0
    group: int = 0  # labels a value, where constructs begin at every value
    endings: I64 = np.empty(
        0, np.int64
    )  # distances of constructs that end at a value from its group
    distances: I64 = np.empty(0, np.int64)  # of `lci_bv_dt.py`
    ends: int = 0


class Constructs(NamedTuple):
    head: I32
    entries: I32  # (n, 2): id, next
    state: I64
    bits: U64  # (rows, words)
    endings: I64
    distances: I64
    ends: int
    base: int
    step: int
    group: int
    r: int
    length: int  # of the longest construct, a power of two
    levels: int  # log2(length) + 1
    closed: int


def empty(layout: Layout, r: int, length: int, closed: int) -> Constructs:
    words = (layout.bits + 63) // 64
    return Constructs(
        head=np.full(layout.heads, 0, np.int32),  # in memory: zeros of no page are found too fast
        entries=np.zeros((1, 2), np.int32),
        state=np.array([1, 0, 0], np.int64),
        bits=np.zeros((layout.rows, words), np.uint64),
        endings=layout.endings,
        distances=layout.distances,
        ends=layout.ends,
        base=layout.base,
        step=layout.step,
        group=layout.group,
        r=r,
        length=length,
        levels=length.bit_length(),
        closed=closed,
    )


@leaf
def cut(pieces: I64, n: int, label: int, first: int, last: int) -> int:
    """Append a piece; returns how many there are."""
    pieces[n, 0], pieces[n, 1], pieces[n, 2] = label, first, last
    return n + 1


@loop
def put(ix: Constructs, ids: I32, offsets: I64, pieces: I64, n: int) -> None:
    """Put ids[i] into the lists of the pieces offsets[i]:offsets[i + 1], i < n; there is room."""
    for i in range(n):
        for j in range(offsets[i], offsets[i + 1]):
            label, who = pieces[j, 0], ids[i]
            if label < 0:
                label, who = ~label, ~who
            if ix.head[label] == 0:
                set_bits(ix.bits, ix.base, ix.step, label, pieces[j, 1], pieces[j, 2])
            _push(ix, label, who)


@loop
def take(ix: Constructs, ids: I32, offsets: I64, pieces: I64, n: int) -> None:
    """Take them out of the lists again."""
    for i in range(n):
        for j in range(offsets[i], offsets[i + 1]):
            label, who = pieces[j, 0], ids[i]
            if label < 0:
                label, who = ~label, ~who
            _pull(ix, label, who)
            if ix.head[label] == 0:
                clear_bits(ix.bits, ix.base, ix.step, label, pieces[j, 1], pieces[j, 2])


@leaf
def _push(ix: Constructs, label: int, who: int) -> None:
    entry = ix.state[FREE]
    if entry != 0:
        ix.state[FREE] = ix.entries[entry, 1]
    else:
        entry = ix.state[USED]
        ix.state[USED] += 1
    ix.entries[entry, 0] = who
    ix.entries[entry, 1] = ix.head[label]
    ix.head[label] = entry
    ix.state[HELD] += 1


@leaf
def _pull(ix: Constructs, label: int, who: int) -> None:
    before = np.int32(0)
    entry = ix.head[label]
    while ix.entries[entry, 0] != who:
        before = entry
        entry = ix.entries[entry, 1]
    if before == 0:
        ix.head[label] = ix.entries[entry, 1]
    else:
        ix.entries[before, 1] = ix.entries[entry, 1]
    ix.entries[entry, 1] = ix.state[FREE]
    ix.state[FREE] = entry
    ix.state[HELD] -= 1


@leaf
def report(ix: Constructs, label: int, at_end: bool, mode: int, out: I32, o: int) -> int:
    """Add the ids of a list (or its label) to the o found so far; -1 if there is no room for them.

    `at_end`: the value is the last position of the construct.
    """
    entry = ix.head[label]
    if entry == 0:
        return o
    if mode == FIND:
        if o == len(out):
            return -1
        out[o] = label
        return o + 1
    while entry != 0:
        who = ix.entries[entry, 0]
        entry = ix.entries[entry, 1]
        if who < 0:
            if at_end:
                continue
            who = ~who
        if mode == REPORT:
            if o == len(out):
                return -1
            out[o] = who
        o += 1
    return o


@loop
def lay_out(heads: I32, entries: I32, laid: I32, n: int) -> int:
    """Copy lists into laid[n:], each in one stretch, and have the heads lead there; returns the new n.

    Entries come in the order of insertion, so that a list is all over memory and following it means
    to wait for each entry; laid out, the next entry is in the same cache line.
    """
    for label in range(len(heads)):
        entry = heads[label]
        if entry != 0:
            heads[label] = n
        while entry != 0:
            laid[n, 0] = entries[entry, 0]
            entry = entries[entry, 1]
            laid[n, 1] = n + 1 if entry != 0 else 0
            n += 1
    return n


def every(first: npt.NDArray[Any], last: npt.NDArray[Any]) -> I64:
    """Rows (label, first, last) of constructs labelled in this order."""
    first, last = np.ravel(first), np.ravel(last)
    return np.column_stack([np.arange(len(first)), first, last]).astype(np.int64)
