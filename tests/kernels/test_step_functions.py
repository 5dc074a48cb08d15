"""Step functions against counting; the best histogram against every histogram."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.step_functions import (
    cuts,
    evenly_below,
    extremes,
    fall,
    least_costs,
    rise,
    steps,
    weigh,
)
from limen.testing.strategies import INT64, ordinal_ranges, ordinals

Rows = list[tuple[int, int]]


def count(rows: Rows, x: int) -> int:
    return sum(lo <= x <= hi for lo, hi in rows)


def near(rows: Rows) -> list[int]:
    """Every x at which something can happen, with its neighbours."""
    around = {x + d for row in rows for x in row for d in (-1, 0, 1)} | set(INT64)
    return sorted(x for x in around if INT64[0] <= x <= INT64[1])


def columns(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    return np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], np.int64)


@given(st.lists(ordinal_ranges(), max_size=12))
def test_steps(rows: Rows) -> None:
    lo, hi = columns(rows)
    firsts, heights = steps(np.sort(lo), np.sort(hi))
    assert (firsts[1:] > firsts[:-1]).all()
    assert (np.diff(heights, prepend=0) != 0).all()
    for x in near(rows):
        at = int(np.searchsorted(firsts, x, "right")) - 1
        assert (heights[at] if at >= 0 else 0) == count(rows, x)


@given(ordinal_ranges(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_parts_of_a_group(common: tuple[int, int], beside: Rows) -> None:
    """All intervals contain `common`, and one of them ends with it."""
    rows = [(max(common[0] - a, INT64[0]), min(common[1] + b, INT64[1])) for a, b in beside]
    rows.append(common)
    lo, hi = columns(rows)
    point = int(hi.min())
    pieces = []
    for part in (rise(np.sort(lo), point), fall(np.sort(hi))):
        firsts, lasts, heights = part
        assert (firsts <= lasts).all() and (np.diff(heights) < 0).all()
        pieces += list(zip(firsts.tolist(), lasts.tolist(), heights.tolist(), strict=True))
    for x in near(rows):
        mine = [height for first, last, height in pieces if first <= x <= last]
        assert mine == ([count(rows, x)] if count(rows, x) else [])


@given(st.lists(ordinal_ranges(), max_size=10), st.lists(st.integers(-25, 25), unique=True))
def test_extremes(rows: Rows, inner: list[int]) -> None:
    lo, hi = columns(rows)
    edges = np.array([INT64[0], *sorted(inner)], np.int64)
    least, most = extremes(*steps(np.sort(lo), np.sort(hi)), edges)
    xs = sorted({*near(rows), *edges.tolist()})
    for b, first in enumerate(edges.tolist()):
        beyond = edges[b + 1] if b + 1 < len(edges) else INT64[1] + 1
        counts = [count(rows, x) for x in xs if first <= x < beyond]
        assert (least[b], most[b]) == (min(counts), max(counts))


@given(ordinal_ranges(), st.lists(ordinals(), max_size=8))
def test_even_shares(domain: tuple[int, int], xs: list[int]) -> None:
    first, last = domain
    size = last - first + 1
    for more in (0, 1):
        found = evenly_below(np.array(xs, np.int64), first, last, more)
        for x, share in zip(xs, found.tolist(), strict=True):
            assert share == pytest.approx(min(max(x - first + more, 0), size) / size, abs=1e-15)


@given(
    st.lists(ordinal_ranges(), max_size=8),
    st.lists(st.integers(-25, 25), min_size=1, max_size=8, unique=True),
    st.integers(0, 20),
)
def test_weights_by_other_pieces(rows: Rows, cut: list[int], more: int) -> None:
    """Each integer from -30 to 50 is as likely as any."""
    lo, hi = columns(rows)
    by, heights = steps(np.sort(lo), np.sort(hi))
    if not len(by) or by[0] > INT64[0]:
        by, heights = np.insert(by, 0, INT64[0]), np.insert(heights, 0, 0)
    firsts, last = np.array(sorted(cut), np.int64), max(cut) + more
    below = evenly_below(firsts, -30, 50, 0)
    up_to = float(evenly_below(np.array([last]), -30, 50, 1)[0])
    found = weigh(firsts, below, last, up_to, by, evenly_below(by, -30, 50, 0), heights)
    for i, first in enumerate(firsts.tolist()):
        end = firsts[i + 1] if i + 1 < len(firsts) else last + 1
        by_hand = sum(1 / max(count(rows, x), 1) ** 2 / 81 for x in range(first, end))
        assert found[i] == pytest.approx(by_hand)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from([0.0, 0.5, 1.0, 2.0])),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 9),
)
def test_no_histogram_is_better(pieces: list[tuple[int, float]], buckets: int) -> None:
    heights, weights = (np.array([p[i] for p in pieces], np.float64) for i in (0, 1))
    m = len(pieces)

    def cost(ends: list[int]) -> float:
        found = 0.0
        for first, end in pairwise(ends):
            y, w = heights[first:end], weights[first:end]
            if w.sum():
                found += (w * (y - (w * y).sum() / w.sum()) ** 2).sum()
        return found

    table = least_costs(weights, heights, buckets)
    for k in range(1, min(buckets, m) + 1):
        best = min(cost([0, *inner, m]) for inner in combinations(range(1, m), k - 1))
        assert table[k, m] == pytest.approx(best, abs=1e-9)
        ends = cuts(weights, heights, table, k)
        assert ends[0] == 0 and ends[-1] == m and (np.diff(ends) > 0).all()
        assert len(ends) == k + 1
        assert cost(ends.tolist()) == pytest.approx(best, abs=1e-9)
