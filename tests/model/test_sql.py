"""SQL text: what is read, what is refused, and that a refusal points at the place."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.model import QueryError, QuerySet, ordinals, parse_where

PROPERTY = settings(derandomize=True, deadline=None, max_examples=150)


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("price > 40", {"price": [(">", 40)]}),
        ("40 < price", {"price": [(">", 40)]}),
        ("40 >= price", {"price": [("<=", 40)]}),
        ("price = 40", {"price": [("=", 40)]}),
        ("price == 40", {"price": [("=", 40)]}),
        ("p BETWEEN -1.5 AND +2e3", {"p": [(">=", Decimal("-1.5")), ("<=", Decimal(2000))]}),
        ("price between 1 and 2 and qty<.5", {
            "price": [(">=", 1), ("<=", 2)], "qty": [("<", Decimal("0.5"))],
        }),
        ("((a > 1) AND (b > 2 and (c > - 3)))", {
            "a": [(">", 1)], "b": [(">", 2)], "c": [(">", -3)],
        }),
        ("a > 1 AND a < 5 AND a <= 4", {"a": [(">", 1), ("<", 5), ("<=", 4)]}),
        ("symbol = 'it''s'", {"symbol": [("=", "it's")]}),
        ("active = TRUE and false = gone", {"active": [("=", True)], "gone": [("=", False)]}),
        ("d >= DATE '2024-01-31'", {"d": [(">=", date(2024, 1, 31))]}),
        ("t < TIMESTAMP '2024-01-31 09:00:00.5'", {
            "t": [("<", datetime(2024, 1, 31, 9, 0, 0, 500_000))],
        }),
        ("t < cast('2024-01-31T09:00:00Z' as timestamp)", {
            "t": [("<", datetime(2024, 1, 31, 9, tzinfo=UTC))],
        }),
        ("CAST('2024-01-31' AS DATE) = d", {"d": [("=", date(2024, 1, 31))]}),
        ('"Unit Price" > 4 AND "a""b" = 1', {"Unit Price": [(">", 4)], 'a"b': [("=", 1)]}),
        ("date > date '2024-01-31' and timestamp = 5 and value = 1 and level < 3", {
            "date": [(">", date(2024, 1, 31))], "timestamp": [("=", 5)], "value": [("=", 1)],
            "level": [("<", 3)],
        }),
        ("a > 1 -- low\n AND /* and */ b < 2", {"a": [(">", 1)], "b": [("<", 2)]}),
        ("größe > 5. and a = 123456789012345678901234567890.123456789012345678901", {
            "größe": [(">", Decimal(5))],
            "a": [("=", Decimal("123456789012345678901234567890.123456789012345678901"))],
        }),
        ("a = -123456789012345678901234567890.5", {
            "a": [("=", Decimal("-123456789012345678901234567890.5"))],
        }),
    ],
)  # fmt: skip
def test_what_is_read(text: str, conditions: dict[str, Any]) -> None:
    found = parse_where(text)
    assert found == conditions
    assert [type(v) for c in found.values() for _, v in c] == [
        type(v) for c in conditions.values() for _, v in c
    ]


@pytest.mark.parametrize(
    ("text", "reason", "token"),
    [
        ("price > 40 OR price < 10", "OR is not supported: a query is a conjunction (AND)", "OR"),
        ("(a > 1 or b > 2)", "OR is not supported", "or"),
        ("NOT a > 1", "NOT is not supported", "NOT"),
        ("a NOT BETWEEN 1 AND 2", "NOT is not supported", "NOT"),
        ("a <> 1", "<> is not supported", "<>"),
        ("a != 1", "!= is not supported", "!="),
        ("a IN (1, 2)", "IN is not supported", "IN"),
        ("a IS NULL", "IS is not supported", "IS"),
        ("a = NULL", "NULL is not supported: it matches nothing", "NULL"),
        ("a LIKE 'x%'", "LIKE is not supported", "LIKE"),
        ("abs(a) > 1", "functions are not supported", "abs"),
        ("a > abs(1)", "functions are not supported", "abs"),
        ("a > b", "comparing an attribute with another (b)", "b"),
        ("a + 1 > 2", "arithmetic (+) is not supported", "+"),
        ("a > 1 * 2", "arithmetic (*) is not supported", "*"),
        ("a > -b", "arithmetic is not supported", "-"),
        ("t.a > 1", "qualified names are not supported", "t"),
        ("a > (SELECT 1)", "subqueries are not supported", "("),
        ("EXISTS (SELECT 1)", "EXISTS is not supported", "EXISTS"),
        ("CASE WHEN a THEN 1 END = 1", "CASE is not supported", "CASE"),
        ("1 = 1", "a comparison needs an attribute", "1"),
        ("1 < a < 5", "chained comparisons are not supported", "< 5"[0]),
        ("5 BETWEEN 1 AND 9", "BETWEEN needs an attribute on its left", "5"),
        ("a BETWEEN b AND 9", "BETWEEN needs literal bounds", "b"),
        ("a BETWEEN 1 , 9", "BETWEEN needs AND", ","),
        ("active", "a comparison (<, <=, >, >=, =, BETWEEN) is missing", " "),
        ("active AND b > 1", "a comparison (<, <=, >, >=, =, BETWEEN) is missing", "AND"),
        ("a > > 4", "this is not expected here", "> 4"[0]),
        ("a > 1;", "this is not expected here", ";"),
        ("a > 1 b < 2", "this is not expected here", "b"),
        ("(a > 1", "this parenthesis is not closed", "("),
        ("a > 1)", "this is not expected here", ")"),
        ("a >", "the text ends where a name or a literal is expected", " "),
        ("a > 1 AND", "the text ends where a name or a literal is expected", " "),
        ("", "the text has no condition", " "),
        ("a = 'x", "the text ends inside a quote", "'"),
        ("a > 5_000", "not a number", "5_000"),
        ("a > 0x1F", "not a number", "0x1F"),
        ("a > 1e", "not a number", "1e"),
        ("a > 10L", "not a number", "10L"),
        ("a > ?", "this is not expected here", "?"),
        ("`a` > 1", "this is not expected here", "`"),
        ("a > DATE '2024-02-30'", "not an ISO date", "'2024-02-30'"),
        ("a > TIMESTAMP 'soon'", "not an ISO timestamp", "'soon'"),
        ("a > TIMESTAMP '2024-01-01 00:00:00.1234567'", "holds microseconds",
         "'2024-01-01 00:00:00.1234567'"),
        ("a > CAST(b AS DATE)", "CAST is supported for text", "CAST"),
        ("a > CAST('5' AS INT)", "CAST is supported to DATE or TIMESTAMP only", "INT"),
        ("a > 1e9999999999999999999999", "the exponent is too large", "1e9999999999999999999999"),
    ],
)  # fmt: skip
def test_what_is_refused_and_where(text: str, reason: str, token: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_where(text)
    message, line, carets = str(caught.value).split("\n")
    assert message.startswith(reason) or reason in message
    assert line == "  " + text
    start, width = carets.index("^"), carets.count("^")
    assert carets.strip() == "^" * width
    assert line.ljust(start + 1)[start : start + width] == token


def test_the_place_in_a_text_of_several_or_long_lines() -> None:
    with pytest.raises(QueryError) as caught:
        parse_where("a > 1\nAND\tb > 2 OR c > 3\nAND d > 4")
    assert str(caught.value).split("\n")[1:] == ["  AND b > 2 OR c > 3", "            ^^"]
    long = " AND ".join(f"a{i} > {i}" for i in range(100))
    with pytest.raises(QueryError) as caught:
        parse_where(long + " OR b > 1 AND " + long)
    _, line, carets = str(caught.value).split("\n")
    assert len(line) < 100 and line[carets.index("^") :][:2] == "OR"


def test_absurd_texts_are_refused_quickly() -> None:
    for text in ("(" * 100_000, "a > " + "9" * 100_000, "a = " + "'" * 99_999):
        with pytest.raises(QueryError):
            parse_where(text)


def matched(text: str, kind: str, values: list[Any]) -> list[bool]:
    """Which values a query in SQL matches, by its ordinals."""
    attribute = QuerySet.of({"q": text}, {"x": kind})
    (lo,), (hi,) = attribute.lo["x"], attribute.hi["x"]
    found, _ = ordinals(pa.array(values, attribute.attributes["x"]), attribute.attributes["x"])
    return [bool(lo <= ordinal <= hi) for ordinal in found]


def test_a_decimal_literal_on_a_float_is_the_nearest_float() -> None:
    assert matched("x <= 0.1", "float64", [float("0.1"), 0.2]) == [True, False]
    assert matched("x = 0.1", "float64", [float("0.1"), 0.2]) == [True, False]
    assert matched("x >= 9007199254740993", "float64", [2.0**53, 2.0**53 + 2]) == [False, True]
    assert matched("x <= 0.1", "decimal(5,1)", [Decimal("0.1"), Decimal("0.2")]) == [True, False]
    assert matched("x >= 40.5", "int64", [40, 41]) == [False, True]
    assert matched("x <= 1e999999999", "int8", [127]) == [True]


def test_dates_as_text_or_literals() -> None:
    days = [date(2024, 1, 30), date(2024, 1, 31)]
    for literal in ("'2024-01-31'", "DATE '2024-01-31'", "CAST('2024-01-31' AS DATE)"):
        assert matched(f"x < {literal}", "date", days) == [True, False]
    instants = [datetime(2024, 1, 31, 8, tzinfo=UTC), datetime(2024, 1, 31, 9, tzinfo=UTC)]
    assert matched("x < '2024-01-31T10:00+01:00'", "timestamp[ms, tz=UTC]", instants) == [
        True,
        False,
    ]


OPERATORS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
}


@PROPERTY
@given(
    conditions=st.lists(
        st.tuples(st.sampled_from(list(OPERATORS)), st.integers(-200, 200), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
def test_a_conjunction_matches_what_python_says(
    conditions: list[tuple[str, int, bool]],
) -> None:
    mirror = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
    text = " AND ".join(
        f"({bound} {mirror[op]} x)" if turned else f"x {op} {bound}"
        for op, bound, turned in conditions
    )
    values = list(range(-128, 128))
    expected = [all(OPERATORS[op](v, bound) for op, bound, _ in conditions) for v in values]
    if any(expected):
        assert matched(text, "int8", values) == expected
    else:
        with pytest.raises(QueryError, match="no value"):
            matched(text, "int8", values)
