"""The benchmarks at a toy size: that they run and say what they promise, not how fast anything is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from limen.cli import bench

FIELDS = {"case", "rival", "ours", "theirs", "unit", "ratio", "spread", "goal", "holds"}
CROSSINGS = {
    "n": 300,
    "streams": 20,
    "tuples": 2,
    "rounds": 2,
    "at_once": 2,
    "levels": [0.01, 10],
    "open_tuples": 1,
    "is_list": 300,
    "stored": [300],
    "rectangles": 300,
    "queries": 200,
    "per_key": [2, 4],
    "largest_batches": 1,
    "entities": 200,
    "crossings": [0.1],
    "batches": 1,
    "few_batches": 2,
}
PARTITIONS = {
    "canonical": 500,
    "n": 300,
    "groups": 10,
    "few": 10,
    "small": 5,
    "epsilons": [1.0],
    "batch": 20,
    "rebuilds": 1,
    "most": 2000,
    "grown": [200, 400],
    "grown_updates": 200,
    "lazy": [[200, 10], [400, 20]],
    "alphas": [0.1],
    "hot_updates": 200,
    "ssi": 300,
    "optimal": 100,
    "buckets": [20],
    "repeats": 2,
}
TOY = {
    "stab": {"WORKLOADS": [(500, 2048, 50), (500, 2048, 300)], "HITS": 20_000, "COPIED": 50_000},
    "growth": {"SIZES": [200, 400, 800], "POINTS": 300},
    "update": {"POINTS": 300, "SIZE": 2000},
    "catalog": {"SIZE": 2000, "BATCH": 200, "PHASE": 3, "PHASES": 1, "REPEATS": 1},
    "partitions": {"SCALES": {"full": PARTITIONS, "quick": PARTITIONS}},
    "crossings": {"SCALES": {"full": CROSSINGS, "quick": CROSSINGS}, "SETTLED": 1},
    "archive": {
        "ROWS": 2000,
        "QUICK_ROWS": 2000,
        "UPDATES": 2,
        "PROBES": 2,
        "OURS": ("NoRebuild2x2",),
        "RIVALS": {"REINDEX": ("R-ins1",), "DEL": ("D-ins1",)},
    },
    "spark_match": {
        "EVENTS": 500,
        "SIZES": [300],
        "RANGE_JOIN": 200,
        "BINS": [1000, 3000],
        "STREAMED": 300,
        "BATCH": 100,
        "BATCHES": 2,
        "REPEATS": 1,
    },
}


@pytest.fixture
def load() -> Iterator[object]:
    yield lambda name: bench._load(bench.benchmarks(bench.folder())[name])
    for name in [name for name in sys.modules if name.startswith("limen_benchmarks")]:
        del sys.modules[name]


def test_every_benchmark_has_a_toy_size() -> None:
    assert set(bench.benchmarks(bench.folder())) == set(TOY)


# These toys have one size for both: they are run once.
ONE_SIZE = {"archive", "crossings", "partitions"}
RUNS = [(n, quick) for n in sorted(TOY) for quick in (True, False) if not (quick and n in ONE_SIZE)]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("name", "quick"), RUNS)
def test_rows_are_complete(name: str, quick: bool, load, monkeypatch: pytest.MonkeyPatch) -> None:
    module: ModuleType = load(name)
    for constant, value in TOY[name].items():
        monkeypatch.setattr(module, constant, value)
    said: list[str] = []
    result = module.run(quick, said.append)
    assert result["bench"].replace("-", "_") == name and "cores" in result["machine"] and said
    for row in result["rows"]:
        assert row.keys() >= FIELDS
        assert row["spread"][0] <= row["ratio"] <= row["spread"][1]
        assert (row["goal"] is None) == (row["holds"] is None)
