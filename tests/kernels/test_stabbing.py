"""The greedy pass against one in plain Python, and against every partition there is (Lemma 1)."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.stabbing import greedy
from limen.testing.strategies import INT64, ordinal_ranges

from . import trees_by_hand as by_hand

Ranges = list[tuple[int, int]]
close = st.tuples(st.integers(0, 9), st.integers(0, 5)).map(lambda p: (p[0], p[0] + p[1]))


def by_kernel(ranges: Ranges, order: list[int]) -> list[tuple[int, set[int]]]:
    """Points and groups, and that the runs are those of the order."""
    ends = np.array(ranges, np.int64).reshape(-1, 2)
    lo, hi = ends[:, 0].copy(), ends[:, 1].copy()
    starts, points = greedy(np.array(order, np.int64), lo, hi)
    assert len(starts) == len(points) + 1
    assert starts[0] == 0 and starts[-1] == len(ranges)
    assert (np.diff(starts) > 0).all()
    runs = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    groups = [set(order[i:j]) for i, j in runs]
    return list(zip(points.tolist(), groups, strict=True))


def in_order(ranges: Ranges, seed: int = 0) -> list[int]:
    """By left ends; equal ones in any order."""
    order = list(range(len(ranges)))
    Random(seed).shuffle(order)
    return sorted(order, key=lambda v: ranges[v][0])


def fewest(ranges: Ranges, groups: Ranges = []) -> int:  # noqa: B006
    """The size of the smallest partition into groups with a common point: all are tried."""
    if not ranges:
        return len(groups)
    (lo, hi), rest = ranges[0], ranges[1:]
    best = fewest(rest, [*groups, (lo, hi)])
    for i, (first, last) in enumerate(groups):
        both = (max(lo, first), min(hi, last))
        if both[0] <= both[1]:
            best = min(best, fewest(rest, [*groups[:i], both, *groups[i + 1 :]]))
    return best


@given(by_hand.long(st.one_of(close, ordinal_ranges()), 40), st.integers(0, 9))
def test_the_greedy_partition(ranges: Ranges, seed: int) -> None:
    found = by_kernel(ranges, in_order(ranges, seed))
    assert found == by_hand.greedy(dict(enumerate(ranges)))
    for point, members in found:
        assert all(ranges[v][0] <= point <= ranges[v][1] for v in members)
        assert point == min(ranges[v][1] for v in members)
    for v, (lo, _) in enumerate(ranges):  # the points alone tell the groups
        assert v in next(members for point, members in found if point >= lo)


@given(st.lists(st.one_of(close, close, ordinal_ranges()), max_size=7))
def test_none_is_smaller(ranges: Ranges) -> None:
    assert len(by_kernel(ranges, in_order(ranges))) == fewest(ranges)


def test_no_interval_and_the_ends_of_all_numbers() -> None:
    assert by_kernel([], []) == []
    least, most = INT64
    assert by_kernel([INT64, INT64], [0, 1]) == [(most, {0, 1})]
    ranges = [(least, least), (least, most), (most, most), (most - 1, most)]
    assert by_kernel(ranges, [1, 0, 3, 2]) == [(least, {0, 1}), (most, {2, 3})]


def test_part_of_the_intervals() -> None:
    """The order need not have all of them."""
    lo, hi = np.array([5, 0, 1, 9]), np.array([6, 7, 2, 9])
    starts, points = greedy(np.array([1, 0]), lo, hi)
    assert starts.tolist() == [0, 2] and points.tolist() == [6]


@pytest.mark.parametrize("row", range(4))
def test_nothing_is_found_if_one_is_upside_down(row: int) -> None:
    lo, hi = np.array([1, 2, 8, 9]), np.array([5, 5, 8, 9])
    hi[row] = 0
    starts, points = greedy(np.arange(4), lo, hi)
    assert len(starts) == len(points) == 0


def test_touching_ends_are_shared() -> None:
    ranges = [(i, i + 1) for i in range(50)]
    found = by_kernel(ranges, list(range(50)))
    assert found == [(i + 1, {i, i + 1}) for i in range(0, 50, 2)]
