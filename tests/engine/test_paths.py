"""Which way queries are found: the choice itself, not only its answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from limen import Matcher, QuerySet
from limen.engine import paths
from limen.engine.paths import Kind
from limen.partitions.histograms import Histogram
from limen.testing.strategies import INT64

TYPES = {"symbol": "string", "tenant": "int64", "price": "float64", "volume": "int64"}


def test_the_more_selective_attribute_leads() -> None:
    rng = np.random.default_rng(1)
    narrow, wide = rng.uniform(0, 1000, 500), rng.integers(0, 1000, 500)
    table = pa.table(
        {
            "id": np.arange(500),
            "price_lo": narrow,
            "price_hi": narrow + 1,
            "volume_lo": wide // 4,
            "volume_hi": wide // 4 + 700,
        }
    )
    assert Matcher(QuerySet.of(table)).paths == [(Kind((), "price"), 500)]
    swapped = table.rename_columns(["id", "volume_lo", "volume_hi", "price_lo", "price_hi"])
    assert Matcher(QuerySet.of(swapped)).paths == [(Kind((), "volume"), 500)]


def share_by_counting(rows: np.ndarray) -> float:
    """At every end that there is, how many of the ranges contain it."""
    ends = [x for x in rows.ravel().tolist() if x not in INT64]
    met = sum(int(lo) <= x <= int(hi) for x in ends for lo, hi in rows)
    return met / len(ends) / len(rows)


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_is_by_the_mean_count_at_the_ranges_own_ends(seed: int) -> None:
    """Whatever the scale of an attribute, and where ranges are open to a side or points."""
    rng = np.random.default_rng(seed)
    lo = np.sort(rng.integers(-100, 100, 60)) ** 3
    rows = np.stack([lo, lo + rng.integers(0, 10 ** rng.integers(1, 7), 60)], axis=1)
    rows[:: seed + 2, 0] = INT64[0]
    rows[1 :: seed + 3, 1] = INT64[1]
    rows = rows[(rows[:, 0] != INT64[0]) | (rows[:, 1] != INT64[1])]
    assert paths._share(rows) == pytest.approx(share_by_counting(rows))


def test_of_many_ranges_a_sample_decides() -> None:
    rng = np.random.default_rng(3)
    lo = rng.integers(0, 10**6, 50_000)
    rows = np.stack([lo, lo + rng.integers(0, 20_000, 50_000)], axis=1)
    begun = np.searchsorted(np.sort(lo), rows, "right")
    ended = np.searchsorted(np.sort(rows[:, 1]), rows, "left")
    assert paths._share(rows) == pytest.approx((begun - ended).mean() / 50_000, rel=0.1)


@pytest.mark.parametrize("n", [8_000, 8_192, 12_000, 16_384])
@pytest.mark.parametrize("turns", [2, 4])
def test_queries_that_take_turns_do_not_mislead_the_choice(n: int, turns: int) -> None:
    """Every so many of them are narrow on x; a value is in fewer ranges of y."""
    rng = np.random.default_rng(0)
    narrow = np.arange(n) % turns == 0
    x_lo, y_lo = rng.uniform(0, 1000, n), rng.uniform(0, 1000, n)
    x_hi = x_lo + np.where(narrow, 1, 900.0)
    columns = {"x_lo": x_lo, "x_hi": x_hi, "y_lo": y_lo, "y_hi": y_lo + 30}
    queries = QuerySet.of(pa.table({"id": np.arange(n), **columns}))
    assert Matcher(queries).paths == [(Kind((), "y"), n)]


def test_the_histogram_is_what_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """If its share were upside down, the other attribute would lead."""
    queries = {i: f"price BETWEEN {i} AND {i + 1} AND volume > {i}" for i in range(100)}
    asked: list[Histogram] = []

    def upside_down(histogram: Histogram) -> float:
        asked.append(histogram)
        return -share(histogram)

    assert Matcher(QuerySet.of(queries, TYPES)).paths == [(Kind((), "price"), 100)]
    share = Histogram.share
    monkeypatch.setattr(Histogram, "share", upside_down)
    assert Matcher(QuerySet.of(queries, TYPES)).paths == [(Kind((), "volume"), 100)]
    assert [histogram.intervals for histogram in asked] == [100, 100]
    assert all(len(histogram) == paths.BUCKETS for histogram in asked)


def test_keys_come_before_ranges_and_kinds_are_divided() -> None:
    queries = {
        "a": "symbol = 'IBM' AND price > 5",
        "b": "symbol = 'KO' AND price BETWEEN 1 AND 2 AND volume > 3",
        "c": "price < 9",
        "d": "symbol = 'IBM'",
    }
    found = dict(Matcher(QuerySet.of(queries, TYPES)).paths)
    assert found[Kind((), "price")] == 1 and found[Kind(("symbol",), None)] == 1
    assert sum(n for kind, n in found.items() if kind.keys == ("symbol",) and kind.lead) == 2


def test_an_attribute_of_points_serves_as_a_key() -> None:
    queries = {i: f"tenant = {i % 50} AND price > {i}" for i in range(200)}
    matcher = Matcher(QuerySet.of(queries, TYPES))
    assert matcher.paths == [(Kind(("tenant",), "price"), 200)]
    matcher.add(QuerySet.of({1000: "tenant >= 48 AND tenant < 60 AND price > 198.5"}, TYPES))
    events = pa.table({"tenant": [49, 48, 7, 99], "price": [199.5, 199.5, 200.0, 500.0]})
    found = matcher.match(events, "ids").matches["query_ids"].to_pylist()
    assert sorted(found[0]) == [49, 99, 149, 199, 1000]
    assert sorted(found[1]) == [48, 98, 148, 198, 1000]
    assert sorted(found[2]) == [7, 57, 107, 157] and found[3] == []


def test_two_keys_make_one_group() -> None:
    queries = {
        i: f"symbol = 'S{i % 7}' AND tenant = {i % 11} AND price > {i / 10}" for i in range(300)
    }
    matcher = Matcher(QuerySet.of(queries, TYPES))
    assert matcher.paths == [(Kind(("symbol", "tenant"), "price"), 300)]
    events = pa.table({"symbol": ["S3", "S3", "X"], "tenant": [5, 12, 5], "price": [1e9, 1e9, 1e9]})
    found = matcher.match(events, "ids").matches["query_ids"].to_pylist()
    assert sorted(found[0]) == [i for i in range(300) if i % 7 == 3 and i % 11 == 5]
    assert found[1:] == [[], []]


def test_unconstrained_attributes_are_not_verified() -> None:
    matcher = Matcher(QuerySet.of({1: "price > 1", 2: "price > 2 AND volume > 1"}, TYPES))
    verified = {kind.lead: path.verified for kind, path in matcher._paths.items()}
    assert len(matcher.paths) in (1, 2)
    assert all(names in ([], ["volume"], ["price"]) for names in verified.values())


def test_more_attributes_than_bits() -> None:
    names = [f"a{i:03}" for i in range(80)]
    types = dict.fromkeys(names, "int64")
    queries = {i: " AND ".join(f"{n} >= {i}" for n in names[i:]) for i in range(80)}
    matcher = Matcher(QuerySet.of(queries, types))
    row = pa.table({name: [40] for name in names})
    assert sorted(matcher.match(row).matches["query_id"].to_pylist()) == list(range(41))
