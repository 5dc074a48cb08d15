"""The archive is a Delta table to everybody else: with `where()`, all read the rows that a scan gives."""

from __future__ import annotations

from itertools import cycle

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from limen.archive import Archive

from .by_hand import EVERY, KINDS, Kind, bag
from .test_archive import START, open_one, some_rows

LAID = ["Rebuild2x2", "LazyNoRebuild3x2"]  # in turn


@pytest.fixture(params=zip(KINDS, cycle(LAID), strict=False), ids=str)
def served(request, tmp_path) -> tuple[Archive, Kind]:
    """With results that lie there but count no more."""
    kind, layout = request.param
    archive = open_one(tmp_path, layout, kind)
    for step in range(4):
        archive.update(kind.time(START + step * EVERY), kind.table(some_rows(step)))
        if step == 2:
            archive.invalidate([kind.keys[3], kind.keys[1]], kind.time(START + 2))
    archive.invalidate([kind.keys[4]])
    return archive, kind


def _windows(archive: Archive, kind: Kind):
    yield archive.snapshot()
    yield archive.window(kind.length(9))
    yield archive.window({"left": kind.length(12), "right": kind.length(5)})


def _filtered(table: pa.Table, where: str, zone: str = "UTC") -> pa.Table:
    with duckdb.connect() as connection:
        connection.sql(f"SET TimeZone = '{zone}'")
        connection.register("results", table)
        return connection.sql(f"SELECT * FROM results WHERE {where}").to_arrow_table()


def _as_scanned(table: pa.Table, kind: Kind):
    return bag(table.select(kind.schema.names).cast(kind.schema))


def test_duckdb(served):
    archive, kind = served
    paths = DeltaTable(str(archive.path)).file_uris()
    lie = sum(file.rows for file in archive.snapshot().files)
    for snapshot in _windows(archive, kind):
        with duckdb.connect() as connection:
            connection.sql("SET TimeZone = 'UTC'")
            found = connection.sql(
                f"SELECT * FROM read_parquet({paths!r}) WHERE {snapshot.where()}"
            ).to_arrow_table()
        assert _as_scanned(found, kind) == bag(snapshot.scan())
        assert len(found) < lie


def test_the_zone_of_a_session_does_not_matter(served):
    archive, kind = served
    table = DeltaTable(str(archive.path)).to_pyarrow_table()
    for zone in ("America/New_York", "Asia/Tokyo") if kind.timed else ():
        for snapshot in _windows(archive, kind):
            found = _filtered(table, snapshot.where(), zone)
            assert _as_scanned(found, kind) == bag(snapshot.scan())


def test_deltalake(served):
    archive, kind = served
    table = DeltaTable(str(archive.path)).to_pyarrow_table()
    for snapshot in _windows(archive, kind):
        assert _as_scanned(_filtered(table, snapshot.where()), kind) == bag(snapshot.scan())


def test_polars(served):
    """Its own reader; what is alive by its own SQL, and by its own comparisons."""
    archive, kind = served
    frame = pl.scan_delta(str(archive.path))
    assert len(frame.collect()) == sum(file.rows for file in archive.snapshot().files)
    for snapshot in _windows(archive, kind):
        sql = pl.SQLContext(results=frame)
        found = sql.execute(f"SELECT * FROM results WHERE {snapshot.where()}").collect()
        assert _as_scanned(found.to_arrow(), kind) == bag(snapshot.scan())
    alive = pl.col("expires") > archive.time
    for numbers, until in (([3, 1], kind.time(START + 2)), ([4], archive.time)):
        listed = pl.Series([kind.keys[n] for n in numbers], dtype=frame.collect_schema()["key"])
        alive &= ~(pl.col("key").is_in(listed.implode()) & (pl.col("generated") <= until))
    assert _as_scanned(frame.filter(alive).collect().to_arrow(), kind) == bag(archive.scan())


def test_counted_windows(tmp_path):
    """A result counts until one of its parents has left. Windows move so quickly that it lies there."""
    schema = pa.schema([(n, pa.int64()) for n in ("key", "generated", "place_a", "place_b")])
    counts = {"a": ("place_a", 30), "b": ("place_b", 50)}
    said = {"key": "key", "window": 16, "every": 2, "layout": "CountNoRebuild1x8"}
    archive = Archive.open(tmp_path / "counted", schema, **said, counts=counts)
    rows = [
        dict(zip(schema.names, (i, 0, 1 + i % 40, 60 - i % 50), strict=True)) for i in range(90)
    ]
    archive.update(0, rows, counts={"a": 40, "b": 60})
    just_gone = 0
    for step, (a, b) in enumerate([(60, 60), (61, 60), (61, 85), (62, 86)], 1):
        archive.update(step * 2, counts={"a": a, "b": b})
        alive = [r["key"] for r in rows if r["place_a"] > a - 30 and r["place_b"] > b - 50]
        table = DeltaTable(str(archive.path)).to_pyarrow_table()
        just_gone += table["place_a"].to_pylist().count(a - 30)
        just_gone += table["place_b"].to_pylist().count(b - 50)
        found = _filtered(table, archive.where()).column("key").to_pylist()
        assert sorted(found) == archive.scan("key").column("key").to_pylist() == alive
    assert just_gone


def test_an_older_version(served):
    archive, kind = served
    for version in (1, 2, 3):
        snapshot = archive.snapshot(version)
        table = DeltaTable(str(archive.path), version=version).to_pyarrow_table()
        assert _as_scanned(_filtered(table, snapshot.where()), kind) == bag(snapshot.scan())


def test_statistics_skip_no_file_that_counts(served):
    """Filters that are compared with the log's statistics, of columns with and without any."""
    archive, kind = served
    delta = DeltaTable(str(archive.path))
    whole, frame = delta.to_pyarrow_table(), pl.scan_delta(str(archive.path))
    compare = {"==": pc.equal, ">": pc.greater, "<=": pc.less_equal}
    for column in ("generated", "expires", "key", "serial"):
        at = sorted(whole.column(column).to_pylist())[len(whole) // 2]
        value = pa.scalar(at, kind.schema.field(column).type)
        for sign, holds in compare.items():
            expected = _as_scanned(whole.filter(holds(whole.column(column), value)), kind)
            assert expected
            pushed = delta.to_pyarrow_table(filters=[(column, sign, value)])
            assert _as_scanned(pushed, kind) == expected, f"deltalake: {column} {sign} {at}"
            if sign == "==":
                found = frame.filter(pl.col(column) == at).collect().to_arrow()
                assert _as_scanned(found, kind) == expected, f"Polars: {column} = {at}"


@pytest.mark.parametrize("name", ["order", "group", "a b", 'q"q', "Größe", "select"])
def test_columns_with_any_name(tmp_path, name):
    schema = pa.schema([(n, pa.int64()) for n in (name, "from", "to")])
    archive = Archive.open(
        tmp_path / "named",
        schema,
        key=name,
        generated="from",
        expires="to",
        window=16,
        every=2,
        layout="R-ins1",
    )
    archive.update(16, {name: [1, 2, 2], "from": [16] * 3, "to": [20, 20, 30]})
    archive.invalidate([1])
    table = DeltaTable(str(archive.path)).to_pyarrow_table()
    assert len(table) == 3 and len(archive.scan()) == 2
    assert len(_filtered(table, archive.window(8).where())) == 1
    assert bag(_filtered(table, archive.where()).select([name])) == bag(
        archive.scan(columns=[name])
    )


def test_infinite_keys(tmp_path):
    keys = [float("inf"), float("-inf"), 1e300, 0.0]
    schema = pa.schema([("key", pa.float64()), ("generated", pa.int64()), ("expires", pa.int64())])
    said = {"key": "key", "window": 16, "every": 2, "layout": "R-ins1"}
    archive = Archive.open(tmp_path / "inf", schema, **said)
    archive.update(16, {"key": keys, "generated": [16] * 4, "expires": [30] * 4})
    table = DeltaTable(str(archive.path)).to_pyarrow_table()
    for key in keys:
        archive.invalidate([key])
        found = _filtered(table, archive.where()).select(schema.names)
        assert bag(found) == bag(archive.scan())
