"""Query sets and points for the benchmarks, seeded.

`paper`: the CEI paper's section 5: begins uniform in [1, r), lengths uniform in 1..W, points uniform.
`mixed`: lengths log-uniform over four decades, the domain sized for the wanted hits per point.
`walks`: the BMQ paper's section 5.1: streams of values whose steps have a given mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


class Workload(NamedTuple):
    name: str
    lo: I64  # both ends included
    hi: I64
    xs: I64

    @property
    def n(self) -> int:
        return len(self.lo)


def paper(n: int, r: int, w: int, points: int, seed: int = 1) -> Workload:
    rng = np.random.default_rng(seed)
    lo = rng.integers(1, r - 1, n)
    hi = lo + rng.integers(1, w + 1, n) - 1
    return Workload(f"n={n:,} r={r:,} W={w:,}", lo, hi, rng.integers(1, r, points))


def mixed(n: int, hits: float, points: int, seed: int = 1) -> Workload:
    rng = np.random.default_rng(seed)
    lengths = 10 ** rng.uniform(0, 4, n)
    r = int(lengths.sum() / hits)
    lo = rng.integers(0, r, n)
    name = f"n={n:,}, {hits:g} hits a point, lengths over four decades"
    return Workload(name, lo, lo + lengths.astype(np.int64), rng.integers(0, r, points))


def walks(
    streams: int, tuples: int, step: float, domain: int, dimensions: int = 1, seed: int = 2
) -> I64:
    """By tuple, stream and dimension: steps in any direction, of exponential length with this mean.

    They turn back at both ends of the domain.
    """
    rng = np.random.default_rng(seed)
    towards = rng.standard_normal((tuples - 1, streams, dimensions))
    towards *= rng.exponential(step, (tuples - 1, streams, 1)) / np.linalg.norm(
        towards, axis=2, keepdims=True
    )
    begin = rng.uniform(0, domain, (1, streams, dimensions))
    at = np.concatenate([begin, towards]).cumsum(axis=0) % (2 * domain)
    return np.minimum(at, 2 * domain - at).astype(np.int64)
