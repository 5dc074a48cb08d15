"""Matching time of the LCI schemes, Dlist and IS-lists as queries become more (Fig. 6)."""

from __future__ import annotations

from typing import Any

from limen.reproduce import Check, Verdict

from ..judging import (
    LOOKS,
    Results,
    doubling,
    lines,
    logarithmic,
    microseconds,
    ns,
    number,
    ratio,
    slower,
)
from . import sweep

CLAIM = "VCI-4"
PAPER = (
    "Dlist is the fastest, IS-lists degrade quickly as n grows; LCI-BC is a little slower than LCI, "
    "LCI-BV much slower, and with the distance table LCI-BV(DT) is even faster than LCI."
)
SCALES = sweep.SCALES
cases, run = sweep.cases, sweep.run


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    moderate, large = (
        [result for _, result in sweep.of_domain(results, r)] for r in parameters["r"]
    )
    here, there = (f"R = {r:,}" for r in parameters["r"])

    def longer(
        slow: str, fast: str, paper: str, than: str = "longer", **limits: float
    ) -> list[Check]:
        """Of both domains, where both schemes are there: with the report, and without."""
        found = []
        for where, some in ((here, moderate), (there, large)):
            if all(name in some[0]["random"] for name in (slow, fast)):
                take = "take" if slow == "is-list" else "takes"
                says = f"{where}: {LOOKS[slow][0]} {take} {than} than {LOOKS[fast][0]}"
                for order, how in (("random", "with the report"), ("find", "to find the lists")):
                    found.append(slower(f"{says}, {how}", paper, some, slow, fast, order, **limits))
        return found

    checks = [
        *longer("lci", "dlist", "Dlist is the best"),
        *longer("lci-bv-dt", "dlist", "Dlist is the best"),
        *longer("lci", "lci-bv-dt", "LCI-BV(DT) is even better than LCI"),
        *longer("lci-bc", "lci-bv-dt", "LCI-BV(DT) is better than the bitmap"),
        *longer("lci-bc", "lci", "a little bit higher", "a little longer", most=1.5),
        *longer("lci-bv", "lci", "can be much higher"),
        *longer("lci-bv", "lci-bv-dt", "substantially reduced by the table", least=1.2),
        *longer("is-list", "lci", "degrades quickly as n increases", "far longer", least=2),
        *longer("is-list", "lci-bc", "degrades quickly as n increases", "far longer", least=2),
        *longer("is-list", "lci-bv-dt", "degrades quickly as n increases", "far longer", least=2),
    ]
    first, last = moderate[0], moderate[-1]
    sizes = parameters["sizes"]

    def told(result: dict[str, Any]) -> str:
        others = ["dlist", "lci-bc", "lci", "lci-bv", "is-list"]
        times = [f"{LOOKS[n][0]} {ratio(result, n, 'lci-bv-dt', 'find')}" for n in others]
        return ", ".join(times)

    return Verdict(
        checks,
        f"times as long as LCI-BV(DT) takes to find its lists at {here}: {told(first)} at "
        f"n = {sizes[0]:,}; {told(last)} at n = {sizes[-1]:,}",
        f"A value finds {number(first['hits'])} to {number(last['hits'])} ids at {here}. The paper has "
        "LCI below 10 µs at the largest n, less than a nanosecond an id on a machine of its day: its "
        "matching time must end when the lists are found. Both are judged. With the report, drawn below, "
        "every scheme waits for memory at nearly every id once the entries outgrow the caches: Dlist, "
        "with the most entries, falls behind, and those with the same lists come together. LCI walks the "
        "whole bitmap of a value, N bits, where LCI-BC walks its covering segment: clipping saves time "
        "too, and the paper's order of the two turns round. The IS-lists of the paper are a C++ program "
        "of others; here they keep their markers in the same lists as the rest. Limen's own index "
        f"takes {number(ns(last, 'cei') / 1000)} µs with the report at {here} and n = {sizes[-1]:,} in a "
        f"batch, {number(ns(last, 'cei', 'single') / 1000)} µs with a call of Python's for each value; "
        f"IS-lists {number(ns(last, 'is-list') / 1000)} µs, laid out "
        f"{number(ns(last, 'is-list', 'laid') / 1000)} in a batch and "
        f"{number(ns(last, 'is-list', 'single') / 1000)} with single calls.",
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    figure.set_size_inches(11, 8.5)
    panels = figure.subplots(2, 2, sharex=True)
    for column, (r, part) in enumerate(zip(parameters["r"], "ab", strict=True)):
        mine = sweep.of_domain(results, r)
        names = sweep.names(parameters, {"R": r})
        top, low = panels[0][column], panels[1][column]
        lines(top, microseconds(mine, names, "n", "find"))
        lines(low, microseconds(mine, [*names, "cei"], "n"))
        top.set_title(f"Fig. 6({part}): finding the lists, R = {r:,}")
        low.set_title("with the report of the ids")
        for axes in (top, low):
            axes.set_ylabel("event matching time (µs)")
            logarithmic(axes)
        doubling(low, parameters["sizes"][::2], "number of queries n")
    panels[0][0].legend(fontsize=8.5, ncols=3, loc="center", bbox_to_anchor=(0.5, 0.3))
    panels[1][1].legend(fontsize=8.5)
