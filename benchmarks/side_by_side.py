"""Two things measured in turn in one run: their times, the ratio and its spread.

Machines are noisy, so a time alone means nothing: each repetition runs both, and the ratio of the two
is taken within the repetition. Reported are medians; the spread is the least and greatest ratio.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from limen.reproduce.machine import machine

Row = dict[str, Any]


def seconds(call: Callable[[], object]) -> float:
    """One run; what it returns is dropped after the clock has stopped."""
    begin = time.perf_counter()
    result = call()
    taken = time.perf_counter() - begin
    del result
    return taken


def compare(
    case: str,
    rival: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    work: float,
    unit: str,
    goal: float | None = None,
    repeats: int = 5,
    **more: Any,
) -> Row:
    """A row: how many units of work a second each does, and how many times theirs ours is."""
    ours(), theirs()
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeats)]
    return row(case, rival, pairs, work=work, unit=unit, goal=goal, **more)


def row(
    case: str,
    rival: str,
    pairs: list[tuple[float, float]],
    *,
    work: float,
    unit: str,
    goal: float | None = None,
    **more: Any,
) -> Row:
    """A row of times taken elsewhere: ours and theirs of each repetition."""
    ratios = [their / our for our, their in pairs]
    our, their = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(ratios)
    return {
        "case": case,
        "rival": rival,
        "ours": round(work / our, 3),
        "theirs": round(work / their, 3),
        "unit": unit,
        "ratio": round(ratio, 3),
        "spread": [round(min(ratios), 3), round(max(ratios), 3)],
        "goal": None if goal is None else f">= {goal:g}",
        "holds": None if goal is None else ratio >= goal,
        **more,
    }


def rate(
    case: str, ours: Callable[[], object], *, work: float, unit: str, goal: float, repeats: int = 5
) -> Row:
    """A row for a rate that is to be reached, the rival being the goal itself."""
    ours()
    rates = [work / seconds(ours) for _ in range(repeats)]
    ratio = statistics.median(rates) / goal
    return {
        "case": case,
        "rival": "the goal",
        "ours": round(statistics.median(rates), 3),
        "theirs": goal,
        "unit": unit,
        "ratio": round(ratio, 3),
        "spread": [round(min(rates) / goal, 3), round(max(rates) / goal, 3)],
        "goal": ">= 1",
        "holds": ratio >= 1,
    }


def result(bench: str, rows: list[Row]) -> dict[str, Any]:
    return {"bench": bench, "machine": machine(), "rows": rows}
