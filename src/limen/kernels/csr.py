"""Operations on results in CSR form: ids[offsets[i]:offsets[i + 1]] belong to event i.

`verify` keeps the ids whose further ranges contain the event's further values; `append` puts the
results of two indexes behind each other, event by event. Each is one pass over the ids.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import compiled, loop
from limen.kernels.memory import I32, I64, prefetch

AHEAD = 16


@loop
def verify(offsets: I64, ids: I32, xs: I64, ranges: I64) -> None:
    """Keep, in place, the ids with ranges[id, 0] <= xs[event] <= ranges[id, 1]."""
    kept = 0
    begin = offsets[0]
    n_ids = offsets[len(xs)]
    for e in range(len(xs)):
        x = xs[e]
        end = offsets[e + 1]
        for j in range(begin, end):
            if j + AHEAD < n_ids:
                prefetch(ranges, 2 * np.int64(ids[j + AHEAD]))
            who = ids[j]
            ids[kept] = who
            kept += (ranges[who, 0] <= x) & (x <= ranges[who, 1])
        begin = end
        offsets[e + 1] = kept


@compiled
def append(a_offsets: I64, a_ids: I32, b_offsets: I64, b_ids: I32, ids: I32) -> I64:
    """Event by event first a's ids then b's, into ids; returns the offsets."""
    n = len(a_offsets) - 1
    offsets = np.zeros(n + 1, np.int64)
    o = 0
    for e in range(n):
        for j in range(a_offsets[e], a_offsets[e + 1]):
            ids[o] = a_ids[j]
            o += 1
        for j in range(b_offsets[e], b_offsets[e + 1]):
            ids[o] = b_ids[j]
            o += 1
        offsets[e + 1] = o
    return offsets
