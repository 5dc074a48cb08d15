"""The grid: a monotone map onto cells whose spans are exactly the ordinals that map to them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.grid import BRANCH, HIGHEST, LOWEST, fit, locate, locate_many, sample_ends, span
from limen.testing.strategies import ordinals

NO_GROUPS = np.empty(0, np.int32)


def fitted(points: list[int], per_cell: int = 2) -> tuple[np.ndarray, int]:
    distinct = np.array(sorted(set(points)), np.int64)
    return fit(distinct, np.array([0, len(distinct)]), np.array([1]), per_cell)


@given(points=st.lists(ordinals(), max_size=80), xs=st.lists(ordinals(), min_size=1, max_size=20))
def test_spans_tile_the_ordinals_in_order(points: list[int], xs: list[int]) -> None:
    nodes, cells = fitted(points)
    expected = LOWEST
    x = LOWEST
    seen = []
    while True:
        c, first, last = span(nodes, 0, np.int64(x))
        assert first == expected and first <= x <= last
        seen.append(c)
        if last == HIGHEST:
            break
        expected = x = last + 1
    assert seen == list(range(seen[0], seen[0] + len(seen))) and seen[0] == 0
    assert seen[-1] == cells - 1
    for x in xs + points:
        c, first, last = span(nodes, 0, np.int64(x))
        assert first <= x <= last
        assert c == locate(nodes, 0, np.int64(x))
        assert locate(nodes, 0, np.int64(first)) == locate(nodes, 0, np.int64(last)) == c


@given(st.lists(st.tuples(st.integers(0, 3), ordinals()), min_size=1, max_size=60))
def test_groups_have_disjoint_cells(rows: list[tuple[int, int]]) -> None:
    groups = np.array([g for g, _ in rows], np.int32)
    xs = np.array([x for _, x in rows], np.int64)
    points, starts, weights = sample_ends(groups, 4, xs, xs)
    assert starts[-1] == len(points) and (weights >= 1).all()
    nodes, _ = fit(points, starts, weights, 2)
    cells = np.empty(len(xs), np.int32)
    locate_many(nodes, groups, xs, cells)
    owners: dict[int, int] = {}
    for g, c in zip(groups.tolist(), cells.tolist(), strict=True):
        assert owners.setdefault(c, g) == g
    locate_many(nodes, np.full(len(xs), -1, np.int32), xs, cells)
    assert (cells == -1).all()


def test_even_ends_need_one_flat_node_and_crowded_ones_branch() -> None:
    even, cells = fitted(list(range(0, 100_000, 50)))
    assert len(even) == 1 and even[0, 1] < BRANCH and 500 <= cells <= 1000
    crowded, cells = fitted([*range(0, 1000), *range(10**17, 10**18, 10**16)])
    assert crowded[0, 1] >= BRANCH and 250 <= cells < 3000


def test_few_ends_share_a_cell() -> None:
    rng = np.random.default_rng(2)
    xs = np.unique(np.exp(rng.normal(0, 6, 4000)).view(np.int64))
    nodes, cells = fitted(xs.tolist())
    at = np.empty(len(xs), np.int32)
    locate_many(nodes, NO_GROUPS, xs, at)
    loads = np.unique(at, return_counts=True)[1]
    assert (loads**2).sum() / len(xs) < 24 and cells < 4 * len(xs)


def test_large_groups_are_sampled() -> None:
    lo = np.arange(400_000, dtype=np.int64)
    points, starts, weights = sample_ends(NO_GROUPS, 1, lo, lo + 5)
    assert starts.tolist() == [0, len(points)] and weights[0] > 1
    assert len(points) < len(lo) // 2


def test_open_ends_do_not_stretch_the_grid() -> None:
    lo = np.array([LOWEST, 10, 20], np.int64)
    hi = np.array([15, HIGHEST, 30], np.int64)
    points, _, _ = sample_ends(NO_GROUPS, 1, lo, hi)
    assert points.tolist() == [10, 15, 20, 30]
