"""The command as a whole: quick help, the version, errors as sentences, Ctrl-C."""

from __future__ import annotations

import subprocess
import sys

import pytest

import limen
from limen.cli import match, sentence

HELP = """
import sys
from limen.cli import main
sys.argv = ["limen", "--help"]
try:
    main()
except SystemExit as done:
    assert not done.code
heavy = {"numba", "pyarrow", "numpy", "matplotlib"} & set(sys.modules)
assert not heavy, f"--help imports {heavy}"
"""


def test_help_is_quick():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "match" in done.stdout and "demo" in done.stdout


def test_version(run):
    assert run("--version").stdout == f"limen {limen.__version__}\n"


def test_help_of_each(run):
    for words in (("match",), ("plot",), ("plot", "queries"), ("demo",), ("bench",)):
        result = run(*words, "--help")
        assert result.exit_code == 0 and "Usage" in result.stdout


def test_ctrl_c_is_quiet(run, monkeypatch, tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(match, "_kept", stop)
    (tmp_path / "e.csv").write_text("x\n1\n")
    result = run("match", "e.csv", "e.csv")
    assert result.exit_code == 130 and result.stderr == ""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            FileNotFoundError(2, "No such file or directory", "a.csv"),
            "a.csv: No such file or directory",
        ),
        (ValueError("a sentence"), "a sentence"),
        (ValueError(), "ValueError"),
    ],
)
def test_sentence(error, told):
    assert sentence(error) == told
