"""The canonical partition against the greedy one in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from limen.partitions.canonical import canonical
from limen.testing.strategies import INT64

from .by_hand import HISTORIES, greedy, long, ranges

Ranges = list[tuple[int, int]]


def compare(rows: Ranges) -> None:
    found = canonical([lo for lo, _ in rows], [hi for _, hi in rows])
    expected = greedy(dict(enumerate(rows)))
    starts = found.starts.tolist()
    assert len(found) == len(expected)
    assert found.points.tolist() == [point for point, _ in expected]
    assert found.sizes.tolist() == [len(members) for _, members in expected]
    assert sorted(found.order.tolist()) == list(range(len(rows)))
    groups = found.groups().tolist()
    for g, (_, members) in enumerate(expected):
        mine = found.order[starts[g] : starts[g + 1]].tolist()
        assert set(mine) == members == {v for v, group in enumerate(groups) if group == g}
        assert [rows[v][0] for v in mine] == sorted(rows[v][0] for v in mine)


@given(long(ranges, 40))
def test_it_is_the_greedy_one(rows: Ranges) -> None:
    compare(rows)


@pytest.mark.parametrize("name", HISTORIES)
def test_all_that_ever_come_in_a_history(name: str) -> None:
    compare([ends for _, ends in HISTORIES[name] if ends is not None])


def test_the_papers_figure() -> None:
    """Ten intervals, three groups (Fig. 1); 1 and 2 of these are 0.4-hotspots."""
    rows = [
        (0, 6),
        (1, 7),
        (2, 9),
        (3, 5),
        (8, 13),
        (9, 14),
        (10, 16),
        (11, 12),
        (18, 21),
        (19, 22),
    ]
    found = canonical(*np.array(rows).T)
    assert found.points.tolist() == [5, 12, 21]
    assert found.sizes.tolist() == [4, 4, 2]


def test_no_interval() -> None:
    found = canonical([], [])
    assert len(found) == 0
    assert found.groups().tolist() == found.sizes.tolist() == []


@pytest.mark.parametrize(
    ("lo", "hi", "message"),
    [
        ([1, 2], [3], "lo and hi differ in length: 2, 1"),
        ([1, 7, 9], [3, 6, 8], "interval 1: lo 7 is above hi 6"),
        ([INT64[1]], [INT64[0]], f"interval 0: lo {INT64[1]} is above hi {INT64[0]}"),
        ([1.0], [3], "integers are needed, not float64"),
        ([1], [float("nan")], "integers are needed, not float64"),
        ([2**63], [2**63], "9223372036854775808 does not fit int64"),
        ([[1]], [[2]], "an array of one dimension is needed, not of 2"),
    ],
)
def test_bad_input(lo: Any, hi: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        canonical(lo, hi)


def test_what_is_given_stays_as_it_is() -> None:
    lo, hi = np.array([4, 1, 3]), np.array([9, 2, 8])
    canonical(lo[::-1], hi[::-1])
    assert lo.tolist() == [4, 1, 3] and hi.tolist() == [9, 2, 8]
