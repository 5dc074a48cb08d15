"""Brute force over queries sorted by their beginning (`kernels/sorted_scan.py`): the baseline.

An update sorts anew at the next probe. Needs no grid, no levels, no tuning: the second member of the
contract suite, and the rival that shows what an index is worth.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from limen.indexes.protocol import I32, I64, Hits, QueryTable, checked, plain
from limen.kernels import sorted_scan as kernel


class SortedScan:
    name: ClassVar[str] = "sorted-scan"

    def __init__(self) -> None:
        self._table = QueryTable()
        self._sorted: tuple[I64, I64, I64, I32] | None = None

    def __len__(self) -> int:
        return self._table.size

    def build(self, ids: I32, lo: I64, hi: I64) -> None:
        table = QueryTable()
        table.add(*checked(ids, lo, hi))
        self._table, self._sorted = table, None

    def insert(self, ids: I32, lo: I64, hi: I64) -> None:
        self._table.add(*checked(ids, lo, hi))
        self._sorted = None

    def delete(self, ids: I32) -> None:
        self._table.remove(self._table.check_in(ids))
        self._sorted = None

    def _arrays(self) -> tuple[I64, I64, I64, I32]:
        if self._sorted is None:
            ids = self._table.ids()
            ids = ids[np.argsort(self._table.lo[ids], kind="stable")]
            hi = self._table.hi[ids]
            self._sorted = self._table.lo[ids], hi, kernel.running_max(hi), ids
        return self._sorted

    def stab(self, x: int) -> I32:
        return self.stab_many(np.array([x]))[1]

    def stab_many(self, xs: I64) -> Hits:
        xs = plain(xs, np.int64)
        lo, hi, reach, ids = self._arrays()
        offsets = np.zeros(len(xs) + 1, np.int64)
        np.cumsum(self.count_many(xs), out=offsets[1:])
        out = np.empty(offsets[-1], np.int32)
        kernel.report(lo, hi, reach, ids, xs, offsets, out)
        return offsets, out

    def count_many(self, xs: I64) -> I32:
        xs = plain(xs, np.int64)
        lo, hi, reach, _ = self._arrays()
        found = np.empty(len(xs), np.int32)
        kernel.count(lo, hi, reach, xs, found)
        return found

    @property
    def nbytes(self) -> int:
        held = sum(a.nbytes for a in self._sorted) if self._sorted else 0
        return held + self._table.nbytes
