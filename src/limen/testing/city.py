"""A seeded city: vehicles that drive through its streets, rectangular fences, and the brute force that
judges who entered and left which.

The city is a plane of 30 km by 30 km, in metres. A vehicle drives along the streets from one place to the
next and waits there; its readings come once a second and are a metre off. Readings are numbered from 0:
all vehicles at the first second, then all of them at the next. Where the vehicles are at a second is a
function of the seed and of that second alone, so that any stretch of the stream can be had again, in any
process, in any order. About one reading in 20,000 is bad: it has no x, or NaN.

Fences and vehicles gather around the same centres. The brute force compares every reading of a vehicle
with the raw bounds of every fence, as they were drawn. It shares no code with the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SIDE = 30_000.0  # of the city, in metres
CENTRES = 16
SPREADS = (800.0, 2500.0)  # of a centre, in metres: log-uniform
CLUSTERED = 0.75  # of fences and vehicles; the others are anywhere
SIZES = (20.0, 500.0)  # of a fence's sides, in metres: log-uniform

STREETS = 100.0  # metres apart
ROAM = 1500.0  # how far from its home a vehicle goes, in metres: standard deviation
DRIVE = 600  # seconds from place to place, the wait there included
WAIT = 0.4  # of a drive, at most
NOISE = 1.0  # of a reading, in metres: standard deviation
BAD = 1 / 20_000
START = np.datetime64("2026-01-05T07:00:00", "us")  # of the first readings, in UTC
SECOND = 1_000_000
FOREVER = np.iinfo(np.int64).max
TOGETHER = 4096  # fences that the brute force looks at together

Bools = npt.NDArray[np.bool_]
F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

SCHEMA = pa.schema(
    {
        "reading": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
        "vehicle": pa.int64(),
        "x": pa.float64(),
        "y": pa.float64(),
    }
)
ATTRIBUTES = {name: SCHEMA.field(name).type for name in ("x", "y")}
FORMAT = "limen-city"  # for Spark


class Fences(NamedTuple):
    """Raw bounds, all included; row i has the id first_id + i."""

    first_id: int
    x_lo: F64
    x_hi: F64
    y_lo: F64
    y_hi: F64

    def frame(self) -> pa.Table:
        ids = np.arange(self.first_id, self.first_id + len(self.x_lo))
        return pa.table({"id": ids, **{name: getattr(self, name) for name in self._fields[1:]}})

    def sql(self, row: int) -> str:
        return (
            f"x BETWEEN {self.x_lo[row]:.1f} AND {self.x_hi[row]:.1f} AND "
            f"y BETWEEN {self.y_lo[row]:.1f} AND {self.y_hi[row]:.1f}"
        )

    def and_(self, more: Fences) -> Fences:
        assert more.first_id == self.first_id + len(self.x_lo)
        both = zip(self[1:], more[1:], strict=True)
        return Fences(self.first_id, *(np.concatenate(pair) for pair in both))

    def some(self, rows: I64 | Bools) -> tuple[F64, F64, F64, F64]:
        """The bounds of some rows."""
        return self.x_lo[rows], self.x_hi[rows], self.y_lo[rows], self.y_hi[rows]


class City:
    """
    >>> city = City(seed=7, vehicles=100)
    >>> [len(part) for part in city.readings(90, 250)]
    [10, 100, 50]
    >>> x, y = city.at(0)
    >>> later_x, later_y = city.at(1)
    >>> bool(np.hypot(later_x - x, later_y - y).max() < 50)
    True
    """

    def __init__(self, seed: int = 7, vehicles: int = 5000) -> None:
        self.seed, self.vehicles = seed, vehicles
        rng = np.random.default_rng([seed, 0])
        self.centres = rng.uniform(0.12 * SIDE, 0.88 * SIDE, (CENTRES, 2))
        self.spreads = _log_uniform(rng, SPREADS, CENTRES)
        rng = np.random.default_rng([seed, 1])
        self.homes = self._spots(rng, vehicles)
        self._lag = rng.integers(0, DRIVE, vehicles)
        self._driving = rng.uniform(1 - WAIT, 1, vehicles)  # of the time
        self._x_first = rng.random(vehicles) < 0.5
        self._places = lru_cache(maxsize=4)(self._draw_places)

    def fences(self, n: int, first_id: int = 0) -> Fences:
        rng = np.random.default_rng([self.seed, 2, first_id])
        middle = self._spots(rng, n)
        half = _log_uniform(rng, SIZES, (n, 2)) / 2
        low, high = middle - half, middle + half
        return Fences(first_id, low[:, 0], high[:, 0], low[:, 1], high[:, 1])

    def _spots(self, rng: np.random.Generator, n: int) -> F64:
        """Places around the centres, and some anywhere."""
        of = rng.integers(0, CENTRES, n)
        spots = self.centres[of] + rng.normal(0, 1, (n, 2)) * self.spreads[of, None]
        free = rng.random(n) >= CLUSTERED
        spots[free] = rng.uniform(0, SIDE, (np.count_nonzero(free), 2))
        return np.clip(spots, 0, SIDE)

    def _draw_places(self, number: int) -> F64:
        """Where each vehicle is as its drive of this number begins: a crossroads."""
        rng = np.random.default_rng([self.seed, 3, number])
        places = self.homes + rng.normal(0, ROAM, self.homes.shape)
        return np.round(np.clip(places, 0, SIDE) / STREETS) * STREETS

    def at(self, second: int) -> tuple[F64, F64]:
        """Where the vehicles are."""
        number, gone = np.divmod(second + self._lag, DRIVE)
        first = int(second // DRIVE)
        start, end = (
            np.where((number == first)[:, None], self._places(n), self._places(n + 1))
            for n in (first, first + 1)
        )
        way = end - start
        share = np.minimum(gone / DRIVE / self._driving, 1)
        metres = share * np.abs(way).sum(axis=1)
        before = np.where(self._x_first, np.abs(way[:, 0]), np.abs(way[:, 1]))
        one, other = np.minimum(metres, before), np.maximum(metres - before, 0)
        x = start[:, 0] + np.sign(way[:, 0]) * np.where(self._x_first, one, other)
        y = start[:, 1] + np.sign(way[:, 1]) * np.where(self._x_first, other, one)
        off = np.random.default_rng([self.seed, 4, second]).normal(0, NOISE, (2, self.vehicles))
        return x + off[0], y + off[1]

    def readings(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """The readings from `first` up to, not including, `last`: a batch for each second."""
        while first < last:
            second, skipped = divmod(first, self.vehicles)
            part = self.second(second).slice(skipped, last - first)
            yield part
            first += len(part)

    def second(self, number: int) -> pa.RecordBatch:
        """A reading of every vehicle."""
        n = self.vehicles
        x, y = self.at(number)
        rng = np.random.default_rng([self.seed, 5, number])
        bad = rng.random(n) < BAD
        null = bad & (rng.random(n) < 0.5)
        when = pa.scalar(START + number * SECOND).cast(SCHEMA.field("at").type)
        columns = [
            pa.array(np.arange(number * n, (number + 1) * n)),
            pa.repeat(when, n),
            pa.array(np.arange(n)),
            pa.array(np.where(bad, np.nan, x), mask=null),
            pa.array(y),
        ]
        return pa.record_batch(columns, schema=SCHEMA)


def bad_readings(readings: pa.RecordBatch | pa.Table) -> Bools:
    """Which readings do not say where the vehicle is."""
    missing = pc.is_null(readings.column("x"), nan_is_null=True)
    return np.asarray(missing.to_numpy(zero_copy_only=False))


def seconds_of(times: pa.Array | pa.ChunkedArray) -> I64:
    """At which second of the city the times are."""
    since = times.cast(pa.int64()).to_numpy() - START.astype(np.int64)
    return np.asarray(since // SECOND)


def _log_uniform(
    rng: np.random.Generator, between: tuple[float, float], shape: int | tuple[int, int]
) -> F64:
    return np.exp(rng.uniform(math.log(between[0]), math.log(between[1]), shape))


class Crossing(NamedTuple):
    """A fence entered (or left) at one of the readings, and the version that it is by."""

    reading: int
    fence: int
    entered: bool
    version: int


class BruteForce:
    """All fences that ever were, each with the versions of the catalog in which it is in force."""

    def __init__(self, fences: Fences, version: int) -> None:
        assert fences.first_id == 0
        self.all = fences
        self._since = np.full(len(fences.x_lo), version)
        self._until = np.full(len(fences.x_lo), FOREVER)

    def add(self, fences: Fences, version: int) -> None:
        self.all = self.all.and_(fences)
        self._since = np.append(self._since, np.full(len(fences.x_lo), version))
        self._until = np.append(self._until, np.full(len(fences.x_lo), FOREVER))

    def remove(self, ids: I64, version: int) -> None:
        self._until[ids] = version

    def in_force(self, version: int) -> Bools:
        """For every id, whether a version has the fence."""
        return (self._since <= version) & (version < self._until)

    def holds(self, fences: I64, x: F64, y: F64) -> Bools:
        """Pair by pair, whether the fence holds the place."""
        x_lo, x_hi, y_lo, y_hi = self.all.some(fences)
        return (x_lo <= x) & (x <= x_hi) & (y_lo <= y) & (y <= y_hi)

    def crossings(self, x: F64, y: F64, batch: I64, versions: Sequence[int]) -> list[Crossing]:
        """What one vehicle crosses on its way: its good readings, in order, the batch that each is in,
        and the version of each batch.

        A vehicle enters a fence that is added around it, and leaves one that is removed, where it was
        read last and before it moves on.
        """
        steps: list[tuple[int, int]] = []  # a reading, and by which version it is looked at
        begins = np.searchsorted(batch, np.arange(len(versions) + 1)).tolist()
        for number, version in enumerate(versions):
            begin, end = begins[number : number + 2]
            if begin and steps[-1][1] != version:
                steps.append((begin - 1, version))
            steps += ((reading, version) for reading in range(begin, end))
        reading, by = np.array(steps, np.int64).reshape(-1, 2).T
        found = []
        for start in range(0, len(self.all.x_lo), TOGETHER):
            fences = slice(start, start + TOGETHER)
            inside = (self.all.x_lo[fences] <= x[:, None]) & (x[:, None] <= self.all.x_hi[fences])
            inside &= self.all.y_lo[fences] <= y[:, None]
            inside &= y[:, None] <= self.all.y_hi[fences]
            inside = inside[reading]
            for version in set(versions):
                inside[by == version] &= self.in_force(version)[fences]
            changed = inside.copy()
            changed[1:] ^= inside[:-1]
            for step, fence in np.argwhere(changed).tolist():
                what = Crossing(
                    int(reading[step]), start + fence, bool(inside[step, fence]), int(by[step])
                )
                found.append(what)
        return found


# -- for Spark -----------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def city(seed: int, vehicles: int) -> City:
    """Lives as long as the worker."""
    return City(seed, vehicles)


def feed() -> Any:
    """The city as a streaming source for Spark, `spark.readStream.format("limen-city")`.

    Offsets are numbers of readings. Options: `vehicles` (5,000), and those of the market's feed.
    """
    from limen.testing.feed import FeedReader, MarketFeed, Stretch

    class CityReader(FeedReader):
        def __init__(self, options: Mapping[str, str]) -> None:
            super().__init__(options)
            self.vehicles = int(options.get("vehicles", 5000))

        def read(self, partition: Stretch) -> Iterator[pa.RecordBatch]:
            return city(self.seed, self.vehicles).readings(partition.first, partition.last)

    class CityFeed(MarketFeed):
        @classmethod
        def name(cls) -> str:
            return FORMAT

        def schema(self) -> str:
            return "reading bigint, at timestamp, vehicle bigint, x double, y double"

        def streamReader(self, schema: object) -> CityReader:  # noqa: N802
            return CityReader(self.options)

    return CityFeed


def counted(crossings: Any) -> Any:
    """A frame of crossings with the numbers of enters and exits as metrics of its query, "limen"."""
    from pyspark.sql import functions as f

    kinds = {"enters": "enter", "exits": "exit"}
    counts = (f.count_if(f.col("crossing") == kind).alias(name) for name, kind in kinds.items())
    return crossings.observe("limen", *counts)
