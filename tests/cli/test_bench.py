"""`limen bench`: finds benchmark modules, runs one, prints a table or nothing but JSON."""

from __future__ import annotations

import json
import sys

import pytest

from limen.cli import bench

FAKE = '''"""Ours against theirs, in a fake.

More.
"""

from __future__ import annotations

from .sizes import TEXT


def run(quick, progress):
    progress(TEXT)
    row = {"case": "a [case]", "rival": "theirs", "ours": 2.0, "theirs": 10.0, "unit": "ns"}
    rest = {"ratio": 5.0, "spread": [4.5, 5.5], "goal": 3, "holds": True}
    bad = {"ratio": 0.5, "spread": None, "goal": 3, "holds": False}
    return {"bench": "fake-one", "machine": "2 cores", "rows": [row | rest, row | bad], "q": quick}
'''


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    folder = tmp_path / "fakes"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "sizes.py").write_text(
        '"""Shared by benchmarks, none itself."""\n\nTEXT = "half way"\n'
    )
    (folder / "fake_one.py").write_text(FAKE)
    (folder / "needy.py").write_text(
        '"""Needs a rival."""\n\nimport no_such_rival\n\n\ndef run(q, p):\n    pass\n'
    )
    monkeypatch.setattr(bench, "folder", lambda: folder)
    yield folder
    for name in [name for name in sys.modules if name.startswith("limen_benchmarks")]:
        del sys.modules[name]


def test_lists(run, fakes):
    result = run("bench")
    assert result.exit_code == 0
    assert result.stdout == "fake-one  Ours against theirs, in a fake.\nneedy     Needs a rival.\n"


def test_table(run, fakes):
    result = run("bench", "fake-one")
    assert result.exit_code == 0, result.stderr
    for told in ("a [case]", "theirs", "5 (4.5..5.5)", "yes", "NO", "2 cores"):
        assert told in result.stdout
    assert result.stderr == "half way\n"


def test_json(run, fakes):
    result = run("bench", "fake_one", "--quick", "--json")
    told = json.loads(result.stdout)
    assert told["rows"][0]["ratio"] == 5.0 and told["q"] is True


def test_unknown(run, fakes):
    result = run("bench", "nope")
    assert result.exit_code == 1
    assert result.stderr == "limen: there is no benchmark 'nope'; there are: fake-one, needy\n"


def test_missing_rival(run, fakes):
    result = run("bench", "needy")
    assert result.exit_code == 1
    assert "limen bench needs the rivals: pip install 'limen[rivals]'" in result.stderr
    assert "no_such_rival" in result.stderr


def test_no_benchmarks(run, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "folder", lambda: tmp_path)
    result = run("bench")
    assert result.exit_code == 1 and "no benchmarks are installed" in result.stderr
