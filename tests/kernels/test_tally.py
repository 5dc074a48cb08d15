"""Counts by parts are the counts that the cells themselves give, whatever the parts' size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.indexes.cei import CEI
from limen.kernels import tally
from limen.testing.strategies import ordinal_ranges, ordinals

NO_GROUPS = np.empty(0, np.int32)


def counts(index: CEI, xs: np.ndarray, layout: np.ndarray, tallies: np.ndarray) -> list[int]:
    found = np.empty(len(xs), np.int32)
    tally.count(index._ix, index._scratch, index._top, layout, tallies, NO_GROUPS, xs, found)
    return found.tolist()


@given(
    ranges=st.lists(ordinal_ranges(), min_size=1, max_size=40),
    more=st.lists(ordinals(), max_size=10),
    bits=st.integers(0, 6),
    kind=st.sampled_from([np.uint16, np.uint32]),
)
def test_parts_count_as_cells_do(ranges: list, more: list[int], bits: int, kind: type) -> None:
    ends = np.array(ranges, np.int64)
    index = CEI()
    index.build(np.arange(len(ranges)), ends[:, 0], ends[:, 1])
    layout, parts = tally.part_layout(index._ix.nodes, bits)
    tallies = np.empty(parts, np.uint32)
    most = tally.tally(index._ix, index._scratch, index._top, layout, tallies)
    near = {e + d for pair in ranges for e in pair for d in (-1, 0, 1)} | set(more)
    xs = np.array([x for x in near if -(2**63) <= x < 2**63], np.int64)
    expected = [int(((ends[:, 0] <= x) & (x <= ends[:, 1])).sum()) for x in xs]
    assert counts(index, xs, layout, tallies.astype(kind)) == expected
    assert counts(index, xs, layout, np.empty(0, kind)) == expected
    known = tallies[tallies != tally.NO_TALLY]
    assert most >= max(known.max(initial=0), max(expected, default=0))


@pytest.mark.parametrize("bits", [0, 4])
def test_unit_parts_of_integers_are_all_known(bits: int) -> None:
    lo = np.arange(0, 3000, 3)
    index = CEI()
    index.build(np.arange(len(lo)), lo, lo + 40)
    layout, parts = tally.part_layout(index._ix.nodes, bits)
    tallies = np.empty(parts, np.uint32)
    tally.tally(index._ix, index._scratch, index._top, layout, tallies)
    unknown = np.count_nonzero(tallies == tally.NO_TALLY)
    assert unknown <= 2 if bits else unknown > 100  # the outermost parts reach beyond the queries
