"""K-means on a line against every way to cut the points into runs."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.kmeans import centres, even_runs, layer, lloyd, sums, total

Points = tuple[list[float], list[float]]


@st.composite
def points(draw: st.DrawFn) -> Points:
    """Values, rising or falling, some of them equal; weights, some of them 0."""
    values = sorted(draw(st.lists(st.integers(1, 40), min_size=1, max_size=9)))
    weight = st.sampled_from([0.0, 0.25, 1.0, 1.0, 3.0])
    weights = [draw(weight) for _ in values]
    return [float(v) for v in (values if draw(st.booleans()) else values[::-1])], weights


def by_hand(values: list[float], weights: list[float], ends: list[int]) -> float:
    cost = 0.0
    for first, end in pairwise(ends):
        mine = list(zip(values[first:end], weights[first:end], strict=True))
        if weight := sum(w for _, w in mine):
            mean = sum(w * y for y, w in mine) / weight
            cost += sum(w * (y - mean) ** 2 for y, w in mine)
    return cost


def best_by_hand(values: list[float], weights: list[float], k: int) -> float:
    m = len(values)
    every = (cut for runs in range(k) for cut in combinations(range(1, m), min(runs, m - 1)))
    return min(by_hand(values, weights, [0, *cut, m]) for cut in every)


@given(points())
def test_layers_give_the_best_clustering(given: Points) -> None:
    values, weights = given
    m = len(values)
    before = sums(np.array(values), np.array(weights))
    costs, begins = np.full(m + 1, np.inf), []
    costs[0] = 0.0
    for k in range(1, m + 2):
        costs, begin = layer(before, costs)
        begins.append(begin)
        assert costs[m] == pytest.approx(best_by_hand(values, weights, k), abs=1e-9)
        ends = [m]
        for one in reversed(begins):
            ends.append(int(one[ends[-1]]))
        assert ends[-1] == 0 and ends == sorted(ends, reverse=True)
        assert by_hand(values, weights, ends[::-1]) == pytest.approx(costs[m], abs=1e-9)


@given(points(), st.integers(1, 9), st.data())
def test_lloyd_is_never_worse_than_its_start(given: Points, k: int, data: st.DataObject) -> None:
    values, weights = given
    m, k = len(values), min(k, len(values))
    inner = data.draw(st.permutations(range(1, m)))[: k - 1]
    start = [0, *sorted(inner), m]
    ends, before = np.array(start, np.int64), sums(np.array(values), np.array(weights))
    so_far = by_hand(values, weights, start)
    for _ in range(50):
        taken = lloyd(np.array(values), before, ends, 1)
        assert ends[0] == 0 and ends[-1] == m and (np.diff(ends) > 0).all()
        cost = by_hand(values, weights, ends.tolist())
        assert cost <= so_far + 1e-9
        assert total(before, ends) == pytest.approx(cost, abs=1e-9)
        so_far = cost
        if taken == 0:
            break
    for c, first, end in zip(centres(np.array(values), before, ends), ends, ends[1:], strict=False):
        mine = values[first:end]
        assert min(mine) <= c <= max(mine)
        if weight := sum(weights[first:end]):
            mean = sum(w * y for y, w in zip(mine, weights[first:end], strict=True)) / weight
            assert c == pytest.approx(mean)


@given(points(), st.integers(1, 12))
def test_runs_to_start_with(given: Points, k: int) -> None:
    values, weights = given
    ends = even_runs(np.array(values), np.array(weights), k)
    assert len(ends) == min(k, len(values)) + 1
    assert ends[0] == 0 and ends[-1] == len(values) and (np.diff(ends) > 0).all()


def test_a_run_ends_where_values_jump() -> None:
    values = np.array([1.0, 1.1, 1.2, 900.0, 901.0, 902.0])
    assert even_runs(values, np.ones(6), 2).tolist() == [0, 3, 6]


def test_many_points_from_a_good_start_come_close_to_the_best() -> None:
    values = np.arange(3000, 0, -1).astype(np.float64)
    weights = np.random.default_rng(1).random(3000) / values**2
    before = sums(values, weights)
    ends = even_runs(values, weights, 8)
    assert lloyd(values, before, ends, 1000) < 1000
    costs = np.full(3001, np.inf)
    costs[0] = 0.0
    for _ in range(8):
        costs, _ = layer(before, costs)
    assert costs[-1] <= total(before, ends) < 1.02 * costs[-1]


def test_heights_of_a_million_lose_no_digits() -> None:
    """A run of two points, where weights span twelve orders of magnitude."""
    values = np.array([1e6, 1e6 - 1, 2.0, 1.0])
    weights = 1 / values**2
    assert total(sums(values, weights), np.array([0, 2, 4])) == pytest.approx(
        weights[0] * weights[1] / (weights[0] + weights[1])
        + weights[2] * weights[3] / (weights[2] + weights[3]),
        rel=1e-6,
    )
