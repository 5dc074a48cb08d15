"""What the timed claims share: the papers' queries, and several indexes measured in turn.

All indexes of a case hold the same queries and are searched for the same values in the same run, one
after the other, several rounds of it; a comparison is the median of the ratios within the rounds, with
the least and the greatest. A search gives the ids found, as in the papers. Every index goes through
the same batch call and looks up one value after the other: only the production index (`cei`) makes
use of the batch.

Measured are three orders. "random": the values in random order and the entries of the lists where
insertion has put them, as in the papers. "sorted": the same with the values in order. "laid": the
values in random order again, but every list in one stretch of memory (`compact`): today following a
list costs a wait for memory at each entry, which the papers' machines hardly knew, and this takes it out.
Then "single": a call of Python's for every value, lists laid out. And on demand "find": the lists are
found, but not followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from limen.indexes import create
from limen.indexes.bounded import Paper
from limen.indexes.registry import takes_length

ORDERS = ("random", "sorted", "laid")
IDS = 10_000_000  # that one call may return
SINGLE = 200  # values that are also searched for with a call each
MOST, FEWEST = 20_000_000, 1000  # ids that a round of searches may return, but so many searches
ROUNDS, LONG = 5, 10.0  # rounds, and seconds after which three are enough


class Queries(NamedTuple):
    lo: np.ndarray
    hi: np.ndarray
    xs: np.ndarray
    domain: range
    ends: str


def half_open(n: int, r: int, w: int, searches: int, seed: int = 1) -> Queries:
    """CEI, section 5: begins uniform in 1..r-1, lengths in 1..W, values real between 1 and r."""
    rng = np.random.default_rng(seed)
    lo = rng.integers(1, r, n)
    hi = np.minimum(lo + rng.integers(1, w + 1, n), r)
    return Queries(lo, hi, rng.uniform(1, r, searches), range(r), "half-open")


def closed(n: int, r: int, w: int, searches: int, seed: int = 1) -> Queries:
    """VCI, section 5.2: begins uniform in 1..R-1, lengths in 1..W, cut off at R, values integers."""
    rng = np.random.default_rng(seed)
    lo = rng.integers(1, r, n)
    hi = np.minimum(lo + rng.integers(1, w + 1, n), r)
    return Queries(lo, hi, rng.integers(1, r + 1, searches), range(1, r + 1), "closed")


def built(name: str, queries: Queries, length: int | None) -> Any:
    index = create(
        name,
        domain=queries.domain,
        length=length if takes_length(name) else None,
        ends=queries.ends,
    )
    index.build(np.arange(len(queries.lo), dtype=np.int32), queries.lo, queries.hi)
    return index


def storage(names: Iterable[str], queries: Queries, length: int | None) -> dict[str, Any]:
    """Bytes of each index, without a search."""
    return {name: _bytes(built(name, queries, length), len(queries.lo)) for name in names}


def _bytes(index: Any, n: int) -> dict[str, Any]:
    """As the papers count, as measured, and what of that is the table of the queries by id.

    The papers' own programs are given the interval of a query again to delete it.
    """
    table = 17 * n
    held = {"nbytes": index.nbytes - table}
    if isinstance(index, Paper):
        held |= {"model": index.model_nbytes, "entries": index.entries}
    return held


def measured(
    names: Sequence[str], queries: Queries, length: int | None, find: bool = False
) -> dict[str, Any]:
    """Search times of each index in turn, in ns a value, and their bytes."""
    indexes = {name: built(name, queries, length) for name in names}
    some = queries.xs[:: max(1, len(queries.xs) // 256)]
    hits = float(indexes[names[0]].count_many(some).mean())
    values = queries.xs[: max(FEWEST, int(MOST / max(hits, 1)))]
    papers = {name: index for name, index in indexes.items() if isinstance(index, Paper)}
    found: dict[str, Any] = {}
    for order in ORDERS:
        xs = np.sort(values) if order == "sorted" else values
        if order == "laid":
            for index in papers.values():
                index.compact()
        calls = {name: _searching(index.stab_many, xs, hits) for name, index in indexes.items()}
        found[order] = _in_turn(calls, len(xs))
    calls = {name: _one_by_one(index.stab, values[:SINGLE]) for name, index in indexes.items()}
    found["single"] = _in_turn(calls, SINGLE)
    if find:
        calls = {name: _searching(i.lists_many, values, 1) for name, i in papers.items()}
        found["find"] = _in_turn(calls, len(values))
    sizes = {name: _bytes(index, len(queries.lo)) for name, index in indexes.items()}
    return {"hits": hits, "sizes": sizes, **found}


def _one_by_one(search: Callable[[Any], Any], xs: np.ndarray) -> Callable[[], None]:
    def call() -> None:
        for x in values:
            search(x)

    values = xs.tolist()
    return call


def _searching(search: Callable[[Any], Any], xs: np.ndarray, hits: float) -> Callable[[], None]:
    step = max(1, int(IDS / max(hits, 1)))
    parts = [xs[i : i + step] for i in range(0, len(xs), step)]

    def call() -> None:
        for part in parts:
            search(part)

    return call


def _in_turn(calls: dict[str, Callable[[], None]], values: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    began = time.perf_counter()
    for call in calls.values():
        call()
    for done in range(ROUNDS):
        if done >= 3 and time.perf_counter() - began > LONG:
            break
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - begin) / values * 1e9)
    return times
