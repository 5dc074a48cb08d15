"""`limen demo` on small numbers: it passes its own check, and the check can fail."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from limen.cli import demo, market
from limen.cli.market import BruteForce, Market

SMALL = ("--queries", 2000, "--batches", 6, "--events", 500)


def test_checks_itself(run, tmp_path):
    result = run("demo", *SMALL)
    assert result.exit_code == 0, result.stderr
    assert "2,000 standing queries in " in result.stdout
    assert "added 200 queries" in result.stdout and "in force from batch 3 on" in result.stdout
    assert "removed 200 queries" in result.stdout and "from batch 5 on" in result.stdout
    assert "3,000 events, 6 quarantined" in result.stdout
    assert "checked 150 events of 6 batches against brute force: all equal" in result.stdout
    assert "\x1b" not in result.stdout
    folder = tmp_path / "out" / "demo"
    assert (folder / "demo.png").stat().st_size > 20_000
    assert pq.read_table(folder / "matches.parquet").column_names[-1] == "query_ids"


def test_is_the_same_each_time():
    one, other = Market(), Market()
    assert one.queries(50).lo.tolist() == other.queries(50).lo.tolist()
    assert str(one.events(50)[0].to_pydict()) == str(other.events(50)[0].to_pydict())


def test_a_wrong_answer_is_found(run, monkeypatch):
    right = BruteForce.matching
    monkeypatch.setattr(BruteForce, "matching", lambda self, *a, **k: right(self, *a, **k) | {-7})
    result = run("demo", *SMALL)
    assert result.exit_code == 1
    assert "missed: [-7], in excess: []" in result.stderr


def test_a_lost_event_is_found(run, monkeypatch):
    real = market.Market.events

    def lying(self, n):
        table, bad = real(self, n)
        return table, bad | True

    monkeypatch.setattr(market.Market, "events", lying)
    result = run("demo", *SMALL)
    assert result.exit_code == 1 and "were quarantined" in result.stderr


@pytest.mark.parametrize("values", [[], [0.0], [1.0, 2.0, 4.0]])
def test_sparkline(values):
    assert len(demo.sparkline(values)) == len(values)
    assert demo.sparkline([1.0, 4.0]) == "▃█"
