"""Matching time of the LCI schemes, Dlist and IS-lists as queries become more (Fig. 6)."""

from __future__ import annotations

from typing import Any

from limen.reproduce import Verdict

from ..timing import Results, doubling, lines, logarithmic, microseconds, ns, number, ratio, slower
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
    checks = [
        slower(f"{here}: Dlist is faster than LCI", "Dlist is the best", moderate, "lci", "dlist"),
        slower(
            f"{here}: Dlist is faster than LCI-BV(DT)",
            "Dlist is the best",
            moderate,
            "lci-bv-dt",
            "dlist",
        ),
        slower(f"{here}: LCI-BC is slower than LCI", "a little bit", moderate, "lci-bc", "lci"),
        slower(f"{here}: LCI-BV is slower than LCI", "can be much", moderate, "lci-bv", "lci"),
        slower(
            f"{here}: LCI is slower than LCI-BV(DT)",
            "LCI-BV(DT) is even better than LCI",
            moderate,
            "lci",
            "lci-bv-dt",
        ),
        slower(
            f"{here}: the distance table makes virtualization faster",
            "quite substantially",
            moderate,
            "lci-bv",
            "lci-bv-dt",
        ),
        slower(
            f"{there}: the distance table makes virtualization faster",
            "substantially, especially for a large n",
            large,
            "lci-bv",
            "lci-bv-dt",
        ),
        *(
            slower(f"{where}: IS-lists are slower than {label}", "by far", some, "is-list", name)
            for where, some, name, label in (
                (here, moderate, "lci", "LCI"),
                (here, moderate, "lci-bv-dt", "LCI-BV(DT)"),
                (there, large, "lci-bv-dt", "LCI-BV(DT)"),
                (there, large, "lci-bc", "LCI-BC"),
            )
        ),
    ]
    first, last = moderate[0], moderate[-1]
    sizes = parameters["sizes"]

    def told(result: dict[str, Any]) -> str:
        others = [("LCI-BV", "lci-bv"), ("IS-lists", "is-list"), ("Dlist", "dlist")]
        return ", ".join(f"{label} {ratio(result, n, 'lci-bv-dt')}" for label, n in others)

    return Verdict(
        checks,
        f"times as long as LCI-BV(DT) takes at {here}: {told(first)} at n = {sizes[0]:,}; "
        f"{told(last)} at n = {sizes[-1]:,}",
        "Matching includes the report of the ids, "
        f"{number(first['hits'])} to {number(last['hits'])} a value at {here}. They are linked in "
        "the order in which they came, so that a report waits for memory at nearly every id once the "
        "entries outgrow the caches: Dlist, with the most entries, falls behind, and the schemes with "
        "the same lists come together. LCI walks the whole bitmap of a value, N bits, where LCI-BC "
        "walks its covering segment: clipping saves time too, and the paper's order of the two turns "
        "round. The IS-lists of the paper are a C++ program of others; here they keep their markers in "
        "the same lists as the rest. The index that Limen uses takes "
        f"{number(ns(last, 'cei') / 1000)} µs at {here} and n = {sizes[-1]:,}, IS-lists "
        f"{number(ns(last, 'is-list') / 1000)} µs.",
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    panels = figure.subplots(1, 2)
    for axes, r, part in zip(panels, parameters["r"], "ab", strict=True):
        mine = sweep.of_domain(results, r)
        lines(axes, microseconds(mine, [*sweep.names(parameters, {"R": r}), "cei"], "n"))
        axes.set_title(f"Fig. 6({part}): matching time, R = {r:,}")
        axes.set_ylabel("average event matching time (µs)")
        logarithmic(axes)
        doubling(axes, parameters["sizes"][::2], "number of queries n")
        axes.legend(fontsize=8.5)
