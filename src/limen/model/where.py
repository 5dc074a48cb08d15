"""One query's body: named conditions, lowered to ordinal ranges and key values.

Each condition becomes a closed ordinal range by the endpoint rule and the ranges of one attribute
are intersected as ordinals, so bounds of different types are never compared with each other. The
result of a lowering is never empty: a body that no event can match is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from limen.model.bounds import UNCONSTRAINED, Range, ordinal_range
from limen.model.errors import LimenError, QueryError
from limen.model.exact import shown
from limen.model.sql import parse_where
from limen.model.types import attribute_type, is_float, is_key, type_name

Where = Mapping[str, object] | str
Lowered = dict[str, tuple[int, int] | str | bool]

_KINDS = {">=": "[]", ">": "(]", "<=": "[]", "<": "[)", "=": "[]"}


@dataclass(frozen=True)
class Query:
    """A standing query: an id and a conjunction of conditions on named attributes.

    `where` maps an attribute to a `Range`, to a value (equality), or to operators such as
    `{">=": 40, "<": 50}`; or it is SQL text.

    >>> Query("q9", {"price": Range(40, 50), "symbol": "IBM"}).id
    'q9'
    """

    id: str | int
    where: Where


class Known:
    """The attributes queries may name, with a type for each."""

    def __init__(self, attributes: Mapping[str, str | pa.DataType] | pa.Schema) -> None:
        self._types: dict[str, pa.DataType] = {}
        if isinstance(attributes, pa.Schema):
            # An event schema may have columns of other types: they matter when a query names them.
            if len(set(attributes.names)) < len(attributes.names):
                raise LimenError(f"the schema has a name twice: {', '.join(attributes.names)}")
            self._unread: dict[str, str | pa.DataType] = {f.name: f.type for f in attributes}
        else:
            self._unread = dict(attributes)
            for name in self._unread:
                self.type_of(name)

    def __contains__(self, name: object) -> bool:
        return name in self._unread

    def type_of(self, name: str) -> pa.DataType:
        if name not in self._types:
            if name not in self._unread:
                raise QueryError(self.unknown(name))
            try:
                self._types[name] = attribute_type(self._unread[name])
            except LimenError as error:
                raise QueryError(str(error), field=name) from None
        return self._types[name]

    def unknown(self, name: str) -> str:
        names = {known.lower(): known for known in self._unread}
        close = difflib.get_close_matches(str(name).lower(), names, n=1)
        hint = f"; did you mean {names[close[0]]!r}?" if close else ""
        listed = list(self._unread)
        known = ", ".join(listed[:20]) + (", ..." if len(listed) > 20 else "")
        return f"unknown attribute {name!r}; known: {known}{hint}"


def lowered(where: Where, known: Known) -> Lowered:
    """The ordinal range or the key value of each attribute the body names."""
    if isinstance(where, str):
        from_text = True
        conditions: Mapping[str, object] = parse_where(where)
    elif isinstance(where, Mapping):
        from_text, conditions = False, where
    else:
        raise QueryError(f"where is a {type(where).__name__}; use a mapping or SQL text")
    body: Lowered = {}
    for name, condition in conditions.items():
        kind = known.type_of(name)
        try:
            parts = condition if from_text else _conditions(condition)
            body[name] = _lowered_one(parts, kind, from_text)  # type: ignore[arg-type]
        except QueryError as error:
            raise error.at(field=name) from None
    return body


def _conditions(condition: object) -> list[tuple[str, object]]:
    if not isinstance(condition, Mapping):
        return [("range" if isinstance(condition, Range) else "=", condition)]
    if not condition:
        raise QueryError("no condition is given; leave the attribute out")
    parts: list[tuple[str, object]] = []
    for operator, value in condition.items():
        if operator == "between":
            if not isinstance(value, (list, tuple)) or len(value) != 2:
                raise QueryError(f"between needs two bounds, not {shown(value)}")
            parts += [("range", Range(_given(value[0]), _given(value[1])))]
        elif operator in _KINDS:
            parts.append((operator, value))
        else:
            known = ", ".join([*_KINDS, "between"])
            raise QueryError(f"unknown operator {operator!r}; use one of {known}")
    return parts


def _lowered_one(
    parts: Iterable[tuple[str, object]], kind: pa.DataType, from_text: bool
) -> tuple[int, int] | str | bool:
    if is_key(kind):
        return _key(parts, kind)
    lo, hi = UNCONSTRAINED
    ranges: list[Range] = []
    for operator, value in parts:
        if from_text and is_float(kind) and isinstance(value, Decimal):
            value = float(value)
        part = value if isinstance(value, Range) else _range(operator, _given(value))
        part_lo, part_hi = ordinal_range(part, kind)
        lo, hi = max(lo, part_lo), min(hi, part_hi)
        ranges.append(part)
        if lo > hi:
            raise QueryError(f"no value of {type_name(kind)} is {' and '.join(map(str, ranges))}")
    return lo, hi


def _range(operator: str, value: object) -> Range:
    if operator == "=":
        return Range(value, value)
    if operator.startswith(">"):
        return Range(lo=value, bounds=_KINDS[operator])
    return Range(hi=value, bounds=_KINDS[operator])


def _given(value: object) -> object:
    if value is None:
        raise QueryError("null matches nothing; leave the condition out")
    return value


def _key(parts: Iterable[tuple[str, object]], kind: pa.DataType) -> str | bool:
    found: list[str | bool] = []
    for operator, value in parts:
        if operator != "=":
            raise QueryError(f"{type_name(kind)} takes equality only, not a range")
        value = bool(value) if isinstance(value, np.bool_) else _given(value)
        if not isinstance(value, bool if pt.is_boolean(kind) else str):
            raise QueryError(
                f"{shown(value)} is a {type(value).__name__}, the attribute is {type_name(kind)}"
            )
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                raise QueryError("the text is not valid Unicode") from None
        found.append(value)
        if found[0] != value:
            raise QueryError(f"no value is both {shown(found[0])} and {shown(value)}")
    return found[0]
