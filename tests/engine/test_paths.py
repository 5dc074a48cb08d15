"""Which way queries are found: the choice itself, not only its answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from limen import Matcher, QuerySet
from limen.engine.paths import Kind

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
