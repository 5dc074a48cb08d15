"""Storage of the LCI schemes, Dlist and IS-lists as queries become more (Fig. 7)."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from limen.reproduce import Check, Verdict

from ..judging import (
    Results,
    doubling,
    lines,
    logarithmic,
    model_mb,
    number,
    span,
)
from ..timing import closed, storage
from . import sweep

CLAIM = "VCI-5"
PAPER = (
    "At R = 5,000 LCI needs the most while n is small; Dlist crosses over LCI near n = 32,000 and "
    "IS-lists near 128,000; LCI-BC and LCI-BV(DT) stay below IS-lists. At R = 250,000 IS-lists need less "
    "while n is small and more as n grows."
)
SCALES = {
    scale: {**parameters, "scale": re.sub(r", [\d,]+ searches.*", "", parameters["scale"])}
    for scale, parameters in sweep.SCALES.items()
}
cases = sweep.cases


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    queries = closed(case["n"], case["R"], parameters["w"], searches=1)
    return {"sizes": storage(sweep.names(parameters, case), queries, parameters["L"])}


def size(result: dict[str, Any], name: str) -> float:
    return float(result["sizes"][name]["model"])


def crossing(results: Results, one: str, other: str) -> float | None:
    """The n at which one grows beyond the other, between two of the measured ones."""
    shares = [(case["n"], size(r, one) / size(r, other)) for case, r in results]
    for (n, share), (more, larger) in itertools.pairwise(shares):
        if share < 1 <= larger:
            at = np.interp(0, [np.log(share), np.log(larger)], [np.log(n), np.log(more)])
            return float(np.exp(at))
    return None


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    moderate, large = (sweep.of_domain(results, r) for r in parameters["r"])
    factor = parameters["sizes"][0] / 1000  # of the paper's n
    checks = [
        Check.of(
            f"R = {parameters['r'][0]:,}: LCI needs the most while n is small",
            max(sweep.MODERATE, key=lambda name: size(moderate[0][1], name)) == "lci",
            "for a smaller n",
            f"{number(size(moderate[0][1], 'lci') / size(moderate[0][1], 'dlist'))} times Dlist at "
            f"n = {parameters['sizes'][0]:,}",
        )
    ]
    told = []
    for name, label, paper in (("dlist", "Dlist", 32_000), ("is-list", "IS-lists", 128_000)):
        at = crossing(moderate, name, "lci")
        near = at is not None and 0.5 < at / factor / paper < 2
        checks.append(
            Check.of(
                f"R = {parameters['r'][0]:,}: {label} over LCI",
                near,
                f"near n = {paper * factor:,.0f}",
                f"near n = {at:,.0f}" if at else "not up to the largest n",
                direction=at is not None,
            )
        )
        told.append(f"{label} over LCI from n = {at:,.0f} on" if at else f"{label} never over LCI")
    for name, label in (("lci-bc", "LCI-BC"), ("lci-bv-dt", "LCI-BV(DT)")):
        shares = [size(r, "is-list") / size(r, name) for _, r in moderate]
        checks.append(
            Check.of(
                f"R = {parameters['r'][0]:,}: {label} needs less than IS-lists, even for a small n",
                all(s > 1 for s in shares),
                "even for a small n",
                f"IS-lists / {label}: " + ", ".join(number(s) for s in shares),
                direction=shares[-1] > 1,
            )
        )
        at = crossing(large, "is-list", name)
        ratio = size(large[0][1], "is-list") / size(large[0][1], name)
        checks.append(
            Check.of(
                f"R = {parameters['r'][1]:,}: IS-lists need less than {label} at first, then more",
                ratio < 1 and at is not None,
                "cross over as n grows",
                f"IS-lists / {label}: {number(ratio)} at n = {parameters['sizes'][0]:,}, "
                f"{number(size(large[-1][1], 'is-list') / size(large[-1][1], name))} at "
                f"n = {parameters['sizes'][-1]:,}; cross near n = "
                + (f"{at:,.0f}" if at else "none of these"),
                direction=ratio < 1,
            )
        )
    table = [size(r, "lci-bv-dt") / size(r, "lci-bv") for _, r in results]
    checks.append(
        Check.of(
            "the distance table is negligible",
            all(t < 1.01 for t in table),
            "negligibly small",
            f"LCI-BV(DT) / LCI-BV: {min(table):.5f} to {max(table):.5f}",
        )
    )
    markers = [r["sizes"]["is-list"]["entries"] / case["n"] for case, r in moderate]
    return Verdict(
        checks,
        "; ".join(told),
        "Storage is counted as in the CEI paper, 4 bytes a pointer and an id; for IS-lists that is 8 "
        f"bytes a node, a level and a marker, {span(markers)} markers a query at the smaller R. "
        "The program that the paper measured will have kept more beside them. Where lines cross is "
        "interpolated between two measured n.",
    )


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    panels = figure.subplots(1, 2)
    for axes, r, part in zip(panels, parameters["r"], "ab", strict=True):
        mine = sweep.of_domain(results, r)
        lines(axes, model_mb(mine, sweep.names(parameters, {"R": r}), "n"))
        axes.set_title(f"Fig. 7({part}): storage, R = {r:,}")
        axes.set_ylabel("storage cost (MB)")
        logarithmic(axes)
        doubling(axes, parameters["sizes"][::2], "number of queries n")
        for n, label in ((32_000, "Dlist"), (128_000, "IS-lists")) if part == "a" else ():
            at = n * parameters["sizes"][0] / 1000
            axes.axvline(at, color="#B8BEC5", ls=":")
            axes.text(at, axes.get_ylim()[0] * 1.1, f" {label}\n (paper)", fontsize=8, va="bottom")
    panels[0].legend(fontsize=8.5)
