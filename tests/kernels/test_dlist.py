from __future__ import annotations

from limen.kernels import dlist

from . import constructs_by_hand as by_hand


def test_a_list_for_every_value() -> None:
    for closed in (0, 1):
        pieces = by_hand.cut(dlist, by_hand.empty(dlist, closed), 3, 5)
        assert pieces == [(3, 3, 3), (4, 4, 4), (5, 5, 5)]
