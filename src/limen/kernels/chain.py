"""Readings of many entities, each entity's in the order of their times: which comes before which.

One pass over a batch. The stream table says when an entity was last heard of (`heard`);
a reading that is older is late. What came before a reading is another of the batch, or
what the stream table holds, or nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import loop
from limen.kernels.memory import I32, I64

Flags = npt.NDArray[np.uint8]

PLAIN, FIRST, LATE, RETURNED = range(4)  # RETURNED: after so long that the entity was forgotten


@loop
def chain(
    entities: I32,
    times: I64,
    order: I64,
    known: npt.NDArray[np.bool_],
    heard: I64,
    newest: I32,
    floor: int,
    patience: int,
    before: I32,
    flags: Flags,
) -> int:
    """Fill `before` and `flags`, and bring `known` and `heard` up to date; returns how many are late.

    `before`: the row of the entity's last reading in this batch, or -1. `newest` is scratch space, -1 for
    every entity before and after. A reading below `floor` is late
    whatever came before; one more than `patience` after the last comes from an entity that was forgotten
    (with a negative patience, none is).
    """
    late = 0
    for i in range(len(order)):
        e = order[i]
        s = entities[e]
        t = times[e]
        before[e] = newest[s]
        if t < floor or (known[s] and t < heard[s]):
            flags[e] = LATE
            late += 1
            continue
        if not known[s]:
            flags[e] = FIRST
        elif patience >= 0 and not 0 <= t - heard[s] <= patience:  # negative: more than int64 holds
            flags[e] = RETURNED
        else:
            flags[e] = PLAIN
        known[s] = True
        heard[s] = t
        newest[s] = e
    for i in range(len(order)):
        newest[entities[order[i]]] = -1
    return late


@loop
def settle(entities: I32, values: I64, order: I64, flags: Flags, table: I64) -> None:
    """table[entity] = its last values in the batch."""
    for i in range(len(order)):
        e = order[i]
        if flags[e] != LATE:
            for k in range(values.shape[1]):
                table[entities[e], k] = values[e, k]
