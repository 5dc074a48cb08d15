"""The RS list by its definition, and the moves of the example (Fig. 2, sections 3.1 to 3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from limen.borders.bmq import BMQIndex, Places
from limen.borders.streams import Streams
from limen.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION
from limen.reproduce import Check, Verdict

from ..exact import held, same

CLAIM = "BMQ-1"
PAPER = (
    "An RS list of five queries has nine nodes. From N5 to N8 a stream enters {Q5} and leaves {Q2, Q4}; "
    "from N5 to N2 it enters {Q3, Q1} and leaves {Q4}. Registration splits nodes and deregistration "
    "merges them; the sets of a move follow from the delta queries of the nodes between."
)
SCALES = {
    "quick": {
        "scale": "every set of five ranges with nine nodes; 20 random sets of queries",
        "sets": 20,
        "most": 8,
    },
    "full": {
        "scale": "every set of five ranges with nine nodes; 400 random sets of queries",
        "sets": 400,
        "most": 14,
    },
}
NODES, QUERIES = 9, 5
MOVES = {(5, 8): ({5}, {2, 4}), (5, 2): ({3, 1}, {4})}  # from, to: entered, left
INSTEAD = [(5,), (1,), (2,), (3,), (4,), (1, 3)]  # for the queries in -DQSet of N5
READINGS = {"-inf and inf": 1, "inf alone": 0}  # added to the bounds: the first finite border
STEP = 10  # from a border of the example to the next

Range = tuple[int, int]  # l and u: values l <= v < u
Node = tuple[int | None, list[int], list[int]]  # lower border, +DQSet, -DQSet


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        *({"name": f"Fig. 2, borders with {name}", "first": f} for name, f in READINGS.items()),
        {"name": "random sets", "first": None},
    ]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if case["first"] is None:
        return random_sets(parameters["sets"], parameters["most"])
    return example(case["first"])


# -- by definition, with plain sets ---------------------------------------------------------------


def by_definition(ranges: dict[int, Range]) -> list[Node]:
    """Section 3.1, with -DQSet at the node whose lower bound is the upper bound of the query."""
    borders = sorted({border for both in ranges.values() for border in both})
    found: list[Node] = [(None, [], [])]
    for b in borders:
        plus = sorted(q for q, (lower, _) in ranges.items() if lower == b)
        minus = sorted(q for q, (_, upper) in ranges.items() if upper == b)
        found.append((b, plus, minus))
    return found


def register(nodes: list[Node], q: int, ends: Range) -> None:
    """Section 3.2 to the letter."""
    for border, side in ((ends[0], 1), (ends[1], 2)):
        i = _containing(nodes, border)
        if nodes[i][0] != border:
            i += 1
            nodes.insert(i, (border, [], []))
        _set(nodes[i], side).append(q)
        _set(nodes[i], side).sort()


def deregister(nodes: list[Node], q: int, ends: Range) -> None:
    for border, side in ((ends[0], 1), (ends[1], 2)):
        i = _containing(nodes, border)
        _set(nodes[i], side).remove(q)
        if not nodes[i][1] and not nodes[i][2]:
            del nodes[i]  # the node before it now reaches to its end


def _containing(nodes: list[Node], value: int) -> int:
    i = 0
    while i + 1 < len(nodes) and (nodes[i + 1][0] or 0) <= value:
        i += 1
    return i


def _set(node: Node, side: int) -> list[int]:
    return node[1] if side == 1 else node[2]


class Move(NamedTuple):
    entered: set[int]
    left: set[int]


def by_formula(plus: list[set[int]], minus: list[set[int]], j: int, h: int) -> Move:
    """Section 3.3: the delta queries of the nodes behind the first, up to the last (from 0 on)."""
    between = range(min(j, h) + 1, max(j, h) + 1)
    begins = set().union(*(plus[i] for i in between))
    ends = set().union(*(minus[i] for i in between))
    return Move(begins - ends, ends - begins) if j < h else Move(ends - begins, begins - ends)


def by_evaluation(ranges: dict[int, Range], old: int, new: int) -> Move:
    """Definition 1 by query: all queries of either value, and their difference."""
    before = {q for q, (lower, upper) in ranges.items() if lower <= old < upper}
    after = {q for q, (lower, upper) in ranges.items() if lower <= new < upper}
    return Move(after - before, before - after)


def by_index(index: BMQIndex, moves: Sequence[tuple[int, int]]) -> list[Move]:
    """A stream for each of the moves, all in one batch."""
    streams, places = Streams(), Places(1)
    streams.grow(len(moves))
    everybody = np.arange(len(moves), dtype=np.int32)
    for values in zip(*moves, strict=True):
        batch = streams.arrange(everybody, np.array(values, np.int64)[:, None])
        crossings = index.cross(batch, streams, places)
        streams.settle(batch)
    found = [Move(set(), set()) for _ in moves]
    for e, q, entered in zip(*(column.tolist() for column in crossings.rows()), strict=True):
        (found[e].entered if entered else found[e].left).add(q)
    return found


def built(ranges: dict[int, Range]) -> BMQIndex:
    index = BMQIndex()
    lo, hi = [lower for lower, _ in ranges.values()], [upper - 1 for _, upper in ranges.values()]
    index.build(list(ranges), lo, hi)
    return index


# -- the example ----------------------------------------------------------------------------------


def example(first: int) -> dict[str, Any]:
    """Which sets of five ranges over the borders b_first to b_8, all of them used, fit what is said.

    Node N_i has the lower bound b_(i-1). A range is the pair of the numbers of its borders.
    """
    last = NODES - 1
    spans = [(lower, upper) for lower in range(first, last) for upper in range(lower + 1, last + 1)]
    fits: dict[str, int] = {}
    for convention in (0, 1):  # -DQSet of N_i: u = b_(i-1) as in the text, or b_i as in the list
        for minus in INSTEAD:
            sets = list(fitting(spans, first, minus, convention))
            fits[f"{','.join(map(str, minus))}/{convention}"] = len(sets)
    rebuilt = [s for minus in INSTEAD for s in fitting(spans, first, minus, 0)]
    wrong_nodes = wrong_moves = at_n9 = 0
    for ranges in rebuilt:
        scaled = {q: (STEP * lower, STEP * upper) for q, (lower, upper) in ranges.items()}
        index = built(scaled)
        nodes = index.nodes()
        below = first == 0  # then the values below b_0 are in no node of the paper's
        wrong_nodes += nodes != by_definition(scaled) or len(nodes) - below != NODES
        wrong_nodes += nodes[4 + below][1] != []
        at_n9 += nodes[8 + below][1:] == ([], [5])
        for (j, h), told in MOVES.items():
            values = [
                (STEP * (j - 1) + a, STEP * (h - 1) + b)
                for a in (0, STEP - 1)
                for b in (0, STEP - 1)
            ]
            wrong_moves += sum(found != told for found in by_index(index, values))
    drawn = next(fitting(spans, first, (3,), 0))
    return {
        "sets": len(spans) ** QUERIES,
        "fits": fits,
        "rebuilt": len(rebuilt),
        "wrong_nodes": wrong_nodes,
        "wrong_moves": wrong_moves,
        "at_n9": at_n9,
        "drawn": [drawn[q] for q in sorted(drawn)],
    }


def fitting(
    spans: list[Range], first: int, minus: tuple[int, ...], convention: int
) -> Iterator[dict[int, Range]]:
    """Sets of ranges with which the moves come out as told, where N5 has +{} and these in -DQSet.

    Every statement is about one query at a time, but that all borders are in use.
    """

    def allowed(q: int, span: Range) -> bool:
        plus_at, minus_at = span[0] + 1, span[1] + 1 - convention  # nodes
        if plus_at == 5 or (minus_at == 5) != (q in minus):
            return False
        for (j, h), (entered, left) in MOVES.items():
            begins = min(j, h) < plus_at <= max(j, h)
            ends = min(j, h) < minus_at <= max(j, h)
            one, other = (begins, ends) if j < h else (ends, begins)
            if (one and not other) != (q in entered) or (other and not one) != (q in left):
                return False
        return True

    choices = [[span for span in spans if allowed(q, span)] for q in range(1, QUERIES + 1)]
    for chosen in product(*choices):
        if len({border for span in chosen for border in span}) == NODES - first:
            yield dict(enumerate(chosen, start=1))


# -- random sets ----------------------------------------------------------------------------------


def random_sets(sets: int, most: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    count = dict.fromkeys(("updates", "nodes", "letter", "moves", "formula", "index", "list"), 0)
    for _ in range(sets):
        index = BMQIndex()
        nodes: list[Node] = [(None, [], [])]
        ranges: dict[int, Range] = {}
        for q in rng.permutation(most).tolist():
            lower, upper = sorted(rng.choice(2 * most, 2, replace=False).tolist())
            ranges[q] = lower, upper
            index.insert([q], [lower], [upper - 1])
            register(nodes, q, (lower, upper))
            _compare(index, nodes, ranges, count)
        for q in rng.permutation(most).tolist():
            if len(ranges) == (most + 1) // 2:
                _all_moves(index, ranges, count)
            ends = ranges.pop(q)
            index.delete([q])
            deregister(nodes, q, ends)
            _compare(index, nodes, ranges, count)
    return count


def _compare(
    index: BMQIndex, nodes: list[Node], ranges: dict[int, Range], count: dict[str, int]
) -> None:
    wanted = by_definition(ranges)
    count["updates"] += 1
    count["nodes"] += index.nodes() != wanted
    count["letter"] += nodes != wanted


def _all_moves(index: BMQIndex, ranges: dict[int, Range], count: dict[str, int]) -> None:
    """Between all pairs of nodes, from the lower border of one to the last value of the other."""
    nodes = by_definition(ranges)
    lowers = [-1, *(border for border, _, _ in nodes if border is not None)]
    uppers = [*(lower - 1 for lower in lowers[1:]), 10**6]
    plus, minus = ([set(_set(node, side)) for node in nodes] for side in (1, 2))
    by_list = [*minus[1:], set()]  # -DQSet of N_i: u = b_i
    pairs = list(product(range(len(nodes)), repeat=2))
    moves = [(lowers[j], uppers[h]) for j, h in pairs]
    for (j, h), move, found in zip(pairs, moves, by_index(index, moves), strict=True):
        wanted = by_evaluation(ranges, *move)
        count["moves"] += 1
        count["index"] += found != wanted
        count["formula"] += by_formula(plus, minus, j, h) != wanted
        count["list"] += by_formula(plus, by_list, j, h) != wanted


# -- the verdict ----------------------------------------------------------------------------------


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    examples = [result for case, result in results if case["first"] is not None]
    many = next(result for case, result in results if case["first"] is None)
    rebuilt = sum(result["rebuilt"] for result in examples)
    looked = sum(result["sets"] for result in examples)
    printed = sum(result["fits"][f"5/{c}"] for result in examples for c in (0, 1))
    three, one, both = (
        sum(r["fits"][f"{minus}/0"] for r in examples) for minus in ("3", "1", "1,3")
    )
    checks = [
        Check.of(
            "Five ranges with nine nodes and N5 with +{} fit the two moves",
            rebuilt > 0,
            "-DQSet of N5 is {Q5}",
            f"{rebuilt} of {looked:,} sets do: {three} with Q3 in the -DQSet of N5, {one} with Q1, "
            f"{both} with both; with Q5, {printed}",
        ),
        same(
            "The index built from them has the nodes of the definition",
            "nine",
            rebuilt,
            sum(result["wrong_nodes"] for result in examples),
            "sets",
        ),
        same(
            "From N5 to N8, and from N5 to N2",
            "+{Q5} -{Q2, Q4}; +{Q3, Q1} -{Q4}",
            8 * rebuilt,
            sum(result["wrong_moves"] for result in examples),
            "moves",
        ),
        same(
            "Registration and deregistration to the letter keep the nodes of the definition",
            "split, or merged (section 3.2)",
            many["updates"],
            many["letter"],
            "updates",
        ),
        same(
            "The index has those nodes after every update",
            "",
            many["updates"],
            many["nodes"],
            "updates",
        ),
        same(
            "The formula gives the difference of two evaluations, between all pairs of nodes",
            "section 3.3",
            many["moves"],
            many["formula"],
            "moves",
        ),
        same("So does the index", "", many["moves"], many["index"], "moves"),
    ]
    return Verdict(
        checks,
        f"{held(checks)}: both moves come out as printed in each of {rebuilt} sets of ranges; but the "
        f"example contradicts itself: N5 with Q5 in its -DQSet fits {printed} of {looked:,} sets.",
        "The figure is not in the text, so all sets of five ranges were tried. One statement does not "
        "fit the others: with Q5 in the -DQSet of N5, Q5 has ended at N5 or ends there, and cannot be "
        "entered further up, between N6 and N8. Perhaps N9 is meant, which has +{} and -{Q5} in "
        f"{sum(result['at_n9'] for result in examples)} of the {rebuilt} sets; or Q3, the first query "
        "met on the way from N5 to N2 if the order of {Q3, Q1} tells anything. The definition is given "
        "twice, and in two ways: the list has u_k = b_i for -DQSet, the text u_k = b_(i-1). Sections 3.2 "
        f"and 3.3 need the second: with the first, {many['list']:,} of {many['moves']:,} moves come out "
        "wrong. The bounds are completed by an infinity only, so that a value below all of them would be "
        "in no node; with -inf too, nine nodes have eight finite borders, else nine. Both were tried. "
        "Ranges are written with round brackets but hold their lower bound (b <= v < b').",
    )


# -- the figure -----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    ranges = dict(enumerate(map(tuple, results[0][1]["drawn"]), start=1))
    figure.set_size_inches(11, 6.2)
    axes = figure.subplots()
    axes.set_title("Fig. 2 rebuilt: one of the sets of ranges with which both moves come out")
    colours = [BLUE, ORANGE, GREEN, VERMILION, GREY]
    for (q, (lower, upper)), colour in zip(ranges.items(), colours, strict=True):
        axes.plot([lower, upper], [-q, -q], color=colour, lw=7, solid_capstyle="butt")
        axes.text(upper + 0.06, -q, f"Q{q}", color=colour, va="center", weight="bold")
    for border in range(1, NODES):
        axes.plot([border, border], [-8.2, -0.4], color="#B8BEC5", lw=0.9, zorder=0)
        axes.text(border, -0.15, f"b{border}", ha="center", color=GREY, fontsize=10)
    for i in range(1, NODES + 1):
        plus, minus = (
            ", ".join(f"Q{q}" for q, ends in ranges.items() if ends[side] == i - 1)
            for side in (0, 1)
        )
        axes.text(i - 0.5, -6.5, f"N{i}", ha="center", weight="bold")
        axes.text(i - 0.5, -7.1, f"+{{{plus}}}", ha="center", fontsize=8.5, color=BLUE)
        axes.text(i - 0.5, -7.6, f"-{{{minus}}}", ha="center", fontsize=8.5, color=VERMILION)
    for (j, h), y in zip(MOVES, (-8.9, -9.6), strict=True):
        entered, left = (", ".join(f"Q{q}" for q in sorted(some)) for some in MOVES[j, h])
        arrow = {"arrowstyle": "->", "color": GREY, "lw": 1.6}
        axes.annotate("", (h - 0.5, y), (j - 0.5, y), arrowprops=arrow)
        told = f"N{j} to N{h}: enters {entered}, leaves {left}"
        side = (h - 0.3, "left") if h > j else (j - 0.3, "left")
        axes.text(side[0], y, told, ha=side[1], va="center", fontsize=9.5)
    axes.set(xlim=(-0.1, NODES + 1.4), ylim=(-10.1, 0.3))
    axes.set_axis_off()
