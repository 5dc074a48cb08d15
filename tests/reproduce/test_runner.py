"""Running: each case once, kept ones not again, faults of experiments told and survived."""

from __future__ import annotations

import pytest

from limen.reproduce.runner import ExperimentError, Outcome, kept, run
from limen.reproduce.store import Store


@pytest.fixture
def go(fakes, tmp_path):
    """Run what there is; the steps are kept in `go.steps`."""

    def go(scale="full", fresh=False):
        steps.clear()
        store = Store(tmp_path / "out", fakes.folder)
        return list(run(fakes.find(), scale, store, steps.append, fresh))

    steps = go.steps = []
    return go


def test_a_run_and_the_next(go, fakes, one):
    one()
    (outcome,) = go()
    assert outcome.verdict.word == "holds" and outcome.verdict.measured == "5 in all"
    assert outcome.results[2] == ({"name": "case 2", "i": 2}, {"squared": 4})
    assert outcome.scale == "full: the paper's" and outcome.seconds > 0
    assert "numba" in outcome.measured[0].machine and outcome.measured[0].at.endswith("+00:00")
    assert fakes.ran() == ["CEI-4 0", "CEI-4 1", "CEI-4 2"]
    assert [(s.name, s.number, s.cases, s.done, s.total) for s in go.steps] == [
        (f"case {i}", i + 1, 3, i, 3) for i in range(3)
    ]
    (again,) = go()
    assert fakes.ran() == [] and again.results == outcome.results
    assert [(s.name, s.number, s.cases) for s in go.steps] == [("", 3, 3)]


def test_quick_is_apart(go, fakes, one):
    one()
    go("full")
    fakes.ran()
    (outcome,) = go("quick")
    assert fakes.ran() == ["CEI-4 0", "CEI-4 1"] and outcome.scale == "quick: a tenth"


def test_fresh_measures_again(go, fakes, one):
    one()
    go()
    fakes.ran()
    go(fresh=True)
    assert len(fakes.ran()) == 3


def test_a_damaged_file_is_measured_again(go, fakes, one, tmp_path):
    one()
    go()
    fakes.ran()
    (file,) = (tmp_path / "out").rglob("1.json")
    file.write_text(file.read_text()[:20])
    (outcome,) = go()
    assert fakes.ran() == ["CEI-4 1"] and outcome.verdict.measured == "5 in all"
    assert (go.steps[0].name, go.steps[0].number) == ("", 2)
    assert (go.steps[1].name, go.steps[1].done, go.steps[1].total) == ("case 1", 2, 3)


def test_a_changed_source_is_measured_anew(go, fakes, one, tmp_path):
    one()
    go()
    fakes.ran()
    one('case["i"] ** 2', 'case["i"] ** 3')
    (outcome,) = go()
    assert len(fakes.ran()) == 3 and outcome.verdict.measured == "9 in all"
    assert len(list((tmp_path / "out" / "full" / "CEI-4").iterdir())) == 1  # the old ones are gone


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            'return {"squared"',
            'return 1 // (1 - case["i"]) and {"squared"',
            'CEI-4 case "case 1": ZeroDivisionError: integer division or modulo by zero '
            "(cei/fake.py, line 20)",
        ),
        ("return {", "raise ValueError; return {", 'CEI-4 case "case 0": ValueError (cei/'),
        ("return {", "return 3, {", 'CEI-4 case "case 0": TypeError: run() returned (3, {'),
        ("return {", 'return {"x": {1}, ', 'case "case 0": TypeError: the result is not JSON: it'),
        ("return [{", "return 7, [{", "CEI-4 cases: TypeError: the case 7 is not a dict with"),
        ("return [", "return []; [", "CEI-4 cases: TypeError: cases() returned [], not a list"),
        ("return Verdict(", "return Verdict(1 / 0, ", "CEI-4 verdict: ZeroDivisionError"),
        ("    total =", "    return 7\n    total =", "verdict() returned 7, not a Verdict"),
        ("PAPER", "import no_such\nPAPER", "CEI-4 cannot be loaded: ModuleNotFoundError: No mod"),
        ("PAPER", "if:\nPAPER", "CEI-4 cannot be loaded: SyntaxError: invalid syntax (fake.py, l"),
        ("def draw", "def drew", "CEI-4 cannot be loaded: ValueError: there is no function draw"),
    ],
)
def test_faults_of_experiments(go, fakes, one, old, new, told):
    one(old, new)
    fakes.write("vci/fine.py", "VCI-1")
    first, second = go()
    assert isinstance(first, ExperimentError) and told in str(first), str(first)
    assert isinstance(second, Outcome) and second.claim.id == "VCI-1"


def test_ctrl_c_is_no_fault_of_an_experiment(go, fakes, one):
    one("return {", 'if case["i"] == 2:\n        raise KeyboardInterrupt\n    return {')
    with pytest.raises(KeyboardInterrupt):
        go()
    assert len(fakes.ran()) == 3
    with pytest.raises(KeyboardInterrupt):
        go()
    assert fakes.ran() == ["CEI-4 2"]


def test_what_is_complete(go, fakes, tmp_path):
    fakes.write("cei/a.py", "CEI-1")
    fakes.write("cei/b.py", "CEI-2", ("return {", 'return 1 // (1 - case["i"]) and {'))
    fakes.write("cei/c.py", "CEI-3")
    go()
    claims, store = fakes.find(), Store(tmp_path / "out", fakes.folder)
    assert [one.claim.id for one in kept(claims, "full", store)] == ["CEI-1", "CEI-3"]
    assert list(kept(claims, "quick", store)) == []
    fakes.text(
        "cei/c.py", (fakes.folder / "cei/c.py").read_text().replace("import Check", "import")
    )
    sound, broken = kept(fakes.find(), "full", Store(tmp_path / "out", fakes.folder))
    assert sound.claim.id == "CEI-1"
    assert "CEI-3 cannot be loaded: " in str(broken)
