"""Bounds to ordinal ranges: the endpoint rule, once.

A range inside the system is a pair of ordinals (lo, hi), BOTH ENDS INCLUDED, with lo <= hi.
Ordinals are dense (see `ordinals`), so each bound kind is exactly one such pair: an inclusive lower
bound is the least ordinal at or above it, an exclusive one the next after the greatest at or below
it, and likewise from above. Half-open pairs would need 2^63 for the largest 64-bit value. An open
end is INT64_MIN or INT64_MAX. A range that contains no value of its type is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa

from limen.model.errors import QueryError
from limen.model.exact import enclosing, place, shown
from limen.model.ordinals import INT64_MAX, INT64_MIN, extremes
from limen.model.types import is_float, is_key, type_name

_INFINITE_TYPES = (float, np.floating, Decimal)

BOUND_KINDS = ("[]", "[)", "(]", "()")
UNCONSTRAINED = (INT64_MIN, INT64_MAX)


@dataclass(frozen=True, slots=True)
class Range:
    """The values between two bounds; None leaves an end open, `Range(x, x)` is a point.

    >>> ordinal_range(Range(40, 50, "[)"), pa.int32())
    (40, 49)
    >>> ordinal_range(Range(lo=40.5), pa.int64()) == (41, INT64_MAX)
    True
    """

    lo: object = None
    hi: object = None
    bounds: str = "[]"

    def __post_init__(self) -> None:
        check_kind(self.bounds)

    def __str__(self) -> str:
        parts = []
        if self.lo is not None:
            parts.append((">= " if self.bounds[0] == "[" else "> ") + shown(self.lo))
        if self.hi is not None:
            parts.append(("<= " if self.bounds[1] == "]" else "< ") + shown(self.hi))
        if self.bounds == "[]" and self.lo is not None and shown(self.lo) == shown(self.hi):
            return f"= {shown(self.lo)}"
        return " and ".join(parts) or "anything"


def check_kind(kind: object) -> None:
    if kind not in BOUND_KINDS:
        raise QueryError(f"bounds {kind!r} is not one of {', '.join(BOUND_KINDS)}")


def ordinal_range(r: Range, attribute: pa.DataType) -> tuple[int, int]:
    """The ordinals a range includes, both ends included."""
    if is_key(attribute):
        raise QueryError(f"{type_name(attribute)} takes equality only, not a range")
    lo = None if r.lo is None else lower_end(r.lo, r.bounds[0] == "[", attribute)
    hi = None if r.hi is None else upper_end(r.hi, r.bounds[1] == "]", attribute)
    least, greatest = extremes(attribute)
    start = INT64_MIN if lo is None else lo
    end = INT64_MAX if hi is None else hi
    if start > end or start > greatest or end < least:
        raise QueryError(_why_empty(r, attribute))
    return start, end


def lower_end(value: object, inclusive: bool, attribute: pa.DataType) -> int:
    """The least ordinal a lower bound admits; above the type's greatest when it admits none."""
    below, above = enclosing(value, attribute)
    if _is_infinite(value) and not is_float(attribute) and below < 0:
        return INT64_MIN
    return max(above if inclusive else below + 1, extremes(attribute)[0])


def upper_end(value: object, inclusive: bool, attribute: pa.DataType) -> int:
    """The greatest ordinal an upper bound admits; below the type's least when it admits none."""
    below, above = enclosing(value, attribute)
    if _is_infinite(value) and not is_float(attribute) and above > 0:
        return INT64_MAX
    return min(below if inclusive else above - 1, extremes(attribute)[1])


def _is_infinite(value: object) -> bool:
    return isinstance(value, _INFINITE_TYPES) and (value == math.inf or value == -math.inf)


def _why_empty(r: Range, attribute: pa.DataType) -> str:
    if r.lo is not None and r.hi is not None:
        lo, hi = place(r.lo, attribute), place(r.hi, attribute)
        if lo > hi:
            return f"lower bound {shown(r.lo)} is above upper bound {shown(r.hi)}"
        if lo == hi and r.bounds != "[]":
            shape = f"{r.bounds[0]}{shown(r.lo)}, {shown(r.hi)}{r.bounds[1]}"
            return f"range {shape} is empty"
    return f"{r} matches no value of {type_name(attribute)}"
