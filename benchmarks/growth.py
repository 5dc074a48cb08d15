"""What is left of the throughput when the query set grows a hundredfold at the same hits per event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limen.indexes.cei import CEI

from . import rivals
from .side_by_side import Row, compare, result
from .workloads import Workload, mixed, paper

SIZES = [100_000, 1_000_000, 10_000_000]
POINTS = 1_000_000
LEFT = 0.7


def run(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    sizes = SIZES[:2] if quick else SIZES
    rows: list[Row] = []
    for hits in (10, 100) if not quick else (10,):
        for name, make in {
            "even lengths": lambda n, hits=hits: paper(n, round(n * 100.5 / hits), 200, POINTS),
            "mixed lengths": lambda n, hits=hits: mixed(n, hits, POINTS),
        }.items():
            rows += _grown(name, hits, [make(n) for n in sizes], progress)
    return result("growth", rows)


def _grown(
    name: str, hits: int, loads: list[Workload], progress: Callable[[str], None]
) -> list[Row]:
    rows = []
    first, *larger = [(load, _built(load, progress)) for load in loads]
    for load, index in larger:
        for order in ("random", "sorted"):
            small_xs, xs = first[0].xs, load.xs
            if order == "sorted":
                small_xs, xs = np.sort(small_xs), np.sort(xs)
            rows.append(
                compare(
                    f"report, {hits} hits, {name}, {order} points, n={load.n:,}",
                    f"itself at n={first[0].n:,}",
                    lambda: index.stab_many(xs),
                    lambda: first[1].stab_many(small_xs),
                    work=len(xs) / 1e6,
                    unit="M points/s",
                    goal=LEFT if load.n == SIZES[-1] else None,
                    bytes_per_query=round(index.nbytes / load.n),
                )
            )
    load, index = larger[-1]
    progress(f"rivals at n={load.n:,}")
    some = load.xs[:200_000]
    for rival, call in (
        ("ncls", rivals.ncls(load, some)),
        ("superintervals", rivals.superintervals(load, some)[0]),
    ):
        rows.append(
            compare(
                f"report, {hits} hits, {name}, random points, n={load.n:,}",
                rival,
                lambda: index.stab_many(some),
                call,
                work=len(some) / 1e6,
                unit="M points/s",
                repeats=3,
                bytes_per_query=round(index.nbytes / load.n),
            )
        )
    return rows


def _built(load: Workload, progress: Callable[[str], None]) -> CEI:
    progress(f"building n={load.n:,}")
    index = CEI()
    index.build(np.arange(load.n), load.lo, load.hi)
    return index
