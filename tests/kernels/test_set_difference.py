from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.set_difference import set_difference

Pairs = list[tuple[list[int], list[int]]]


def difference(pairs: Pairs, most: int) -> list[list[int]]:
    a_ids = [q for a, _ in pairs for q in a]
    b_ids = [q for _, b in pairs for q in b]
    marks = np.zeros(most, np.uint8)
    ends = np.zeros(len(pairs) + 1, np.int64)
    found = np.full(len(a_ids) + len(b_ids) + 1 + 10, 99, np.int32)
    set_difference(
        np.cumsum([0, *(len(a) for a, _ in pairs)]),
        np.array(a_ids, np.int32),
        np.cumsum([0, *(len(b) for _, b in pairs)]),
        np.array(b_ids, np.int32),
        marks,
        ends,
        found[:-10],
    )
    assert not marks.any()
    assert (found[-10:] == 99).all()
    return [found[i:j].tolist() for i, j in itertools.pairwise(ends.tolist())]


some = st.lists(st.integers(0, 12), max_size=10, unique=True)


@given(st.lists(st.tuples(some, some), max_size=12))
def test_what_is_only_in_one(pairs: Pairs) -> None:
    for (a, b), found in zip(pairs, difference(pairs, 13), strict=True):
        left, entered = [q for q in a if q not in b], [q for q in b if q not in a]
        assert found == [~q for q in left] + entered


def test_many() -> None:
    a, b = list(range(0, 3000, 2)), list(range(0, 3000, 3))
    found = difference([(a, b), (b, a), (a, a), ([], b), (a, [])], 3000)
    left, entered = [q for q in a if q % 3], [q for q in b if q % 2]
    assert found[0] == [~q for q in left] + entered
    assert found[1] == [~q for q in entered] + left
    assert found[2:] == [[], b, [~q for q in a]]
