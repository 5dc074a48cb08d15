"""Values to positions in a domain: the integers themselves, or the units in which real values lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import loop
from limen.kernels.memory import I64

BEYOND = 2.0**63  # the least power of two that an int64 is below


@loop
def of_integers(
    xs: I64, first: int, last: int, origin: int, found: I64, inside: npt.NDArray[Any]
) -> int:
    """Positions from `origin` on; returns how many values are outside first..last (inside[i] = 0)."""
    outside = 0
    for i in range(len(xs)):
        inside[i] = (first <= xs[i]) & (xs[i] <= last)
        outside += not inside[i]
        found[i] = xs[i] - origin
    return outside


@loop
def of_reals(
    xs: npt.NDArray[np.float64],
    first: int,
    last: int,
    origin: int,
    found: I64,
    inside: npt.NDArray[Any],
) -> int:
    """The same for the units in which real values lie; NaN and the infinities are outside."""
    outside = 0
    for i in range(len(xs)):
        unit = np.int64(0)
        inside[i] = -BEYOND <= xs[i] < BEYOND
        if inside[i]:
            unit = np.int64(math.floor(xs[i]))
            inside[i] = (first <= unit) & (unit <= last)
        outside += not inside[i]
        found[i] = unit - origin
    return outside
