"""Building, inserting, deleting, and what a change to a mapped index costs its probes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from limen.indexes.cei import CEI

from .side_by_side import Row, compare, rate, result
from .workloads import Workload, mixed, paper

POINTS = 1_000_000
SIZE = 1_000_000


def run(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    n = SIZE // 5 if quick else SIZE
    rows: list[Row] = []
    for name, load in {
        "even lengths, 10 hits": paper(n + n // 10, 10 * n, 200, POINTS),
        "mixed lengths, 10 hits": mixed(n + n // 10, 10, POINTS),
        "even lengths, 100 hits": paper(n + n // 10, n, 200, POINTS),
    }.items():
        progress(name)
        rows += _rates(name, load, n, quick) + _overlay(name, load, n, quick)
    return result("update", rows)


def _built(load: Workload, n: int) -> CEI:
    index = CEI()
    index.build(np.arange(n), load.lo[:n], load.hi[:n])
    return index


def _rates(name: str, load: Workload, n: int, quick: bool) -> list[Row]:
    repeats = 3 if quick else 5
    rows = [
        rate(
            f"build n={n:,}, {name}",
            lambda: _built(load, n),
            work=n / 1e6,
            unit="M queries/s",
            goal=2.0,
            repeats=repeats,
        )
    ]
    new = np.arange(n, load.n)
    old = np.random.default_rng(2).permutation(n)[: len(new)]
    grown = iter([_built(load, n) for _ in range(repeats + 1)])
    rows.append(
        rate(
            f"insert {len(new):,} into n={n:,}, {name}",
            lambda: next(grown).insert(new, load.lo[new], load.hi[new]),
            work=len(new) / 1e6,
            unit="M queries/s",
            goal=1.0,
            repeats=repeats,
        )
    )
    shrunk = iter([_built(load, n) for _ in range(repeats + 1)])
    rows.append(
        rate(
            f"delete {len(old):,} from n={n:,}, {name}",
            lambda: next(shrunk).delete(old),
            work=len(old) / 1e6,
            unit="M queries/s",
            goal=1.0,
            repeats=repeats,
        )
    )
    return rows


def _overlay(name: str, load: Workload, n: int, quick: bool) -> list[Row]:
    """Probe a mapped index with 10 % added, 10 % removed, 10 % of both, beside the unchanged one."""
    new, some = np.arange(n, load.n), slice(0, (load.n - n) // 2)
    old = np.random.default_rng(3).permutation(n)[: len(new)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        _built(load, n).save(Path(folder) / "base")
        base = CEI.load(Path(folder) / "base")
        for change in ("10 % added", "10 % removed", "5 % added, 5 % removed"):
            changed = CEI.load(Path(folder) / "base")
            before = changed.nbytes
            if change == "10 % added":
                changed.insert(new, load.lo[new], load.hi[new])
            elif change == "10 % removed":
                changed.delete(old)
            else:
                changed.insert(new[some], load.lo[new[some]], load.hi[new[some]])
                changed.delete(old[some])
            xs = load.xs
            rows.append(
                compare(
                    f"probe a mapped index, {change}, {name}",
                    "unchanged",
                    lambda: changed.stab_many(xs),
                    lambda: base.stab_many(xs),
                    work=len(xs) / 1e6,
                    unit="M points/s",
                    goal=round(1 / 1.3, 3),
                    repeats=3 if quick else 5,
                    private_bytes_per_change=round((changed.nbytes - before) / len(new)),
                )
            )
    return rows
