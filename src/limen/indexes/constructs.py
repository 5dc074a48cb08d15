"""The indexes of the CEI and VCI papers over virtual constructs, one class for all of them.

What differs is in the kernel of each (`kernels/ui.py`, `dlist.py`, `cei_plain.py`, `sci.py`, `sci_bc.py`,
`lci.py`, `lci_bc.py`, `lci_bv.py`, `lci_bv_dt.py`): which constructs there are, how a query is cut into
them, how a value finds the ones over it. The lists behind them are in `kernels/id_lists.py`.

Ranges are positions of a domain 0..r-1, both ends included; `bounded.py` stands before this and
brings ranges and values into positions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import ModuleType

import numpy as np

from limen.indexes.list_search import ListSearch
from limen.indexes.protocol import I32, I64, QueryTable, checked
from limen.kernels import id_lists

PIECES = 1 << 18  # of queries that are cut at a time
LARGEST = 2**31 - 1  # entries and lists are numbered in 32 bits


class Constructs(ListSearch):
    def __init__(self, name: str, kernel: ModuleType, r: int, length: int, closed: bool) -> None:
        super().__init__()
        self.name, self._kernel = name, kernel
        self._layout: id_lists.Layout = kernel.layout(r, length, int(closed))
        self._refuse_too_large(r)
        self._r, self._length, self._closed = r, length, int(closed)
        self._ix = self._empty()
        self._table = QueryTable()

    def _empty(self) -> id_lists.Constructs:
        return id_lists.empty(self._layout, self._r, self._length, self._closed)

    def _refuse_too_large(self, r: int) -> None:
        if self._layout.heads > LARGEST:
            raise ValueError(
                f"a domain of {r:,} values is too large for {self.name}, which would need "
                f"{self._layout.heads:,} lists"
            )
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        needed = 4 * self._layout.heads + self._layout.rows * self._layout.bits // 8
        if needed > memory:
            raise ValueError(
                f"a domain of {r:,} values is too large for {self.name}, which would take "
                f"{needed / 2**30:,.0f} GiB empty, and there are {memory / 2**30:,.0f}; shorter "
                "constructs, or lci-bv-dt or cei-plain, take less"
            )

    def __len__(self) -> int:
        return self._table.size

    # -- updates ---------------------------------------------------------------------------------

    def build(self, ids: I32, lo: I64, hi: I64) -> None:
        ids, lo, hi = checked(ids, lo, hi)
        table, before = QueryTable(), self._ix
        table.add(ids, lo, hi)
        self._ix = self._empty()
        try:
            self._put(ids, lo, hi)
        except (ValueError, MemoryError):
            self._ix = before
            raise
        self._table = table
        self._set_entries(self._ix.entries[: self._ix.state[id_lists.USED]].copy())

    def insert(self, ids: I32, lo: I64, hi: I64) -> None:
        ids, lo, hi = checked(ids, lo, hi)
        self._table.add(ids, lo, hi)
        try:
            self._put(ids, lo, hi)
        except (ValueError, MemoryError):
            self._table.remove(ids)
            raise

    def delete(self, ids: I32) -> None:
        ids = self._table.check_in(ids)
        self._take(ids, self._table.lo[ids], self._table.hi[ids])
        self._table.remove(ids)

    def _put(self, ids: I32, lo: I64, hi: I64) -> None:
        """Put them into their lists, or, if there is no room for all, none of them."""
        done = 0
        for offsets, pieces, n in self._cut(lo, hi):
            try:
                self._make_room(int(offsets[n]))
            except (ValueError, MemoryError):
                self._take(ids[:done], lo[:done], hi[:done])
                raise
            id_lists.put(self._ix, ids[done:], offsets, pieces, n)
            done += n

    def _take(self, ids: I32, lo: I64, hi: I64) -> None:
        done = 0
        for offsets, pieces, n in self._cut(lo, hi):
            id_lists.take(self._ix, ids[done:], offsets, pieces, n)
            done += n

    def _cut(self, lo: I64, hi: I64) -> Iterator[tuple[I64, I64, int]]:
        """The pieces of the queries, so many queries at a time as fit."""
        room = min(PIECES, int((hi - lo + 1).sum()))
        pieces = np.empty((room + self._layout.pieces, 3), np.int64)
        offsets = np.zeros(room + 1, np.int64)
        done = 0
        while done < len(lo):
            end = min(len(lo), done + room)
            after = self._kernel.decompose(self._ix, lo[:end], hi[:end], done, offsets, pieces)
            yield offsets, pieces, after - done
            done = after

    def _make_room(self, more: int) -> None:
        held = int(self._ix.state[id_lists.HELD])
        needed = held + more + 1
        if needed <= len(self._ix.entries):
            return
        if needed > LARGEST:
            raise ValueError(f"{self.name} would hold {needed:,} entries; at most {LARGEST:,} fit")
        longer = np.zeros((min(LARGEST, max(needed, 2 * held + 64)), 2), np.int32)
        longer[: len(self._ix.entries)] = self._ix.entries
        self._set_entries(longer)

    def _set_entries(self, entries: I32) -> None:
        self._ix = self._ix._replace(entries=entries)

    def _search(self, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
        done: int = self._kernel.search(self._ix, xs, start, offsets, out, mode)
        return done

    def compact(self) -> None:
        """Lay every list out in one stretch of memory, until updates scatter them again."""
        laid = np.zeros((self.entries + 1, 2), np.int32)
        used = id_lists.lay_out(self._ix.head, self._ix.entries, laid, 1)
        self._ix.state[[id_lists.USED, id_lists.FREE]] = used, 0
        self._set_entries(laid)

    # -- shape and size --------------------------------------------------------------------------

    def pieces(self, lo: int, hi: int) -> list[tuple[int, int, int]]:
        """The constructs that a query is cut into: label, first and last position."""
        one = np.array([lo], np.int64), np.array([hi], np.int64)
        for offsets, pieces, _ in self._cut(*one):
            rows = pieces[: offsets[1]].tolist()
        return [(label if label >= 0 else ~label, first, last) for label, first, last in rows]

    def constructs(self) -> I64:
        """Every construct that there is: rows of label, first and last position."""
        found: I64 = self._kernel.constructs(self._r, self._length, self._closed)
        return found

    @property
    def entries(self) -> int:
        """Ids in all lists together."""
        return int(self._ix.state[id_lists.HELD])

    @property
    def nbytes(self) -> int:
        ix = self._ix
        arrays = ix.head, ix.entries, ix.state, ix.bits, ix.endings, ix.distances
        return sum(array.nbytes for array in arrays) + self._table.nbytes

    @property
    def model_nbytes(self) -> int:
        """The papers' count: 4 bytes a construct, 8 an entry, the bitmaps, 4 a distance."""
        layout = self._layout
        bits = layout.rows * layout.bits
        return 4 * layout.defined + 8 * self.entries + -(-bits // 8) + 4 * len(layout.distances)
