"""A query of a set as SQL text, which `parse_where` reads back to the same query.

A set keeps ordinals, both ends included, so `price < 50` is kept as the greatest float below 50. Each end
is written in the shorter of its two forms, `<= 49.99999999999999` or `< 50.0`: they mean the same.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime

import numpy as np
import pyarrow as pa

from limen.model.ordinals import INT64_MAX, INT64_MIN, extremes, value_of
from limen.model.queries import QuerySet
from limen.model.types import is_float

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_WORDS = {"AND", "OR", "NOT", "BETWEEN", "IN", "IS", "NULL", "TRUE", "FALSE", "DATE", "TIMESTAMP"}


def describe(queries: QuerySet, row: int) -> str:
    """
    >>> queries = QuerySet.of({"q": "price >= 40 AND price < 50"}, {"price": "float64"})
    >>> describe(queries, 0)
    'price >= 40.0 AND price < 50.0'
    """
    parts = []
    for name, kind in queries.attributes.items():
        if name in queries.keys:
            value = queries.keys[name][row].as_py()
            if value is not None:
                parts.append(f"{_name(name)} = {_literal(value)}")
        else:
            lo, hi = int(queries.lo[name][row]), int(queries.hi[name][row])
            if (lo, hi) != (INT64_MIN, INT64_MAX):
                parts += _range(_name(name), lo, hi, kind)
    return " AND ".join(parts)


def _range(name: str, lo: int, hi: int, kind: pa.DataType) -> list[str]:
    if lo == hi and not _infinite(value_of(lo, kind)):
        return [f"{name} = {_literal(value_of(lo, kind))}"]
    low, high = extremes(kind)
    parts = []
    if lo > low:
        parts.append(f"{name} {_shorter(lo, -1, kind)}")
    if hi < high:
        parts.append(f"{name} {_shorter(hi, 1, kind)}")
    return parts


def _shorter(end: int, outward: int, kind: pa.DataType) -> str:
    """The end itself, included, or the next value beyond it, excluded."""
    sign = "<" if outward > 0 else ">"
    included = value_of(end, kind)
    if not is_float(kind):
        return f"{sign}= {_literal(included)}"
    beyond = value_of(end + outward, kind)
    longer = len(_literal(included)) > len(_literal(beyond)) and not _infinite(beyond)
    if longer or _infinite(included):  # SQL has no word for infinity
        return f"{sign} {_literal(beyond)}"
    return f"{sign}= {_literal(included)}"


def _infinite(value: object) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in _WORDS:
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        escaped = value.replace("'", "''")
        return f"'{escaped}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, np.datetime64):
        word = "DATE" if np.datetime_data(value)[0] == "D" else "TIMESTAMP"
        return f"{word} '{value}'"
    return repr(value) if isinstance(value, float) else str(value)
