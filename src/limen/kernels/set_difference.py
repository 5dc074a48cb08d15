"""The difference of two sets of ids, event by event, both ways: DiffRMQ's second step.

Each id of the second set is marked; the first set gives those without a mark, and takes the mark off the
others, and the second set gives those that still have one. A pass over each set to report, and one over
the second to mark.
"""

from __future__ import annotations

import numpy as np

from limen.kernels.bmq import Marks
from limen.kernels.compiled import loop
from limen.kernels.memory import I32, I64


@loop
def set_difference(
    a_ends: I64, a_ids: I32, b_ends: I64, b_ids: I32, marks: Marks, ends: I64, found: I32
) -> None:
    """Into found, event by event: ~q for what is only in a, q for what is only in b."""
    n = np.int64(0)
    for i in range(len(ends) - 1):
        for j in range(b_ends[i], b_ends[i + 1]):
            marks[b_ids[j]] = 1
        for j in range(a_ends[i], a_ends[i + 1]):
            q = a_ids[j]
            found[n] = ~q
            n += 1 - marks[q]
            marks[q] = 0
        for j in range(b_ends[i], b_ends[i + 1]):
            q = b_ids[j]
            found[n] = q
            n += marks[q]
            marks[q] = 0
        ends[i + 1] = n
