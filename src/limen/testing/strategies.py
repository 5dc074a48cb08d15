"""Hypothesis strategies: histories of an index, and query sets with events for a matcher.

Values are drawn close together and from the extremes, so that ties, touching ends, duplicates and
crowded cells happen all the time.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from limen.testing.oracle import Condition

INT64 = (-(2**63), 2**63 - 1)


def ordinals() -> st.SearchStrategy[int]:
    """Ordinals that meet each other: small ones, a far cluster, and the ends of int64."""
    return st.one_of(
        st.integers(-20, 20),
        st.integers(10**12, 10**12 + 40),
        st.sampled_from([INT64[0], INT64[0] + 1, INT64[1] - 1, INT64[1], -(2**62), 2**62]),
        st.integers(*INT64),
    )


def ordinal_ranges() -> st.SearchStrategy[tuple[int, int]]:
    """Closed ranges, lo <= hi."""
    pair = st.tuples(ordinals(), ordinals()).map(lambda p: (min(p), max(p)))
    point = ordinals().map(lambda x: (x, x))
    narrow = st.tuples(ordinals(), st.integers(0, 30)).map(
        lambda p: (p[0], min(p[0] + p[1], INT64[1]))
    )
    return st.one_of(pair, point, narrow)


class Domain(NamedTuple):
    """An attribute: its type, event values and the bounds that queries compare it with."""

    type: pa.DataType
    values: st.SearchStrategy[object]
    bounds: st.SearchStrategy[object]


_UTC = dt.UTC
_FLOATS = st.one_of(
    st.integers(-8, 8).map(lambda i: i / 2),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, float("inf"), float("-inf"), 1e308, 2.0**53]),
    st.floats(allow_nan=False),
)
_DAYS = st.integers(-5, 5).map(lambda d: dt.date(1970, 1, 1) + dt.timedelta(days=d))
_MOMENTS = st.integers(-5, 5).map(
    lambda s: dt.datetime(1970, 1, 1, tzinfo=_UTC) + dt.timedelta(seconds=s / 2)
)
_CENTS = st.integers(-300, 300).map(lambda c: Decimal(c) / 100)

DOMAINS: dict[str, Domain] = {
    "int8": Domain(
        pa.int8(),
        st.one_of(st.integers(-6, 6), st.sampled_from([-128, 127])),
        st.one_of(
            st.integers(-7, 7),
            st.sampled_from([-128, 127]),
            st.integers(-14, 14).map(lambda i: i / 2),
        ),
    ),
    "int64": Domain(
        pa.int64(),
        st.one_of(st.integers(-6, 6), st.sampled_from([INT64[0], INT64[1], 2**53 + 1])),
        st.one_of(
            st.integers(-6, 6),
            st.sampled_from([INT64[0], INT64[1], 2**53 + 1, float(2**53)]),
            st.integers(-14, 14).map(lambda i: Decimal(i) / 4),
        ),
    ),
    "uint64": Domain(
        pa.uint64(),
        st.one_of(st.integers(0, 6), st.sampled_from([2**64 - 1, 2**63, 2**63 - 1])),
        st.one_of(st.integers(0, 6), st.sampled_from([2**64 - 1, 2**63, 2**63 - 1])),
    ),
    "float32": Domain(
        pa.float32(),
        st.one_of(st.integers(-8, 8).map(lambda i: i / 2), st.floats(width=32, allow_nan=False)),
        st.one_of(_FLOATS, st.sampled_from([0.1, 0.3, 16777217])),
    ),
    "float64": Domain(pa.float64(), _FLOATS, st.one_of(_FLOATS, st.integers(-4, 4))),
    "date": Domain(pa.date32(), _DAYS, _DAYS),
    "timestamp": Domain(pa.timestamp("us", tz="UTC"), _MOMENTS, _MOMENTS),
    "decimal": Domain(pa.decimal128(9, 2), _CENTS, st.one_of(_CENTS, st.integers(-3, 3))),
    "text": Domain(
        pa.string(), st.sampled_from(["IBM", "KO", "", "é"]), st.sampled_from(["IBM", "KO", "é"])
    ),
    "flag": Domain(pa.bool_(), st.booleans(), st.booleans()),
}
EQUALITY_ONLY = {"text", "flag"}


@st.composite
def conditions(draw: st.DrawFn, name: str) -> list[Condition]:
    """Conditions on one attribute: a point, one end or two, of every bound kind."""
    bounds = DOMAINS[name].bounds
    if name in EQUALITY_ONLY or draw(st.integers(0, 4)) == 0:
        return [(name, "=", draw(bounds))]
    below, above = draw(st.sampled_from([">", ">="])), draw(st.sampled_from(["<", "<="]))
    ends = draw(st.sampled_from(["both", "low", "high"]))
    found: list[Condition] = []
    if ends != "high":
        found.append((name, below, draw(bounds)))
    if ends != "low":
        found.append((name, above, draw(bounds)))
    return found


@st.composite
def bodies(draw: st.DrawFn, names: list[str]) -> list[Condition]:
    """A conjunction over some of the attributes."""
    some = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    return [condition for name in some for condition in draw(conditions(name))]


@st.composite
def values(draw: st.DrawFn, name: str) -> object:
    """A value of the attribute, now and then a bad one."""
    if draw(st.integers(0, 15)) > 0:
        return draw(DOMAINS[name].values)
    return draw(st.sampled_from([None, float("nan")] if name.startswith("float") else [None]))


def events(names: list[str], max_size: int = 12) -> st.SearchStrategy[list[dict[str, object]]]:
    """Rows with a value of each attribute, some of them null or NaN."""
    return st.lists(st.fixed_dictionaries({n: values(n) for n in names}), max_size=max_size)


def schema(names: list[str]) -> pa.Schema:
    return pa.schema([(name, DOMAINS[name].type) for name in names])
