"""Every claim of the papers in its quick form: that it runs, is judged and drawn.

What is a fact must come out as such. What is a matter of speed or of size at the paper's parameters is
measured, and not asserted here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from limen.reproduce import claim, runner
from limen.reproduce.report import figure_of, write_report
from limen.reproduce.store import Store

CLAIMS = claim.find(claim.folder())
DONE = [f"CEI-{i}" for i in range(1, 9)] + [f"VCI-{i}" for i in range(1, 6)]
FACTS = {"CEI-1", "CEI-2", "CEI-3", "VCI-1", "VCI-2"}


def test_every_claim_is_there() -> None:
    assert [one.id for one in CLAIMS] == DONE


@pytest.mark.parametrize("one", CLAIMS, ids=lambda c: c.id)
def test_a_claim_in_its_quick_form(one: claim.Claim, tmp_path: Path) -> None:
    (outcome,) = runner.run([one], "quick", Store(tmp_path, claim.folder()), lambda step: None)
    assert isinstance(outcome, runner.Outcome), outcome
    assert outcome.verdict.checks and outcome.verdict.measured
    if one.id in FACTS:
        failing = [check for check in outcome.verdict.checks if check.result != "holds"]
        assert not failing
    assert figure_of(outcome, tmp_path).read_bytes()[:4] == b"\x89PNG"
    report = write_report(CLAIMS, [outcome], "quick", tmp_path).read_text(encoding="utf-8")
    assert f'id="{one.id}"' in report
