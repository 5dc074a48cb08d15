"""What a crosser carries, as bytes and back: every kind of entity, key and held pair."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen.engine import Crosser
from limen.engine.carried import absorb, describe_watch, encode, watch_of
from limen.engine.watch import OFF, Watch

EXAMPLES = settings.default.max_examples  # type: ignore[union-attr]

NAMES = {"text": ["", "a", "é", "日本", "a\0"], "number": [0, 7, -(2**63), 2**63 - 1]}
KINDS = {"text": pa.string(), "number": pa.int64()}
KEYS: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "symbol": (pa.string(), ["IBM", "", "é"], "'IBM'"),
    "tenant": (pa.int32(), [0, -3, 2**31 - 1], "-3"),
    "day": (pa.date32(), [dt.date(1969, 1, 1), dt.date(2024, 3, 1)], "DATE '2024-03-01'"),
    "open": (pa.bool_(), [True, False], "true"),
}
SPANS = {"dwell": 4, "hysteresis": {"x": 2}, "ttl": 30, "lateness": 5}


def schema(entity: str, keys: list[str]) -> pa.Schema:
    fields = [("who", KINDS[entity]), ("at", pa.int64()), ("x", pa.float64()), ("y", pa.int64())]
    return pa.schema(fields + [(name, KEYS[name][0]) for name in keys])


def crosser(entity: str, keys: list[str], **options: Any) -> Crosser:
    wheres = ["x BETWEEN 0 AND 5", "x >= 2 AND y < 3", "y > 1", "x < -1"]
    wheres += [f"x > 1 AND {name} = {KEYS[name][2]}" for name in keys]
    queries = {f"q{i}": where for i, where in enumerate(wheres)}
    return Crosser.of(
        schema(entity, keys), queries, entity="who", on=["x", "y"], time="at", **options
    )


@st.composite
def tables(draw: st.DrawFn, entity: str, keys: list[str], start: int = 0) -> pa.Table:
    row = st.fixed_dictionaries(
        {
            "who": st.sampled_from(NAMES[entity]),
            "at": st.integers(start, start + 20),
            "x": st.integers(-3, 8).map(float),
            "y": st.integers(-1, 5),
            **{name: st.sampled_from(KEYS[name][1]) for name in keys},
        }
    )
    rows = draw(st.lists(row, max_size=12))
    return pa.Table.from_pylist(rows, schema(entity, keys))


def everybody(made: Crosser) -> np.ndarray:
    return np.arange(made.streams.size, dtype=np.int32)


def rows(table: pa.Table) -> list[str]:
    return sorted(str(row) for row in table.to_pylist())


def state(made: Crosser) -> Any:
    """All that is carried, whatever the numbers of entities."""
    held, pending = made.held, made.held.pending
    pairs = zip(
        made.names(held.entities).to_pylist(),
        held.ids.to_pylist(),
        np.where(pending, held.since, -1).tolist(),
        held.lingers.tolist(),
        np.where(pending[:, None], held.values, 0).tolist(),
        np.where((pending & held.seen)[:, None], held.previous, 0).tolist(),
        (pending & held.seen).tolist(),
        strict=True,
    )
    return rows(made.readings()), sorted(map(str, pairs))


@settings(max_examples=EXAMPLES // 4)
@given(
    entity=st.sampled_from(sorted(NAMES)),
    keys=st.lists(st.sampled_from(sorted(KEYS)), max_size=2, unique=True),
    options=st.sampled_from(
        [{}, {"dwell": 4}, {"hysteresis": {"x": 2}}, {"ttl": 8, "lateness": 3}, SPANS]
    ),
    data=st.data(),
)
def test_what_is_absorbed_goes_on_alike(
    entity: str, keys: list[str], options: dict[str, Any], data: st.DataObject
) -> None:
    """Another crosser takes it in, over what it knew before, and crosses as the first would have."""
    one = crosser(entity, keys, **options)
    other = crosser(entity, keys, **options)
    if data.draw(st.booleans()):  # it knows something else of the same entities
        other.cross(data.draw(tables(entity, keys)))
    one.cross(data.draw(tables(entity, keys)))
    one.cross(data.draw(tables(entity, keys, start=10)))
    strangers = set(other.readings()["who"].to_pylist())
    strangers -= set(one.names(everybody(one)).to_pylist())
    blob = encode(one, everybody(one))
    found = absorb(other, blob)
    other.clock = one.clock
    assert other.names(found).to_pylist() == one.names(everybody(one)).to_pylist()
    known = [row for row in other.readings().to_pylist() if row["who"] not in strangers]
    assert sorted(map(str, known)) == state(one)[0]
    if not strangers:
        assert state(other) == state(one)
        later = data.draw(tables(entity, keys, start=30))
        assert rows(other.cross(later).crossings) == rows(one.cross(later).crossings)
        assert state(other) == state(one)


def test_some_entities_only() -> None:
    one, other = crosser("text", []), crosser("text", [])
    readings = pa.table({"who": ["a", "b", "c"], "at": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
    one.cross(readings.append_column("y", pa.array([1, 2, 3])))
    absorb(other, encode(one, np.array([2, 0], np.int32)))
    assert other.readings()["who"].to_pylist() == ["c", "a"]
    assert other.readings()["y"].to_pylist() == [3, 1]
    assert absorb(other, encode(one, np.empty(0, np.int32))).tolist() == []
    assert len(other) == 2


def test_that_one_is_forgotten_is_carried_too() -> None:
    options = {"ttl": 10, "lateness": 0, "dwell": 100}
    one, other = crosser("text", ["symbol"], **options), crosser("text", ["symbol"], **options)
    shape = schema("text", ["symbol"])
    a = {"who": "a", "at": 1, "x": 3.0, "y": 0, "symbol": "IBM"}
    one.cross(pa.Table.from_pylist([a], shape))
    absorb(other, encode(one, everybody(one)))
    assert len(other) == 1 and len(other.held.entities) == len(one.held.entities) > 0
    one.cross(pa.Table.from_pylist([{**a, "who": "b", "at": 50}], shape))
    absorb(other, encode(one, everybody(one)))
    assert other.readings()["who"].to_pylist() == ["b"]
    assert set(other.names(other.held.entities).to_pylist()) == {"b"}


@pytest.mark.parametrize("key", ["symbol", "tenant"])
def test_an_entity_without_a_key_yet(key: str) -> None:
    """A late reading gives an entity a number and nothing else."""
    one = crosser("text", [key], ttl=100, lateness=0)
    other = crosser("text", [key])
    shape, value = schema("text", [key]), KEYS[key][1][0]
    early = {"who": "a", "at": 50, "x": 3.0, "y": 0, key: value}
    one.cross(pa.Table.from_pylist([early], shape))
    one.cross(pa.Table.from_pylist([{**early, "who": "late", "at": 1}], shape))
    assert one.streams.size == 2 and len(one) == 1
    found = absorb(other, encode(one, everybody(one)))
    assert other.keys[key].of_entity[found].tolist() == [0, -1]
    assert other.streams.known[found].tolist() == [True, False]


@pytest.mark.parametrize("ids", ["string", "int64"])
@pytest.mark.parametrize("time", [None, pa.int64(), pa.timestamp("us", tz="UTC"), pa.date32()])
def test_a_watch_is_described(time: pa.DataType | None, ids: str) -> None:
    shape = pa.schema([("who", pa.string()), ("x", pa.float64()), ("d", pa.decimal128(9, 2))])
    shape = pa.schema([*shape, ("when", time or pa.int64()), ("symbol", pa.string())])
    attributes = {"x": pa.float64(), "d": pa.decimal128(9, 2), "symbol": pa.string()}
    spans: dict[str, Any] = {} if time is None else {"dwell": 3, "ttl": 5, "lateness": 1}
    watch = Watch.of(
        shape,
        attributes,
        entity="who",
        on=["d", "x"],
        time=None if time is None else "when",
        hysteresis={"x": 1},
        **spans,
    )
    text = describe_watch(watch, pa.type_for_alias(ids))
    json.loads(text)
    found, id_type = watch_of(text)
    assert id_type == ids
    columns = ("entity", "entity_type", "on", "keys", "time", "time_type", "dwell")
    assert [getattr(found, c) for c in columns] == [getattr(watch, c) for c in columns]
    assert list(found.on) == ["d", "x"]
    assert (found.ttl, found.lateness, found.margins) == (OFF, OFF, {})
