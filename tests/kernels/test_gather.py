from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.gather import gather
from limen.testing.strategies import ordinals


@given(st.lists(ordinals(), min_size=1, max_size=30), st.data())
def test_it_is_indexing(values: list[int], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=60))
    numbers, out = np.array(values, np.int64), np.zeros(70, np.int64)
    gather(numbers, np.array(places, np.int32), out)
    assert out[: len(places)].tolist() == [values[place] for place in places]
    assert not out[len(places) :].any()
