"""What an archive should hold, as a list that is filtered in full each time; and Appendix B by its words.

Nothing here is taken from `limen.archive`. Times and keys are integers; a `Kind` says them as users do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

WINDOW, EVERY, STEPS = 16, 2, 8  # the paper's examples: 16 minutes, every 2
LEFT, RIGHT = 16, 20  # sizes of the two windows whose join the results are
SIDES = ("of_left", "of_right")  # the columns of their rows' times


# -- results -------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A result of a join: generated with the later of its parents, gone with the earlier to leave."""

    key: int  # the number of a key
    left: int  # times of its parents
    right: int
    serial: int = 0

    @property
    def generated(self) -> int:
        return max(self.left, self.right)

    @property
    def expires(self) -> int:
        return min(self.left + LEFT, self.right + RIGHT)


@dataclass
class ByHand:
    """All results that ever came in and were not invalidated, before or afterwards."""

    rows: list[Row] = field(default_factory=list)
    now: int | None = None
    until: dict[int, int] = field(default_factory=dict)  # by key: what is invalid

    def valid(self, rows: Iterable[Row]) -> list[Row]:
        return [r for r in rows if r.generated > self.until.get(r.key, r.generated - 1)]

    def update(self, now: int, rows: Iterable[Row]) -> None:
        self.rows = [*self.rows, *self.valid(rows)]
        self.now = now

    def invalidate(self, keys: Iterable[int], until: int) -> None:
        for key in keys:
            self.until[key] = max(until, self.until.get(key, until))
        self.rows = self.valid(self.rows)

    def alive(self) -> list[Row]:
        return [] if self.now is None else [r for r in self.rows if r.expires > self.now]

    def shorter(self, size: int) -> list[Row]:
        """The join of windows that are all shorter by as much as this size is."""
        by = WINDOW - size
        return self.unequal(LEFT - by, RIGHT - by)

    def unequal(self, left: int, right: int) -> list[Row]:
        """The join of windows of these sizes, by when its parents came."""
        now = self.now
        if now is None:
            return []
        return [r for r in self.rows if r.left > now - left and r.right > now - right]

    def copy(self) -> ByHand:
        return ByHand(list(self.rows), self.now, dict(self.until))


# -- as a user says them -------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A type of keys and one of times."""

    name: str
    key_type: pa.DataType
    keys: Sequence[Any]  # in order
    timed: bool = False

    def __repr__(self) -> str:
        return f"{self.name}{'-timestamps' if self.timed else ''}"

    def time(self, at: int) -> Any:
        """A minute, as a user says it."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=at) if self.timed else at

    def length(self, minutes: int) -> Any:
        return timedelta(minutes=minutes) if self.timed else minutes

    @property
    def schema(self) -> pa.Schema:
        time = pa.timestamp("us", tz="UTC") if self.timed else pa.int64()
        times = [(name, time) for name in ("generated", "expires", *SIDES)]
        return pa.schema([("key", self.key_type), *times, ("serial", pa.int64())])

    def said(self, rows: Iterable[Row]) -> list[dict[str, Any]]:
        return [
            {
                "key": self.keys[r.key],
                "generated": self.time(r.generated),
                "expires": self.time(r.expires),
                **{n: self.time(at) for n, at in zip(SIDES, (r.left, r.right), strict=True)},
                "serial": r.serial,
            }
            for r in rows
        ]

    def table(self, rows: Iterable[Row]) -> pa.Table:
        return pa.Table.from_pylist(self.said(rows), self.schema)

    def same(self, found: pa.Table, rows: Iterable[Row]) -> None:
        """These results and no others, as often as they came."""
        assert found.schema.names == self.schema.names
        assert bag(found) == bag(self.table(rows))


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*table.to_pydict().values(), strict=True))


_DAY = date(2026, 2, 27)
_NOON = datetime(2026, 3, 29, 0, 59, 59, 999_999, UTC)
INTEGERS = Kind("int64", pa.int64(), [-(2**63), -7, 0, 1, 2**53 + 1, 2**63 - 1])
KINDS = [
    INTEGERS,
    Kind("int8", pa.int8(), [-128, -7, 0, 1, 2, 127], timed=True),
    Kind("float64", pa.float64(), [-1e300, -0.5, 0.0, 0.1, 1.0, 5e-324 + 2]),
    Kind("float32", pa.float32(), [-0.5, 0.0, 0.25, 1.0, 1.5, 65536.0], timed=True),
    Kind("text", pa.string(), ["", "B", "a", "it's", "é", "\U0001f600"]),
    Kind("date", pa.date32(), [_DAY + timedelta(i) for i in range(6)]),
    Kind(
        "moment",
        pa.timestamp("us", tz="UTC"),
        [_NOON + timedelta(microseconds=i) for i in range(6)],
        timed=True,
    ),
]
assert all(list(kind.keys) == sorted(kind.keys) for kind in KINDS)


# -- Appendix B ----------------------------------------------------------------------------------

Range = tuple[int, int]  # times, both included
Cells = set[tuple[int, int]]


@dataclass
class Appendix:
    """Algorithms 1 to 4: every sub-index with the time ranges that it is assigned.

    The numbers of partitions divide p, except that Algorithm 3 cuts p - 1 steps by section 2.2. The
    appendix has misprints: its lines 6 and 8 add S to expiration times and multiply by G where it is E;
    Algorithm 3 says sub-indices for rows, and has its two cases in each other's place. The figures show
    what is meant.
    """

    rows: int
    columns: int
    steps: int
    tau: int = 0
    r: int = 1
    generation: str = "round-robin"
    expiration: str = "round-robin"

    def __post_init__(self) -> None:
        cut = {"round-robin": self._in_turn, "chronological": self._in_stretches}
        size = self.steps * self.r
        if self.generation == "lazy":
            self.insertions = self._lazy_stretches()
        else:
            self.insertions = cut[self.generation](self.rows, self.tau - size)
        self.expirations = cut[self.expiration](self.columns, self.tau)

    def _range(self, begin: int, index: int) -> Range:
        return begin + index * self.r + 1, begin + (index + 1) * self.r

    def _in_turn(self, n: int, begin: int) -> list[set[Range]]:
        each = range(self.steps // n)
        return [{self._range(begin, i * n + j) for i in each} for j in range(n)]

    def _in_stretches(self, n: int, begin: int) -> list[set[Range]]:
        each = self.steps // n
        return [{self._range(begin, j * each + i) for i in range(each)} for j in range(n)]

    def _lazy_stretches(self) -> list[set[Range]]:
        """Section 2.2: the first (p-1) mod (n-1) are longer by one than the others; the last is one."""
        p, n, begin = self.steps, self.rows, self.tau - self.steps * self.r
        longer = (p - 1) % (n - 1)
        sizes = [-(-(p - 1) // (n - 1))] * longer + [(p - 1) // (n - 1)] * (n - 1 - longer) + [1]
        found, at = [], 0
        for size in sizes:
            found.append({self._range(begin, at + i) for i in range(size)})
            at += size
        assert at == p
        return found

    def update(self, j: int, around: int = 0) -> tuple[Cells, Cells]:
        """The periodic update at tau + jr: the sub-indices expired from, and those inserted into.

        `around`: the range R has the intervals of so many updates before and after this one too.
        """
        size = self.steps * self.r
        here = self._range(self.tau, j - 1)
        sought = {self._range(self.tau, j - 1 + d) for d in range(-around, around + 1)}
        every = {(a + size, b + size) for a, b in sought} | sought
        columns = {c for c, ranges in enumerate(self.expirations) if ranges & every}
        for ranges in self.expirations:
            if here in ranges:
                ranges.remove(here)
                ranges.add((here[0] + size, here[1] + size))
        rows, row = set(range(self.rows)), self._take_in(here, size)
        if self.generation == "lazy":
            rows -= {self._oldest()}  # K: it is left alone until all of it has gone
        return {(g, c) for g in rows for c in columns}, {(row, c) for c in range(self.columns)}

    def _take_in(self, here: Range, size: int) -> int:
        """The row that gets the insertion range of this update."""
        before = (here[0] - size, here[1] - size)
        if self.generation != "lazy":
            (row,) = (g for g, ranges in enumerate(self.insertions) if before in ranges)
            self.insertions[row].remove(before)
            self.insertions[row].add(here)
            return row
        oldest = self._oldest()
        if max(self.insertions[oldest]) <= before:
            self.insertions[oldest] = {here}
            return oldest
        last = (here[0] - self.r, here[1] - self.r)
        (row,) = (g for g, ranges in enumerate(self.insertions) if last in ranges)
        self.insertions[row].add(here)
        return row

    def _oldest(self) -> int:
        return min(range(self.rows), key=lambda g: min(self.insertions[g]))

    def row_of(self, generated: int) -> int:
        return _holding(self.insertions, generated)

    def column_of(self, expires: int) -> int:
        return _holding(self.expirations, expires)


def _holding(ranges: list[set[Range]], time: int) -> int:
    (found,) = (i for i, some in enumerate(ranges) if any(a <= time <= b for a, b in some))
    return found


def names(cells: Iterable[tuple[int, int]], columns: int = 2) -> set[str]:
    """Sub-indices as the paper numbers them."""
    return {f"I{row * columns + column + 1}" for row, column in cells}
