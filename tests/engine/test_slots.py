"""Queries by slot: finding ids, comparing bodies, and which attributes are in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen import Matcher, QueryError, QuerySet
from limen.engine.slots import Slots

TYPES = {"price": "float64", "symbol": "string", "flag": "bool", "volume": "int64"}
ids = st.one_of(
    st.lists(st.integers(-3, 12), min_size=1, max_size=8, unique=True),
    st.lists(
        st.sampled_from(["a", "b", "ab", "é", "ba", "x"]), min_size=1, max_size=6, unique=True
    ),
)


@given(ids, st.lists(st.lists(st.integers(0, 7), max_size=5), max_size=6))
def test_an_id_is_found_in_its_latest_slot(known: list, changes: list[list[int]]) -> None:
    slots = Slots(QuerySet.empty("string" if isinstance(known[0], str) else "int64"))
    expected: dict = {}
    for change in changes:
        some = list(dict.fromkeys(known[i % len(known)] for i in change))
        gone = [who for who in some if who in expected]
        slots.remove(slots.find_all(gone))
        for who in gone:
            del expected[who]
        new = [who for who in some if who not in gone]
        if new:
            given_ = slots.append(QuerySet.of(dict.fromkeys(new, "price > 1"), TYPES))
            expected |= dict(zip(new, given_.tolist(), strict=True))
        found = slots.find(pa.array(known))
        assert found.tolist() == [expected.get(who, -1) for who in known]
        assert slots.size == len(expected)


@pytest.mark.parametrize(
    "absent", [True, 1.0, None, "1", b"1", 2**64, -(2**70), 7, np.bool_(True), [1]]
)
def test_what_is_no_id_of_the_set_is_refused(absent: object) -> None:
    matcher = Matcher(QuerySet.of({1: "price > 1", 2: "price > 2"}, TYPES))
    with pytest.raises(QueryError, match=r"no query has the id .* \(1 such ids\)"):
        matcher.remove([2, absent, absent])  # type: ignore[list-item]
    assert len(matcher) == 2


@pytest.mark.parametrize("absent", [1, True, None, "", "\ud800", b"a"])
def test_what_is_no_text_id_of_the_set_is_refused(absent: object) -> None:
    matcher = Matcher(QuerySet.of({"a": "price > 1", "True": "price > 2"}, TYPES))
    with pytest.raises(QueryError, match=r"no query has the id .* \(1 such ids\)"):
        matcher.remove(["a", absent])  # type: ignore[list-item]
    assert len(matcher) == 2


@pytest.mark.parametrize(
    "gone",
    [
        [1, 2, 1],
        (who for who in (2, 1)),
        {1: "x", 2: "y"},
        range(1, 3),
        np.array([1, 2, 2]),
        pa.array([2, 1, 2]),
        pa.array([1, 2], pa.int16()),
        pa.chunked_array([[1], [2]]),
        pa.array([1, 2, 1]).dictionary_encode(),
    ],
)
def test_ids_to_remove_come_in_many_forms(gone: object) -> None:
    matcher = Matcher(QuerySet.of({i: f"price > {i}" for i in range(4)}, TYPES))
    assert matcher.remove(gone) == 2  # type: ignore[arg-type]
    assert matcher.queries().ids.to_pylist() == [0, 3]
    texts = Matcher(QuerySet.of({f"q{i}": f"price > {i}" for i in range(4)}, TYPES))
    if isinstance(gone, pa.Array):
        assert texts.remove(pa.array([f"q{i}" for i in gone.to_pylist()])) == 2
        assert texts.remove(pa.chunked_array([["q0"], ["q3", "q0"]])) == 2
        assert len(texts) == 0


@pytest.mark.parametrize(
    "gone", [pa.array([1.0]), pa.array(["1"]), pa.array([True]), pa.array([None, 1])]
)
def test_columns_to_remove_are_not_cast(gone: pa.Array) -> None:
    matcher = Matcher(QuerySet.of({1: "price > 1"}, TYPES))
    with pytest.raises(QueryError, match="no query has the id"):
        matcher.remove(gone)
    assert len(matcher) == 1


BODIES = [
    "price > 1",
    "price > 2",
    "price > 1 AND symbol = 'KO'",
    "price > 1 AND symbol = 'IBM'",
    "symbol = 'KO'",
    "flag = true AND price > 1",
    "flag = false AND price > 1",
    "price > 1 AND volume > 3",
    "volume > 3",
]


@pytest.mark.parametrize("mine", BODIES)
@pytest.mark.parametrize("other", BODIES)
def test_bodies_are_compared_whole(mine: str, other: str) -> None:
    slots = Slots(QuerySet.of({"x": "price > 1", "a": mine, "b": mine}, TYPES))
    asked = QuerySet.of({"b": other, "a": other}, TYPES)
    assert slots.same(slots.find(asked.ids), asked).tolist() == [mine == other] * 2


def test_attributes_follow_the_queries() -> None:
    queries = {1: "price > 1", 2: "symbol = 'KO' AND price > 2", 3: "volume > 1 AND price > 1"}
    matcher = Matcher(QuerySet.of(queries, TYPES))
    event = pa.table({"price": [5.0, None]})
    matcher.remove([2, 3])
    assert matcher.attributes == {"price": pa.float64()}
    matches, quarantine = matcher.match(event)
    assert matches["query_id"].to_pylist() == [1] and len(quarantine) == 1
    matcher.remove([1])
    assert matcher.attributes == {} and len(matcher.match(event).quarantine) == 0
    matcher.add(QuerySet.of({4: "symbol = 'IBM'", 5: "price = 3"}, {**TYPES, "price": "int64"}))
    assert matcher.attributes == {"symbol": pa.string(), "price": pa.int64()}
    event = pa.table({"price": [3, 4], "symbol": ["KO", "IBM"]})
    assert matcher.match(event, "ids").matches["query_ids"].to_pylist() == [[5], [4]]


def test_what_the_first_set_names_is_in_from_the_start() -> None:
    def naming(who: int) -> QuerySet:
        return QuerySet.of({who: "price > 1", who + 1: "volume > 1"}, TYPES).take([0])

    matcher = Matcher(naming(1))
    assert set(matcher.attributes) == {"price", "volume"}
    matcher.add(QuerySet.of({9: "volume > 1"}, TYPES))
    matcher.remove([9])
    assert set(matcher.attributes) == {"price"}
    matcher.add(naming(5))
    assert set(matcher.attributes) == {"price"} and len(matcher) == 2
