"""Every claim of the papers in its quick form: that it runs, is judged and drawn.

What is a fact must come out as such. What is a matter of speed or of size at the paper's parameters is
measured, and not asserted here.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from limen.reproduce import claim, runner
from limen.reproduce.report import figure_of, write_report
from limen.reproduce.store import Store

CLAIMS = claim.find(claim.folder())
DONE = [
    f"{paper}-{i}"
    for paper, n in (("CEI", 8), ("VCI", 5), ("BMQ", 4), ("HIST", 1), ("SSI", 3), ("WIN", 10))
    for i in range(1, n + 1)
]
FACTS = {
    *("CEI-1", "CEI-2", "CEI-3", "VCI-1", "VCI-2", "BMQ-1", "BMQ-3", "SSI-1", "SSI-2", "SSI-3"),
    *("WIN-1", "WIN-2", "WIN-9"),
}
WRONG_IN_PRINT = {  # the facts of which the paper has another form
    "WIN-1": "Chronological: the sequence of sizes, var_Chr and d(n, p)",
    "WIN-2": "Lazy: at most 1/G more space than an equivalent Rebuild",
}


def test_every_claim_is_there() -> None:
    assert [one.id for one in CLAIMS] == DONE


@pytest.mark.parametrize("one", CLAIMS, ids=lambda c: c.id)
def test_a_claim_in_its_quick_form(one: claim.Claim, tmp_path: Path) -> None:
    (outcome,) = runner.run([one], "quick", Store(tmp_path, claim.folder()), lambda step: None)
    assert isinstance(outcome, runner.Outcome), outcome
    assert outcome.verdict.checks and outcome.verdict.measured
    if one.id in FACTS:
        failing = [check.says for check in outcome.verdict.checks if check.result != "holds"]
        assert failing == [WRONG_IN_PRINT[one.id]] if one.id in WRONG_IN_PRINT else not failing
    assert figure_of(outcome, tmp_path).read_bytes()[:4] == b"\x89PNG"
    report = write_report(CLAIMS, [outcome], "quick", tmp_path).read_text(encoding="utf-8")
    assert f'id="{one.id}"' in report


@pytest.fixture
def judging() -> ModuleType:
    next(one for one in CLAIMS if one.id == "CEI-4").load()
    return importlib.import_module(f"{claim.PACKAGE}.judging")


@pytest.mark.parametrize(
    ("ratios", "limits", "result"),
    [
        ([1.5, 1.2, 3.0], {}, "holds"),
        ([1.5, 1.01, 3.0], {}, "direction"),  # a tie is no lead
        ([1.5, 0.9, 0.8], {}, "fails"),
        ([0.9, 0.8, 0.5], {}, "fails"),
        ([1.5, 1.2, 1.9], {"least": 2}, "direction"),
        ([1.5, 1.2, 2.1], {"least": 2}, "holds"),
        ([1.3, 1.2, 1.1], {"most": 1.5}, "holds"),
        ([9.0, 1.2, 1.1], {"most": 1.5}, "direction"),
    ],
)
def test_slower(
    judging: ModuleType, ratios: list[float], limits: dict[str, float], result: str
) -> None:
    results = [
        {"random": {"ui": [r * 50, r * 100, r * 101], "dlist": [50, 100, 101]}} for r in ratios
    ]
    check = judging.slower("it is", "so", results, "ui", "dlist", **limits)
    assert check.result == result
    assert ", ".join(f"{r:.3g}" for r in ratios) in check.measured


def test_a_ratio_is_taken_within_a_round(judging: ModuleType) -> None:
    result = {"random": {"ui": [10, 40, 90], "dlist": [10, 20, 30]}}
    assert judging.ratio(result, "ui", "dlist") == (2, 1, 3)
