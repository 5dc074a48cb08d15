"""Probes of an index whose kernel looks up one value after the other and follows lists of ids."""

from __future__ import annotations

import numpy as np

from limen.indexes.protocol import I32, I64, Hits, plain
from limen.indexes.spare import Spare
from limen.kernels.id_lists import COUNT, FIND, REPORT

FEW = 256  # values from which the length of an answer is estimated

_NO_I32 = np.empty(0, np.int32)


class ListSearch:
    def __init__(self) -> None:
        self._ids, self._counts = Spare(np.int32), Spare(np.int32)
        self._offsets = Spare(np.int64)

    def _search(self, xs: I64, start: int, offsets: I64, out: I32, mode: int) -> int:
        """The kernel's search: goes on from `start`, returns the first value there was no room for."""
        raise NotImplementedError

    def stab(self, x: int) -> I32:
        return self.stab_many(np.array([x]))[1]

    def stab_many(self, xs: I64) -> Hits:
        xs = plain(xs, np.int64)
        n = len(xs)
        some = plain(xs[:: max(1, n // FEW)], np.int64)
        per_value = float(self._totals(some, COUNT).mean()) if n else 0.0
        offsets = self._offsets.empty(n + 1)[: n + 1]
        offsets[0] = 0
        out = self._ids.empty(int(1.1 * per_value * n) + 1024)
        done = 0
        while True:
            done = self._search(xs, done, offsets, out, REPORT)
            if done == n:
                return offsets, out[: offsets[-1]]
            larger = np.empty(2 * len(out), np.int32)
            larger[: offsets[done]] = out[: offsets[done]]
            out = larger

    def count_many(self, xs: I64) -> I32:
        return self._totals(plain(xs, np.int64), COUNT)

    def lists_many(self, xs: I64) -> I32:
        """How many lists that are not empty each value finds: the search without the report."""
        return self._totals(plain(xs, np.int64), FIND)

    def _totals(self, xs: I64, mode: int) -> I32:
        n = len(xs)
        offsets = self._offsets.empty(n + 1)[: n + 1]
        offsets[0] = 0
        self._search(xs, 0, offsets, _NO_I32, mode)
        found: I32 = self._counts.empty(n)[:n]
        np.subtract(offsets[1:], offsets[:-1], out=found, casting="same_kind")
        return found
