from __future__ import annotations

from limen.kernels import id_lists, lci_bv

from . import constructs_by_hand as by_hand


def test_there_are_no_bits() -> None:
    assert by_hand.empty(lci_bv, 1).bits.size == 0


def test_a_list_of_the_segment_that_does_not_reach_the_value_is_passed_over() -> None:
    ix = by_hand.empty(lci_bv, 1)
    by_hand.put(lci_bv, ix, 9, 4, 5)
    found = by_hand.search(lci_bv, ix, id_lists.REPORT, room=8)
    assert [x for x, ids in enumerate(found) if ids] == [4, 5]
