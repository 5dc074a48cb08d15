"""A batch is bound to a version once, whoever asks and however often."""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from limen.catalog import Catalog, CatalogError, bindings


def test_the_first_to_ask_decides(catalog):
    assert bindings.bound(catalog.path, "s", 7) is None
    assert bindings.bind(catalog.path, "s", 7, 3) == 3
    assert bindings.bind(catalog.path, "s", 7, 9) == 3
    assert bindings.bind(catalog.path, "another", 7, 9) == 9
    assert bindings.bound(catalog.path, "s", 7) == 3
    assert catalog.bindings("s") == {7: 3} and catalog.bindings("never") == {}


def test_processes_agree(catalog, race):
    jobs = race([("bind", catalog.path, version, 30) for version in range(4)])
    answers = [job.told()[0] for job in jobs]
    assert answers == [answers[0]] * 4
    assert catalog.bindings("stream") == dict(enumerate(answers[0]))
    assert not list(catalog.path.glob("_limen/bindings/stream/.*")), "nothing is left beside"


def test_threads_agree(catalog):
    answers: dict[int, list[int]] = {}
    ready = threading.Barrier(8)

    def ask(version):
        ready.wait()
        answers[version] = [bindings.bind(catalog.path, "s", b, version) for b in range(20)]

    threads = [threading.Thread(target=ask, args=(version,)) for version in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(found == answers[0] for found in answers.values())


def test_a_replayed_batch_sees_what_it_saw(catalog):
    catalog.add({"a": "n = 1"})
    assert catalog.bind("s", 0) == 1
    catalog.add({"b": "n = 1"})
    assert catalog.bind("s", 1) == 2
    assert catalog.bind("s", 0) == Catalog.open(catalog.path).bind("s", 0) == 1
    assert catalog.bindings("s") == {0: 1, 1: 2}


def test_the_last_thousand_are_kept(catalog, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # quick
    for batch in range(1205):
        bindings.bind(catalog.path, "s", batch, batch)
    assert list(catalog.bindings("s")) == list(range(205, 1205))
    assert bindings.bound(catalog.path, "s", 204) is None


@pytest.mark.parametrize("damage", [b"", b"x", b"\xff", b"1.5", b"1\n2"])
def test_a_damaged_binding_is_named(catalog, damage):
    bindings.bind(catalog.path, "s", 7, 3)
    file = catalog.path / "_limen" / "bindings" / "s" / "7"
    file.write_bytes(damage)
    for use in (
        lambda: catalog.bind("s", 7),
        lambda: catalog.bindings("s"),
        lambda: bindings.bind(catalog.path, "s", 7, 3),
    ):
        with pytest.raises(CatalogError, match=f"{file} is damaged: it should hold the version"):
            use()


def test_expired_queries_are_not_seen_by_the_next_batch(catalog, clock):
    catalog.add({"short": "n = 1"}, ttl=timedelta(seconds=10))
    catalog.add({"long": "n = 2"}, ttl=20)
    catalog.add({"ever": "n = 3"})
    clock.pass_by(9)
    assert catalog.bind("s", 0) == 3
    clock.pass_by(1)
    other = Catalog.open(catalog.path)
    assert other.bind("s", 0) == 3, "what is bound stays, though a query has expired"
    assert other.bind("s", 1) == catalog.bind("s", 1) == 4
    assert catalog.snapshot(4).ids.to_pylist() == ["long", "ever"]
    assert catalog.history(1)[0].kind == "expiry"
    assert not catalog.expiry_is_due() and catalog.bind("s", 2) == 4
    clock.pass_by(10)
    assert catalog.bind("s", 3) == 5 and len(catalog) == 1


def test_a_query_removed_before_its_time_does_not_expire(catalog, clock):
    catalog.add({"short": "n = 1"}, ttl=5)
    catalog.remove(["short"])
    clock.pass_by(6)
    assert not catalog.expiry_is_due() and not Catalog.open(catalog.path).expiry_is_due()
    assert catalog.bind("s", 0) == 2 and catalog.version == 2


def test_a_renewed_query_stays(catalog, clock):
    catalog.add({"q": "n = 1"}, ttl=5)
    clock.pass_by(3)
    assert catalog.add({"q": "n = 1"}, ttl=5).added == 1
    clock.pass_by(3)
    assert catalog.bind("s", 0) == 2 and catalog.get("q") is not None
    assert catalog.add({"q": "n = 1"}).added == 1, "for ever"
    clock.pass_by(100)
    assert catalog.expire() is None and catalog.get("q").expires is None


def test_waiting_for_a_change(catalog):
    receipt = catalog.add({"q": "n = 1"})
    bindings.bind(catalog.path, "s", 4, 0)
    threading.Timer(0.1, lambda: [catalog.bind("s", 5), catalog.bind("s", 6)]).start()
    assert receipt.wait("s", timeout=30) == 5

    class Query:
        id = "s"

    assert receipt.wait(Query()) == 5


def test_waiting_in_vain(catalog):
    receipt = catalog.add({"q": "n = 1"})
    words = f"stream s: no batch has seen version 1 of {catalog.path} within 0.05 s "
    with pytest.raises(TimeoutError) as caught:
        receipt.wait("s", timeout=0.05)
    assert str(caught.value) == words + "(no batch)"
    bindings.bind(catalog.path, "s", 4, 0)
    with pytest.raises(TimeoutError) as caught:
        receipt.wait("s", timeout=0.05)
    assert str(caught.value) == words + "(its newest batch saw version 0)"


@pytest.mark.parametrize("name", ["a/b", "../../out", "é", "5", "a b", "%2F"])
def test_streams_of_odd_names_stay_apart(catalog, name):
    around = sorted(catalog.path.parent.rglob("*"))
    assert bindings.bind(catalog.path, name, 1, 4) == 4
    assert catalog.bindings(name) == {1: 4} and catalog.bindings("a") == {}
    new = set(catalog.path.parent.rglob("*")) - set(around)
    assert all(catalog.path / "_limen" in (path, *path.parents) for path in new)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_stream_without_a_name(catalog, name):
    with pytest.raises(CatalogError, match=f"'{name}' is not the name of a stream"):
        catalog.bind(name, 1)


def test_a_vacuum_leaves_the_bindings(catalog):
    catalog.add({"a": "n = 1"})
    catalog.add({"b": "n = 1"})
    catalog.compact()
    catalog.bind("s", 0)
    assert catalog.vacuum(timedelta(0)) == 2
    table = DeltaTable(str(catalog.path))
    for full in (False, True):
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=full)
    assert catalog.bindings("s") == {0: 3}
    assert len(catalog.snapshot(3)) == 2


def test_numbers_of_bad_events_are_those_of_the_last_run_of_the_batch(catalog):
    note = bindings.note_quarantined
    for task in (0, 1, 1):
        note(catalog.path, "stream", 4, task, "run 1", 3)
    assert catalog.quarantined("stream") == {4: 6}
    note(catalog.path, "stream", 4, 2, "run.2", 6)
    note(catalog.path, "stream", 5, 0, "run.2", 1)
    assert catalog.quarantined("stream") == {4: 6, 5: 1}
    note(catalog.path, "stream", 4 + bindings.KEPT, 0, "run.2", 2)
    assert list(catalog.quarantined("stream")) == [5, 4 + bindings.KEPT]
    assert catalog.quarantined("another") == {}


def test_settings_are_not_swept_away_with_the_numbers_of_a_batch(tmp_path: Path) -> None:
    assert bindings.noted_settings(tmp_path, "s", "2") is None
    for text in ("64", "16"):
        bindings.note_settings(tmp_path, "s", "2", text)
    bindings.note_quarantined(tmp_path, "s", 2, 0, "run", 5)
    assert bindings.noted_settings(tmp_path, "s", "2") == "16"
    assert bindings.noted_settings(tmp_path, "s", "3") is None
    assert bindings.quarantined(tmp_path, "s") == {2: 5}
