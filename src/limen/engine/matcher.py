"""A set of standing queries, probed by batches of events: what every worker of the system runs.

`Matcher` holds the queries of one version of a query set, can be moved to the next by `add` and
`remove`, and answers a table of events with a table of matches. The answer depends on the queries
and the events alone: one row per (event, query) that match, as a multiset.

Not for several threads at once: a probe leaves its working space behind for the next.

A query has a slot, a small number that the indexes report; slots are not used again, and when more
than half of them are dead the whole is laid out anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.engine.codes import NumberCodes, TextCodes
from limen.engine.emit import Emit, check_emit, emit_count, emit_ids, emit_rows
from limen.engine.events import Events, check_columns, read_events, without_views
from limen.engine.paths import Kind, Path, Probes, Ranges, kinds_of, point_keys_of
from limen.indexes.protocol import Hits, lengthened
from limen.kernels.csr import append
from limen.model import (
    INT64_MAX,
    INT64_MIN,
    EventError,
    LimenError,
    QueryError,
    QuerySet,
    type_name,
)

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

BATCH_ROWS = 1 << 17  # events matched at a time: keeps what a batch needs in the caches
BATCH_IDS = 1 << 24  # candidates at a time, about: keeps memory bounded where much matches
SAMPLE = 256


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
        self.attributes: dict[str, pa.DataType] = {}
        self._ids = queries.ids.slice(0, 0)
        self._names: pa.Array | None = None
        self._live = np.zeros(0, np.bool_)
        self._path_of = np.zeros(0, np.int32)
        self._ranges: Ranges = {}
        self._key_codes: dict[str, I32] = {}
        self._codes: dict[str, TextCodes | NumberCodes] = {}
        self._paths: dict[Kind, Path] = {}
        self._slot_of: dict[object, int] | None = None
        self._append(queries, choose_keys=True)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._live))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {type_name(kind)}" for name, kind in self.attributes.items())
        return f"Matcher({len(self):,} {'query' if len(self) == 1 else 'queries'}; {parts})"

    @property
    def nbytes(self) -> int:
        held = sum(path.index.nbytes for path in self._paths.values()) + self._ids.nbytes
        held += sum(rows.nbytes for rows in self._ranges.values())
        return int(held + sum(codes.nbytes for codes in self._key_codes.values()))

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
        if queries.ids.type != self._ids.type:
            if len(self):
                kinds = f"{self._ids.type} here, not {queries.ids.type}"
                raise QueryError(f"ids are {kinds}", field="id")
            self._lay_out(queries.take([]))
        for name, kind in queries.attributes.items():
            if self.attributes.get(name, kind) != kind:
                known = type_name(self.attributes[name])
                raise QueryError(f"is {known} here, not {type_name(kind)}", field=name)
        slot_of = self._slots_by_id()
        ids = queries.ids.to_pylist()
        known_rows = [row for row, who in enumerate(ids) if who in slot_of]
        for row in known_rows:
            if not self._same_body(slot_of[ids[row]], queries, row):
                raise QueryError("the id is in already with another body", row, ids[row])
        if known_rows:
            fresh = np.setdiff1d(np.arange(len(queries)), known_rows)
            queries = queries.take(fresh)
        if len(queries):
            first = len(self._ids)
            self._append(queries, choose_keys=False)
            slot_of.update(zip(queries.ids.to_pylist(), range(first, len(self._ids)), strict=True))
        return len(queries)

    def remove(self, ids: Iterable[str | int]) -> int:
        """Take queries out; an id that is not in is refused and nothing is changed."""
        if isinstance(ids, (str, bytes)):
            raise QueryError(f"remove takes a list of ids; for one, [{ids!r}]")
        slot_of = self._slots_by_id()
        gone = list(dict.fromkeys(ids))
        missing = [who for who in gone if who not in slot_of or isinstance(who, bool)]
        if missing:
            raise QueryError(f"no query has the id {missing[0]!r} ({len(missing)} such ids)")
        slots = np.array([slot_of.pop(who) for who in gone], np.int32)
        self._live[slots] = False
        for number, path in enumerate(self._paths.values()):
            path.index.delete(slots[self._path_of[slots] == number])
        if len(self._live) > 2 * len(self) + 1024:
            self._lay_out(self.queries())
        return len(gone)

    def queries(self) -> QuerySet:
        """The queries that are in."""
        rows = np.flatnonzero(self._live)
        keys = {}
        for name, kind in self.attributes.items():
            codes = self._codes.get(name)
            if isinstance(codes, TextCodes):
                values = pa.array(list(codes.codes), kind)
                at = self._key_codes[name][rows]
                keys[name] = values.take(pa.array(at, mask=at < 0))
        return QuerySet(
            self._ids.take(pa.array(rows)),
            dict(self.attributes),
            {name: ends[rows, 0] for name, ends in self._ranges.items()},
            {name: ends[rows, 1] for name, ends in self._ranges.items()},
            keys,
        )

    def _slots_by_id(self) -> dict[object, int]:
        if self._slot_of is None:
            live = np.flatnonzero(self._live)
            self._slot_of = dict(
                zip(self._ids.take(pa.array(live)).to_pylist(), live.tolist(), strict=True)
            )
        return self._slot_of

    def _same_body(self, slot: int, queries: QuerySet, row: int) -> bool:
        """Does the query in the slot say the same as that of the row, of every attribute of either?"""
        whole = (INT64_MIN, INT64_MAX)
        for name in self._ranges.keys() | queries.lo.keys():
            mine = tuple(self._ranges[name][slot]) if name in self._ranges else whole
            theirs = (queries.lo[name][row], queries.hi[name][row]) if name in queries.lo else whole
            if mine != theirs:
                return False
        texts = {name: codes for name, codes in self._codes.items() if isinstance(codes, TextCodes)}
        for name in texts.keys() | queries.keys.keys():
            value = queries.keys[name][row].as_py() if name in queries.keys else None
            mine_code = self._key_codes[name][slot] if name in texts else -1
            if mine_code < 0 or value is None:
                if mine_code >= 0 or value is not None:
                    return False
            elif texts[name].codes.get(value) != mine_code:
                return False
        return True

    def _append(self, queries: QuerySet, *, choose_keys: bool) -> None:
        first, n = len(self._ids), len(self._ids) + len(queries)
        slots = np.arange(first, n, dtype=np.int32)
        self._ids = pa.concat_arrays([self._ids.cast(queries.ids.type), queries.ids])
        self._names = None
        self._live = np.concatenate([self._live, np.ones(len(queries), np.bool_)])
        for name, kind in queries.attributes.items():
            self.attributes.setdefault(name, kind)
        for name in self.attributes:
            if name in queries.keys or isinstance(self._codes.get(name), TextCodes):
                self._append_keys(name, queries, first)
            else:
                self._append_ranges(name, queries, first)
        if choose_keys:
            for name in point_keys_of(self._ranges, slots):
                self._codes[name] = NumberCodes()
                self._key_codes[name] = np.empty(0, np.int32)
        for name, codes in self._codes.items():
            if isinstance(codes, NumberCodes):
                self._key_codes[name] = _codes_of_points(
                    codes, self._key_codes[name], self._ranges[name]
                )
        self._path_of = lengthened(self._path_of, n)
        for kind, rows in kinds_of(slots, self._ranges, self._key_codes):
            path = self._paths.setdefault(kind, Path(kind))
            self._path_of[rows] = list(self._paths).index(kind)
            path.add(rows, self._ranges, self._key_codes)

    def _append_keys(self, name: str, queries: QuerySet, first: int) -> None:
        codes = self._codes.setdefault(name, TextCodes())
        assert isinstance(codes, TextCodes)
        old = self._key_codes.get(name, np.full(first, -1, np.int32))
        if name in queries.keys:
            new = codes.learn(queries.keys[name])
        else:
            new = np.full(len(queries), -1, np.int32)
        self._key_codes[name] = np.concatenate([old, new])

    def _append_ranges(self, name: str, queries: QuerySet, first: int) -> None:
        rows = np.empty((first + len(queries), 2), np.int64)
        rows[:] = INT64_MIN, INT64_MAX
        if name in self._ranges:
            rows[:first] = self._ranges[name]
        if name in queries.lo:
            rows[first:, 0], rows[first:, 1] = queries.lo[name], queries.hi[name]
        self._ranges[name] = rows

    # -- events ----------------------------------------------------------------------------------

    def match(
        self, events: pa.Table, emit: Emit = "rows", columns: Sequence[str] | None = None
    ) -> Matched:
        """Match a table of events.

        `columns` are the event columns to keep in the matches (all by default). Rows come in no
        promised order for emit="rows"; for "ids" and "count" there is one row for each event that
        was not quarantined, in the events' order.
        """
        events = without_views(events)
        parts = list(self.match_batches(_slices(events), emit, columns, schema=events.schema))
        return Matched(*(pa.concat_tables(tables) for tables in zip(*parts, strict=True)))

    def match_batches(
        self,
        batches: Iterable[pa.Table],
        emit: Emit = "rows",
        columns: Sequence[str] | None = None,
        *,
        schema: pa.Schema,
    ) -> Iterator[Matched]:
        """Match tables of one schema as they come.

        The first result is always there, if empty; a table gives several where much matches.
        """
        kept = list(columns) if columns is not None else schema.names
        for name in kept:
            if name not in schema.names:
                raise LimenError(f"columns: the events have no column {name!r}")
        check_emit(emit, kept)
        check_columns(schema, self.attributes)
        yield from self._matched(schema.empty_table(), emit, kept)
        for table in batches:
            if len(table):
                yield from self._matched(table, emit, kept)

    def _matched(self, table: pa.Table, emit: Emit, kept: list[str]) -> Iterator[Matched]:
        events = read_events(table, self.attributes)
        quarantine = events.quarantine
        probes = self._probes(events)
        for rows in self._bounded(probes):
            part = Probes(
                len(range(*rows.indices(probes.n))),
                {name: values[rows] for name, values in probes.ordinals.items()},
                {name: codes[rows] for name, codes in probes.codes.items()},
            )
            carried = events.table.select(kept).slice(rows.start, part.n)
            if emit == "count":
                matches = emit_count(carried, self._count(part))
            elif emit == "ids":
                matches = emit_ids(carried, self._hits(part), self._outside_ids())
            else:
                matches = emit_rows(carried, self._hits(part), self._outside_ids())
            yield Matched(matches, quarantine)
            quarantine = quarantine.slice(0, 0)

    def _outside_ids(self) -> pa.Array:
        """The ids by slot; text that was removed and added again is told apart from its dead slot."""
        if self._names is None:
            self._names = self._ids
            if pa.types.is_string(self._ids.type) and len(self) < len(self._live):
                encoded = self._ids.dictionary_encode()
                if len(encoded.dictionary) < len(self._ids):
                    self._names = encoded
        return self._names

    def _probes(self, events: Events) -> Probes:
        codes = {}
        for name, known in self._codes.items():
            if isinstance(known, TextCodes):
                codes[name] = known.find(events.keys[name])
            else:
                codes[name] = known.find(events.ordinals[name])
        return Probes(len(events.table), events.ordinals, codes)

    def _bounded(self, probes: Probes) -> list[slice]:
        """Runs of events that find about BATCH_IDS candidates at most, from a sample of them."""
        some = slice(None, None, max(1, probes.n // SAMPLE))
        sample = Probes(
            len(range(0, probes.n, some.step)),
            {name: values[some] for name, values in probes.ordinals.items()},
            {name: codes[some] for name, codes in probes.codes.items()},
        )
        per_event = sum(path.candidates(sample) for path in self._paths.values())
        rows = max(1, int(BATCH_IDS / max(per_event, 1e-9)))
        return [slice(start, start + rows) for start in range(0, max(1, probes.n), rows)]

    def _hits(self, probes: Probes) -> Hits:
        hits = (np.zeros(probes.n + 1, np.int64), np.empty(0, np.int32))
        for path in self._paths.values():
            more = path.match(probes, self._ranges)
            if not len(hits[1]):
                hits = more
            elif len(more[1]):
                out = np.empty(len(hits[1]) + len(more[1]), np.int32)
                hits = append(*hits, *more, out), out
        return hits

    def _count(self, probes: Probes) -> I64:
        total = np.zeros(probes.n, np.int64)
        for path in self._paths.values():
            total += path.count(probes, self._ranges)
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


def _codes_of_points(codes: NumberCodes, old: I32, rows: I64) -> I32:
    """Key codes of all rows, the old ones given: a code where the range is a point, else -1."""
    new = rows[len(old) :]
    found = np.full(len(new), -1, np.int32)
    points = (new[:, 0] == new[:, 1]).nonzero()[0]
    found[points] = codes.learn(new[points, 0])
    return np.concatenate([old, found])
