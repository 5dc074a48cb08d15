from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.memory import LINE_WORDS, PUT_WORDS, aligned_words, put


@given(n=st.integers(0, 400), o=st.integers(0, 40), s=st.integers(0, 40))
def test_put_copies_and_writes_at_most_its_spare(n: int, o: int, s: int) -> None:
    src = np.arange(1000, dtype=np.int32)
    out = np.full(1000, -1, np.int32)
    put(out, o, src, s, n)
    assert out[o : o + n].tolist() == list(range(s, s + n))
    assert (out[:o] == -1).all() and (out[o + n + PUT_WORDS :] == -1).all()


def test_aligned_words_begin_on_two_lines() -> None:
    for n in (1, 100, 5000, 10**6):
        words = aligned_words(n)
        assert len(words) == n and words.ctypes.data % (4 * LINE_WORDS) == 0 and not words.any()
