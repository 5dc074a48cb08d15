from __future__ import annotations

import numpy as np
import pyarrow as pa

from limen.indexes.cei import CEI
from limen.indexes.spare import Spare


def test_a_buffer_is_used_again_only_when_nobody_looks_at_it() -> None:
    spare = Spare(np.int32)
    first = spare.empty(100)[:50]
    where = first.ctypes.data
    assert spare.empty(100)[:50].ctypes.data != where
    held = pa.array(spare.empty(80)[:80])
    assert spare.empty(80)[:1].ctypes.data != held.buffers()[1].address
    last = spare.empty(90)
    where = last.ctypes.data
    del last
    assert spare.empty(60).ctypes.data == where


def test_a_kept_answer_is_not_overwritten_by_the_next() -> None:
    index = CEI()
    index.build(np.arange(100), np.arange(100), np.arange(100) + 9)
    kept = [(x, index.stab_many(np.array([x, x + 1]))) for x in range(0, 90, 7)]
    counts = [(x, index.count_many(np.array([x]))) for x in range(0, 90, 7)]
    for x, (offsets, ids) in kept:
        first = np.sort(ids[: offsets[1]])
        assert first.tolist() == list(range(max(0, x - 9), x + 1))
    for x, count in counts:
        assert count.tolist() == [min(10, x + 1)]
