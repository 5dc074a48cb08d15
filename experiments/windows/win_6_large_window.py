"""Update, probe and scan times over a large window (Figs. 14 to 16)."""

from __future__ import annotations

from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import Results, number, ratio
from .timed import (
    and_whole,
    bars,
    beside,
    even,
    faster,
    listed,
    measured,
    more_bytes,
    raw,
    runs,
    same,
    seconds,
    workload,
)

CLAIM = "WIN-6"
PAPER = (
    "Over a large window doubly partitioned layouts are up to three times as fast to update as the "
    "others; LazyNoRebuild before NoRebuild before Rebuild, which is 5 to 9 % slower to update than "
    "NoRebuild and 2 to 3 % faster to probe. Update times fall up to n = 25."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "2/5 of the paper's large window: 2,000,000 results of 1,000 bytes (2 GB), 36 updates a "
        "window, of which 2 in the middle of a cycle are measured, each followed by 10 probes and the "
        "first by a scan; bytes counted over all 36 updates of a window of 10,000",
        "rows": 2_000_000,
        "row_bytes": 1000,
        "rounds": 2,
        "probes": 10,
        "scan_every": 2,
        "counted_rows": 10_000,
        "updates": 36,
    },
    "quick": {
        "scale": "6,000 results of 100 bytes, 2 of 36 updates a window",
        "rows": 6000,
        "row_bytes": 100,
        "rounds": 2,
        "probes": 1,
        "scan_every": 2,
        "counted_rows": 0,
        "updates": 0,
    },
}
LAZY, NO_REBUILD, REBUILD = SQUARE = ["LazyNoRebuild5x5", "NoRebuild5x5", "Rebuild5x5"]
SMALLER = "Rebuild3x3"
RIVALS = ["R-ins4", "D-ins4"]
LAYOUTS = [SMALLER, REBUILD, NO_REBUILD, LAZY, *RIVALS]


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"{parameters['rows']:,} results"}]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    p = parameters
    found = measured(runs(LAYOUTS, workload(p)), p["rounds"], p["probes"], p["scan_every"])
    return and_whole(found, p, LAYOUTS)


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    result = results[0][1]
    pairs = [(result, rival, mine) for mine in (SMALLER, *SQUARE) for rival in RIVALS]
    best = max(pairs, key=lambda pair: even(*pair).middle)
    most = even(*best)
    checks = [
        same([result]),
        Check.of(
            "doubly partitioned layouts are up to three times as fast to update (2.5 or more is taken "
            "for it)",
            most.middle >= 2.5,
            "3",
            listed(pairs, [even(*pair) for pair in pairs]) + raw(pairs),
            direction=most.middle > 1.5,
        ),
        faster("all of them are faster to update than R-ins and D-ins", "Fig. 14", pairs, "update"),
        faster(
            "LazyNoRebuild is faster to update than NoRebuild, and that than Rebuild",
            "in this order",
            [(result, NO_REBUILD, LAZY), (result, REBUILD, NO_REBUILD)],
        ),
        _between(result, REBUILD, NO_REBUILD, "update", "slower to update", (1.02, 1.15), "1.05"),
        _between(
            result, NO_REBUILD, REBUILD, "probe", "faster to probe", (1.0, 1.1), "1.02 to 1.03"
        ),
        faster(
            "update times fall with n still: Rebuild5x5 is faster than 3x3",
            "Fig. 14: falling at all n",
            [(result, SMALLER, REBUILD)],
        ),
    ]
    apart = seconds(result, REBUILD, "scan") / seconds(result, REBUILD, "probe")
    return Verdict(
        checks,
        f"{best[1]} takes {most} times as long to update as {best[2]}, and moves "
        f"{number(more_bytes(*best))} times as many bytes",
        "The window is the paper's divided by 2.5, as the disk and the time for it ask. NoRebuild and "
        "the lazy layout leave files that only get additions as they are, so that they gain more on "
        "Rebuild than with the paper's buckets, while D-ins writes every file again, since each holds "
        "something expired; R-ins the same and sorts it. The archives fit the page cache: the paper's "
        "did not. With two rounds the least and the greatest are all there is. Few updates are timed, "
        "and not all of a cycle: updates are compared by their times scaled to the bytes that a whole "
        f"window of updates moves. A scan of Rebuild5x5 takes {number(apart)} times as long as a probe.",
    )


def _between(
    result: dict[str, Any],
    slow: str,
    fast: str,
    what: str,
    says: str,
    limits: tuple[float, float],
    paper: str,
) -> Check:
    found = even(result, slow, fast) if what == "update" else ratio(result, slow, fast, what)
    name = slow if what == "update" else fast
    other = fast if what == "update" else slow
    return Check.of(
        f"{name} is slightly {says} than {other} ({number(limits[0])} to {number(limits[1])} times is "
        "taken for it)",
        limits[0] <= found.middle <= limits[1],
        paper,
        str(found),
        direction=found.middle > 1,
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    result = results[0][1]
    panels = figure.subplots(1, 3)
    for axes, what, number_of in zip(
        panels, ("update", "probe", "scan"), (14, 15, 16), strict=True
    ):
        bars(axes, [beside(result, name, RIVALS[0], what) for name in LAYOUTS])
        axes.set_title(f"Fig. {number_of}: {what}")
    panels[0].set_ylabel(f"time, that of {RIVALS[0]} = 1")
