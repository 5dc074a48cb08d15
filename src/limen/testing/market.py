"""A seeded market: trades of symbols whose prices walk, standing queries around the prices, and the
brute force that judges the answers.

Trades are numbered from 0 and come in blocks. A block is a function of the seed and its number alone, so
that any stretch of the stream can be had again, in any process, in any order. What makes it so: the price
with which a symbol opens a block lies on a sum of sines, which costs the same at every block; within the
block the price walks at random, trade by trade, to where the next block opens (a bridge). About one trade
in 20,000 is bad: its price is null or NaN.

The brute force compares a trade with the raw bounds of every query, as they were drawn. It shares no code
with the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

BLOCK = 10_000  # trades
SYMBOLS = 2_000
WHEEL = 1 << 16  # places on the wheel that draws a trade's symbol; a busy symbol has more of them
START = np.datetime64("2026-01-05T14:30:00", "us")  # of the first trade, in UTC
APART = 10  # microseconds from trade to trade
STEP = 0.0004  # of a price from trade to trade, relative
PERIODS = (40.0, 4000.0)  # of the sines, in blocks
SINES = 5
SWAY = 0.03  # of the sines together, relative to the price: standard deviation
BAD = 1 / 20_000

ANY = -1  # the symbol of a query that names none
AWAY = 0.08  # how far from the opening price queries lie, relative
WIDTHS = (3e-5, 0.023)  # of a query with a symbol, relative to the price; log-uniform
NARROW = (1e-6, 1e-3)  # of a query without
TAIL = 0.95  # queries without a symbol lie above this quantile of the prices
WITHOUT_SYMBOL = 0.1
WITH_VOLUME = 0.05
FOREVER = np.iinfo(np.int64).max

F64 = npt.NDArray[np.float64]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

SCHEMA = pa.schema(
    {
        "trade": pa.int64(),
        "time": pa.timestamp("us", "UTC"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "volume": pa.int64(),
    }
)
ATTRIBUTES = {name: SCHEMA.field(name).type for name in ("symbol", "price", "volume")}


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
    """
    >>> market = Market(seed=7)
    >>> [len(part) for part in market.trades(9_990, 25_000)]
    [10, 10000, 5000]
    >>> market.block(2).slice(3, 1).equals(next(market.trades(20_003, 20_004)))
    True
    """

    def __init__(self, seed: int = 7) -> None:
        self.seed = seed
        rng = np.random.default_rng([seed, 0])
        self.names = pa.array([f"S{i:04d}" for i in range(SYMBOLS)])
        self.opening = np.exp(rng.normal(4.0, 1.1, SYMBOLS))
        often = 1.0 / np.arange(1, SYMBOLS + 1) ** 0.6
        spins = (np.arange(WHEEL) + 0.5) / WHEEL
        place = np.searchsorted(np.cumsum(often / often.sum()), spins)
        self._wheel = rng.permutation(SYMBOLS).astype(np.int16)[place]
        periods = np.exp(rng.uniform(math.log(PERIODS[0]), math.log(PERIODS[1]), (SINES, SYMBOLS)))
        self._turn = 2 * np.pi / periods
        self._phase = rng.uniform(0, 2 * np.pi, (SINES, SYMBOLS))
        heights = np.sqrt(periods)
        self._height = SWAY * heights / np.sqrt((heights**2 / 2).sum(axis=0))

    def queries(self, n: int, first_id: int = 0) -> Queries:
        rng = np.random.default_rng([self.seed, 1, first_id])
        symbol = rng.integers(0, SYMBOLS, n).astype(np.int32)
        centre = self.opening[symbol] * np.exp(rng.uniform(-AWAY, AWAY, n))
        width = np.exp(rng.uniform(math.log(WIDTHS[0]), math.log(WIDTHS[1]), n))
        free = rng.random(n) < WITHOUT_SYMBOL
        tail, top = np.quantile(self.opening, TAIL), self.opening.max()
        symbol[free] = ANY
        centre[free] = np.exp(rng.uniform(np.log(tail), np.log(top), np.count_nonzero(free)))
        width[free] = np.exp(
            rng.uniform(math.log(NARROW[0]), math.log(NARROW[1]), np.count_nonzero(free))
        )
        volume = np.where(rng.random(n) < WITH_VOLUME, rng.integers(100, 2000, n), 0)
        half = centre * width / 2
        return Queries(first_id, symbol, centre - half, centre + half, volume)

    def trades(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The trades from `first` up to, not including, `last`: a batch for each block they touch."""
        while first < last:
            number, skipped = divmod(first, BLOCK)
            part = self.block(number).slice(skipped, last - first)
            yield part
            first += len(part)

    def block(self, number: int) -> pa.RecordBatch:
        rng = np.random.default_rng([self.seed, 2, number])
        symbol = self._wheel[rng.integers(0, WHEEL, BLOCK)]
        price = self._prices(number, symbol, rng.normal(0, STEP, BLOCK))
        bad = rng.random(BLOCK) < BAD
        null = bad & (rng.random(BLOCK) < 0.5)
        trade = np.arange(number * BLOCK, (number + 1) * BLOCK)
        columns = [
            pa.array(trade),
            pa.array(START + trade * APART).cast(SCHEMA.field("time").type),
            self.names.take(pa.array(symbol)),
            pa.array(np.where(bad, np.nan, price), mask=null),
            pa.array(rng.integers(1, 2000, BLOCK)),
        ]
        return pa.record_batch(columns, schema=SCHEMA)

    def _prices(self, number: int, symbol: I16, steps: F64) -> F64:
        """Each symbol's walk, from where it opens this block to where it opens the next."""
        order = np.argsort(symbol, kind="stable")  # of 16 bits: a radix sort, 10 times as fast
        which = symbol[order]
        first = np.flatnonzero(np.diff(which, prepend=-1))
        count = np.diff(first, append=BLOCK)
        walked = np.cumsum(steps)
        walked -= np.repeat(walked[first] - steps[first], count)
        share = (np.arange(BLOCK) - np.repeat(first, count) + 1) / np.repeat(count, count)
        here, next_ = self._sway(number), self._sway(number + 1)
        missed = next_[which] - here[which] - np.repeat(walked[first + count - 1], count)
        price = np.empty(BLOCK)
        price[order] = self.opening[which] * np.exp(here[which] + walked + share * missed)
        return price

    def _sway(self, number: int) -> F64:
        """How far each symbol's price is from its first one as a block opens: a logarithm."""
        waves = self._height * np.sin(self._turn * number + self._phase)
        return np.asarray(waves.sum(axis=0))


def bad_trades(trades: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Which trades have no price."""
    missing = pc.is_null(trades.column("price"), nan_is_null=True)
    return np.asarray(missing.to_numpy(zero_copy_only=False))


class BruteForce:
    """All queries that ever were, each with the versions of the catalog in which it is in force."""

    def __init__(self, queries: Queries, version: int) -> None:
        self._all = queries
        self._since = np.full(len(queries.lo), version)
        self._until = np.full(len(queries.lo), FOREVER)

    def add(self, queries: Queries, version: int) -> None:
        assert queries.first_id == len(self._since)
        both: list[list[Any]] = [list(self._all[1:]), list(queries[1:])]
        self._all = Queries(0, *map(np.concatenate, zip(*both, strict=True)))
        self._since = np.append(self._since, np.full(len(queries.lo), version))
        self._until = np.append(self._until, np.full(len(queries.lo), FOREVER))

    def remove(self, ids: I64, version: int) -> None:
        self._until[ids] = version

    def in_force(self, version: int) -> npt.NDArray[np.bool_]:
        """For every id, whether a version has the query."""
        return (self._since <= version) & (version < self._until)

    def matching(self, version: int, symbol: str, price: float, volume: int) -> set[int]:
        code = int(symbol[1:])
        held = (self._all.lo <= price) & (price <= self._all.hi)
        held &= (self._all.symbol == code) | (self._all.symbol == ANY)
        held &= self._all.least_volume <= volume
        held &= self.in_force(version)
        return set(np.flatnonzero(held).tolist())
