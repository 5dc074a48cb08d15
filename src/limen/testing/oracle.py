"""What matches and what is crossed, by plain loops over plain Python values: the judge of every fast
path.

A query is a list of conditions (attribute, operator, value); an event is a mapping. A condition is
compared in exact arithmetic (integers, fractions), so a float bound on an integer column is exact
too. Nothing here shares code with what it judges.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

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


class Crossing(NamedTuple):
    """`value` and `previous`: what the watched attributes are and were, None where there is nothing."""

    entity: Any
    query: Any
    crossing: str  # enter or exit
    time: Any
    value: tuple[object, ...] | None
    previous: tuple[object, ...] | None


def with_margins(body: Iterable[Condition], margins: Mapping[str, Any]) -> list[Condition]:
    """The conditions with their bounds moved outward: by a number, or a timedelta where they are times.

    >>> with_margins([("qty", "=", 4), ("lot", "=", 7)], {"qty": 1}) == [
    ...     ("qty", ">=", 3), ("qty", "<=", 5), ("lot", "=", 7)
    ... ]
    True
    """
    found: list[Condition] = []
    for name, symbol, bound in body:
        if name not in margins:
            found.append((name, symbol, bound))
            continue
        margin, limit = margins[name], exact(bound)
        size: Any = margin if isinstance(margin, dt.timedelta) else Fraction(margin)
        if symbol in (">=", ">", "="):
            found.append((name, ">=" if symbol == "=" else symbol, limit - size))
        if symbol in ("<=", "<", "="):
            found.append((name, "<=" if symbol == "=" else symbol, limit + size))
    return found


def usable(reading: Mapping[str, object], names: Iterable[str]) -> bool:
    """Is there a value of each of these?

    >>> usable({"qty": float("nan"), "lot": 7}, ["lot"]), usable({"qty": None}, ["qty"])
    (True, False)
    """
    return all(exact(reading[name]) is not None for name in names)


def crossings(
    readings: Iterable[Mapping[str, Any]],
    queries: Mapping[Any, Sequence[Condition]],
    *,
    entity: str,
    on: Sequence[str],
    time: str | None = None,
    dwell: Any = None,
    margins: Mapping[str, Any] | None = None,
    ttl: Any = None,
    clock: Any = None,
) -> list[Crossing]:
    """What the entities enter and leave, by pair of an entity and a query, and in order within a pair.

    Readings without a value of some attribute that is needed are left out. `clock`: when it is now, if
    that is later than the entity's last reading. With `ttl`, an entity that says nothing for longer has
    left everything so long after its last reading, and begins anew.

    >>> rooms = [{"room": "a", "at": 0, "temp": 31}, {"room": "a", "at": 9, "temp": 22}]
    >>> for row in crossings(rooms, {"hot": [("temp", ">=", 30)]}, entity="room", on=["temp"], time="at"):
    ...     print(*row)
    a hot enter 0 (31,) None
    a hot exit 9 (22,) (31,)
    >>> hot = crossings(
    ...     rooms, {"hot": [("temp", ">=", 30)]}, entity="room", on=["temp"], time="at", dwell=5, ttl=7
    ... )
    >>> for row in hot:
    ...     print(*row)
    a hot enter 5 (31,) None
    a hot exit 7 None (31,)
    """
    needed = {entity, *on, *([] if time is None else [time])}
    needed |= {name for body in queries.values() for name, _, _ in body}
    of_entity: dict[Any, list[Mapping[str, Any]]] = {}
    for reading in readings:
        if usable(reading, needed):
            of_entity.setdefault(reading[entity], []).append(reading)
    found = []
    for who, history in of_entity.items():
        ordered = history if time is None else sorted(history, key=lambda reading: reading[time])
        for query, body in queries.items():
            wide = with_margins(body, margins or {})
            for row in _of_pair(ordered, body, wide, on, time, dwell, ttl, clock):
                found.append(Crossing(who, query, *row))
    return found


def _of_pair(
    history: Sequence[Mapping[str, Any]],
    body: Sequence[Condition],
    wide: Sequence[Condition],
    on: Sequence[str],
    time: str | None,
    dwell: Any,
    ttl: Any,
    clock: Any,
) -> list[tuple[str, Any, Any, Any]]:
    """Of one entity and one query: enter or exit, time, value, previous value."""
    found: list[tuple[str, Any, Any, Any]] = []
    inside = reported = False
    since: Any = None  # and with which values, after which: of the reading that came in
    came: tuple[Any, Any] = (None, None)
    last: Any = None  # the time of the reading before
    previous: Any = None

    for reading in (*history, None):
        if reading is None:  # no more of them: time goes on to where the clock is
            now = last if clock is None or last is None else max(last, clock)
        else:
            now = None if time is None else reading[time]
        if previous is not None and time is not None:
            forgotten = ttl is not None and now - last > ttl
            until = last + ttl if forgotten else now
            if inside and not reported and until - since >= dwell:
                found.append(("enter", since + dwell, *came))
                reported = True
            if forgotten:
                if inside and reported:
                    found.append(("exit", until, None, previous))
                inside, previous = False, None
        if reading is None:
            break
        value = tuple(reading[name] for name in on)
        before = inside
        inside = all(holds(reading, c) for c in body)
        inside = inside or (before and all(holds(reading, c) for c in wide))
        if inside and not before:
            since, came, reported = now, (value, previous), not dwell
            if reported:
                found.append(("enter", now, value, previous))
        elif before and not inside and reported:
            found.append(("exit", now, value, previous))
        last, previous = now, value
    return found
