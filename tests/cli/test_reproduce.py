"""`limen reproduce`: lists claims, runs them, goes on after being killed, prints a table or only JSON."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from limen.reproduce import claim, store

FAKE = '''"""A fake of {id}."""

import os
import signal
from pathlib import Path

from limen.reproduce import Check, Verdict

CLAIM = "{id}"
PAPER = "{id} is <so>."
SCALES = {{"quick": {{"scale": "a tenth", "n": 2}}, "full": {{"scale": "the paper's", "n": 3}}}}


def cases(parameters):
    return [{{"name": f"[case {{i}}]", "i": i}} for i in range(parameters["n"])]


def run(parameters, case):
    print("measuring")
    log = Path({log!r})
    with log.open("a") as file:
        print("{id}", case["i"], file=file)
    fault = log.with_name("fault")
    if case["i"] == 1 and fault.exists():
        kind = fault.read_text()
        fault.unlink()
        if kind == "KILL":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyboardInterrupt if kind == "INT" else ValueError("a bad [day]")
    return {{"squared": case["i"] ** 2}}


def verdict(parameters, results):
    total = sum(result["squared"] for _, result in results)
    checks = [Check.of("it adds up", {holds}, direction={direction})]
    return Verdict(checks, f"{{total}} in all, [and] " + "so on " * 12, "a note")


def draw(parameters, results, figure):
    figure.subplots().plot([result["squared"] for _, result in results])
'''
GO = """
import sys
from pathlib import Path
from limen.cli import main
from limen.reproduce import claim, store

folder = Path(sys.argv.pop())
claim.folder = lambda: folder
store.SOURCES = folder.parent / "limen"
main()
"""


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    folder = tmp_path / "experiments"
    for path, id, holds, direction in [
        ("cei/a.py", "CEI-4", True, False),
        ("cei/b.py", "CEI-10", False, True),
        ("joins/a.py", "SSI-1", False, False),
    ]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        told = {"id": id, "log": str(tmp_path / "log"), "holds": holds, "direction": direction}
        (folder / path).write_text(FAKE.format(**told))
    (folder / "cei" / "__init__.py").write_text('"""The paper on CEI."""\n')
    monkeypatch.setattr(claim, "folder", lambda: folder)
    monkeypatch.setattr(
        store, "SOURCES", tmp_path / "limen"
    )  # the real ones may be edited meanwhile
    yield folder
    claim.forget()


@pytest.fixture
def ran(tmp_path):
    """The cases that were run since the last look."""

    def ran():
        told = (tmp_path / "log").read_text().splitlines() if (tmp_path / "log").exists() else []
        (tmp_path / "log").unlink(missing_ok=True)
        return told

    return ran


def test_lists(run, fakes, ran):
    result = run("reproduce")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines() == [
        "          full           quick",
        "The paper on CEI",
        "  CEI-4   -              -              A fake of CEI-4",
        "  CEI-10  -              -              A fake of CEI-10",
        "joins",
        "  SSI-1   -              -              A fake of SSI-1",
    ]
    assert ran() == [] and not Path("out").exists()


def test_the_list_tells_what_is_kept(run, fakes, tmp_path):
    run("reproduce", "CEI-10", "ssi", "--quick")
    (tmp_path / "fault").write_text("ValueError")
    run("reproduce", "cei-4")
    result = run("reproduce")
    assert result.stdout.splitlines()[2:] == [
        "  CEI-4   1 of 3 cases   -              A fake of CEI-4",
        "  CEI-10  -              in direction   A fake of CEI-10",
        "joins",
        "  SSI-1   -              does not hold  A fake of SSI-1",
    ]
    text = (fakes / "joins/a.py").read_text()
    (fakes / "joins/a.py").write_text(text.replace("def draw", "def drew"))
    assert "  SSI-1   -              broken         A fake" in run("reproduce").stdout


def test_a_run_of_all(run, fakes, ran):
    result = run("reproduce", "--quick")
    assert result.exit_code == 0, result.stderr
    assert len(ran()) == 6
    for told in ("CEI-4", "holds in direction,", "does not hold", "1 in all, [and] so on"):
        assert told in result.stdout
    assert result.stdout.endswith("\nreport: out/reproduce/quick/report.html\n")
    assert "CEI-10, case 2 of 2: [case 1]\n" in result.stderr
    assert "CEI-4: holds (0." in result.stderr
    assert "measuring" in result.stderr and "measuring" not in result.stdout
    report = Path("out/reproduce/quick/report.html").read_text()
    assert all(f'id="{id}"' in report for id in ("CEI-4", "CEI-10", "SSI-1"))


def test_the_table_fits_80_columns(fakes, tmp_path):
    done = _alone(fakes, tmp_path, "--quick", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_json(run, fakes, tmp_path):
    result = run("reproduce", "cei", "--json", "--out", tmp_path / "here")
    first, second = json.loads(result.stdout)
    assert first == {
        "claim": "CEI-4",
        "verdict": "holds",
        "paper": "CEI-4 is <so>.",
        "measured": "5 in all, [and] " + "so on " * 12,
        "scale": "full: the paper's",
        "figure": str(tmp_path / "here" / "full" / "CEI-4.png"),
        "note": "a note",
    }
    assert second["verdict"] == "holds in direction, not in size"
    assert Path(first["figure"]).read_bytes()[:4] == b"\x89PNG"
    assert Path(first["figure"]).with_suffix(".svg").exists()


def test_kept_results_are_used_and_it_is_said(run, fakes, ran):
    run("reproduce", "CEI-4")
    ran()
    result = run("reproduce", "CEI")
    told = "CEI-4: 3 of 3 cases kept from an earlier run, --fresh measures again\n"
    assert told in result.stderr and "CEI-10: 3 of 3" not in result.stderr
    assert ran() == ["CEI-10 0", "CEI-10 1", "CEI-10 2"]
    result = run("reproduce", "CEI-4", "--fresh")
    assert len(ran()) == 3 and "kept" not in result.stderr


def test_the_report_has_what_earlier_runs_gave(run, fakes, ran):
    run("reproduce", "CEI-4")
    run("reproduce", "SSI-1", "--quick")
    ran()
    run("reproduce", "CEI-10")
    assert len(ran()) == 3
    report = Path("out/reproduce/full/report.html").read_text()
    assert 'id="CEI-4"' in report and 'id="CEI-10"' in report and 'id="SSI-1"' not in report
    assert report.index('id="CEI-4"') < report.index('id="CEI-10"')
    text = (fakes / "cei/a.py").read_text()
    (fakes / "cei/a.py").write_text(text + "\nMORE = 1\n")
    run("reproduce", "CEI-10")
    assert ran() == []
    assert 'id="CEI-4"' not in Path("out/reproduce/full/report.html").read_text()


def test_a_broken_neighbour_is_left_out_of_the_report(run, fakes):
    run("reproduce", "CEI-4")
    text = (fakes / "cei/a.py").read_text()
    (fakes / "cei/a.py").write_text(text.replace("def draw", "def drew"))
    result = run("reproduce", "CEI-10")
    assert result.exit_code == 0
    assert "left out of the report: CEI-4 cannot be loaded: ValueError: there" in result.stderr


def _alone(fakes, tmp_path, *words, **env):
    return subprocess.run(
        [sys.executable, "-c", GO, "reproduce", *words, str(fakes)],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_killed_run_goes_on(fakes, tmp_path, ran):
    (tmp_path / "fault").write_text("KILL")
    done = _alone(fakes, tmp_path, "CEI-4")
    assert done.returncode == -signal.SIGKILL and ran() == ["CEI-4 0", "CEI-4 1"]
    done = _alone(fakes, tmp_path, "CEI-4", "--json")
    assert done.returncode == 0, done.stderr
    assert ran() == ["CEI-4 1", "CEI-4 2"]
    assert "CEI-4: 1 of 3 cases kept from an earlier run" in done.stderr
    assert json.loads(done.stdout)[0]["measured"].startswith("5 in all")


def test_ctrl_c(fakes, run, tmp_path, ran):
    (tmp_path / "fault").write_text("INT")
    result = run("reproduce", "CEI-4")
    assert result.exit_code == 130 and result.stdout == ""
    told = "the finished cases are kept in out/reproduce, the same command goes on from there\n"
    assert result.stderr.endswith(f"stopped; {told}")
    ran()
    (tmp_path / "fault").write_text("INT")
    result = run("reproduce", "CEI-4", "--fresh")
    assert "the same command without --fresh goes on" in result.stderr
    ran()
    assert run("reproduce", "CEI-4").exit_code == 0 and ran() == ["CEI-4 1", "CEI-4 2"]


def test_a_failing_case(run, fakes, tmp_path):
    (tmp_path / "fault").write_text("ValueError")
    result = run("reproduce", "--quick", "--json")
    assert result.exit_code == 1
    told = 'limen: CEI-4 case "[case 1]": ValueError: a bad [day] (cei/a.py, line 29)\n'
    assert result.stderr.endswith(told)
    assert [one["claim"] for one in json.loads(result.stdout)] == ["CEI-10", "SSI-1"]
    report = Path("out/reproduce/quick/report.html").read_text()
    assert "Not measured at this scale (quick): CEI-4." in report


def test_nothing_but_failures(run, fakes):
    for path in fakes.glob("*/[ab].py"):
        path.write_text(path.read_text().replace("def run", "def ran"))
    result = run("reproduce", "--quick")
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.count("there is no function run") == 3
    assert json.loads(run("reproduce", "--quick", "--json").stdout) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["CEI-9"], "there is no claim 'CEI-9'; there are: CEI-4, CEI-10, SSI-1"),
        (["--quick", "--full"], "--quick and --full: choose one of them"),
        (["--json"], "--json is for a run: name claims, or give --quick or --full"),
        (["--fresh"], "--fresh is for a run: name claims, or give --quick or --full"),
    ],
)
def test_refusals(run, fakes, words, told):
    result = run("reproduce", *words)
    assert result.exit_code == 1 and result.stderr == f"limen: {told}\n"


def test_no_experiments(run, tmp_path, monkeypatch):
    monkeypatch.setattr(claim, "folder", lambda: tmp_path)
    result = run("reproduce")
    assert result.exit_code == 1 and "no experiments are installed" in result.stderr


def test_without_matplotlib(run, fakes, ran, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("reproduce", "--quick")
    assert result.exit_code == 1 and ran() == []
    assert result.stderr == "limen: limen reproduce needs matplotlib: pip install 'limen[plot]'\n"
    assert run("reproduce").exit_code == 0


def test_a_bar_on_a_terminal(run, fakes, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    result = run("reproduce", "CEI-4")
    assert result.exit_code == 0, result.stderr
    assert "━" in result.stderr and "/3" in result.stderr and "CEI-4: [case " in result.stderr
