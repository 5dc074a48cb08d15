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
        some = plain(xs[:: max(1, len(xs) // FEW)], np.int64)
        each = float(self.count_many(some).mean()) if len(xs) else 0.0
        return self._found(xs, REPORT, each)

    def lists_many(self, xs: I64) -> I32:
        """How many lists that are not empty each value finds: the search without the report."""
        return self._differences(self._found(plain(xs, np.int64), FIND, 8)[0])

    def _found(self, xs: I64, mode: int, each: float) -> Hits:
        """What the values find, about so much each."""
        offsets = self._begun(len(xs))
        out = self._ids.empty(int(1.1 * each * len(xs)) + 1024)
        done = 0
        while True:
            done = self._search(xs, done, offsets, out, mode)
            if done == len(xs):
                return offsets, out[: offsets[-1]]
            larger = np.empty(2 * len(out), np.int32)
            larger[: offsets[done]] = out[: offsets[done]]
            out = larger

    def count_many(self, xs: I64) -> I32:
        xs = plain(xs, np.int64)
        offsets = self._begun(len(xs))
        self._search(xs, 0, offsets, _NO_I32, COUNT)
        return self._differences(offsets)

    def _begun(self, n: int) -> I64:
        offsets: I64 = self._offsets.empty(n + 1)[: n + 1]
        offsets[0] = 0
        return offsets

    def _differences(self, offsets: I64) -> I32:
        n = len(offsets) - 1
        found: I32 = self._counts.empty(n)[:n]
        np.subtract(offsets[1:], offsets[:-1], out=found, casting="same_kind")
        return found
