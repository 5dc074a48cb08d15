from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from limen.engine.codes import GroupCodes, NumberCodes, TextCodes

texts = st.lists(st.sampled_from([None, "a", "b", "", "é"]), max_size=12)


@given(texts, texts)
def test_text_codes_stay(first: list, second: list) -> None:
    codes = TextCodes()
    before = codes.learn(pa.array(first, pa.string())).tolist()
    codes.learn(pa.array(second, pa.string()))
    assert codes.find(pa.array(first, pa.string())).tolist() == before
    by_value = dict(zip(first, before, strict=True))
    assert by_value.get(None, -1) == -1
    assert len(set(by_value.values())) == len(by_value)
    unknown = codes.find(pa.array(["x", None]).dictionary_encode()).tolist()
    assert unknown == [-1, -1]


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=60), max_size=4))
def test_number_codes_stay(batches: list[list[int]]) -> None:
    codes, known = NumberCodes(), {}
    for batch in batches:
        found = codes.learn(np.array(batch, np.int64)).tolist()
        for value, code in zip(batch, found, strict=True):
            assert known.setdefault(value, code) == code
    assert sorted(known.values()) == list(range(len(known))) and len(codes) == len(known)
    missing = [x for x in (0, 1, -5, 2**40) if x not in known]
    assert codes.find(np.array(missing, np.int64)).tolist() == [-1] * len(missing)


@given(st.lists(st.tuples(*[st.integers(-1, 3)] * 3), max_size=30))
def test_group_codes_are_one_to_one(rows: list[tuple[int, int, int]]) -> None:
    groups = GroupCodes(3)
    columns = [np.array([row[i] for row in rows], np.int32) for i in range(3)]
    found = groups.learn(columns).tolist()
    assert groups.find(columns).tolist() == found
    known = {}
    for row, code in zip(rows, found, strict=True):
        if min(row) < 0:
            assert code == -1
        else:
            assert known.setdefault(row, code) == code
    assert len(set(known.values())) == len(known)


def test_booleans_and_views_have_codes() -> None:
    codes = TextCodes()
    assert codes.learn(pa.array([True, None, False, True])).tolist()[1] == -1
    assert sorted(codes.find(pa.array([False, True])).tolist()) == [0, 1]
    assert codes.values.cast(pa.bool_()).take(
        pa.array(codes.find(pa.array([True])))
    ).to_pylist() == [True]
    texts = TextCodes()
    texts.learn(pa.array(["x", "a", "b"]).slice(1))
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.large_binary()):
        assert texts.find(pa.array(["b", "a", "x", None]).cast(kind)).tolist() == [1, 0, -1, -1]


def test_a_dictionary_longer_than_its_column() -> None:
    codes = TextCodes()
    codes.learn(pa.array(["a", "b"]))
    column = pa.DictionaryArray.from_arrays(pa.array([2, None], pa.int8()), ["x", "a", "b", "c"])
    assert codes.find(column).tolist() == [1, -1]
    assert codes.find(pa.concat_arrays([column] * 3)).tolist() == [1, -1] * 3


@given(
    st.lists(st.lists(st.integers(-4, 40), max_size=60), min_size=1, max_size=5), st.integers(0, 4)
)
def test_what_is_appended_is_found_at_its_latest_place(batches: list, reload: int) -> None:
    numbers, texts, latest = NumberCodes(), TextCodes(), {}
    for step, batch in enumerate(batches):
        latest |= {value: len(numbers) + i for i, value in enumerate(batch)}
        numbers.append(np.array(batch, np.int64))
        texts.append(pa.array(map(str, batch), pa.string()))
        if step == reload:  # as if saved and mapped
            numbers = NumberCodes.of_arrays(numbers.arrays(), len(numbers))
            texts = TextCodes.of_arrays(texts.arrays(), len(texts))
        expected = [latest.get(value, -1) for value in range(-5, 42)]
        assert numbers.find(np.arange(-5, 42)).tolist() == expected
        assert texts.find(pa.array(map(str, range(-5, 42)))).tolist() == expected
    everything = [value for batch in batches for value in batch]
    assert numbers.values.tolist() == everything
    assert texts.values.to_pylist() == [str(value) for value in everything]
