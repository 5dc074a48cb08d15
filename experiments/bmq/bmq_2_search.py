"""Search efficiency and search time of BMQ-Index and DiffRMQ (Figs. 6 to 8)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from limen.borders.diff_rmq import DiffRMQ
from limen.indexes import create
from limen.indexes.bounded import Paper
from limen.plotting.style import BLUE, GREY, ORANGE, VERMILION, short
from limen.reproduce import Check, Verdict

from ..judging import TIE, Results, logarithmic, ns, number, ratio, span
from .workload import WARM, Array, Fed, bmq, fluctuation, in_turn, queries, walked, walks

CLAIM = "BMQ-2"
PAPER = (
    "The search efficiency of BMQ-Index is 100 % whatever the number and (almost) the width of the "
    "queries, and far above that of DiffRMQ with CEI or IS-lists; its search time does not depend on the "
    "width and is below theirs while FL is below W. At FL = W it is slightly above."
)
SCALES: dict[str, dict[str, Any]] = {
    "full": {
        "scale": "the paper's: D = 1,000,000, N = 10,000..100,000, W = 0.01..0.1 %, FL = 0.01..0.1 % and "
        "beyond; 2,000 streams of 1,000 tuples",
        "domain": 1_000_000,
        "streams": 2000,
        "tuples": 1000,
        "sizes": [10_000, 25_000, 50_000, 75_000, 100_000],
        "widths": [0.01, 0.02, 0.05, 0.1],
        "levels": [0.01, 0.02, 0.05, 0.07, 0.1, 0.2, 1, 10],
    },
    "quick": {
        "scale": "N and the streams divided by 10: N = 1,000..10,000, 200 streams of 30 tuples, D = "
        "1,000,000, fewer W and FL",
        "domain": 1_000_000,
        "streams": 200,
        "tuples": 30,
        "sizes": [1000, 10_000],
        "widths": [0.01, 0.1],
        "levels": [0.01, 0.05, 0.1, 1],
    },
}
RIVALS = {"cei": "CEI", "is-list": "IS-lists", "is-laid": "IS-lists, laid out"}
JUDGED = ("cei", "is-list")
LOOKS = {
    "bmq": ("BMQ-Index", BLUE, "o", "-"),
    "walk": ("BMQ-Index, the paper's walk", BLUE, "o", "--"),
    "cei": ("DiffRMQ (CEI)", ORANGE, "^", "-"),
    "is-list": ("DiffRMQ (IS-lists)", VERMILION, "*", "-"),
    "is-laid": ("the same, lists laid out", GREY, "s", ":"),
}
FLAT = 1.3


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    n, w, fl = parameters["sizes"][-1], parameters["widths"][-1], parameters["levels"][0]
    points = [(size, w, fl) for size in parameters["sizes"]]
    points += [(n, width, fl) for width in parameters["widths"][:-1]]
    points += [(n, w, level) for level in parameters["levels"][1:]]
    return [
        *(
            {"name": f"N={n:,} W={w:g} % FL={fl:g} %", "N": n, "W": w, "FL": fl}
            for n, w, fl in points
        ),
        {"name": "BMQ-Index at every N", "every": "sizes"},
        {"name": "BMQ-Index at every W", "every": "widths"},
        {"name": "steps of equal size, W = FL", "every": None},
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if "N" in case:
        return _point(parameters, case)
    n, w, fl = parameters["sizes"][-1], parameters["widths"][-1], parameters["levels"][0]
    if case["every"] is None:
        lo, hi = queries(n, fl / 100, parameters["domain"])
        values = _values(parameters, fl, kind="equal")
        fed = {"bmq": Fed(bmq(lo, hi), parameters["streams"])}
        return _told(parameters, lo, hi, values, in_turn(fed, {"bmq": values}))
    fed = {}
    for some in parameters[case["every"]]:
        of = (some, w) if case["every"] == "sizes" else (n, some)
        index = bmq(*queries(of[0], of[1] / 100, parameters["domain"]))
        fed[f"{some:g}"] = Fed(index, parameters["streams"])
    values = _values(parameters, fl)
    return in_turn(fed, dict.fromkeys(fed, values))


def _values(parameters: dict[str, Any], fl: float, kind: str = "exponential") -> Array:
    sizes = parameters["streams"], parameters["tuples"]
    return walks(*sizes, fl / 100, parameters["domain"], kind=kind)


def _point(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    lo, hi = queries(case["N"], case["W"] / 100, parameters["domain"])
    values = _values(parameters, case["FL"])
    fed = {"bmq": Fed(bmq(lo, hi), parameters["streams"])}
    for name in RIVALS:
        index = create("cei" if name == "cei" else "is-list")
        index.build(np.arange(len(lo), dtype=np.int32), lo[:, 0].copy(), hi[:, 0].copy())
        if name == "is-laid" and isinstance(index, Paper):
            index.compact()
        fed[name] = Fed(DiffRMQ(index), parameters["streams"])
    return _told(parameters, lo, hi, values, in_turn(fed, dict.fromkeys(fed, values)))


def _told(
    parameters: dict[str, Any], lo: Array, hi: Array, values: Array, found: dict[str, Any]
) -> dict[str, Any]:
    timed = values[WARM - 1 :]
    found["accessed"]["walk"] = walked(lo, hi, timed)
    found["found"]["walk"] = found["found"]["bmq"]
    steps = np.abs(np.diff(timed[:, :, 0], axis=0))
    width = hi[0, 0] - lo[0, 0] + 1
    return found | {
        "readings": steps.size,
        "fluctuation": 100 * fluctuation(timed, parameters["domain"]),
        "shared": float(np.minimum(steps, width).mean() / steps.mean()),
    }


def efficiency(result: dict[str, Any], name: str) -> float:
    """In per cent."""
    return 100 * float(result["found"][name]) / max(1, int(result["accessed"][name]))


# -- the verdict ----------------------------------------------------------------------------------


def verdict(parameters: dict[str, Any], results: Results) -> Verdict:
    number_of, width_of, level_of = _sweeps(parameters, results)
    every = {case["every"]: result for case, result in results if "every" in case}
    points = [result for case, result in results if "N" in case]
    checks = [
        _same(points),
        *_by_number(number_of, every["sizes"]),
        *_by_width(parameters, width_of, every["widths"]),
        *_by_level(parameters, level_of),
        _analysis(results),
    ]
    base = number_of[-1][1]
    at_w = next(r for case, r in level_of if case["FL"] == case["W"])
    equal = every[None]
    narrow = width_of[0][1]
    told = "; ".join(
        f"{where}: {_ratios(r, ('cei', 'is-list'))}"
        for where, r in (
            ("FL = W / 10", base),
            ("FL = W", at_w),
            ("the largest FL", level_of[-1][1]),
        )
    )
    return Verdict(
        checks,
        f"SE at FL = W / 10 is {efficiency(base, 'bmq'):.3g} % against {efficiency(base, 'cei'):.3g} %; "
        f"DiffRMQ takes, times BMQ-Index's time, at {told}",
        "All are fed with the same batches, one tuple of each stream, and only the search is timed. CEI "
        "is the index that Limen uses, faster than CEI as its paper has it (CEI-6). IS-lists lie as "
        "insertion put them; laid out in one stretch of memory they take "
        f"{ratio(base, 'is-laid', 'bmq', 'search')} times BMQ-Index's time at FL = W / 10. The paper "
        "does not say how the steps of its streams are distributed; here they are exponential. With "
        "steps s of any distribution, SE is E[min(s, W)] / E[s] for the paper's search and "
        "E[min(s, W)] / W for DiffRMQ: so the two cross at FL = W, and 'almost 100 %' at W = FL (Fig. 7) "
        f"needs steps of nearly equal size. With those it is {efficiency(equal, 'walk'):.3g} %, with "
        f"exponential ones {efficiency(narrow, 'walk'):.3g} % at W = FL and 1 - exp(-W / FL) in general, "
        "86 % at W = 2 FL. But with steps of equal size SE would not fall up to FL = W, as it does in "
        "Fig. 8. Limen's index does not walk a long way but begins again at the nearest frames where "
        "that is cheaper, so that what it looks at stays bounded as FL grows.",
    )


def _sweeps(parameters: dict[str, Any], results: Results) -> tuple[Results, Results, Results]:
    """The points of Figs. 6, 7 and 8; they share one."""
    points = [(case, result) for case, result in results if "N" in case]
    n, w, fl = parameters["sizes"][-1], parameters["widths"][-1], parameters["levels"][0]

    def along(by: str, **fixed: float) -> Results:
        mine = [p for p in points if all(p[0][key] == value for key, value in fixed.items())]
        return sorted(mine, key=lambda p: float(p[0][by]))

    return along("N", W=w, FL=fl), along("W", N=n, FL=fl), along("FL", N=n, W=w)


def _ratios(result: dict[str, Any], names: Iterable[str]) -> str:
    return ", ".join(f"{RIVALS[name]} {ratio(result, name, 'bmq', 'search')}" for name in names)


def _same(points: Sequence[dict[str, Any]]) -> Check:
    wrong = sum(
        len({(r["found"][name], r["sum"][name]) for name in ("bmq", *RIVALS)}) > 1 for r in points
    )
    total = sum(r["found"]["bmq"] for r in points)
    return Check.of(
        "all of them find the same queries",
        wrong == 0,
        "",
        f"{wrong} of {len(points)} points differ; {total:,} queries entered or left",
    )


def _listed(results: Results, name: str) -> str:
    return ", ".join(f"{efficiency(r, name):.3g}" for _, r in results) + " %"


def _faster(where: str, results: Results, paper: str) -> list[Check]:
    checks = []
    for name in JUDGED:
        times = [ratio(r, name, "bmq", "search").middle for _, r in results]
        checks.append(
            Check.of(
                f"{where}: BMQ-Index searches faster than DiffRMQ ({RIVALS[name]})",
                all(t > TIE for t in times),
                paper,
                f"DiffRMQ / BMQ-Index: {', '.join(map(number, times))}",
                direction=sum(t > TIE for t in times) > len(times) / 2,
            )
        )
    return checks


def _by_number(results: Results, every: dict[str, Any]) -> list[Check]:
    high = [efficiency(r, "walk") for _, r in results]
    above = [efficiency(r, "walk") / efficiency(r, "cei") for _, r in results]
    first, *_, last = every["search"]
    grown = ratio(every, last, first, "search")
    more = every["found"][last] / every["found"][first]
    return [
        Check.of(
            "Fig. 6: SE of BMQ-Index is 100 % regardless of N",
            min(high) >= 99,
            "100 %",
            f"{_listed(results, 'walk')}; as implemented here {_listed(results, 'bmq')}",
            direction=min(high) >= 90,
        ),
        Check.of(
            "Fig. 6: and much higher than that of DiffRMQ",
            min(above) > 2,
            "much higher",
            f"DiffRMQ {_listed(results, 'cei')}",
            direction=min(above) > 1,
        ),
        *_faster("Fig. 6", results, "significantly"),
        Check.of(
            "Fig. 6: its search time increases slightly with N",
            grown.middle < more,
            "slight, from more results",
            f"{grown} times as long for {number(more)} times the results, N = {int(first):,} to "
            f"{int(last):,}",
            direction=grown.least < more,
        ),
    ]


def _by_width(parameters: dict[str, Any], results: Results, every: dict[str, Any]) -> list[Check]:
    high = [efficiency(r, "walk") for _, r in results]
    theirs = [efficiency(r, "cei") for _, r in results]
    last = f"{parameters['widths'][-1]:g}"
    times = {w: ratio(every, w, last, "search") for w in every["search"]}
    wide = [times[w].middle for w in times if float(w) >= 5 * parameters["levels"][0]]
    return [
        Check.of(
            "Fig. 7: SE of BMQ-Index remains almost 100 % as W grows",
            min(high) >= 99,
            "almost 100 %, from W = FL to W = 10 FL",
            f"{_listed(results, 'walk')}; as implemented here {_listed(results, 'bmq')}",
            direction=all(
                h >= 99 for h, (c, _) in zip(high, results, strict=True) if c["W"] >= 5 * c["FL"]
            ),
        ),
        Check.of(
            "Fig. 7: that of DiffRMQ decreases rapidly",
            all(a > 1.05 * b for a, b in pairwise(theirs)),
            "rapidly decreases",
            _listed(results, "cei"),
        ),
        Check.of(
            "Fig. 7: the search time of BMQ-Index does not depend on W",
            _flat(r.middle for r in times.values()),
            "kept as a constant",
            f"times that at W = {last} %: "
            + ", ".join(f"{r} at {w} %" for w, r in times.items() if w != last),
            direction=_flat(wide),
        ),
        *_faster("Fig. 7", results, "DiffRMQ's increases significantly with W"),
    ]


def _flat(ratios: Iterable[float]) -> bool:
    """Within what is called the same here; 1 is among them."""
    found = [1.0, *ratios]
    return max(found) / min(found) < FLAT


def _by_level(parameters: dict[str, Any], results: Results) -> list[Check]:
    below = [(case, r) for case, r in results if case["FL"] < case["W"]]
    above = [efficiency(r, "walk") / efficiency(r, "cei") for _, r in below]
    levels = [r["fluctuation"] for _, r in results]
    leads = [efficiency(r, "walk") / efficiency(r, "cei") for _, r in results]
    crossing = crossed(levels, leads)
    w = parameters["widths"][-1]
    checks = [
        Check.of(
            "Fig. 8: SE of BMQ-Index is higher than that of DiffRMQ while FL < W",
            min(above) > 1,
            "as long as FL is smaller than W",
            f"BMQ-Index {_listed(results, 'walk')}; as implemented here {_listed(results, 'bmq')}; "
            f"DiffRMQ {_listed(results, 'cei')}, FL = "
            + ", ".join(f"{case['FL']:g}" for case, _ in results),
        ),
        Check.of(
            "Fig. 8: the lines of SE meet near FL = W",
            crossing is not None and 0.8 * w < crossing < 1.25 * w,
            f"FL = W = {w:g} %",
            "they do not" if crossing is None else f"FL = {crossing:.3g} %",
        ),
        *_faster("Fig. 8, FL < W", below, "much smaller when FL is smaller than W"),
    ]
    for name in JUDGED:
        times = [ratio(r, name, "bmq", "search").middle for _, r in results]
        meets = crossed(levels, times)
        checks.append(
            Check.of(
                f"Fig. 8: at FL = W its search time has come up to that of DiffRMQ ({RIVALS[name]})",
                meets is not None and 0.5 * w < meets < 2 * w,
                "slightly larger at FL = W",
                f"DiffRMQ / BMQ-Index: {', '.join(map(number, times))}; "
                + ("above 1 at every FL" if meets is None else f"1 at FL = {meets:.3g} %"),
                direction=times[-1] < times[0],
            )
        )
    return checks


def crossed(xs: Sequence[float], ratios: Sequence[float]) -> float | None:
    """Where a falling line of ratios comes to 1, between points on logarithmic scales."""
    for i in range(1, len(xs)):
        if ratios[i - 1] > 1 >= ratios[i]:
            a, b = math.log(ratios[i - 1]), math.log(ratios[i])
            x, y = math.log(xs[i - 1]), math.log(xs[i])
            return math.exp(x + (y - x) * a / (a - b))
    return None


def _analysis(results: Results) -> Check:
    points = [(case, r) for case, r in results if "N" in case]
    costs = [2 * case["N"] * r["fluctuation"] / 100 * r["readings"] for case, r in points]
    each = [r["accessed"]["walk"] / cost for cost, (_, r) in zip(costs, points, strict=True)]
    total = sum(r["accessed"]["walk"] for _, r in points) / sum(costs)
    shares = [efficiency(r, "walk") / 100 / r["shared"] for _, r in points]
    return Check.of(
        "a search looks at 2 N FL delta queries",
        abs(total - 1) < 0.05,
        "2 N FL (section 3.4)",
        f"{total:.3f} times that in all, {span(each)} times at the points; SE is {span(shares)} times "
        "E[min(s, W)] / E[s]",
    )


# -- the figure -----------------------------------------------------------------------------------


def draw(parameters: dict[str, Any], results: Results, figure: Any) -> None:
    figure.set_size_inches(12, 7.4)
    panels = figure.subplots(2, 3)
    axes_of = [
        ("Fig. 6", "N", "number of queries"),
        ("Fig. 7", "W", "width of queries (%)"),
        ("Fig. 8", "FL", "fluctuation level, measured (%)"),
    ]
    for column, (mine, (title, by, label)) in enumerate(
        zip(_sweeps(parameters, results), axes_of, strict=True)
    ):
        xs = [r["fluctuation"] if by == "FL" else case[by] for case, r in mine]
        top, low = panels[0][column], panels[1][column]
        for name in ("cei", "walk", "bmq"):
            _line(top, xs, [efficiency(r, name) for _, r in mine], name)
        for name in ("bmq", *RIVALS):
            _line(low, xs, [ns(r, name, "search") / 1000 for _, r in mine], name)
        top.set_title(f"{title}(a): search efficiency (%)")
        low.set_title(f"{title}(b): search time (µs)")
        top.set_ylim(0, 105)
        logarithmic(low)
        for axes in (top, low):
            if by == "FL":
                axes.set_xscale("log")
                axes.axvline(parameters["widths"][-1], color=GREY, lw=1, ls=":")
                axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            else:
                axes.set_xticks(xs, [short(x) for x in xs], fontsize=9)
            axes.set_xlabel(label)
    panels[0][2].annotate(
        "FL = W", (parameters["widths"][-1], 4), (4, 0), textcoords="offset points", fontsize=9
    )
    handles, labels = panels[0][0].get_legend_handles_labels()
    more, names = panels[1][0].get_legend_handles_labels()
    known = dict(zip([*labels, *names], [*handles, *more], strict=True))
    known["DiffRMQ (CEI)"] = more[names.index("DiffRMQ (CEI)")]
    figure.legend(known.values(), known, loc="outside lower center", ncols=5, fontsize=9)


def _line(axes: Axes, xs: Sequence[float], ys: Sequence[float], name: str) -> None:
    label, colour, marker, dashes = LOOKS[name]
    axes.plot(xs, ys, dashes, color=colour, marker=marker, ms=5, lw=1.5, label=label)
