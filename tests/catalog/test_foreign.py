"""The catalog is a Delta table to everybody else, and stays a catalog whatever they do to it."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.schema import Field, PrimitiveType

from limen.catalog import Catalog, CatalogError


@pytest.fixture
def grown(catalog):
    """Four versions and a column that the first of them do not have."""
    catalog.add({"a": "n >= 1 AND n < 5", "b": "s = 'IBM'"})
    catalog.declare({"flag": "bool"})
    catalog.add({"c": "flag = TRUE AND x > 2", "d": "n = 7"}, ttl=3600)
    catalog.change({"a": "n = 9"}, ["a", "b"])
    return catalog


ROWS = [  # version, added, id, lo_0, hi_0, string_2, bool_3
    (1, True, "a", 1, 4, None, None),
    (1, True, "b", None, None, "IBM", None),
    (4, True, "c", None, None, None, True),
    (4, True, "d", 7, 7, None, None),
    (5, False, "a", None, None, None, None),
    (5, False, "b", None, None, None, None),
    (5, True, "a", 9, 9, None, None),
]
COLUMNS = ["version", "added", "id", "lo_0", "hi_0", "string_2", "bool_3"]


def _sorted(rows):
    return sorted(rows, key=lambda row: row[:3])


def test_deltalake_reads_it(grown):
    table = DeltaTable(str(grown.path)).to_pyarrow_table(columns=COLUMNS)
    assert _sorted(zip(*table.to_pydict().values(), strict=True)) == _sorted(ROWS)
    old = DeltaTable(str(grown.path), version=1).to_pyarrow_table(columns=["id", "lo_0"])
    assert sorted(old.column("id").to_pylist()) == ["a", "b"]


def test_polars_reads_it(grown):
    frame = pl.read_delta(str(grown.path), use_pyarrow=True).select(COLUMNS)
    assert _sorted(frame.rows()) == _sorted(ROWS)


def test_polars_own_reader_knows_all_but_the_version(grown):
    """It looks for partitions in the names of files; Delta has them in its log."""
    frame = pl.read_delta(str(grown.path)).select(COLUMNS[1:])
    assert sorted(map(repr, frame.rows())) == sorted(repr(row[1:]) for row in ROWS)


def test_it_is_read_after_a_compaction(grown):
    assert grown.compact() == 6
    for read in (
        DeltaTable(str(grown.path)).to_pyarrow_table(columns=COLUMNS).to_pydict(),
        pl.read_delta(str(grown.path)).select(COLUMNS).to_dict(as_series=False),
    ):
        rows = _sorted(zip(*read.values(), strict=True))
        assert [row[2:] for row in rows] == [
            ("a", 9, 9, None, None),
            ("c", None, None, None, True),
            ("d", 7, 7, None, None),
        ]


def _ids(catalog: Catalog, version: int) -> set[str]:
    return set(catalog.snapshot(version).ids.to_pylist())


FOREIGN = {
    "z-order": lambda table: table.optimize.z_order(["id"]),
    "compact": lambda table: table.optimize.compact(),
    "describe": lambda table: table.alter.set_table_description("queries"),
    "checkpoint": lambda table: table.create_checkpoint(),
    "column": lambda table: table.alter.add_columns(Field("note", PrimitiveType("string"))),
    "restore": lambda table: table.restore(4),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_commit_of_another_program_is_a_version_like_any(grown, what):
    before = {version: grown.snapshot(version) for version in range(6)}
    left_behind, fresh = Catalog.open(grown.path), Catalog.open(grown.path)
    assert left_behind.get("c") is not None
    FOREIGN[what](DeltaTable(str(grown.path)))
    version = grown.version
    now = {"a", "b", "c", "d"} if what == "restore" else {"a", "c", "d"}
    for handle in (grown, left_behind, fresh, Catalog.open(grown.path)):
        assert {v: handle.snapshot(v) for v in before} == before
        assert len(handle) == len(now) and _ids(handle, version) == now
        assert {e.id for e in handle.list()} == now
        assert (handle.get("b") is None) == ("b" not in now)
        changes = handle.changes(1, version)
        gone, new = set(changes.removed.to_pylist()), set(changes.added.ids.to_pylist())
        assert ({"a", "b"} - gone) | new == now
    assert {e.kind for e in grown.history() if e.version > 5} <= {"foreign"}
    grown.add({"after": "n = 3"})
    assert left_behind.remove(["a"]).version == version + 2
    assert _ids(fresh, version + 2) == now - {"a"} | {"after"}
    assert fresh.compact() == version + 3
    assert _ids(grown, version + 3) == now - {"a"} | {"after"}
    assert len(grown.changes(version + 2)) == 0


def test_a_declaration_taken_back_by_another_program_is_noticed(grown):
    DeltaTable(str(grown.path)).restore(1)
    assert _ids(grown, grown.version) == {"a", "b"}
    fresh = Catalog.open(grown.path)
    assert "flag" not in fresh.attributes and _ids(fresh, 1) == {"a", "b"}
    for version in (4, 5):
        with pytest.raises(CatalogError, match="a value in bool_3, which is no attribute"):
            fresh.snapshot(version)


def test_rewritten_files_keep_their_types(grown):
    DeltaTable(str(grown.path)).optimize.z_order(["id"])
    queries = Catalog.open(grown.path).snapshot()
    assert queries.ids.type == pa.string()
    assert {name: str(kind) for name, kind in queries.attributes.items()} == {
        "n": "int64",
        "x": "double",
        "flag": "bool",
    }


def test_many_commits_are_folded_and_checkpointed(catalog, monkeypatch):
    """Past the checkpoint and the compactions, every version is still the same."""
    monkeypatch.setattr("limen.catalog.catalog.COMPACT_AFTER", 20)
    for turn in range(60):
        catalog.add({f"q{turn}": "n = 1"})
        if turn % 10 == 9:
            catalog.remove([f"q{turn - 5}"])
    kinds = [event.kind for event in reversed(catalog.history())]
    assert "compaction" in kinds
    assert list((catalog.path / "_delta_log").glob("*.checkpoint.parquet"))
    assert len(DeltaTable(str(catalog.path)).file_uris()) <= 25
    fresh, live = Catalog.open(catalog.path), 0
    assert len(fresh) == len(fresh.snapshot()) == len(list(fresh.list())) == 54
    for event in reversed(fresh.history()):
        live += event.added - event.removed
        assert event.live == live
        if event.version % 10 == 0:
            assert len(fresh.snapshot(event.version)) == live
            differ = _ids(fresh, event.version) ^ _ids(fresh, fresh.version)
            assert len(fresh.changes(event.version)) == len(differ)
