"""A snapshot of an archive: one version, whole, whatever is written meanwhile.

A probe asks the directory (`DataFile.groups_of`, of every file) which row groups have the key and reads
these and nothing else. Files are read by a few threads, since most of the work is outside of Python.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limen.archive import files
from limen.archive.errors import ArchiveError
from limen.archive.files import DataFile
from limen.archive.keys import Key
from limen.archive.layouts import Cell, Layout
from limen.archive.shape import Mask, Shape
from limen.archive.state import Invalid, State, alive
from limen.archive.table import check_process
from limen.archive.times import Duration, Moment, as_duration

SLICE_ROWS = 200_000  # of a scan in order of the key, about
FEW = 16  # ranges of keys, for which the invalidated keys among them are found beforehand
Times = tuple[Moment | None, Moment | None]
ORDERS = ("key", "generated", "expires")
WORKERS = min(8, os.cpu_count() or 1)


class SubIndex(NamedTuple):
    """What `info` tells of one."""

    row: int
    column: int
    rows: int  # of results, those that have gone but lie there included
    files: int
    bytes: int


@dataclass(frozen=True)
class Snapshot:
    path: Path
    version: int
    shape: Shape
    state: State
    invalid: Invalid
    files: Sequence[DataFile]
    shorter: int = 0  # by how much all windows are
    sizes: tuple[tuple[str, int], ...] = ()  # windows of another size, by their timestamps

    @property
    def layout(self) -> Layout:
        return self.state.layout

    @property
    def time(self) -> Moment | None:
        """That of the last update; None before the first."""
        return (
            None if self.state.origin is None else self.shape.time_of(self.state.time(self.shape))
        )

    # -- reading ---------------------------------------------------------------------------------

    def probe(
        self,
        key: Any = None,
        *,
        between: tuple[Any, Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The results of a key, of any of a list of keys, or with keys between two, both included.

        In order of key and expiration.
        """
        if (key is None) == (between is None):
            raise ArchiveError("a probe is for a key, for a list of keys, or between two")
        if between is not None:
            ranges = [self.shape.keys_between(between)]
        else:
            ranges = [(k, k) for k in self.shape.keys_in(key)]
        wanted = self._columns(columns)
        found = self._gather(ranges, self._needed(wanted))
        return self._ordered(found, ORDERS[0]).select(wanted)

    def scan(self, order: str | None = None, *, columns: Sequence[str] | None = None) -> pa.Table:
        """All results; `order`: "key", "generated" or "expires", or as they lie."""
        if order not in (None, *ORDERS):
            raise ArchiveError(f"order={order!r}: a scan is in order of {', '.join(ORDERS)}")
        wanted = self._columns(columns)
        found = self._gather(None, self._needed(wanted))
        return (found if order is None else self._ordered(found, order)).select(wanted)

    def scan_batches(self, *, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """All results in order of the key, a part at a time: more than memory holds can be read so."""
        wanted = self._columns(columns)
        needed = self._needed(wanted)
        starts = sorted({first for file in self.files for first in file.firsts})
        if not starts:
            return
        rows = sum(file.rows for file in self.files)
        parts = min(len(starts), max(1, rows // SLICE_ROWS))
        cuts = [starts[i * len(starts) // parts] for i in range(parts)]
        last = max(file.lasts[-1] for file in self.files)
        for i, low in enumerate(cuts):
            high, inside = (cuts[i + 1], False) if i + 1 < parts else (last, True)
            found = self._gather([(low, high)], needed)
            if not inside:  # the next part begins with it
                keys = self.shape.keys_of(found.column(self.shape.key))
                found = found.filter(pc.less(keys, pa.scalar(high, keys.type)))
            if len(found):
                yield self._ordered(found, ORDERS[0]).select(wanted)

    def window(self, size: Duration | Mapping[str, Duration]) -> Snapshot:
        """The same results for a query with shorter windows (section 3.4).

        A size: all windows are shortened by as much as the archive's. Sizes by name: each window has its
        own; unless all are shortened alike, the archive must keep their timestamps (`stamps`). Of a
        snapshot whose windows are shorter already, they get shorter still.
        """
        if self.shape.count_based:
            raise ArchiveError("windows of a number of rows cannot be shortened by time")
        timed = self.shape.in_timestamps
        if not isinstance(size, Mapping):
            asked, own = as_duration(size, timed, "window"), self.shape.window - self.shorter
            if asked > own:
                whose = "the snapshot's" if self.shorter else "the archive's"
                raise ArchiveError(f"window={size}: {whose} is {self.shape.length(own)}")
            return replace(self, shorter=self.shape.window - asked)
        if not size:
            raise ArchiveError("window={}: a size is needed, for all windows or for some by name")
        sizes = dict(self.sizes)
        for who, length in size.items():
            side = self.shape.stamps.get(who)
            if side is None:
                known = ", ".join(self.shape.stamps) or "none"
                raise ArchiveError(
                    f"the archive keeps no timestamps of a window {who!r}; it does of: {known}"
                )
            asked = as_duration(length, timed, f"window {who!r}")
            own = min(sizes.get(who, side.size), side.size - self.shorter)
            if asked > own:
                where = "the snapshot" if own < side.size else "the archive"
                raise ArchiveError(f"window {who!r}: {length} is more than its size in {where}")
            sizes[who] = asked
        return replace(self, sizes=tuple(sorted(sizes.items())))

    def where(
        self,
        key: Any = None,
        between: tuple[Any, Any] | None = None,
        generated: Times | None = None,
        expires: Times | None = None,
        quote: str = '"',
    ) -> str:
        """What is alive, as SQL: for readers of the table that do not know this library.

        With the conditions of `named`, if said. `quote`: what names are put into; with "`" it is Spark's
        SQL, which takes a backslash in a text for more than itself.
        """
        if not isinstance(quote, str) or len(quote) != 1:
            raise ArchiveError(f"quote={quote!r}: the sign that names are put into is needed")
        shape, parts = self.shape, self._asked(key, between, generated, expires, quote)
        if self.state.origin is None:
            return "false"

        def name(column: str) -> str:
            return _name(column, quote)

        if shape.count_based:
            for who, side in shape.counts.items():
                parts.append(f"{name(side.column)} > {self.state.counts[who] - side.size}")
        else:
            parts.append(f"{name(shape.expires)} > {self._literal(self._horizon())}")
        now = self.state.time(shape)
        for who, size in self.sizes:
            parts.append(f"{name(shape.stamps[who].column)} > {self._literal(now - size)}")
        for until in np.unique(self.invalid.until).tolist():
            keys = self.invalid.keys.filter(pa.array(self.invalid.until == until)).to_pylist()
            listed = ", ".join(_quoted(k, quote) for k in keys)
            past = f"{name(shape.generated)} <= {self._literal(until)}"
            parts.append(f"NOT ({name(shape.key)} IN ({listed}) AND {past})")
        return " AND ".join(parts)

    def _asked(
        self,
        key: Any,
        between: tuple[Any, Any] | None,
        generated: Times | None,
        expires: Times | None,
        quote: str,
    ) -> list[str]:
        shape, parts = self.shape, []
        name = _name(shape.key, quote)

        def told(limit: Key) -> str:
            return _quoted(shape.said_key(limit), quote)

        if key is not None:
            found = [told(one) for one in shape.keys_in(key)]
            more = f"{name} IN ({', '.join(found)})"
            parts.append(more if len(found) > 1 else f"{name} = {found[0]}" if found else "false")
        if between is not None:
            low, high = shape.keys_between(between)
            if low > high:  # type: ignore[operator]
                parts.append("false")
            else:
                parts.append(f"{name} >= {told(low)} AND {name} <= {told(high)}")
        for column, what, asked in (
            (shape.generated, "generated", generated),
            (shape.expires, "expires", expires),
        ):
            for sign, moment in zip((">=", "<="), _limits(asked, what), strict=True):
                if moment is not None:
                    at = self._literal(shape.moment(moment, column))
                    parts.append(f"{_name(column, quote)} {sign} {at}")
        return parts

    def _literal(self, moment: int) -> str:
        if not self.shape.in_timestamps:
            return str(moment)
        return _quoted(self.shape.time_of(moment), '"')

    def sub_indices(self) -> list[SubIndex]:
        """All of them, row by row."""
        grid: dict[Cell, list[DataFile]] = {}
        for file in self.files:
            grid.setdefault(file.cell, []).append(file)
        found = []
        for row in range(self.layout.rows):
            for column in range(self.layout.columns):
                here = grid.get((row, column), [])
                size = sum(file.size for file in here)
                found.append(SubIndex(row, column, sum(f.rows for f in here), len(here), size))
        return found

    def named(
        self,
        key: Any = None,
        between: tuple[Any, Any] | None = None,
        generated: Times | None = None,
        expires: Times | None = None,
    ) -> list[DataFile]:
        """The files that can have results with these keys, one or any of a list, and times."""
        found = [file for file in self.files if not self._is_over(file)]
        if key is not None:
            keys = self.shape.keys_in(key)
            found = [file for file in found if any(len(file.groups_of(k, k)) for k in keys)]
        if between is not None:
            ends = self.shape.keys_between(between)
            found = [file for file in found if len(file.groups_of(*ends))]
        for name, asked in (("generated", generated), ("expires", expires)):
            for at, limit in enumerate(_limits(asked, name)):
                if limit is not None:
                    moment = self.shape.moment(limit, name)
                    found = [
                        file
                        for file in found
                        if (
                            getattr(file, name)[1] >= moment
                            if at == 0
                            else getattr(file, name)[0] <= moment
                        )
                    ]
        return found

    # -- inside ----------------------------------------------------------------------------------

    def _horizon(self) -> int:
        return self.state.time(self.shape) + self.shorter

    def _is_over(self, file: DataFile) -> bool:
        """Has all of the file expired?"""
        return not self.shape.count_based and file.expires[1] <= self._horizon()

    def _columns(self, columns: Sequence[str] | None) -> list[str]:
        names = list(self.shape.schema.names)
        if columns is None:
            return names
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise ArchiveError(f"columns={columns!r}: a list of names is needed")
        wanted = list(columns)
        for name in wanted:
            if name not in names:
                raise ArchiveError(
                    f"there is no column {name!r}; the archive has {', '.join(names)}"
                )
        return wanted

    def _needed(self, wanted: list[str]) -> list[str]:
        """The columns to read: those to sort and to filter by too."""
        shape = self.shape
        more = {
            shape.key,
            shape.generated,
            shape.expires,
            *(s.column for s in shape.counts.values()),
        }
        more |= {shape.stamps[who].column for who, _ in self.sizes}
        return [name for name in shape.schema.names if name in more or name in wanted]

    def _gather(self, ranges: list[tuple[Key, Key]] | None, columns: list[str]) -> pa.Table:
        """The live results with keys in these ranges, file by file."""
        check_process()
        schema = pa.schema([self.shape.schema.field(name) for name in columns])
        if self.state.origin is None:
            return schema.empty_table()
        taken = self
        if len(self.invalid) and ranges is not None and len(ranges) <= FEW:
            taken = replace(self, invalid=self.invalid.within(ranges, self.shape))
        jobs: list[tuple[DataFile, range | None, tuple[Key, Key] | None]] = []
        for file in self.files:
            if self._is_over(file):
                continue
            if ranges is None:
                jobs.append((file, None, None))
                continue
            for low, high in ranges:
                groups = file.groups_of(low, high)
                if len(groups):
                    jobs.append((file, groups, (low, high)))

        parts: list[pa.Table] = [None] * len(jobs)
        left = sorted(range(len(jobs)), key=lambda i: _length(*jobs[i][:2]))

        def read_some() -> None:
            """The longest of those left, until there are none: so all readers are done at once."""
            while left:
                try:
                    i = left.pop()
                except IndexError:  # another has taken the last
                    return
                parts[i] = taken._read(jobs[i], columns)

        others = [_readers().submit(read_some) for _ in range(min(WORKERS, len(jobs)) - 1)]
        read_some()
        for reading in others:
            reading.result()
        parts = [part for part in parts if len(part)]
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def _read(
        self, job: tuple[DataFile, range | None, tuple[Key, Key] | None], columns: list[str]
    ) -> pa.Table:
        file, groups, keys = job
        names = None if len(columns) == len(self.shape.schema) else columns
        rows = files.read(file, groups, names)
        if keys is not None and groups is not None:
            low, high = keys
            if file.firsts[groups[0]] < low or file.lasts[groups[-1]] > high:  # type: ignore[operator]
                rows = _between(rows, self.shape.keys_of(rows.column(self.shape.key)), low, high)
        keep = self._alive(file, rows)
        return rows if keep is None else rows.filter(pa.array(keep))

    def _alive(self, file: DataFile, rows: pa.Table) -> Mask | None:
        shape = self.shape
        if not (shape.count_based or self.sizes or len(self.invalid)):
            if file.expires[0] > self._horizon():
                return None
            soon = shape.numbers(rows, shape.expires) > self._horizon()
            return None if soon.all() else soon
        keep = alive(rows, shape, self.state, self.invalid)
        keep = np.ones(len(rows), np.bool_) if keep is None else keep
        if self.shorter:
            keep &= shape.numbers(rows, shape.expires) > self._horizon()
        for who, size in self.sizes:
            keep &= shape.numbers(rows, shape.stamps[who].column) > self.state.time(shape) - size
        return keep

    def _ordered(self, table: pa.Table, order: str) -> pa.Table:
        name = getattr(self.shape, order)
        if order == ORDERS[0]:
            return files.in_order(table, self.shape)
        sorting = [(name, "ascending"), (self.shape.key, "ascending")]
        slim = table.select([name, self.shape.key])
        return files.roomy(table).take(pc.sort_indices(slim, sorting))


def _between(rows: pa.Table, keys: pa.Array, low: Key, high: Key) -> pa.Table:
    """The rows with keys from low to high; they are in order."""
    if pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type):
        inside = pc.and_(pc.greater_equal(keys, low), pc.less_equal(keys, high))
        return rows.filter(inside)
    values = keys.to_numpy()
    begin = int(np.searchsorted(values, low, "left"))
    end = int(np.searchsorted(values, high, "right"))
    return rows.slice(begin, end - begin)


def _length(file: DataFile, groups: range | None) -> int:
    """Bytes to read."""
    if groups is None:
        return file.size
    first, last = file.groups[groups[0]], file.groups[groups[-1]]
    return last.start + last.length - first.start


@cache
def _readers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, WORKERS - 1), "limen-archive")  # beside whoever asks


def _name(column: str, quote: str) -> str:
    return quote + column.replace(quote, quote * 2) + quote


def _limits(asked: Times | None, what: str) -> Times:
    """From one time to another, None for no limit."""
    if asked is None:
        return None, None
    if not isinstance(asked, (tuple, list)) or len(asked) != 2:
        raise ArchiveError(
            f"{what}={asked!r}: two times are needed, from and to; None for no limit"
        )
    return asked[0], asked[1]


def _quoted(key: Any, quote: str) -> str:
    """A key as a literal of SQL: of the SQL that has its names in this quote.

    How Spark reads a backslash, a quote or a dollar in a text depends on its settings, so such a text
    is told to it by its bytes.
    """
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, datetime):
        # Spark may compare a list of mere texts as texts; in DuckDB a TIMESTAMP has no zone
        return f"{'TIMESTAMP ' if quote == '`' else ''}'{key.astimezone(UTC)}'"
    if isinstance(key, date):
        return f"DATE '{key}'"
    if isinstance(key, str):
        if quote == "`" and any(sign in key for sign in "\\'$"):
            return f"CAST(X'{key.encode().hex()}' AS STRING)"
        return "'" + key.replace("'", "''") + "'"
    if isinstance(key, float):
        return f"CAST('{key!r}' AS DOUBLE)"
    return str(key)
