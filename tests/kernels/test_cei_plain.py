from __future__ import annotations

import numpy as np
import pytest

from limen.kernels import cei_plain
from limen.kernels.containment import decompose

from . import constructs_by_hand as by_hand


@pytest.mark.parametrize("length", [1, 4, 16])
def test_labels_are_those_of_the_decomposition(length: int) -> None:
    ix, labels = by_hand.empty(cei_plain, 0, length), np.empty(64, np.int64)
    for lo, hi in by_hand.all_ranges():
        n = decompose(lo, hi + 1, length, labels)
        pieces = by_hand.cut(cei_plain, ix, lo, hi)
        assert [label for label, _, _ in pieces] == labels[:n].tolist()


def test_the_papers_examples() -> None:
    """[8, 14) and [11, 15) by the labels of their units at L = 8: units 0..5 and 3..6 (Fig. 7)."""
    ix = by_hand.empty(cei_plain, 0, 8)
    assert [label for label, _, _ in by_hand.cut(cei_plain, ix, 0, 5)] == [2, 6]
    assert [label for label, _, _ in by_hand.cut(cei_plain, ix, 3, 6)] == [11, 6, 14]


def test_constructs_of_a_segment_and_closed_ends() -> None:
    length, whole = 4, 24
    known = by_hand.defined(cei_plain, 0, length)
    assert len(known) == 2 * whole - whole // length
    assert known[1] == {0, 1, 2, 3} and known[2] == {0, 1} and known[7] == {3}
    assert known[8 + 3] == {6, 7}
    ix = by_hand.empty(cei_plain, 1, length)
    assert by_hand.cut(cei_plain, ix, 4, 8) == [(9, 4, 7), (2 * whole + 8, 8, 8)]
