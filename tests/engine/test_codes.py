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
