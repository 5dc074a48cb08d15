"""What is broken, foreign or wrong is refused by a sentence that names it, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from limen.catalog import Catalog, CatalogError
from limen.catalog.log import commit_file
from limen.model import LimenError, QueryError

ATTRIBUTES = {"n": "int64"}


@pytest.fixture
def filled(catalog):
    catalog.add({"a": "n = 1", "b": "x < 2 AND s = 'x'"})
    catalog.add({"c": "n > 3"})
    catalog.remove(["a"])
    return catalog


# -- what is not a catalog -----------------------------------------------------------------------


def test_a_missing_folder(tmp_path):
    with pytest.raises(CatalogError, match=r"there is no catalog at .*/gone; name its attributes"):
        Catalog.open(tmp_path / "gone")


@pytest.mark.parametrize("attributes", [None, ATTRIBUTES])
def test_a_file_in_its_place(tmp_path, attributes):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CatalogError, match="/file"):
        Catalog.open(tmp_path / "file", attributes)
    with pytest.raises(CatalogError, match="/file/sub"):
        Catalog.open(tmp_path / "file" / "sub", attributes)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_of_other_things(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CatalogError, match="is not a catalog; choose another folder"):
        Catalog.open(tmp_path, ATTRIBUTES)
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("attributes", [None, ATTRIBUTES])
def test_a_delta_table_of_another_kind(tmp_path, attributes):
    write_deltalake(tmp_path / "sales", pa.table({"n": [1]}))
    with pytest.raises(CatalogError, match="/sales is a Delta table, but not a catalog"):
        Catalog.open(tmp_path / "sales", attributes)
    assert DeltaTable(tmp_path / "sales").version() == 0


@pytest.mark.parametrize("path", ["s3://bucket/queries", "file:///tmp/queries", "dbfs://x"])
def test_an_address(path):
    with pytest.raises(CatalogError, match=f"{path}: a catalog is a folder"):
        Catalog.open(path, ATTRIBUTES)


@pytest.mark.parametrize("name", ["50%25", "a\\b", "a\nb"])
def test_a_folder_that_deltalake_would_take_for_another(tmp_path, name):
    with pytest.raises(CatalogError, match="the name of a catalog"):
        Catalog.open(tmp_path / name, ATTRIBUTES)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "name", ["a b", "ä", "50%", "x?y", "#1", "it's", 'q"q', "[a*]", "~", "x/../y"]
)
def test_any_other_folder(tmp_path, name):
    catalog = Catalog.open(tmp_path / name, ATTRIBUTES)
    catalog.add({"q": "n = 1"})
    assert len(Catalog.open(str(tmp_path / name)).snapshot()) == 1
    assert os.listdir(tmp_path) == [os.path.basename(name)]


def test_a_relative_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    catalog = Catalog.open("here", ATTRIBUTES)
    assert catalog.path == tmp_path / "here"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"limen.format": "2"}, "has format 2, this program knows 1: install a newer limen"),
        ({"limen.format": "x"}, "has format x"),
        ({"limen.attributes": "{"}, "damaged: its properties cannot be read"),
        ({"limen.attributes": "[1]"}, "damaged: its properties cannot be read"),
        ({"limen.id_type": "blob"}, "damaged: its properties cannot be read"),
    ],
)
def test_a_newer_format_or_other_properties(filled, properties, message):
    DeltaTable(str(filled.path)).alter.set_table_properties(properties, False)
    with pytest.raises(CatalogError, match=message):
        Catalog.open(filled.path)
    with pytest.raises(CatalogError, match=message):
        filled.add({"q": "n = 1"})


# -- damage --------------------------------------------------------------------------------------


def test_no_flipped_byte_of_a_data_file_gives_a_wrong_answer(filled):
    file = max(filled.path.glob("*.parquet"), key=lambda path: path.stat().st_size)
    whole = file.read_bytes()
    for at in range(0, len(whole), 5):
        for mask in (1, 0x80):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
            with pytest.raises(CatalogError, match=f"{file}: the catalog is damaged"):
                filled.snapshot(1)
    file.write_bytes(whole)
    assert len(filled.snapshot(1)) == 2


def test_a_truncated_data_file(filled):
    files = sorted(filled.path.glob("*.parquet"))
    for file in files:
        whole = file.read_bytes()
        for length in (0, 3, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:length])
            for use in (filled.snapshot, lambda: list(Catalog.open(filled.path).list())):
                with pytest.raises(CatalogError, match=f"{file}: the catalog is damaged"):
                    use()
        file.write_bytes(whole)
    assert len(filled.snapshot()) == 2


def test_a_deleted_data_file(filled):
    file = next(filled.path.glob("*.parquet"))
    file.unlink()
    fresh = Catalog.open(filled.path)
    for use in (fresh.snapshot, lambda: fresh.changes(0), lambda: fresh.add({"q": "n = 1"})):
        with pytest.raises(CatalogError, match=f"{file} is gone: version . of the catalog"):
            use()
    assert fresh.version == 3


GARBAGE = [
    b"",
    b"garbage",
    b"\xff\xfe",
    b"5",
    b"null",
    b"[]",
    b'{"add":null}',
    b'{"add":{"path":"nope.parquet"}}',
    b'{"commitInfo":[]}',
    b'{"commitInfo":{"timestamp":"x"}}',
    b'{"commitInfo":{"timestamp":1,"limen":{}}}',
    b'{"commitInfo":{"timestamp":1,"limen":{"kind":"change","live":"x"}}}',
]


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("version", [1, 3])
def test_garbage_in_a_commit(filled, garbage, version):
    commit_file(filled.path, version).write_bytes(garbage)
    with pytest.raises(CatalogError, match=str(filled.path) + ".* damaged"):
        Catalog.open(filled.path).snapshot()
    for use in (filled.history, len, filled.snapshot, lambda: filled.changes(0)):
        try:  # a handle that knew the catalog before may still know
            use(filled) if use is len else use()
        except CatalogError as error:
            assert "damaged" in str(error)


def test_a_commit_without_its_actions(filled):
    """Delta takes it for a commit that changes nothing; the number of queries tells."""
    commit_file(filled.path, 2).write_bytes(b"{}")
    with pytest.raises(CatalogError, match="damaged: version 3 has 2 queries, its files have 1"):
        Catalog.open(filled.path).snapshot()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_commit_that_is_gone(filled, version):
    commit_file(filled.path, version).unlink()
    with pytest.raises(CatalogError, match=f"{filled.path}.* damaged") as caught:
        Catalog.open(filled.path)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_gone(filled):
    shutil.rmtree(filled.path)
    for use in (filled.snapshot, lambda: filled.add({"q": "n = 1"}), lambda: filled.changes(0, 1)):
        with pytest.raises(CatalogError, match=str(filled.path)):
            use()


def test_a_log_that_is_gone(filled):
    shutil.rmtree(filled.path / "_delta_log")
    with pytest.raises(CatalogError, match=str(filled.path)):
        filled.add({"q": "n = 1"})
    with pytest.raises(CatalogError, match="is not a catalog"):
        Catalog.open(filled.path, ATTRIBUTES)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_folder_that_may_only_be_read(start):
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    catalog = Catalog.open(folder / "catalog", {"n": "int64"})
    catalog.add({"a": "n = 1"})
    catalog.add({"b": "n = 2"})
    counts, *refused = start("read_only", catalog.path).told()
    assert counts == (2, 2) and len(refused) == 5
    for line in refused:
        assert line[0] == "CatalogError" and str(folder) in line[1], line
        assert "denied" in line[1] and "\n" not in line[1]
    assert catalog.version == 2
    shutil.rmtree(folder)


# -- versions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [-1, 4, 2**70])
def test_a_version_that_is_not(filled, version):
    for use in (
        lambda: filled.snapshot(version),
        lambda: filled.changes(version),
        lambda: filled.changes(0, version),
        lambda: filled.list(version=version),
    ):
        with pytest.raises(CatalogError, match=f"no version {version}; the newest is 3"):
            use()


def test_changes_do_not_go_back(filled):
    with pytest.raises(CatalogError, match="version 2 is not before version 1"):
        filled.changes(2, 1)
    assert len(filled.changes(3)) == len(filled.changes(2, 2)) == 0


def test_a_commit_that_is_in_counts_although_what_follows_it_failed(filled):
    (filled.path / "_delta_log" / "_last_checkpoint").mkdir()  # no checkpoint can be written
    before = filled.version
    for number in range(12):
        assert filled.add({f"q{number}": "n = 1"}).version == before + 1 + number
    assert len(Catalog.open(filled.path)) == len(list(filled.list()))


def test_a_vacuum_takes_what_a_lost_race_left(filled):
    queries = list(filled.list())
    orphan = filled.path / "left-00000000.parquet"
    orphan.write_bytes(b"of a writer that was killed")
    assert filled.vacuum(timedelta(hours=1)) == 0, "it may be at work"
    old = orphan.stat().st_mtime - 7200
    os.utime(orphan, (old, old))
    assert filled.vacuum(timedelta(hours=1)) == 1 and not orphan.exists()
    assert list(filled.list()) == queries


def test_a_vacuumed_version(filled):
    reader = Catalog.open(filled.path)
    assert reader.get("c") is not None
    filled.add({"d": "n = 4"})
    filled.compact()
    now = filled.snapshot()
    assert filled.vacuum(timedelta(minutes=1)) == 0, "rounded up to what deltalake can do"
    assert filled.vacuum() == 0
    assert filled.vacuum(timedelta(0)) == 4
    for use in (lambda: filled.snapshot(2), lambda: filled.changes(2, 5)):
        with pytest.raises(CatalogError, match=r"is gone: version . of the catalog is no longer"):
            use()
    assert filled.snapshot() == Catalog.open(filled.path).snapshot() == filled.snapshot(5) == now
    assert reader.get("d") is not None, "a handle that was left behind finds the newest version"
    assert reader.add({"e": "n = 5"}).added == 1
    assert len(filled) == 4 and {e.kind for e in filled.history(3)} == {"vacuum", "change"}
    with pytest.raises(LimenError, match="must not be negative"):
        filled.vacuum(timedelta(-1))


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [["n"], "n", {"": "int64"}, {5: "int64"}, {"n": "blob"}, {"n": None}]
)
def test_attributes_that_are_none(tmp_path, given):
    with pytest.raises(CatalogError, match="attribute"):
        Catalog.open(tmp_path / "catalog", given)
    assert not os.listdir(tmp_path)


def test_an_attribute_twice(tmp_path):
    with pytest.raises(CatalogError, match="'n' is there twice"):
        Catalog.open(tmp_path / "catalog", pa.schema([("n", pa.int64()), ("n", pa.string())]))


def test_ids_of_another_kind(tmp_path):
    with pytest.raises(QueryError, match="ids are int64 or string, not float64"):
        Catalog.open(tmp_path / "catalog", ATTRIBUTES, ids="float64")


def test_an_attribute_of_another_type(filled):
    for use in (filled.declare, lambda given: Catalog.open(filled.path, given)):
        with pytest.raises(CatalogError, match="attribute 'n' is int64 here, not string"):
            use({"new": "date", "n": "string"})
    assert filled.version == 3 and "new" not in filled.attributes


def test_an_unknown_attribute(filled):
    with pytest.raises(QueryError, match=r"id 'q'.*unknown attribute 'm'; known: n, x, s"):
        filled.add({"fine": "n = 1", "q": "m = 1"})
    assert filled.version == 3


@pytest.mark.parametrize("who", [5, True, None, 1.5, b"b", 2**70, "\ud800", ["b"]])
def test_an_id_that_is_no_text(filled, who):
    for use in (lambda: filled.remove([who]), lambda: filled.get(who)):
        with pytest.raises(QueryError, match=r"no query has (the|an) id") as caught:
            use()
        assert repr(who) in str(caught.value)
    if not isinstance(who, list):
        with pytest.raises(QueryError, match=r"ids of this catalog|id|Unicode"):
            filled.add({who: "n = 1"})
    assert filled.version == 3


@pytest.mark.parametrize("who", ["b", True, None, 1.5, 2**63, -(2**63) - 1])
def test_an_id_that_is_no_number(tmp_path, who):
    catalog = Catalog.open(tmp_path / "catalog", ATTRIBUTES, ids="int64")
    catalog.add({1: "n = 1"})
    for use in (lambda: catalog.remove([who]), lambda: catalog.get(who)):
        with pytest.raises(QueryError, match=r"no query has (the|an) id") as caught:
            use()
        assert repr(who) in str(caught.value)
    with pytest.raises(QueryError, match="id"):
        catalog.add({who: "n = 1"})
    with pytest.raises(QueryError, match="ids are int64 here, not int32"):
        catalog.remove(pa.array([1], pa.int32()))
    assert catalog.version == 1


@pytest.mark.parametrize("ids", ["b", b"b", 5, None])
def test_ids_that_are_no_list(filled, ids):
    with pytest.raises(QueryError, match="ids are given as a list; for one, "):
        filled.remove(ids)


@pytest.mark.parametrize("who", ["", "\n", "\x00", "\u202e", "x" * 257])
def test_an_id_that_no_query_may_have(filled, who):
    with pytest.raises(QueryError, match=r"id (is empty|has a control|is longer)"):
        filled.add({who: "n = 1"})
    assert filled.get(who) is None


@pytest.mark.parametrize("who", ["a/b", "..", "'", '"', "%20", "é", "💡", "x" * 256, "null"])
def test_an_id_of_odd_characters(filled, who):
    filled.add({who: "n = 1"})
    assert Catalog.open(filled.path).get(who).id == who
    filled.remove([who])
    assert filled.get(who) is None


ODD_NAMES = ["a b", 'q"q', "it's", "a.b", "é", "💡", "id", "version", "lo_0", "AND", "x" * 5000]
ODD_NAMES += ["\n", "\x00"]


def test_attributes_of_odd_names(tmp_path):
    for kind, value in (("int64", 7), ("string", "IBM")):
        path = tmp_path / kind
        catalog = Catalog.open(path, dict.fromkeys(ODD_NAMES[:6], kind))
        catalog.declare(dict.fromkeys(ODD_NAMES[6:], kind))
        catalog.add({f"q{i}": {name: value} for i, name in enumerate(ODD_NAMES)})
        again = Catalog.open(path).snapshot()
        assert list(again.attributes) == ODD_NAMES
        for row, name in enumerate(ODD_NAMES):
            column = again.keys[name].to_pylist() if kind == "string" else again.lo[name].tolist()
            assert column[row] == value and column.count(value) == 1
        bodies = {
            e.id: e.where for e in catalog.list() if "\n" not in e.where and "\0" not in e.where
        }
        assert catalog.add(bodies).added == 0, "the text is the same query"


@pytest.mark.parametrize(
    "ttl",
    [-1, 0, float("nan"), float("inf"), 1e12, "5", timedelta(0), timedelta(-1)],
)
def test_a_time_to_live_that_is_none(filled, ttl):
    for queries in ({"q": "n = 1"}, {}):
        with pytest.raises(LimenError, match=r"ttl=.*: a time to live is positive"):
            filled.add(queries, ttl=ttl)
    assert filled.version == 3


def test_nothing_is_no_change(filled):
    none = pa.table({"id": pa.array([], pa.string()), "where": pa.array([], pa.string())})
    for use in (
        lambda: filled.add({}),
        lambda: filled.add([]),
        lambda: filled.add(none),
        lambda: filled.add(filled.snapshot().take([])),
        lambda: filled.remove([]),
        lambda: filled.remove(pa.array([], pa.null())),
        filled.change,
        lambda: filled.add({"c": "n > 3"}),
    ):
        receipt = use()
        assert (receipt.version, receipt.added, receipt.removed) == (3, 0, 0)
    assert filled.expire() is None and filled.version == 3


def test_an_id_is_removed_once(filled):
    assert filled.remove(["b", "b"]).removed == 1
    with pytest.raises(QueryError, match="no query has the id 'b'"):
        filled.remove(["b"])
    with pytest.raises(QueryError, match=r"no query has the id 'y' \(and 1 more\)"):
        filled.remove(["c", "y", "z"])
    assert filled.remove(pa.chunked_array([["c"], ["c"]])).removed == 1
    assert len(filled) == 0 and len(filled.snapshot()) == 0


def test_an_id_with_two_bodies_in_one_call(filled):
    with pytest.raises(QueryError, match=r"'q'.*another body"):
        filled.add([{"id": "q", "where": "n = 1"}, {"id": "q", "where": "n = 2"}])
    assert filled.add([{"id": "q", "where": "n = 1"}] * 2).added == 1


def test_limits(filled):
    assert [len(list(filled.list(n))) for n in (-1, 0, 1, 2, 2**70)] == [0, 0, 1, 2, 2]
    assert [len(filled.history(n)) for n in (-1, 0, 1, 2**70)] == [0, 0, 1, 4]


# -- handles that were left behind ---------------------------------------------------------------


def test_a_handle_follows_many_changes_of_another(filled):
    """More than are kept beside the rows in memory."""
    other = Catalog.open(filled.path)
    assert other.get("c") is not None
    n = 20_001
    many = pa.table({"id": [f"m{i}" for i in range(n)], "n_lo": list(range(n)), "n_hi": [n] * n})
    filled.add(many)
    assert other.get("m5").where == f"n >= 5 AND n <= {n}"
    filled.remove(many.column("id"))
    assert other.add({"q": "n = 1"}).added == 1
    assert len(other) == len(list(other.list())) == 3


def test_a_handle_knows_what_another_declared(filled):
    other = Catalog.open(filled.path)
    entries = other.list()
    filled.declare({"late": "date"})
    assert len(list(entries)) == 2, "a list that was begun before"
    assert other.add({"q": "late = DATE '2026-01-31'"}).added == 1
    assert filled.get("q").where == "late = DATE '2026-01-31'"


def test_a_list_makes_the_same_catalog_again(filled, tmp_path):
    copy = Catalog.open(tmp_path / "copy", filled.attributes)
    copy.add({e.id: e.where for e in filled.list()})
    assert {e.id: e.where for e in copy.list()} == {e.id: e.where for e in filled.list()}
    assert copy.id != filled.id
