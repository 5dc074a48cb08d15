"""What an archive is made of, and results that it refuses by a sentence, with nothing changed."""

from __future__ import annotations

import os
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from limen.archive import Archive, ArchiveError

SCHEMA = pa.schema(
    [("key", pa.int64()), ("generated", pa.int64()), ("expires", pa.int64()), ("x", pa.float64())]
)
SAID = {"key": "key", "window": 16, "every": 2, "layout": "NoRebuild2x2"}
GOOD = {"key": [1, 2], "generated": [17, 18], "expires": [20, 34], "x": [0.5, None]}


def _files(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


@pytest.fixture
def archive(tmp_path):
    made = Archive.open(tmp_path / "archive", SCHEMA, **SAID)
    made.update(16, {"key": [1, 1], "generated": [3, 16], "expires": [17, 32], "x": [1.0, 2.0]})
    return made


class Unchanged:
    """Asserts, when a test is over, that its archive is as it was."""

    def __init__(self, archive: Archive) -> None:
        self.archive, self.files, self.rows = archive, _files(archive.path), archive.scan()

    def __enter__(self) -> None: ...

    def __exit__(self, *raised: object) -> None:
        assert _files(self.archive.path) == self.files
        assert self.archive.version == 1 and self.archive.scan() == self.rows
        assert Archive.open(self.archive.path).scan() == self.rows


def _with(**columns):
    return {**GOOD, **columns}


# -- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "told"),
    [
        (
            _with(generated=[17, 19]),
            "row 1: its generation, 19, is after the time of the update, 18",
        ),
        (
            _with(generated=[16, 15]),
            r"row 0 \(and 1 more\): its generation, 16, is not after the la",
        ),
        (_with(expires=[20, 17]), r"row 1: its generation, 18, is after its expiration \(17\)"),
        (_with(expires=[34, 20]), r"generation, 17, is more than the window, 16, before .* \(34\)"),
        (_with(expires=[2**63 - 1, 20]), "is more than the window"),
        (_with(expires=[-(2**63), 20]), "is after its expiration"),
        (_with(generated=[-(2**63), 18]), "is not after the last update, 16"),
        (_with(key=[None, 1]), "row 0: column 'key' is null"),
        (_with(generated=[17, None]), "row 1: column 'generated' is null"),
        (_with(expires=[None, None]), "row 0: column 'expires' is null"),
        (
            _with(key=["1", "2"]),
            "row 0: '1' does not fit column 'key', which is int64 in the archive",
        ),
        (_with(key=[1, 2.0]), "row 1: 2.0 does not fit column 'key', which is int64"),
        (_with(generated=[17.0, 18.0]), "17.0 does not fit column 'generated'"),
        (_with(key=[True, False]), "row 0: True does not fit column 'key'"),
        (_with(key=[1, 2**63]), "row 1: 9223372036854775808 does not fit column 'key'"),
        (_with(x=["a", "b"]), "row 0: 'a' does not fit column 'x', which is double"),
        (_with(x=[0.5, 2**53 + 1]), "row 1: 9007199254740993 does not fit column 'x'"),
        (_with(x=[10**400, 1]), "row 0: 1000.*0000 does not fit column 'x'"),
        (_with(key=pa.array(["1", "2"])), "column 'key' is string in the results and int64"),
        (_with(key=np.array([1.0, 2.0])), "column 'key' is double in the results and int64"),
        (_with(x=np.array([2**53, 1])), "column 'x' is int64 in the results and double"),
        (
            _with(key=pa.array([1, 2**64 - 1], pa.uint64())),
            "row 1: 18446744073709551615 does not fit: column 'key' is uint64 in the results and int64",
        ),
        (_with(generated=[datetime(2026, 1, 1)] * 2), "datetime.*does not fit column 'generated'"),
        (
            [*pa.table(GOOD).to_pylist()[:1], {"key": 1}],
            "result row 1 has no column generated, exp",
        ),
        (
            [{**pa.table(GOOD).to_pylist()[0], "y": 1}],
            "result row 0 has a column y that it does not",
        ),
        (
            [{1: 2}],
            "no column key, generated, expires, x and a column 1 that it does not know; it has",
        ),
        ({k: v for k, v in GOOD.items() if k != "x"}, "no column x; it has key, generated"),
        (_with(y=[1, 2]), "a column y that it does not know"),
        ({"key": [1]}, "no column generated, expires, x"),
        (_with(key=[1]), "the results cannot be read as a table"),
        (
            pa.table([[1], [1], [17], [20], [1.0]], [*SCHEMA.names[:1] * 2, *SCHEMA.names[1:]]),
            "twice",
        ),
        (17, "results are a table or a frame, not a int"),
        ("results", "results are a table or a frame, not a str"),
        ([1, 2], "results are a table or a frame, not a list"),
        (np.zeros(3), "results are a table or a frame, not a ndarray"),
    ],
)
def test_wrong_results(archive, results, told):
    with Unchanged(archive), pytest.raises(ArchiveError, match=told):
        archive.update(18, results)


@pytest.mark.parametrize(
    ("time", "told"),
    [
        (16, "the update at 16 is done already; the next one is at 18"),
        (14, "the update at 14 is before the last; the next one is at 18"),
        (19, "19 is not a time of an update; the next one is at 18"),
        (20, "the update at 20 skips the one at 18; catch_up=True makes up"),
        (2**62, "out of range"),
        (18.0, "time=18.0: times are integers here"),
        ("18", "times are integers here"),
        (True, "times are integers here"),
        (datetime(2026, 1, 1, tzinfo=UTC), "times are integers here"),
    ],
)
def test_wrong_times(archive, time, told):
    with Unchanged(archive), pytest.raises(ArchiveError, match=told):
        archive.update(time, {k: [] for k in GOOD})


def test_late_results_and_skipped_updates_need_a_word(archive):
    archive.update(22, _with(generated=[8, 22], expires=[24, 23]), late=True, catch_up=True)
    assert archive.scan("expires").column("expires").to_pylist() == [23, 24, 32]


def test_counts_are_not_for_windows_of_time(archive):
    with Unchanged(archive), pytest.raises(ArchiveError, match="counts are for windows of a numb"):
        archive.update(18, GOOD, counts={"w": 1})


@pytest.mark.parametrize("results", [[], {}, {k: [] for k in GOOD}, pa.table(GOOD).slice(2)])
def test_a_period_may_bring_nothing(archive, results):
    assert archive.update(18, results).inserted == 0
    assert archive.take_in("s", 0, results) and not len(archive.quarantine())


DAY = date(2026, 1, 1)
DEEP = pa.struct([("a", pa.int8()), ("b", pa.list_(pa.decimal128(10, 2)))])
PLAIN = [  # a type, what it takes, and what of this is stored
    (pa.int32(), [5, None, np.int64(-7)], None),
    (pa.int8(), range(-128, 128), None),
    (pa.float32(), [5, 0.5, None, float("inf"), np.float64(2.5)], None),
    (pa.float64(), [5, 2**53, np.float32(0.5)], None),
    (pa.decimal128(10, 2), [5, Decimal("0.25"), Decimal("99999999.99")], None),
    (pa.string(), ["", "é"], None),
    (pa.binary(), [b"", b"\xff", bytearray(b"x")], None),
    (pa.bool_(), [True, np.False_], None),
    (pa.date32(), [DAY], None),
    (pa.timestamp("us"), [datetime(2026, 1, 1, 5)], None),
    (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, 5, tzinfo=UTC)], None),
    (pa.list_(pa.int32()), [[5, None], [], (6,), np.array([7])], [[5, None], [], [6], [7]]),
    (pa.struct([("a", pa.int8())]), [{"a": 5}, {}], [{"a": 5}, {"a": None}]),
    (DEEP, [{"a": 1, "b": [2, Decimal("0.5")]}], None),
    (
        pa.map_(pa.string(), pa.int16()),
        [{"a": 5}, [("b", None)], {}],
        [[("a", 5)], [("b", None)], []],
    ),
]


def _with_column(folder: Path, kind: pa.DataType) -> Archive:
    return Archive.open(folder / "new", SCHEMA.append(pa.field("y", kind)), **SAID)


def _rows(values) -> dict:
    n = len(values)
    return {"key": range(n), "generated": [18] * n, "expires": [20] * n, "x": [1] * n, "y": values}


@pytest.mark.parametrize(("kind", "values", "stored"), PLAIN, ids=lambda x: str(x)[:30])
@pytest.mark.parametrize("by", ["columns", "rows"])
def test_plain_values_of_any_type(tmp_path, kind, values, stored, by):
    archive, results = _with_column(tmp_path, kind), _rows(values)
    if by == "rows":
        results = [
            dict(zip(results, row, strict=True)) for row in zip(*results.values(), strict=True)
        ]
    archive.update(18, results)
    assert archive.scan("key").column("y").to_pylist() == (stored or list(values))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int8(), 300),
        (pa.int32(), 5.0),
        (pa.int32(), True),
        (pa.float64(), True),
        (pa.float64(), Decimal(1)),
        (pa.float32(), 2**24 + 1),
        (pa.float32(), 1e300),
        (pa.decimal128(10, 2), Decimal("0.001")),
        (pa.decimal128(10, 2), 10**8),
        (pa.decimal128(10, 2), 0.5),
        (pa.string(), b"a"),
        (pa.string(), "\ud800"),
        (pa.string(), 5),
        (pa.binary(), "a"),
        (pa.bool_(), 1),
        (pa.date32(), datetime(2026, 1, 1, 5)),
        (pa.timestamp("us"), DAY),
        (pa.timestamp("us"), datetime(2026, 1, 1, tzinfo=UTC)),
        (pa.timestamp("us", "UTC"), datetime(2026, 1, 1)),
        (pa.timestamp("us", "UTC"), pd.Timestamp(1, unit="ns", tz="UTC")),
        (pa.list_(pa.int8()), [1.5]),
        (pa.list_(pa.int8()), [300]),
        (pa.list_(pa.int8()), 5),
        (pa.list_(pa.string()), "abc"),
        (pa.struct([("a", pa.int8())]), {"a": 1, "b": 2}),
        (pa.struct([("a", pa.int8())]), {"a": 1.5}),
        (pa.struct([("a", pa.int8())]), 5),
        (pa.map_(pa.string(), pa.int8()), {5: 5}),
        (pa.map_(pa.string(), pa.int8()), {"a": 1.5}),
        (pa.map_(pa.string(), pa.int8()), [(None, 5)]),
        (pa.map_(pa.string(), pa.int8()), ["ab"]),
    ],
    ids=lambda x: str(x)[:30],
)
def test_plain_values_that_would_be_others(tmp_path, kind, value):
    archive = _with_column(tmp_path, kind)
    told = r"result row 1: .* does not fit column 'y', which is .* in the archive"
    with pytest.raises(ArchiveError, match=told):
        archive.update(18, _rows([None, value]))
    assert archive.version == 0


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (pa.decimal128(10, 2), pa.decimal128(5, 2), Decimal("1.25")),
        (pa.decimal128(10, 4), pa.decimal128(5, 2), Decimal("1.25")),
        (pa.int64(), pa.uint32(), 2**32 - 1),
        (pa.int16(), pa.uint8(), 255),
        (pa.float64(), pa.int32(), 5),
        (pa.list_(pa.int32()), pa.large_list(pa.int8()), [5, None]),
        (pa.list_(pa.string()), pa.list_(pa.dictionary(pa.int8(), pa.string())), ["a"]),
        (
            DEEP,
            pa.struct([("a", pa.int8()), ("b", pa.list_(pa.decimal128(4, 1)))]),
            {"a": 1, "b": []},
        ),
        (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int8()), [("a", 1)]),
        (pa.list_(pa.int32()), pa.list_(pa.null()), [None]),
    ],
    ids=str,
)
def test_what_comes_widens_without_loss(tmp_path, kind, given, value):
    archive = _with_column(tmp_path, kind)
    if isinstance(given, pa.ListType) and pa.types.is_dictionary(given.value_type):
        column = pa.ListArray.from_arrays([0, 1, 2], pa.array(value * 2).dictionary_encode())
    else:
        column = pa.array([value] * 2, given)
    archive.update(18, _rows([0, 0]) | {"y": column})
    assert archive.scan().column("y").to_pylist() == [value] * 2


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.decimal128(10, 4), pa.decimal128(10, 2)),
        (pa.float32(), pa.float64()),
        (pa.float64(), pa.int64()),
        (pa.list_(pa.int8()), pa.list_(pa.int16())),
        (pa.struct([("a", pa.int8())]), pa.struct([("b", pa.int8())])),
        (pa.list_(pa.int8()), pa.int8()),
        (pa.map_(pa.string(), pa.int8()), pa.map_(pa.string(), pa.int64())),
    ],
    ids=str,
)
def test_nothing_is_narrowed(tmp_path, kind, given):
    archive = _with_column(tmp_path, kind)
    with pytest.raises(
        ArchiveError, match=r"column 'y' is .* in the results and .* in the archive"
    ):
        archive.update(18, _rows([0, 0]) | {"y": pa.nulls(2, given)})


@pytest.mark.parametrize(
    "results",
    [
        pa.table(GOOD).to_batches()[0],
        pa.table(GOOD).to_pylist(),
        pl.DataFrame(GOOD),
        pd.DataFrame(GOOD),
        pa.table(GOOD).select(["x", "expires", "key", "generated"]),
        _with(key=pa.array([1, 2], pa.int8()), x=pa.array([0.5, None], pa.float32())),
        _with(key=pa.array([1, 2]).dictionary_encode()),
    ],
    ids=["batch", "list", "polars", "pandas", "order", "narrow", "dictionary"],
)
def test_any_frame_will_do(archive, results):
    archive.update(18, results)
    assert archive.probe(2).to_pylist() == [{"key": 2, "generated": 18, "expires": 34, "x": None}]


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["1", 1.0, True, None, date(2026, 1, 1), b"1", [1, "1"], float("nan")]
)
def test_a_key_of_another_type(archive, key):
    with (
        Unchanged(archive),
        pytest.raises(ArchiveError, match=r"is not a key|a probe is for a key"),
    ):
        archive.probe(key)
    with pytest.raises(ArchiveError, match="is not a key"):
        archive.probe(between=(0, key))


def test_keys_that_the_type_cannot_hold_are_in_nobodys_way(archive):
    assert not len(archive.probe(2**70)) and not len(archive.probe(-(2**70)))
    assert len(archive.probe(between=(-(2**70), 2**70))) == 2
    assert len(archive.probe(between=(1, 2**70))) == 2
    archive.update(18, _with(key=[-5, 7]))
    assert len(archive.probe(between=(0, 2**70))) == 2
    assert len(archive.probe(between=(-(2**70), 0))) == 1


INF, LAST_64, LAST_32 = float("inf"), sys.float_info.max, float(np.finfo(np.float32).max)
TENTH = float(np.float32(0.1))  # above 0.1
BEFORE = float(np.nextafter(np.float32(0.1), np.float32(0)))
BETWEEN = [  # a key that no float of this type is, and those around it
    ("whole", pa.float64(), 2**53 + 1, 2.0**53, 2.0**53 + 2),
    ("below zero", pa.float64(), -(2**53) - 1, -(2.0**53) - 2, -(2.0**53)),
    ("huge", pa.float64(), 10**400, LAST_64, INF),
    ("huge below zero", pa.float64(), -(10**400), -INF, -LAST_64),
    ("whole, 32", pa.float32(), 2**24 + 1, 2.0**24, 2.0**24 + 2),
    ("whole, 32, as a float", pa.float32(), 2.0**24 + 1, 2.0**24, 2.0**24 + 2),
    ("nearly 0.1, 32", pa.float32(), 0.100000001, BEFORE, TENTH),
    ("a part of the least, 32", pa.float32(), 1e-46, 0.0, 2.0**-149),
    ("huge, 32", pa.float32(), 1e300, LAST_32, INF),
    ("huge below zero, 32", pa.float32(), -(10**400), -INF, -LAST_32),
]


@pytest.mark.parametrize(
    ("kind", "key", "below", "above"), [b[1:] for b in BETWEEN], ids=[b[0] for b in BETWEEN]
)
def test_keys_between_two_floats(tmp_path, kind, key, below, above):
    """Not rounded to one of them, nor is a bound."""
    _finds_only_what_lies_there(tmp_path, kind, key, below, above)


NAMES_32 = [  # what a key of float32 is named by, and that key
    (0.1, TENTH),
    (np.float64(0.1), TENTH),
    (TENTH, TENTH),
    (np.float32(0.1), TENTH),
    (-0.1, -TENTH),
    (2**24, 2.0**24),
    (np.int64(2**24), 2.0**24),
    (-0.0, 0.0),
    (1e-45, 2.0**-149),
    (2.0**-149, 2.0**-149),
    (3.4028235e38, LAST_32),
    (LAST_32, LAST_32),
    (INF, INF),
    (-INF, -INF),
]


@pytest.mark.parametrize(("name", "key"), NAMES_32, ids=[repr(name) for name, _ in NAMES_32])
def test_a_float32_is_named_by_its_shortest_decimal(tmp_path, name, key):
    """In probes, ranges, conditions and invalidations alike; its neighbours are not."""
    with np.errstate(over="ignore"):
        ends = [float(np.nextafter(np.float32(key), np.float32(to))) for to in (-INF, INF)]
    keys = sorted({key, *ends})
    schema = pa.schema([("key", pa.float32()), ("generated", pa.int64()), ("expires", pa.int64())])
    archive = Archive.open(tmp_path / "a", schema, **SAID)
    n = len(keys)
    archive.update(16, {"key": keys, "generated": [16] * n, "expires": [30] * n})
    at = keys.index(key)
    for asked, expected in (
        ({"key": name}, [key]),
        ({"between": (name, name)}, [key]),
        ({"between": (-INF, name)}, keys[: at + 1]),
        ({"between": (name, INF)}, keys[at:]),
    ):
        snapshot = archive.snapshot()
        assert snapshot.probe(**asked).column("key").to_pylist() == expected
        assert len(snapshot.named(**asked)) == 1
        with duckdb.connect() as connection:
            connection.register("results", snapshot.scan())
            where = snapshot.where(**asked)
            found = connection.sql(f"SELECT key FROM results WHERE {where} ORDER BY key").fetchall()
        assert [row[0] for row in found] == expected, where
    archive.invalidate([name])
    assert archive.scan("key").column("key").to_pylist() == [k for k in keys if k != key]


def test_a_float64_is_named_by_itself_only(tmp_path):
    schema = pa.schema([("key", pa.float64()), ("generated", pa.int64()), ("expires", pa.int64())])
    archive = Archive.open(tmp_path / "a", schema, **SAID)
    archive.update(16, {"key": [0.1, TENTH], "generated": [16] * 2, "expires": [30] * 2})
    for key in (0.1, TENTH):
        for asked in ({"key": key}, {"between": (key, key)}):
            assert archive.probe(**asked).column("key").to_pylist() == [key]
    archive.invalidate([0.1])
    assert archive.scan().column("key").to_pylist() == [TENTH]


def test_keys_between_two_microseconds(tmp_path):
    kind, at = pa.timestamp("us", "UTC"), datetime(1969, 12, 31, 23, 59, 59, 999_998, UTC)
    between = pd.Timestamp(at) + pd.Timedelta(1, "ns")
    _finds_only_what_lies_there(tmp_path, kind, between, at, at + timedelta(microseconds=1))


def _finds_only_what_lies_there(folder, kind, key, below, above):
    schema = pa.schema([("key", kind), ("generated", pa.int64()), ("expires", pa.int64())])
    archive = Archive.open(folder / "a", schema, **SAID)
    archive.update(16, {"key": [below, above], "generated": [16] * 2, "expires": [30] * 2})
    snapshot = archive.snapshot()
    for asked, expected in (
        ({"key": key}, []),
        ({"key": below}, [below]),
        ({"between": (key, key)}, []),
        ({"between": (key, above)}, [above]),
        ({"between": (below, key)}, [below]),
        ({"between": (below, above)}, [below, above]),
    ):
        assert snapshot.probe(**asked).column("key").to_pylist() == expected
        with duckdb.connect() as connection:
            connection.sql("SET TimeZone = 'UTC'")
            connection.register("results", snapshot.scan())
            where = snapshot.where(**asked)
            found = connection.sql(f"SELECT key FROM results WHERE {where} ORDER BY key").fetchall()
        assert [row[0] for row in found] == expected, where
        assert len(snapshot.named(**asked)) >= bool(expected)
    assert snapshot.named(key) == []
    with pytest.raises(
        ArchiveError, match=r"cannot be invalidated: 'key' is .* which cannot hold it"
    ):
        archive.invalidate([below, key])
    assert len(archive.scan()) == 2


def test_keys_that_an_integer_cannot_hold_are_told_in_sql_that_can(archive):
    told = archive.snapshot().where(between=(-(10**50), 10**50))
    assert f'"key" >= {-(2**63)} AND "key" <= {2**63 - 1}' in told
    assert archive.snapshot().where(10**50).startswith("false")
    assert not archive.snapshot().named(10**50)


def test_a_range_that_ends_before_it_begins_has_no_keys(tmp_path):
    archive = Archive.open(tmp_path / "new", SCHEMA, **SAID)
    archive.update(
        18, {"key": range(9), "generated": [18] * 9, "expires": [20] * 9, "x": [None] * 9}
    )
    assert not len(archive.probe(between=(5, 2))) and not archive.snapshot().named(between=(5, 2))
    assert "false" in archive.snapshot().where(between=(5, 2))


def test_a_probe_asks_for_one_thing(archive):
    for asked in ({}, {"key": 1, "between": (1, 2)}):
        with pytest.raises(ArchiveError, match="for a key, for a list of keys, or between two"):
            archive.probe(**asked)
    assert not len(archive.probe([])) and not len(archive.probe(between=(5, 1)))


KEYED = {
    "float64": (pa.float64(), [0.5, -0.0, float("inf"), float("-inf")], "x"),
    "float32": (pa.float32(), [0.1, 0.0, float("inf"), 1e30], "x"),
    "string": (pa.string(), ["a'b", "", "\u0000", "\U0001f600"], 1),
    "date": (pa.date32(), [date(1, 1, 1), date(2026, 1, 1), date(9999, 12, 31)], 1),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, tzinfo=UTC)], 1),
}


@pytest.fixture
def keyed(tmp_path):
    def made(name: str) -> tuple[Archive, list]:
        kind, keys, _ = KEYED[name]
        schema = pa.schema([("key", kind), ("generated", pa.int64()), ("expires", pa.int64())])
        archive = Archive.open(tmp_path / name, schema, **SAID)
        n = len(keys)
        archive.update(
            16, {"key": pa.array(keys, kind), "generated": [16] * n, "expires": [30] * n}
        )
        return archive, keys

    return made


@pytest.mark.parametrize("name", KEYED)
def test_keys_at_the_ends_of_their_types(keyed, name):
    archive, keys = keyed(name)
    for key in keys:
        assert len(archive.probe(key)) == 1
    assert len(archive.probe(between=(min(keys), max(keys)))) == len(keys)
    for key in keys:
        archive.invalidate([key])
        assert not len(archive.probe(key))
    assert not len(archive.scan())
    with pytest.raises(ArchiveError, match="is not a key: 'key' is"):
        archive.probe(KEYED[name][2])


def test_keys_of_numpy_are_told_in_plain_sql(keyed):
    archive, _ = keyed("float64")
    told = archive.snapshot().where(between=(np.float64(0), np.float64(2)))
    assert "\"key\" >= CAST('0.0' AS DOUBLE) AND \"key\" <= CAST('2.0' AS DOUBLE)" in told
    assert len(archive.probe(between=(np.float64(0), np.float64(2)))) == 2
    for times in (5, (1,), (1, 2, 3)):
        with pytest.raises(ArchiveError, match="two times are needed, from and to"):
            archive.snapshot().named(generated=times)
        with pytest.raises(ArchiveError, match="two times are needed, from and to"):
            archive.snapshot().where(expires=times)


@pytest.mark.parametrize("name", KEYED)
def test_a_list_of_keys(keyed, name):
    """As for a probe: files and the condition of SQL are those of all of them."""
    archive, keys = keyed(name)
    snapshot = archive.snapshot()
    for asked in (keys[:2], tuple(keys[:1]), set(keys), pa.array(keys, KEYED[name][0]), []):
        expected = snapshot.probe(asked).column("key").to_pylist()
        assert len(expected) == len(asked)
        assert snapshot.named(asked) == (snapshot.files if len(asked) else [])
        with duckdb.connect() as connection:
            connection.sql("SET TimeZone = 'UTC'")
            connection.register("results", snapshot.scan())
            where = snapshot.where(asked)
            found = connection.sql(f"SELECT key FROM results WHERE {where} ORDER BY key").fetchall()
        assert [row[0] for row in found] == expected, where
    for ask in (snapshot.named, snapshot.where, snapshot.probe):
        with pytest.raises(ArchiveError, match="is not a key"):
            ask([*keys, b"1"])


def test_keys_of_a_list_that_the_type_cannot_hold(archive):
    snapshot = archive.snapshot()
    assert '"key" = 1' in snapshot.where([2**70, 1]) and " IN " not in snapshot.where([2**70, 1])
    assert '"key" IN (1, 7)' in snapshot.where([7, 1, 2**70])
    assert snapshot.where([2**70, -(2**70)]).startswith("false") and snapshot.named([2**70]) == []
    assert snapshot.where([]).startswith("false") and snapshot.named([]) == []


BEYOND = {  # a key that Python has no date for, and the last that it has
    "date": (pa.date32(), 2_932_897, date(9999, 12, 31)),
    "first date": (pa.date32(), -719_163, date(1, 1, 1)),
    "timestamp": (pa.timestamp("us", "UTC"), 253_402_300_800_000_000, datetime.max),
    "first timestamp": (pa.timestamp("us", "UTC"), -62_135_596_800_000_001, datetime.min),
}


@pytest.mark.parametrize("name", BEYOND)
def test_keys_that_python_cannot_say(tmp_path, name):
    kind, beyond, last = BEYOND[name]
    last = last.replace(tzinfo=UTC) if isinstance(last, datetime) else last
    schema = pa.schema([("key", kind), ("generated", pa.int64()), ("expires", pa.int64())])
    archive = Archive.open(tmp_path / "a", schema, **SAID)
    whole = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    good = pa.array([last, last], kind)
    bad = pa.concat_arrays([good[:1], pa.array([beyond], whole).cast(kind)])
    times = {"generated": [16, 16], "expires": [30, 30]}
    told = "row 1: the key 'key' is out of range: years are 1 to 9999"
    with pytest.raises(ArchiveError, match=told):
        archive.update(16, {"key": bad, **times})
    archive.update(16, {"key": good, **times})
    archive.take_in("s", 0, {"key": bad, "generated": [17, 17], "expires": [30, 30]})
    archive.update(18)
    assert archive.quarantine().column("reason").to_pylist() == [told.removeprefix("row 1: ")]
    for ask in (archive.probe, archive.invalidate, archive.snapshot().named):
        with pytest.raises(ArchiveError, match="the keys cannot be read"):
            ask(bad)
    held = archive.scan().column("key")
    assert len(archive.probe(held)) == 3 and archive.probe(last).column("key") == held
    archive.invalidate(held)
    assert not len(archive.scan())


@pytest.mark.parametrize("quote", [3, "", '""', None])
def test_what_no_name_is_put_into(archive, quote):
    with pytest.raises(ArchiveError, match=f"quote={quote!r}: the sign that names are put into"):
        archive.snapshot().where(quote=quote)


def test_texts_are_told_to_spark_by_their_bytes(keyed):
    archive, _ = keyed("string")
    where = archive.snapshot().where
    assert "\"key\" = 'a\\b''c'" in where("a\\b'c")
    assert "`key` = CAST(X'615c62' AS STRING)" in where("a\\b", quote="`")
    assert "`key` = 'plain'" in where("plain", quote="`")


def test_zero_is_one_key(keyed):
    archive, _ = keyed("float64")
    assert len(archive.probe(0.0)) == len(archive.probe(-0.0)) == len(archive.probe(0)) == 1
    archive.invalidate([0.0])
    assert not len(archive.probe(0.0))


def test_nan_is_no_key(keyed):
    archive, _ = keyed("float64")
    with pytest.raises(ArchiveError, match="row 0: the key 'key' is NaN"):
        archive.update(18, {"key": [float("nan")], "generated": [18], "expires": [20]})
    with pytest.raises(ArchiveError, match="nan is not a key"):
        archive.probe(float("nan"))


# -- times at the ends ---------------------------------------------------------------------------

MICROSECOND, MINUTE = timedelta(microseconds=1), timedelta(minutes=1)


def _timed(expires: int, generated: int, kind: pa.DataType) -> dict:
    times = {"generated": generated, "expires": expires}
    return {"key": [1], **{n: pa.array([t]).cast(kind) for n, t in times.items()}}


def _bare(folder: Path, kind: pa.DataType) -> Archive:
    """With windows of 16 (minutes), every 2."""
    unit = MINUTE if pa.types.is_timestamp(kind) else 1
    schema = pa.schema([("key", pa.int64()), ("generated", kind), ("expires", kind)])
    said = {"key": "key", "window": 16 * unit, "every": 2 * unit, "layout": "Rebuild2x2"}
    return Archive.open(folder / "a", schema, **said)


INTEGER, TIME = pa.int64(), pa.timestamp("us", "UTC")
NANOSECOND = pd.Timedelta(1, "ns")
YEAR_10000 = (
    datetime.max.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
) // MICROSECOND + 1
YEAR_0 = (datetime.min.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND - 1
SPAN = 16 * 60 * 10**6  # of a window, in microseconds
OUT_OF_RANGE = [
    (INTEGER, -(2**63)),
    (INTEGER, -(2**63) + 7),
    (INTEGER, -(2**62)),
    (INTEGER, 2**62),
    (INTEGER, 2**63 - 20),
    (TIME, -(2**61)),
    (TIME, YEAR_0),
    (TIME, YEAR_0 + SPAN),
    (TIME, YEAR_10000 - SPAN),
    (TIME, YEAR_10000),
    (TIME, 2**61),
]


@pytest.mark.parametrize(("kind", "at"), OUT_OF_RANGE, ids=str)
@pytest.mark.parametrize("first", [True, False])
def test_a_stream_s_times_out_of_range_are_set_aside(tmp_path, kind, at, first):
    archive = _bare(tmp_path, kind)
    if not first:
        archive.take_in("s", 0, _timed(9, 0, kind))
    time = archive.time
    assert archive.take_in("s", 1, _timed(at + 5, at, kind))
    assert archive.take_in("s", 2, _timed(at + 5, 7, kind))
    assert archive.take_in("s", 3, _timed(9, at, kind))
    reasons = archive.quarantine().column("reason").to_pylist()
    assert reasons[0] == "generated is out of range" and len(reasons) == 3
    assert Archive.open(archive.path).time == archive.time == time
    archive.take_in("s", 4, _timed(9, 0, kind))
    archive.where()
    assert len(archive.scan()) == 1  # if there was one, this one waits for the next update


def test_times_finer_than_they_are_kept(tmp_path):
    archive, now = _bare(tmp_path, TIME), pd.Timestamp("2026-01-01", tz="UTC")
    archive.update(now)
    told = "times are whole microseconds here"
    for call in (
        lambda: archive.update(now + 2 * MINUTE + NANOSECOND),
        lambda: archive.snapshot().named(generated=(now + NANOSECOND, None)),
        lambda: archive.window(8 * MINUTE + NANOSECOND),
        lambda: archive.invalidate([1], now - NANOSECOND),
    ):
        with pytest.raises(ArchiveError, match=told):
            call()
    assert archive.update(now + pd.Timedelta(2, "min")).version == 2


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_the_row_with_a_time_that_is_too_fine_is_named(tmp_path, unit):
    archive, now = _bare(tmp_path, TIME), pd.Timestamp("2026-01-01", tz="UTC")
    at = [now.value, now.value, now.value + 1, now.value + 2]
    times = pa.array(at, pa.int64()).cast(pa.timestamp("ns", "UTC"))
    column = pa.chunked_array([times[:1], times[1:]])
    told = (
        r"result row 2: 2026-01-01 00:00:00.000000001Z does not fit: column 'expires' is "
        r"timestamp\[ns, tz=UTC\] in the results and timestamp\[us, tz=UTC\] in the archive"
    )
    generated = pa.array([now] * 4, pa.timestamp(unit, "UTC"))
    with pytest.raises(ArchiveError, match=told):
        archive.update(now, {"key": [1] * 4, "generated": generated, "expires": column})
    assert archive.version == 0


@pytest.mark.parametrize(("kind", "at"), OUT_OF_RANGE, ids=str)
def test_an_update_s_times_out_of_range_are_refused(tmp_path, kind, at):
    archive = _bare(tmp_path, kind)
    now = 0 if kind == INTEGER else datetime(1970, 1, 1, tzinfo=UTC)
    if at < 0:
        with pytest.raises(ArchiveError, match=r"row 0: its generation, .* is out of range"):
            archive.update(now, _timed(at + 5, at, kind))
    if kind == INTEGER or YEAR_0 < at < YEAR_10000:
        wrong = at if kind == INTEGER else now + at * MICROSECOND
        with pytest.raises(ArchiveError, match="out of range"):
            archive.update(wrong)
    assert archive.version == 0 and archive.time is None
    archive.update(now, _timed(9, 0, kind))
    assert len(archive.scan()) == 1


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [(INTEGER, 1 - 2**62, 2**62 - 1), (TIME, YEAR_0 + SPAN + 1, YEAR_10000 - SPAN - 1)],
    ids=str,
)
def test_the_first_and_the_last_times(tmp_path, kind, first, last):
    """All that is said and asked of them can be: no sum with a window is out of range."""
    archive = _bare(tmp_path, kind)
    archive.take_in("s", 0, _timed(first + 9, first, kind))
    archive.take_in("s", 1, _timed(first + 2 * SPAN, first + 2 * SPAN, kind))
    archive.take_in("s", 2, _timed(last, last - 9, kind))
    archive.take_in("s", 3, _timed(last, last, kind))
    archive.invalidate([7])
    short = archive.window(1 if kind == INTEGER else MICROSECOND)
    for snapshot in (archive.snapshot(), short):
        assert snapshot.where() and repr(snapshot.time)
        assert len(snapshot.scan("expires")) <= 1
    assert archive.time == Archive.open(archive.path).time
    if kind == TIME:
        for named in (datetime.min, datetime.max):
            assert archive.snapshot().named(generated=(named.replace(tzinfo=UTC), None)) is not None
        beyond = datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))
        with pytest.raises(ArchiveError, match=r"until=.* is out of range"):
            archive.invalidate([7], until=beyond)


def test_estimates_at_the_last_times(tmp_path):
    for kind, now in ((INTEGER, 2**62 - 1), (TIME, YEAR_10000 - SPAN - 1)):
        schema = pa.schema([("key", pa.int64()), ("generated", kind), ("place", pa.int64())])
        unit = MINUTE if kind == TIME else 1
        archive = Archive.open(
            tmp_path / str(kind),
            schema,
            key="key",
            window=16 * unit,
            every=2 * unit,
            counts={"w": ("place", 50)},
        )
        rows = {"key": [1], "generated": pa.array([now]).cast(kind), "place": [7]}
        moment = now if kind == INTEGER else datetime(1970, 1, 1, tzinfo=UTC) + now * MICROSECOND
        archive.update(moment, rows, counts={"w": 7})
        assert len(archive.scan("expires")) == 1


# -- timestamps ----------------------------------------------------------------------------------

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TIMED = pa.schema([(n, pa.timestamp("us", "UTC")) for n in ("generated", "expires")]).insert(
    0, pa.field("key", pa.int64())
)


@pytest.fixture
def timed(tmp_path):
    made = Archive.open(
        tmp_path / "t", TIMED, key="key", window=16 * MINUTE, every=2 * MINUTE, layout="Rebuild2x2"
    )
    made.update(NOW, {"key": [1], "generated": [NOW], "expires": [NOW + 16 * MINUTE]})
    return made


def test_naive_timestamps(timed):
    with Unchanged(timed):
        with pytest.raises(ArchiveError, match="a datetime with a zone is needed"):
            timed.update(datetime(2026, 1, 1, 12, 2))
        with pytest.raises(ArchiveError, match="a datetime with a zone is needed"):
            timed.update(18)
        naive = pa.array([datetime(2026, 1, 1, 12, 1)], pa.timestamp("us"))
        late = [NOW + 2 * MINUTE]
        with pytest.raises(ArchiveError, match="column 'generated' is timestamp"):
            timed.update(
                NOW + 2 * MINUTE, {"key": [1], "generated": naive, "expires": pa.array(late)}
            )
        with pytest.raises(ArchiveError, match="a timedelta is needed"):
            timed.window(8)


def test_other_zones_and_units_are_the_same_times(timed):
    zone = pa.timestamp("ms", "Asia/Tokyo")
    at = [NOW + MINUTE, NOW + 2 * MINUTE]
    later = [NOW + 9 * MINUTE] * 2
    timed.update(
        NOW + 2 * MINUTE,
        {"key": [2, 2], "generated": pa.array(at, zone), "expires": pa.array(later, zone)},
    )
    assert timed.probe(2).column("generated").to_pylist() == at


def test_windows_that_cannot_be(archive):
    with Unchanged(archive):
        for size, told in (
            (17, "the archive's is 16"),
            (0, "is not a length"),
            ("8", "an integer"),
        ):
            with pytest.raises(ArchiveError, match=told):
                archive.window(size)
        with pytest.raises(ArchiveError, match=r"keeps no timestamps of a window 'left'.*: none"):
            archive.window({"left": 3})
        with pytest.raises(
            ArchiveError, match="order='when': a scan is in order of key, generated"
        ):
            archive.scan("when")
        with pytest.raises(ArchiveError, match="there is no column 'when'; the archive has key"):
            archive.scan(columns=["when"])
        with pytest.raises(ArchiveError, match="older_than must not be negative"):
            archive.vacuum(timedelta(-1))
        with pytest.raises(ArchiveError, match="older_than=5: a timedelta is needed"):
            archive.vacuum(5)
        with pytest.raises(ArchiveError, match=r"window=\{\}: a size is needed"):
            archive.window({})
        for columns in (5, "key"):
            with pytest.raises(ArchiveError, match="a list of names is needed"):
                archive.scan(columns=columns)
        for between in (5, (1,), (1, 2, 3)):
            with pytest.raises(
                ArchiveError, match="two keys are needed, the least and the greatest"
            ):
                archive.probe(between=between)
        with pytest.raises(ArchiveError, match="the results cannot be read as a table"):
            archive.update(18, {"unknown": [2**63 + 1, -1]})
        with pytest.raises(ArchiveError, match="stream=5: the name of a stream is needed"):
            archive.take_in(5, 0, [])
        with pytest.raises(ArchiveError, match="batch=-1: batches are counted from 0"):
            archive.take_in("s", -1, [])


# -- making and opening --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"key": None}, "a new archive needs key=, window= and every="),
        ({"window": None}, "a new archive needs key=, window= and every="),
        ({"key": "k"}, "there is no column 'k'; the results have key, generated, expires, x"),
        ({"generated": "g"}, "there is no column 'g'"),
        ({"expires": "generated"}, "three columns"),
        ({"generated": "x"}, "'x' is double: times are integers or timestamps with a zone"),
        ({"expires": "x"}, "'x' is double and 'generated' is int64: all times are of one kind"),
        ({"window": 15}, "window=15 is not a whole number of updates every=2"),
        ({"window": 0}, "window=0 is not a length of time"),
        ({"window": -16}, "window=-16 is not a length of time"),
        ({"window": 16.0}, "window=16.0: an integer is needed"),
        ({"window": timedelta(16)}, "an integer is needed"),
        (
            {"window": 10**6 + 1, "every": 1},
            "window=1000001 has 1,000,001 updates every=1, and may have 1,000,000: update less often",
        ),
        ({"window": 2**40, "every": 1}, "has 1,099,511,627,776 updates every=1"),
        ({"every": 0}, "every=0 is not a length of time"),
        ({"every": 2**62}, "every=4611686018427387904 is not a length of time"),
        ({"layout": "B-tree"}, "there is no layout 'B-tree'"),
        ({"layout": "Rebuild9x1"}, "a window has 8 updates"),
        ({"layout": "LazyRebuild1x2"}, "at least two rows"),
        ({"grace": timedelta(-1)}, "grace must not be negative"),
        ({"stamps": {"a": ("t", 16)}}, "there is no column 't'"),
        ({"stamps": {"a": ("x", 16)}}, "'x' is double .* all times are of one kind"),
        ({"stamps": {"a": ("generated", 15)}}, "longer than the window 'a'"),
        ({"counts": {"a": ("key", 9)}}, "'expires' is estimated by the archive"),
        ({"key": ["key"]}, r"key=\['key'\]: the name of a column is needed"),
        ({"grace": 10}, "grace=10: a timedelta is needed"),
        ({"stamps": ["a"]}, "stamps are given as a dict of windows"),
        ({"stamps": {"a": 5}}, "stamps are given as a dict of windows"),
        ({"stamps": {"a": ("generated",)}}, "stamps are given as a dict of windows"),
        ({"window_bytes": "x", "layout": "auto"}, "window_bytes='x': a number is needed"),
        ({"queries": None, "layout": "auto"}, "queries=None: a number is needed"),
        ({"queries": float("nan"), "layout": "auto"}, "queries=nan: a number is needed"),
    ],
)
def test_an_archive_that_cannot_be_made(tmp_path, said, told):
    with pytest.raises(ArchiveError, match=told):
        Archive.open(tmp_path / "new", SCHEMA, **{**SAID, **said})
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (SCHEMA.append(pa.field("x", pa.int8())), "a column occurs twice"),
        (SCHEMA.append(pa.field("generation_partition", pa.int8())), "the archive's own column"),
        (SCHEMA.set(0, pa.field("key", pa.bool_())), "the key 'key' is bool: keys are integers"),
        (SCHEMA.set(0, pa.field("key", pa.timestamp("us"))), "keys are integers, floats, text"),
        (SCHEMA.set(0, pa.field("key", pa.float16())), "a type that a Delta table does not have"),
        (SCHEMA.set(1, pa.field("generated", pa.timestamp("us"))), "timestamps with a zone"),
        (
            SCHEMA.set(2, pa.field("expires", pa.timestamp("us", "UTC"))),
            "all times are of one kind",
        ),
        (SCHEMA.append(pa.field("Key", pa.int8())), "does not tell capitals from small letters"),
        *(
            (
                SCHEMA.append(pa.field("y", kind)),
                "column 'y': .* a type that a Delta table does not",
            )
            for kind in (
                pa.time64("us"),
                pa.duration("s"),
                pa.float16(),
                pa.decimal256(50, 2),
                pa.month_day_nano_interval(),
                pa.struct([]),
                pa.list_(pa.time32("s")),
            )
        ),
        (pa.table(GOOD), "a schema is needed, not a Table"),
        ({"key": "int64"}, "a schema is needed, not a dict"),
    ],
)
def test_columns_that_cannot_be(tmp_path, schema, told):
    with pytest.raises(ArchiveError, match=told):
        Archive.open(tmp_path / "new", schema, **SAID)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.int64()), [1, None]),
        (pa.list_(pa.string()), ["a"]),
        (pa.list_(pa.uint8()), [1, 255]),
        (pa.large_list(pa.large_string()), ["a", None]),
        (pa.list_(pa.int32(), 2), [1, 2]),
        (pa.struct([("A", pa.uint32()), ("b", pa.timestamp("ms"))]), {"A": 2**32 - 1, "b": None}),
        (pa.struct([pa.field("a", pa.int8(), nullable=False)]), {"a": 1}),
        (pa.date64(), date(2026, 1, 1)),
        (pa.map_(pa.string(), pa.list_(pa.int64())), [("a", [1, 2])]),
        (pa.dictionary(pa.int8(), pa.string()), "a"),
        (pa.decimal128(5, 2), None),
    ],
    ids=str,
)
def test_columns_of_any_type_that_a_delta_table_has(tmp_path, kind, value):
    schema = SCHEMA.append(pa.field("y", kind))
    archive = Archive.open(tmp_path / "new", schema, **SAID)
    table = pa.table({**GOOD, "y": pa.array([value] * len(GOOD["key"]), kind)}, schema=schema)
    archive.update(18, table)
    archive.update(20)
    found = Archive.open(tmp_path / "new").probe(GOOD["key"][1]).column("y").to_pylist()
    assert found == [value]


@pytest.mark.parametrize("name", ["date", "timestamp"])
def test_nothing_is_no_key(keyed, name):
    archive, keys = keyed(name)
    for call in (
        lambda: archive.probe([None]),
        lambda: archive.probe(between=(None, keys[0])),
        lambda: archive.invalidate([None]),
    ):
        with pytest.raises(ArchiveError, match="None is not a key"):
            call()
    with pytest.raises(ArchiveError, match="is not a key"):
        archive.probe(datetime(2026, 1, 1, 15) if name == "date" else datetime(2026, 1, 1))


def test_migrating_to_what_fits(archive):
    assert str(archive.fitting().layout) == "NoRebuild4x4"
    assert archive.migrate("auto", queries=1000).touched and str(archive.layout) == "Rebuild2x2"
    version = archive.version
    assert archive.migrate("auto", queries=1000).version == version == archive.version
    assert "many queries between updates" in archive.why
    with pytest.raises(ArchiveError, match="are for auto, not for 'Rebuild4x4'"):
        archive.migrate("Rebuild4x4", queries=5)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"key": "generated"}, "key"),
        ({"window": 18}, "window is 16 here, not 18"),
        ({"every": 4}, "every is 2 here, not 4"),
        (
            {"layout": "Rebuild2x2"},
            r"the layout NoRebuild2x2, not Rebuild2x2; migrate\(\) changes it",
        ),
        ({"stamps": {"a": ("generated", 16)}}, r"stamps is \{\} here"),
    ],
)
def test_opened_with_other_parameters(archive, said, told):
    with Unchanged(archive):
        with pytest.raises(ArchiveError, match=told):
            Archive.open(archive.path, **said)
        with pytest.raises(ArchiveError, match=told if "key" not in said else "three columns"):
            Archive.open(archive.path, SCHEMA, **{**SAID, **said})
        other = SCHEMA.append(pa.field("y", pa.int8()))
        with pytest.raises(
            ArchiveError, match=r"has the columns key: int64, .* not key: int64, .* y"
        ):
            Archive.open(archive.path, other, **SAID)
    assert Archive.open(archive.path, SCHEMA, **SAID).version == 1


def test_a_list_is_as_good_as_a_tuple(tmp_path):
    said = {**SAID, "stamps": {"a": ["generated", 16]}}
    Archive.open(tmp_path / "new", SCHEMA, **said)
    assert Archive.open(tmp_path / "new", **said).version == 0
    assert Archive.open(tmp_path / "new", SCHEMA, **said).version == 0


def test_what_is_not_an_archive(tmp_path):
    with pytest.raises(ArchiveError, match=r"there is no archive at .*/gone; give a schema"):
        Archive.open(tmp_path / "gone")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(ArchiveError, match="notes is there and is not an archive; choose another"):
        Archive.open(tmp_path / "notes", SCHEMA, **SAID)
    assert os.listdir(tmp_path / "notes") == ["mine.txt"]
    with pytest.raises(ArchiveError, match=r"mine\.txt"):
        Archive.open(tmp_path / "notes" / "mine.txt", SCHEMA, **SAID)
    write_deltalake(tmp_path / "sales", pa.table({"n": [1]}))
    for schema in (None, SCHEMA):
        with pytest.raises(ArchiveError, match="/sales is a Delta table, but not an archive"):
            Archive.open(tmp_path / "sales", schema, **(SAID if schema else {}))
    assert DeltaTable(tmp_path / "sales").version() == 0
    with pytest.raises(ArchiveError, match="an archive is a folder"):
        Archive.open("s3://bucket/archive", SCHEMA, **SAID)


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        (
            {"limen.archive.format": "2"},
            "has format 2, this program knows 1: install a newer limen",
        ),
        ({"limen.archive": "{"}, "damaged: its properties cannot be read"),
        ({"limen.archive": "{}"}, "damaged: its properties cannot be read"),
        ({"limen.archive.grace": "x"}, "damaged: its properties cannot be read"),
    ],
)
def test_other_properties(archive, properties, told):
    DeltaTable(str(archive.path)).alter.set_table_properties(properties, False)
    with pytest.raises(ArchiveError, match=told):
        Archive.open(archive.path)


def test_rows_of_another_program_are_not_taken_for_results(archive):
    rows = archive.scan().to_pydict()
    more = {"generation_partition": [0, 0], "expiration_partition": [0, 0], **rows}
    schema = pa.schema([(n, pa.int32()) for n in list(more)[:2]])
    table = pa.table(more, pa.schema([*schema, *SCHEMA]))
    write_deltalake(str(archive.path), table, mode="append")
    for read in (lambda: Archive.open(archive.path), archive.scan):
        with pytest.raises(ArchiveError):
            read()
