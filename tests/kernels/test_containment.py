"""The paper's labels and decompositions, by its own examples and by enumeration (CEI-1, CEI-2)."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.containment import best_partition, cover, covering, decompose, level_starts


def labels_of(a: int, b: int, length: int) -> list[int]:
    labels = np.empty(4096, np.int64)
    return labels[: decompose(a, b, length, labels)].tolist()


def interval(label: int, length: int) -> tuple[int, int]:
    """[begin, end) of a label, from the definition of the perfect binary tree."""
    segment, local = divmod(label, 2 * length)
    level = local.bit_length() - 1
    size = length >> level
    begin = segment * length + (local - (1 << level)) * size
    return begin, begin + size


@pytest.mark.parametrize(
    ("a", "b", "local"), [(8, 14, [2, 6]), (11, 15, [11, 6, 14])], ids=["Fig. 7(a)", "Fig. 7(b)"]
)
def test_the_papers_examples(a: int, b: int, local: list[int]) -> None:
    # The figure writes an interval by the local ids of its first and last unit: 8 is the first unit.
    labels = np.empty(16, np.int64)
    n = best_partition(a - 8, b - 8, 0, 8, labels, 0)
    assert labels[:n].tolist() == local


@pytest.mark.parametrize("length", [1, 2, 8, 16])
def test_decompositions_are_exact_smallest_and_unique(length: int) -> None:
    domain = 3 * length

    @functools.lru_cache(None)
    def fewest(a: int, b: int) -> tuple[int, int]:
        """The least number of tree intervals that make up [a, b), and how many ways there are."""
        if a == b:
            return 0, 1
        best, ways = 10**9, 0
        for label in range(1, 6 * length):
            if label % (2 * length) == 0:
                continue
            begin, end = interval(label, length)
            if begin == a and end <= b:
                rest, rest_ways = fewest(end, b)
                if rest + 1 < best:
                    best, ways = rest + 1, 0
                if rest + 1 == best:
                    ways += rest_ways
        return best, ways

    for a in range(domain):
        for b in range(a + 1, domain + 1):
            pieces = sorted(interval(label, length) for label in labels_of(a, b, length))
            assert pieces[0][0] == a and pieces[-1][1] == b
            assert all(p[1] == q[0] for p, q in itertools.pairwise(pieces))
            assert fewest(a, b) == (len(pieces), 1)


@pytest.mark.parametrize("length", [1, 2, 8, 16])
def test_numbers_of_table_1(length: int) -> None:
    labels = np.empty(64, np.int64)
    r = 4 * length
    seen = set()
    for unit in range(r):
        found = labels[: covering(unit, length, labels)].tolist()
        assert len(found) == length.bit_length()  # 1 + log L
        assert all(interval(x, length)[0] <= unit < interval(x, length)[1] for x in found)
        seen |= set(found)
    assert len(seen) == 2 * r - r // length


@given(cells=st.integers(1, 700), step=st.integers(1, 4), data=st.data())
def test_cover_is_a_partition_into_aligned_intervals(
    cells: int, step: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, cells - 1))
    last = data.draw(st.integers(first, cells - 1))
    starts = level_starts(cells, step)
    labels = np.empty(512, np.int64)
    covered = []
    for label in labels[: cover(first, last, starts, step, labels)].tolist():
        level = int(np.searchsorted(starts, label, side="right")) - 1
        size = 1 << (step * level)
        covered += range((label - starts[level]) * size, (label - starts[level] + 1) * size)
    assert sorted(covered) == list(range(first, last + 1))


@given(k=st.integers(0, 6), data=st.data())
def test_cover_with_step_one_is_the_papers_decomposition(k: int, data: st.DataObject) -> None:
    length = 1 << k
    first = data.draw(st.integers(0, length - 1))
    last = data.draw(st.integers(first, length - 1))
    starts = level_starts(length, 1)
    labels = np.empty(64, np.int64)
    mine = set()
    for label in labels[: cover(first, last, starts, 1, labels)].tolist():
        level = int(np.searchsorted(starts, label, side="right")) - 1
        mine.add(((label - starts[level]) << level, (label - starts[level] + 1) << level))
    assert mine == {interval(label, length) for label in labels_of(first, last + 1, length)}


def test_an_empty_range_has_no_cover() -> None:
    assert cover(3, 2, level_starts(10, 3), 3, np.empty(8, np.int64)) == 0
