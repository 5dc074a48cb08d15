from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from limen.kernels.sorted_scan import count, report, running_max


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=40))
def test_scan_stops_no_earlier_than_it_may(rows: list[tuple[int, int]]) -> None:
    rows = sorted((lo, lo + width) for lo, width in rows)
    lo, hi = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    reach = running_max(hi)
    assert reach.tolist() == [max(hi[: i + 1]) for i in range(len(rows))]
    xs = np.arange(-1, 43)
    found = np.empty(len(xs), np.int32)
    count(lo, hi, reach, xs, found)
    assert found.tolist() == [sum(a <= x <= b for a, b in rows) for x in xs]
    offsets = np.concatenate([[0], np.cumsum(found)])
    out = np.empty(offsets[-1], np.int32)
    report(lo, hi, reach, np.arange(len(rows), dtype=np.int32), xs, offsets, out)
    for i, x in enumerate(xs):
        mine = sorted(out[offsets[i] : offsets[i + 1]].tolist())
        assert mine == [who for who, (a, b) in enumerate(rows) if a <= x <= b]
