"""Reporting and counting the queries that contain a point, against interval libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from limen.indexes.cei import CEI

from . import rivals
from .side_by_side import Row, compare, result
from .workloads import I64, Workload, paper

WORKLOADS = [
    (100_000, 1 << 20, 200),
    (640_000, 1 << 20, 200),
    (100_000, 1 << 16, 200),
    (640_000, 1 << 16, 200),
    (1_000_000, 1 << 20, 20_000),
]
HITS = 20_000_000  # reported per run: superintervals makes a Python integer of each
COPIED = 100_000_000  # reported beside a plain copy


def run(quick: bool, progress: Callable[[str], None]) -> dict[str, Any]:
    rows: list[Row] = []
    for n, r, w in WORKLOADS:
        hits = n * (w + 1) / 2 / r
        points = min(1_000_000, int((HITS // 10 if quick else HITS) / hits))
        load = paper(n, r, w, points)
        progress(f"{load.name}: {points:,} points, {hits:,.0f} hits each")
        index = CEI()
        index.build(np.arange(n), load.lo, load.hi)
        rows += _against_rivals(load, index, load.xs, "random", hits, quick)
        if not quick:
            rows += _against_rivals(load, index, np.sort(load.xs), "sorted", hits, quick)
        if w > 200:
            rows.append(_against_copy(load, index, quick))
    return result("stab", rows)


def _against_rivals(
    load: Workload, index: CEI, xs: I64, order: str, hits: float, quick: bool
) -> list[Row]:
    report_si, count_si = rivals.superintervals(load, xs)
    calls = {
        "superintervals": report_si,
        "ncls": rivals.ncls(load, xs),
        "bioframe": rivals.bioframe(load, xs),
    }
    index.count_many(np.resize(xs, index.shape["cells"]))  # its table of totals, made on demand
    _same_answer(index, count_si, xs)
    repeats = 3 if quick else 5
    common: dict[str, Any] = {"work": len(xs) / 1e6, "unit": "M points/s", "repeats": repeats}
    case = f"report, {load.name}, {order} points, {hits:,.0f} hits"
    rows = [
        compare(case, name, lambda: index.stab_many(xs), call, goal=10, **common)
        for name, call in calls.items()
    ]
    case = f"count, {load.name}, {order} points"
    count = compare(
        case,
        "superintervals",
        lambda: index.count_many(xs),
        count_si,
        goal=20,
        **common,
    )
    return [*rows, count]


def _against_copy(load: Workload, index: CEI, quick: bool) -> Row:
    hits = int(index.count_many(load.xs[:1000]).mean())
    points = (COPIED // 10 if quick else COPIED) // hits
    xs = np.resize(load.xs, points)
    found = index.stab_many(xs)[1].copy()
    return compare(
        f"report, {load.name}, random points, {hits:,} hits",
        "a cold copy of the output",
        lambda: index.stab_many(xs),
        lambda: found.copy(),
        work=len(found) / 1e6,
        unit="M ids/s",
        goal=0.5,
    )


def _same_answer(index: CEI, count: rivals.Call, xs: I64) -> None:
    if np.asarray(count()).tolist() != index.count_many(xs).tolist():
        raise AssertionError("superintervals counts otherwise: the comparison would be worthless")
