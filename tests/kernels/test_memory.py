from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.memory import LINE_WORDS, PUT_WORDS, aligned_words, put


@given(n=st.integers(0, 400), o=st.integers(0, 40), s=st.integers(0, 40), behind=st.booleans())
def test_put_copies_and_writes_at_most_its_spare(n: int, o: int, s: int, behind: bool) -> None:
    mem, own = np.arange(1000, dtype=np.int32), np.arange(1000, 2000, dtype=np.int32)
    out = np.full(1000, -1, np.int32)
    address = s + 1000 if behind else s
    put(out, o, mem, own, address, n)
    assert out[o : o + n].tolist() == list(range(address, address + n))
    assert (out[:o] == -1).all() and (out[o + n + PUT_WORDS :] == -1).all()


def test_aligned_words_begin_on_two_lines() -> None:
    for n in (1, 100, 5000, 10**6):
        words = aligned_words(n)
        assert len(words) == n and words.ctypes.data % (4 * LINE_WORDS) == 0 and not words.any()
