"""A domain and a kind of ends around an index: what `create` makes for the papers' conventions.

- ends="closed": a query is [lo, hi], both ends included and integers, and so are the values (VCI).
- ends="half-open": a query is [lo, hi), with integer ends; values are any real numbers (CEI).

Inside, both are the integers lo..hi or lo..hi - 1 and a value is the integer at or below it, counted from
the beginning of the domain. Bad input has one answer, whatever the index: what `protocol.py` says, and

- a query that is not wholly within the domain: ValueError that names it, nothing is changed;
- [x, x] is the point x; [x, x) holds nothing and is refused with a ValueError;
- a value outside the domain, NaN and the infinities: no query contains them, they find nothing; an
  integer that is no int64 is a ValueError all the same;
- a real value where ends are closed: ValueError, as for everything that is not an integer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from limen.indexes.constructs import Constructs
from limen.indexes.is_list import ISList
from limen.indexes.protocol import I32, I64, Hits, IntervalIndex, checked, plain, refuse_tables
from limen.kernels import positions

INT64 = range(-(2**63), 2**63)
ENDS = ("closed", "half-open")


class Bounded:
    def __init__(self, inside: IntervalIndex, domain: range, ends: str) -> None:
        self.name, self.domain, self.ends = inside.name, domain, ends
        self._inside = inside
        self._origin = domain.start if isinstance(inside, Constructs) else 0

    def __len__(self) -> int:
        return len(self._inside)

    def build(self, ids: I32, lo: I64, hi: I64) -> None:
        self._inside.build(*self._positions(ids, lo, hi))

    def insert(self, ids: I32, lo: I64, hi: I64) -> None:
        self._inside.insert(*self._positions(ids, lo, hi))

    def delete(self, ids: I32) -> None:
        self._inside.delete(ids)

    def _positions(self, ids: I32, lo: I64, hi: I64) -> tuple[I32, I64, I64]:
        ids, lo, hi = checked(ids, lo, hi)
        if self.ends == "half-open":
            if (lo == hi).any():
                i = int((lo == hi).argmax())
                raise ValueError(f"id {ids[i]}: [{lo[i]}, {hi[i]}) holds nothing")
            hi = hi - 1
        beyond = (lo < self.domain.start) | (hi > self.domain[-1])
        if beyond.any():
            i = int(beyond.argmax())
            raise ValueError(
                f"id {ids[i]}: {self._told(int(lo[i]), int(hi[i]))} is not within the domain "
                f"{self._told(self.domain[0], self.domain[-1])}"
            )
        return ids, lo - self._origin, hi - self._origin

    def _told(self, first: int, last: int) -> str:
        return f"[{first}, {last}]" if self.ends == "closed" else f"[{first}, {last + 1})"

    def stab(self, x: float) -> I32:
        return self.stab_many(np.array([x]))[1]

    def stab_many(self, xs: npt.NDArray[Any]) -> Hits:
        found, inside = self._values(xs)
        offsets, ids = self._inside.stab_many(found)
        return (offsets if inside is None else _spread(offsets, inside)), ids

    def count_many(self, xs: npt.NDArray[Any]) -> I32:
        return self._each(self._inside.count_many, xs)

    def _each(self, count: Any, xs: npt.NDArray[Any]) -> I32:
        found, inside = self._values(xs)
        counts: I32 = count(found)
        if inside is None:
            return counts
        every = np.zeros(len(inside), np.int32)
        every[inside] = counts
        return every

    def _values(self, xs: npt.NDArray[Any]) -> tuple[I64, npt.NDArray[np.bool_] | None]:
        """Positions of the values within the domain, and which these are if not all."""
        given = np.asarray(xs)
        refuse_tables(given)
        found, inside = np.empty(len(given), np.int64), np.empty(len(given), np.bool_)
        first, last = self.domain[0], self.domain[-1]
        if self.ends == "half-open" and given.dtype.kind == "f":
            reals = np.require(given, np.float64, ["C", "W"])
            outside = positions.of_reals(reals, first, last, self._origin, found, inside)
        else:
            whole = plain(given, np.int64)
            outside = positions.of_integers(whole, first, last, self._origin, found, inside)
        return (found[inside], inside) if outside else (found, None)

    @property
    def nbytes(self) -> int:
        return self._inside.nbytes


class Paper(Bounded):
    """An index as its paper has it: with the paper's count of storage, and its parts to look at."""

    def __init__(self, inside: Constructs | ISList, domain: range, ends: str) -> None:
        super().__init__(inside, domain, ends)
        self._paper = inside

    def lists_many(self, xs: npt.NDArray[Any]) -> I32:
        """How many lists that are not empty each value finds: the search without the report."""
        return self._each(self._paper.lists_many, xs)

    def pieces(self, lo: int, hi: int) -> list[tuple[int, int, int]]:
        """What a query is cut into: label, first and last value of each construct.

        Closed constructs share their ends, and a single point is held in a construct that goes on to
        the next value: what is not the query's there is passed over in a search. Of an IS-list these
        are the edges marked, as level, first and last node; the query's ends must be in already.

        >>> from limen.indexes import create
        >>> create("sci", domain=range(7), length=4).pieces(0, 6)
        [(3, 0, 4), (17, 4, 6)]
        """
        try:
            _, first, last = self._positions(np.array([0]), np.array([lo]), np.array([hi]))
        except ValueError as error:
            raise ValueError(str(error).removeprefix("id 0: ")) from None
        return [
            (label, a + self._origin, b + self._origin)
            for label, a, b in self._paper.pieces(int(first[0]), int(last[0]))
        ]

    def compact(self) -> None:
        """Lay every list out in one stretch of memory, until updates scatter them again."""
        self._paper.compact()

    @property
    def entries(self) -> int:
        """Ids in all lists together, that is the pieces of all queries."""
        return self._paper.entries

    @property
    def model_nbytes(self) -> int:
        """Bytes as the papers count them: 4 a list, a key or a pointer, 8 an id in a list."""
        return self._paper.model_nbytes


def _spread(offsets: I64, inside: npt.NDArray[np.bool_]) -> I64:
    """Offsets for all values, of which only some were looked up."""
    counts = np.zeros(len(inside) + 1, np.int64)
    counts[1:][inside] = np.diff(offsets)
    return np.cumsum(counts)
