"""A set of standing queries, probed by batches of events: what every worker of the system runs.

`Matcher` holds the queries of one version of a query set, can be moved to the next by `add` and
`remove`, and answers a table of events with a table of matches. The answer depends on the queries
and the events alone: one row per (event, query) that match, as a multiset.

Not for several threads at once: a probe leaves its working space behind for the next.

A query has a slot, a small number that the indexes report (`slots.py`), and an access path
(`paths.py`). When more than half of the slots are dead the whole is laid out anew.

A change costs what it changes, in time and in memory. `save` writes the arrays with checksums and
`load` maps them, which takes no time in the number of queries beyond reading the checksums.
"""

from __future__ import annotations

import dataclasses
import pathlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.engine.codes import TextCodes
from limen.engine.emit import (
    MOST_IDS,
    Emit,
    Names,
    TextIds,
    check_emit,
    dictionary_names,
    emit_count,
    emit_ids,
    emit_rows,
    number_names,
    plain_names,
)
from limen.engine.events import Events, read_events, without_views
from limen.engine.paths import Kind, Path, Probes, kinds_of
from limen.engine.slots import Slots
from limen.indexes import saved
from limen.indexes.protocol import Hits
from limen.kernels.csr import append
from limen.model import EventError, LimenError, QuerySet, type_name

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

BATCH_ROWS = 1 << 17  # events matched at a time: keeps what a batch needs in the caches
BATCH_BYTES = 1 << 28  # of events in rows at a time, about: likewise
BATCH_IDS = 1 << 24  # candidates at a time, about: keeps memory bounded where much matches
SAMPLE = 256
KIND = "matcher"


class Matched(NamedTuple):
    """The matches, and the events that could not be matched with the reason why."""

    matches: pa.Table
    quarantine: pa.Table


class QuarantineWarning(UserWarning):
    """Events were set apart; `Matcher.match` returns them."""


class Matcher:
    """
    >>> queries = QuerySet.of(
    ...     {"cheap": "price < 10", "ibm": "symbol = 'IBM' AND price BETWEEN 40 AND 50"},
    ...     attributes={"price": "float64", "symbol": "string"},
    ... )
    >>> events = pa.table({"symbol": ["IBM", "IBM", "KO"], "price": [45.0, float("nan"), 9.5]})
    >>> matches, quarantine = Matcher(queries).match(events)
    >>> sorted(matches.column("query_id").to_pylist())
    ['cheap', 'ibm']
    >>> quarantine.to_pylist()
    [{'symbol': 'IBM', 'price': nan, 'reason': 'price: NaN'}]
    """

    def __init__(self, queries: QuerySet) -> None:
        self._lay_out(queries)

    def _lay_out(self, queries: QuerySet) -> None:
        self._slots = Slots(queries)
        self._paths: dict[Kind, Path] = {}
        self._names: dict[TextIds, Names] = {}
        self._lead_to(np.arange(len(queries), dtype=np.int32))

    def __len__(self) -> int:
        return self._slots.size

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {type_name(kind)}" for name, kind in self.attributes.items())
        return f"Matcher({len(self):,} {'query' if len(self) == 1 else 'queries'}; {parts})"

    @property
    def attributes(self) -> dict[str, pa.DataType]:
        """What an event needs a value of: whatever some query that is in constrains.

        And what the set that the matcher was made of named, even if no query of it said more.
        """
        return self._slots.attributes

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes + sum(path.index.nbytes for path in self._paths.values())

    @property
    def paths(self) -> list[tuple[Kind, int]]:
        """The access paths and how many queries each leads to."""
        return [(kind, len(path.index)) for kind, path in self._paths.items()]

    # -- the query set ---------------------------------------------------------------------------

    def add(self, queries: QuerySet) -> int:
        """Take in more queries; returns how many were new. The same query again is no change.

        An id that is in with another body, or an attribute of another type, is refused and nothing
        is changed.
        """
        if not len(queries):
            return 0
        self._slots.check(queries)
        if queries.ids.type != self._slots.id_type:
            self._lay_out(dataclasses.replace(self.queries(), ids=queries.ids.slice(0, 0)))
        queries = self._slots.new_ones(queries)
        if len(queries):
            self._names = {}
            self._lead_to(self._slots.append(queries))
        return len(queries)

    def _lead_to(self, slots: I32) -> None:
        """Give queries that have a slot their access paths."""
        held = self._slots
        for kind, rows in kinds_of(slots, held.ranges, held.key_codes):
            if kind not in self._paths:
                number = max((path.number for path in self._paths.values()), default=-1) + 1
                self._paths[kind] = Path(kind, number)
            held.path_of[rows] = self._paths[kind].number
            self._paths[kind].add(rows, held.ranges, held.key_codes)

    def remove(self, ids: Iterable[str | int] | pa.Array | pa.ChunkedArray) -> int:
        """Take queries out; an id that is not in is refused and nothing is changed."""
        slots = self._slots.find_all(ids)
        number_of = self._slots.path_of[slots]
        for kind, path in list(self._paths.items()):
            path.index.delete(slots[number_of == path.number])
            if not len(path.index):
                del self._paths[kind]
        for name in self._slots.remove(slots):
            for path in self._paths.values():
                if name in path.verified:
                    path.verified.remove(name)
        if self._slots.used > 2 * len(self) + 1024:
            self._lay_out(self.queries())
        return len(slots)

    def queries(self) -> QuerySet:
        """The queries that are in."""
        return self._slots.queries()

    # -- disk ------------------------------------------------------------------------------------

    def save(self, folder: str | pathlib.Path, *, durable: bool = True) -> None:
        """Write the matcher to a new folder, whole or not at all.

        durable=False does not wait for the disk: for a folder that can be made again, and is
        verified when it is loaded.
        """
        changed = len(self) < self._slots.used or any(p.index.mapped for p in self._paths.values())
        whole = Matcher(self.queries()) if changed else self
        arrays, slots = whole._slots.parts()
        arrays = saved.nested("slots", arrays)
        paths = []
        for number, path in enumerate(whole._paths.values()):
            of_path, facts = path.parts(saved.spare_rows(whole._slots.used))
            arrays |= saved.nested(f"path{number}", of_path)
            paths.append(facts)
        facts = {"slots": slots, "paths": paths}
        saved.write(pathlib.Path(folder), KIND, arrays, facts, durable=durable)

    @classmethod
    def load(cls, folder: str | pathlib.Path, *, verify: bool = True) -> Matcher:
        """Map a saved matcher; with verify=False the checksums are not read (the sizes are).

        Processes on one machine share one copy. Changes stay private, in memory in proportion to
        what they touch while they fit the room that was saved to spare.
        """
        arrays, facts = saved.read(pathlib.Path(folder), KIND, verify=verify)
        matcher = cls.__new__(cls)
        matcher._slots = Slots.of_parts(saved.part(arrays, "slots"), facts["slots"])
        matcher._names = {}
        paths = [
            Path.of_parts(saved.part(arrays, f"path{number}"), of_path)
            for number, of_path in enumerate(facts["paths"])
        ]
        matcher._paths = {path.kind: path for path in paths}
        return matcher

    # -- events ----------------------------------------------------------------------------------

    def match(
        self,
        events: pa.Table,
        emit: Emit = "rows",
        columns: Sequence[str] | None = None,
        *,
        text_ids: TextIds = "dictionary",
    ) -> Matched:
        """Match a table of events.

        `columns` are the event columns to keep in the matches (all by default). Rows come in no
        promised order for emit="rows"; for "ids" and "count" there is one row for each event that
        was not quarantined, in the events' order. Text ids are a dictionary over the query set, or
        plain strings for a receiver to whom the dictionary would be sent with every batch.
        """
        events = without_views(events)
        batches = _slices(events)
        found = self.match_batches(batches, emit, columns, schema=events.schema, text_ids=text_ids)
        return Matched(*(pa.concat_tables(tables) for tables in zip(*found, strict=True)))

    def match_batches(
        self,
        batches: Iterable[pa.Table],
        emit: Emit = "rows",
        columns: Sequence[str] | None = None,
        *,
        schema: pa.Schema,
        text_ids: TextIds = "dictionary",
    ) -> Iterator[Matched]:
        """Match tables of one schema as they come.

        The first result is always there, if empty; a table gives several where much matches.
        """
        yield from self.match_batch(schema.empty_table(), emit, columns, text_ids=text_ids)
        for table in batches:
            if len(table):
                yield from self.match_batch(table, emit, columns, text_ids=text_ids)

    def match_batch(
        self,
        table: pa.Table,
        emit: Emit = "rows",
        columns: Sequence[str] | None = None,
        *,
        text_ids: TextIds = "dictionary",
    ) -> Iterator[Matched]:
        """Match one table, for a caller who has them one at a time; several results where much
        matches, and one at least.
        """
        names = table.schema.names
        kept = list(columns) if columns is not None else names
        for name in kept:
            if name not in names:
                raise LimenError(f"columns: the events have no column {name!r}")
        check_emit(emit, text_ids, kept)
        return self._matched(read_events(table, self.attributes), emit, kept, text_ids)

    def _matched(
        self, events: Events, emit: Emit, kept: list[str], text_ids: TextIds
    ) -> Iterator[Matched]:
        quarantine = events.quarantine
        probes = self._probes(events)
        carried = events.table.select(kept)
        listed = emit != "count" or any(path.verified for path in self._paths.values())
        expected = self._expected(probes) if listed else [0.0] * len(self._paths)
        rows = max(1, int(BATCH_IDS / max(sum(expected), 1e-9)))
        if emit == "rows":  # an event's columns are there once for each match
            width = carried.nbytes / max(probes.n, 1)
            rows = max(1, min(rows, int(BATCH_BYTES / max(width * sum(expected), 1e-9))))
        for start in range(0, max(1, probes.n), rows):
            part, of_part = probes, carried
            if rows < probes.n:
                part = probes.some(slice(start, start + rows))
                of_part = carried.slice(start, rows)
            if emit == "count":
                matches = emit_count(of_part, self._count(part, expected))
            elif emit == "ids":
                matches = emit_ids(of_part, self._hits(part, expected), self._named(text_ids))
            else:
                matches = emit_rows(of_part, self._hits(part, expected), self._named(text_ids))
            yield Matched(matches, quarantine)
            quarantine = quarantine.slice(0, 0)

    def _named(self, text_ids: TextIds) -> Names:
        """The ids by slot, as the receiver sees them.

        Text in a dictionary that was removed and added again is told apart from its dead slot.
        """
        if text_ids not in self._names:
            ids = self._slots.ids.values
            if isinstance(ids, np.ndarray):
                self._names[text_ids] = number_names(ids)
            elif text_ids == "plain":
                self._names[text_ids] = plain_names(ids)
            else:
                if ids.get_total_buffer_size() < MOST_IDS:
                    ids = ids.cast(pa.string())
                if len(self) < len(ids):
                    encoded = ids.dictionary_encode()
                    ids = encoded if len(encoded.dictionary) < len(ids) else ids
                self._names[text_ids] = dictionary_names(ids)
        return self._names[text_ids]

    def _probes(self, events: Events) -> Probes:
        codes = {}
        for name, known in self._slots.codes.items():
            if isinstance(known, TextCodes):
                codes[name] = known.find(events.keys[name])
            else:
                codes[name] = known.find(events.ordinals[name])
        return Probes(len(events.table), events.ordinals, codes)

    def _expected(self, probes: Probes) -> list[float]:
        """About how many candidates an event finds on each path, from a sample of the events."""
        sample = probes.some(slice(None, None, max(1, probes.n // SAMPLE)))
        return [path.candidates(sample) for path in self._paths.values()]

    def _hits(self, probes: Probes, expected: list[float]) -> Hits:
        hits: Hits | None = None
        for path, candidates in zip(self._paths.values(), expected, strict=True):
            more = path.match(probes, self._slots.ranges, candidates)
            if hits is None or not len(hits[1]):
                hits = more
            elif len(more[1]):
                out = np.empty(len(hits[1]) + len(more[1]), np.int32)
                hits = append(*hits, *more, out), out
        return hits or (np.zeros(probes.n + 1, np.int64), np.empty(0, np.int32))

    def _count(self, probes: Probes, expected: list[float]) -> I64:
        total = np.zeros(probes.n, np.int64)
        for path, candidates in zip(self._paths.values(), expected, strict=True):
            total += path.count(probes, self._slots.ranges, candidates)
        return total


def match(
    events: object,
    queries: object,
    emit: Emit = "rows",
    columns: Sequence[str] | None = None,
    *,
    bounds: str = "[]",
) -> pa.Table:
    """For each event, the standing queries whose ranges contain it.

    `events`: an Arrow table, or anything that Arrow can read as one (a pandas or polars frame).
    `queries`: a `Matcher`, or whatever `QuerySet.of` takes; attributes have the types of the event
    columns. Events with a null or NaN in a needed field are left out with a `QuarantineWarning`;
    `Matcher.match` returns them.

    >>> events = pa.table({"symbol": ["IBM", "KO"], "price": [45.0, 9.5]})
    >>> queries = {"ibm": "symbol = 'IBM' AND price < 50", "any": "price > 0"}
    >>> match(events, queries, emit="count").to_pylist()
    [{'symbol': 'IBM', 'price': 45.0, 'matches': 2}, {'symbol': 'KO', 'price': 9.5, 'matches': 1}]
    """
    table = as_table(events)
    matcher = queries if isinstance(queries, Matcher) else None
    if matcher is None:
        typed = None if isinstance(queries, QuerySet) else table.schema
        matcher = Matcher(QuerySet.of(queries, typed, bounds=bounds))
    matched = matcher.match(table, emit, columns)
    if len(matched.quarantine):
        reasons = matched.quarantine.column(matched.quarantine.num_columns - 1)
        first = reasons[0].as_py()
        warnings.warn(
            f"{len(matched.quarantine):,} of {len(table):,} events were not matched (the first: "
            f"{first}); Matcher(queries).match(events).quarantine has them with their reasons",
            QuarantineWarning,
            stacklevel=2,
        )
    return matched.matches


def as_table(frame: object) -> pa.Table:
    """An Arrow table of whatever holds one."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    try:
        if type(frame).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
        if isinstance(frame, Mapping):
            return pa.table(dict(frame))
        if isinstance(frame, list) and all(isinstance(row, Mapping) for row in frame):
            return pa.Table.from_pylist(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise EventError(
            f"the events cannot be read as columns of one type each: {error}"
        ) from None
    raise LimenError(
        f"cannot read events from a {type(frame).__name__}; use an Arrow table or a data frame"
    )


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, len(table), BATCH_ROWS):
        yield table.slice(start, BATCH_ROWS)
