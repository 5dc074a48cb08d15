"""Coordinates of virtual constructs, and bitmaps as in the example of Fig. 3(a)."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from limen.indexes import create
from limen.kernels import id_lists, lci, lci_bc, sci, sci_bc
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION
from limen.reproduce import Check, Verdict

from ..exact import Array, cut, held, log2, powers, same

CLAIM = "VCI-1"
PAPER = (
    "A construct [a, b] has the coordinate (a - a0)L + (b - a) - 1 in SCI (Eq. 1) and "
    "(a - a0)(log L + 1) + log(b - a) in LCI (Eq. 2). With R = 7 and L = 4, p: [a0, a0 + 6] is put into "
    "the lists 3 and 17, q: [a0, a0 + 2] into 1, and the bits listed are set (Fig. 3(a))."
)
SCALES = {
    "quick": {
        "scale": "R up to 200, L up to 16; the paper's queries with n and searches divided by 10",
        "R": [7, 50, 200],
        "lengths": [1, 2, 4, 8, 16],
        "small": 40,
        "n": 1000,
        "searches": 1000,
        "range": 5000,
        "W": 200,
        "searched": [2, 16, 128],
    },
    "full": {
        "scale": "R up to 1,000, L up to 64; the paper's queries: R = 5,000, W = 200, n = 10,000",
        "R": [7, 50, 200, 1000],
        "lengths": [1, 2, 4, 8, 16, 32, 64],
        "small": 100,
        "n": 10_000,
        "searches": 10_000,
        "range": 5000,
        "W": 200,
        "searched": [2, 4, 8, 16, 32, 64, 128],
    },
}
A0 = 100  # where domains begin
KERNELS: dict[str, ModuleType] = {"SCI": sci, "LCI": lci}
EXACT = ["sci-bc", "lci", "lci-bc", "lci-bv", "lci-bv-dt"]


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [{"name": name} for name in ("coordinates", "example", "insertion", "bitmaps")]
    return [*parts, *({"name": f"search L={L}", "L": L} for L in parameters["searched"])]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if case["name"] == "coordinates":
        return coordinates(parameters["R"], parameters["lengths"])
    if case["name"] == "example":
        return example()
    if case["name"] == "insertion":
        return insertion(parameters["small"], parameters["lengths"])
    if case["name"] == "bitmaps":
        return bitmaps(parameters["lengths"])
    return searched(parameters, case["L"])


# -- Eqs. 1 and 2 --------------------------------------------------------------------------------


def eq_1(a: int, b: int, length: int) -> int:
    return (a - A0) * length + (b - a) - 1


def eq_2(a: int, b: int, length: int) -> int:
    return (a - A0) * (log2(length) + 1) + log2(b - a)


def by_definition(kind: str, size: int, length: int) -> list[tuple[int, int]]:
    """Ends of all constructs, those of a value after those of the one before (2.2 and 2.3)."""
    widths = range(1, length + 1) if kind == "SCI" else powers(length)
    return [(a, a + width) for a in range(A0, A0 + size) for width in widths]


def ends_of(kind: str, c: int, length: int) -> tuple[int, int]:
    """A construct from its coordinate (section 4, for LCI; SCI likewise)."""
    if kind == "SCI":
        a, rest = divmod(c, length)
        return A0 + a, A0 + a + rest + 1
    a, rest = divmod(c, log2(length) + 1)
    return A0 + a, A0 + a + 2**rest


def coordinates(sizes: list[int], lengths: list[int]) -> dict[str, Any]:
    """Constructs looked at, and where the equation, its inverse or the library disagree."""
    found = {}
    for kind, equation in (("SCI", eq_1), ("LCI", eq_2)):
        tally = np.zeros(4, np.int64)
        for size in sizes:
            for length in lengths:
                ends = by_definition(kind, size, length)
                labels = [equation(a, b, length) for a, b in ends]
                rows = KERNELS[kind].constructs(size, length, 1).tolist()
                library = {label: (A0 + first, A0 + last) for label, first, last in rows}
                tally += (
                    len(ends),
                    sum(label != i for i, label in enumerate(labels)),  # 0..N-1, each once
                    sum(ends_of(kind, c, length) != ends[c] for c in range(len(ends))),
                    sum(library.get(label) != one for label, one in zip(labels, ends, strict=True)),
                )
        found[kind] = tally.tolist()
    return found


# -- Fig. 3(a) -----------------------------------------------------------------------------------

LISTED = {  # the text's bits, as (i, c) of b_i,c
    "q": [(0, 1), (1, 1), (2, 1)],
    "p": [(0, 3), (1, 3), (2, 3), (3, 3), (4, 3), (4, 17), (5, 17), (6, 17)],
}


class Bitmaps:
    """An index made of the kernels alone, to look into."""

    def __init__(self, kernel: ModuleType, size: int, length: int) -> None:
        self._kernel, layout = kernel, kernel.layout(size, length, 1)
        empty = id_lists.empty(layout, size, length, 1)
        self.index = empty._replace(entries=np.zeros((1 << 14, 2), np.int32))
        self._bits, self._base, self._step = layout.bits, layout.base, layout.step

    def _pieces(self, x: int, y: int) -> tuple[Array, Array]:
        rows, offsets = np.empty((1024, 3), np.int64), np.zeros(2, np.int64)
        self._kernel.decompose(self.index, np.array([x]), np.array([y]), 0, offsets, rows)
        return offsets, rows

    def insert(self, who: int, x: int, y: int) -> None:
        id_lists.put(self.index, np.array([who], np.int32), *self._pieces(x, y), 1)

    def delete(self, who: int, x: int, y: int) -> None:
        id_lists.take(self.index, np.array([who], np.int32), *self._pieces(x, y), 1)

    def ones(self) -> list[list[int]]:
        """Which bits are set: position, coordinate."""
        rows = self.index.bits.view(np.uint8)
        found = np.argwhere(np.unpackbits(rows, axis=1, bitorder="little"))
        return [[int(i), int(self._base + self._step * i + bit)] for i, bit in found]

    def lists(self) -> list[int]:
        return np.flatnonzero(self.index.head).tolist()


def example() -> dict[str, Any]:
    index = create("sci", domain=range(A0, A0 + 7), length=4)
    found: dict[str, Any] = {
        name: [label for label, _, _ in index.pieces(A0, y)]
        for name, y in (("p", A0 + 6), ("q", A0 + 2))
    }
    bitmaps = Bitmaps(sci, 7, 4)
    bitmaps.insert(0, 0, 6)
    bitmaps.insert(1, 0, 2)
    found |= {"bits": sorted(bitmaps.ones()), "lists": bitmaps.lists()}
    bitmaps.delete(0, 0, 6)
    found["without p"] = sorted(bitmaps.ones())
    bitmaps.delete(1, 0, 2)
    found["empty"] = bitmaps.ones() + [[c] for c in bitmaps.lists()]
    index.build(np.array([0, 1]), np.array([A0, A0]), np.array([A0 + 6, A0 + 2]))
    found["at 4"] = index.stab(A0 + 4).tolist()
    index = create("lci", domain=range(A0, A0 + 100), length=16)
    found["2.3"] = [[a - A0, b - A0] for _, a, b in index.pieces(A0, A0 + 7)]
    return found


# -- insertion -----------------------------------------------------------------------------------


def insert(x: int, y: int, length: int) -> list[tuple[int, int]]:
    """Fig. 2, as printed."""
    if y - x > length:
        m = (y - x - 1) // length
        return [(x + j * length, x + (j + 1) * length) for j in range(m)] + [(x + m * length, y)]
    return [(x, y)]


def insert_lci(x: int, y: int, length: int) -> list[tuple[int, int]]:
    """Fig. 2, with the remnant in the powers of two that it is the sum of (section 2.3)."""
    *whole, (x, y) = insert(x, y, length)
    for size in reversed(powers(length)):
        if size <= y - x:
            whole.append((x, x + size))
            x += size
    return whole


def insertion(size: int, lengths: list[int]) -> dict[str, Any]:
    """All queries of a small domain: how many, and cuts that are not right or not the library's."""
    lo, hi = np.triu_indices(size, 1)
    queries = list(zip(lo.tolist(), hi.tolist(), strict=True))
    found = {}
    for kind, printed in (("SCI", insert), ("LCI", insert_lci)):
        tally = np.zeros(4, np.int64)
        for length in lengths:
            sizes = set(range(1, length + 1)) if kind == "SCI" else set(powers(length))
            pieces = cut(KERNELS[kind], size, length, lo, hi, closed=True)
            ours: list[list[tuple[int, int]]] = [[] for _ in queries]
            for query, a, b in zip(
                pieces.query.tolist(), pieces.first.tolist(), pieces.last.tolist(), strict=True
            ):
                ours[query].append((a, b))
            for (x, y), library in zip(queries, ours, strict=True):
                cuts = printed(x, y, length)
                remnant = cuts[-1][1] - cuts[-1][0]
                covered = {v for a, b in cuts for v in range(a, b + 1)}
                tally += (
                    1,
                    covered != set(range(x, y + 1)) or any(b - a not in sizes for a, b in cuts),
                    kind == "SCI" and (len(cuts) != -(-(y - x) // length) or remnant > length),
                    cuts != library,
                )
        found[kind] = tally.tolist()
    return found


def bitmaps(lengths: list[int]) -> dict[str, Any]:
    """Bits after random insertions and deletions: those looked at, and those that are wrong."""
    looked = wrong = 0
    for kind, kernel in (("SCI", sci), ("SCI", sci_bc), ("LCI", lci), ("LCI", lci_bc)):
        for length in lengths:
            rng = np.random.default_rng(length)
            size = 3 * max(lengths)
            index, held_by = Bitmaps(kernel, size, length), dict[int, tuple[int, int]]()
            for who in range(60):
                if held_by and rng.random() < 0.4:
                    gone = int(rng.choice(list(held_by)))
                    index.delete(gone, *held_by.pop(gone))
                x, y = sorted(rng.choice(size, 2, replace=False).tolist())
                held_by[who] = x, y
                index.insert(who, x, y)
            printed = insert if kind == "SCI" else insert_lci
            equation = eq_1 if kind == "SCI" else eq_2
            wanted = {
                (i, equation(A0 + a, A0 + b, length))
                for x, y in held_by.values()
                for a, b in printed(x, y, length)
                for i in range(a, b + 1)
            }
            ones = {(i, c) for i, c in index.ones()}
            looked += len(ones | wanted)
            wrong += len(ones ^ wanted)
    return {"bits": [looked, wrong]}


# -- searching -----------------------------------------------------------------------------------


def searched(parameters: dict[str, Any], length: int) -> dict[str, Any]:
    """The paper's queries: what a search as written reports, and what the library's indexes do."""
    n, end = parameters["n"], parameters["range"]
    rng = np.random.default_rng(5)
    lo = rng.integers(1, end, n)
    hi = np.minimum(lo + rng.integers(1, parameters["W"] + 1, n), end)
    xs = rng.integers(1, end + 1, parameters["searches"])
    wanted = matches(lo, hi, xs)
    found: dict[str, Any] = {"matches": len(wanted), "as written": {}}
    for kind, printed in (("SCI", insert), ("LCI", insert_lci)):
        cuts = [printed(x, y, length) for x, y in zip(lo.tolist(), hi.tolist(), strict=True)]
        begins, ends = np.array([piece for pieces in cuts for piece in pieces]).T
        over = np.bincount(begins, minlength=end + 2) - np.bincount(ends + 1, minlength=end + 2)
        joints = np.bincount([a for pieces in cuts for a, _ in pieces[1:]], minlength=end + 2)
        reports = int(np.cumsum(over)[xs].sum())
        found["as written"][kind] = [reports, int(joints[xs].sum())]
    found["exact"] = {}
    for name in EXACT:
        index = create(name, domain=range(1, end + 1), length=length)
        index.build(np.arange(n), lo, hi)
        offsets, ids = index.stab_many(xs)
        keys = np.sort(np.repeat(np.arange(len(xs)), np.diff(offsets)) * n + ids)
        again = int((keys[1:] == keys[:-1]).sum())
        wrong = 0 if np.array_equal(keys, wanted) else len(np.setxor1d(keys, wanted))
        found["exact"][name] = [again, wrong]
    return found


def matches(lo: Array, hi: Array, xs: Array) -> Array:
    """All pairs of a value and a query that contains it, as number of the value * n + query."""
    parts = []
    for start in range(0, len(xs), 500):
        x = xs[start : start + 500, None]
        value, query = np.nonzero((lo <= x) & (x <= hi))
        parts.append((value + start) * len(lo) + query)
    return np.concatenate(parts)


# -- the verdict ---------------------------------------------------------------------------------


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    by_name = {case["name"]: result for case, result in results}
    found = [(case["L"], result) for case, result in results if "L" in case]
    checks = [
        *_coordinates(by_name["coordinates"]),
        *_example(by_name["example"]),
        *_insertion(by_name["insertion"]),
        same(
            "2.2: a bit is 1 where the construct covers the value and its list is not empty",
            "set and reset",
            *by_name["bitmaps"]["bits"],
            "bits, after random histories",
        ),
        *_search(found),
    ]
    (first, short), (last, long) = found[0], found[-1]
    return Verdict(
        checks,
        f"{held(checks)}; but a search as written reports an id twice at every joint of two constructs: "
        f"in the paper's queries (n = {parameters['n']:,}, LCI) {_share(short, 'LCI'):.0%} of what it "
        f"reports at L = {first} and {_share(long, 'LCI'):.1%} at L = {last}. Ours report "
        f"{sum(_again(row) for _, row in found) or 'none'} twice.",
        "Constructs of a query that follow each other share an end: in Fig. 3(a) itself, a0 + 4 has the "
        "bits of both 3 and 17, and p is in both lists. The paper does not speak of it (the CEI paper "
        "warns of such repeats), so a search has to remove them. The library marks the id in the first "
        "of the two lists, and a search that stands on the last value of that construct passes it over, "
        "at no cost in storage. A slip: bitmaps are counted from a0 on, so set_bitmap runs over "
        "a - a0 <= i <= b - a0 (2.2 has a <= i <= b). Lengths uniform in 1..W have the mean (W + 1)/2, "
        "not W/2 (5.2).",
    )


def _coordinates(found: dict[str, list[int]]) -> list[Check]:
    checks = []
    for kind, equation, paper in (
        ("SCI", "Eq. 1", "(a - a0)L + (b - a) - 1"),
        ("LCI", "Eq. 2", "(a - a0)(log L + 1) + log(b - a)"),
    ):
        looked, labels, inverse, library = found[kind]
        checks += [
            same(
                f"{equation}: coordinates are 0..N-1, each once",
                paper,
                looked,
                labels,
                "constructs",
            ),
            same(
                f"{kind}: the ends of a construct follow from its coordinate",
                "floor(c/(k + 1)) and the remainder (section 4)" if kind == "LCI" else "not stated",
                looked,
                inverse,
                "constructs",
            ),
            same(
                f"{kind}: the library's labels are the coordinates",
                equation,
                looked,
                library,
                "constructs",
            ),
        ]
    return checks


def _example(found: dict[str, Any]) -> list[Check]:
    bits = sorted([i, c] for name in "pq" for i, c in LISTED[name])
    q_only = sorted([i, c] for i, c in LISTED["q"])
    return [
        Check.of(
            "Fig. 3(a): p goes into the lists",
            found["p"] == [3, 17],
            "3 and 17",
            " and ".join(map(str, found["p"])),
        ),
        Check.of("Fig. 3(a): q goes into the list", found["q"] == [1], "1", str(found["q"][0])),
        Check.of(
            "Fig. 3(a): exactly the bits listed are 1, in 7 bitmaps of 28",
            found["bits"] == bits and found["lists"] == [1, 3, 17],
            f"{len(bits)} bits",
            f"the same {len(bits)}" if found["bits"] == bits else f"{len(found['bits'])} others",
        ),
        Check.of(
            "Fig. 3(a): a0 + 4 finds p, in the library once",
            found["at 4"] == [0],
            "lists 3 and 17",
            f"{found['at 4'].count(0)} time{'' if len(found['at 4']) == 1 else 's'}",
        ),
        Check.of(
            "2.2: taking p out clears its bits and no other, taking q out the rest",
            found["without p"] == q_only and not found["empty"],
            "reset",
            f"{len(found['without p'])} bits left, then {len(found['empty'])}",
        ),
        Check.of(
            "2.3: [a, a + 7] at L = 16",
            found["2.3"] == [[0, 4], [4, 6], [6, 7]],
            "[a, a + 4], [a + 4, a + 6], [a + 6, a + 7]",
            ", ".join(f"[a{f' + {x}' if x else ''}, a + {y}]" for x, y in found["2.3"]),
        ),
    ]


def _insertion(found: dict[str, list[int]]) -> list[Check]:
    looked, wrong, count, library = found["SCI"]
    others = found["LCI"]
    return [
        same(
            "Fig. 2: the constructs cover the interval strictly, nothing more and nothing less",
            "all x < y",
            looked + others[0],
            wrong + others[1],
            "intervals",
            "the remnants of LCI in powers of two",
        ),
        same(
            "Fig. 2: constructs of length L, and a remnant of 1 to L",
            "floor((y - x - 1)/L) and one",
            looked,
            count,
            "intervals",
        ),
        same(
            "The library cuts in the same way",
            "Fig. 2 and 2.3",
            looked + others[0],
            library + others[3],
            "intervals",
        ),
    ]


def _search(found: list[tuple[int, dict[str, Any]]]) -> list[Check]:
    every = sum(row["matches"] for _, row in found)
    lost = sum(
        reports - joints != row["matches"]
        for _, row in found
        for reports, joints in row["as written"].values()
    )
    told = [
        f"{kind} {_share(found[0][1], kind):.1%} at L = {found[0][0]}, "
        f"{_share(found[-1][1], kind):.1%} at L = {found[-1][0]}"
        for kind in ("SCI", "LCI")
    ]
    again, wrong = np.array([pair for _, row in found for pair in row["exact"].values()]).T.tolist()
    return [
        same(
            "2.2: the lists of the bits at a value hold all its predicates (repeats not counted)",
            "all",
            2 * len(found),
            lost,
            "searches of a kind and an L",
            "repeats are, of the reports, " + "; ".join(told),
        ),
        Check.of(
            f"Ours ({', '.join(EXACT)}) report each predicate once, and no other",
            sum(again) + sum(wrong) == 0,
            "not stated",
            f"{sum(again):,} repeats and {sum(wrong):,} errors in {every * len(EXACT):,} reports",
        ),
    ]


def _share(row: dict[str, Any], kind: str) -> float:
    """Of the reports of a search as written, those that are repeats."""
    reports, joints = row["as written"][kind]
    return float(joints / reports)


def _again(row: dict[str, Any]) -> int:
    """Repeats in the reports of the library's indexes."""
    return sum(again for again, _ in row["exact"].values())


# -- the figure ----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    by_name = {case["name"]: result for case, result in results}
    top, below = figure.subplots(2, 1, height_ratios=[1.75, 1])
    _grid(top, {(i, c) for i, c in by_name["example"]["bits"]})
    found = [(case["L"], result) for case, result in results if "L" in case]
    lengths = [length for length, _ in found]
    for kind, colour, marker in (("LCI", ORANGE, "^"), ("SCI", GREEN, "o")):
        shares = [100 * _share(row, kind) for _, row in found]
        below.plot(
            lengths, shares, marker=marker, color=colour, linewidth=1.4, label=f"{kind} as written"
        )
    ours = [100 * _again(row) / row["matches"] for _, row in found]
    below.plot(lengths, ours, marker="s", color=BLUE, linewidth=1.4, label="ours")
    below.set(xscale="log", xlabel="L", ylabel="repeats, %")
    below.set_xticks(lengths, [str(length) for length in lengths])
    below.minorticks_off()
    below.grid(axis="x", visible=False)
    below.set_title("Share of the reports that repeat an id, at joints of two constructs")
    below.legend(ncols=3, loc="upper right")


def _grid(axes: Axes, ones: set[tuple[int, int]]) -> None:
    """Bitmaps of Fig. 3(a): a row a value, a column a construct; the lists below."""
    owner = {bit: name for name, bits in LISTED.items() for bit in bits}
    colours = {"p": BLUE, "q": ORANGE}
    for i in range(7):
        for c in range(28):
            one = (i, c) in ones
            colour = colours[owner.get((i, c), "p")] if one else "#F1F3F5"
            axes.add_patch(
                Rectangle((c - 0.46, i - 0.44), 0.92, 0.88, facecolor=colour, edgecolor="none")
            )
            axes.text(
                c,
                i,
                "1" if one else "0",
                ha="center",
                va="center",
                fontsize=9,
                color="white" if one else "#B4BBC3",
                weight="bold" if one else "normal",
            )
    for c, name in ((1, "q"), (3, "p"), (17, "p")):
        axes.annotate(
            name,
            (c, 6.5),
            (c, 7.75),
            ha="center",
            va="center",
            color="white",
            weight="bold",
            fontsize=10,
            bbox={"boxstyle": "round,pad=0.25", "facecolor": colours[name], "edgecolor": "none"},
            arrowprops={"arrowstyle": "-", "color": colours[name], "linewidth": 1.2},
        )
    axes.text(-1.05, 7.75, "H", ha="right", va="center", color=GREY)
    axes.add_patch(
        Rectangle((2.42, 3.5), 15.16, 1, fill=False, edgecolor=VERMILION, linewidth=1.3, zorder=4)
    )
    axes.annotate(
        "$a_0$ + 4 finds p in two lists",
        (9.5, 4.5),
        (9.5, 7.75),
        color=VERMILION,
        weight="bold",
        ha="center",
        va="center",
        arrowprops={"arrowstyle": "-", "color": VERMILION, "linewidth": 1.2},
    )
    for group in range(1, 7):
        axes.axvline(4 * group - 0.5, ymin=0.16, color="#C3C9D0", linewidth=0.8)
    axes.set(xlim=(-0.6, 27.6), ylim=(8.3, -0.6), xlabel="")
    axes.xaxis.tick_top()
    axes.set_xticks(range(28), [str(c) for c in range(28)])
    axes.set_yticks(range(7), [f"$B_{i}$" for i in range(7)])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.set_facecolor("none")
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_title(
        "Bitmaps of p: [$a_0$, $a_0$ + 6] and q: [$a_0$, $a_0$ + 2], R = 7, L = 4", pad=10
    )
