"""BestPartition uses the fewest CEIs, and no other cut does (Theorem 1, Lemmas 1 and 2)."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from limen.indexes import create
from limen.kernels import cei_plain, containment
from limen.plotting.style import BLUE, GREY, ORANGE
from limen.reproduce import Check, Verdict

from ..exact import Array, Fewest, cut, every_range, fewest, held, log2, powers, same

CLAIM = "CEI-2"
PAPER = (
    "BestPartition decomposes any query interval of length less than L into a minimal number of CEIs "
    "(Theorem 1), and a minimal decomposition is unique (Lemma 2); at L = 8, [8, 14) becomes the local "
    "ids 2, 6 and [11, 15) becomes 11, 6, 14 (Fig. 7)."
)
SCALES = {
    "quick": {
        "scale": "every interval of a segment and of four segments, L = 2..16",
        "lengths": [2, 4, 8, 16],
        "segments": 4,
    },
    "full": {
        "scale": "every interval of a segment and of four segments, L = 2..64",
        "lengths": [2, 4, 8, 16, 32, 64],
        "segments": 4,
    },
}
EXAMPLES: list[dict[str, Any]] = [  # of Fig. 7: the query, and the local ids in the text
    {"a": 8, "b": 14, "ids": [2, 6]},
    {"a": 11, "b": 15, "ids": [11, 6, 14]},
]
FIG_10: dict[
    str, dict[str, Any]
] = {  # within a segment [4, 8): the queries and their local ids there
    "Q1": {"a": 2, "b": 11, "ids": [1]},
    "Q2": {"a": 5, "b": 7, "ids": [5, 6]},
    "Q3": {"a": 5, "b": 8, "ids": [5, 3]},
    "Q4": {"a": 1, "b": 6, "ids": [2]},
}


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    lengths = [{"name": f"L={length}", "L": length} for length in parameters["lengths"]]
    return [*lengths, {"name": "examples", "L": 0}]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    return by_length(case["L"], parameters["segments"]) if case["L"] else worked_examples()


# -- every interval ------------------------------------------------------------------------------


def by_length(length: int, segments: int) -> dict[str, Any]:
    units = segments * length
    best = fewest(units, length)
    segment = best.number[: length + 1, : length + 1]
    inside = np.triu_indices(length + 1, 1)
    across = np.triu_indices(units + 1, 1)
    return {
        "within": [len(inside[0]), int((best.ways[inside] != 1).sum())],
        "across": [len(across[0]), int((best.ways[across] != 1).sum())],
        "kernel": as_the_kernel(units, length, best),
        "short": as_the_kernel(units - length // 2 - 1, length, best),  # no multiple of L
        "decompose": as_decompose(units, length, best),
        "printed": as_printed(units, length, best),
        "lemma_1": lemma_1(length, best),
        "properties": properties(length),
        "ways": ways(length),
        "most": int(segment[inside].max()),
        "mean": float(segment[inside].mean()),
        "table": np.where(np.tri(length + 1, k=0, dtype=bool), 0, segment).tolist(),
    }


def label_of(first: Array, size: Array, length: int) -> Array:
    """Global id of a CEI by its place: l + 2iL, l counted in the tree from the root (section 3.1)."""
    segment = first // length
    return 2 * segment * length + length // size + (first - segment * length) // size


def as_the_kernel(r: int, length: int, best: Fewest) -> list[int]:
    """How many queries were cut by the kernel of `cei-plain`; how many not into the one minimal cut."""
    lo, hi = every_range(r)
    found = cut(cei_plain, r, length, lo, hi)
    size = found.last - found.first + 1
    wrong = size != best.size[found.first, hi[found.query] + 1]
    wrong |= found.label != label_of(found.first, size, length)
    starts = np.flatnonzero(np.diff(found.query, prepend=-1))
    ends = np.append(starts[1:], len(size)) - 1
    wrong[starts] |= found.first[starts] != lo
    wrong[ends] |= found.last[ends] != hi
    follows = np.flatnonzero(np.diff(found.query) == 0)
    wrong[follows] |= found.last[follows] + 1 != found.first[follows + 1]
    return [len(lo), len(np.unique(found.query[wrong]))]


def as_decompose(units: int, length: int, best: Fewest) -> list[int]:
    """The same for `containment.decompose`, which the production index is derived from."""
    labels = np.empty(units + 2, np.int64)
    lo, hi = (side.tolist() for side in every_range(units))
    wrong = sum(
        sorted(labels[: containment.decompose(a, b + 1, length, labels)].tolist())
        != sorted(minimal(a, b + 1, length, best))
        for a, b in zip(lo, hi, strict=True)
    )
    return [len(lo), wrong]


def as_printed(units: int, length: int, best: Fewest) -> list[int]:
    """The same for the pseudo code of Fig. 6."""
    lo, hi = (side.tolist() for side in every_range(units))
    wrong = sum(
        sorted(decomposition(a, b + 1, length)) != sorted(minimal(a, b + 1, length, best))
        for a, b in zip(lo, hi, strict=True)
    )
    return [len(lo), wrong]


def minimal(s: int, e: int, length: int, best: Fewest) -> list[int]:
    """Global ids of the minimal cut, from the table of all cuts."""
    found = []
    while s < e:
        size = int(best.size[s, e])
        found.append(2 * (s // length) * length + length // size + s % length // size)
        s += size
    return found


def decomposition(a: int, b: int, length: int) -> list[int]:
    """Fig. 6, line by line."""
    found: list[int] = []
    p_l, p_r = length * math.ceil(a / length), length * math.floor(b / length)
    if p_l > p_r:
        best_partition(a, b, p_r, length, found)
        return found
    if p_l < p_r:
        found.extend(2 * p + 1 for p in range(p_l, p_r, length))
    if a != p_l:
        best_partition(a, p_l, p_l - length, length, found)
    if p_r != b:
        best_partition(p_r, b, p_r, length, found)
    return found


def best_partition(s: int, e: int, p_l: int, length: int, found: list[int]) -> None:
    local = s - p_l + length
    while True:
        if local % 2 == 0 and ends_of(local // 2, p_l, length)[1] <= e:
            local //= 2
        else:
            found.append(2 * p_l + local)
            s = ends_of(local, p_l, length)[1]
            if s == e:
                return
            local = s - p_l + length


def ends_of(local: int, post: int, length: int) -> tuple[int, int]:
    """The CEI [a, b) with this local id in the segment that begins at the post."""
    level = log2(local)
    size = length >> level
    first = post + (local - (1 << level)) * size
    return first, first + size


# -- lemmas and properties -----------------------------------------------------------------------


def lemma_1(length: int, best: Fewest) -> list[int]:
    """Cuts of [s, e) with a CEI that has an ancestor within [s, e): how many, how many minimal."""
    number = best.number[: length + 1, : length + 1]
    looked = wrong = 0
    for local in range(2, 2 * length):
        first, after = ends_of(local, 0, length)
        left, right = ends_of(local // 2, 0, length)  # the nearest ancestor: others are larger
        with_it = number[: left + 1, first, None] + 1 + number[None, after, right:]
        fewest_of_all = number[: left + 1, right:]
        looked += with_it.size
        wrong += int((with_it <= fewest_of_all).sum())
    return [looked, wrong]


def properties(length: int) -> dict[str, list[int]]:
    """Of the library's CEIs in the second of three segments: how many were looked at, how many wrong."""
    rows = cei_plain.constructs(3 * length, length, 0)
    known = {label - 2 * length: (a, b) for label, a, b in rows.tolist()}
    spans = {known[local] for local in range(1, 2 * length)}
    up = [(known[local], known[local // 2]) for local in range(2, 2 * length)]
    down = [(known[local], known[2 * local], known[2 * local + 1]) for local in range(1, length)]
    pairs = [
        (local, (known[local][0], known[local + 1][1]) in spans)
        for local in range(2, 2 * length - 1)
        if log2(local) == log2(local + 1)
    ]
    return {
        "Property 3": [
            len(up),
            sum(not (p[0] <= c[0] and c[1] <= p[1] and p[1] - p[0] > c[1] - c[0]) for c, p in up),
        ],
        "Property 5": [
            len(down),
            sum((p[0], p[1]) != (a[0], b[1]) or a[1] + 1 != b[0] for p, a, b in down),
        ],
        "Property 8": [len(pairs), sum(one != (local % 2 == 0) for local, one in pairs)],
    }


def ways(length: int) -> str:
    """In how many ways a whole segment can be cut, minimal or not; a text, the numbers are long."""
    number = {(s, s): 1 for s in range(length + 1)}
    for s in reversed(range(length)):
        for e in range(s + 1, length + 1):
            number[s, e] = sum(
                number[s + size, e] for size in powers(length) if s % size == 0 and s + size <= e
            )
    return str(number[0, length])


# -- worked examples -----------------------------------------------------------------------------


def worked_examples() -> dict[str, Any]:
    index = create("cei-plain", domain=range(16), length=8, ends="half-open")
    fig_7 = [[label - 16 for label, _, _ in index.pieces(one["a"], one["b"])] for one in EXAMPLES]
    index = create("cei-plain", domain=range(12), length=4, ends="half-open")
    fig_10 = {
        name: [label - 8 for label, a, _ in index.pieces(one["a"], one["b"]) if 4 <= a < 8]
        for name, one in FIG_10.items()
    }
    lo = np.array([one["a"] for one in FIG_10.values()])
    hi = np.array([one["b"] for one in FIG_10.values()])
    index.build(np.arange(4), lo, hi)
    return {"fig_7": fig_7, "fig_10": fig_10, "found": sorted(index.stab(5.5).tolist())}


# -- the verdict ---------------------------------------------------------------------------------

PROPERTIES = [
    ("Property 3", "a non-root CEI l is within its parent", "l/2", "CEIs"),
    ("Property 5", "a non-leaf CEI l is its two children", "2l and 2l + 1", "CEIs"),
    (
        "Property 8",
        "two neighbours of a level make a CEI only if the smaller id is even",
        "even",
        "pairs of neighbours",
    ),
]


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    lengths, examples = results[:-1], results[-1][1]
    rows = [result for _, result in lengths]

    def summed(name: str) -> tuple[int, int]:
        compared, wrong = zip(*(row[name] for row in rows), strict=True)
        return sum(compared), sum(wrong)

    largest, last = lengths[-1][0]["L"], rows[-1]
    segments = parameters["segments"]
    checks = [
        same(
            "Lemma 2: a minimal decomposition is unique, for the intervals of a segment",
            "one",
            *summed("within"),
            "intervals",
            f"a whole segment of {largest} can be cut in {_count(last['ways'])} ways, minimal or not",
        ),
        same(
            f"the same for the intervals of {segments} segments, across guiding posts",
            "not stated",
            *summed("across"),
            "intervals",
        ),
        same(
            "Theorem 1: the decomposition of Fig. 6, as printed, is the minimal one",
            "minimal for length < L",
            *summed("printed"),
            "intervals",
            "whole segments and intervals across them too",
        ),
        same(
            "The library cuts into the minimal decomposition, each CEI with its global id",
            "l + 2iL",
            *(sum(pair) for pair in zip(summed("kernel"), summed("short"), strict=True)),
            "intervals by cei-plain",
            "also where r is no multiple of L",
        ),
        same("so does `containment.decompose`", "Fig. 6", *summed("decompose"), "intervals"),
        same(
            "Lemma 1: a decomposition that has a CEI of which an ancestor would fit is not minimal",
            "never minimal",
            *summed("lemma_1"),
            "pairs of a CEI and an interval",
        ),
        *(
            same(f"{name}: {says}", paper, *_properties(rows, name), what)
            for name, says, paper, what in PROPERTIES
        ),
        same(
            "The most CEIs that an interval of a segment needs",
            "not stated",
            len(rows),
            sum(row["most"] != max(1, 2 * log2(case["L"]) - 2) for case, row in lengths),
            "lengths L",
            "2 log L - 2 (and 1 at L = 2)",
        ),
        *_worked(examples),
    ]
    return Verdict(
        checks,
        f"{held(checks)}: of {summed('across')[0]:,} intervals, "
        f"{summed('across')[1] or 'none'} has a second cut with the fewest CEIs and "
        f"{summed('printed')[1] + summed('kernel')[1] or 'none'} is cut otherwise by Fig. 6 or the "
        f"library; within a segment of {largest} the fewest are "
        f"{last['mean']:.2f} on average and {last['most']} at most.",
        "Theorem 1 speaks of intervals shorter than L; enumeration shows the same for every interval: "
        "no CEI crosses a guiding post, so each segment is cut for itself. A slip in the proof of "
        "Lemma 1: 'more than one CEI besides c_i' is not needed to cover the region of its ancestor; one "
        "is enough where the ancestor is the parent (the sibling of c_i). The lemma needs no more.",
    )


def _count(ways: str) -> str:
    return f"{int(ways):,}" if len(ways) < 10 else f"{float(ways):.1e}"


def _properties(rows: list[dict[str, Any]], name: str) -> tuple[int, int]:
    compared, wrong = zip(*(row["properties"][name] for row in rows), strict=True)
    return sum(compared), sum(wrong)


def _worked(examples: dict[str, Any]) -> list[Check]:
    checks = []
    for one, found in zip(EXAMPLES, examples["fig_7"], strict=True):
        printed = _ids(one["ids"])
        says = f"Fig. 7: [{one['a']}, {one['b']}) at L = 8"
        checks.append(Check.of(says, found == one["ids"], printed, _ids(found)))
    told = {name: [f"c{i}" for i in one["ids"]] for name, one in FIG_10.items()}
    found = {name: [f"c{i}" for i in ids] for name, ids in examples["fig_10"].items()}
    checks.append(
        Check.of(
            "Fig. 10: Q1 to Q4 within a segment of c1 to c7, and a value in c5 finds all four",
            told == found and examples["found"] == [0, 1, 2, 3],
            _lists(told),
            f"{_lists(found)}; finds {', '.join(f'Q{i + 1}' for i in examples['found'])}",
        )
    )
    return checks


def _ids(ids: list[int]) -> str:
    return "local ids " + ", ".join(map(str, ids))


def _lists(lists: dict[str, list[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(ids)}" for name, ids in lists.items())


# -- the figure ----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    panels = figure.subplot_mosaic(
        [["one", "map"], ["two", "map"]], width_ratios=[1, 1.1], gridspec_kw={"hspace": 0.08}
    )
    for panel, one, found in zip(("one", "two"), EXAMPLES, results[-1][1]["fig_7"], strict=True):
        _tree(panels[panel], one["a"], one["b"], found)
    case, result = results[-2]
    _map(figure, panels["map"], case["L"], np.array(result["table"]))


def _tree(axes: Axes, a: int, b: int, chosen: list[int]) -> None:
    """The CEIs of the segment [8, 16) as in Fig. 4, those of the query filled."""
    for local in range(1, 16):
        first, after = ends_of(local, 8, 8)
        used = local in chosen
        axes.add_patch(
            Rectangle(
                (first + 0.03, -log2(local) - 0.36),
                after - first - 0.06,
                0.72,
                facecolor=BLUE if used else "#EEF1F4",
                edgecolor=BLUE if used else "#C9CFD6",
                linewidth=0.8,
            )
        )
        axes.text(
            (first + after) / 2,
            -log2(local),
            f"c{local}",
            ha="center",
            va="center",
            color="white" if used else GREY,
            weight="bold" if used else "normal",
            fontsize=9.5,
        )
    for end in (a, b):
        axes.plot([end, end], [-4.25, 0.45], color=ORANGE, linewidth=1, zorder=0)
    axes.annotate(
        "",
        (a, -4.25),
        (b, -4.25),
        arrowprops={"arrowstyle": "|-|,widthA=0.3,widthB=0.3", "color": ORANGE, "linewidth": 2.2},
    )
    axes.set_title(f"[{a}, {b}): " + ", ".join(f"c{local}" for local in chosen))
    axes.set(xlim=(7.9, 16.1), ylim=(-4.6, 0.6), xticks=range(8, 17), yticks=[])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_facecolor("none")


def _map(figure: Any, axes: Axes, length: int, table: Array) -> None:
    """The fewest CEIs of every [s, e) of a segment."""
    most = int(table.max())
    shown = np.ma.masked_equal(table[:-1, 1:], 0)
    colours = mpl.colormaps["viridis_r"].resampled(most)
    image = axes.imshow(
        shown.T,
        origin="lower",
        cmap=colours,
        vmin=0.5,
        vmax=most + 0.5,
        extent=(-0.5, length - 0.5, 0.5, length + 0.5),
        interpolation="nearest",
    )
    shares = np.bincount(table[table > 0], minlength=most + 1)[1:] / (table > 0).sum()
    bar = figure.colorbar(image, ax=axes, ticks=range(1, most + 1), shrink=0.86, pad=0.02)
    bar.ax.set_yticklabels(
        [f"{i + 1}   {share:.{1 if share < 0.01 else 0}%}" for i, share in enumerate(shares)]
    )
    bar.set_label("CEIs, and the share of all intervals")
    bar.outline.set_visible(False)
    step = length // 4
    axes.set_xticks(range(0, length + 1, step))
    axes.set_yticks(range(step, length + 1, step))
    axes.set(xlabel="begin s", ylabel="end e", xlim=(-0.5, length - 0.5))
    axes.set_title(f"Fewest CEIs that make up [s, e), L = {length}")
    axes.grid(visible=False)
