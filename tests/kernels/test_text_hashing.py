from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels import text_hashing
from limen.kernels.text_hashing import find_texts, put_texts

texts = st.lists(st.text(st.sampled_from("aéb\0"), max_size=6), max_size=40)


def packed(values: list[str]) -> tuple[np.ndarray, np.ndarray]:
    parts = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return offsets, np.frombuffer(bytearray(b"".join(parts)), np.uint8)


def check(known: list[str], others: list[str], bits: int) -> None:
    slots = np.full(1 << bits, -1, np.int32)
    half = len(known) // 2
    put_texts(slots, bits, *packed(known), 0, half)
    put_texts(slots, bits, *packed(known), half, len(known))
    asked = known + others
    codes = np.empty(len(asked), np.int32)
    find_texts(slots, bits, *packed(known), *packed(asked), codes)
    expected = {text: code for code, text in enumerate(known)}
    assert codes.tolist() == [expected.get(text, -1) for text in asked]
    assert np.count_nonzero(slots >= 0) == len(expected)


@given(texts, texts)
def test_known_texts_have_their_latest_codes_and_others_none(
    known: list[str], others: list[str]
) -> None:
    check(known, others, (4 * len(known) + 4).bit_length())


@given(texts, texts)
def test_in_a_table_with_hardly_a_free_place(known: list[str], others: list[str]) -> None:
    check(known, others, (len(set(known)) + 1).bit_length())


def test_texts_with_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As plain Python with a hash that is always 0; compiled code has it built in."""
    plain = {
        name: getattr(getattr(text_hashing, name), "py_func", getattr(text_hashing, name))
        for name in ("_same", "_place", "put_texts", "find_texts")
    }
    for name, function in plain.items():
        monkeypatch.setattr(text_hashing, name, function)
    monkeypatch.setattr(text_hashing, "_home", lambda *_: 0)
    known = ["a", "b", "ab", "ba", "", "abc"]
    slots, codes = np.full(16, -1, np.int32), np.empty(8, np.int32)
    plain["put_texts"](slots, 4, *packed(known), 0, len(known))
    plain["find_texts"](slots, 4, *packed(known), *packed([*known, "c", "bc"]), codes)
    assert codes.tolist() == [0, 1, 2, 3, 4, 5, -1, -1]
