"""What is watched: every refusal, and what is made of times, types and margins."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import limen
from limen import LimenError
from limen.engine.crosser import Crosser
from limen.engine.watch import OFF, Watch

READINGS = pa.schema(
    [
        ("room", pa.string()),
        ("number", pa.int32()),
        ("at", pa.timestamp("ms")),
        ("day", pa.date32()),
        ("tick", pa.int32()),
        ("temp", pa.float64()),
        ("height", pa.int16()),
        ("flag", pa.bool_()),
        ("big", pa.uint64()),
        ("code", pa.dictionary(pa.int8(), pa.string())),
        ("raw", pa.binary()),
    ]
)
QUERIES = {"temp": pa.float64(), "code": pa.string()}


def watch(attributes: dict[str, pa.DataType] = QUERIES, **options: Any) -> Watch:
    return Watch.of(READINGS, attributes, **{"entity": "room", **options})


def refused(message: str, attributes: dict[str, pa.DataType] = QUERIES, **options: Any) -> None:
    with pytest.raises(LimenError, match=f"^{re.escape(message)}"):
        watch(attributes, **options)


def test_what_is_made_of_it() -> None:
    found = watch(time="at", dwell=timedelta(seconds=2), hysteresis=0.5, ttl=60, lateness=0.0005)
    assert (found.entity, found.entity_type) == ("room", pa.string())
    assert found.on == {"temp": pa.float64()} and found.keys == {"code": pa.string()}
    assert (found.dwell, found.ttl, found.lateness) == (2000, 60_000, 1)  # upwards to whole units
    assert found.margins == {"temp": 0.5} and found.holds and found.follows
    assert set(found.columns) == {"room", "temp", "at", "code"}
    assert found.schema(pa.int64()).names == [
        *("room", "query_id", "crossing", "at", "temp", "previous_temp")
    ]
    plain = watch()
    assert (plain.dwell, plain.ttl, plain.lateness) == (OFF, OFF, OFF)
    assert not plain.holds and not plain.follows and plain.time is None
    assert plain.schema(pa.string()).names == [
        *("room", "query_id", "crossing", "temp", "previous_temp")
    ]
    assert watch(exit_on_removal=True).follows and watch(enter_on_add=True).follows
    assert not watch(time="at", dwell=0).holds


@pytest.mark.parametrize(
    ("column", "span", "units"),
    [
        ("day", 2, 2),
        ("day", 1.5, 2),
        ("day", timedelta(hours=25), 2),
        ("tick", 7, 7),
        ("tick", 6.25, 7),
        ("at", timedelta(microseconds=1), 1),
        ("at", 0, 0),
        ("at", timedelta(0), 0),
    ],
)
def test_spans_count_in_units_of_the_time(column: str, span: Any, units: int) -> None:
    assert watch(time=column, dwell=span).dwell == units


def test_whole_numbers_are_watched_as_such() -> None:
    found = watch({}, entity="number", on=["height", "big"], time="tick")
    assert found.entity_type == pa.int64() and found.time_type == pa.int64()
    assert found.on == {"height": pa.int64(), "big": pa.uint64()}
    assert watch(entity="code", attributes={"temp": pa.float64()}).entity_type == pa.string()
    assert watch(on="temp").on == {"temp": pa.float64()}
    assert watch({**QUERIES, "height": pa.int16()}, on="temp").keys["height"] == pa.int16()


def test_the_entity_may_be_a_key() -> None:
    found = watch({"temp": pa.float64(), "number": pa.int32()}, entity="number", on="temp")
    assert found.needed == {"temp": pa.float64(), "number": pa.int32()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entity": "house"}, "entity: the readings have no column 'house' (columns: room, number"),
        ({"on": "weight"}, "on: the readings have no column 'weight' (columns: room, number"),
        ({"on": ["temp", "weight"]}, "on: the readings have no column 'weight'"),
        ({"time": "when"}, "time: the readings have no column 'when' (columns: room, number"),
        ({"on": []}, "on=[...] is empty: say which columns are watched"),
        ({"on": ["temp", "temp"]}, "on: a name is there twice: temp, temp"),
        ({"attributes": {}}, "on=[...]: say which columns are watched; the queries name none"),
        (
            {"attributes": {"code": pa.string()}},
            "on=[...]: say which columns are watched; the queries name none",
        ),
        ({"on": "code"}, "on: 'code' is string, which has no borders to cross"),
        ({"on": "flag"}, "on: 'flag' is bool, which has no borders to cross"),
        ({"on": "raw"}, "on: 'raw' is binary, which has no borders to cross"),
        (
            {"attributes": {"temp": pa.int64()}},
            "on: 'temp' is double, which cannot be read as int64 without losing values",
        ),
        (
            {"attributes": {"big": pa.float64()}},
            "on: 'big' is uint64, which cannot be read as float64 without losing values",
        ),
        ({"entity": "temp", "on": "temp"}, "'temp' is the entity and cannot be watched too"),
        ({"entity": "number", "on": "number"}, "'number' is the entity and cannot be watched too"),
        ({"time": "tick", "on": ["temp", "tick"]}, "'tick' is the time and cannot be watched too"),
        ({"entity": "tick", "time": "tick"}, "'tick' is the time and cannot be the entity too"),
        (
            {"entity": "temp", "on": "height"},
            "entity: 'temp' is double; strings or integers are needed",
        ),
        ({"entity": "flag"}, "entity: 'flag' is bool; strings or integers are needed"),
        ({"entity": "big"}, "entity: 'big' is uint64; strings or integers are needed"),
        ({"entity": "at"}, "entity: 'at' is timestamp[ms]; strings or integers are needed"),
        ({"time": "room"}, "'room' is the time and cannot be the entity too"),
        ({"time": "code"}, "time: 'code' is dictionary<"),
        (
            {"time": "flag"},
            "time: 'flag' is bool; a timestamp, date (32 bits) or integer is needed",
        ),
        (
            {"time": "big"},
            "time: 'big' is uint64; a timestamp, date (32 bits) or integer is needed",
        ),
        (
            {"time": "temp", "on": "height"},
            "time: 'temp' is double; a timestamp, date (32 bits) or integer is needed",
        ),
        ({"time": "at", "ttl": 5}, "ttl needs lateness=...: how far a reading may be behind"),
        ({"dwell": 5}, "dwell needs time=...: the column that says when a reading was taken"),
        ({"ttl": 5}, "ttl needs time=..."),
        ({"lateness": timedelta(1)}, "lateness needs time=..."),
        ({"time": "at", "dwell": -1}, "dwell: -1 is negative or too long"),
        ({"time": "at", "dwell": timedelta(-1)}, "dwell: datetime.timedelta(days=-1) is negative"),
        ({"time": "at", "ttl": -0.1, "lateness": 1}, "ttl: -0.1 is negative or too long"),
        ({"time": "tick", "lateness": -3}, "lateness: -3 is negative or too long"),
        ({"time": "at", "dwell": 10**17}, "dwell: 100000000000000000 is negative or too long"),
        ({"time": "at", "dwell": float("nan")}, "dwell: nan is no span of time; use a timedelta"),
        ({"time": "at", "dwell": float("inf")}, "dwell: inf is no span of time"),
        ({"time": "at", "lateness": 2**63}, "lateness: 9223372036854775808 is no span of time"),
        ({"time": "at", "dwell": "5 s"}, "dwell: '5 s' is no span of time"),
        ({"time": "at", "dwell": True}, "dwell: True is no span of time"),
        ({"time": "at", "dwell": Decimal(5)}, "dwell: Decimal('5') is no span of time"),
        (
            {"time": "tick", "dwell": timedelta(seconds=5)},
            "dwell: the time column is a number; give a number of its units",
        ),
        ({"exit_on_removal": "no"}, "exit_on_removal='no' is neither True nor False"),
        ({"hysteresis": {"height": 1}}, "hysteresis: 'height' is not watched (on: temp)"),
        ({"hysteresis": {"code": 1}}, "hysteresis: 'code' is not watched (on: temp)"),
        (
            {"on": ["temp", "height"], "hysteresis": 1},
            "hysteresis: with several columns say of which, as {column: margin}",
        ),
        ({"hysteresis": -1}, "hysteresis: temp: a margin is a number from 0 on, not -1"),
        (
            {"hysteresis": {"temp": float("nan")}},
            "hysteresis: temp: a margin is a number from 0 on, not nan",
        ),
        ({"hysteresis": "1"}, "hysteresis: temp: a margin of '1' is none for float64"),
        ({"entity": None}, "entity: None is not the name of a column"),
        ({"entity": ["room"]}, "entity: ['room'] is not the name of a column"),
        ({"time": ["at"]}, "time: ['at'] is not the name of a column"),
        ({"on": 3}, "on=3: give the names of columns, as a list"),
        ({"on": [3]}, "on: 3 is not the name of a column"),
        ({"keys": 3}, "keys=3: give the names of columns, as a list"),
        ({"keys": ["tenant"]}, "keys: the readings have no column 'tenant'"),
        ({"keys": "temp", "on": "temp"}, "'temp' is watched and cannot be a key too"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    refused(message, **options)


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
)
def test_every_kind_of_text_may_be_an_entity(kind: pa.DataType) -> None:
    readings = pa.schema([("room", kind), ("temp", pa.float64())])
    assert Watch.of(readings, QUERIES, entity="room", on="temp").entity_type == pa.string()
    table = pa.table({"room": ["a"], "temp": [31.0]}).cast(pa.schema(readings))
    found = limen.crossings(table, {"hot": "temp >= 30"}, entity="room")
    assert found.column("room").to_pylist() == ["a"]


def test_spans_may_be_numbers_of_numpy() -> None:
    found = watch(time="tick", dwell=np.int64(3), ttl=np.float64(2.5), lateness=np.int8(1))
    assert (found.dwell, found.ttl, found.lateness) == (3, 3, 1)


def test_keys_that_no_query_asks_for_yet() -> None:
    assert watch(keys="tick").keys == {"tick": pa.int32(), "code": pa.string()}
    none = Watch.of(READINGS, {}, entity="room", on="temp", keys=["code", "number"])
    assert none.keys == {"code": pa.string(), "number": pa.int32()}


@pytest.mark.parametrize("name", ["query_id", "crossing", "version", "reason"])
@pytest.mark.parametrize("role", ["entity", "on", "time"])
def test_names_of_the_results_columns_are_refused(name: str, role: str) -> None:
    columns = {"entity": "who", "on": "x", "time": "at", role: name}
    readings = pa.schema([(column, pa.int64()) for column in columns.values()])
    message = f"the readings' column {name!r} has the name of one of the result's"
    with pytest.raises(LimenError, match=message):
        Watch.of(readings, {}, **columns)  # type: ignore[arg-type]


def test_the_name_of_a_previous_value_is_refused() -> None:
    readings = pa.schema([("previous_x", pa.int64()), ("who", pa.int64()), ("x", pa.int64())])
    message = "the readings' column 'previous_x' has the name of one of the result's"
    for columns in (
        {"entity": "previous_x", "on": ["x"]},
        {"entity": "who", "on": ["x", "previous_x"]},
        {"entity": "who", "on": ["x"], "time": "previous_x"},
    ):
        with pytest.raises(LimenError, match=message):
            Watch.of(readings, {}, **columns)  # type: ignore[arg-type]


def test_a_column_that_is_there_twice_is_refused() -> None:
    readings = pa.schema([("who", pa.int64()), ("x", pa.int64()), ("x", pa.int64())])
    with pytest.raises(LimenError, match="on: the readings have no column 'x'"):
        Watch.of(readings, {}, entity="who", on="x")


def test_an_entity_that_is_a_key_of_another_type_is_refused() -> None:
    schema = pa.schema([("device", pa.int32()), ("temp", pa.float64()), ("at", pa.int64())])
    for kind in (pa.float64(), pa.uint64()):
        with pytest.raises(LimenError, match="entity: 'device' is int32 and"):
            Watch.of(schema, {"device": kind, "temp": pa.float64()}, entity="device", on="temp")
    with pytest.raises(LimenError, match="'at' is the time and cannot be a key too"):
        Watch.of(schema, {}, entity="device", on="temp", time="at", keys="at")
    with pytest.raises(
        LimenError, match="time: the queries ask for 'at', so it cannot be the time"
    ):
        attributes = {"at": pa.int64(), "temp": pa.float64()}
        Watch.of(schema, attributes, entity="device", on="temp", time="at")


def test_what_is_watched_if_it_is_not_said() -> None:
    schema = pa.schema([("device", pa.int64()), ("tenant", pa.int64()), ("temp", pa.float64())])
    queries = {"q": "device = 1 AND tenant = 7 AND temp > 30"}
    crosser = Crosser.of(schema, queries, entity="device")
    assert list(crosser.watch.on) == ["temp"] and list(crosser.watch.keys) == ["device", "tenant"]
    found = crosser.cross(pa.table([[1, 1, 2], [7, 8, 7], [31.0, 31.0, 31.0]], schema=schema))
    assert found.crossings.column("crossing").to_pylist() == ["enter", "exit"]
    # a key that only some queries ask for; and columns in the order of the readings
    shapes = pa.schema([*schema, ("y", pa.int64())])
    some = {"a": "temp > 30 AND tenant = 7", "b": "y < 2", "c": "temp < 3"}
    crosser = Crosser.of(shapes, dict(reversed(some.items())), entity="device")
    assert list(crosser.watch.on) == ["temp", "y"] and list(crosser.watch.keys) == ["tenant"]
    points = Crosser.of(shapes, {"a": "y = 2", "b": "temp = 3"}, entity="device")
    assert list(points.watch.on) == ["temp", "y"]  # of points alone all are watched
