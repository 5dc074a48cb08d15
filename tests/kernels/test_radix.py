from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.radix import locality_order


@given(st.lists(st.integers(0, 2**22 - 1), max_size=200))
def test_order_is_sorted_and_stable(keys: list[int]) -> None:
    array = np.array(keys, np.int32)
    bits = int(max(keys, default=0)).bit_length()
    assert locality_order(array, bits).tolist() == np.argsort(array, kind="stable").tolist()


@given(st.lists(st.integers(0, 2**31 - 1), max_size=100))
def test_wide_keys_are_ordered_by_their_top_bits(keys: list[int]) -> None:
    array = np.array(keys, np.int32)
    order = locality_order(array, 31)
    assert sorted(order.tolist()) == list(range(len(keys)))
    tops = array[order] >> 9
    assert (np.diff(tops) >= 0).all()
