"""What matches, by plain loops over plain Python values: the judge of every fast path.

A query is a list of conditions (attribute, operator, value); an event is a mapping. A condition is
compared in exact arithmetic (integers, fractions), so a float bound on an integer column is exact
too. Nothing here shares code with what it judges.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

Condition = tuple[str, str, object]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "=": operator.eq,
}


def exact(value: object) -> object:
    """The value in a form in which comparisons are exact; None for null and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and math.isinf(value):
        return value
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return Fraction(value)
    return value


def holds(event: Mapping[str, object], condition: Condition) -> bool:
    """Is the condition true of the event? Of null and NaN nothing is.

    >>> holds({"qty": 41}, ("qty", ">=", 40.5)), holds({"qty": None}, ("qty", ">=", 0))
    (True, False)
    """
    name, symbol, bound = condition
    value, limit = exact(event[name]), exact(bound)
    if value is None or limit is None:
        return False
    if isinstance(limit, dt.datetime) and limit.tzinfo is not None:
        assert isinstance(value, dt.datetime) and value.tzinfo is not None
    return _OPERATORS[symbol](value, limit)


def matching(
    event: Mapping[str, object], queries: Mapping[Any, Iterable[Condition]]
) -> set[str | int]:
    """The ids of the queries all of whose conditions hold.

    >>> matching({"price": 45.0}, {"a": [("price", ">", 40)], "b": [("price", "<", 45)]})
    {'a'}
    """
    return {who for who, body in queries.items() if all(holds(event, c) for c in body)}


def stabbed(x: int, ranges: Iterable[tuple[int, int, int]]) -> list[int]:
    """The ids of the closed integer ranges (id, lo, hi) that contain x, in order."""
    return sorted(who for who, lo, hi in ranges if lo <= x <= hi)
