"""What a fluctuating rate of results costs each layout (Fig. 13)."""

from __future__ import annotations

import statistics
from math import isqrt
from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import GREY, Ratio, Results, number
from .timed import LOOKS, Run, counted, measured, of_family, spread, workload

CLAIM = "WIN-5"
PAPER = (
    "With rates that vary randomly by a factor of up to four, updates take longer. Doubly partitioned "
    "layouts lose less than R-ins and D-ins, and more with a larger n, R-ins and D-ins with a smaller; "
    "Rebuild and R-ins lose less than NoRebuild and D-ins."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "a quarter of the paper's small window: 125,000 results of 1,000 bytes, 4 of 36 updates "
        "a window timed; bytes counted over 48 updates of a window of 10,000",
        "rows": 125_000,
        "row_bytes": 1000,
        "n": [4, 16],
        "rounds": 4,
        "probes": 5,
        "counted_rows": 10_000,
        "updates": 48,
    },
    "quick": {
        "scale": "3,000 results of 100 bytes, n = 4 and 9, 1 update timed and counted",
        "rows": 3000,
        "row_bytes": 100,
        "n": [4, 9],
        "rounds": 1,
        "probes": 1,
        "counted_rows": 0,
        "updates": 0,
    },
}
FACTOR = 4.0
SQUARE, RIVALS = ["Rebuild", "NoRebuild"], ["R-ins", "D-ins"]
APART = {"timed": 0.02, "counted": 0.01}  # losses that differ by less are not told apart


def layouts(n: int) -> list[str]:
    side = isqrt(n)
    return [f"{name}{side}x{side}" for name in SQUARE] + [f"{name}{n}" for name in RIVALS]


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"n={n}, {how}", "n": n, "how": how}
        for n in parameters["n"]
        for how in ("timed", "counted")[: 2 if parameters["updates"] else 1]
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    p = parameters
    rows = p["counted_rows"] if case["how"] == "counted" else p["rows"]
    sized = p | {"rows": rows}
    every = [
        Run(f"{name} {told}", name, workload(sized, fluctuation=factor))
        for told, factor in (("steady", 1.0), ("fluctuating", FACTOR))
        for name in layouts(case["n"])
    ]
    if case["how"] == "counted":
        return counted(every, p["updates"])
    return measured(every, p["rounds"], p["probes"])


def loss(result: dict[str, Any], name: str, what: str) -> Ratio:
    """Times as much by time, or by bytes, for what the archive holds as at a steady rate."""
    values = {}
    for told in ("steady", "fluctuating"):
        key = f"{name} {told}"
        costs = (
            [a + b for a, b in zip(result["read"][key], result["written"][key], strict=True)]
            if what == "bytes"
            else result[what][key]
        )
        values[told] = [c / h for c, h in zip(costs, result["held"][key], strict=True)]
    ratios = [b / a for a, b in zip(values["steady"], values["fluctuating"], strict=True)]
    found = spread(ratios)
    if what != "bytes":
        return found
    whole = statistics.mean(values["fluctuating"]) / statistics.mean(values["steady"])
    return Ratio(whole, found.least, found.most)


# -- the verdict ----------------------------------------------------------------------------------


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    losses = {
        how: {
            (case["n"], of_family(name)): loss(result, name, what)
            for case, result in results
            if case["how"] == _how(parameters, how)
            for name in layouts(case["n"])
        }
        for how, what in (("timed", "update"), ("counted", "bytes"))
    }
    small, large = parameters["n"][0], parameters["n"][-1]

    def less(says: str, paper: str, pairs: list[tuple[tuple[int, str], tuple[int, str]]]) -> Check:
        """That the first of each pair loses less, or no more than the other."""
        found = {how: [of[b].middle - of[a].middle for a, b in pairs] for how, of in losses.items()}
        clear = [min(gaps) > -APART[how] and max(gaps) > APART[how] for how, gaps in found.items()]
        return Check.of(
            says,
            all(clear),
            paper,
            "by time "
            + ", ".join(_against(losses["timed"], pair) for pair in pairs)
            + "; by bytes "
            + ", ".join(_against(losses["counted"], pair) for pair in pairs),
            direction=any(clear),
        )

    checks = [
        *(
            less(
                f"{mine} loses less than {rival}",
                "more adaptable",
                [((n, mine), (n, rival)) for n in parameters["n"]],
            )
            for mine, rival in zip(SQUARE, RIVALS, strict=True)
        ),
        less(
            "Rebuild and NoRebuild lose more with a larger n",
            "more significantly affected for larger n",
            [((small, name), (large, name)) for name in SQUARE],
        ),
        less(
            "R-ins and D-ins lose more with a smaller n",
            "the worst performance for small n",
            [((large, name), (small, name)) for name in RIVALS],
        ),
        less(
            "Rebuild and R-ins lose less than NoRebuild and D-ins",
            "more resilient",
            [
                ((n, a), (n, b))
                for n in parameters["n"]
                for a, b in (("Rebuild", "NoRebuild"), ("R-ins", "D-ins"))
            ],
        ),
    ]
    told = "; ".join(
        f"n = {n}: "
        + ", ".join(f"{name} {losses['timed'][n, name]}" for name in (*SQUARE, *RIVALS))
        for n in parameters["n"]
    )
    counts = "; ".join(
        f"n = {n}: "
        + ", ".join(
            f"{name} {number(losses['counted'][n, name].middle)}" for name in (*SQUARE, *RIVALS)
        )
        for n in parameters["n"]
    )
    return Verdict(
        checks,
        f"an update takes, times that at a steady rate: {told}; bytes: {counts}",
        "Both are for what the archive holds at the time, since at a fluctuating rate a window holds now "
        "more, now less. Archives at either rate are updated in turn. Here R-ins and D-ins write all "
        "they hold at every update, at any rate, so that fluctuation changes nothing but how much that "
        "is; and Rebuild and NoRebuild touch the same share of their sub-indices, which are a little "
        "larger or smaller in turn. The paper lets buckets of a fixed size overflow, which takes D-ins "
        "and NoRebuild most; files have no fixed size. Losses less than "
        f"{APART['timed']:.0%} apart by time or {APART['counted']:.0%} by bytes are a tie. A statement "
        "holds if time and bytes both bear it out, and in direction if one of them does.",
    )


def _how(parameters: dict[str, Any], how: str) -> str:
    """Without counted updates, those that were timed are told of."""
    return how if parameters["updates"] else "timed"


def _against(losses: dict[tuple[int, str], Ratio], pair: Any) -> str:
    (n, a), (m, b) = pair
    return (
        f"{a} at {n} {number(losses[n, a].middle)} against {b} at {m} {number(losses[m, b].middle)}"
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    panels = figure.subplots(1, 2, sharey=True)
    shown = (("timed", "update", "time of an update"), ("counted", "bytes", "bytes of an update"))
    for axes, (how, what, title) in zip(panels, shown, strict=True):
        found = [
            (name, loss(result, name, what))
            for case, result in results
            if case["how"] == _how(parameters, how)
            for name in layouts(case["n"])
        ]
        for i, (name, one) in enumerate(found):
            axes.bar(i, one.middle, color=LOOKS[of_family(name)][0], width=0.7)
            if how == "timed":
                axes.plot([i, i], [one.least, one.most], color="#2B3138", lw=1.2)
        axes.axhline(1, color=GREY, lw=1)
        axes.set_xticks(range(len(found)), [name for name, _ in found], rotation=60, ha="right")
        axes.tick_params(axis="x", labelsize=8.5)
        axes.grid(axis="x", visible=False)
        axes.set_title(f"Fig. 13: {title}")
    panels[0].set_ylabel("fluctuating by 4x, steady = 1")
