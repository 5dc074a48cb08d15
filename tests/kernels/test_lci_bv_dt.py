from __future__ import annotations

import pytest

from limen.kernels import lci_bv_dt

from . import constructs_by_hand as by_hand


@pytest.mark.parametrize("closed", [0, 1])
@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_one_table_serves_every_value(length: int, closed: int) -> None:
    table, ends = lci_bv_dt.distance_table(length, closed)
    known = by_hand.defined(lci_bv_dt, closed, length)
    for j in range(by_hand.R):
        least = (j - length + 1 - closed) * length.bit_length() + length.bit_length() - 1
        labels = [least + int(d) for d in table]
        assert {x for x in labels if x >= 0} == {x for x, covers in known.items() if j in covers}
        ending = {x for x, covers in known.items() if closed and max(covers) == j}
        assert {x for x in labels[:ends] if x >= 0} == ending
    levels = length.bit_length()
    assert len(table) == (2 * length + levels - 1 if closed else 2 * length - 1)
