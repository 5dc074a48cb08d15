from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.csr import append, verify

lists = st.lists(st.lists(st.integers(0, 9), max_size=30), min_size=1, max_size=12)


def csr(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0] + [len(row) for row in rows]).astype(np.int64)
    return offsets, np.array([x for row in rows for x in row], np.int32)


@given(lists, st.data())
def test_verify_keeps_what_contains_the_value(rows: list[list[int]], data: st.DataObject) -> None:
    ends = data.draw(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=10, max_size=10)
    )
    xs = data.draw(st.lists(st.integers(0, 5), min_size=len(rows), max_size=len(rows)))
    offsets, ids = csr(rows)
    verify(offsets, ids, np.array(xs, np.int64), np.array(ends, np.int64))
    kept = [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    assert kept == [
        [q for q in row if ends[q][0] <= x <= ends[q][1]] for row, x in zip(rows, xs, strict=True)
    ]


@given(lists, st.data())
def test_append_puts_b_behind_a(a: list[list[int]], data: st.DataObject) -> None:
    b = data.draw(
        st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=len(a), max_size=len(a))
    )
    (a_offsets, a_ids), (b_offsets, b_ids) = csr(a), csr(b)
    out = np.empty(len(a_ids) + len(b_ids), np.int32)
    offsets = append(a_offsets, a_ids, b_offsets, b_ids, out)
    both = [out[i:j].tolist() for i, j in itertools.pairwise(offsets)]
    assert both == [x + y for x, y in zip(a, b, strict=True)]
