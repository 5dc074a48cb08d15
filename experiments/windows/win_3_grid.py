"""Rows against columns: Rebuild4x4, Rebuild2x8 and Rebuild8x2 (Fig. 9)."""

from __future__ import annotations

from typing import Any

from limen.archive.layouts import Layout
from limen.reproduce import Check, Verdict

from ..judging import TIE, Results, number, ratio
from .timed import bars, beside, faster, measured, more_bytes, runs, same, touched, workload

CLAIM = "WIN-3"
PAPER = (
    "Of Rebuild4x4, 2x8 and 8x2, the one with G = E is the quickest to update, since it touches 7 "
    "sub-indices and the others 9; 8x2 beats 2x8. Probes and scans hardly differ."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "the paper's small window: 500,000 results of 1,000 bytes, 36 updates a window, of "
        "which 4 are measured, each followed by 5 probes, every second by a scan",
        "rows": 500_000,
        "row_bytes": 1000,
        "rounds": 4,
        "probes": 5,
        "scan_every": 2,
    },
    "quick": {
        "scale": "6,000 results of 100 bytes, 3 of 36 updates a window",
        "rows": 6000,
        "row_bytes": 100,
        "rounds": 3,
        "probes": 2,
        "scan_every": 2,
    },
}
SQUARE, WIDE, TALL = LAYOUTS = ["Rebuild4x4", "Rebuild2x8", "Rebuild8x2"]
ALIKE = 1.1  # times that differ by no more hardly differ


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "n=16"}]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    p = parameters
    return measured(runs(LAYOUTS, workload(p)), p["rounds"], p["probes"], p["scan_every"])


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    result = results[0][1]
    others = [(result, name, SQUARE) for name in (WIDE, TALL)]
    counts = [touched(result, name) for name in LAYOUTS]
    checks = [
        same([result]),
        Check.of(
            "an update touches 7 sub-indices of 4x4 and 9 of the others",
            counts == [Layout.of(name).touched for name in LAYOUTS],
            "7, 9, 9",
            ", ".join(map(number, counts)),
        ),
        faster("4x4 is the quickest to update", "the lowest update time", others),
        Check.of(
            "4x4 reads and writes the fewest bytes",
            all(more_bytes(*pair) > TIE for pair in others),
            "",
            ", ".join(f"{name} {number(more_bytes(r, name, to))} times" for r, name, to in others),
        ),
        faster("8x2 is quicker to update than 2x8", "8x2 is faster", [(result, WIDE, TALL)]),
        *(_alike(result, what) for what in ("probe", "scan")),
    ]
    told = ", ".join(f"{name} {ratio(result, name, SQUARE, 'update')}" for name in (WIDE, TALL))
    return Verdict(
        checks,
        f"an update takes, times that of 4x4: {told}; bytes: "
        + ", ".join(f"{name} {number(more_bytes(result, name, SQUARE))}" for name in (WIDE, TALL)),
        "In the paper 8x2 wins over 2x8 because an insertion has to look through a whole bucket while "
        "expired results are taken off its front, and E is the number of sub-indices with insertions. "
        "Here a touched sub-index is read, sorted and written whole, whatever was done to it, so G and "
        "E count alike and the two differ by as much as chance and the disk make them; less than "
        f"{TIE - 1:.0%} apart is no lead. {ALIKE - 1:.0%} is taken for 'negligible'.",
    )


def _alike(result: dict[str, Any], what: str) -> Check:
    ratios = [ratio(result, name, SQUARE, what) for name in (WIDE, TALL)]
    apart = max(max(r.middle, 1 / r.middle) for r in ratios)
    return Check.of(
        f"{what}s take about as long in all three",
        apart < ALIKE,
        "a negligible difference",
        f"times that of 4x4: 2x8 {ratios[0]}, 8x2 {ratios[1]}",
        direction=apart < 1.25,
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    result = results[0][1]
    panels = figure.subplots(1, 3, sharey=True)
    for axes, what in zip(panels, ("update", "probe", "scan"), strict=True):
        bars(axes, [beside(result, name, SQUARE, what) for name in LAYOUTS])
        axes.set_title(f"Fig. 9: {what}")
    panels[0].set_ylabel("time, that of Rebuild4x4 = 1")
