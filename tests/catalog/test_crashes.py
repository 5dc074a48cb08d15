"""Processes that die: by kill -9 at any moment, and at the places that matter."""

from __future__ import annotations

import random
import time

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from limen.catalog import Catalog, CatalogError

KILLS = 32


def test_kill_9_loses_nothing_and_leaves_nothing_half_done(catalog, start):
    """Every answer that was given holds; of each killed writer at most one commit more is there."""
    chance = random.Random(11)
    said: dict[int, tuple[str, str]] = {}
    newest = unsaid = 0
    for turn in range(KILLS):
        before = newest
        job = start("toil", catalog.path, turn)
        assert job.here.poll(60)
        lines = [job.here.recv()]
        time.sleep(chance.uniform(0, 0.06))
        job.process.kill()
        lines += job.told()
        done = {version: (what, group) for what, group, version in lines if version > before}
        newest = Catalog.open(catalog.path).version
        missing = set(range(before + 1, newest + 1)) - done.keys()
        assert missing in (set(), {newest}), "one more than was said, at most, and the last"
        unsaid += len(missing)
        said |= done
    assert said and 0 < unsaid < KILLS
    _replay(Catalog.open(catalog.path), said)
    assert catalog.add({"after": "n = 1"}).added == 1
    assert catalog.compact() == catalog.version
    assert catalog.get("after") is not None


def _replay(catalog: Catalog, said: dict[int, tuple[str, str]]) -> None:
    """Each version is the one before it and what was said, or a whole commit that was not said."""
    live: set[str] = set()
    for event in reversed(catalog.history()):
        changes = catalog.changes(max(0, event.version - 1), event.version)
        new, gone = set(changes.added.ids.to_pylist()), set(changes.removed.to_pylist())
        assert len(new) in (0, 3) and len(gone) in (0, 3) and not (new and gone)
        assert len({q.rsplit("-", 1)[0] for q in new | gone}) <= 1
        if event.version in said:
            what, group = said[event.version]
            three = set() if what == "compact" else {f"{group}-{part}" for part in range(3)}
            assert (new, gone) == (three if what == "add" else set(), three - new)
        live = (live - gone) | new
        assert event.live == len(live)
        if event.version % 7 == 0 or event.version == catalog.version:
            assert set(catalog.snapshot(event.version).ids.to_pylist()) == live


@pytest.mark.parametrize("what", ["add", "remove", "compact"])
@pytest.mark.parametrize(
    ("where", "there"),
    [
        ("before write", False),
        ("after write", False),
        ("before create_write_transaction", False),
        ("after create_write_transaction", True),
    ],
)
def test_a_change_is_there_or_not(catalog, start, what, where, there):
    before = _with_queries(catalog)
    job = start("crash", catalog.path, where, what)
    assert job.told() == ["begun"] and job.process.exitcode == 9
    after = Catalog.open(catalog.path)
    assert after.version == catalog.version == 3 + there
    live = {"add": {"a", "b", "new 1", "new 2"}, "remove": set(), "compact": {"a", "b"}}[what]
    assert {e.id for e in catalog.list()} == (live if there else {"a", "b"})
    assert len(after) == len(after.snapshot()) == len(catalog.snapshot())
    assert after.snapshot(3) == catalog.snapshot(3) == before
    assert after.add({"later": "s = 'y'"}).version == catalog.version == 4 + there
    assert catalog.compact() == 5 + there
    assert after.snapshot() == catalog.snapshot() and len(after) == len(after.snapshot())


def test_a_crash_in_the_middle_of_a_compaction_changes_nothing(catalog, start):
    before = _with_queries(catalog)
    job = start("crash", catalog.path, "after fold", "compact")
    assert job.told() == ["begun"] and job.process.exitcode == 9
    assert catalog.version == 3 and Catalog.open(catalog.path).snapshot() == before
    assert catalog.compact() == 4


def _with_queries(catalog: Catalog):
    catalog.add({"a": "n = 1"})
    catalog.add({"b": "x < 2 AND s = 'x'", "c": "n = 3"})
    catalog.remove(["c"])
    return catalog.snapshot()


@pytest.mark.parametrize(
    ("left", "kind"),
    [("string", "bool"), ("bool", "string"), ("int64", "date"), ("date", "string")],
)
def test_a_crash_in_the_middle_of_declare_does_no_harm(catalog, start, left, kind):
    """Whatever columns it left: the next attribute has its own type, for other programs too."""
    before = _with_queries(catalog)
    job = start("crash", catalog.path, "between the commits", left)
    assert job.told() == ["begun"] and job.process.exitcode == 9
    assert "late" not in Catalog.open(catalog.path).attributes
    assert catalog.snapshot() == before and catalog.version == 4
    literal = {"string": "'x'", "bool": "TRUE", "date": "DATE '2026-01-31'"}[kind]
    catalog.declare({"later": kind})
    catalog.add({"q": f"later = {literal}"})
    assert catalog.get("q").where == f"later = {literal}"
    schema = pa.schema(DeltaTable(str(catalog.path)).schema().to_arrow())
    for file in catalog.path.glob("*.parquet"):
        for field in pa.parquet.read_schema(file):
            assert field.type == schema.field(field.name).type
    catalog.declare({"late": left})
    assert set(Catalog.open(catalog.path).attributes) == {"n", "x", "s", "later", "late"}


def test_a_crash_in_making_it_does_not_bar_the_next(tmp_path, start):
    path = tmp_path / "new"
    start("crash_in_making", path).told()
    with pytest.raises(CatalogError, match=r"there is no catalog at .*new"):
        Catalog.open(path)
    assert Catalog.open(path, {"n": "int64"}).add({"q": "n = 1"}).version == 1
