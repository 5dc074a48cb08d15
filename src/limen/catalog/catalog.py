"""The durable, versioned set of standing queries.

Every change is one commit to a Delta table, and so one version; a receipt names it. A version, once
committed, never changes: `snapshot` and `changes` of it give the same answer for ever (until `vacuum`).
A change is checked against the newest version before it is committed, and checked again if another writer
was quicker: two writers at once both succeed, or one gets the error it would have got later.

Cost: a small change appends a file of its records (milliseconds, one scan over the ids in memory, no
rewrite). After COMPACT_AFTER commits the writer folds all records into one file again.
"""

from __future__ import annotations

import math
import random
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limen.catalog import bindings, log, records
from limen.catalog.errors import CatalogError, ConflictError
from limen.catalog.receipts import Changes, Entry, Event, Receipt
from limen.catalog.records import MOMENT, Layout
from limen.catalog.table import CommitFailedError, Table
from limen.delta.disk import folder_of
from limen.model import LimenError, QueryError, QuerySet, attribute_type, describe, type_name

COMPACT_AFTER = 100  # data files
PENDING_ROWS = 20_000  # changes that are kept beside the rows in memory before they are folded in
ATTEMPTS = 100


class Catalog:
    """
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> catalog = Catalog.open(folder.name + "/alerts", {"symbol": "string", "price": "float64"})
    >>> receipt = catalog.add({"ibm": "symbol = 'IBM' AND price < 50", "penny": "price < 1"})
    >>> receipt.version, catalog.get("ibm").where
    (1, "symbol = 'IBM' AND price < 50.0")
    >>> catalog.remove(["penny"]).version, len(catalog), catalog.snapshot(1)
    (2, 1, QuerySet(2 queries; symbol: string, price: float64))
    >>> folder.cleanup()
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = threading.RLock()
        self._rows: pa.Table | None = None  # live records
        self._sorted: tuple[Any, Any] | None = None  # their integer ids in order, and the rows
        self._pending: pa.Table | None = None  # records since then, up to _seen
        self._seen = self._newest = table.version
        self._live = 0
        self._next_expiry: int | None = None

    @classmethod
    def open(
        cls,
        path: str | Path,
        attributes: Mapping[str, str | pa.DataType] | pa.Schema | None = None,
        *,
        ids: str | pa.DataType = "string",
    ) -> Catalog:
        """Open the catalog in a folder; with `attributes`, make it if it is not there.

        `attributes`: what queries may name, with types. On an existing catalog they must have the
        types it knows; new ones are declared. `ids` ("string" or "int64") matters when it is made.
        """
        try:
            folder = folder_of(path, "a catalog")
        except ValueError as error:
            raise CatalogError(str(error)) from None
        given = None if attributes is None else _attributes(attributes)
        # what else is there, before looking for commits: another process may be making it
        taken = given is not None and _taken(folder)
        if given is not None and not log.begun(folder):
            if taken:
                raise CatalogError(f"{folder} is there and is not a catalog; choose another folder")
            layout = Layout(QuerySet.empty(ids).ids.type, given)
            return cls(Table.create(folder, layout))._declared(given)
        return cls(Table.open(folder))._declared(given or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return Catalog.open, (self.path,)

    def __repr__(self) -> str:
        parts = ", ".join(f"{n}: {type_name(k)}" for n, k in self.attributes.items())
        return f"Catalog({str(self.path)!r}, version {self.version}; {parts})"

    def __len__(self) -> int:
        commit = log.read_commit(self.path, self.version)
        if commit is not None and commit.info is not None and "live" in commit.info:
            return int(commit.info["live"])
        return len(self._live_rows(self.version))

    # -- what it is ------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        return self._table.path

    @property
    def id(self) -> str:
        """Another for every catalog that was ever made."""
        return self._table.meta.id

    @property
    def attributes(self) -> dict[str, pa.DataType]:
        """What queries may name."""
        return dict(self._table.meta.layout.attributes)

    @property
    def id_type(self) -> pa.DataType:
        return self._table.meta.layout.id_type

    @property
    def version(self) -> int:
        """The newest version."""
        self._newest = log.newest(self.path, self._newest)
        return self._newest

    def fingerprint(self, version: int) -> str:
        """Another for every commit: tells apart the histories of a catalog and of its copy."""
        try:
            return f"{zlib.crc32(log.commit_file(self.path, version).read_bytes()):08x}"
        except FileNotFoundError:
            return ""

    def refresh(self) -> None:
        """Take note of what others have declared."""
        with self._lock:
            self._table.refresh()

    def declare(self, attributes: Mapping[str, str | pa.DataType]) -> None:
        """Let queries name further attributes."""
        self._declared(_attributes(attributes))

    def _declared(self, given: dict[str, pa.DataType]) -> Catalog:
        for _ in range(ATTEMPTS):
            with self._lock:
                known = self.attributes
                for name, kind in given.items():
                    if known.get(name, kind) != kind:
                        raise CatalogError(
                            f"{self.path}: attribute {name!r} is {type_name(known[name])} here, "
                            f"not {type_name(kind)}"
                        )
                if given.keys() <= known.keys():
                    return self
                try:
                    self._table.declare(Layout(self.id_type, {**known, **given}))
                except CommitFailedError:
                    self._table.refresh()
        raise ConflictError(f"{self.path}: other writers kept changing it; try again")

    # -- changes ---------------------------------------------------------------------------------

    def add(
        self, queries: object, *, ttl: timedelta | float | None = None, bounds: str = "[]"
    ) -> Receipt:
        """Take in queries: whatever `QuerySet.of` reads. All of them, or an error and none.

        A query that is in already with the same body is no change, but for its expiry, which is
        set anew; the same id with another body is refused. `ttl`: for how long (seconds or a
        timedelta); afterwards it is removed by the next change or the next batch of a stream.
        """
        return self.change(add=queries, ttl=ttl, bounds=bounds)

    def remove(self, ids: Iterable[str | int] | pa.Array) -> Receipt:
        """Take out queries; an id that is not in is refused, and nothing is changed."""
        return self.change(remove=ids)

    def change(
        self,
        add: object = None,
        remove: Iterable[str | int] | pa.Array = (),
        *,
        ttl: timedelta | float | None = None,
        bounds: str = "[]",
    ) -> Receipt:
        """Remove and add in one commit; an id in both is replaced."""
        with self._lock:
            self._refresh()  # others may have declared what the queries name
            queries = QuerySet.empty(self.id_type) if add is None else self._read(add, bounds)
            return self._commit(queries, self._ids(remove), _expiry(ttl))

    def expire(self) -> Receipt | None:
        """Remove the queries whose time is over; None if there are none."""
        with self._lock:
            self._refresh()
            if not len(self._due()):
                return None
            none = QuerySet.empty(self.id_type)
            return self._commit(none, pa.array([], self.id_type), None)

    def expiry_is_due(self) -> bool:
        """Has a query of the newest version outlived its time? Mostly reads one small file."""
        commit = log.read_commit(self.path, self.version)
        if commit is not None and commit.info is not None and "next_expiry" in commit.info:
            earliest = commit.info["next_expiry"]  # perhaps of a query that is removed
            if earliest is None or earliest > _now():
                return False
        with self._lock:
            self._refresh()
            return bool(len(self._due()))

    def _read(self, queries: object, bounds: str) -> QuerySet:
        found = QuerySet.of(queries, self.attributes, bounds=bounds)
        if len(found) and found.ids.type != self.id_type:
            raise QueryError(
                f"ids of this catalog are {type_name(self.id_type)}, not "
                f"{type_name(found.ids.type)}",
                row=0,
                query_id=found.ids[0].as_py(),
                field="id",
            )
        return found if len(found) else QuerySet.empty(self.id_type)

    def _ids(self, ids: Iterable[str | int] | pa.Array) -> pa.Array:
        if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
            raise QueryError(f"ids are given as a list; for one, [{ids!r}]")
        if not isinstance(ids, (pa.Array, pa.ChunkedArray)):
            ids = list(ids)
            wanted = str if pa.types.is_string(self.id_type) else (int, np.integer)
            for who in ids:
                if not isinstance(who, wanted) or isinstance(who, bool):
                    raise QueryError(f"no query has the id {who!r}: ids are {self.id_type} here")
            try:
                ids = pa.array(ids, self.id_type)
            except (OverflowError, UnicodeEncodeError) as error:
                raise QueryError(f"no query has an id of {ids[:5]!r}: {error}") from None
        elif len(ids) and ids.type != self.id_type:
            raise QueryError(f"ids are {self.id_type} here, not {ids.type}")
        return pc.unique(ids) if len(ids) else pa.array([], self.id_type)

    def _commit(self, queries: QuerySet, gone: pa.Array, expires: int | None) -> Receipt:
        written, name = None, ""
        for attempt in range(ATTEMPTS):
            self._refresh()
            change, removed, added = self._checked(queries, gone, expires)
            if not len(change):
                return Receipt(self.path, self._seen, 0, 0, datetime.now(UTC))
            live = self._live + added - removed
            info: dict[str, Any] = {
                "kind": "change" if added or len(gone) else "expiry",
                "added": added,
                "removed": removed,
                "live": live,
                "next_expiry": self._expiry_after(change),
            }
            if written is None or not change.equals(written):
                written, name = change, self._table.write(change)
            try:
                version = self._table.commit({name: len(change)}, [], info)
            except CommitFailedError:
                time.sleep(random.uniform(0, 0.002 * 2 ** min(attempt, 6)))
                continue
            finally:
                self._newest = max(self._newest, self._table.version)
            self._take(records.at_version(change, version), version, live, info["next_expiry"])
            self._compact_if_long()
            return Receipt(self.path, version, added, removed, datetime.now(UTC))
        raise ConflictError(
            f"{self.path}: other writers were quicker {ATTEMPTS} times; nothing was written"
        )

    def _checked(
        self, queries: QuerySet, gone: pa.Array, expires: int | None
    ) -> tuple[pa.Table, int, int]:
        """The records of a change and how many queries it removes and adds, or an error."""
        layout = self._table.meta.layout
        there = self._find(pa.concat_arrays([gone, queries.ids]))
        there_ids = _one(there.column("id"))
        missing = gone.filter(pc.invert(pc.is_in(gone, value_set=there_ids)))
        if len(missing):
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise QueryError(f"no query has the id {missing[0].as_py()!r}{more}")
        due = self._due()
        leaving = pa.concat_arrays([gone, due.filter(pc.invert(pc.is_in(due, value_set=gone)))])
        staying = there.filter(pc.invert(pc.is_in(there_ids, value_set=leaving)))
        moments = pa.repeat(pa.scalar(expires, MOMENT), len(queries))
        added = records.additions(layout, queries, moments)
        added, renewed = _new_ones(added, staying, layout)
        leaving = pa.concat_arrays([leaving, renewed])
        parts = [records.removals(layout, leaving), added]
        return pa.concat_tables(parts), len(leaving), len(added)

    # -- the newest state, in memory -------------------------------------------------------------

    def _refresh(self) -> None:
        """Bring what is in memory to the newest version."""
        if self.version != self._table.version:
            self._table.refresh()
        version = self._table.version
        if self._rows is not None and version > self._seen:
            self._follow(version)
        if self._rows is None:
            self._hold(self._live_rows(version), version)

    def _follow(self, version: int) -> None:
        try:
            more = self._records(self._seen, version)
        except CatalogError:
            more = None  # vacuumed, say; if the newest version is damaged, reading it says so
        if more is None:
            self._rows = None
        elif len(more):
            added = int(pc.sum(more.column("added")).as_py())
            expiry = _least(self._next_expiry, _first_expiry(more))
            self._take(more, version, self._live + 2 * added - len(more), expiry)
        self._seen = version

    def _hold(self, rows: pa.Table, version: int) -> None:
        self._rows, self._pending, self._seen = rows, None, version
        self._sorted = None
        self._live, self._next_expiry = len(rows), _first_expiry(rows)

    def _take(self, more: pa.Table, version: int, live: int, next_expiry: int | None) -> None:
        self._seen, self._live, self._next_expiry = version, live, next_expiry
        if len(more) > PENDING_ROWS:
            self._rows = self._pending = None  # to be read again when they are needed
            return
        before = [] if self._pending is None else [self._pending]
        self._pending = records.joined([*before, more], self._table.meta.layout).combine_chunks()
        if len(self._pending) > PENDING_ROWS:
            self._fold()

    def _fold(self) -> pa.Table:
        assert self._rows is not None
        if self._pending is not None:
            whole = records.joined([self._rows, self._pending], self._table.meta.layout)
            self._rows, self._pending = records.live(whole).combine_chunks(), None
            self._sorted = None
        return self._rows

    def _find(self, ids: pa.Array) -> pa.Table:
        """The live records of these ids."""
        parts = []
        if len(ids):
            parts.append(self._among_rows(ids))
            if self._pending is not None:
                asked = pc.is_in(self._pending.column("id"), value_set=ids)
                parts.append(self._pending.filter(asked))
        return records.live(records.joined(parts, self._table.meta.layout))

    def _among_rows(self, ids: pa.Array) -> pa.Table:
        """Which of the rows have these ids; integers are looked up in order, not by a scan."""
        assert self._rows is not None
        column = self._rows.column("id")
        if not pa.types.is_int64(self.id_type) or not len(column):
            return self._rows.filter(pc.is_in(column, value_set=ids))
        if self._sorted is None:
            self._rows = self._rows.combine_chunks()  # taking rows from several would join them
            known = column.to_numpy()
            order = np.argsort(known, kind="stable")
            self._sorted = known[order], order
        known, order = self._sorted
        wanted = np.unique(ids.to_numpy(zero_copy_only=False))
        at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return self._rows.take(pa.array(order[at[known[at] == wanted]]))

    def _due(self) -> pa.Array:
        """The ids whose time is over."""
        if self._next_expiry is None or self._next_expiry > _now():
            return pa.array([], self.id_type)
        rows = self._fold()
        over = pc.less_equal(rows.column("expires"), pa.scalar(_now(), MOMENT))
        due = rows.filter(over)  # null: never
        self._next_expiry = _first_expiry(rows)
        return _one(due.column("id"))

    def _expiry_after(self, change: pa.Table) -> int | None:
        """When the first query expires once the change is in (or earlier: removals are not looked at,
        unless it is over already)."""
        if self._next_expiry is not None and self._next_expiry <= _now():
            rows = self._fold()
            gone = change.filter(pc.invert(change.column("added"))).column("id")
            left = rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=_one(gone))))
            return _least(_first_expiry(left), _first_expiry(change))
        return _least(self._next_expiry, _first_expiry(change))

    # -- reading ---------------------------------------------------------------------------------

    def get(self, query: str | int) -> Entry | None:
        """The query of this id in the newest version, or None."""
        with self._lock:
            self._refresh()
            rows = self._find(self._ids([query]))
            return self._entry(rows, 0) if len(rows) else None

    def list(self, limit: int | None = None, *, version: int | None = None) -> Iterator[Entry]:
        """The queries of a version (the newest if not said) in the order of their ids."""
        if version is None:
            with self._lock:
                self._refresh()
                rows = self._fold()
        else:
            rows = self._live_rows(self._known(version))
        order = pc.sort_indices(rows.column("id"))
        return self._entries(rows.take(order if limit is None else order[: max(0, limit)]))

    def _entries(self, rows: pa.Table) -> Iterator[Entry]:
        queries = records.queries_of(self._table.meta.layout, rows)
        since, expires = rows.column("since").to_pylist(), rows.column("expires").to_pylist()
        for row, who in enumerate(queries.ids.to_pylist()):
            yield Entry(who, describe(queries, row), since[row], expires[row])

    def _entry(self, rows: pa.Table, row: int) -> Entry:
        return next(self._entries(rows.slice(row, 1)))

    def snapshot(self, version: int | None = None) -> QuerySet:
        """All queries of a version (the newest if not said)."""
        rows = self._live_rows(self.version if version is None else self._known(version))
        return records.queries_of(self._table.meta.layout, rows)

    def changes(self, first: int, last: int | None = None) -> Changes:
        """What turns version `first` into version `last` (the newest if not said), net."""
        last = self.version if last is None else self._known(last)
        if self._known(first) > last:
            raise CatalogError(f"version {first} is not before version {last}")
        more = self._records(first, last)
        if more is None:
            gone, new = records.difference(self._live_rows(first), self._live_rows(last))
        else:
            gone, new = records.net(more)
        return Changes(first, last, gone, records.queries_of(self._table.meta.layout, new))

    def history(self, limit: int | None = None) -> Sequence[Event]:
        """What happened, the newest first."""
        newest = self.version
        oldest = -1 if limit is None else max(-1, newest - limit)
        found = []
        for version in range(newest, oldest, -1):
            commit = log.read_commit(self.path, version)
            if commit is not None:
                info = commit.info or {"kind": "foreign"}
                moment = datetime.fromtimestamp(commit.time / 1000, UTC)
                numbers = int(info.get("added", 0)), int(info.get("removed", 0))
                found.append(Event(version, moment, info["kind"], *numbers, info.get("live")))
        return found

    def bindings(self, stream: Any) -> dict[int, int]:
        """The version that each batch of a stream was bound to; the last thousand are kept."""
        return bindings.bindings(self.path, str(getattr(stream, "id", stream)))

    def quarantined(self, stream: Any) -> dict[int, int]:
        """How many events of a stream could not be matched, by batch; of the last thousand batches."""
        return bindings.quarantined(self.path, str(getattr(stream, "id", stream)))

    def bind(self, stream: str, batch: int) -> int:
        """Bind a batch to the newest version, for ever; or the version it is bound to already.

        Queries whose time is over are removed first, so that the batch does not see them.
        """
        already = bindings.bound(self.path, stream, batch)
        if already is not None:
            return already
        if self.expiry_is_due():
            self.expire()
        return bindings.bind(self.path, stream, batch, self.version)

    def _known(self, version: int) -> int:
        if not 0 <= version <= self.version:
            raise CatalogError(
                f"{self.path}: there is no version {version}; the newest is {self.version}"
            )
        return version

    def _live_rows(self, version: int) -> pa.Table:
        with self._lock:  # another thread must not move the table on in between
            files = self._table.files(version)
        parts = [self._table.read(name, at) for name, at in files]
        rows = records.live(self._understood(parts))
        commit = log.read_commit(self.path, version)
        known = None if commit is None or commit.info is None else commit.info.get("live")
        if known not in (None, len(rows)):
            raise CatalogError(
                f"{self.path}: the catalog is damaged: version {version} has {known} queries, "
                f"its files have {len(rows)}"
            )
        return rows

    def _records(self, first: int, last: int) -> pa.Table | None:
        """The records of the versions after `first` up to `last`; None if the log cannot tell."""
        parts = []
        for version in range(first + 1, last + 1):
            commit = log.read_commit(self.path, version)
            if commit is None or commit.info is None:
                return None
            if commit.info["kind"] != "compaction":
                parts += [self._table.read(name, version) for name in commit.files]
        return self._understood(parts)

    def _understood(self, parts: Sequence[pa.Table]) -> pa.Table:
        """Records of several commits in one, with the columns of all declared attributes."""
        if self._unknown(parts):
            with self._lock:
                self._table.refresh()
            if unknown := self._unknown(parts):
                raise CatalogError(
                    f"{self.path}: a query has a value in {min(unknown)}, which is no attribute: "
                    "another program has taken back a declaration"
                )
        return records.joined(parts, self._table.meta.layout)

    def _unknown(self, parts: Sequence[pa.Table]) -> set[str]:
        """Columns with a value that belong to no attribute, as far as is known here."""
        known = {*self._table.meta.layout.schema().names, "version"}
        return {
            name
            for part in parts
            for name in part.column_names
            if name not in known and part.column(name).null_count < len(part)
        }

    # -- housekeeping ----------------------------------------------------------------------------

    def compact(self) -> int | None:
        """Fold all records into one file; returns the version, or None if a writer came between.

        A compaction is a version without changes. Readers of older versions are not disturbed.
        """
        with self._lock:
            self._refresh()
            layout, version = self._table.meta.layout, self._seen
            rows = records.joined([self._fold()], layout).select(layout.schema().names)
            drops = self._table.files()
            if len(drops) <= 1:
                return version
            adds = {self._table.write(rows): len(rows)} if len(rows) else {}
            info = {
                "kind": "compaction",
                "live": len(rows),
                "next_expiry": self._next_expiry,
            }
            try:
                version = self._table.commit(adds, drops, info)
            except CommitFailedError:
                return None
            self._seen = self._newest = version
            return version

    def _compact_if_long(self) -> None:
        if self._seen % (COMPACT_AFTER // 4) == 0 and len(self._table.files()) > COMPACT_AFTER:
            with suppress(CatalogError):  # the change is done; the next writer tries again
                self.compact()

    def vacuum(self, older_than: timedelta = timedelta(days=7)) -> int:
        """Delete files that only older versions use; returns how many. Those versions are then gone."""
        if older_than < timedelta(0):
            raise LimenError("older_than must not be negative")
        with self._lock:
            self._table.refresh()
            return self._table.vacuum(math.ceil(older_than / timedelta(hours=1)))


def _new_ones(added: pa.Table, staying: pa.Table, layout: Layout) -> tuple[pa.Table, pa.Array]:
    """The additions that change something, and the ids among them that are in with another expiry."""
    none = pa.array([], layout.id_type)
    if not len(staying):
        return added, none
    at = pc.index_in(_one(added.column("id")), value_set=_one(staying.column("id")))
    rows = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    old = staying.take(at.take(pa.array(rows)))
    new = added.take(pa.array(rows))
    bodies = [name for columns in layout.columns().values() for name in columns]
    differs = _differing(old, new, bodies)
    if differs.any():
        row = int(differs.argmax())
        who = new.column("id")[row].as_py()
        raise QueryError("the id is in the catalog with another body", int(rows[row]), who)
    renewed = _differing(old, new, ["expires"])
    kept = np.ones(len(added), np.bool_)
    kept[rows] = renewed
    return added.filter(pa.array(kept)), _one(new.column("id")).filter(pa.array(renewed))


def _differing(one: pa.Table, other: pa.Table, columns: list[str]) -> Any:
    differs = np.zeros(len(one), np.bool_)
    for name in columns:
        a, b = _one(one.column(name)), _one(other.column(name))
        unequal = pc.fill_null(pc.not_equal(a, b), False)
        differs |= unequal.to_numpy(zero_copy_only=False)
        differs |= pc.xor(a.is_null(), b.is_null()).to_numpy(zero_copy_only=False)
    return differs


def _expiry(ttl: timedelta | float | None) -> int | None:
    if ttl is None:
        return None
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if not isinstance(seconds, (int, float)) or not 0 < seconds < 1e11:
        raise LimenError(f"ttl={ttl!r}: a time to live is positive, in seconds or a timedelta")
    return _now() + round(seconds * 1e6)


def _first_expiry(rows: pa.Table) -> int | None:
    least = pc.min(rows.column("expires").cast(pa.int64())).as_py()
    return None if least is None else int(least)


def _least(one: int | None, other: int | None) -> int | None:
    known = [moment for moment in (one, other) if moment is not None]
    return min(known, default=None)


def _now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def _taken(folder: Path) -> bool:
    """Is there something else? The log of a catalog that was never finished does not count."""
    if not folder.is_dir():
        return folder.exists()
    return any(found.name != log.FOLDER for found in folder.iterdir())


def _attributes(
    given: Mapping[str, str | pa.DataType] | pa.Schema,
) -> dict[str, pa.DataType]:
    if not isinstance(given, (Mapping, pa.Schema)):
        raise CatalogError(f"attributes are names with types, not a {type(given).__name__}")
    pairs = [(f.name, f.type) for f in given] if isinstance(given, pa.Schema) else given.items()
    found: dict[str, pa.DataType] = {}
    for name, kind in pairs:
        if not isinstance(name, str) or not name:
            raise CatalogError(f"{name!r} is not a name for an attribute")
        if name in found:
            raise CatalogError(f"attribute {name!r} is there twice")
        try:
            found[name] = attribute_type(kind)
        except LimenError as error:
            raise CatalogError(f"attribute {name!r}: {error}") from None
    return found


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
