"""The market: any block by itself, walks without jumps, and a brute force that knows its versions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import limen
from limen.testing.market import BLOCK, SCHEMA, STEP, BruteForce, Market, Queries, bad_trades


def table(market: Market, first: int, last: int) -> pa.Table:
    return pa.Table.from_batches(market.trades(first, last), SCHEMA)


@pytest.mark.parametrize(
    ("first", "last"), [(0, 1), (5, 5), (BLOCK - 1, BLOCK + 1), (BLOCK, 2 * BLOCK), (7, 34_567)]
)
def test_a_stretch_is_part_of_the_whole(first, last):
    whole = table(Market(), 0, 4 * BLOCK)
    part = table(Market(), first, last)
    assert part.column("trade").to_pylist() == list(range(first, last))
    assert part.to_pandas().equals(whole.slice(first, last - first).to_pandas())  # NaN equals NaN


def test_another_seed_is_another_market():
    one, other = Market(1), Market(2)
    assert not table(one, 0, 50).equals(table(other, 0, 50))
    assert one.queries(50).lo.tolist() != other.queries(50).lo.tolist()
    assert one.queries(50).lo.tolist() == Market(1).queries(50).lo.tolist()


def test_time_goes_on():
    times = table(Market(), BLOCK - 5, BLOCK + 5).column("time").cast(pa.int64()).to_numpy()
    assert (np.diff(times) > 0).all()


def test_prices_walk_without_jumps():
    trades = table(Market(), 0, 50 * BLOCK)
    symbol = Counter(trades.column("symbol").to_pylist()).most_common(1)[0][0]
    prices = trades.filter(pa.compute.equal(trades.column("symbol"), symbol)).column("price")
    steps = np.diff(np.log(prices.drop_null().to_numpy()))
    steps = steps[~np.isnan(steps)]
    assert len(steps) > 1000
    assert STEP / 2 < steps.std() < STEP * 2
    assert abs(steps).max() < STEP * 10  # where a block ends, too


def test_some_trades_are_bad():
    parts = list(Market().trades(0, 100 * BLOCK))
    bad = sum(int(bad_trades(part).sum()) for part in parts)
    null = sum(part.column("price").null_count for part in parts)
    assert 30 < bad < 75  # one in 20,000
    assert 0 < null < bad


def test_brute_force_agrees_with_the_engine():
    market = Market()
    queries = market.queries(3000)
    trades = table(market, 0, 300)
    found = limen.match(trades, queries.frame(market.names), emit="ids").to_pylist()
    brute_force = BruteForce(queries, 1)
    assert any(row["query_ids"] for row in found)
    for row in found:
        event = {name: row[name] for name in ("symbol", "price", "volume")}
        assert brute_force.matching(1, **event) == set(row["query_ids"])


def test_brute_force_knows_its_versions():
    one = (np.zeros(1, np.int32), np.zeros(1), np.ones(1), np.zeros(1, np.int64))
    brute_force = BruteForce(Queries(0, *one), 1)
    brute_force.add(Queries(1, *one), 3)
    brute_force.remove(np.array([0]), 5)
    found = [brute_force.matching(version, "S0000", 1.0, 1) for version in range(7)]
    assert found == [set(), {0}, {0}, {0, 1}, {0, 1}, {1}, {1}]
