from __future__ import annotations

from limen.kernels import ui

from . import constructs_by_hand as by_hand


def test_a_list_for_every_unit() -> None:
    assert by_hand.cut(ui, by_hand.empty(ui, 0), 3, 5) == [(3, 3, 3), (4, 4, 4), (5, 5, 5)]


def test_a_closed_end_is_a_point_construct() -> None:
    r = by_hand.R
    assert by_hand.cut(ui, by_hand.empty(ui, 1), 3, 5) == [(3, 3, 3), (4, 4, 4), (r + 5, 5, 5)]
    assert by_hand.cut(ui, by_hand.empty(ui, 1), 5, 5) == [(r + 5, 5, 5)]
