"""The interval skip list of Hanson and Johnson (`kernels/is_list.py`): a rival.

It needs no domain and no grid, and is never laid out anew: an update changes the lists of a few edges,
and a probe follows pointers.

Not for several threads at once: an update uses working space of the index.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from limen.indexes.list_search import ListSearch
from limen.indexes.protocol import I32, I64, QueryTable, checked
from limen.kernels import is_list as kernel

LAST = np.iinfo(np.int64).max


class ISList(ListSearch):
    """With closed=False a range [lo, hi] stands for [lo, hi + 1), and ends at hi + 1."""

    name: ClassVar[str] = "is-list"

    def __init__(self, *, closed: bool = True) -> None:
        super().__init__()
        self._past = 0 if closed else 1
        self._table = QueryTable()
        self._ix = self._empty()

    def _empty(self) -> kernel.Arrays:
        return kernel.empty(1 - self._past)

    def __len__(self) -> int:
        return self._table.size

    # -- updates ---------------------------------------------------------------------------------

    def build(self, ids: I32, lo: I64, hi: I64) -> None:
        """Hold these queries and no others, in arrays that are no longer than needed."""
        ids, lo, hi = self._checked(ids, lo, hi)
        table = QueryTable()
        table.add(ids, lo, hi)
        self._ix = kernel.trim(_with(self._empty(), table, ids))
        self._table = table

    def insert(self, ids: I32, lo: I64, hi: I64) -> None:
        ids, lo, hi = self._checked(ids, lo, hi)
        self._table.add(ids, lo, hi)
        self._ix = _with(self._ix, self._table, ids)

    def delete(self, ids: I32) -> None:
        table = self._table
        ids = table.check_in(ids)
        kernel.take(self._ix, ids, table.lo, table.hi)
        levels = np.empty(len(table.lo), np.int8)
        done = 0
        while True:
            done = kernel.sweep(self._ix, ids, table.lo, table.hi, levels, done)
            if done == len(ids):
                break
            self._ix = kernel.enlarge(self._ix)
        table.remove(ids)

    def _checked(self, ids: I32, lo: I64, hi: I64) -> tuple[I32, I64, I64]:
        ids, lo, hi = checked(ids, lo, hi)
        if self._past and len(hi) and hi.max() == LAST:
            raise ValueError(f"id {ids[hi.argmax()]}: there is nothing behind hi {LAST}")
        return ids, lo, hi

    def _search(self, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
        return kernel.search(self._ix, xs, start, offsets, out, mode)

    def compact(self) -> None:
        """Lay every list out in one stretch of memory, until updates scatter them again."""
        self._ix = kernel.compact(self._ix)

    # -- size and shape --------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + sum(a.nbytes for a in self._ix if isinstance(a, np.ndarray))

    @property
    def entries(self) -> int:
        """Markers in lists."""
        state = self._ix.state
        return int(state[kernel.ENTRIES] - 1 - state[kernel.FREE_ENTRIES])

    @property
    def model_nbytes(self) -> int:
        """What is in use, as the CEI paper counts: 4 bytes a key, a pointer, an id.

        A node has a key and a list, a level of it an edge and a list, a marker an id and the next.
        The header is not counted.
        """
        state = self._ix.state
        return 8 * (int(state[kernel.LIVE_NODES] + state[kernel.LIVE_LEVELS]) + self.entries)

    def pieces(self, lo: int, hi: int) -> list[tuple[int, int, int]]:
        """The edges that [lo, hi] would be marked on: level, key of the first node, of the last.

        A lone point is at level -1. Both ends must be ends of queries that are in.
        """
        if lo > hi:
            raise ValueError(f"lo {lo} is above hi {hi}")
        ix, right = self._ix, hi + self._past
        x = self._node_at(lo)
        self._node_at(right)
        if lo == right:
            return [(-1, lo, lo)]
        found = []
        while (first := int(ix.key[x])) < right:
            at, level = int(ix.slot[x]), int(ix.height[x]) - 1
            while not (y := int(ix.forward[at + level])) or ix.key[y] > right:
                level -= 1
            found.append((level, first, int(ix.key[y])))
            x = y
        return found

    def _node_at(self, key: int) -> int:
        ix = self._ix
        x = y = 0
        for level in range(int(ix.state[kernel.TOP]) - 1, -1, -1):
            while (y := int(ix.forward[ix.slot[x] + level])) and ix.key[y] < key:
                x = y
        if y == 0 or ix.key[y] != key:
            raise ValueError(f"no query ends at {key}")
        return y


def _with(ix: kernel.Arrays, table: QueryTable, ids: I32) -> kernel.Arrays:
    """The arrays with these queries of the table put in."""
    done = 0
    while True:
        done = kernel.put(ix, ids, table.lo, table.hi, done)
        if done == len(ids):
            return ix
        ix = kernel.enlarge(ix)
