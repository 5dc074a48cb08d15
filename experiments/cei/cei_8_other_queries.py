"""Closed and open ends, ends that are no integers, partitions on several machines (section 3.4)."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import LogLocator

from limen.indexes import create
from limen.indexes.registry import takes_length
from limen.kernels import cei_plain
from limen.plotting.style import BLUE, GREY, ORANGE, VERMILION, short_numbers
from limen.reproduce import Check, Verdict
from limen.reproduce.claim import Claim

from ..exact import Array, cut, fewest, log2, powers, same

CLAIM = "CEI-8"
PAPER = (
    "A closed right end takes a point CEI; an open-ended query goes into r/L CEIs in the worst case, "
    "and with L = r a search collects from k + 1 lists; ends that are no integers are expanded, with a "
    "final check; partitions of the domain go to several machines (section 3.4 and footnote 1)."
)
SCALES = {
    "quick": {
        "scale": "random histories over a domain of 100 and 128 values; costs at r = 65,536",
        "domains": [100, 128],
        "lengths": [1, 8],
        "queries": 40,
        "rounds": 1,
        "costs": 65_536,
        "worst": 256,
        "processes": 0,
    },
    "full": {
        "scale": "random histories over domains of 100 to 1,024 values; costs at the paper's r",
        "domains": [100, 128, 1000, 1024],
        "lengths": [1, 2, 8, 64],
        "queries": 100,
        "rounds": 3,
        "costs": 1_048_576,
        "worst": 1024,
        "processes": 2,
    },
}
KINDS = ["closed", "half-open", "open-ended", "open-ended, real", "non-integer"]
CHECKED = {"open-ended, real", "non-integer"}  # what is found is a candidate, checked at the end
START = -37  # of the domains: the paper's begin at 0, which nothing depends on


def cases(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    histories = [
        {"name": f"{kind}, r={size}", "what": "history", "kind": kind, "size": size}
        for kind in KINDS
        for size in parameters["domains"]
    ]
    parts = [
        {"name": f"partitions, r={size}", "what": "partitions", "size": size}
        for size in parameters["domains"]
    ]
    costs = [{"name": "costs", "what": "costs"}]
    if parameters["processes"]:
        costs.append({"name": "processes", "what": "processes"})
    return [*histories, *parts, *costs]


def run(parameters: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    if case["what"] == "history":
        return histories(parameters, case["kind"], case["size"])
    if case["what"] == "partitions":
        return partitions(parameters, case["size"])
    if case["what"] == "processes":
        return processes(parameters)
    return costs(parameters["costs"], parameters["worst"])


# -- queries and values --------------------------------------------------------------------------


class Queries(NamedTuple):
    """What queries say (from `lo` to `hi`, either end in it or not), and the range that is indexed."""

    lo: Array
    hi: Array
    lo_in: Array
    hi_in: Array
    first: Array
    last: Array  # included if the index has closed ends, else not

    def contain(self, xs: Array) -> Array:
        """A row a value, a column a query: by the definition, one comparison an end."""
        x = xs[:, None]
        above = np.where(self.lo_in, x >= self.lo, x > self.lo)
        return above & np.where(self.hi_in, x <= self.hi, x < self.hi)


def drawn(kind: str, n: int, domain: range, rng: np.random.Generator) -> Queries:
    """Random ones of a kind, among them whole domains, its ends, points, and many twice."""
    first, end = domain.start, domain.stop
    ends = np.sort(rng.integers(first, end, (n, 2)), axis=1)
    ends[: n // 8] = [first, end - 1]
    ends[n // 8 : n // 4, 1] = ends[n // 8 : n // 4, 0]  # points
    ends[n // 4 : n // 2] = ends[rng.integers(n // 2, n, n // 2 - n // 4)]  # the same once more
    lo, hi = ends.T.astype(float)
    yes, no = np.ones(n, bool), np.zeros(n, bool)
    if kind == "closed":
        return Queries(lo, hi, yes, yes, ends[:, 0], ends[:, 1])
    if kind == "half-open":
        return Queries(lo, hi + 1, yes, no, ends[:, 0], ends[:, 1] + 1)
    if kind == "open-ended":  # of integers: A > c, A >= c, A < c, A <= c
        up, inclusive = rng.random(n) < 0.5, rng.random(n) < 0.5
        c = np.clip(ends[:, 0], first + 1, end - 2)
        lo, hi = np.where(up, c, -np.inf), np.where(up, np.inf, c)
        indexed = np.where(up, c + ~inclusive, first), np.where(up, end - 1, c - ~inclusive)
        return Queries(lo, hi, inclusive, inclusive, *indexed)
    if kind == "open-ended, real":
        up, inclusive = rng.random(n) < 0.5, rng.random(n) < 0.5
        c = np.where(rng.random(n) < 0.5, lo, rng.uniform(first, end - 1, n))
        lo, hi = np.where(up, c, -np.inf), np.where(up, np.inf, c)
        return expanded(lo, hi, inclusive, inclusive, domain)
    lo += np.where(rng.random(n) < 0.7, rng.random(n), 0)
    hi = np.maximum(lo, hi + np.where(rng.random(n) < 0.7, rng.random(n), 0))
    lo_in, hi_in = rng.random((2, n)) < 0.5
    return expanded(lo, hi, lo_in, hi_in, domain)


def expanded(lo: Array, hi: Array, lo_in: Array, hi_in: Array, domain: range) -> Queries:
    """With the nearest integers outwards; an included end that is an integer needs the unit after it."""
    first = np.maximum(np.floor(lo), domain.start)
    last = np.minimum(np.where(hi_in, np.floor(hi) + 1, np.ceil(hi)), domain.stop)
    last = np.maximum(last, first + 1)  # (x, x) contains nothing; the index wants something
    return Queries(lo, hi, lo_in, hi_in, first.astype(np.int64), last.astype(np.int64))


def values(kind: str, domain: range, rng: np.random.Generator) -> Array:
    """All integers of the domain, some twice; if reals are allowed, those next to them and between."""
    whole = np.array(domain)
    twice = rng.choice(whole, 20)
    outside = np.array([domain.start - 1, domain.stop, 10**6])
    if kind == "closed":
        return np.concatenate([whole, twice, outside])
    if kind == "open-ended":  # of what is beyond the domain, an index over it knows nothing
        return np.concatenate([whole, twice])
    near = [
        np.nextafter(whole, -np.inf),
        np.nextafter(whole, np.inf),
        whole + rng.random(len(whole)),
    ]
    reals = np.concatenate([whole, twice, *near])
    if kind == "open-ended, real":
        return reals[(reals >= domain.start) & (reals < domain.stop)]
    return np.concatenate([reals, outside, [np.nan, np.inf, -np.inf, -0.0]])


# -- histories -----------------------------------------------------------------------------------


def histories(parameters: dict[str, Any], kind: str, size: int) -> dict[str, Any]:
    """Builds, inserts and deletes at random; after each, all values are asked for."""
    domain = range(START, START + size)
    ends = "closed" if kind in ("closed", "open-ended") else "half-open"
    tally = np.zeros(4, np.int64)
    for name in ("ui", "cei-plain", "cei"):
        lengths = lengths_over(size, parameters["lengths"]) if takes_length(name) else [None]
        for length in lengths:
            for seed in range(parameters["rounds"]):
                rng = np.random.default_rng([seed, size])
                index = create(name, domain=domain, length=length, ends=ends)
                queries = drawn(kind, parameters["queries"], domain, rng)
                xs = values(kind, domain, rng)
                tally += history(index, queries, xs, rng, kind in CHECKED)
    return dict(zip(("pairs", "wrong", "candidates", "dropped"), tally.tolist(), strict=True))


def lengths_over(size: int, lengths: list[int]) -> list[int]:
    """Those that fit, and the longest one that does: L = r if r is a power of two."""
    return sorted({*(length for length in lengths if length <= size), powers(size)[-1]})


def history(
    index: Any, queries: Queries, xs: Array, rng: np.random.Generator, final_check: bool = False
) -> Array:
    """Pairs of a value and a query compared, wrong ones, ids that were found, those then dropped."""
    n = len(queries.lo)
    ids = np.arange(n, dtype=np.int32)
    live = np.zeros(n, bool)
    wanted = queries.contain(xs)
    tally = np.zeros(4, np.int64)

    def rows(which: Array) -> tuple[Array, Array, Array]:
        return which, queries.first[which], queries.last[which]

    def ask() -> None:
        found = answers(index, xs, n)
        dropped = live & (found == 1) & ~wanted if final_check else np.zeros_like(wanted)
        wrong = (found - dropped) != (wanted & live)
        tally[:] += found.size, wrong.sum(), found.sum(), dropped.sum()

    ask()  # nothing is in yet
    index.build(*rows(ids[: n // 2]))
    live[: n // 2] = True
    ask()
    for _ in range(3):
        out, into = (rng.permutation(ids[side])[: n // 3] for side in (live, ~live))
        index.delete(out)
        index.insert(*rows(into))
        live[out], live[into] = False, True
        ask()
    index.delete(ids[live])
    live[:] = False
    ask()  # nothing any more
    index.build(*rows(ids))
    live[:] = True
    ask()
    tally[1] += len(index.stab_many(xs[:0])[1])
    return tally


def answers(index: Any, xs: Array, n: int) -> Array:
    """How often each value found each id."""
    offsets, ids = index.stab_many(xs)
    which = np.repeat(np.arange(len(xs)), np.diff(offsets)) * n + ids
    return np.bincount(which, minlength=len(xs) * n).reshape(len(xs), n)


# -- partitions ----------------------------------------------------------------------------------

HELD: dict[int, Any] = {}  # on a machine: its index, by the number of the partition


def on_machine(part: int, method: str, *arguments: Any) -> Any:
    """What a machine does when it is asked: make an index, or call it."""
    if method == "create":
        name, domain, length = arguments
        HELD[part] = create(name, domain=domain, length=length, ends="half-open")
        return os.getpid()
    found = getattr(HELD[part], method)
    return found(*arguments) if callable(found) else found


class Partitioned:
    """A domain in parts, an index each, behind executors; queries are clipped, values are routed."""

    def __init__(self, machines: list[Executor], cuts: list[int], name: str, length: int) -> None:
        self._machines, self._cuts = machines, np.array(cuts)
        self._inside = [np.zeros(0, bool) for _ in machines]
        self.pids = []
        for part, domain in enumerate(self._domains()):
            fits = min(length, powers(len(domain))[-1])
            self.pids.append(self._ask(part, "create", name, domain, fits).result())

    def _domains(self) -> list[range]:
        return [range(a, b) for a, b in zip(self._cuts[:-1], self._cuts[1:], strict=True)]

    def _ask(self, part: int, method: str, *arguments: Any) -> Future[Any]:
        return self._machines[part].submit(on_machine, part, method, *arguments)

    def build(self, ids: Array, first: Array, last: Array) -> None:
        self._inside = [np.zeros(0, bool) for _ in self._machines]
        self._put("build", ids, first, last)

    def insert(self, ids: Array, first: Array, last: Array) -> None:
        self._put("insert", ids, first, last)

    def _put(self, method: str, ids: Array, first: Array, last: Array) -> None:
        asked = []
        for part, domain in enumerate(self._domains()):
            a, b = np.maximum(first, domain.start), np.minimum(last, domain.stop)
            here = a < b
            asked.append(self._ask(part, method, ids[here], a[here], b[here]))
            known = self._inside[part]
            known = np.pad(known, (0, max(0, int(ids.max(initial=-1)) + 1 - len(known))))
            known[ids] = here
            self._inside[part] = known
        for one in asked:
            one.result()

    def delete(self, ids: Array) -> None:
        asked = [
            self._ask(part, "delete", ids[inside[ids]]) for part, inside in enumerate(self._inside)
        ]
        for one in asked:
            one.result()

    def stab_many(self, xs: Array) -> tuple[Array, Array]:
        """The machine of a value is that of the part it lies in; beyond all of them, any."""
        part_of = np.searchsorted(self._cuts[1:-1], xs, side="right")
        asked = [
            self._ask(part, "stab_many", xs[part_of == part]) for part in range(len(self._machines))
        ]
        found: list[Array] = [np.empty(0, np.int32)] * len(xs)
        for part, one in enumerate(asked):
            offsets, ids = one.result()
            for i, x in enumerate(np.flatnonzero(part_of == part)):
                found[x] = ids[offsets[i] : offsets[i + 1]]
        offsets = np.cumsum([0, *map(len, found)])
        return offsets, np.concatenate([np.empty(0, np.int32), *found])

    @property
    def entries(self) -> int:
        return sum(self._ask(part, "entries").result() for part in range(len(self._machines)))


@contextmanager
def threads(n: int) -> Iterator[list[Executor]]:
    with ExitStack() as stack:
        yield [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(n)]


@contextmanager
def own_processes(n: int) -> Iterator[list[Executor]]:
    """A process a machine, started afresh; it loads this module under the same name."""
    context = multiprocessing.get_context("spawn")
    load = Claim(CLAIM, "", Path(__file__)).load
    with ExitStack() as stack:
        yield [
            stack.enter_context(ProcessPoolExecutor(1, mp_context=context, initializer=load))
            for _ in range(n)
        ]


def partitions(parameters: dict[str, Any], size: int) -> dict[str, Any]:
    """Two to four parts, cut at guiding posts and elsewhere, against one index over it all."""
    domain = range(START, START + size)
    tally = np.zeros(4, np.int64)
    at_posts: list[list[int]] = []
    elsewhere: list[list[int]] = []
    for length in (length for length in parameters["lengths"] if 4 * length <= size):
        for parts in (2, 4):
            rng = np.random.default_rng([parts, size])
            queries = drawn("half-open", parameters["queries"], domain, rng)
            xs = values("half-open", domain, rng)
            one = create("cei-plain", domain=domain, length=length, ends="half-open")
            one.build(np.arange(len(queries.lo)), queries.first, queries.last)
            for kept, step in ((at_posts, length), (elsewhere, 1)):
                places = np.arange(step, size, step)
                places = places[(places % length == 0) == (kept is at_posts)]
                if len(places) < parts - 1:
                    continue
                inner = np.sort(rng.choice(places, parts - 1, replace=False))
                cuts = [START, *(START + inner).tolist(), START + size]
                with threads(parts) as machines:
                    index = Partitioned(machines, cuts, "cei-plain", length)
                    tally += history(index, queries, xs, rng)
                    kept.append([index.entries, one.entries])
    names = ("pairs", "wrong", "candidates", "dropped")
    return dict(zip(names, tally.tolist(), strict=True)) | {
        "at posts": at_posts,
        "elsewhere": elsewhere,
    }


def processes(parameters: dict[str, Any]) -> dict[str, Any]:
    """The same on processes of their own, one a partition."""
    size, parts = max(parameters["domains"]), parameters["processes"]
    domain = range(START, START + size)
    rng = np.random.default_rng(size)
    cuts = [START + size * i // parts for i in range(parts + 1)]
    with own_processes(parts) as machines:
        index = Partitioned(machines, cuts, "cei-plain", 64)
        queries = drawn("half-open", parameters["queries"], domain, rng)
        tally = history(index, queries, values("half-open", domain, rng), rng)
    names = ("pairs", "wrong", "candidates", "dropped")
    apart = len({os.getpid(), *index.pids}) == parts + 1
    return dict(zip(names, tally.tolist(), strict=True)) | {"apart": apart}


# -- costs ---------------------------------------------------------------------------------------


def costs(r: int, small: int) -> dict[str, Any]:
    """What open-ended queries cost at each L: two examples, and the worst of all in a small domain."""
    examples = [
        {
            "L": length,
            "A > 4": entries_of(r, length, 5, r),
            "A <= 7": entries_of(r, length, 0, 8),
        }
        for length in powers(r)
    ]
    worst = []
    lo = np.arange(small)
    for length in powers(small):
        right = np.bincount(cut(cei_plain, small, length, lo, 0 * lo + small - 1).query)
        left = np.bincount(cut(cei_plain, small, length, 0 * lo, lo).query)
        number = fewest(small, length).number
        worst.append(
            {
                "L": length,
                "library": int(max(right.max(), left.max())),
                "fewest": int(max(number[:-1, small].max(), number[0, 1:].max())),
                "lists": lists_over(small, length),
            }
        )
    points = cei_plain.layout(r, 16, 1).defined - cei_plain.layout(r, 16, 0).defined
    return {"examples": examples, "worst": worst, "points": points}


def entries_of(r: int, length: int, a: int, b: int) -> int:
    index = create("cei-plain", domain=range(r), length=length, ends="half-open")
    index.build(np.array([0]), np.array([a]), np.array([b]))
    return int(index.entries)


def lists_over(r: int, length: int) -> list[int]:
    """How many lists a value finds where none is empty, the least and the most of all values."""
    spans = [(a, a + size) for size in powers(length) for a in range(0, r, size)]
    first, last = np.array(spans).T
    index = create("cei-plain", domain=range(r), length=length, ends="half-open")
    index.build(np.arange(len(spans)), first, last)
    lists = index.lists_many(np.arange(r))
    return [int(lists.min()), int(lists.max())]


# -- the verdict ---------------------------------------------------------------------------------

TOLD = {
    "closed": (
        "[a, b] as [a, b) and a point CEI for b, integer values",
        "3.4: exact",
    ),
    "half-open": ("[a, b) with integer ends, real values", "2.1: exact"),
    "open-ended": ("A > c, A >= c, A < c, A <= c over integers, L up to r", "3.4: exact"),
    "open-ended, real": (
        "the same over real values, expanded where the end is not that of a unit, and checked",
        "not stated",
    ),
    "non-integer": (
        "ends that are no integers, of all four kinds, expanded and checked",
        "footnote 1: exact",
    ),
}


def verdict(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]]
) -> Verdict:
    cost = next(result for case, result in results if case["what"] == "costs")
    asked = [result for case, result in results if case["what"] != "costs"]
    checks = [_exact(kind, results) for kind in KINDS]
    checks += _partitions(results)
    checks += _costs(cost, parameters)
    pairs, wrong = (sum(result[name] for result in asked) for name in ("pairs", "wrong"))
    loose = [
        result
        for case, result in results
        if case.get("kind") in ("non-integer", "open-ended, real")
    ]
    dropped = sum(row["dropped"] for row in loose) / sum(row["candidates"] for row in loose)
    r = parameters["costs"]
    ends = cost["examples"][0], cost["examples"][4], cost["examples"][-1]
    return Verdict(
        checks,
        f"{wrong or 'No'} mismatch{'' if wrong == 1 else 'es'} in {pairs:,} pairs of a value and a "
        f"query; at r = {r:,}, A > 4 is in "
        + ", ".join(f"{row['A > 4']:,} lists at L = {row['L']:,}" for row in ends)
        + f"; at L = r = {parameters['worst']:,} the worst open-ended query is in "
        f"{cost['worst'][-1]['fewest']} lists, where the paper's r/L is 1.",
        "'r/L CEIs in the worst case' leaves out the remnant: A > 0 is r/L - 1 whole segments and log L "
        "CEIs more, which matters where the paper recommends L = r (log r entries, not 1; a query with "
        "two ends takes 2 log r - 2 at most, see CEI-2). What the paper does not spell out: over real "
        "values, A > 4 is not of the form [a, b), so it is expanded to [4, r) and checked at the end; an "
        "included end b that is an integer has to be expanded to b + 1 (or kept in a point CEI, which "
        "only values that are integers look up). The final check dropped "
        f"{dropped:.1%} of the candidates here. An open-ended query contains values beyond the domain as "
        "well, of which the index knows nothing: the domain must hold every value that can come.",
    )


def _exact(kind: str, results: list[tuple[dict[str, Any], dict[str, Any]]]) -> Check:
    rows = [result for case, result in results if case.get("kind") == kind]
    pairs, wrong = (sum(row[name] for row in rows) for name in ("pairs", "wrong"))
    says, paper = TOLD[kind]
    return same(says, paper, pairs, wrong, "pairs of a value and a query")


def _partitions(results: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[Check]:
    rows = [result for case, result in results if case["what"] == "partitions"]
    pairs, wrong = (sum(row[name] for row in rows) for name in ("pairs", "wrong"))
    posts = [pair for row in rows for pair in row["at posts"]]
    others = [pair for row in rows for pair in row["elsewhere"]]
    more = [parts / one - 1 for parts, one in others]
    checks = [
        same(
            "Partitions: queries clipped to 2 or 4 parts, an index each, values routed",
            "3.4: exact",
            pairs,
            wrong,
            "pairs of a value and a query",
        ),
        same(
            "Parts that are cut at guiding posts hold as many entries as one index",
            "not stated",
            len(posts),
            sum(parts != one for parts, one in posts),
            "partitions",
            f"cut elsewhere, {max(more):.0%} more at most" if more else "",
        ),
    ]
    for case, row in results:
        if case["what"] == "processes":
            told = f"{row['wrong']} wrong of {row['pairs']:,} pairs"
            checks.append(
                Check.of(
                    "The same on separate processes, one a part",
                    row["apart"] and row["wrong"] == 0,
                    "3.4: one machine a partition",
                    told if row["apart"] else f"{told}, but not in processes of their own",
                )
            )
    return checks


def _costs(cost: dict[str, Any], parameters: dict[str, Any]) -> list[Check]:
    small, worst = parameters["worst"], cost["worst"]
    as_told = all(row["fewest"] <= small // row["L"] for row in worst)
    better = all(
        row["fewest"] == max(small // row["L"], small // row["L"] - 1 + log2(row["L"]))
        for row in worst
    )
    falls = worst[0]["fewest"] > 4 * worst[-1]["fewest"]
    wrong = sum(row["lists"] != [1 + log2(row["L"])] * 2 for row in worst)
    last = worst[-1]
    return [
        Check.of(
            "An open-ended query goes into r/L CEIs in the worst case",
            as_told,
            "r/L",
            f"{'r/L - 1 + log L (L >= 2)' if better else 'more'}, as enumerated for r = {small:,}: "
            f"{last['fewest']} where r/L is {small // last['L']}",
            direction=falls,
        ),
        same(
            "The library cuts open-ended queries into no more than the fewest",
            "as few as possible",
            len(worst),
            sum(row["library"] != row["fewest"] for row in worst),
            "lengths L",
        ),
        same(
            "A search collects from so many lists",
            "k + 1",
            len(worst),
            wrong,
            "lengths L, to L = r",
        ),
        Check.of(
            "Closed ends take so many point CEIs more",
            cost["points"] == parameters["costs"],
            "r",
            f"{cost['points']:,} at r = {parameters['costs']:,}",
        ),
    ]


# -- the figure ----------------------------------------------------------------------------------


def draw(
    parameters: dict[str, Any], results: list[tuple[dict[str, Any], dict[str, Any]]], figure: Any
) -> None:
    cost = next(result for case, result in results if case["what"] == "costs")
    rows, r = cost["examples"], parameters["costs"]
    lengths = [row["L"] for row in rows]
    axes = figure.subplots()
    axes.plot(lengths, [r / length for length in lengths], "--", color=GREY, linewidth=1.3)
    axes.plot(
        lengths, [row["A > 4"] for row in rows], "o-", color=BLUE, markersize=6, linewidth=1.4
    )
    axes.plot(
        lengths, [row["A <= 7"] for row in rows], "s-", color=ORANGE, markersize=5, linewidth=1.4
    )
    lists = [1 + log2(length) for length in lengths]
    axes.plot(lengths, lists, "^-", color=VERMILION, markersize=6, linewidth=1.4)
    middle = len(lengths) // 3
    for text, colour, at, offset in (
        ("A > 4: constructs it is in", BLUE, (lengths[middle], rows[middle]["A > 4"]), (14, 6)),
        ("r/L, the paper's worst case", GREY, (lengths[-4], r / lengths[-4]), (-12, -16)),
        ("A <= 7: constructs it is in", ORANGE, (lengths[3], 1), (0, 9)),
        ("lists searched, 1 + log L", VERMILION, (lengths[middle], lists[middle]), (-30, 14)),
    ):
        axes.annotate(
            text,
            at,
            offset,
            textcoords="offset points",
            color=colour,
            weight="bold",
            ha="right" if colour == GREY else "left",
            va="top" if colour == GREY else "bottom",
        )
    axes.set(xscale="log", yscale="log", xlabel="maximal interval length L", ylabel="ID lists")
    axes.set_title(f"Open-ended queries, r = {r:,}")
    axes.set_xticks(lengths[::2], [f"{length:,}" for length in lengths[::2]])
    axes.yaxis.set_major_locator(LogLocator(numticks=12))
    axes.minorticks_off()
    axes.grid(axis="x", visible=False)
    short_numbers(axes)
