"""The demos on small numbers: they pass their own checks, and the checks can fail."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from deltalake import DeltaTable

from limen.catalog import Catalog
from limen.cli import demo, demo_check, demo_geofence
from limen.engine.versions import INDEXES, default_cache
from limen.testing import city, market
from limen.testing.market import BruteForce

TOY = ("--vehicles", 200, "--fences", 5000, "--batches", 6)
SMALL = ("--queries", 2000, "--batches", 6, "--events", 5000)


def test_checks_itself(run, spark, tmp_path):
    result = run("demo", *SMALL)
    assert result.exit_code == 0, result.stderr
    assert "2,000 standing queries in the catalog" in result.stdout
    assert "added 200 queries" in result.stdout and "version 2, in force from" in result.stdout
    assert "removed 200 queries" in result.stdout and "version 3, in force from" in result.stdout
    assert "30,000 events, 2 quarantined" in result.stdout
    assert "each is in the table once or was quarantined as bad" in result.stdout
    assert "checked 150 events of 6 batches against brute force" in result.stdout
    assert "\x1b" not in result.stdout and result.stderr == ""
    assert spark.streams.active == []
    folder = tmp_path / "out" / "demo"
    assert (folder / "demo.png").stat().st_size > 20_000
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"catalog", "demo.png", "matches", "matches.ckpt", "spark.log"}
    table = DeltaTable(folder / "matches").to_pyarrow_dataset().to_table()
    assert table.column_names[-2:] == ["query_ids", "version"] and len(table) == 29_998
    catalog = Catalog.open(folder / "catalog")
    assert len(catalog) == 2000
    assert not (default_cache() / INDEXES / catalog.id).exists()


def test_a_wrong_answer_is_found(run, spark, monkeypatch):
    right = BruteForce.matching
    monkeypatch.setattr(BruteForce, "matching", lambda self, *a, **k: right(self, *a, **k) | {-7})
    result = run("demo", *SMALL)
    assert result.exit_code == 1
    assert "missed: [-7], in excess: []" in result.stderr


def test_a_lost_event_is_found(run, spark, monkeypatch):
    right = market.bad_trades
    monkeypatch.setattr(market, "bad_trades", lambda part: right(part) | True)
    result = run("demo", *SMALL)
    assert result.exit_code == 1
    assert "of 5,000 events 5,000 are bad, but" in result.stderr
    assert "were quarantined and" in result.stderr


def test_ctrl_c(run, spark, monkeypatch):
    def interrupted(self, batch):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo.Run, "_take", interrupted)
    result = run("demo", *SMALL)
    assert result.exit_code == 130
    assert "stopped; 0 batches are in out/demo/matches" in result.stdout
    assert spark.streams.active == []


def test_without_pyspark(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    result = run("demo", *SMALL)
    assert result.exit_code == 1
    assert "pip install 'limen[spark]'" in result.stderr


def a_run(**of_query):
    query = SimpleNamespace(id="s", lastProgress=None, recentProgress=[], **of_query)
    done = {n: demo.Batch(n, 10 * n, 10 * n + 10, 0.0, 1.0, 20, 0) for n in range(2)}
    change = demo.Change(SimpleNamespace(version=2), 1, np.arange(3))
    made = SimpleNamespace(query=query, done=done, batches=3, added=change, removed=change)
    return made


def test_a_stream_that_fails_says_why():
    with pytest.raises(ValueError, match="ended after 2 batches: out of luck"):
        demo.Run._look(a_run(isActive=False, exception=lambda: Exception("out of luck\n\nJVM")))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, None),
        ({"rows": [10, 9]}, "batch 1: of 10 events 0 are bad, but 0 were quarantined and 9 are in"),
        ({"matches": [20, 19]}, "Spark counted 20 matches, but 19 are in the table"),
        ({"trades": [0, 0, *range(2, 20)]}, "some trade twice"),
        ({"of_added": [1, 0]}, "before the version in which it was added"),
        ({"of_removed": [1, 1]}, "after the version in which it was removed"),
    ],
)
def test_what_is_judged(changed, told):
    right = {
        "trades": range(20),
        "rows": [10, 10],
        "matches": [20, 20],
        "of_added": [0, 5],
        "of_removed": [5, 0],
    }
    found = {name: np.array(values) for name, values in (right | changed).items()}
    judged = demo_check.Found(**found, first_of_added=None, sample={})
    if told is None:
        return demo_check._judge(a_run(), np.zeros(20, np.bool_), judged)
    with pytest.raises(ValueError, match=told):
        demo_check._judge(a_run(), np.zeros(20, np.bool_), judged)


@pytest.mark.parametrize("values", [[], [0.0], [1.0, 2.0, 4.0]])
def test_sparkline(values):
    assert len(demo.sparkline(values)) == len(values)
    assert demo.sparkline([1.0, 4.0]) == "▃█"


def test_options_before_a_name_are_refused(run):
    result = run("demo", "--batches", 9, "geofence")
    assert result.exit_code == 2
    assert "options of geofence come after it" in " ".join(result.stderr.split())


# -- limen demo geofence -------------------------------------------------------------------------


def test_geofence_checks_itself(run, spark, tmp_path):
    result = run("demo", "geofence", *TOY)
    assert result.exit_code == 0, result.stderr
    assert "5,000 fences in the catalog" in result.stdout
    assert "added 250 fences" in result.stdout and "version 2, in force from" in result.stdout
    assert "removed 250 fences" in result.stdout and "version 3, in force from" in result.stdout
    assert "24,000 readings of 200 vehicles" in result.stdout
    assert "crossings, each of them once, right by the bounds of its fence" in result.stdout
    assert "checked all readings of 12 vehicles against all 5,250 fences" in result.stdout
    assert "\x1b" not in result.stdout and result.stderr == ""
    assert spark.streams.active == []
    folder = tmp_path / "out" / "geofence"
    assert (folder / "geofence.png").stat().st_size > 20_000
    kept = {path.name for path in folder.iterdir()}
    assert kept == {"catalog", "crossings", "crossings.ckpt", "geofence.png", "spark.log"}
    table = DeltaTable(folder / "crossings").to_pyarrow_dataset().to_table()
    assert {"vehicle", "query_id", "crossing", "at", "version"} < set(table.column_names)
    catalog = Catalog.open(folder / "catalog")
    assert len(catalog) == 5000
    assert not list((default_cache() / INDEXES).glob(f"{catalog.id}*"))


def test_geofence_finds_a_wrong_answer(run, spark, monkeypatch):
    right = city.BruteForce.crossings
    more = [city.Crossing(0, 7, True, 1)]
    monkeypatch.setattr(city.BruteForce, "crossings", lambda *args: right(*args) + more)
    result = run("demo", "geofence", *TOY)
    assert result.exit_code == 1
    assert "missed: [(7, 0, True, 1)], in excess: []" in result.stderr


def a_drive():
    """Two vehicles and a fence from 0 to 2, and one that is there from batch 1, version 2, on."""
    box = np.zeros(1), np.full(1, 2.0), np.zeros(1), np.full(1, 2.0)
    brute_force = city.BruteForce(city.Fences(0, *box), 1)
    brute_force.add(city.Fences(1, *box), 2)
    brute_force.remove(np.array([0]), 3)
    change = demo.Change(SimpleNamespace(version=2), 1, np.array([1]))
    gone = demo.Change(SimpleNamespace(version=3), 2, np.array([0]))
    return SimpleNamespace(
        city=SimpleNamespace(vehicles=2),
        brute_force=brute_force,
        done={
            n: demo_geofence.Batch(n, 4 * n, 4 * n + 4, 0.0, 1.0, *some)
            for n, some in enumerate([(1, 1), (1, 0), (0, 0)])
        },
        bound={0: 1, 1: 2, 2: 3},
        enters=2,
        exits=1,
        added=change,
        removed=gone,
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, None),
        ({"entered": [True, True, True]}, "Spark counted 2 enters, but 3 are in the table"),
        (
            {"second": [0, 0, 1], "entered": [True, True, False], "fence": [0, 0, 1]},
            "some crossing twice",
        ),
        ({"entered": [False, True, True]}, "left a fence that it was not in"),
        ({"x": [1.0, 2.0, 1.0]}, "not one by the bounds of its fence"),
        ({"version": [1, 2, 2]}, "another version than its batch is bound to"),
        ({"second": [0, 1, 0], "version": [1, 1, 1]}, "before it was added"),
    ],
)
def test_what_is_judged_of_crossings(changed, told):
    right = {
        "vehicle": [0, 0, 1],
        "fence": [0, 0, 1],
        "second": [0, 1, 2],
        "version": [1, 1, 2],
        "entered": [True, False, True],
        "x": [1.0, 3.0, 1.0],
        "y": [1.0, 1.0, 1.0],
        "previous_x": [np.nan, 1.0, 5.0],
        "previous_y": [np.nan, 1.0, 1.0],
    }
    found = {name: np.array(values) for name, values in (right | changed).items()}
    if told is None:
        return demo_geofence._judge(a_drive(), demo_geofence.Crossings(**found))
    with pytest.raises(ValueError, match=told):
        demo_geofence._judge(a_drive(), demo_geofence.Crossings(**found))
