"""A seeded market for the demo: symbols whose prices walk, standing queries around the prices, and
the brute force that judges the engine's answers.

The brute force compares an event with the raw bounds of every query, as they were drawn; it shares no
code with the engine.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SYMBOLS = 2_000
ANY = -1  # the symbol of a query that names none
WIDTHS = (3e-5, 0.023)  # of a query with a symbol, relative to the price; log-uniform
NARROW = (1e-6, 1e-3)  # of a query without
TAIL = 0.95  # queries without a symbol lie above this quantile of the prices
WITHOUT_SYMBOL = 0.1
WITH_VOLUME = 0.05
STEP = 0.0004  # of an event's price, relative
AWAY = 0.08  # how far from the price queries lie, relative
FOREVER = np.iinfo(np.int32).max

F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class Queries(NamedTuple):
    """Raw bounds, both included; row i has the id first_id + i."""

    first_id: int
    symbol: I32
    lo: F64
    hi: F64
    least_volume: I64  # 0 where the query has no condition on it

    def frame(self, names: pa.Array) -> pa.Table:
        symbols = pa.DictionaryArray.from_arrays(
            pa.array(np.maximum(self.symbol, 0), mask=self.symbol == ANY), names
        )
        return pa.table(
            {
                "id": np.arange(self.first_id, self.first_id + len(self.lo)),
                "symbol": symbols,
                "price_lo": self.lo,
                "price_hi": self.hi,
                "volume_lo": pa.array(self.least_volume, mask=self.least_volume == 0),
            }
        )

    def sql(self, row: int, names: pa.Array) -> str:
        parts = [] if self.symbol[row] == ANY else [f"symbol = '{names[int(self.symbol[row])]}'"]
        parts.append(f"price BETWEEN {self.lo[row]:.4f} AND {self.hi[row]:.4f}")
        if self.least_volume[row]:
            parts.append(f"volume >= {self.least_volume[row]}")
        return " AND ".join(parts)


class Market:
    def __init__(self, seed: int = 7) -> None:
        self._rng = np.random.default_rng(seed)
        self.names = pa.array([f"S{i:04d}" for i in range(SYMBOLS)])
        self.price = np.exp(self._rng.normal(4.0, 1.1, SYMBOLS))
        busy = 1.0 / np.arange(1, SYMBOLS + 1) ** 0.6
        self._busy = self._rng.permutation(np.cumsum(busy / busy.sum()))
        self._order = np.argsort(self._busy)

    def queries(self, n: int, first_id: int = 0) -> Queries:
        rng = self._rng
        symbol = rng.integers(0, SYMBOLS, n).astype(np.int32)
        centre = self.price[symbol] * np.exp(rng.uniform(-AWAY, AWAY, n))
        width = np.exp(rng.uniform(math.log(WIDTHS[0]), math.log(WIDTHS[1]), n))
        free = rng.random(n) < WITHOUT_SYMBOL
        tail, top = np.quantile(self.price, TAIL), self.price.max()
        symbol[free] = ANY
        centre[free] = np.exp(rng.uniform(np.log(tail), np.log(top), np.count_nonzero(free)))
        width[free] = np.exp(
            rng.uniform(math.log(NARROW[0]), math.log(NARROW[1]), np.count_nonzero(free))
        )
        volume = np.where(rng.random(n) < WITH_VOLUME, rng.integers(100, 2000, n), 0)
        half = centre * width / 2
        return Queries(first_id, symbol, centre - half, centre + half, volume)

    def events(self, n: int) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
        """A batch of trades, and which of them are bad (no price, or NaN)."""
        rng = self._rng
        symbol = self._order[np.searchsorted(np.sort(self._busy), rng.random(n))]
        order = np.argsort(symbol, kind="stable")
        steps = np.cumsum(rng.normal(0, STEP, n))
        first = np.flatnonzero(np.diff(symbol[order], prepend=-1))
        before = np.repeat(steps[first], np.diff(np.append(first, n)))
        price = np.empty(n)
        price[order] = self.price[symbol[order]] * np.exp(steps - before)
        last = np.append(first[1:], n) - 1
        self.price[symbol[order[last]]] = price[order[last]]
        bad = np.zeros(n, np.bool_)
        bad[rng.integers(0, n, max(1, n // 20_000))] = True
        null = bad & (rng.random(n) < 0.5)
        shown = np.where(bad, np.nan, price)
        table = pa.table(
            {
                "symbol": self.names.take(pa.array(symbol)),
                "price": pa.array(shown, mask=null),
                "volume": rng.integers(1, 2000, n),
            }
        )
        return table, bad


class BruteForce:
    """All queries that ever were, each with the batches in which it is in force."""

    def __init__(self, queries: Queries) -> None:
        self._all = queries
        self._since = np.zeros(len(queries.lo), np.int32)
        self._until = np.full(len(queries.lo), FOREVER, np.int32)

    def add(self, queries: Queries, batch: int) -> None:
        both: list[list[Any]] = [list(self._all[1:]), list(queries[1:])]
        self._all = Queries(0, *map(np.concatenate, zip(*both, strict=True)))
        self._since = np.append(self._since, np.full(len(queries.lo), batch, np.int32))
        self._until = np.append(self._until, np.full(len(queries.lo), FOREVER, np.int32))

    def remove(self, ids: I64, batch: int) -> None:
        self._until[ids] = batch

    def matching(self, batch: int, symbol: str, price: float, volume: int) -> set[int]:
        code = int(symbol[1:])
        held = (self._all.lo <= price) & (price <= self._all.hi)
        held &= (self._all.symbol == code) | (self._all.symbol == ANY)
        held &= self._all.least_volume <= volume
        held &= (self._since <= batch) & (batch < self._until)
        return set(np.flatnonzero(held).tolist())
