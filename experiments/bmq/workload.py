"""The streams and queries of section 5.1, and several indexes fed with the same readings in turn.

Queries have a lower bound chosen at random and all the same width. A stream is a random walk: a step
goes up or down, its size is exponential with the mean that the fluctuation level asks for, and the walk
turns back at both ends of the domain. The paper takes its streams from traces that it does not give.

Readings come in batches of one tuple of each stream. A round is some consecutive tuples of all streams;
one index after the other goes through them, then comes the next round. Only `cross` is timed.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from limen.borders.bmq import BMQIndex, Crossings, Places
from limen.borders.diff_rmq import DiffRMQ
from limen.borders.streams import Batch, Streams

Array = npt.NDArray[Any]
ROUNDS = 5
WARM = 5  # tuples of each stream before the first round


def queries(
    n: int, width: float, domain: int, dimensions: int = 1, seed: int = 1
) -> tuple[Array, Array]:
    """First and last value of each, a column a dimension; width is a share of the domain."""
    rng = np.random.default_rng(seed)
    lo = rng.integers(1, domain, (n, dimensions))
    return lo, lo + max(1, round(width * domain)) - 1


def walks(
    streams: int,
    tuples: int,
    level: float,
    domain: int,
    dimensions: int = 1,
    *,
    kind: str = "exponential",
    diagonal: bool = False,
    seed: int = 2,
) -> Array:
    """By tuple, stream and dimension. Whatever the dimensions, a step is as long on average.

    `kind` "equal": every step is of the same size. In several dimensions a step goes in any direction, or
    equally far in every dimension if `diagonal`.
    """
    rng = np.random.default_rng(seed)
    shape = (tuples - 1, streams)
    size = rng.exponential(level * domain, shape)
    if kind == "equal":
        size[:] = level * domain
    towards = rng.standard_normal((*shape, dimensions))
    if diagonal:
        towards = np.sign(towards)
    towards /= np.sqrt((towards**2).sum(axis=2, keepdims=True))
    begin = rng.uniform(0, domain, (1, streams, dimensions))
    at = np.concatenate([begin, size[:, :, None] * towards]).cumsum(axis=0) % (2 * domain)
    values: Array = np.minimum(at, 2 * domain - at).astype(np.int64)  # folded at both ends
    return values


def fluctuation(values: Array, domain: int) -> float:
    """FL as in section 3.4: the average distance of two values, as a share of the domain."""
    steps = np.diff(values, axis=0).astype(float)
    return float(np.sqrt((steps**2).sum(axis=2)).mean() / domain)


def walked(lo: Array, hi: Array, values: Array) -> int:
    """Delta queries on the way from value to value: what the paper's search looks at."""
    total = 0
    for k in range(values.shape[2]):
        borders = np.sort(np.concatenate([lo[:, k], hi[:, k] + 1]))
        at = np.searchsorted(borders, values[:, :, k], side="right")
        total += int(np.abs(np.diff(at, axis=0)).sum())
    return total


class Fed:
    """An index with its own stream table."""

    def __init__(self, index: BMQIndex | DiffRMQ, streams: int, dimensions: int = 1) -> None:
        self.index = index
        self.streams, self.places = Streams(dimensions), Places(dimensions)
        self.streams.grow(streams)
        self._entities = np.arange(streams, dtype=np.int32)
        self.found = self.sum = 0

    def feed(self, values: Array) -> float:
        """Go through these tuples; returns the seconds in `cross`."""
        seconds = 0.0
        for row in values:
            batch = self.streams.arrange(self._entities, row)
            begin = time.perf_counter()
            crossings = self._cross(batch)
            seconds += time.perf_counter() - begin
            self.streams.settle(batch)
            self.found += len(crossings.found)
            self.sum += int((crossings.found.astype(np.int64) ** 2).sum())
        return seconds

    def _cross(self, batch: Batch) -> Crossings:
        if isinstance(self.index, DiffRMQ):
            return self.index.cross(batch, self.streams)
        return self.index.cross(batch, self.streams, self.places)


def in_turn(fed: dict[str, Fed], values: dict[str, Array]) -> dict[str, Any]:
    """By index: ns a reading in each round; what was looked at and found, and a sum over the ids."""
    for name, one in fed.items():
        one.feed(values[name][:WARM])
        one.index.accessed = one.found = one.sum = 0
    times: dict[str, list[float]] = {name: [] for name in fed}
    for i in range(ROUNDS):
        for name, one in fed.items():
            part = np.array_split(values[name][WARM:], ROUNDS)[i]
            times[name].append(one.feed(part) / (part.shape[0] * part.shape[1]) * 1e9)
    return {
        "search": times,
        "accessed": {name: one.index.accessed for name, one in fed.items()},
        "found": {name: one.found for name, one in fed.items()},
        "sum": {name: one.sum for name, one in fed.items()},
    }


def bmq(lo: Array, hi: Array) -> BMQIndex:
    index = BMQIndex(lo.shape[1])
    index.build(np.arange(len(lo), dtype=np.int32), lo, hi)
    return index
