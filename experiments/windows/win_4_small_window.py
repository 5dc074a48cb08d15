"""Update, probe and scan times of all layouts as sub-indices become more (Figs. 10 to 12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isqrt
from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import TIE, Results, logarithmic, number, ratio
from .timed import (
    Pair,
    and_whole,
    even,
    faster,
    level,
    lines,
    listed,
    measured,
    more_bytes,
    of_family,
    raw,
    runs,
    same,
    seconds,
    workload,
)

CLAIM = "WIN-4"
PAPER = (
    "Doubly partitioned updates are at least twice as fast as those of REINDEX, DEL and WATA as n grows, "
    "round-robin ones 10 to 20 % faster than chronological. LazyNoRebuild updates fastest, then "
    "LazyRebuild, NoRebuild, Rebuild; probes and scans are in the opposite order. Probes are two orders "
    "of magnitude faster than scans."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "the paper's small window: 500,000 results of 1,000 bytes, n = 1..25, 36 updates a "
        "window, of which 3 in the middle of a cycle are measured, each followed by 5 probes and the "
        "first and last by a scan; bytes counted over all 36 updates of a window of 10,000",
        "rows": 500_000,
        "row_bytes": 1000,
        "n": [1, 4, 9, 16, 25],
        "rounds": 3,
        "probes": 5,
        "scan_every": 2,
        "counted_rows": 10_000,
        "updates": 36,
    },
    "quick": {
        "scale": "3,000 results of 100 bytes, n = 1, 4 and 9, 1 of 36 updates a window",
        "rows": 3000,
        "row_bytes": 100,
        "n": [1, 4, 9],
        "rounds": 1,
        "probes": 1,
        "scan_every": 2,
        "counted_rows": 0,
        "updates": 0,
    },
}
SQUARE = ["Rebuild", "NoRebuild", "LazyRebuild", "LazyNoRebuild", "ChronologicalRebuild"]
RIVALS = ["R-ins", "D-ins", "WATA"]
ROBIN = "Rebuild"
CHRONOLOGICAL = "ChronologicalRebuild"
UPDATES = ["LazyNoRebuild", "LazyRebuild", "NoRebuild", "Rebuild"]  # the quickest first
READS = UPDATES[::-1]


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"n={n}", "n": n} for n in parameters["n"]]


def layouts(n: int) -> list[str]:
    """Those that the paper tests with so many sub-indices."""
    side = isqrt(n)
    square = [] if n == 1 else [one for one in SQUARE if n > 4 or not one.startswith("Lazy")]
    rivals = RIVALS if n > 1 else RIVALS[:2]
    return [f"{name}{side}x{side}" for name in square] + [f"{name}{n}" for name in rivals]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    p = parameters
    names = layouts(case["n"])
    found = measured(runs(names, workload(p)), p["rounds"], p["probes"], p["scan_every"])
    return and_whole(found, p, names)


def named(n: int, family: str) -> str | None:
    return next((name for name in layouts(n) if of_family(name) == family), None)


def pairs(results: Results, slow: str, fast: str) -> list[Pair]:
    """The two, wherever both are."""
    found = []
    for case, result in results:
        names = named(case["n"], slow), named(case["n"], fast)
        if names[0] and names[1]:
            found.append((result, names[0], names[1]))
    return found


# -- the verdict ----------------------------------------------------------------------------------


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    last_n = parameters["n"][-1]
    largest = results[-1][1]
    checks = [
        same([result for _, result in results]),
        *_twice(results),
        _round_robin(results),
        _order("LazyNoRebuild, LazyRebuild, NoRebuild, Rebuild is the order", results, "update"),
        _rebuild(results),
        _order("Rebuild, NoRebuild, LazyRebuild, LazyNoRebuild is the order", results, "probe"),
        _order("Rebuild, NoRebuild, LazyRebuild, LazyNoRebuild is the order", results, "scan"),
        *_probes(results),
        *_turns(results),
        _orders(results),
    ]
    told = ", ".join(
        f"{rival} {even(largest, str(named(last_n, rival)), str(named(last_n, ROBIN)))}"
        for rival in RIVALS
    )
    fewer = ", ".join(
        f"{rival} {number(more_bytes(*pairs(results, rival, ROBIN)[-1]))}" for rival in RIVALS
    )
    return Verdict(
        checks,
        f"at n = {last_n} an update takes, times that of Rebuild: {told}; bytes read and written: "
        f"{fewer}",
        "Here a sub-index is one or a few Parquet files that are replaced whole, since readers of the "
        "state before must find theirs. So DEL and WATA, which in the paper edit buckets in place, "
        "write again every file that holds something expired, much as REINDEX does, and NoRebuild "
        "gains more on Rebuild than in the paper: it neither sorts anew nor writes again what only "
        "gets additions, and can so overtake LazyRebuild; for it a sub-index is up to three files, "
        "each of which a probe reads. Round-robin makes sub-indices even; but what an update moves "
        "over a whole window is, by the bytes, what it is with chronological ones. A result "
        "lives for half a window on average. The files are in the page cache, where the paper read "
        "from a disk: its 600 s for a scan are a few seconds here, and what a probe costs is the "
        "number of files, not their size or order. Layouts of one n are measured in turn; those of "
        "different n one after the other. The timed updates of chronological and lazy layouts lie in "
        "the middle of a cycle. Few updates are timed, and not all of a cycle: updates are compared "
        "by their times scaled to the bytes that a whole window of updates moves.",
    )


def _twice(results: Results) -> list[Check]:
    return [
        faster(
            f"{label} is at least twice as fast to update as {rival} at the largest n",
            "by a factor of two as n grows",
            pairs(results, rival, family),
            least=2,
        )
        for family, label in ((CHRONOLOGICAL, "even chronological"), (ROBIN, "Rebuild"))
        for rival in RIVALS
    ]


def _round_robin(results: Results) -> Check:
    found = pairs(results, CHRONOLOGICAL, ROBIN)
    times = [even(*pair).middle for pair in found]
    return Check.of(
        "round-robin improves updates by 10 to 20 % over chronological (5 to 30 % is taken for it)",
        all(1.05 <= t <= 1.3 for t in times),
        "1.1 to 1.2",
        listed(found, map(number, times)) + raw(found),
        direction=sum(t > TIE for t in times) > len(times) / 2,
    )


def _order(says: str, results: Results, what: str) -> Check:
    """Each of four against the next; what is no more than a tie apart does not count against it."""
    order = UPDATES if what == "update" else READS
    found: list[Pair] = []
    for fast, slow in pairwise(order):
        found += pairs(results, slow, fast)
    times = [(even(*p) if what == "update" else ratio(*p, what)).middle for p in found]
    right = sum(t > 1 / TIE for t in times)
    more = raw(found) if what == "update" else ""
    return Check.of(
        f"{what}s: {says} from the quickest to the slowest",
        right == len(times),
        "in this order",
        f"{right} of {len(times)} neighbours: {listed(found, map(number, times))}{more}",
        direction=right > len(times) / 2,
    )


def _rebuild(results: Results) -> Check:
    found = pairs(results, ROBIN, "NoRebuild")
    times = [even(*pair).middle for pair in found]
    return Check.of(
        "Rebuild is about 5 % slower to update than NoRebuild at n < 9, under 2 % at large n (up to 10 "
        "and 5 % are taken for it)",
        all(1 / TIE < t < 1.1 for t in times) and times[-1] < 1.05,
        "1.05, 1.02",
        listed(found, map(number, times)) + raw(found),
        direction=all(t > 1 / TIE for t in times),
    )


def _probes(results: Results) -> list[Check]:
    several = [one for one in results if one[0]["n"] > 1]
    return [
        faster(
            f"{family} is slightly faster to probe than {rival}, or as fast",
            "slightly",
            pairs(several, rival, family),
            "probe",
            tie=1 / TIE,
            least=1 / TIE,
        )
        for family, rival in (("Rebuild", "R-ins"), ("NoRebuild", "D-ins"))
    ]


def _turns(results: Results) -> list[Check]:
    return [
        _least_at(results, ["Rebuild", "NoRebuild"], "n = 16", lambda n: n >= 9),
        _least_at(results, ["R-ins", "D-ins"], "below n = 9", lambda n: n < 9),
        _grows(results),
    ]


def _least_at(
    results: Results, families: Sequence[str], paper: str, fits: Callable[[int], bool]
) -> Check:
    told, least = [], []
    for family in families:
        times = {
            case["n"]: level(result, name, f"R-ins{case['n']}")
            for case, result in results
            if (name := named(case["n"], family))
        }
        best = min(times, key=lambda n: times[n])
        least.append(best)
        told.append(f"{family} " + ", ".join(f"{number(t)} s at {n}" for n, t in times.items()))
    return Check.of(
        f"the update time of {' and '.join(families)} is least "
        + ("at n = 9 or more" if fits(9) else "at n < 9 and grows from there"),
        all(fits(n) for n in least),
        paper,
        "; ".join(told),
        direction=any(fits(n) for n in least),
    )


def _grows(results: Results) -> Check:
    told, grown = [], []
    for family in ("Rebuild", "R-ins"):
        times = [
            seconds(result, name, "probe")
            for case, result in results
            if (name := named(case["n"], family))
        ]
        grown.append(times[-1] / times[0])
        told.append(f"{family} {', '.join(number(1000 * t) for t in times)} ms")
    return Check.of(
        "probes take longer as n grows",
        min(grown) > TIE,
        "more sub-indices are probed",
        "; ".join(told),
        direction=max(grown) > TIE,
    )


def _orders(results: Results) -> Check:
    found = [
        (case["n"], seconds(result, name, "scan") / seconds(result, name, "probe"))
        for case, result in results
        if (name := named(case["n"], ROBIN))
    ]
    return Check.of(
        "probes of Rebuild are two orders of magnitude faster than scans",
        all(times >= 100 for _, times in found),
        "100 times",
        ", ".join(f"{number(times)} at n = {n}" for n, times in found),
        direction=all(times >= 10 for _, times in found),
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    figure.set_size_inches(12, 5.2)
    panels = figure.subplots(1, 3)
    for axes, what, number_of in zip(
        panels, ("update", "probe", "scan"), (10, 11, 12), strict=True
    ):
        first_n, first = results[0][0]["n"], results[0][1]
        unit = seconds(first, str(named(first_n, "R-ins")), what)
        points = [
            (
                case["n"],
                {
                    of_family(name): _height(case, result, name, what) / unit
                    for name in result[what]
                },
            )
            for case, result in results
        ]
        lines(axes, points)
        axes.set_title(f"Fig. {number_of}: {what} times")
        axes.set_xticks(parameters["n"])
        axes.set_xlabel("n (number of sub-indices)")
        logarithmic(axes)
    panels[0].set_ylabel(f"time, that of R-ins{parameters['n'][0]} = 1")
    handles, labels = _all_labels(panels)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)


def _height(case: dict[str, Any], result: dict[str, Any], name: str, what: str) -> float:
    if what == "update":
        return level(result, name, f"R-ins{case['n']}")
    return seconds(result, name, what)


def _all_labels(panels: Any) -> tuple[list[Any], list[str]]:
    found = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    return list(found.values()), list(found)
