"""How many virtual constructs there are, and how many lie over a point (Table 1)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator

from limen.kernels import cei_plain, containment, lci, sci, ui
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, short_numbers
from limen.reproduce import Check, Verdict

from ..exact import Array, held, log2, powers, same

CLAIM = "CEI-1"
PAPER = (
    "Of a domain of r values, UI defines r constructs, LCI r(1 + log L) and CEI 2r - r/L; over any "
    "point lie 1, 2L - 1 and 1 + log L of them (Table 1). SCI would define rL."
)
SCALES = {
    "quick": {
        "scale": "the paper's r = 1,048,576, L up to 16",
        "r": [1000, 4096, 1_048_576],
        "lengths": [2, 4, 8, 16],
    },
    "full": {
        "scale": "the paper's r = 1,048,576 and smaller ones, L = 2..64",
        "r": [1000, 4096, 65_536, 1_048_576],
        "lengths": [2, 4, 8, 16, 32, 64],
    },
}
KERNELS = {"UI": ui, "SCI": sci, "LCI": lci, "CEI": cei_plain}
COLOURS = {"UI": GREY, "SCI": GREEN, "LCI": ORANGE, "CEI": BLUE}
ROWS = 300_000  # of constructs that are listed one by one; larger sets are counted only


def defined(kind: str, r: int, length: int) -> int:
    """As printed; for CEI the domain is in whole segments ("we can simply expand it")."""
    whole = -(-r // length) * length
    return {
        "UI": r,
        "SCI": r * length,
        "LCI": r * (1 + log2(length)),
        "CEI": 2 * whole - whole // length,
    }[kind]


def over(kind: str, length: int) -> int:
    """As printed; SCI's is not, it follows from its definition."""
    return {
        "UI": 1,
        "SCI": length * (length + 1) // 2,
        "LCI": 2 * length - 1,
        "CEI": 1 + log2(length),
    }[kind]


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"L={length}", "L": length} for length in parameters["lengths"]]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    length = case["L"]
    rows = [enumerated(kind, r, length) for r in parameters["r"] for kind in KERNELS]
    return {"rows": rows, "properties": properties(length, 5)}


# -- counting ------------------------------------------------------------------------------------


def by_definition(kind: str, r: int, length: int) -> Iterator[tuple[range, int]]:
    """Where constructs begin and how long they are, one length after the other (2.2 and 3.1)."""
    whole = -(-r // length) * length
    sizes = {"UI": [1], "SCI": range(1, length + 1)}.get(kind, powers(length))
    for size in sizes:
        yield range(0, whole, size) if kind == "CEI" else range(r), size


def enumerated(kind: str, r: int, length: int) -> dict[str, Any]:
    counts = np.zeros(r, np.int32)
    total = beyond = 0
    for begins, size in by_definition(kind, r, length):
        total += len(begins)
        beyond += len(begins) - len(range(0, r - size + 1, begins.step))
        counts[:: begins.step] += 1
        counts[size :: begins.step] -= 1  # where the ones end
    over_point = np.cumsum(counts)
    most = int(over_point.max())
    fewer = np.flatnonzero(over_point < most)
    return {
        "kind": kind,
        "r": r,
        "defined": total,
        "beyond": beyond,  # constructs that reach past the right end of the domain
        "over": most,
        "fewer": int(fewer[-1]) + 1 if len(fewer) else 0,  # points at the left with fewer
        "least": int(over_point.min()),
        "kernel": KERNELS[kind].layout(r, length, 0).defined,
        "listed": listed(kind, r, length) if total <= ROWS else None,
    }


def listed(kind: str, r: int, length: int) -> bool:
    """Whether the library's list of constructs is the one of the definition, each with its own label."""
    rows = KERNELS[kind].constructs(r, length, 0)
    parts = [
        (np.array(begins), np.array(begins) + size - 1)
        for begins, size in by_definition(kind, r, length)
    ]
    wanted = np.column_stack([np.concatenate(side) for side in zip(*parts, strict=True)])
    labels = len(np.unique(rows[:, 0])) == len(rows)
    return labels and np.array_equal(ordered(rows[:, 1:]), ordered(wanted))


def ordered(rows: Array) -> Array:
    return rows[np.lexsort(rows.T)]


def properties(length: int, segments: int) -> dict[str, list[int]]:
    """Of the library's CEIs: how many places were looked at for a property, how many are wrong."""
    r, k = segments * length, log2(length)
    rows = cei_plain.constructs(r, length, 0)
    segment, local = np.divmod(rows[:, 0], 2 * length)
    sizes = rows[:, 2] - rows[:, 1] + 1
    ids = {size: [length // size, 2 * length // size] for size in powers(length)}  # Property 2
    at = [(local >= ids[size][0]) & (local < ids[size][1]) for size in powers(length)]
    wrong_level = sum(
        int((at[i] != (sizes == size)).sum()) for i, size in enumerate(powers(length))
    )
    units = {first: label for label, first, last in rows.tolist() if first == last}
    labels = np.empty(k + 1, np.int64)
    spots = list(chain.from_iterable((x, x + 0.5, np.nextafter(x + 1, 0)) for x in range(r)))
    wrong_unit = wrong_over = 0
    for x in spots:
        unit, i = int(np.floor(x)), int(np.floor(np.floor(x) / length))
        wrong_unit += units.get(unit) != (unit - i * length + length) + 2 * i * length
        inside = rows[(rows[:, 1] <= x) & (x < rows[:, 2] + 1), 0]
        n = containment.covering(unit, length, labels)
        wrong_over += len(inside) != k + 1 or set(labels[:n].tolist()) != set(inside.tolist())
    per_segment = np.bincount(segment, minlength=segments)
    return {
        "Property 1": [segments, int((per_segment != 2 * length - 1).sum())],
        "Property 2": [len(rows) * (k + 1), wrong_level],
        "Property 6": [len(spots), int(wrong_over)],
        "Property 7": [len(spots), int(wrong_unit)],
    }


# -- the verdict ---------------------------------------------------------------------------------


PRINTED = {
    "UI": ("r", "1"),
    "SCI": ("rL", "not printed: L(L + 1)/2"),
    "LCI": ("r(1 + log L)", "2L - 1"),
    "CEI": ("2r - r/L", "1 + log L"),
}
MEANINGS = {
    "Property 1": ("a segment has so many CEIs", "2L - 1"),
    "Property 2": (
        "level i has 2^i CEIs of length L/2^i, with local ids",
        "2^i to 2^(i+1) - 1",
    ),
    "Property 6": ("so many CEIs contain any value", "k + 1"),
    "Property 7": ("global id of the unit CEI over x", "floor(x) - iL + L + 2iL"),
}
COMPARED = {
    "Property 1": "segments",
    "Property 2": "places in the tree",
    "Property 6": "values",
    "Property 7": "values",
}


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    rows = [(case["L"], row) for case, result in results for row in result["rows"]]
    checks = list(
        chain.from_iterable(
            (_defined(kind, rows), _over(kind, rows)) for kind in ("UI", "LCI", "CEI", "SCI")
        )
    )
    for name, (says, printed) in MEANINGS.items():
        counts = [result["properties"][name] for _, result in results]
        compared, wrong = (sum(column) for column in zip(*counts, strict=True))
        checks.append(same(f"{name}: {says}", printed, compared, wrong, COMPARED[name]))
    listed = [row["listed"] for _, row in rows if row["listed"] is not None]
    checks.append(
        same(
            "The library's constructs are those of the definitions, each with a label of its own",
            "sections 2.2 and 3.1",
            len(listed),
            listed.count(False),
            "sets of constructs",
        )
    )
    longest, r = max(parameters["lengths"]), max(parameters["r"])
    last = {row["kind"]: row for length, row in rows if (length, row["r"]) == (longest, r)}
    return Verdict(
        checks,
        f"{held(checks)}: at r = {r:,} and L = {longest}, "
        + ", ".join(f"{kind} {last[kind]['defined']:,}" for kind in ("UI", "LCI", "CEI", "SCI"))
        + " constructs, of which "
        + ", ".join(f"{last[kind]['over']:,}" for kind in ("UI", "LCI", "CEI", "SCI"))
        + " lie over a point.",
        "Table 1 says 'any point'; for LCI (and SCI) this is any from L - 1 on. Left of it there are no "
        "constructs that begin early enough: over the point 0 lie 1 + log L LCIs (L SCIs). At the right "
        f"end, 2L - 2 - log L of the LCIs ({last['LCI']['beyond']} at L = {longest}) reach past the "
        "domain, where no query can use them; the formula counts them. 2r - r/L is meant for an r that "
        f"is a multiple of L; where it is not (r = {parameters['r'][0]:,}), r is expanded to one. For "
        "2L - 1 the paper refers to the VCI paper, which has 2L + k, since its constructs are closed "
        "(VCI-2).",
    )


def _defined(kind: str, rows: list[tuple[int, dict[str, Any]]]) -> Check:
    of_kind = [(length, row) for length, row in rows if row["kind"] == kind]
    wrong = sum(
        row["defined"] != defined(kind, row["r"], length) or row["kernel"] != row["defined"]
        for length, row in of_kind
    )
    length, row = of_kind[-1]
    more = f"{row['defined']:,} at r = {row['r']:,}, L = {length}"
    return same(
        f"{kind}: constructs defined", PRINTED[kind][0], len(of_kind), wrong, "pairs (r, L)", more
    )


def _over(kind: str, rows: list[tuple[int, dict[str, Any]]]) -> Check:
    of_kind = [(length, row) for length, row in rows if row["kind"] == kind]
    edge = kind in ("LCI", "SCI")
    wrong = sum(
        row["over"] != over(kind, length) or row["fewer"] != (length - 1 if edge else 0)
        for length, row in of_kind
    )
    points = sum(row["r"] - row["fewer"] for _, row in of_kind)
    length, row = of_kind[-1]
    more = f"{points:,} points; {row['over']:,} at L = {length}"
    if edge:
        more += f" from the point {row['fewer']} on, {row['least']} over the point 0"
    told = f"{kind}: constructs over a point" + (" (from L - 1 on)" if edge else "")
    return same(told, PRINTED[kind][1], len(of_kind), wrong, "pairs (r, L)", more)


# -- the figure ----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    lengths, r = parameters["lengths"], max(parameters["r"])
    left, right = figure.subplots(1, 2)
    for kind in ("SCI", "LCI", "CEI", "UI"):
        found = [
            next(row for row in result["rows"] if row["kind"] == kind and row["r"] == r)
            for _, result in results
        ]
        for axes, name, formula in (
            (left, "defined", [defined(kind, r, length) for length in lengths]),
            (right, "over", [over(kind, length) for length in lengths]),
        ):
            axes.plot(lengths, formula, color=COLOURS[kind], linewidth=1.4, zorder=2)
            counted = [row[name] for row in found]
            axes.plot(lengths, counted, "o", color=COLOURS[kind], markersize=6.5, zorder=3)
            printed = PRINTED[kind][name == "over"].removeprefix("not printed: ")
            axes.annotate(
                f"{kind}  {printed}",
                (lengths[-1], counted[-1]),
                (9, 0),
                textcoords="offset points",
                va="center",
                color=COLOURS[kind],
                fontsize=10.5,
                weight="bold",
            )
    for axes, title, label in (
        (left, f"Constructs defined, r = {r:,}", "virtual constructs"),
        (right, "Constructs over a point", "covering virtual constructs"),
    ):
        axes.set_title(title)
        axes.set(xscale="log", yscale="log", xlabel="L", ylabel=label)
        axes.set_xticks(lengths, [str(length) for length in lengths])
        axes.minorticks_off()
        axes.set_xlim(lengths[0] * 0.85, lengths[-1] * (lengths[-1] / lengths[0]) ** 0.62)
        axes.grid(axis="x", visible=False)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        short_numbers(axes)
    figure.supxlabel("lines: the formulas of Table 1; dots: enumeration", fontsize=10, color=GREY)
