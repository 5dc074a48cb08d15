"""Sub-indices that an update touches, and the space that lazy layouts take (section 3.2)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np

from limen.archive import Archive, Layout, layouts
from limen.archive.layouts import Cell, Stretch
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION
from limen.reproduce import Check, Verdict
from limen.testing.joined import Joined

from ..exact import held, same

CLAIM = "WIN-2"
PAPER = (
    "An update accesses G + E - 1 sub-indices of Rebuild and NoRebuild, G + E - 2 of the lazy layouts, "
    "fewest at G = E = sqrt n; the lazy ones need at most 1/G more space, such as 50 % at 2 x 2."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "schedules of every G x E up to 8 x 8 with up to 40 updates a window; 68 archives of "
        "2,000 results; overhead for G up to 12 and every p up to 80",
        "largest": 8,
        "longest": 40,
        "shapes": [[2, 2], [2, 3], [3, 2], [3, 3], [4, 4], [2, 8], [8, 2], [5, 5], [1, 4]],
        "steps": [8, 13],
        "rows": 2000,
        "most_rows": 12,
        "overhead_steps": 80,
        "laid": [2, 3, 4, 5, 6],
        "p": 36,
        "laid_rows": 50_000,
        "n": 2000,
    },
    "quick": {
        "scale": "schedules of every G x E up to 4 x 4 with up to 10 updates a window; 8 archives of "
        "300 results; overhead for G up to 5 and every p up to 16",
        "largest": 4,
        "longest": 10,
        "shapes": [[2, 2], [3, 4]],
        "steps": [4],
        "rows": 300,
        "most_rows": 5,
        "overhead_steps": 16,
        "laid": [2, 3],
        "p": 9,
        "laid_rows": 3000,
        "n": 400,
    },
}
NAMES = ("Rebuild", "NoRebuild", "LazyRebuild", "LazyNoRebuild")
CLOSE = 0.02  # by how much a share in a real archive may be off


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": "schedules", "kind": "schedules"},
        *(
            {
                "name": f"{rows}x{columns}, p={p}",
                "kind": "archives",
                "shape": [rows, columns],
                "p": p,
            }
            for rows, columns in parameters["shapes"]
            for p in parameters["steps"]
        ),
        {"name": "factors", "kind": "factors"},
        {"name": "overhead", "kind": "overhead"},
        *({"name": f"lying, G={rows}", "kind": "laid", "G": rows} for rows in parameters["laid"]),
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if case["kind"] == "schedules":
        return schedules(parameters["largest"], parameters["longest"])
    if case["kind"] == "archives":
        return {
            name: accessed(Layout(name, *case["shape"]), case["p"], parameters["rows"])
            for name in NAMES
            if case["shape"][0] > 1 or not name.startswith("Lazy")
        }
    if case["kind"] == "factors":
        return factors(parameters["n"])
    if case["kind"] == "overhead":
        return overheads(parameters["most_rows"], parameters["overhead_steps"], parameters["p"])
    return lying(case["G"], parameters["p"], parameters["laid_rows"])


def told(layout: Layout) -> int:
    """Section 3.2."""
    return layout.rows + layout.columns - (2 if layout.name.startswith("Lazy") else 1)


# -- sub-indices touched -------------------------------------------------------------------------


def schedules(largest: int, longest: int) -> dict[str, Any]:
    """All that two windows of updates touch, by schedule alone."""
    looked = {name: [0, 0] for name in ("Rebuild", "LazyRebuild")}
    for name, counts in looked.items():
        lazy = name.startswith("Lazy")
        for rows in range(2 if lazy else 1, largest + 1):
            for columns in range(1, largest + 1):
                layout = Layout(name, rows, columns)
                for p in range(max(rows, columns), longest + 1):
                    for touched in planned(layout, p, 2 * p):
                        counts[0] += 1
                        counts[1] += len(touched) != told(layout)
    return looked


def planned(layout: Layout, p: int, updates: int) -> Iterator[set[Cell]]:
    plan = layouts.initial(layout, p)
    for step in range(1, updates + 1):
        plan = layouts.update(layout, p, plan.stretches, step, step)
        yield plan.touched(layout)


def accessed(layout: Layout, p: int, rows: int) -> dict[str, Any]:
    """What two windows of updates of a real archive say they touch, and which files are others after."""
    source = Joined(rows=rows, steps=p, every=100, row_bytes=0)
    found: dict[str, Any] = {"told": told(layout), "touched": [], "changed": []}
    with tempfile.TemporaryDirectory() as folder:
        archive = _opened(folder, source, layout)
        before = _files(archive)
        for step in range(1, 2 * p + 1):
            receipt = archive.update(step * source.every, source.update(step))
            after = _files(archive)
            found["touched"].append(receipt.touched)
            found["changed"].append(len({cell for cell, _ in before ^ after}))
            before = after
    return found


def _opened(folder: str, source: Joined, layout: Layout) -> Archive:
    archive = Archive.open(
        f"{folder}/joined",
        source.schema,
        key="key",
        window=source.window,
        every=source.every,
        layout=layout,
    )
    archive.update(0, source.initial())
    return archive


def _files(archive: Archive) -> set[tuple[Cell, str]]:
    return {(file.cell, file.path) for file in archive.snapshot().files}


def factors(most: int) -> dict[str, Any]:
    """Of all G x E = n with G, E >= 2 the one that touches fewest."""
    squares = wrong = nearest = others = 0
    for n in range(4, most + 1):
        ways = [g for g in range(2, n // 2 + 1) if n % g == 0]
        if not ways:
            continue
        least = min(g + n // g for g in ways)
        best = [g for g in ways if g + n // g == least]
        if isqrt(n) ** 2 == n:
            squares += 1
            wrong += best != [isqrt(n)]
        else:
            below = max(g for g in ways if g * g < n)
            others += 1
            nearest += best != sorted({below, n // below})
    return {"squares": squares, "wrong": wrong, "others": others, "not nearest": nearest}


# -- space ---------------------------------------------------------------------------------------


def expired(p: int, rows: int, joins: bool) -> list[tuple[Fraction, Fraction]]:
    """What has expired and lies in a lazy layout after each update of a window, and what is alive.

    In units of Appendix A; with `joins`, half a unit where a result lives for all of the window.
    """
    layout = Layout("LazyRebuild", rows, 1)
    plan = layouts.initial(layout, p)
    last = 3 * p
    into = np.full(p + last, -1)  # the row of each step of generation, from 1 - p on
    into[[step + p - 1 for step in plan.rows]] = list(plan.rows.values())
    lies = np.zeros((p + last, p + last + 1), np.int64)  # halves, by generation and expiration
    step_of = np.arange(1 - p, last + 1)

    def comes(step: int) -> None:
        lies[step + p - 1, max(1, step + 1) : step + p + 1] = 2
        if joins:
            lies[step + p - 1, step + p] = min(1, lies[step + p - 1, step + p])

    for step in range(1 - p, 1):
        comes(step)
    found = []
    for step in range(1, last + 1):
        plan = layouts.update(layout, p, plan.stretches, step, step)
        lies[np.isin(into, list(plan.dropped))] = 0
        lies[np.isin(into, [row for row, _ in plan.examined]), step] = 0
        into[np.isin(into, list(plan.dropped)) & (step_of < step)] = -1
        into[step + p - 1] = plan.rows[step]
        comes(step)
        if step > 2 * p:  # the stretches of the initial stage are gone
            gone, live = int(lies[:, : step + 1].sum()), int(lies[:, step + 1 :].sum())
            found.append((Fraction(gone, 2), Fraction(live, 2)))
    return found


def stretch(p: int, rows: int) -> int:
    """Steps of the longest row, as they come to be after the initial stage."""
    plan = layouts.initial(Layout("LazyRebuild", rows, 1), p)
    sizes: list[Stretch] = []
    for step in range(1, 3 * p + 1):
        plan = layouts.update(Layout("LazyRebuild", rows, 1), p, plan.stretches, step, step)
        oldest = min(plan.stretches)
        if step > 2 * p - 1:
            sizes.append(oldest)
    return max(b - a + 1 for a, b in sizes)


def formula(p: int, s: int, joins: bool) -> Fraction:
    """The most that has expired, of what is alive; s: steps of the longest row."""
    if joins:
        return Fraction(s * s + 2 * s - 1, p * p)
    return Fraction(s * s + 3 * s - 2, p * (p + 1))


def overheads(most_rows: int, longest: int, p: int) -> dict[str, Any]:
    """For every G and p: is the overhead at most 1/G of what is alive, or of all that lies there?"""
    found: dict[str, Any] = {"G": [], "looked": 0, "formula": 0, "stretch": 0, "share": 0}
    for rows in range(2, most_rows + 1):
        over = []
        for steps in range(rows, longest + 1):
            s = stretch(steps, rows)
            found["stretch"] += s != -(-(steps - 1) // (rows - 1))
            for joins in (False, True):
                laid = expired(steps, rows, joins)
                most = max(gone / live for gone, live in laid)
                found["looked"] += 1
                found["formula"] += most != formula(steps, s, joins)
                found["share"] += most / (1 + most) > Fraction(1, rows)
                if not joins and most > Fraction(1, rows):
                    over.append(steps)
        laid = expired(p, rows, False)
        found["G"].append(
            {
                "G": rows,
                "over": len(over),
                "last over": max(over, default=0),
                "steps": longest - rows + 1,
                "most": max(float(gone / live) for gone, live in laid),
                "mean": sum(float(gone / live) for gone, live in laid) / len(laid),
                "joins": float(formula(p, stretch(p, rows), True)),
            }
        )
    return found


def lying(rows: int, p: int, results: int) -> dict[str, Any]:
    """The same in a real archive: what lies there, what is alive, after every update of two windows."""
    source = Joined(rows=results, steps=p, every=1000, row_bytes=0)
    found: dict[str, list[float]] = {"of alive": [], "bytes": []}
    with tempfile.TemporaryDirectory() as folder:
        archive = _opened(folder, source, Layout("LazyNoRebuild", rows, 2))
        for step in range(1, 2 * p + 1):
            archive.update(step * source.every, source.update(step))
            snapshot = archive.snapshot()
            laid = sum(one.rows for one in snapshot.sub_indices())
            live = len(snapshot.scan(columns=["key"]))
            found["of alive"].append(laid / live - 1)
    most = max(found["of alive"])
    return {
        "most": most,
        "mean": sum(found["of alive"]) / len(found["of alive"]),
        "told": float(formula(p, stretch(p, rows), True)),
        "series": found["of alive"],
    }


# -- the verdict ---------------------------------------------------------------------------------


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for case, result in results:
        by_kind.setdefault(case["kind"], []).append(result)
    (plans,), (split,), (space,) = (by_kind[k] for k in ("schedules", "factors", "overhead"))
    checks = [
        *_touched(plans, by_kind["archives"]),
        same(
            "Where n is a square, G = E = sqrt n alone touches fewest",
            "G = E = sqrt n",
            split["squares"],
            split["wrong"],
            "squares",
        ),
        same(
            "Where it is not, the two factors nearest to each other do",
            "",
            split["others"],
            split["not nearest"],
            "numbers",
        ),
        *_space(parameters, space, by_kind["laid"]),
    ]
    two, three = (next((g for g in space["G"] if g["G"] == rows), None) for rows in (2, 3))
    assert two is not None and three is not None
    return Verdict(
        checks,
        f"{held(checks)}; an update touches as many as said, every time. Expired results are at most 1/G "
        f"of all that lies in a lazy archive; of what is alive, {two['most']:.0%} at G = 2, not 50 %, "
        f"and {three['most']:.0%} at G = 3 (p = {parameters['p']}).",
        "With s = ceil((p - 1) / (G - 1)) steps in the longest row, what has expired is at most (s^2 + "
        "3s - 2) / (p (p + 1)) of what is alive in the model of Appendix A, (s^2 + 2s - 1) / p^2 for "
        "joins with even ages: about 1 / (G - 1)^2. That is below 1/G from G = 3 on if updates are many "
        f"(at G = 3 it is above up to p = {three['last over']}), and nearly 1 at G = 2: a lazy 2 x 2 "
        "takes up to twice the space of an equivalent Rebuild, not half as much again; half of what lies "
        f"there has expired. On average over the updates it is {two['mean']:.0%} at G = 2 and "
        f"{three['mean']:.0%} at G = 3. G + E - 2 takes the row that becomes the oldest to be left "
        "alone from the very update that throws away the one before it; Algorithm 3, read to the letter, "
        "still examines it in that one update, which makes G + E - 1.",
    )


def _touched(plans: dict[str, Any], archives: list[dict[str, Any]]) -> list[Check]:
    checks = []
    for names, paper in ((NAMES[:2], "G + E - 1"), (NAMES[2:], "G + E - 2")):
        looked, wrong = plans[names[0]]
        real = [result[name] for result in archives for name in names if name in result]
        updates = sum(len(one["touched"]) for one in real)
        other = sum(touched != one["told"] for one in real for touched in one["touched"])
        more = sum(
            changed > touched
            for one in real
            for changed, touched in zip(one["changed"], one["touched"], strict=True)
        )
        whole = sum(changed == one["told"] for one in real for changed in one["changed"])
        checks.append(
            same(
                f"{' and '.join(names)}: an update accesses {paper}",
                paper,
                looked + updates,
                wrong + other + more,
                "updates",
                f"{updates:,} of them in {len(real)} archives, where no other sub-index has other files "
                f"and in {whole:,} updates all of these have",
            )
        )
    return checks


def _space(
    parameters: dict[str, Any], space: dict[str, Any], laid: list[dict[str, Any]]
) -> list[Check]:
    over = {g["G"]: g["over"] for g in space["G"]}
    steps = sum(g["steps"] for g in space["G"])
    off = [abs(one["most"] - one["told"]) for one in laid]
    two = space["G"][0]
    return [
        same(
            "Lazy: of all that lies there at most 1/G has expired",
            "<= 1/G",
            space["looked"],
            space["share"],
            "triples (G, p, model)",
        ),
        Check.of(
            "Lazy: at most 1/G more space than an equivalent Rebuild",
            not any(over.values()),
            "<= 1/G; 50 % at 2 x 2",
            f"more for {sum(over.values()):,} of {steps:,} pairs (G, p), "
            + ", ".join(f"{n} at G = {g}" for g, n in over.items() if n)
            + f"; {two['most']:.0%} at G = 2, p = {parameters['p']}",
            direction=sum(over.values()) < steps / 2,
        ),
        same(
            "The most that has expired is as by the formula",
            "not in the paper",
            space["looked"],
            space["formula"] + space["stretch"],
            "triples (G, p, model)",
        ),
        Check.of(
            "Real archives come to it",
            max(off) < CLOSE + 2 / parameters["laid_rows"] ** 0.5,
            "",
            ", ".join(
                f"{one['most']:.1%} at G = {rows} (formula {one['told']:.1%})"
                for rows, one in zip(parameters["laid"], laid, strict=True)
            ),
        ),
    ]


# -- the figure ----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    figure.set_size_inches(11.5, 4.8)
    number, share, series = figure.subplots(1, 3)
    sides = range(2, 9)
    squares = [k * k for k in sides]
    number.plot(squares, squares, "--", color=GREY, lw=1.3, label="REINDEX, DEL: n")
    for name, colour in (("Rebuild", BLUE), ("LazyRebuild", GREEN)):
        touched = [told(Layout(name, k, k)) for k in sides]
        label = "G + E - 2, lazy" if name == "LazyRebuild" else "G + E - 1"
        number.plot(squares, touched, "-", color=colour, lw=1.3, label=label)
    for case, result in results:
        if case["kind"] == "archives" and case["shape"][0] == case["shape"][1]:
            for name, colour in (("Rebuild", BLUE), ("LazyRebuild", GREEN)):
                most = max(result[name]["touched"])
                number.plot(case["shape"][0] ** 2, most, "o", color=colour, ms=6)
    number.set(ylim=(0, 30), xlabel="sub-indices n, G = E (dots: archives)")
    number.set_title("touched by an update")
    number.legend(fontsize=9, loc="upper left")
    (space,) = (result["G"] for case, result in results if case["kind"] == "overhead")
    rows = [one["G"] for one in space]
    share.plot(rows, [100 / g for g in rows], "--", color=VERMILION, lw=1.4, label="1/G")
    for key, label, colour in (("most", "most", BLUE), ("mean", "mean over updates", GREY)):
        share.plot(
            rows, [100 * g[key] for g in space], "o-", color=colour, ms=4, lw=1.3, label=label
        )
    for i, (case, result) in enumerate((c, r) for c, r in results if c["kind"] == "laid"):
        label = "real archives" if i == 0 else None
        share.plot(case["G"], 100 * result["most"], "D", color=ORANGE, ms=6, label=label)
    share.set(ylim=(0, None), xlabel="rows G")
    share.set_title(f"expired, % of alive (p = {parameters['p']})")
    share.legend(fontsize=9)
    for (case, result), colour in zip(
        [(c, r) for c, r in results if c["kind"] == "laid"],
        [ORANGE, BLUE, GREEN, VERMILION, GREY],
        strict=False,
    ):
        ys = [100 * y for y in result["series"]]
        series.plot(range(1, len(ys) + 1), ys, color=colour, lw=1.3, label=f"G = {case['G']}")
    series.set(ylim=(0, None), xlabel="update")
    series.set_title("the same, in real archives")
    series.legend(fontsize=9)
