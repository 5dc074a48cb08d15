from __future__ import annotations

import pytest

from limen.kernels import id_lists, lci, lci_bc, sci, sci_bc

from . import constructs_by_hand as by_hand


@pytest.mark.parametrize("kernel", [lci, lci_bc, sci, sci_bc])
def test_a_query_cut_in_pieces_is_found_once_where_they_meet(kernel) -> None:
    ix = by_hand.empty(kernel, 1)
    by_hand.put(kernel, ix, 7, 2, 17)
    found = by_hand.search(kernel, ix, id_lists.REPORT, room=64)
    assert found == [[7] if 2 <= x <= 17 else [] for x in range(by_hand.R)]
    lists = by_hand.search(kernel, ix, id_lists.FIND)
    assert max(lists) == 2  # at the joints two constructs hold it


@pytest.mark.parametrize("kernel", [lci, sci])
def test_endings_are_the_constructs_that_end_at_a_value(kernel) -> None:
    layout, known = kernel.layout(by_hand.R, 4, 1), by_hand.defined(kernel, 1)
    j = 9
    ending = sorted(label for label, covers in known.items() if max(covers) == j)
    assert [j * layout.group + int(d) for d in layout.endings] == ending
    assert len(kernel.layout(by_hand.R, 4, 0).endings) == 0
