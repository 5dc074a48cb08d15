"""What every index promises, run over the registry: answers, updates, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.indexes import INDEXES, IntervalIndex, create
from limen.testing.oracle import stabbed
from limen.testing.strategies import INT64, ordinal_ranges, ordinals

pytestmark = pytest.mark.parametrize("name", sorted(INDEXES))

Ranges = dict[int, tuple[int, int]]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.lists(ordinal_ranges(), min_size=1, max_size=12)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 40), min_size=1, max_size=8)),
        st.tuples(st.just("build"), st.lists(ordinal_ranges(), max_size=12)),
    ),
    min_size=1,
    max_size=8,
)


def arrays(ranges: Ranges) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ids = np.array(list(ranges), np.int32)
    ends = np.array(list(ranges.values()), np.int64).reshape(-1, 2)
    return ids, ends[:, 0], ends[:, 1]


def probes(ranges: Ranges, extra: list[int]) -> np.ndarray:
    """Both ends of every range, their neighbours, and more."""
    near = {e + d for ends in ranges.values() for e in ends for d in (-1, 0, 1)}
    wanted = near | set(extra) | {*INT64, 0}
    return np.array(sorted(x for x in wanted if INT64[0] <= x <= INT64[1]), np.int64)


def check(index: IntervalIndex, ranges: Ranges, xs: np.ndarray) -> None:
    rows = [(who, *ends) for who, ends in ranges.items()]
    expected = [stabbed(int(x), rows) for x in xs]
    offsets, ids = index.stab_many(xs)
    assert [sorted(ids[a:b].tolist()) for a, b in itertools.pairwise(offsets)] == expected
    assert index.count_many(xs).tolist() == [len(found) for found in expected]
    repeated = np.repeat(xs, 1 + 64 // len(xs) if len(xs) else 1)
    assert (
        index.count_many(repeated).tolist()
        == np.repeat([len(found) for found in expected], len(repeated) // max(len(xs), 1)).tolist()
    )
    assert len(index) == len(ranges)


@given(history=steps, extra=st.lists(ordinals(), max_size=10))
def test_histories_agree_with_the_oracle(name: str, history: list, extra: list[int]) -> None:
    index, ranges, fresh = create(name), {}, 0
    for step, body in history:
        if step == "delete":
            gone = [list(ranges)[i % len(ranges)] for i in body] if ranges else []
            gone = list(dict.fromkeys(gone))
            index.delete(np.array(gone, np.int32))
            for who in gone:
                del ranges[who]
        else:
            new = {fresh + i: ends for i, ends in enumerate(body)}
            fresh += len(body)
            if step == "build":
                ranges = new
                index.build(*arrays(new))
            else:
                ranges |= new
                index.insert(*arrays(new))
        check(index, ranges, probes(ranges, extra))


@given(ranges=st.lists(ordinal_ranges(), max_size=60), xs=st.lists(ordinals(), max_size=30))
def test_build_equals_one_insert_at_a_time(
    name: str, ranges: list[tuple[int, int]], xs: list[int]
) -> None:
    built, grown = create(name), create(name)
    by_id = dict(enumerate(ranges))
    built.build(*arrays(by_id))
    for who, ends in by_id.items():
        grown.insert(*arrays({who: ends}))
    for index in (built, grown):
        check(index, by_id, probes(by_id, xs))


@pytest.mark.parametrize(
    "case", ["all equal", "all disjoint", "all nested", "one covers all", "points", "one point"]
)
def test_shapes(name: str, case: str) -> None:
    n = 300
    ranges = {
        "all equal": [(10, 20)] * n,
        "all disjoint": [(100 * i, 100 * i + 40) for i in range(n)],
        "all nested": [(i, 2 * n - i) for i in range(n)],
        "one covers all": [INT64] + [(i, i + 3) for i in range(n)],
        "points": [(7 * i, 7 * i) for i in range(n)],
        "one point": [(5, 5)] * n,
    }[case]
    by_id = dict(enumerate(ranges))
    index = create(name)
    index.build(*arrays(by_id))
    xs = probes(by_id, [])[:: 3 if len(by_id) > 100 else 1]
    check(index, by_id, xs)
    index.delete(np.arange(0, n, 2, dtype=np.int32))
    for who in range(0, n, 2):
        del by_id[who]
    check(index, by_id, xs)


def test_empty(name: str) -> None:
    index = create(name)
    offsets, ids = index.stab_many(np.array([1, 2], np.int64))
    assert offsets.tolist() == [0, 0, 0] and len(ids) == 0
    assert index.count_many(np.array([INT64[0], INT64[1]])).tolist() == [0, 0]
    assert len(index) == 0 and index.nbytes >= 0
    index.build(*arrays({3: (1, 2)}))
    offsets, ids = index.stab_many(np.empty(0, np.int64))
    assert offsets.tolist() == [0] and len(ids) == 0
    assert index.stab(2).tolist() == [3] and index.stab(3).tolist() == []


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("insert", ([5], [3], [2]), "id 5: lo 3 is above hi 2"),
        ("insert", ([1], [0], [1]), "id 1 is already in the index"),
        ("insert", ([6, 6], [0, 0], [1, 1]), "id 6 is given twice"),
        ("insert", ([-1], [0], [1]), "id -1 is negative"),
        ("insert", ([6, 7], [0], [1]), "differ in length: 2, 1, 1"),
        ("build", ([5], [3], [2]), "id 5: lo 3 is above hi 2"),
        ("build", ([5, 5], [1, 1], [2, 2]), "id 5 is given twice"),
        ("delete", ([9],), "id 9 is not in the index"),
        ("delete", ([1, 1],), "id 1 is given twice"),
        ("delete", ([1, -2],), "id -2 is not in the index"),
    ],
)
def test_bad_input_changes_nothing(name: str, call: str, arguments: tuple, message: str) -> None:
    index, by_id = create(name), {1: (0, 10), 2: (5, 8)}
    index.build(*arrays(by_id))
    with pytest.raises(ValueError, match=message):
        getattr(index, call)(*(np.array(a, np.int64) for a in arguments))
    check(index, by_id, probes(by_id, []))


def test_unknown_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"no index named 'x{name}'; there are: .*cei"):
        create(f"x{name}")


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("stab_many", ([1.9],), "integers are needed, not float64"),
        ("stab_many", ([2**64 - 1],), "18446744073709551615 does not fit int64"),
        ("count_many", ([2**63],), "does not fit int64"),
        ("insert", ([2**32 + 5], [0], [1]), "4294967301 does not fit int32"),
        ("delete", ([2**32 + 1],), "does not fit int32"),
    ],
)
def test_nothing_is_cast_silently(name: str, call: str, arguments: tuple, message: str) -> None:
    index = create(name)
    index.build(*arrays({1: (0, 10)}))
    with pytest.raises(ValueError, match=message):
        getattr(index, call)(*(np.array(a) for a in arguments))
    assert index.count_many(np.array([5])).tolist() == [1] and len(index) == 1
