"""What the experiments about exact facts share: cuts by the library's kernels, and cuts by definition."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from limen.kernels import id_lists
from limen.reproduce import Check

Array = npt.NDArray[Any]
NEVER = 1 << 20  # more constructs than any cut has


def powers(longest: int) -> list[int]:
    """1, 2, 4 and so on up to the longest."""
    return [1 << level for level in range(longest.bit_length())]


def log2(power: int) -> int:
    return power.bit_length() - 1


class Pieces(NamedTuple):
    """What a kernel of the library cuts queries into, a row a piece."""

    query: Array  # number of the query that it is of
    label: Array
    first: Array
    last: Array


def cut(
    kernel: ModuleType, r: int, length: int, lo: Array, hi: Array, closed: bool = False
) -> Pieces:
    """Cut the queries lo..hi (positions of 0..r-1, both included) with a kernel of the library."""
    layout = kernel.layout(r, length, int(closed))
    index = id_lists.empty(layout, r, length, int(closed))
    offsets = np.zeros(len(lo) + 1, np.int64)
    rows = np.empty(((len(lo) + 1) * (layout.pieces + 1), 3), np.int64)
    kernel.decompose(index, lo.astype(np.int64), hi.astype(np.int64), 0, offsets, rows)
    label, first, last = rows[: offsets[-1]].T
    query = np.repeat(np.arange(len(lo)), np.diff(offsets))
    return Pieces(query, np.where(label < 0, ~label, label), first, last)


def every_range(units: int) -> tuple[Array, Array]:
    """First and last unit of every range of so many units."""
    return np.triu_indices(units)


class Fewest(NamedTuple):
    """Of all ways to write [s, e) as a disjoint union of CEIs, those with the fewest, at [s, e]."""

    number: Array  # of CEIs; NEVER where s > e
    ways: Array  # in how many ways
    size: Array  # of the first CEI in one of them


def fewest(units: int, length: int) -> Fewest:
    """By recursion on the first CEI: any that begins at s and does not reach beyond e."""
    number = np.full((units + 1, units + 1), NEVER)
    ways, size = np.zeros_like(number), np.zeros_like(number)
    np.fill_diagonal(number, 0)
    np.fill_diagonal(ways, 1)
    for s in reversed(range(units)):
        for step in powers(length):
            if s % step or s + step > units:
                continue
            ends = slice(s + step, None)
            found = number[s + step, ends] + 1
            better, equal = found < number[s, ends], found == number[s, ends]
            ways[s, ends] = np.where(better, 0, ways[s, ends])
            ways[s, ends] += np.where(better | equal, ways[s + step, ends], 0)
            size[s, ends] = np.where(better, step, size[s, ends])
            number[s, ends] = np.minimum(number[s, ends], found)
    return Fewest(number, ways, size)


def same(
    says: str, paper: str, looked: int, wrong: int, what: str = "places", more: str = ""
) -> Check:
    """A check that holds if of all that was looked at nothing is otherwise."""
    told = f"{wrong:,} of {looked:,} {what} are otherwise" if wrong else f"all {looked:,} {what}"
    return Check.of(says, looked > 0 and wrong == 0, paper, f"{told}; {more}" if more else told)


def held(checks: list[Check]) -> str:
    """How many of the statements hold, to begin a sentence with."""
    good = sum(check.result == "holds" for check in checks)
    return f"{'All' if good == len(checks) else f'{good} of'} {len(checks)} statements hold"
