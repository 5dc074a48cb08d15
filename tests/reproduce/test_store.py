"""Kept results: found again only if nothing changed that could change them, and only if sound."""

from __future__ import annotations

import json

import pytest

from limen.reproduce import store
from limen.reproduce.claim import Claim
from limen.reproduce.store import Measured, Store, write

MODULE = '''"""A title."""

CLAIM = "CEI-1"
PAPER = "says so"


def run(parameters, case):
    return {"x": 1}


def draw(parameters, results, figure):
    figure.subplots()
'''
CASE = {"name": "a", "n": 1}
MEASURED = Measured({"x": 1.5}, 0.25, "2024-01-02T03:04:05+00:00", "a machine")


@pytest.fixture
def experiments(tmp_path, monkeypatch):
    monkeypatch.setattr(
        store, "SOURCES", tmp_path / "limen"
    )  # the real ones may be edited meanwhile
    folder = tmp_path / "experiments"
    (folder / "cei").mkdir(parents=True)
    (folder / "cei" / "a.py").write_text(MODULE)
    return folder


def kept(tmp_path, experiments, parameters=None, scale="full"):
    claim = Claim("CEI-1", "a title", experiments / "cei" / "a.py")
    return Store(tmp_path / "out", experiments).kept(scale, claim, parameters or {"n": 1})


def test_what_is_kept_is_found(tmp_path, experiments):
    kept(tmp_path, experiments).put(0, CASE, MEASURED)
    again = kept(tmp_path, experiments)
    assert again.get(0, CASE) == MEASURED
    assert again.get(1, CASE) is None
    assert again.get(0, {"name": "b", "n": 1}) is None
    assert Store(tmp_path / "out", experiments).has("full", "CEI-1")
    assert not Store(tmp_path / "out", experiments).has("quick", "CEI-1")


def test_whatever_could_change_it_makes_it_absent(tmp_path, experiments, monkeypatch):
    def found(parameters=None, scale="full"):
        return kept(tmp_path, experiments, parameters, scale).get(0, CASE) is not None

    kept(tmp_path, experiments).put(0, CASE, MEASURED)
    assert found() and not found({"n": 2}) and not found(scale="quick")
    (experiments / "__pycache__").mkdir()
    (experiments / "__pycache__" / "a.pyc").write_text("bytecode")
    (experiments / ".hidden").write_text("")
    assert found()
    (experiments / "cei" / "more.py").write_text("Y = 2\n")
    assert not found()
    (experiments / "cei" / "more.py").unlink()
    (experiments / "cei" / "b.py").write_text(MODULE.replace("CEI-1", "CEI-2"))
    assert found()
    for other in ('"x": 1', '"x": 2'), ("def run", "Y = 1\n\n\ndef run"), ("def run", "def run("):
        (experiments / "cei" / "a.py").write_text(MODULE.replace(*other))
        assert not found()
    for other in (
        ("subplots()", "clear()"),
        ("says so", "says more"),
        ("A title", "Another"),
        ("CLAIM =", "from ..judging import lines\n\nCLAIM ="),
    ):
        (experiments / "cei" / "a.py").write_text(MODULE.replace(*other))
        assert found()
    monkeypatch.setattr(store, "version", lambda name: f"{name} of another day")
    assert not found()


def test_the_sources_of_limen_count(tmp_path, experiments, monkeypatch):
    package = tmp_path / "limen"
    package.mkdir()
    (package / "kernels.py").write_text("1")
    monkeypatch.setattr(store, "SOURCES", package)
    before = kept(tmp_path, experiments).folder
    for name in ("_benchmarks", "plotting"):
        (package / name).mkdir()
        (package / name / "b.py").write_text("no part of it")
    assert kept(tmp_path, experiments).folder == before
    (package / "kernels.py").write_text("2")
    assert kept(tmp_path, experiments).folder != before


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "null",
        lambda text: '{"case": {"name": "a", "n": 1}}',
        lambda text: text.replace("0.25", '"soon"'),
        lambda text: text.replace('{"x": 1.5}', "7"),
        lambda text: text.replace("machine", "\x00"),
    ],
)
def test_a_damaged_file_is_absent(tmp_path, experiments, damage):
    it = kept(tmp_path, experiments)
    it.put(0, CASE, MEASURED)
    path = it.folder / "0.json"
    path.write_text(damage(path.read_text()))
    assert it.get(0, CASE) is None


def test_bytes_that_are_no_text_are_absent(tmp_path, experiments):
    it = kept(tmp_path, experiments)
    it.folder.mkdir(parents=True)
    (it.folder / "0.json").write_bytes(b"\xff\xfe\x00\x01" * 50)
    assert it.get(0, CASE) is None


def test_others_are_forgotten(tmp_path, experiments):
    old, new = (kept(tmp_path, experiments, {"n": n}) for n in (1, 2))
    other = Store(tmp_path / "out", experiments).kept(
        "full", Claim("CEI-2", "another", experiments / "cei" / "a.py"), {"n": 1}
    )
    for one in (old, new, other):
        one.put(0, CASE, MEASURED)
    (new.folder / "1.json.99.tmp").write_text("half")
    new.forget_others()
    assert not old.folder.exists() and other.get(0, CASE) == MEASURED
    assert [path.name for path in new.folder.iterdir()] == ["0.json"]
    new.forget()
    assert not new.folder.parent.exists()


def test_a_file_is_whole_or_absent(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "file"
    write(path, b"old")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write(path, b"new")
    assert path.read_bytes() == b"old"


def test_numbers_that_are_none_survive(tmp_path, experiments):
    it = kept(tmp_path, experiments)
    it.put(0, CASE, MEASURED._replace(result={"x": float("inf"), "y": None}))
    found = it.get(0, CASE)
    assert found is not None and found.result == {"x": float("inf"), "y": None}
    assert json.loads((it.folder / "0.json").read_text())["at"].startswith("2024")
