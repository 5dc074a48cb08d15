"""The archive of the results of sliding-window queries: updated in periods, probed, scanned, shared.

Results come in with the time of their generation and of their expiration. They lie in sub-indices by
both, so that an update touches few of them (`layouts.py`); each update is one commit to a Delta table, so
a reader sees the state before it or after it, and a crash leaves one of the two.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from limen.archive import layouts
from limen.archive.errors import ArchiveError, ConflictError
from limen.archive.keys import Key, listed, plus_zero
from limen.archive.layouts import Choice, Layout
from limen.archive.reader import Snapshot, SubIndex
from limen.archive.shape import Shape, as_sides, make_shape
from limen.archive.state import Invalid, State, check_counts
from limen.archive.table import Mark, Table
from limen.archive.times import Duration, Moment
from limen.archive.writer import Work, Writer, estimated
from limen.delta import log
from limen.delta.disk import folder_of

GRACE = timedelta(minutes=10)
ATTEMPTS = 5  # to build another layout while others update


@dataclass(frozen=True)
class Receipt:
    """An update that is committed."""

    version: int
    time: Moment | None
    inserted: int
    expired: int  # results that had expired before this update
    deleted: int
    touched: int  # sub-indices that were accessed
    files_written: int
    bytes_written: int
    bytes_read: int


class Archive:
    """
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> results = {"key": [1, 1, 2], "generated": [13, 15, 16], "expires": [20, 31, 17]}
    >>> archive = Archive.open(folder.name + "/joined", pa.table(results).schema, key="key",
    ...                        window=16, every=2, layout="Rebuild2x2")
    >>> archive.update(16, results).inserted
    3
    >>> archive.update(18, {"key": [2], "generated": [18], "expires": [30]}).deleted
    1
    >>> archive.probe(2).to_pylist()
    [{'key': 2, 'generated': 18, 'expires': 30}]
    >>> archive.window(8).scan("key").column("expires").to_pylist()  # a shorter window: no more of 20
    [31, 30]
    >>> folder.cleanup()
    """

    def __init__(self, table: Table, why: str | None = None) -> None:
        self._table = table
        self._lock = threading.RLock()
        self.why = why  # this layout, if it was chosen by rule

    @classmethod
    def open(
        cls,
        path: str | Path,
        schema: pa.Schema | None = None,
        *,
        key: str | None = None,
        generated: str | None = None,
        expires: str | None = None,
        window: Duration | None = None,
        every: Duration | None = None,
        layout: str | Layout | None = None,
        stamps: Mapping[str, tuple[str, Duration]] | None = None,
        counts: Mapping[str, tuple[str, int]] | None = None,
        window_bytes: float | None = None,
        queries: float = 1,
        space: bool = False,
        probes_first: bool = False,
        grace: timedelta | None = None,
    ) -> Archive:
        """Open the archive in a folder; with a `schema`, make it if it is not there.

        `key`, `generated`, `expires`: the columns (the last two have these names if not said).
        `window`: its length, in the unit of the times (or a timedelta); no result lives longer.
        `every`: the time from an update to the next. `layout`: a name such as "NoRebuild4x4", or
        "auto" (`limen.archive.choose`, by `window_bytes`, `queries` between two updates, `space`,
        `probes_first`; a window whose size is not said is taken for a small one, and
        `migrate("auto")` can choose again by what is there). `stamps`: the windows that queries may
        shorten one by one, each with the column of its rows' times and its size. `counts`: windows of
        a number of rows, each with the column of its rows' places and its size; the archive then
        estimates expirations. `grace`: for how long a snapshot stays readable after an update has
        replaced its files (ten minutes if not said).

        An archive that is there must have been made with what is said here.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise ArchiveError(f"path={path!r}: the folder of an archive is needed")
        try:
            folder = folder_of(path, "an archive")
        except ValueError as error:
            raise ArchiveError(str(error)) from None
        if not isinstance(schema, pa.Schema | None):
            raise ArchiveError(f"a schema is needed, not a {type(schema).__name__}")
        if grace is not None and (not isinstance(grace, timedelta) or grace < timedelta(0)):
            raise ArchiveError(
                f"grace={grace!r}: a timedelta is needed, and grace must not be negative"
            )
        if stamps is not None:
            stamps = as_sides(stamps, "stamps", "a length of time")
        if counts is not None:
            counts = as_sides(counts, "counts", "a number of rows")
        made = log.begun(folder)
        if schema is None and not made:
            return cls(Table.open(folder))
        said = {
            "key": key,
            "generated": generated,
            "expires": expires,
            "window": window,
            "every": every,
            "stamps": stamps,
            "counts": counts,
        }
        if made:
            archive = cls(Table.open(folder))
            archive._expect(schema, said, layout, grace)
            return archive
        assert schema is not None
        if key is None or window is None or every is None:
            raise ArchiveError("a new archive needs key=, window= and every=")
        shape = make_shape(
            schema,
            key=key,
            generated=generated or "generated",
            expires=expires or "expires",
            window=window,
            every=every,
            stamps=stamps or {},
            counts=counts or {},
        )
        why = None
        if layout in (None, "auto"):
            chosen = layouts.choose(
                window_bytes if window_bytes is not None else 0,
                queries,
                count_based=shape.count_based,
                space=space,
                probes_first=probes_first,
                steps=shape.steps,
            )
            layout, why = chosen
        assert layout is not None
        laid = Layout.of(layout)
        laid.check(shape.steps, shape.count_based)
        if folder.exists() and (not folder.is_dir() or _holds_something(folder)):
            raise ArchiveError(f"{folder} is there and is not an archive; choose another folder")
        seconds = (GRACE if grace is None else grace).total_seconds()
        return cls(Table.create(folder, shape, State(laid), seconds), why)

    def _expect(
        self,
        schema: pa.Schema | None,
        said: dict[str, Any],
        layout: str | Layout | None,
        grace: timedelta | None,
    ) -> None:
        """Refuse parameters that are not those the archive was made with."""
        shape = self._table.shape
        asked = shape
        if schema is not None:
            given = {name: value for name, value in said.items() if value is not None}
            asked = make_shape(schema, **{**{name: shape.said(name) for name in said}, **given})
        for name, value in said.items():
            if value is None:
                continue
            here, there = shape.said(name), value if schema is None else asked.said(name)
            if here != there:
                raise ArchiveError(f"{self.path}: {name} is {here} here, not {there}")
        if schema is not None and asked.schema != shape.schema:
            here = ", ".join(f"{f.name}: {f.type}" for f in shape.schema)
            there = ", ".join(f"{f.name}: {f.type}" for f in asked.schema)
            raise ArchiveError(f"{self.path} has the columns {here}, not {there}")
        if layout not in (None, "auto") and Layout.of(layout or "") != self.layout:
            raise ArchiveError(
                f"{self.path} has the layout {self.layout}, not {Layout.of(layout or '')}; "
                "migrate() changes it"
            )
        if grace is not None and grace.total_seconds() != self._table.grace:
            here = timedelta(seconds=self._table.grace)
            raise ArchiveError(f"{self.path}: grace is {here} here, not {grace}")

    def __repr__(self) -> str:
        now = self.snapshot()
        return f"Archive({str(self.path)!r}, {now.layout}, version {now.version}, time {now.time})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Archive.open, (self.path,)

    # -- what it is ------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        return self._table.path

    @property
    def shape(self) -> Shape:
        return self._table.shape

    @property
    def layout(self) -> Layout:
        return self.snapshot().layout

    @property
    def version(self) -> int:
        """The newest."""
        return self.snapshot().version

    @property
    def time(self) -> Moment | None:
        """That of the last update; None before the first."""
        return self.snapshot().time

    def done(self, stream: str) -> int | None:
        """The last batch of a stream that is in."""
        _check_stream(stream)
        with self._lock:
            self._table.refresh()
            return self._table.state.done.get(stream)

    # -- changes ---------------------------------------------------------------------------------

    def update(
        self,
        time: Moment,
        results: object = None,
        *,
        counts: dict[str, int] | None = None,
        late: bool = False,
        catch_up: bool = False,
    ) -> Receipt:
        """Bring the archive to a time: delete what has expired, take in new results. One commit.

        The first update is the initial stage: its time is where periods are counted from, and its results
        are those of a whole window. Every later one is a period after the last; with `catch_up` it may
        be several. Results are those generated since the last update; with `late` older ones too.
        `counts`: how many rows each counted window has seen.
        """
        with self._lock:
            self._table.refresh()
            now, state, shape = self.shape.moment(time), self._table.state, self.shape
            last = None if state.origin is None else state.time(shape)
            self._check_time(now, last, catch_up)
            table = shape.table_of(results) if results is not None else _nothing(shape)
            seen = check_counts(shape, state, counts)
            shape.check(table, last, now, late or last is None)
            return self._update(now, table, seen)

    def _update(
        self, now: int, table: pa.Table, seen: dict[str, int], marks: Sequence[Mark] = ()
    ) -> Receipt:
        """With these results and those of streams that have waited, up to this time."""
        state, shape = self._table.state, self.shape
        last = None if state.origin is None else state.time(shape)
        table, pending = self._with_waiting(table, now)
        if shape.count_based:
            if last is None:  # of all that a window has seen, what it holds came in its time
                rates = {w: (min(n, shape.counts[w].size), shape.window) for w, n in seen.items()}
            else:
                rates = {w: (n - state.counts[w], now - last) for w, n in seen.items()}
            state = replace(state, counts=seen, rates=rates)
            table = estimated(table, shape, state, now)
        with _written(self._table) as writer:
            after = writer.update(state, table, now)
            after = self._with_invalid(after, writer.work)
            after = replace(after, pending=pending)
        version = self._commit("update", after, writer, marks)
        self._table.sweep(self._table.grace)
        return _receipt(version, shape.time_of(now), writer.work)

    def _commit(self, kind: str, after: State, writer: Writer, marks: Sequence[Mark] = ()) -> int:
        work = writer.work
        said = {"inserted": work.inserted, "deleted": work.deleted, "touched": len(work.touched)}
        try:
            return self._table.commit(kind, after, work.adds, work.drops, marks, said)
        except ConflictError:
            writer.discard()
            raise

    def _check_time(self, now: int, last: int | None, catch_up: bool) -> None:
        if last is None:
            return
        words, due = self.shape.words, last + self.shape.every
        if now <= last:
            done = "is done already" if now == last else "is before the last"
            raise ArchiveError(
                f"the update at {words(now)} {done}; the next one is at {words(due)}"
            )
        if (now - last) % self.shape.every:
            raise ArchiveError(
                f"{words(now)} is not a time of an update; the next one is at {words(due)}"
            )
        if now > due and not catch_up:
            raise ArchiveError(
                f"the update at {words(now)} skips the one at {words(due)}; catch_up=True makes up "
                "for all in between"
            )

    def _with_invalid(self, after: State, work: Work) -> State:
        """With what is still needed of the list of invalidated keys."""
        invalid = self._table.invalid
        if not len(invalid):
            return after
        gone = {file.path for file in work.drops}
        left = [f for f in (*self._table.files, *work.adds) if f.path not in gone]
        least = min((after.last_look(f.cell) for f in left), default=after.step + 1)
        shape = self.shape
        horizon = None if shape.count_based else after.time(shape) - shape.window
        needed = invalid.still_needed(least, horizon)
        return replace(after, invalid=self._keep_invalid(needed, invalid))

    def _keep_invalid(self, fresh: Invalid, old: Invalid) -> str | None:
        if not len(fresh):
            return None
        if len(fresh) == len(old):
            return self._table.state.invalid
        return self._table.write_beside(fresh.to_table(), "invalid")

    def invalidate(self, keys: Iterable[Any] | pa.Array, until: Moment | None = None) -> int:
        """Results of these keys count no more, as if they had expired; returns the version.

        Those that were generated up to `until`, the last update if not said, and that are in or come
        late. They are hidden at once, and deleted when their sub-indices are next looked through.
        """
        if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
            raise ArchiveError(f"keys are given as a list; for one, [{keys!r}]")
        with self._lock:
            self._table.refresh()
            table, shape = self._table, self.shape
            if table.state.origin is None:
                raise ArchiveError("there are no results to invalidate before the first update")
            arrow = isinstance(keys, (pa.Array, pa.ChunkedArray))
            asked = listed(keys if arrow else list(keys))
            found = [self._key_to_invalidate(key) for key in asked]
            if not asked:
                return table.version
            now = table.state.time(shape)
            limit = now if until is None else shape.moment(until, "until")
            if limit > now:
                raise ArchiveError(f"until={until} is after the last update, {shape.words(now)}")
            given = pa.array([shape.said_key(key) for key in found], shape.key_type)
            fresh = table.invalid.and_also(plus_zero(given), limit, table.state.step)
            name = table.write_beside(fresh.to_table(), "invalid")
            return table.commit("invalidate", replace(table.state, invalid=name))

    def _key_to_invalidate(self, key: Any) -> Key:
        low, high = self.shape.keys_at(key)
        if low > high:  # type: ignore[operator]
            raise ArchiveError(
                f"{key!r} cannot be invalidated: {self.shape.key!r} is {self.shape.key_type} here, "
                "which cannot hold it"
            )
        return low

    def fitting(
        self,
        *,
        window_bytes: float | None = None,
        queries: float = 1,
        space: bool = False,
        probes_first: bool = False,
    ) -> Choice:
        """The layout that section 5.8 recommends (`limen.archive.choose`), and why.

        `window_bytes`: what the archive's files have now, if not said.
        """
        snapshot = self.snapshot()
        size = sum(file.size for file in snapshot.files) if window_bytes is None else window_bytes
        return layouts.choose(
            size,
            queries,
            count_based=self.shape.count_based,
            space=space,
            probes_first=probes_first,
            steps=self.shape.steps,
        )

    def migrate(
        self,
        layout: str | Layout,
        *,
        window_bytes: float | None = None,
        queries: float | None = None,
        space: bool = False,
        probes_first: bool = False,
    ) -> Receipt:
        """Change to another layout: built beside, then switched to in one commit.

        "auto": to the one that fits what is there (`fitting` takes the same; `why` has the reason);
        if the archive has it, nothing is done. Readers are not disturbed. If others update meanwhile,
        it is built again.
        """
        if layout == "auto":
            chosen = self.fitting(
                window_bytes=window_bytes,
                queries=1 if queries is None else queries,
                space=space,
                probes_first=probes_first,
            )
            wanted, self.why = chosen
            now = self.snapshot()
            if wanted == now.layout:
                return _receipt(now.version, now.time, Work())
        elif window_bytes is not None or queries is not None or space or probes_first:
            raise ArchiveError(
                f"window_bytes, queries, space and probes_first are for auto, not for {layout!r}"
            )
        else:
            wanted = Layout.of(layout)
        with self._lock:
            for _ in range(ATTEMPTS):
                self._table.refresh()
                with _written(self._table) as writer:
                    after = self._with_invalid(writer.migrate(wanted), writer.work)
                with suppress(ConflictError):
                    version = self._commit("migrate", after, writer)
                    return _receipt(version, _snapshot(self._table).time, writer.work)
        raise ConflictError(
            f"{self.path}: others kept updating it while {wanted} was built; try again"
        )

    def vacuum(self, older_than: timedelta | None = None) -> int:
        """Delete what only older snapshots use, and what crashes have left; returns how many files.

        Every update does so for the snapshots before it, after the archive's time of grace. What no
        commit has named yet, since a writer may be at work, and the log are kept for a day.
        """
        if not isinstance(older_than, timedelta | None):
            raise ArchiveError(f"older_than={older_than!r}: a timedelta is needed")
        seconds = self._table.grace if older_than is None else older_than.total_seconds()
        if seconds < 0:
            raise ArchiveError("older_than must not be negative")
        with self._lock:
            return self._table.vacuum(seconds)

    # -- reading ---------------------------------------------------------------------------------

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The newest state, or that of a version whose files are still kept."""
        if version is not None:
            whole = isinstance(version, (int, np.integer)) and not isinstance(version, bool)
            if not whole or version < 0:
                raise ArchiveError(f"there is no version {version}: versions count from 0")
            return _snapshot(Table.open(self.path, int(version)))
        with self._lock:
            self._table.refresh()
            return _snapshot(self._table)

    def probe(
        self,
        key: Any = None,
        *,
        between: tuple[Any, Any] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        return self.snapshot().probe(key, between=between, columns=columns)

    def scan(self, order: str | None = None, *, columns: Sequence[str] | None = None) -> pa.Table:
        return self.snapshot().scan(order, columns=columns)

    def scan_batches(self, *, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        return self.snapshot().scan_batches(columns=columns)

    def window(self, size: Duration | Mapping[str, Duration]) -> Snapshot:
        return self.snapshot().window(size)

    def where(self) -> str:
        return self.snapshot().where()

    def sub_indices(self) -> list[SubIndex]:
        return self.snapshot().sub_indices()

    # -- results of a stream ---------------------------------------------------------------------

    def take_in(
        self, stream: str, batch: int, results: object, delay: Duration | None = None
    ) -> bool:
        """A batch of a stream, once: False if it is in already.

        Results wait, beside the table, until their interval is over: until one was generated that is
        later by `delay` or more, or `update` brings the archive to that time. Then the archive is
        brought up to that time. All in one commit. Results that no window can have are set aside
        (`quarantine`).
        """
        _check_stream(stream)
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 0:
            raise ArchiveError(f"batch={batch!r}: batches are counted from 0")
        with self._lock:
            for _ in range(ATTEMPTS):
                self._table.refresh()
                done = self._table.state.done.get(stream)
                if done is not None and done >= batch:
                    return False
                with suppress(ConflictError):
                    self._take_in(Mark(stream, batch), results, delay)
                    return True
        raise ConflictError(
            f"{self.path}: others kept changing it while a batch was to be taken in"
        )

    def _take_in(self, mark: Mark, results: object, delay: Duration | None) -> None:
        shape, state = self.shape, self._table.state
        if shape.count_based:
            raise ArchiveError("a stream does not tell how many rows its windows have seen")
        wait = 0 if delay is None else shape.duration(delay, "delay")
        fresh, bad = shape.sorted_out(results)
        if len(bad):
            self._table.set_aside(bad, mark)
        now = self._due(fresh, wait)
        if now is not None:
            self._update(now, fresh, {}, [mark])
        else:
            names = self._table.stacked(list(state.pending), fresh)
            self._table.commit("wait", replace(state, pending=names), marks=[mark])

    def quarantine(self) -> pa.Table:
        """The results of streams that no window can have, each with the reason, the stream and batch."""
        return self._table.read_aside()

    def _with_waiting(self, table: pa.Table, now: int) -> tuple[pa.Table, list[str]]:
        """All results up to this time, and the names of files with those that wait on."""
        pending = list(self._table.state.pending)
        waiting = [self._table.read_beside(name) for name in pending]
        whole = pa.concat_tables([table, *waiting])
        later = self.shape.numbers(whole, self.shape.generated) > now
        if not later.any():
            return whole, []
        return whole.filter(pa.array(~later)), self._table.stacked(
            [], whole.filter(pa.array(later))
        )

    def _due(self, results: pa.Table, wait: int) -> int | None:
        """The last time of an update that the newest of these results is past; None if none is new.

        Those that wait already are not past any: it would have been made. Nor is any past a time
        that cannot be, which a long delay may reach back to.
        """
        shape, state = self.shape, self._table.state
        if not len(results):
            return None
        newest = int(shape.numbers(results, shape.generated).max()) - wait
        if state.origin is None:
            due = newest // shape.every * shape.every
            return due if due >= shape.reach[0] else None
        last = state.time(shape)
        due = last + (newest - last) // shape.every * shape.every
        return due if due > last else None


def _check_stream(stream: object) -> None:
    if not isinstance(stream, str) or not stream:
        raise ArchiveError(f"stream={stream!r}: the name of a stream is needed")


def _holds_something(folder: Path) -> bool:
    """But for the log of an archive whose maker has died before its first commit."""
    return any(path.name != log.FOLDER for path in folder.iterdir())


def _nothing(shape: Shape) -> pa.Table:
    fields = [f for f in shape.schema if not (shape.count_based and f.name == shape.expires)]
    return pa.schema(fields).empty_table()


def _snapshot(table: Table) -> Snapshot:
    return Snapshot(
        table.path, table.version, table.shape, table.state, table.invalid, list(table.files)
    )


@contextmanager
def _written(table: Table) -> Iterator[Writer]:
    """A writer, whose files are deleted if it does not come to its end."""
    writer = Writer(table)
    try:
        yield writer
    except BaseException:
        writer.discard()
        raise


def _receipt(version: int, time: Moment | None, work: Work) -> Receipt:
    return Receipt(
        version,
        time,
        work.inserted,
        work.expired,
        work.deleted,
        len(work.touched),
        len(work.adds),
        work.bytes_written,
        work.bytes_read,
    )


__all__ = ["Archive", "Receipt"]
