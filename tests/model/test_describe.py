"""A described query, read again, is the same query."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limen.model import INT64_MAX, INT64_MIN, QuerySet, describe, extremes
from limen.testing.strategies import DOMAINS, EQUALITY_ONLY, conditions


@given(st.data())
def test_reads_back(data):
    name = data.draw(st.sampled_from(sorted(DOMAINS)))
    kind = DOMAINS[name].type
    where: dict[str, dict[str, object]] = {}
    for attribute, symbol, bound in data.draw(conditions(name)):
        where.setdefault(attribute, {})[symbol] = bound
    try:
        queries = QuerySet.of({"q": where}, {name: kind})
    except ValueError:
        return
    text = describe(queries, 0)
    if not text:
        assert queries.lo[name][0] <= extremes(kind)[0] and queries.hi[name][0] >= extremes(kind)[1]
        return
    again = QuerySet.of({"q": text}, {name: kind})
    if name in EQUALITY_ONLY:
        assert again == queries
    else:
        low, high = extremes(kind)
        for ends in ("lo", "hi"):
            one, other = getattr(queries, ends)[name][0], getattr(again, ends)[name][0]
            assert np.clip(one, low, high) == np.clip(other, low, high), text


@pytest.mark.parametrize(
    ("kind", "given_", "shown"),
    [
        ("float64", "x < 50", "x < 50.0"),
        ("float64", "x > 0.1", "x > 0.1"),
        ("float32", "x <= 1", "x <= 1.0"),
        ("int64", "x > 3 AND x < 10", "x >= 4 AND x <= 9"),
        ("string", "x = 'it''s'", "x = 'it''s'"),
        ("bool", "x = TRUE", "x = TRUE"),
        ("date", "x = DATE '2026-01-31'", "x = DATE '2026-01-31'"),
        ("decimal(9,2)", "x >= 1.5", "x >= 1.50"),
    ],
)
def test_is_pleasant(kind, given_, shown):
    assert describe(QuerySet.of({"q": given_}, {"x": kind}), 0) == shown


def test_names_that_are_not_words_are_quoted():
    types = {'Trade "P"': "int64", "date": "date", "and": "int64"}
    where = {'Trade "P"': 4, "and": {">": 2}}
    queries = QuerySet.of({"q": where}, types)
    text = describe(queries, 0)
    assert text == '"Trade ""P""" = 4 AND "and" >= 3'
    assert QuerySet.of({"q": text}, types) == queries


def test_an_open_query_says_nothing():
    ends = np.array([INT64_MIN]), np.array([INT64_MAX])
    queries = QuerySet(pa.array([1]), {"x": pa.int64()}, {"x": ends[0]}, {"x": ends[1]}, {})
    assert describe(queries, 0) == ""
