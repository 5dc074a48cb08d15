from __future__ import annotations

import pytest

from limen.kernels import sci_bc

from . import constructs_by_hand as by_hand


@pytest.mark.parametrize("closed", [0, 1])
@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_a_row_is_the_covering_segment(length: int, closed: int) -> None:
    rows = sci_bc.layout(by_hand.R, length, closed)
    for j in range(length, by_hand.R):
        found = by_hand.covering_segment(sci_bc, closed, j, length)
        assert found == range(rows.base + rows.step * j, rows.base + rows.step * j + rows.bits)
