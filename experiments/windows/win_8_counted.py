"""Updates over windows of a number of rows (Fig. 17)."""

from __future__ import annotations

from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import TIE, Results, number
from .timed import (
    Pair,
    and_whole,
    bars,
    even,
    faster,
    listed,
    measured,
    more_bytes,
    moved,
    raw,
    runs,
    same,
    touched,
    workload,
)

CLAIM = "WIN-8"
PAPER = (
    "Over count-based windows CountRebuild and CountNoRebuild are faster to update than R-ins and D-ins. "
    "4x4 beats 8x2, and that 2x8. CountRebuild2x2 and CountNoRebuild2x2 beat Rebuild2x2 and "
    "NoRebuild2x2; the difference diminishes as n increases."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "a quarter of the paper's small window: about 125,000 results of 1,000 bytes over "
        "two windows of a number of rows, rates fluctuating by 4x; 3 of 36 updates a window in the "
        "middle of a cycle are timed; sub-indices and bytes counted over 36 updates of a window of "
        "10,000",
        "rows": 125_000,
        "row_bytes": 1000,
        "rounds": 3,
        "probes": 5,
        "counted_rows": 10_000,
        "updates": 36,
        "n": [4, 16],
    },
    "quick": {
        "scale": "3,000 results of 100 bytes, 1 update timed and counted",
        "rows": 3000,
        "row_bytes": 100,
        "rounds": 1,
        "probes": 1,
        "counted_rows": 0,
        "updates": 0,
        "n": [4, 16],
    },
}
FACTOR = 4.0
GRIDS = {4: ["2x2"], 16: ["4x4", "8x2", "2x8"]}
KINDS = ["Rebuild", "NoRebuild"]
RIVALS = {"Rebuild": "R-ins", "NoRebuild": "D-ins"}


def layouts(n: int) -> list[str]:
    square = GRIDS[n][0]
    mine = [f"Count{kind}{grid}" for grid in GRIDS[n] for kind in KINDS]
    return [
        *mine,
        *(f"{kind}{square}" for kind in KINDS),
        *(f"{one}{n}" for one in RIVALS.values()),
    ]


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"n={n}", "n": n} for n in parameters["n"]]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    p = parameters
    names, how = layouts(case["n"]), {"counted": True, "fluctuation": FACTOR}
    found = measured(runs(names, workload(p, **how)), p["rounds"], p["probes"])
    return and_whole(found, p, names, **how)


# -- the verdict ----------------------------------------------------------------------------------


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    timed, counts = _by_n(results)
    checks = [same(timed.values())]
    for kind in KINDS:
        checks += [_rivals(timed, kind), _grids(timed, kind), *_diminishes(timed, kind)]
    checks.append(_touched(counts))
    square = GRIDS[16][0]
    told = ", ".join(
        f"{rival}16 / Count{kind}{square} {even(timed[16], f'{rival}16', f'Count{kind}{square}')}"
        for kind, rival in RIVALS.items()
    )
    fewer = ", ".join(
        f"{rival}16 {number(more_bytes(counts[16], f'{rival}16', f'Count{kind}{square}'))}"
        for kind, rival in RIVALS.items()
    )
    return Verdict(
        checks,
        f"times of updates: {told}; bytes over a whole window: {fewer} times",
        "An update looks for expired results among those estimated for its own interval, the one "
        "before and the one after (section 4.2). With round-robin columns these are three columns, "
        "all of them at 2x2; with chronological ones mostly one, two where the interval is the first "
        "or last of a column. The timed updates lie in the middle of a column; the counted ones go "
        "through all of them, and times are scaled to their bytes. Bytes are those read and written: "
        "a sub-index that is looked through in vain is read and, where it gets nothing new, not "
        "written. For counted windows a file cannot be passed over by the least expiration in it, "
        "which is only estimated: all that is examined is read. What does not recluster adds results "
        "as files of their own, which is cheap in any number of columns, and writes files again to "
        "delete, so that it gains from fewer rows: 2x8 moves "
        f"{number(more_bytes(counts[16], 'CountNoRebuild2x8', 'CountNoRebuild4x4'))} times the bytes "
        "of 4x4, where in the paper insertions are the dear part. And the lead of chronological "
        f"columns need not diminish at 4x4: Rebuild4x4 touches {number(_lead(counts[16], '4x4'))} "
        f"times as many sub-indices as CountRebuild4x4, Rebuild2x2 {number(_lead(counts[4], '2x2'))} "
        "times as many as CountRebuild2x2.",
    )


def _by_n(results: Results) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]:
    """The timed updates and the counted ones; without these, the timed are told of."""
    timed = {case["n"]: result for case, result in results}
    return timed, {n: result.get("whole", result) for n, result in timed.items()}


def _lead(result: dict[str, Any], grid: str) -> float:
    return touched(result, f"Rebuild{grid}") / touched(result, f"CountRebuild{grid}")


def _rivals(timed: dict[int, dict[str, Any]], kind: str) -> Check:
    rival = RIVALS[kind]
    found: list[Pair] = [
        (result, f"{rival}{n}", f"Count{kind}{GRIDS[n][0]}") for n, result in timed.items()
    ]
    return faster(f"Count{kind} is faster to update than {rival}", "they outperform", found)


def _grids(timed: dict[int, dict[str, Any]], kind: str) -> Check:
    square, tall, wide = (f"Count{kind}{grid}" for grid in GRIDS[16])
    return faster(
        f"Count{kind}: 4x4 is faster to update than 8x2, and that than 2x8",
        "in this order",
        [(timed[16], tall, square), (timed[16], wide, square), (timed[16], wide, tall)],
    )


def _diminishes(timed: dict[int, dict[str, Any]], kind: str) -> list[Check]:
    found = [(n, f"{kind}{GRIDS[n][0]}", f"Count{kind}{GRIDS[n][0]}") for n in timed]
    pairs: list[Pair] = [(timed[n], slow, fast) for n, slow, fast in found]
    times = [even(*pair).middle for pair in pairs]
    size = [more_bytes(*pair) for pair in pairs]
    return [
        faster(
            f"Count{kind}2x2 is faster to update than {kind}2x2", "a lower update time", pairs[:1]
        ),
        Check.of(
            f"the lead of Count{kind} over {kind} diminishes as n increases",
            times[-1] < times[0],
            "diminishes",
            listed(pairs, map(number, times)) + raw(pairs),
            direction=size[-1] < size[0],
        ),
    ]


def _touched(counts: dict[int, dict[str, Any]]) -> Check:
    found = {
        name: touched(result, name) for result in counts.values() for name in result["touched"]
    }
    fewer = [
        found[f"Count{kind}{GRIDS[n][0]}"] * TIE < found[f"{kind}{GRIDS[n][0]}"]
        for kind in KINDS
        for n in counts
    ]
    return Check.of(
        "Count layouts touch fewer sub-indices than those with round-robin columns",
        all(fewer),
        "fewer sub-index reads and writes; all 4 of Rebuild2x2",
        "on average " + ", ".join(f"{name} {value:.3g}" for name, value in found.items()),
        direction=any(fewer),
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    figure.set_size_inches(11, 8)
    panels = figure.subplots(2, 2, sharey="row")
    for column, n in enumerate(parameters["n"]):
        timed, counts = (by_n[n] for by_n in _by_n(results))
        names, unit = layouts(n), f"R-ins{n}"
        top, low = panels[0][column], panels[1][column]
        bars(top, [(name, *even(timed, name, unit)) for name in names])
        base = moved(counts, unit)
        bars(low, [(name, *[moved(counts, name) / base] * 3) for name in names])
        top.set_title(f"Fig. 17: update time, n = {n}")
        low.set_title(f"bytes of an update, n = {n}")
        top.set_ylabel(f"time, {unit} = 1")
        low.set_ylabel(f"bytes, {unit} = 1")
