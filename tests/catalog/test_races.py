"""Several processes at one catalog: nobody loses anything, and nobody overwrites."""

from __future__ import annotations

import pickle
import threading

import pytest

from limen.catalog import Catalog, CatalogError
from limen.model import LimenError


@pytest.mark.parametrize("writers", [2, 4])
def test_writers_of_different_queries_all_succeed(catalog, race, writers):
    batches = [[_two(f"{w}.{turn}") for turn in range(8)] for w in range(writers)]
    jobs = race([("add_each", catalog.path, some) for some in batches])
    said = [job.told() for job in jobs]
    assert all(len(versions) == 8 and {added for _, added in versions} == {2} for versions in said)
    versions = [version for versions in said for version, _ in versions]
    assert sorted(versions) == list(range(1, 8 * writers + 1))
    assert all(line == sorted(line) for line in said)
    ids = catalog.snapshot().ids.to_pylist()
    assert len(ids) == len(catalog) == 16 * writers
    assert set(ids) == {q for w in range(writers) for t in range(8) for q in _two(f"{w}.{t}")}
    for w, lines in enumerate(said):
        for turn, (version, _) in enumerate(lines):
            assert {catalog.get(query).since for query in _two(f"{w}.{turn}")} == {version}


def _two(name: str) -> dict[str, str]:
    return {f"{name}a": "n = 1", f"{name}b": "x < 2"}


def test_the_same_query_is_accepted_once_in_all(catalog, race):
    batches = [{f"q{turn}": "n = 1"} for turn in range(8)]
    jobs = race([("add_each", catalog.path, batches)] * 4)
    said = [job.told() for job in jobs]
    for turn in range(8):
        answers = [lines[turn] for lines in said]
        assert sum(added for _, added in answers) == 1
        first = catalog.get(f"q{turn}").since
        assert [v for v, added in answers if added] == [first]
        assert all(v >= first for v, _ in answers)
    assert catalog.version == len(catalog) == 8


def test_of_different_bodies_for_an_id_one_wins(catalog, race):
    batches = [[{f"q{turn}": f"n = {w}"} for turn in range(8)] for w in range(4)]
    jobs = race([("add_each", catalog.path, some) for some in batches])
    said = [job.told() for job in jobs]
    for turn in range(8):
        won = [w for w in range(4) if said[w][turn][1] == 1]
        assert len(won) == 1
        assert catalog.get(f"q{turn}").where == f"n = {won[0]}"
        for w in {0, 1, 2, 3} - set(won):
            kind, message = said[w][turn]
            assert kind == "QueryError" and f"q{turn}" in message and "another body" in message
    assert catalog.version == len(catalog) == 8


def test_a_writer_and_a_compaction(catalog, race):
    batches = [_two(str(turn)) for turn in range(20)]
    compacts = ("compact_often", catalog.path)
    writer, *others = race([("add_each", catalog.path, batches), compacts, compacts])
    said = writer.told()
    assert [added for _, added in said] == [2] * 20
    for other in others:
        other.here.send("stop")
    assert any(version is not None for other in others for version in other.told())
    assert len(catalog) == 40
    for turn, (version, _) in enumerate(said):
        assert len(catalog.snapshot(version)) == 2 * turn + 2
    kinds = [event.kind for event in catalog.history()]
    assert kinds.count("change") == 20 and "compaction" in kinds
    assert len(kinds) == catalog.version + 1


def test_makers_make_one_catalog(tmp_path, race):
    path = tmp_path / "new"
    jobs = race([("make", path, {f"n{w}": "int64", "shared": "string"}) for w in range(4)])
    said = [job.told()[0] for job in jobs]
    assert len({who for who, _ in said}) == 1
    catalog = Catalog.open(path)
    assert set(catalog.attributes) == {"n0", "n1", "n2", "n3", "shared"}
    assert {e.id: e.since for e in catalog.list()} == {
        f"of n{w}": version for w, (_, version) in enumerate(said)
    }
    assert {e.where for e in catalog.list()} == {f"n{w} >= 2" for w in range(4)}


def test_declarers_all_succeed_and_types_do_not_mix(catalog, race):
    kinds = ["int64", "string", "bool", "date"]
    calls = [("declare", catalog.path, {f"{kind} {i}": kind for i in range(3)}) for kind in kinds]
    *jobs, writer = race(
        [*calls, ("add_each", catalog.path, [_two(str(turn)) for turn in range(10)])]
    )
    for kind, job in zip(kinds, jobs, strict=True):
        assert job.told() == [f"{kind} {i}" for i in range(3)]
    assert len(writer.told()) == 10
    assert len(catalog) == 20
    known = Catalog.open(catalog.path).attributes
    assert all(str(known[f"{kind} {i}"]).startswith(kind) for kind in kinds for i in range(3))
    wheres = {"int64": "3", "string": "'x'", "bool": "TRUE", "date": "DATE '2026-01-31'"}
    bodies = {f"{k} {i}": f'"{k} {i}" = {wheres[k]}' for k in kinds for i in range(3)}
    catalog.add(bodies)  # the handle has not declared any of them itself
    assert {e.id: e.where for e in catalog.list() if e.id in bodies} == bodies


def test_of_different_types_for_an_attribute_one_wins(catalog, race):
    kinds = ["int64", "string", "bool", "date"]
    jobs = race([("declare", catalog.path, {"late": kind}) for kind in kinds])
    said = [job.told()[0] for job in jobs]
    assert said.count("late") == 1
    won = kinds[said.index("late")]
    assert str(Catalog.open(catalog.path).attributes["late"]).startswith(won)
    for kind, line in zip(kinds, said, strict=True):
        if kind != won:
            assert line[0] == "CatalogError"
            assert f"attribute 'late' is {won} here, not {kind}" in line[1]


def test_a_declaration_just_after_a_commit_is_not_overwritten(catalog, monkeypatch):
    """The other's comes when the commit is there and the handle has not looked again yet."""
    other = Catalog.open(catalog.path)

    def declared_by_another(path):
        if path.name == "_delta_log":
            monkeypatch.undo()
            other.declare({"other": "string"})

    monkeypatch.setattr("limen.delta.commits.to_disk", declared_by_another)
    catalog.add({"q": "n = 1"})
    catalog.declare({"mine": "bool"})
    for handle in (catalog, Catalog.open(catalog.path)):
        assert set(handle.attributes) == {"n", "x", "s", "other", "mine"}
    catalog.add({"o": "other = 'x'", "m": "mine = TRUE"})
    assert other.get("m").where == "mine = TRUE" and other.get("o").where == "other = 'x'"


def test_threads_share_a_handle(catalog):
    problems: list[BaseException] = []
    done = threading.Event()

    def guarded(work, *args):
        try:
            work(*args)
        except BaseException as error:
            problems.append(error)
            raise

    def write(name):
        for turn in range(15):
            catalog.add(_two(f"{name}{turn}"))
            if turn % 5 == 4:
                catalog.compact()

    def look():
        while not done.is_set():
            version = catalog.version
            changes = [e for e in catalog.history() if e.kind == "change" and e.version <= version]
            expected = 2 * len(changes)
            assert len(catalog.snapshot(version)) == expected
            assert len(list(catalog.list())) >= expected
            assert len(catalog.changes(0, version)) == expected

    def enlarge():
        for i in range(4):
            catalog.declare({f"more {i}": "string"})
            catalog.add({f"more {i}": f"\"more {i}\" = 'x'", f"and {i}": "n = 1"})

    writers = [threading.Thread(target=guarded, args=(write, name)) for name in "ab"]
    writers.append(threading.Thread(target=guarded, args=(enlarge,)))
    readers = [threading.Thread(target=guarded, args=(look,)) for _ in range(2)]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not problems
    assert len(catalog) == len(catalog.snapshot()) == 68


def test_a_handle_travels_to_another_process(catalog, start):
    catalog.add({"q": "n = 1"})
    again = pickle.loads(pickle.dumps(catalog))
    assert (again.path, again.id) == (catalog.path, catalog.id)
    assert again.snapshot() == catalog.snapshot()
    assert start("use_a_pickled_one", catalog).told() == [(1, 1, 2)]
    assert catalog.version == again.version == 2


def test_a_forked_process_is_told_why_it_cannot(catalog, start):
    said = start("use_after_a_fork", catalog.path).told()
    assert said[-1] == 1 and len(said) == 3
    assert all("spawn or forkserver" in line for line in said[:2])
    assert {e.id for e in catalog.list()} == {"before", "after"}


def test_a_writer_that_always_loses_says_so(catalog, monkeypatch):
    from limen.catalog import ConflictError
    from limen.catalog.table import CommitFailedError, Table

    def lost(*args):
        raise CommitFailedError("another was quicker")

    monkeypatch.setattr("limen.catalog.catalog.ATTEMPTS", 3)
    monkeypatch.setattr(Table, "commit", lost)
    with pytest.raises(ConflictError, match="quicker 3 times; nothing was written"):
        catalog.add({"q": "n = 1"})
    assert catalog.compact() in (0, None)
    monkeypatch.undo()
    assert catalog.version == 0 and issubclass(ConflictError, CatalogError | LimenError)
    assert len(list(catalog.path.glob("*.parquet"))) == 1  # the same file for every attempt
    assert catalog.add({"q": "n = 1"}).version == 1
