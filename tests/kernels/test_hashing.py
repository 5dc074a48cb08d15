from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.hashing import find_codes, put_codes
from limen.testing.strategies import ordinals


@given(st.lists(ordinals(), max_size=100, unique=True), st.lists(ordinals(), max_size=50))
def test_known_keys_have_their_codes_and_others_none(keys: list[int], others: list[int]) -> None:
    bits = (4 * len(keys) + 4).bit_length()
    slots = np.full(1 << bits, -1, np.int32)
    known = np.array(keys, np.int64)
    half = len(keys) // 2
    put_codes(slots, bits, known, 0, half)
    put_codes(slots, bits, known, half, len(keys))
    xs = np.array(keys + others, np.int64)
    codes = np.empty(len(xs), np.int32)
    find_codes(slots, bits, known, xs, codes)
    expected = {key: code for code, key in enumerate(keys)}
    assert codes.tolist() == [expected.get(x, -1) for x in xs.tolist()]


@given(st.lists(st.integers(-5, 5), max_size=40))
def test_a_key_that_comes_again_has_its_latest_code(keys: list[int]) -> None:
    bits = (4 * len(keys) + 4).bit_length()
    slots, known = np.full(1 << bits, -1, np.int32), np.array(keys, np.int64)
    put_codes(slots, bits, known, 0, len(keys))
    codes = np.empty(len(keys), np.int32)
    find_codes(slots, bits, known, known, codes)
    latest = {key: code for code, key in enumerate(keys)}
    assert codes.tolist() == [latest[key] for key in keys]
