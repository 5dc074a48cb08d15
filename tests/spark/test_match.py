"""`limen.spark.match` on static and streaming frames: its answers, its errors, its versions."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

import limen
from limen.catalog import Catalog
from limen.spark.worker import MatchTask, Queries
from limen.testing import oracle
from limen.testing.strategies import DOMAINS, bodies, events, schema

TYPES = {"symbol": "string", "price": "float64"}
TRADES = [("IBM", 45.0), ("KO", 9.5), ("IBM", None), ("KO", float("nan")), ("AA", 0.5)]
QUERIES = {"ibm": "symbol = 'IBM' AND price < 50", "any": "price > 0", "penny": "price < 1"}
SAYS_NOTHING = [("int64", ">=", -(2**63)), ("int64", "<=", 2**63 - 1)]
NAMES = [name for name in DOMAINS if name != "uint64"]  # Spark has no unsigned integers


@pytest.fixture
def trades(spark):
    return spark.createDataFrame(TRADES, "symbol string, price double")


def pairs(frame: Any) -> list[tuple[str, str]]:
    return sorted((row["symbol"], row["query_id"]) for row in frame.collect())


# -- static frames -----------------------------------------------------------------------------------

EXPECTED = [("AA", "any"), ("AA", "penny"), ("IBM", "any"), ("IBM", "ibm"), ("KO", "any")]


def test_rows_ids_and_counts(trades):
    assert pairs(limen.spark.match(trades, QUERIES)) == EXPECTED
    lists = limen.spark.match(trades, QUERIES, "ids", columns=["symbol"])
    assert lists.columns == ["symbol", "query_ids"]
    assert {row.symbol: sorted(row.query_ids) for row in lists.collect()} == {
        "IBM": ["any", "ibm"],
        "KO": ["any"],
        "AA": ["any", "penny"],
    }
    counts = limen.spark.match(trades, QUERIES, "count").collect()
    assert {row.symbol: row.matches for row in counts} == {"IBM": 2, "KO": 1, "AA": 2}


def test_columns_of_odd_names(spark):
    names = ["the `symbol`", "last.price", "sold at"]
    frame = spark.createDataFrame([("IBM", 45.0, 1), ("KO", None, 2)], "a string, b double, c int")
    frame = frame.toDF(*names)
    queries = [limen.Query("q", {"last.price": limen.Range(40, 50), "the `symbol`": "IBM"})]
    (found,) = limen.spark.match(frame, queries).collect()
    assert tuple(found) == ("IBM", 45.0, 1, "q")
    (bad,) = limen.spark.quarantine(frame, queries).collect()
    assert tuple(bad) == ("KO", None, 2, "last.price: null")


def test_bad_events_are_in_the_quarantine_and_counted(trades):
    found = limen.spark.quarantine(trades, QUERIES)
    assert found.columns == ["symbol", "price", "reason"]
    assert sorted((row.symbol, row.reason) for row in found.collect()) == [
        ("IBM", "price: null"),
        ("KO", "price: NaN"),
    ]
    both = limen.spark.match(trades, QUERIES, "count", keep_bad=True).collect()
    assert {(row.matches, row.reason) for row in both} == {
        (None, "price: NaN"),
        (None, "price: null"),
        (2, None),
        (1, None),
    }
    assert len(both) == len(TRADES)


def test_the_results_columns_may_be_those_of_bad_events(spark):
    names = "price double, matches long, query_id long, query_ids long, reason string"
    frame = spark.createDataFrame([(1.0, 1, 2, 3, "x"), (None, 4, 5, 6, "y")], names)
    (row,) = limen.spark.quarantine(frame, {"any": "price > 0"}).collect()
    assert (row.matches, row.reason, row.limen_reason) == (4, "y", "price: null")
    with pytest.raises(limen.LimenError, match="'matches', the name of the result's"):
        limen.spark.match(frame, {"any": "price > 0"}, "count")


def test_no_queries_and_no_columns(spark):
    frame = spark.createDataFrame([(1.0,), (None,)], "price double")
    assert limen.spark.match(frame, limen.QuerySet.empty()).collect() == []
    counts = limen.spark.match(frame, limen.QuerySet.empty(), "count", columns=[]).collect()
    assert [row.matches for row in counts] == [0, 0]


def test_a_static_job_says_how_many_it_left_out(tmp_path, capsys):
    catalog = Catalog.open(tmp_path / "c", {"price": "float64"})
    catalog.add({"any": "price > 0"})
    result = pa.schema([("price", pa.float64()), ("matches", pa.int64())])
    queries = Queries(str(catalog.path), catalog.id, 1, False)
    task = MatchTask(queries, "count", ("price",), "", False, result)
    batch = pa.record_batch([pa.array([1.0, None, float("nan")])], names=["price"])
    assert sum(map(len, task(iter([batch, batch.slice(0, 1)])))) == 2
    assert "limen: 2 of 4 events were not taken" in capsys.readouterr().err


def test_queries_of_every_form(spark, trades, tmp_path):
    frame = pa.table({"id": [1, 2], "symbol": ["IBM", None], "price_hi": [50.0, 1.0]})
    as_spark = spark.createDataFrame(
        [(1, "IBM", 50.0), (2, None, 1.0)], "id long, symbol string, price_hi double"
    )
    catalog = Catalog.open(tmp_path / "c", TYPES, ids="int64")
    catalog.add(frame)
    expected = [("AA", 2), ("IBM", 1)]
    for queries in (frame, as_spark, catalog, str(catalog.path), catalog.snapshot()):
        assert pairs(limen.spark.match(trades, queries)) == expected


@settings(max_examples=12)
@given(st.data())
def test_equals_the_oracle(spark, data):
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    queries, kept = {}, {}
    for who in range(data.draw(st.integers(0, 12))):
        body = [c for c in data.draw(bodies(names)) if c not in SAYS_NOTHING]
        where: dict[str, dict[str, object]] = {}
        for name, symbol, bound in body:
            where.setdefault(name, {})[symbol] = bound
        try:
            limen.QuerySet.of({who: where}, schema(names))
        except limen.QueryError:
            continue
        queries[who], kept[who] = where, body
    rows = data.draw(events(names))
    table = pa.Table.from_pylist(rows, schema(names)).append_column(
        "row", pa.array(range(len(rows)), pa.int64())
    )
    frame = spark.createDataFrame(table)
    used = {name for body in kept.values() for name, _, _ in body}
    good = [r for r in rows if all(oracle.exact(r[name]) is not None for name in used)]
    found = Counter((r["row"], r["query_id"]) for r in limen.spark.match(frame, queries).collect())
    expected = Counter(
        (i, who) for i, row in enumerate(rows) if row in good for who in oracle.matching(row, kept)
    )
    assert found == expected
    bad = limen.spark.quarantine(frame, queries).count()
    assert bad == sum(1 for r in rows if any(oracle.exact(r[name]) is None for name in used))


def test_a_missing_column_stops_at_the_start(trades, tmp_path):
    catalog = Catalog.open(tmp_path / "c", {**TYPES, "volume": "int64"})
    with pytest.raises(limen.EventError, match="'volume': is missing; the queries need it"):
        limen.spark.match(trades, catalog)


def test_a_column_that_could_lose_values_stops_at_the_start(spark, tmp_path):
    catalog = Catalog.open(tmp_path / "c", {"price": "float64"})
    whole = spark.createDataFrame([(2**53 + 1,)], "price long")
    with pytest.raises(limen.EventError, match="'price': has type int64, which cannot be read"):
        limen.spark.match(whole, catalog)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"emit": "all"}, "emit='all' is not one of rows, ids, count"),
        ({"columns": ["size"]}, "the events have no column 'size'"),
        ({"version_column": "price"}, "the result has a column 'price' already"),
    ],
)
def test_wrong_arguments(trades, arguments, message):
    with pytest.raises(limen.LimenError, match=message):
        limen.spark.match(trades, QUERIES, **arguments)


def test_a_bad_query_is_refused_on_the_driver(trades):
    with pytest.raises(limen.QueryError, match="unknown attribute 'pris'"):
        limen.spark.match(trades, {"a": "pris > 4"})


def test_the_version_is_settled_when_the_frame_is_made(trades, tmp_path):
    catalog = Catalog.open(tmp_path / "c", TYPES)
    catalog.add(QUERIES)
    frame = limen.spark.match(trades, catalog, version_column="v")
    catalog.remove(["any"])
    assert Counter(row.query_id for row in frame.collect())["any"] == 3
    assert {row.v for row in frame.collect()} == {1}


def test_many_matches_of_one_event(spark):
    n = 30_000
    queries = pa.table({"id": [f"q{i}" for i in range(n)], "price_lo": [0.0] * n})
    frame = spark.createDataFrame([(1.0,), (2.0,)], "price double")
    lists = limen.spark.match(frame, queries, "ids").collect()
    assert [len(set(row.query_ids)) for row in lists] == [n, n]


# -- streams -----------------------------------------------------------------------------------------


class Feed:
    """A folder of event files, matched as a stream."""

    def __init__(self, spark: Any, folder: Path, catalog: Catalog, **options: Any) -> None:
        self.spark, self.folder, self.catalog = spark, folder, catalog
        (folder / "events").mkdir()
        self._files = 0
        source = (
            spark.readStream.schema("symbol string, price double")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder / "events"))
        )
        self.frame = limen.spark.match(source, catalog, version_column="v", **options)

    def put(self, *trades: tuple[str, float | None]) -> None:
        self._files += 1
        table = pa.table(
            {
                "symbol": pa.array([t[0] for t in trades], pa.string()),
                "price": pa.array([t[1] for t in trades], pa.float64()),
            }
        )
        beside = self.folder / f"{self._files}.parquet"
        pq.write_table(table, beside)
        beside.rename(self.folder / "events" / beside.name)

    def start(self, **trigger: Any) -> Any:
        folder = self.folder
        return limen.spark.write_delta(self.frame, folder / "out", folder / "checkpoint", **trigger)

    def drain(self) -> Any:
        stream = self.start(availableNow=True)
        stream.awaitTermination()
        return stream

    def found(self) -> list[dict[str, Any]]:
        """All rows so far, in the order of price, query and version."""
        rows = DeltaTable(str(self.folder / "out")).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: (row["v"], row["symbol"], row["query_id"]))


@pytest.fixture
def feed(spark, tmp_path):
    return Feed(spark, tmp_path, Catalog.open(tmp_path / "c", TYPES))


def test_a_query_is_in_force_from_the_next_batch_on(feed):
    feed.catalog.add({"a": "price > 0"})
    stream = feed.start(processingTime="0 seconds")
    try:
        feed.put(("IBM", 1.0))
        stream.processAllAvailable()
        receipt = feed.catalog.add({"b": "price > 0"})
        feed.put(("IBM", 2.0))
        assert receipt.wait(stream) == 1
        stream.processAllAvailable()
        removed = feed.catalog.remove(["a"])
        feed.put(("IBM", 3.0))
        assert removed.wait(stream) == 2
        stream.processAllAvailable()
    finally:
        stream.stop()
    found = [(row["price"], row["query_id"], row["v"]) for row in feed.found()]
    assert found == [(1.0, "a", 1), (2.0, "a", 2), (2.0, "b", 2), (3.0, "b", 3)]
    assert feed.catalog.bindings(stream) == {0: 1, 1: 2, 2: 3}


def test_an_empty_catalog_one_emptied_and_an_empty_batch(feed):
    for step in (lambda: None, lambda: feed.catalog.add(QUERIES)):
        step()
        feed.put(*TRADES)
        feed.put()
        feed.drain()
    feed.catalog.remove(list(QUERIES))
    feed.put(*TRADES)
    stream = feed.drain()
    assert [(row["symbol"], row["query_id"], row["v"]) for row in feed.found()] == [
        (*pair, 1) for pair in EXPECTED
    ]
    assert feed.catalog.bindings(stream) == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}


def test_bad_events_are_counted_beside_the_catalog(feed):
    feed.catalog.add(QUERIES)
    feed.put(*TRADES)
    feed.put(("IBM", 1.0))
    feed.put(("IBM", None))
    stream = feed.drain()
    assert sorted(feed.catalog.quarantined(stream).values()) == [1, 2]


@pytest.mark.parametrize("emit", ["rows", "ids", "count"])
def test_both_are_counted_in_the_progress_where_asked(spark, tmp_path, emit):
    feed = Feed(spark, tmp_path, Catalog.open(tmp_path / "c", TYPES), emit=emit, metrics="limen")
    feed.catalog.add(QUERIES)
    feed.put(*TRADES)
    (observed,) = [
        p.observedMetrics["limen"] for p in feed.drain().recentProgress if p.numInputRows
    ]
    assert (observed.matches, observed.quarantined) == (5, 2)


def test_a_null_matters_only_while_a_query_needs_the_field(feed):
    feed.catalog.add({"a": "price > 0"})
    feed.catalog.add({"s": "symbol = 'IBM'"})
    feed.put(("IBM", None), ("IBM", 1.0))
    feed.drain()
    assert [row["query_id"] for row in feed.found()] == ["a", "s"]
    feed.catalog.remove(["a"])
    feed.put(("IBM", None), ("IBM", 1.0))
    feed.drain()
    assert [row["query_id"] for row in feed.found() if row["v"] == 3] == ["s", "s"]


def test_expired_queries_are_not_seen_by_the_next_batch(feed):
    feed.catalog.add({"short": "price > 0"}, ttl=dt.timedelta(seconds=2))
    feed.catalog.add({"long": "price > 0"})
    feed.put(("IBM", 1.0))
    feed.drain()
    assert [row["query_id"] for row in feed.found()] == ["long", "short"]
    time.sleep(2.1)
    feed.put(("IBM", 1.0))
    feed.drain()
    assert [row["query_id"] for row in feed.found() if row["v"] == 3] == ["long"]
    assert feed.catalog.history(1)[0].kind == "expiry"


def test_an_attribute_declared_later_is_asked_for_by_name(feed):
    feed.catalog.add({"a": "price > 0"})
    feed.put(("IBM", 1.0))
    feed.drain()
    feed.catalog.declare({"volume": "int64"})
    feed.put(("IBM", 1.0))
    feed.drain()  # no query names it yet
    feed.catalog.add({"v": "volume > 4"})
    feed.put(("IBM", 1.0))
    with pytest.raises(Exception, match="event column 'volume': is missing"):
        feed.drain()


def test_inside_foreach_batch_the_version_is_bound_too(spark, tmp_path):
    catalog = Catalog.open(tmp_path / "c", TYPES)
    catalog.add(QUERIES)
    (tmp_path / "events").mkdir()
    pq.write_table(
        pa.table({"symbol": ["IBM"], "price": [45.0]}), tmp_path / "events" / "1.parquet"
    )
    source = spark.readStream.schema("symbol string, price double").parquet(
        str(tmp_path / "events")
    )
    seen = []

    def handle(batch, number):
        frame = limen.spark.match(batch, catalog, version_column="v")
        catalog.add({"later": "price > 0"})
        seen.extend((number, row.query_id, row.v) for row in frame.collect())

    stream = (
        source.writeStream.foreachBatch(handle)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    stream.awaitTermination()
    assert catalog.bindings(stream) == {0: 2}
    assert sorted(seen) == [(0, "any", 2), (0, "ibm", 2), (0, "later", 2)]


def test_another_catalog_in_its_place_is_noticed(spark, tmp_path):
    import shutil

    feed = Feed(spark, tmp_path, Catalog.open(tmp_path / "c", TYPES))
    feed.catalog.add(QUERIES)
    shutil.rmtree(tmp_path / "c")
    Catalog.open(tmp_path / "c", TYPES).add(QUERIES)
    feed.put(("IBM", 1.0))
    with pytest.raises(Exception, match="another catalog has taken the place"):
        feed.drain()
