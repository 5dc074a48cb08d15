"""Dwell and hysteresis: from crossings of ranges, and of ranges with a margin, to what is reported.

Of a pair of an entity and a query come, in order: CAME (it is in the range now), LEFT (it is no longer in
the range), GONE (nor in the range with its margin). An entity that has come is inside until it is gone;
in between it *lingers*. Without a margin it is gone when it has left, and then only GONE is given.

With a dwell time an enter is *pending*, and reported only when the entity has been inside for so long;
one that is gone before was never reported, and its exit is not either. Pairs that linger or are pending
are held from one batch to the next, and begin with HELD. A pair that is not held and begins with LEFT
(or, without a margin, with GONE) was inside, and reported or known to be.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import loop
from limen.kernels.memory import I64

U8 = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

HELD, LEFT, GONE, CAME = range(4)
LINGERS, PENDING = np.uint8(1), np.uint8(2)  # states of a held pair, or both


@loop
def report(
    pairs: I64,
    codes: U8,
    times: I64,
    states: U8,
    dwell: int,
    margin: bool,
    entered: Mask,
    of_row: I64,
    at: I64,
    held_pair: I64,
    held_since: I64,
    held_state: U8,
    held_row: I64,
) -> tuple[int, int]:
    """What is reported of rows in the order of their pairs, and of time within a pair.

    A row of code HELD has its state in `states` and, if it is pending, in `times` since when; with dwell
    0 nothing becomes pending. Report i is an enter or exit at[i] that row of_row[i] has brought about.
    held_row is the row with which a pending one came. Returns the numbers of reports and of pairs to
    hold.
    """
    n, m = 0, 0
    inside, lingering, pending, since, came = False, False, False, np.int64(0), np.int64(-1)
    for i in range(len(pairs)):
        if i == 0 or pairs[i] != pairs[i - 1]:
            lingering, pending, since, came = False, False, np.int64(0), np.int64(-1)
            inside = codes[i] == LEFT or (codes[i] == GONE and not margin)
        code = codes[i]
        if code == HELD:
            lingering, pending = states[i] & LINGERS != 0, states[i] & PENDING != 0
            inside, since, came = True, times[i], i
        elif code == LEFT:
            lingering = True
        elif code == CAME:
            if not inside:
                inside = True
                if dwell > 0:
                    pending, since, came = True, times[i], i
                else:
                    entered[n], of_row[n], at[n] = True, i, times[i]
                    n += 1
            lingering = False
        elif inside:
            stayed = not pending or not 0 <= times[i] - since < dwell
            if stayed and pending:
                entered[n], of_row[n], at[n] = True, came, since + dwell
                n += 1
            if stayed:
                entered[n], of_row[n], at[n] = False, i, times[i]
                n += 1
            inside, lingering, pending = False, False, False
        last = i + 1 == len(pairs) or pairs[i + 1] != pairs[i]
        if last and inside and (lingering or pending):
            held_pair[m], held_since[m], held_row[m] = pairs[i], since, came
            held_state[m] = (LINGERS if lingering else 0) | (PENDING if pending else 0)
            m += 1
    return n, m
