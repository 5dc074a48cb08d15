from __future__ import annotations

from limen.kernels import sci

from . import constructs_by_hand as by_hand


def test_the_papers_example() -> None:
    """Fig. 3(a): R = 7, L = 4, p: [a0, a0 + 6] and q: [a0, a0 + 2]."""
    ix = by_hand.empty(sci, 1, r=7)
    assert by_hand.cut(sci, ix, 0, 6) == [(~3, 0, 4), (17, 4, 6)]
    assert by_hand.cut(sci, ix, 0, 2) == [(1, 0, 2)]
    by_hand.put(sci, ix, 0, 0, 6)
    by_hand.put(sci, ix, 1, 0, 2)
    labels = [{i for i in range(28) if int(row[0]) >> i & 1} for row in ix.bits]
    assert labels == [{1, 3}, {1, 3}, {1, 3}, {3}, {3, 17}, {17}, {17}]


def test_a_single_point_is_held_in_the_shortest_construct() -> None:
    assert by_hand.cut(sci, by_hand.empty(sci, 1), 5, 5) == [(~20, 5, 6)]
    assert by_hand.cut(sci, by_hand.empty(sci, 0), 5, 5) == [(20, 5, 5)]


def test_cuts_begin_at_the_left() -> None:
    pieces = by_hand.cut(sci, by_hand.empty(sci, 0), 2, 11)
    assert [(first, last) for _, first, last in pieces] == [(2, 5), (6, 9), (10, 11)]
