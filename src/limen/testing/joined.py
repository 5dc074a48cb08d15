"""Seeded results of a join of sliding windows, as the window-results paper's experiments make them.

Streams arrive at a steady or fluctuating rate; a new row joins rows of the other windows whose ages are
even, so a result lives until the oldest of its parents leaves its window. Time is in integers, `every` of
them between two updates; the initial stage is at time 0 and holds what is alive of the window before.

With `counted`, windows are of a number of rows: a result has its parents' places, not an expiration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

I64 = npt.NDArray[np.int64]
AT_ONCE = 100_000  # rows of a chunk


@dataclass(frozen=True)
class Joined:
    """
    >>> small = Joined(rows=1000, steps=10, row_bytes=100)
    >>> small.initial().column_names, len(small.initial()), len(small.update(1))
    (['key', 'generated', 'expires', 'body'], 1046, 200)
    """

    rows: int = 500_000  # alive at any time, about
    steps: int = 36  # updates until the window has rolled over
    every: int = 10_000  # time between two updates
    windows: int = 2  # that are joined
    keys: int = 100
    row_bytes: int = 1000
    power_law: float | None = None  # exponent of the keys' distribution; even if None
    fluctuation: float = 1.0  # by what factor the rate goes up and down
    counted: bool = False
    seed: int = 1

    @property
    def window(self) -> int:
        return self.steps * self.every

    @property
    def schema(self) -> pa.Schema:
        return self._drawn(0, 0).schema

    @property
    def counts(self) -> dict[str, tuple[str, int]]:
        """For `Archive.open`, if windows are counted."""
        return {f"w{i}": (f"place_{i}", self._arrivals) for i in range(self.windows)}

    def seen(self, step: int) -> dict[str, int]:
        """Rows that each counted window has seen by the end of a step."""
        return {f"w{i}": int(self._seen(step)) for i in range(self.windows)}

    def initial(self) -> pa.Table:
        """All that is alive at time 0."""
        parts = [self._drawn(step, self._results(step)) for step in range(1 - self.steps, 1)]
        whole = pa.concat_tables(parts)
        if self.counted:
            return whole
        return whole.filter(pa.array(whole.column("expires").to_numpy() > 0))

    def update(self, step: int) -> pa.Table:
        """What is generated in a step, from 1 on."""
        return self._drawn(step, self._results(step))

    # -- inside ----------------------------------------------------------------------------------

    @property
    def _arrivals(self) -> int:
        """Rows of a counted window."""
        return 10 * self.window

    @cached_property
    def _speeds(self) -> npt.NDArray[np.float64]:
        """How many times the steady rate: by step, and again from the beginning after many."""
        if self.fluctuation <= 1:
            return np.ones(1)
        drawn = np.random.default_rng([self.seed, 0]).uniform(-1, 1, 4 * self.steps)
        speeds: npt.NDArray[np.float64] = np.exp(drawn * np.log(self.fluctuation) / 2)
        return np.asarray(speeds / speeds.mean())

    def _speed(self, step: int) -> float:
        return float(self._speeds[step % len(self._speeds)])

    def _results(self, step: int) -> int:
        return round(self.rows * self.windows / self.steps * self._speed(step))

    def _seen(self, step: int) -> int:
        each = self._arrivals / self.steps
        passed = range(1 - self.steps, step + 1)
        return self._arrivals + round(sum(each * self._speed(s) for s in passed))

    def _drawn(self, step: int, n: int) -> pa.Table:
        rng = np.random.default_rng([self.seed, 1 + step + self.steps])
        generated = np.sort(rng.integers((step - 1) * self.every + 1, step * self.every + 1, n))
        columns: dict[str, pa.Array] = {"key": pa.array(self._keys(rng, n))}
        columns["generated"] = pa.array(generated)
        if self.counted:
            newest = self._newest(generated, step)
            for i in range(self.windows):
                ages = rng.integers(0, self._arrivals, n)
                columns[f"place_{i}"] = pa.array(newest - np.where(rng.random(n) < 0.5, ages, 0))
        else:
            lives = rng.integers(1, self.window + 1, (max(1, self.windows - 1), n)).min(axis=0)
            columns["expires"] = pa.array(generated + lives)
        length = max(0, self.row_bytes - 8 * len(columns))
        return pa.table({**columns, "body": _bodies(rng, n, length)})

    def _newest(self, generated: I64, step: int) -> I64:
        """The newest place in a window at these times."""
        before, after = self._seen(step - 1), self._seen(step)
        part = (generated - (step - 1) * self.every) / self.every
        found: I64 = (before + part * (after - before)).astype(np.int64)
        return found

    def _keys(self, rng: np.random.Generator, n: int) -> I64:
        if self.power_law is None:
            return rng.integers(0, self.keys, n)
        weights = np.arange(1, self.keys + 1) ** -self.power_law
        return rng.choice(self.keys, n, p=weights / weights.sum())


def _bodies(rng: np.random.Generator, n: int, length: int) -> pa.ChunkedArray:
    """Bytes that do not compress."""
    chunks = []
    for begin in range(0, n, AT_ONCE):
        rows = min(AT_ONCE, n - begin)
        offsets = np.arange(rows + 1, dtype=np.int32) * length
        data = rng.bytes(rows * length)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        chunks.append(pa.Array.from_buffers(pa.binary(), rows, buffers))
    return pa.chunked_array(chunks, pa.binary())
