"""How many constructs a query is cut into: the formulas of section 4 and Fig. 14."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from limen.indexes import create
from limen.kernels import cei_plain, lci, ui
from limen.plotting.style import BLUE, GREY, ORANGE, short_numbers
from limen.reproduce import Check, Verdict

from ..exact import Array, cut, fewest, held, log2, powers, same

CLAIM = "CEI-3"
PAPER = (
    "Lemmas 3 to 9, Theorems 2 and 3 and Table 2 give the constructs that a query is cut into, in "
    "closed form; in simulation the totals lie between the bounds, and UI uses far more constructs than "
    "CEI, and CEI more than LCI (Fig. 14)."
)
SCALES = {
    "quick": {
        "scale": "formulas for L up to 16; Fig. 14 with n = 5,000 queries, a twentieth of the paper's",
        "lengths": [2, 4, 8, 16],
        "multiples": 4,
        "simulated": [2, 4, 8, 16, 32, 64, 128],
        "W": 200,
        "n": 5000,
        "r": 1_048_576,
    },
    "full": {
        "scale": "formulas for L up to 64; Fig. 14 at the paper's n, W and r",
        "lengths": [2, 4, 8, 16, 32, 64],
        "multiples": 5,
        "simulated": [2, 4, 8, 16, 32, 64, 128],
        "W": 200,
        "n": 100_000,
        "r": 1_048_576,
    },
}
ERRORS = 4  # standard errors that a simulated total may be from the mean


# -- as printed ----------------------------------------------------------------------------------


def lemma_5(length: int) -> Fraction:
    return Fraction(length**2, 2) + Fraction(3 * length, 2) + length**2 * log2(length)


def lemma_6(length: int, i: int) -> Fraction:
    return lemma_5(length) + (i - 1) * length**2


def lemma_7(length: int, j: int) -> Fraction:
    square = length**2
    return (
        Fraction(square, 2 ** (j + 1))
        + Fraction(3 * length, 2)
        + Fraction(square * log2(length), 2**j)
        - Fraction(j * square, 2**j)
        - 2 ** (j - 1)
    )


def theorem_2(length: int, beta: int) -> tuple[Fraction, Fraction]:
    """Its two parts in braces: lengths in (0, L] and in (L, beta L]."""
    k, square, half = log2(length), length**2, Fraction(1, 2)
    short = square * k + 3 * half * length * k - 3 * half * square + 3 * half * length + 1
    rest = (beta - 1) * (3 * half * length + square * k - half * square)
    return short, rest + square * Fraction(beta * (beta - 1), 2)


def lemma_9(length: int, i: int) -> Fraction:
    """With i = 0, Lemma 8."""
    return 1 + Fraction(length * log2(length), 2) + i * length


def theorem_3(length: int, beta: int) -> Fraction:
    k = log2(length)
    return beta + Fraction(beta * length * k, 2) + Fraction(beta * (beta - 1) * length, 2)


def cei_bounds(length: int, width: int) -> tuple[Fraction, Fraction]:
    """Table 2, of the mean."""
    beta, k, square, half = width // length, log2(length), length**2, Fraction(1, 2)
    low = beta * square * k + half * (beta**2 - 2 * beta - 2) * square
    low += 3 * half * length * k + 3 * half * beta * length + 1
    high = (beta + 1) * square * k + half * (beta**2 - 3) * square
    high += 3 * half * length * k + 3 * half * (beta + 1) * length + 1
    return low / (width * length), high / (width * length)


def lci_bounds(length: int, width: int) -> tuple[Fraction, Fraction]:
    """Table 2, of the mean."""
    beta, k, half = width // length, log2(length), Fraction(1, 2)
    low = beta + half * beta * length * k + half * beta * (beta - 1) * length
    high = beta + 1 + half * (beta + 1) * length * k + half * (beta + 1) * beta * length
    return low / width, high / width


# -- enumeration ---------------------------------------------------------------------------------


def cei_counts(length: int, width: int) -> Array:
    """CEIs of [p, p + w): row p of a segment, column w - 1 up to the width; all cuts tried."""
    number = fewest(length + width, length).number
    return np.array([number[p, p + 1 : p + width + 1] for p in range(length)])


def lci_counts(length: int, width: int) -> Array:
    """LCIs of an interval of w = 1..width: always the longest that fits, from the left."""
    counts = []
    for rest in range(1, width + 1):
        used = 0
        for size in reversed(powers(length)):
            used, rest = used + rest // size, rest % size
        counts.append(used)
    return np.array(counts)


def lci_fewest(length: int, width: int) -> Array:
    """The fewest LCIs of an interval of w = 1..width, all cuts tried."""
    best = [0]
    for w in range(1, width + 1):
        best.append(1 + min(best[w - size] for size in powers(length) if size <= w))
    return np.array(best[1:])


def kernel_counts(kernel: Any, length: int, width: int) -> Array:
    """The same numbers as the library's kernel gives them, for all p and w."""
    p, w = (side.ravel() for side in np.mgrid[0:length, 1 : width + 1])
    found = cut(kernel, length + width, length, p, p + w - 1)
    return np.bincount(found.query, minlength=len(p)).reshape(length, width)


def ui_counts(width: int) -> Array:
    """Units of an interval of w = 1..width, by the library's kernel."""
    w = np.arange(1, width + 1)
    return np.bincount(cut(ui, width, 1, 0 * w, w - 1).query, minlength=width)


def total(counts: Array, above: int, upto: int) -> int:
    """T of the lengths in (above, upto]."""
    return int(counts[..., above:upto].sum())


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    formulas = [
        {"name": f"formulas L={length}", "kind": "formulas", "L": length}
        for length in parameters["lengths"]
    ]
    simulated = [
        {"name": f"simulation L={length}", "kind": "simulation", "L": length}
        for length in parameters["simulated"]
    ]
    return [*formulas, *simulated]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if case["kind"] == "formulas":
        return formulas(case["L"], parameters["multiples"])
    return simulation(case["L"], parameters["W"], parameters["n"], parameters["r"])


def formulas(length: int, multiples: int) -> dict[str, Any]:
    """For each statement: how often it was looked at, how often it is wrong."""
    cei, one = cei_counts(length, multiples * length), lci_counts(length, multiples * length)
    k = log2(length)
    betas = range(1, multiples + 1)
    found: dict[str, Any] = {
        "Lemma 3": aligned(length),
        "Lemma 4": [
            (sum(w.bit_count() for w in range(2**d)), Fraction(d * 2**d, 2))
            for d in range(1, k + 1)
        ],
        "Lemma 5": [(total(cei, length, 2 * length), lemma_5(length))],
        "Lemma 6": [
            (total(cei, i * length, (i + 1) * length), lemma_6(length, i))
            for i in range(1, multiples)
        ],
        "Lemma 7": [
            (total(cei, length >> j, length >> (j - 1)), lemma_7(length, j))
            for j in range(1, k + 1)
        ],
        "over-count": [(over_count(length, j), 2 ** (j - 1)) for j in range(1, k + 1)],
        "Theorem 2": [
            pair
            for beta in betas
            for pair in zip(
                (total(cei, 0, length), total(cei, length, beta * length)),
                theorem_2(length, beta),
                strict=True,
            )
        ],
        "Lemma 8": [(total(one, 0, length), lemma_9(length, 0))],
        "Lemma 9": [
            (total(one, i * length, (i + 1) * length), lemma_9(length, i)) for i in range(multiples)
        ],
        "Theorem 3": [(total(one, 0, beta * length), theorem_3(length, beta)) for beta in betas],
        "CEI library": zip(
            kernel_counts(cei_plain, length, cei.shape[1]).ravel(), cei.ravel(), strict=True
        ),
        "LCI library": zip(
            kernel_counts(lci, length, len(one)).ravel(), np.tile(one, length), strict=True
        ),
        "LCI fewest": zip(one, lci_fewest(length, len(one)), strict=True),
        **in_table_2(length, cei, one),
    }
    return {name: counted(list(pairs)) for name, pairs in found.items()} | {
        "order": orders(length, cei, one)
    }


def counted(pairs: list[tuple[Any, Any]]) -> list[int]:
    return [len(pairs), sum(bool(found != printed) for found, printed in pairs)]


def aligned(length: int) -> list[tuple[int, int]]:
    """Intervals shorter than L that begin or end at a guiding post: CEIs, and ones of the length."""
    number = fewest(2 * length, length).number
    pairs = []
    for w in range(1, length):
        pairs.append((int(number[length, length + w]), w.bit_count()))
        pairs.append((int(number[length - w, length]), w.bit_count()))
    return pairs


def over_count(length: int, j: int) -> int:
    """How many CEIs too many section 4.1 counts at first, where it cuts at every L/2^j."""
    size = length >> j
    p, w = np.mgrid[0:length, size + 1 : 2 * size + 1]
    coarse = fewest(3 * length, size).number  # no CEI is longer than a sub-segment
    right = fewest(3 * length, length).number
    return int((coarse[p, p + w] - right[p, p + w]).sum())


def in_table_2(length: int, cei: Array, one: Array) -> dict[str, list[tuple[bool, bool]]]:
    """Whether the means for all W are within the bounds, apart for W > L and the W that are excluded."""
    found: dict[str, list[tuple[bool, bool]]] = {
        name: [] for name in ("CEI bounds", "LCI bounds", "UI mean", "W <= L", "multiples")
    }
    unit = ui_counts(len(one))
    for width in range(1, len(one) + 1):
        means = (
            Fraction(total(cei, 0, width), length * width),
            Fraction(total(one, 0, width), width),
        )
        bounds = cei_bounds(length, width), lci_bounds(length, width)
        inside = [low <= mean <= high for mean, (low, high) in zip(means, bounds, strict=True)]
        if width > length:
            found["CEI bounds"].append((inside[0], True))
            found["LCI bounds"].append((inside[1], True))
        else:
            found["W <= L"] += [(one, True) for one in inside]
        if width % length == 0:
            found["multiples"] += [
                (mean == low, True) for mean, (low, _) in zip(means, bounds, strict=True)
            ]
        units = Fraction(total(unit, 0, width), width)
        found["UI mean"].append((units == Fraction(1 + width, 2), True))
    return found


def orders(length: int, cei: Array, one: Array) -> list[float]:
    """Least and greatest mean over (log L + W/L), for W > L: Eqs. 2 and 4."""
    ratios = []
    for width in range(length + 1, len(one) + 1):
        order = log2(length) + width / length
        ratios += [total(cei, 0, width) / (length * width) / order]
        ratios += [total(one, 0, width) / width / order]
    return [min(ratios), max(ratios)]


# -- Fig. 14 -------------------------------------------------------------------------------------


def simulation(length: int, width: int, n: int, r: int) -> dict[str, Any]:
    """The paper's queries in the real indexes; the domain has room for those that reach beyond r."""
    rng = np.random.default_rng(14)
    begin = rng.integers(1, r, n)
    end = begin + rng.integers(1, width + 1, n)
    entries = {}
    for kind, name in (("CEI", "cei-plain"), ("LCI", "lci-bv"), ("UI", "ui")):
        longest = {} if kind == "UI" else {"length": length}
        index = create(name, domain=range(r + width), ends="half-open", **longest)
        index.build(np.arange(n, dtype=np.int32), begin, end)
        entries[kind] = index.entries
    cei, one = cei_counts(length, width), lci_counts(length, width)
    return {
        "entries": entries,
        "mean": {"CEI": cei.mean(), "LCI": one.mean(), "UI": (1 + width) / 2},
        "deviation": {"CEI": cei.std(), "LCI": one.std(), "UI": np.arange(width).std()},
        "CEI bounds": [float(bound) for bound in cei_bounds(length, width)],
        "LCI bounds": [float(bound) for bound in lci_bounds(length, width)],
    }


# -- the verdict ---------------------------------------------------------------------------------

STATEMENTS = [
    (
        "Lemma 3",
        "an interval of w < L with an end at a guiding post takes as many CEIs as w has ones",
        "|B_w|",
        "intervals",
    ),
    ("Lemma 4", "ones in all numbers of d bits", "d 2^(d-1)", "values of d"),
    ("Lemma 5", "T(L, 2L]", "L^2/2 + 3L/2 + L^2 log L", "lengths L"),
    ("Lemma 6", "T(iL, (i+1)L]", "T(L, 2L] + (i-1) L^2", "pairs (L, i)"),
    ("over-count", "by cutting at every L/2^j (before Lemma 7)", "2^(j-1)", "pairs (L, j)"),
    (
        "Lemma 7",
        "T(L/2^j, L/2^(j-1)]",
        "L^2/2^(j+1) + 3L/2 + (L^2/2^j) log L - jL^2/2^j - 2^(j-1)",
        "pairs (L, j)",
    ),
    (
        "Theorem 2",
        "T(0, L] and T(L, beta L]",
        "{L^2 log L + 3L/2 log L - 3L^2/2 + 3L/2 + 1} + {(beta-1)(3L/2 + L^2 log L - L^2/2) "
        "+ L^2 beta(beta-1)/2}",
        "sums",
    ),
    ("Lemma 8", "T'(0, L]", "1 + (L/2) log L", "lengths L"),
    ("Lemma 9", "T'(iL, (i+1)L]", "1 + (L/2) log L + iL", "pairs (L, i)"),
    (
        "Theorem 3",
        "T'(0, beta L]",
        "beta + (beta L/2) log L + (beta(beta-1)/2) L",
        "pairs (L, beta)",
    ),
    ("UI mean", "Table 2", "(1 + W)/2", "pairs (L, W)"),
    ("LCI bounds", "Table 2, the mean for every W > L", "between the two", "pairs (L, W)"),
    ("CEI bounds", "Table 2, the mean for every W > L", "between the two", "pairs (L, W)"),
    ("W <= L", "the bounds of Table 2 where the paper leaves them out", "excluded", "means"),
    ("multiples", "the lower bounds, where W is a multiple of L, are the mean", "<=", "means"),
    ("LCI fewest", "always the largest LCI gives as few as possible (2.2)", "fewest", "lengths"),
    ("CEI library", "the kernel's cuts are as many as enumerated", "section 4", "intervals"),
    ("LCI library", "the kernel's cuts are as many as enumerated", "section 4", "intervals"),
]


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    rows = [result for case, result in results if case["kind"] == "formulas"]
    simulated = [(case["L"], row) for case, row in results if case["kind"] == "simulation"]
    checks = []
    for name, says, paper, what in STATEMENTS:
        looked, wrong = (sum(column) for column in zip(*(r[name] for r in rows), strict=True))
        checks.append(same(f"{name}: {says}", paper, looked, wrong, what))
    low, high = min(row["order"][0] for row in rows), max(row["order"][1] for row in rows)
    checks.append(
        Check.of(
            "Eqs. 2 and 4: the means are of the order of log L + W/L",
            low >= 0.25 and high <= 1,
            "O(log L + W/L)",
            f"{low:.2f} to {high:.2f} times it, for every W > L",
        )
    )
    checks += _simulated(parameters, simulated)
    n, width = parameters["n"], parameters["W"]
    told = "; ".join(
        f"L = {length}: UI {row['entries']['UI'] / n:.1f}, CEI {row['entries']['CEI'] / n:.2f}, "
        f"LCI {row['entries']['LCI'] / n:.2f}"
        for length, row in (simulated[0], simulated[-1])
    )
    exact = [length for length, _ in simulated if width % length == 0]
    below = [
        1 - row["entries"][kind] / n / row[f"{kind} bounds"][0]
        for _, row in simulated
        for kind in ("CEI", "LCI")
        if row["entries"][kind] / n < row[f"{kind} bounds"][0]
    ]
    gaps = [row["CEI bounds"][1] / row["CEI bounds"][0] - 1 for _, row in simulated]
    return Verdict(
        checks,
        f"{held(checks)}; constructs a query in the simulation of Fig. 14, {told}.",
        "How tight Table 2 is depends on L: the upper bound of CEI is "
        f"{gaps[0]:.0%} over the lower one at L = {simulated[0][0]} and {gaps[-1]:.0%} at "
        f"L = {simulated[-1][0]}. At L = {_series(exact)}, W = {width} is a multiple of L and the lower "
        "bounds are the means themselves: a simulated total falls below them as often as not"
        + (f" (here {len(below)} do, by {max(below):.2%} or less). " if below else ". ")
        + "Slips in the text, of no consequence. The over-count comes from two CEIs of length L/2^j, not "
        "L/2^(j-2), and concerns half of the 2^j intervals of length L/2^(j-1) that begin at a "
        "sub-segment: only that half are CEIs. The union before Eq. 1 must run over i < beta (i <= beta "
        "may be the scan's). Lengths uniform in 1..W have the mean (W + 1)/2, as section 4 says, not W/2 "
        "(section 5). Section 5.1 points to Table 1 for D and means Table 2. In our scan of Table 2 the "
        "lower bound of LCI stands twice, once with 1/5 for 1/2: taken for a fault of the scan.",
    )


def _series(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _simulated(
    parameters: dict[str, Any], simulated: list[tuple[int, dict[str, Any]]]
) -> list[Check]:
    n = parameters["n"]
    checks = []
    for kind in ("CEI", "LCI"):
        outside, worst = [], 0.0
        for length, row in simulated:
            mean, error = row["entries"][kind] / n, row["deviation"][kind] / n**0.5
            low, high = row[f"{kind} bounds"]
            worst = max(worst, abs(mean - row["mean"][kind]) / error)
            if not low - ERRORS * error <= mean <= high + ERRORS * error:
                outside.append(length)
        checks.append(
            Check.of(
                f"Fig. 14: {kind}'s total is within the bounds at every L (but for chance)",
                not outside and worst <= ERRORS,
                "within",
                f"outside at L = {_series(outside)}"
                if outside
                else f"within at all {len(simulated)}; {worst:.1f} standard errors or less from the "
                "enumerated mean",
            )
        )
    cei = [row["entries"]["UI"] / row["entries"]["CEI"] for _, row in simulated]
    one = [row["entries"]["CEI"] / row["entries"]["LCI"] for _, row in simulated]
    checks.append(
        Check.of(
            "Fig. 14(c): UI uses significantly more constructs than CEI",
            min(cei) > 1.5,
            "UI >> CEI",
            f"{cei[0]:.1f} times at L = {simulated[0][0]}, {cei[-1]:.1f} times at L = {simulated[-1][0]}",
            direction=min(cei) > 1,
        )
    )
    checks.append(
        Check.of(
            "Fig. 14(c): CEI uses more constructs than LCI",
            min(one) > 1,
            "CEI > LCI",
            f"{one[0]:.3f} times at L = {simulated[0][0]}, {one[-1]:.2f} times at L = {simulated[-1][0]}",
        )
    )
    return checks


# -- the figure ----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    simulated = [(case["L"], row) for case, row in results if case["kind"] == "simulation"]
    lengths = [length for length, _ in simulated]
    panels = figure.subplots(1, 3)
    figure.set_size_inches(11.5, 4.8)
    for axes, kind, colour, letter in (
        (panels[0], "CEI", BLUE, "a"),
        (panels[1], "LCI", ORANGE, "b"),
    ):
        _bounds(axes, simulated, lengths, parameters["n"], kind, colour)
        axes.set_title(f"({letter}) {kind}")
    for kind, colour in (("UI", GREY), ("CEI", BLUE), ("LCI", ORANGE)):
        totals = [row["entries"][kind] for _, row in simulated]
        panels[2].plot(lengths, totals, "o-", color=colour, linewidth=1.4, markersize=5.5)
        panels[2].annotate(
            kind,
            (lengths[-1], totals[-1]),
            (9, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            weight="bold",
        )
    panels[2].set_title("(c) all three")
    panels[2].set(yscale="log", xlim=(lengths[0] / 1.25, lengths[-1] * 2.6))
    panels[2].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
    panels[0].set_ylabel("total decomposed virtual constructs")
    for axes in panels:
        axes.set(xscale="log", xlabel="maximal interval length L")
        axes.set_xticks(lengths, [str(length) for length in lengths])
        axes.minorticks_off()
        axes.grid(axis="x", visible=False)
        short_numbers(axes)


def _bounds(
    axes: Axes,
    simulated: list[tuple[int, dict[str, Any]]],
    lengths: list[int],
    n: int,
    kind: str,
    colour: str,
) -> None:
    low, high = ([row[f"{kind} bounds"][i] * n for _, row in simulated] for i in (0, 1))
    axes.fill_between(lengths, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.plot(lengths, high, "--", color=colour, linewidth=1.3, label="upper bound")
    totals = [row["entries"][kind] for _, row in simulated]
    axes.plot(lengths, totals, "o", color=colour, markersize=6, label="simulation", zorder=3)
    axes.plot(lengths, low, "-", color=colour, linewidth=1.3, label="lower bound")
    axes.set_ylim(0, 1.06 * max(high))
    axes.legend(loc="upper right")
