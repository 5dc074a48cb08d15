"""Covering segments and distance tables: how many labels may lie over a value, and which."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from limen.kernels import lci_bc, lci_bv_dt, sci_bc
from limen.plotting.style import GREEN, GREY, ORANGE, short_numbers
from limen.reproduce import Check, Verdict

from ..exact import Array, held, log2, powers, same

CLAIM = "VCI-2"
PAPER = (
    "The constructs that can cover a value lie within L^2 + 1 consecutive coordinates in SCI and "
    "L(k + 1) + 1 in LCI; those that do cover it are L(L + 3)/2 and 2L + k (Eq. 3), at the same "
    "distances for every value, so that one table serves all; for non-integer events both are smaller."
)
SCALES = {
    "quick": {"scale": "L = 1..16 (SCI every one, LCI powers of two), all values", "longest": 16},
    "full": {"scale": "L = 1..64 (SCI every one, LCI powers of two), all values", "longest": 64},
}
CLIPPED = {"SCI": sci_bc, "LCI": lci_bc}


# -- as printed; for non-integer events as they follow -------------------------------------------


def segment(kind: str, length: int, whole: bool) -> int:
    group = length if kind == "SCI" else log2(length) + 1  # constructs that begin at a value
    return (length if whole else length - 1) * group + 1


def least(kind: str, length: int, whole: bool, j: int) -> int:
    """C_min of the value j: the label of the construct of length L that reaches it last."""
    group = length if kind == "SCI" else log2(length) + 1
    return (j - length + (not whole)) * group + group - 1


def table(kind: str, length: int, whole: bool) -> int:
    if kind == "SCI":
        return length * (length + 3) // 2 if whole else length * (length + 1) // 2
    return 2 * length + log2(length) if whole else 2 * length - 1


def eq_3(kind: str, length: int) -> int:
    """The sums of which Eq. 3 gives the closed form."""
    if kind == "SCI":
        return sum(range(1, length + 1)) + length
    k = log2(length)
    return sum(i * 2 ** (k - i) for i in range(1, k + 1)) + 2 * (k + 1)


# -- enumeration ---------------------------------------------------------------------------------


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"{kind}, {'integer' if whole else 'real'} events", "kind": kind, "whole": whole}
        for kind in ("SCI", "LCI")
        for whole in (True, False)
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    longest = parameters["longest"]
    lengths = range(1, longest + 1) if case["kind"] == "SCI" else powers(longest)
    return {"rows": [enumerated(case["kind"], length, case["whole"]) for length in lengths]}


def over(kind: str, length: int, whole: bool, size: int) -> list[Array]:
    """For each value j (or j + 1/2) of a domain, the coordinates of the constructs over it."""
    widths = range(1, length + 1) if kind == "SCI" else powers(length)
    a, b = np.array([(a, a + width) for a in range(size) for width in widths]).T
    events = np.arange(size) + (0 if whole else 0.5)
    return [np.flatnonzero((a <= x) & (x <= b)) for x in events]


def enumerated(kind: str, length: int, whole: bool) -> dict[str, Any]:
    size = 3 * length + 3
    labels = over(kind, length, whole, size)
    begin = length if whole else length - 1  # from here on nothing is cut off at the left
    spans = {int(found[-1] - found[0]) + 1 for found in labels[begin:]}
    distances = {tuple((found - found[0]).tolist()) for found in labels[begin:]}
    one = np.array(min(distances))
    lows = [least(kind, length, whole, j) for j in range(size)]
    early = [low + one for low in lows[:begin]]
    return {
        "L": length,
        "values": size - begin,
        "segment": sorted(spans),
        "tables": len(distances),
        "table": len(one),
        "wrong_ends": sum(
            [found[0], found[-1] + 1] != [low, low + segment(kind, length, whole)]
            for low, found in zip(lows[begin:], labels[begin:], strict=True)
        ),
        "early": [
            begin,
            sum(
                by_table[by_table >= 0].tolist() != found.tolist()
                for by_table, found in zip(early, labels[:begin], strict=True)
            ),
        ],
        "shorter": sum(int(found[-1] - found[0]) + 1 < max(spans) for found in labels[:begin]),
        "library": library(kind, length, whole, labels, one) if length in powers(length) else None,
    }


def library(kind: str, length: int, whole: bool, labels: list[Array], one: Array) -> list[int]:
    """Places where the clipped bitmaps, or the distance table, are not as enumerated."""
    layout = CLIPPED[kind].layout(len(labels), length, int(whole))
    begins = layout.base + layout.step * np.arange(len(labels))
    ends = begins + layout.bits - 1
    looked = len(labels)
    wrong = sum(
        found[0] < low or found[-1] != high
        for found, low, high in zip(labels, begins, ends, strict=True)
    )
    wrong += sum(
        labels[j][0] != begins[j] for j in range(length if whole else length - 1, len(labels))
    )
    if kind == "LCI":
        distances, ending = lci_bv_dt.distance_table(length, int(whole))
        j, group = 2 * length, log2(length) + 1
        at_end = {(j - size) * group + log2(size) for size in powers(length)} if whole else set()
        looked += 2
        wrong += sorted(distances.tolist()) != one.tolist()
        wrong += set((least(kind, length, whole, j) + distances[:ending]).tolist()) != at_end
    return [looked, int(wrong)]


# -- the verdict ---------------------------------------------------------------------------------

PRINTED = {
    ("SCI", True): ("L^2 + 1", "L(L + 3)/2"),
    ("LCI", True): ("L(k + 1) + 1", "2L + k"),
    ("SCI", False): ("L(L - 1) + 1", "L(L + 1)/2"),
    ("LCI", False): ("(L - 1)(k + 1) + 1", "2L - 1"),
}


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    found = {(case["kind"], case["whole"]): result["rows"] for case, result in results}
    checks = []
    for (kind, whole), rows in found.items():
        checks += _sizes(kind, whole, rows)
    checks += _others(found)
    longest = parameters["longest"]
    last = {key: rows[-1] for key, rows in found.items()}
    told = "; ".join(
        f"{kind} {last[kind, True]['segment'][0]:,} and {last[kind, True]['table']:,}, for non-integer "
        f"events {last[kind, False]['segment'][0]:,} and {last[kind, False]['table']:,}"
        for kind in ("SCI", "LCI")
    )
    return Verdict(
        checks,
        f"{held(checks)}; covering segment and distance table at L = {longest}: {told}.",
        "Footnote 3 says that both are smaller for non-integer events and gives no sizes; they are "
        "L(L - 1) + 1 and L(L + 1)/2 for SCI, (L - 1)(k + 1) + 1 and 2L - 1 for LCI, which are also "
        "those of half-open constructs (2L - 1 is what Table 1 of the CEI paper has). The paper speaks "
        "of the values j >= L; the table also serves those before, when labels below 0 are passed over. "
        "A slip in section 3: '[4, 10] will never cover any event value less than 3 or greater than 11' "
        "is true, but meant is less than 4 or greater than 10.",
    )


def _sizes(kind: str, whole: bool, rows: list[dict[str, Any]]) -> list[Check]:
    sizes, tables = PRINTED[kind, whole]
    events = "integer events" if whole else "non-integer events"
    wrong = [row["segment"] != [segment(kind, row["L"], whole)] for row in rows]
    entries = [row["table"] != table(kind, row["L"], whole) for row in rows]
    return [
        same(
            f"{kind}: size of the covering segment from C_min to C_max, {events}",
            sizes if whole else "smaller (footnote 3)",
            sum(row["values"] for row in rows),
            sum(row["wrong_ends"] for row in rows) + sum(wrong),
            f"values, {len(rows)} lengths L",
            "" if whole else sizes,
        ),
        same(
            f"{kind}: size of the distance table, {events}",
            tables if whole else "smaller (footnote 3)",
            len(rows),
            sum(entries),
            "lengths L",
            "" if whole else tables,
        ),
    ]


def _others(found: dict[tuple[str, bool], list[dict[str, Any]]]) -> list[Check]:
    rows = [row for group in found.values() for row in group]
    printed = [(kind, row["L"]) for (kind, whole), group in found.items() if whole for row in group]
    early, wrong_early = (sum(row["early"][i] for row in rows) for i in (0, 1))
    known = [row["library"] for row in rows if row["library"] is not None]
    return [
        same(
            "Eq. 3: its sums are its closed forms",
            "sum of i, + L; sum of i 2^(k-i), + 2(k + 1)",
            len(printed),
            sum(eq_3(kind, length) != table(kind, length, True) for kind, length in printed),
            "kinds and lengths L",
        ),
        same(
            "4.1: one distance table serves every value j >= L",
            "the same for all",
            len(rows),
            sum(row["tables"] != 1 for row in rows),
            "kinds and lengths L",
            f"{sum(row['values'] for row in rows):,} values",
        ),
        same(
            "It serves the values j < L too, when labels below 0 are passed over",
            "not stated",
            early,
            wrong_early,
            "values",
            f"the covering segments of {sum(row['shorter'] for row in rows):,} of them are shorter",
        ),
        same(
            "The library clips to the same segments and has the same distance tables",
            "sections 3 and 4.1",
            sum(looked for looked, _ in known),
            sum(wrong for _, wrong in known),
            "bitmaps and tables",
        ),
    ]


# -- the figure ----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    panels = figure.subplots(1, 2)
    longest = parameters["longest"]
    ticks = powers(longest)
    for case, result in results:
        kind, whole = case["kind"], case["whole"]
        rows = [row for row in result["rows"] if row["L"] in ticks]
        colour = GREEN if kind == "SCI" else ORANGE
        for axes, formula, name in ((panels[0], segment, "segment"), (panels[1], table, "table")):
            lengths = [row["L"] for row in rows]
            sizes = [row[name][0] if name == "segment" else row[name] for row in rows]
            line = [formula(kind, length, whole) for length in lengths]
            axes.plot(lengths, line, "-" if whole else "--", color=colour, linewidth=1.4, zorder=2)
            axes.plot(
                lengths,
                sizes,
                "o",
                color=colour if whole else "white",
                markeredgecolor=colour,
                markersize=6.5 if whole else 5,
                zorder=3,
            )
            if whole:
                axes.annotate(
                    f"{kind}\n{PRINTED[kind, True][name == 'table']}".replace("^2", "²"),
                    (lengths[-1], sizes[-1]),
                    (10, 0),
                    textcoords="offset points",
                    va="center",
                    color=colour,
                    weight="bold",
                )
    for axes, title in zip(panels, ("Covering segment", "Distance table"), strict=True):
        axes.set_title(title)
        axes.set(xscale="log", yscale="log", xlabel="L", ylabel="coordinates")
        axes.set_xticks(ticks, [str(length) for length in ticks])
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        axes.minorticks_off()
        axes.set_xlim(0.85, longest * longest**0.4)
        axes.grid(axis="x", visible=False)
        short_numbers(axes)
    figure.supxlabel(
        "lines: the formulas; dots: enumeration; open and dashed: non-integer events",
        fontsize=10,
        color=GREY,
    )
