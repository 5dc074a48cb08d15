from __future__ import annotations

from limen.kernels import lci

from . import constructs_by_hand as by_hand


def test_the_papers_example() -> None:
    """Section 2.3: with L = 16, [a, a + 7] is [a, a + 4], [a + 4, a + 6] and [a + 6, a + 7]."""
    pieces = by_hand.cut(lci, by_hand.empty(lci, 1, 16), 1, 8)
    assert [(first, last) for _, first, last in pieces] == [(1, 5), (5, 7), (7, 8)]
    assert [label for label, _, _ in pieces] == [~(1 * 5 + 2), ~(5 * 5 + 1), 7 * 5 + 0]


def test_as_many_pieces_as_the_length_has_ones() -> None:
    ix = by_hand.empty(lci, 0, 4)
    for lo, hi in by_hand.all_ranges():
        whole, rest = divmod(hi - lo + 1, 4)
        assert len(by_hand.cut(lci, ix, lo, hi)) == whole + rest.bit_count()
