"""Readings of entities in, crossings of query borders out: what every worker of the system runs.

With Q the queries in force, and prev and cur two consecutive values of an entity, it has entered
Q(cur) - Q(prev) and left Q(prev) - Q(cur); of an entity not heard of before, Q(prev) is empty.
Consecutive is by event time, and by order of arrival where times are equal. A reading older than the
entity's last is late and set apart.

A `Crosser` carries what is known of the entities from one table of readings to the next: the stream table
(last values, keys and times), the pairs held for dwell and hysteresis, and the clock. The queries come
from a `Monitor`, which may be exchanged between tables. However the readings are cut into tables, the
crossings are the same, as long as no reading is late.

The clock (with `lateness`) is the newest time seen less the lateness. What it has passed is settled: a
reading older than it is late, an entity silent for longer than `ttl` before it is forgotten, and a
pending enter whose time is over by it is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from limen.borders.bmq import BMQIndex, Places
from limen.borders.streams import NO_FLOOR, Batch, Streams
from limen.engine.codes import NumberCodes, TextCodes
from limen.engine.events import Events, quarantine_of, read_events, without_views
from limen.engine.held import Held
from limen.engine.matcher import as_table
from limen.engine.monitor import Monitor, Region, changed, to_watch
from limen.engine.watch import CROSSING, OFF, PREVIOUS, QUERY, Watch
from limen.indexes.protocol import with_room
from limen.kernels.chain import FIRST, LATE, RETURNED
from limen.kernels.holds import CAME, GONE, HELD, LEFT, LINGERS, PENDING, report
from limen.model import INT64_MAX, LimenError, QueryError, QuerySet, column_of, is_key

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ENTER, EXIT = "enter", "exit"
NO_ROWS = np.empty(0, np.int64)


class Crossed(NamedTuple):
    """The crossings, and the readings that could not be taken, with the reason why."""

    crossings: pa.Table
    quarantine: pa.Table


class Rows(NamedTuple):
    """Crossings before they are a table. `known` and `seen`: is there a value, a previous one?"""

    entities: I32
    ids: pa.Array
    entered: Mask
    times: I64
    values: I64
    known: Mask
    previous: I64
    seen: Mask


class Key:
    """A key of the readings: its values, the last one of each entity, and what queries call them."""

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.codes = TextCodes() if is_key(kind) else NumberCodes()
        self.of_entity = np.zeros(0, np.int32)
        self._mapped = np.zeros(0, np.int32)
        self._stamp = 0

    def of_queries(self, monitor: Monitor, name: str, codes: I32) -> I32:
        """The queries' codes for codes of ours."""
        values = self.codes.values
        if monitor.stamp != self._stamp:
            self._mapped, self._stamp = np.zeros(0, np.int32), monitor.stamp
        if len(self._mapped) < len(values):
            more = monitor.key_codes(name, values[len(self._mapped) :])
            self._mapped = np.append(self._mapped, more)
        return np.append(self._mapped, np.int32(-1))[codes]


class Crosser:
    """
    >>> queries = {"hot": "temp >= 30", "mild": "temp BETWEEN 10 AND 25"}
    >>> readings = pa.table({"room": ["a", "a", "b"], "temp": [20.0, 31.5, 5.0]})
    >>> crosser = Crosser.of(readings.schema, queries, entity="room")
    >>> for row in crosser.cross(readings).crossings.select([0, 1, 2]).to_pylist():
    ...     print(*row.values())
    a mild enter
    a mild exit
    a hot enter
    >>> crosser.inside("hot").to_pylist()
    [{'room': 'a', 'temp': 31.5}]
    """

    @classmethod
    def of(
        cls,
        schema: pa.Schema,
        queries: object,
        *,
        entity: str,
        on: Sequence[str] | str | None = None,
        time: str | None = None,
        keys: Sequence[str] | str = (),
        bounds: str = "[]",
        **options: object,
    ) -> Crosser:
        """A crosser for tables of this schema that come one after the other.

        Options are those of `limen.crossings`, and for queries that change: `keys`, columns of the
        readings that queries to come may ask to be equal to something (those that the first queries ask
        for need not be said); `exit_on_removal` and `enter_on_add`.

        >>> readings = pa.table({"room": ["a"], "temp": [31.5]})
        >>> rooms = Crosser.of(
        ...     readings.schema, {"hot": "temp >= 30"}, entity="room", exit_on_removal=True
        ... )
        >>> rooms.cross(readings).crossings.num_rows
        1
        >>> rooms.change(remove=["hot"]).select(["room", "query_id", "crossing"]).to_pylist()
        [{'room': 'a', 'query_id': 'hot', 'crossing': 'exit'}]
        """
        if not isinstance(schema, pa.Schema):
            raise LimenError(
                f"Crosser.of takes the schema of the readings, such as table.schema, not a "
                f"{type(schema).__name__}"
            )
        typed = None if isinstance(queries, QuerySet) else schema
        found = QuerySet.of(queries, typed, bounds=bounds)
        if on is None:
            taken = [entity, time, *([keys] if isinstance(keys, str) else keys)]
            on = to_watch(found, schema.names, taken)
        watch = Watch.of(
            schema,
            found.attributes,
            entity=entity,
            on=on,
            time=time,
            keys=keys,
            **options,  # type: ignore[arg-type]
        )
        return cls(Monitor(found, list(watch.on), watch.margins), watch)

    def __init__(self, monitor: Monitor, watch: Watch) -> None:
        self.monitor, self.watch = monitor, watch
        self.clock = NO_FLOOR
        self.compacts = (
            True  # when most numbers are of forgotten entities; False if others know them
        )
        self._begin()

    def _begin(self) -> None:
        dims = len(self.watch.on)
        text = pa.types.is_string(self.watch.entity_type)
        self.entities: TextCodes | NumberCodes = TextCodes() if text else NumberCodes()
        self.streams = Streams(dims)
        self.keys = {name: Key(kind) for name, kind in self.watch.keys.items()}
        self.held = Held.none(self.monitor.id_type, dims)
        self._places: dict[tuple[tuple[str, ...], bool], tuple[BMQIndex, Places]] = {}
        self.touched: I32 = np.empty(0, np.int32)  # entities that the last table has changed

    def __repr__(self) -> str:
        watched = ", ".join(self.watch.on)
        return f"Crosser({len(self.monitor)} queries on {watched}; {len(self)} entities)"

    def __len__(self) -> int:
        """How many entities are known."""
        return int(np.count_nonzero(self.streams.known))

    # -- readings --------------------------------------------------------------------------------

    def cross(self, readings: object, newest: int = NO_FLOOR) -> Crossed:
        """Take the readings, in the order of their times; returns what they crossed.

        `newest`: the greatest time of readings that others have taken meanwhile.
        """
        watch = self.watch
        if self.crowded and self.compacts:
            self.compact()
        for name in self.monitor.attributes:
            if name not in watch.on and name not in watch.keys:
                raise LimenError(
                    f"the queries name {name!r} now, which is not carried with the readings; "
                    f"begin anew with keys=[{name!r}]"
                )
        good = read_events(without_views(as_table(readings)), {**watch.keys, **watch.needed})
        names = good.keys if isinstance(self.entities, TextCodes) else good.ordinals
        entities = self.number(names[watch.entity])
        values = np.stack([good.ordinals[name] for name in watch.on], axis=1)
        times = good.ordinals[watch.time] if watch.time is not None else None
        heard = self.streams.heard[entities] if watch.ttl != OFF else NO_ROWS
        floor = self.clock if watch.has_clock else NO_FLOOR
        batch = self.streams.arrange(entities, values, times, floor=floor, patience=watch.ttl)
        previous = self.streams.previous(batch)
        codes = self._codes(good)
        touched = np.zeros(self.streams.size, np.bool_)
        touched[entities[batch.flags != LATE]] = True
        self.touched = np.flatnonzero(touched).astype(np.int32)
        rows = [self._crossings(batch, previous, codes, heard)]
        self._settle(batch, codes)
        if times is not None:
            newest = max(newest, int(times.max(initial=NO_FLOOR)))
        return Crossed(self._table(rows + self._let_pass(newest)), self._quarantine(good, batch))

    def let_pass(self, newest: int) -> pa.Table:
        """What comes of time alone: others have taken readings, the newest of this time."""
        self.touched = np.empty(0, np.int32)
        return self._table(self._let_pass(newest))

    def _let_pass(self, newest: int) -> list[Rows]:
        """Enters whose time is over, and entities that are forgotten."""
        watch, rows = self.watch, []
        if watch.has_clock:
            self.clock = max(self.clock, newest - watch.lateness)
        if watch.dwell > 0:
            rows.append(self._stayed())
        if watch.ttl != OFF:
            rows.append(self._forget())
        return rows

    def number(self, names: pa.Array | pa.ChunkedArray | I64) -> I32:
        """The numbers of the entities; new ones get the next."""
        if isinstance(names, pa.ChunkedArray):
            names = names.combine_chunks()
        if isinstance(self.entities, NumberCodes) and isinstance(names, pa.Array):
            names = np.require(names.to_numpy(), np.int64, ["C", "W"])
        found: I32 = self.entities.learn(names)
        self.streams.grow(len(self.entities))
        for key in self.keys.values():
            before = len(key.of_entity)
            key.of_entity = with_room(key.of_entity, self.streams.size)
            key.of_entity[before:] = -1
        return found

    def _codes(self, good: Events) -> dict[str, I32]:
        """Our codes of the keys of each reading."""
        found = {}
        for name, key in self.keys.items():
            if isinstance(key.codes, TextCodes):
                found[name] = key.codes.learn(good.keys[name])
            else:
                found[name] = key.codes.learn(good.ordinals[name])
        return found

    def _crossings(self, batch: Batch, previous: I64, codes: dict[str, I32], heard: I64) -> Rows:
        """What the readings of the batch cross, after dwell and hysteresis."""
        raw = self._timed(batch, heard, self._raw(batch, codes, margins=False))
        if self.watch.holds:
            return self._after_holds(batch, previous, codes, heard, raw)
        readings, slots, entered, times = raw
        flags = batch.flags[readings]
        forgotten = (flags == RETURNED) & ~entered
        return Rows(
            batch.entities[readings],
            self.monitor.ids_of(slots),
            entered,
            times,
            batch.values[readings],
            ~forgotten,
            previous[readings],
            (flags != FIRST) & ((flags != RETURNED) | forgotten),
        )

    def _timed(self, batch: Batch, heard: I64, raw: tuple[I64, I32, Mask]) -> Raw:
        """A crossing is when its reading was; a forgotten entity has left ttl after its last."""
        readings, slots, entered = raw
        times = batch.times[readings]
        forgotten = (batch.flags[readings] == RETURNED) & ~entered
        if forgotten.any():
            before = batch.before[readings]
            last = np.where(before >= 0, batch.times[before], heard[readings])
            times = np.where(forgotten, last + self.watch.ttl, times)
        return Raw(readings, slots, entered, times)

    def _raw(self, batch: Batch, codes: dict[str, I32], *, margins: bool) -> tuple[I64, I32, Mask]:
        """By crossing of a range (or of one with its margin): reading, slot, whether it is entered."""
        parts = []
        for region in self.monitor.regions.values():
            index = region.margins if margins else region.borders
            assert index is not None
            places = self._places_in(region, index, margins)
            groups, of_last = None, None
            if region.groups is not None:
                groups = self._groups(region, codes)
                of_last = self._groups_of_last(region)
            found = index.cross(batch, self.streams, places, groups, of_last)
            parts.append(found.rows())
        return _joined(parts)

    def _places_in(self, region: Region, index: BMQIndex, margins: bool) -> Places:
        """Where the entities are in the index; it may have taken another's place."""
        of, places = self._places.get((region.keys, margins), (None, None))
        if places is None or of is not index:
            places = Places(index.dimensions, self.streams.size)
            self._places[region.keys, margins] = index, places
        return places

    def _groups(self, region: Region, codes: dict[str, I32]) -> I32:
        assert region.groups is not None
        columns = [
            self.keys[name].of_queries(self.monitor, name, codes[name]) for name in region.keys
        ]
        return region.groups.find(columns)

    def _groups_of_last(self, region: Region) -> Callable[[I64], I32]:
        def groups(entities: I64) -> I32:
            last = {name: self.keys[name].of_entity[entities] for name in region.keys}
            return self._groups(region, last)

        return groups

    def _settle(self, batch: Batch, codes: dict[str, I32]) -> None:
        self.streams.settle(batch)
        taken = batch.order[batch.flags[batch.order] != LATE]
        for name, key in self.keys.items():
            key.of_entity[batch.entities[taken]] = codes[name][taken]

    # -- dwell and hysteresis --------------------------------------------------------------------

    def _after_holds(
        self, batch: Batch, previous: I64, codes: dict[str, I32], heard: I64, raw: Raw
    ) -> Rows:
        """What comes of raw crossings and of the pairs that are held."""
        margin = bool(self.watch.margins)
        kinds = np.where(raw.entered, CAME, LEFT if margin else GONE).astype(np.uint8)
        readings, slots, times = raw.readings, raw.slots, raw.times
        if margin:
            wide = self._timed(batch, heard, self._raw(batch, codes, margins=True))
            out = ~wide.entered
            readings = np.concatenate([readings, wide.readings[out]])
            slots = np.concatenate([slots, wide.slots[out]])
            times = np.concatenate([times, wide.times[out]])
            kinds = np.concatenate([kinds, np.full(int(out.sum()), GONE, np.uint8)])
        pairs = _pairs(batch.entities[readings], slots)
        held_pairs = _pairs(self.held.entities, self.monitor.find(self.held.ids))
        met = np.isin(held_pairs, pairs)
        held = self.held.some(met)
        n = len(held.entities)
        rank = np.empty(len(batch.order), np.int64)
        rank[batch.order] = np.arange(len(batch.order))
        pairs = np.concatenate([held_pairs[met], pairs])
        kinds = np.concatenate([np.full(n, HELD, np.uint8), kinds])
        moments = np.concatenate([np.full(n, -1), rank[readings] * 4 + kinds[n:]])
        order = np.lexsort((moments, pairs))
        size = len(order)
        states = np.concatenate([held.state, np.zeros(size - n, np.uint8)])
        entered, of_row, at = np.empty(2 * size, np.bool_), *_two(2 * size)
        pair, since, state, came = *_two(size), np.empty(size, np.uint8), *_two(size)[:1]
        reports, holds = report(
            pairs[order],
            kinds[order],
            np.concatenate([held.since, times])[order],
            states[order],
            self.watch.dwell if self.watch.dwell > 0 else 0,
            margin,
            entered,
            of_row,
            at,
            pair,
            since,
            state,
            came,
        )
        first = (batch.flags[readings] == FIRST) | (
            (batch.flags[readings] == RETURNED) & (kinds[n:] == CAME)
        )
        values = np.concatenate([held.values, batch.values[readings]])
        before = np.concatenate([held.previous, previous[readings]])
        seen = np.concatenate([held.seen, ~first])
        rows = order[of_row[:reports]]
        pair, came = pair[:holds], order[np.maximum(came[:holds], 0)]
        self.held = self.held.some(~met).and_(
            Held(
                (pair >> 32).astype(np.int32),
                self.monitor.ids_of((pair & 0xFFFFFFFF).astype(np.int32)),
                since[:holds],
                state[:holds],
                values[came],
                before[came],
                seen[came],
            )
        )
        forgotten = np.concatenate([np.zeros(n, np.bool_), batch.flags[readings] == RETURNED])
        return Rows(
            (pairs[rows] >> 32).astype(np.int32),
            self.monitor.ids_of((pairs[rows] & 0xFFFFFFFF).astype(np.int32)),
            entered[:reports].copy(),
            at[:reports].copy(),
            values[rows],
            ~(forgotten[rows] & ~entered[:reports]),
            before[rows],
            seen[rows],
        )

    def _stayed(self) -> Rows:
        """The pending enters whose time is over, by the entity's own last reading or by the clock."""
        held = self.held
        heard = self.streams.heard[held.entities]
        until = np.maximum(heard, self.clock)
        if self.watch.ttl != OFF:
            until = np.minimum(
                until, np.minimum(heard, INT64_MAX - self.watch.ttl) + self.watch.ttl
            )
        inside_for = (until - held.since).view(np.uint64)  # it may be more than an int64 holds
        over = held.pending & (inside_for >= np.uint64(self.watch.dwell))
        done = held.some(over)
        state = np.where(over, held.state & LINGERS, held.state)
        self.held = held._replace(state=state).some(state != 0)
        self._touch(done.entities)
        return Rows(
            done.entities,
            done.ids,
            np.ones(len(done.entities), np.bool_),
            done.since + self.watch.dwell,
            done.values,
            np.ones(len(done.entities), np.bool_),
            done.previous,
            done.seen,
        )

    # -- entities that are forgotten -------------------------------------------------------------

    def _forget(self) -> Rows:
        """Let go of entities that have been silent for too long by the clock: they leave everything."""
        streams = self.streams
        known = streams.known[: streams.size]
        limit = max(int(self.clock) - self.watch.ttl, NO_FLOOR)
        gone = np.flatnonzero(known & (streams.heard[: streams.size] < limit)).astype(np.int32)
        if not len(gone):
            return self._none()
        rows, ids = self._inside_now(gone)
        entities = gone[rows]
        times = streams.heard[entities] + self.watch.ttl
        values = streams.values[entities]
        streams.known[gone] = False
        self.held = self.held.some(~np.isin(self.held.entities, gone))
        self._touch(gone)
        nothing, something = np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)
        return Rows(entities, ids, nothing, times, values, nothing, values, something)

    def _inside_now(self, entities: I32) -> tuple[I64, pa.Array]:
        """What the entities are inside of, as reported: rows of `entities`, and ids of queries."""
        rows, slots = self._containing(self.monitor, entities)
        pairs = _pairs(entities[rows], slots)
        held = self.held.some(np.isin(self.held.entities, entities))
        if held:
            slots = self.monitor.find(held.ids)
            held, slots = held.some(slots >= 0), slots[slots >= 0]
            held_pairs = _pairs(held.entities, slots)
            pairs = np.union1d(pairs, held_pairs[held.lingers])
            pairs = np.setdiff1d(pairs, held_pairs[held.pending])
        by_number = np.argsort(entities, kind="stable")
        at = by_number[np.searchsorted(entities[by_number], pairs >> 32)]
        return at, self.monitor.ids_of((pairs & 0xFFFFFFFF).astype(np.int32))

    def _containing(self, monitor: Monitor, entities: I32) -> tuple[I64, I32]:
        """The queries of any monitor that hold the last values: rows of `entities`, and slots."""
        n = len(entities)
        batch = Batch(
            entities,
            self.streams.values[entities],
            np.zeros(n, np.int64),
            np.arange(n),
            np.full(n, -1, np.int32),
            np.full(n, FIRST, np.uint8),
            0,
        )
        ours, self.monitor = self.monitor, monitor
        try:
            parts = []
            for region in monitor.regions.values():
                places = Places(region.borders.dimensions, self.streams.size)
                groups, of_last = None, None
                if region.groups is not None:
                    of_last = self._groups_of_last(region)
                    groups = of_last(entities.astype(np.int64))
                found = region.borders.cross(batch, self.streams, places, groups, of_last)
                parts.append(found.rows())
        finally:
            self.monitor = ours
        rows, slots, _ = _joined(parts)
        return rows, slots

    @property
    def crowded(self) -> bool:
        """Are most of the numbers those of entities that are forgotten?"""
        return self.streams.size > 2 * len(self) + 1024

    def compact(self) -> I32:
        """Give the known entities numbers anew; returns the new number of each old one, or -1."""
        old, keys = self.streams, self.keys
        kept = np.flatnonzero(old.known[: old.size]).astype(np.int32)
        names, held = self.names(kept), self.held
        self._begin()
        new = np.full(old.size, -1, np.int32)
        new[kept] = self.number(names)
        for ours, theirs in ((self.streams.known, old.known), (self.streams.heard, old.heard)):
            ours[new[kept]] = theirs[kept]
        self.streams.values[new[kept]] = old.values[kept]
        for key in keys.values():
            key.of_entity, of_entity = np.full(len(kept), -1, np.int32), key.of_entity
            key.of_entity[new[kept]] = of_entity[kept]
        self.keys = keys
        self.held = held._replace(entities=new[held.entities])
        return new

    def lose_places(self) -> None:
        """The stream table was changed from outside: where entities are is to be found anew."""
        self._places = {}

    def _touch(self, entities: I32) -> None:
        self.touched = np.union1d(self.touched, entities).astype(np.int32)

    # -- other queries ---------------------------------------------------------------------------

    def change(
        self, add: object = None, remove: Iterable[str | int] | pa.Array = (), *, bounds: str = "[]"
    ) -> pa.Table:
        """Remove and add queries, an id in both is replaced; returns what `move_to` does."""
        given = isinstance(remove, (str, bytes, pa.Array, pa.ChunkedArray))
        if not given and not isinstance(remove, Iterable):
            raise LimenError(f"remove={remove!r}: give the ids as a list")
        ids = remove if given else list(remove)
        removed = self.monitor.some(ids)
        known = {**self.watch.on, **self.watch.keys}
        added = QuerySet.empty(str(self.monitor.id_type))
        if add is not None:
            added = QuerySet.of(add, known, bounds=bounds)
        mixed = len(added) and added.ids.type != self.monitor.id_type
        if mixed and len(self.monitor):
            kinds = f"{self.monitor.id_type} here, not {added.ids.type}"
            raise QueryError(f"ids are {kinds}", field="id")
        self.monitor.remove(ids)
        try:
            new = added if mixed else added.take(np.flatnonzero(self.monitor.find(added.ids) < 0))
            self.monitor.add(added)
        except LimenError:
            self.monitor.add(removed)
            raise
        return self.move_to(self.monitor, removed, new)

    def move_to(self, monitor: Monitor, removed: QuerySet, added: QuerySet) -> pa.Table:
        """Go on with another set of queries, which differs from ours by these; returns the crossings
        that come of it.

        None by default: what is inside a new query leaves it later without having entered it. With
        `exit_on_removal` entities leave the queries that are removed, and with `enter_on_add` they
        enter those that are added; a query in both is replaced, and whoever is in both stays.
        """
        watch = self.watch
        streams = self.streams
        everybody = np.flatnonzero(streams.known[: streams.size]).astype(np.int32)
        self.touched = np.empty(0, np.int32)
        removed, added = changed(removed, added)
        if not self.held:
            self.held = Held.none(monitor.id_type, len(watch.on))  # ids may be of another type now
        if not watch.follows or not len(everybody) or not (len(removed) or len(added)):
            self.monitor = monitor
            gone = monitor.find(self.held.ids) < 0  # if which queries went could not be told
            self._touch(self.held.entities[gone])
            self.held = self.held.some(~gone)
            return self._table([])
        ids = pa.concat_arrays([some.ids for some in (removed, added) if len(some)]).unique()
        old, new = (self._inside_of(queries, everybody, ids) for queries in (removed, added))
        held, pending = self.held, self.held.pending
        mine = _pairs(held.entities, _codes_in(ids, held.ids))
        ending = _codes_in(removed.ids.cast(ids.type), held.ids) >= 0
        old = np.setdiff1d(np.union1d(old, mine[ending & held.lingers]), mine[ending & pending])
        stays = ~ending | (pending & np.isin(mine, new))
        self.held = held.some(stays)
        self._touch(held.entities[ending])
        self.monitor = monitor
        waiting = mine[stays & pending]
        left, came = np.setdiff1d(old, new), np.setdiff1d(np.setdiff1d(new, old), waiting)
        rows = []
        if watch.exit_on_removal:
            rows.append(self._standing(left, ids, entered=False))
        if watch.enter_on_add and watch.dwell > 0:
            self._wait(self._standing(came, ids, entered=True))
            rows.append(self._stayed())  # the clock may be past their time
        elif watch.enter_on_add:
            rows.append(self._standing(came, ids, entered=True))
        return self._table(rows)

    def _inside_of(self, queries: QuerySet, entities: I32, ids: pa.Array) -> I64:
        """Pairs of an entity and a query that holds its last values, as its place among the ids."""
        if not len(queries):
            return NO_ROWS
        monitor = Monitor(queries, list(self.watch.on))
        rows, slots = self._containing(monitor, entities)
        return _pairs(entities[rows], _codes_in(ids, monitor.ids_of(slots)))

    def _standing(self, pairs: I64, ids: pa.Array, *, entered: bool) -> Rows:
        """Crossings of entities that have not moved."""
        entities, codes = (pairs >> 32).astype(np.int32), pairs & 0xFFFFFFFF
        yes = np.ones(len(pairs), np.bool_)
        values = self.streams.values[entities]
        return Rows(
            entities,
            ids.take(pa.array(codes)),
            yes if entered else ~yes,
            self.streams.heard[entities],
            values,
            yes,
            values,
            yes,
        )

    def _wait(self, rows: Rows) -> None:
        """Let enters be pending from now on."""
        state = np.full(len(rows.entities), PENDING)
        more = Held(
            rows.entities, rows.ids, rows.times, state, rows.values, rows.previous, rows.seen
        )
        self.held = self.held.and_(more)
        self._touch(rows.entities)

    # -- results ---------------------------------------------------------------------------------

    def inside(self, query_id: str | int) -> pa.Table:
        """The entities that are inside a query now, as reported, with their last readings."""
        queries = self.monitor.some([query_id])
        streams = self.streams
        everybody = np.flatnonzero(streams.known[: streams.size]).astype(np.int32)
        rows, _ = self._containing(Monitor(queries, list(self.watch.on)), everybody)
        entities = everybody[rows]
        held = self.held.some(pc.equal(self.held.ids, query_id).to_numpy(zero_copy_only=False))
        entities = np.union1d(entities, held.entities[held.lingers])
        entities = np.setdiff1d(entities, held.entities[held.pending]).astype(np.int32)
        return self.readings(entities)

    def readings(self, entities: I32 | None = None) -> pa.Table:
        """The last readings, of all known entities if not said."""
        streams = self.streams
        if entities is None:
            entities = np.flatnonzero(streams.known[: streams.size]).astype(np.int32)
        columns = {self.watch.entity: self.names(entities)}
        if self.watch.time is not None:
            columns[self.watch.time] = column_of(streams.heard[entities], self.watch.time_type)
        for k, (name, kind) in enumerate(self.watch.on.items()):
            columns[name] = column_of(streams.values[entities, k], kind)
        return pa.table(columns)

    def names(self, entities: I32) -> pa.Array:
        if isinstance(self.entities, TextCodes):
            return self.entities.values.take(pa.array(entities)).cast(pa.string())
        return pa.array(self.entities.values[entities])

    def _none(self) -> Rows:
        return self._standing(NO_ROWS, pa.array([], self.monitor.id_type), entered=True)

    def _table(self, parts: Sequence[Rows]) -> pa.Table:
        parts = [part for part in parts if len(part.entities)] or [self._none()]
        ids = pa.concat_arrays([part.ids for part in parts])
        whole = parts[0]
        if len(parts) > 1:
            joined = zip(*(part._replace(ids=part.entities) for part in parts), strict=True)
            whole = Rows(*(np.concatenate(column) for column in joined))
        kinds = pa.DictionaryArray.from_arrays(
            pa.array(whole.entered.astype(np.int8)), pa.array([EXIT, ENTER])
        )
        schema = self.watch.schema(self.monitor.id_type)
        columns: dict[str, pa.Array] = {self.watch.entity: self.names(whole.entities), QUERY: ids}
        columns[CROSSING] = kinds.cast(pa.string())
        if self.watch.time is not None:
            columns[self.watch.time] = column_of(whole.times, self.watch.time_type)
        for prefix, values, there in (
            ("", whole.values, whole.known),
            (PREVIOUS, whole.previous, whole.seen),
        ):
            for k, (name, kind) in enumerate(self.watch.on.items()):
                column = column_of(values[:, k], kind)
                if not there.all():
                    column = pc.if_else(pa.array(there), column, pa.scalar(None, kind))
                columns[f"{prefix}{name}"] = column
        return pa.table(columns).select(schema.names).cast(schema)

    def _quarantine(self, good: Events, batch: Batch) -> pa.Table:
        late = np.flatnonzero(batch.flags == LATE)
        if not len(late):
            return good.quarantine
        rows = good.table.take(pa.array(late))
        reasons = quarantine_of(rows, [f"{self.watch.time}: late"] * len(late))
        return pa.concat_tables([good.quarantine, reasons])


class Raw(NamedTuple):
    """Crossings of ranges, and when they were."""

    readings: I64
    slots: I32
    entered: Mask
    times: I64


def _joined(parts: list[tuple[I64, I32, Mask]]) -> tuple[I64, I32, Mask]:
    if len(parts) == 1:
        return parts[0]
    parts = [(NO_ROWS, np.empty(0, np.int32), np.empty(0, np.bool_)), *parts]
    readings, slots, entered = zip(*parts, strict=True)
    return np.concatenate(readings), np.concatenate(slots), np.concatenate(entered)


def _pairs(entities: I32, slots: I32) -> I64:
    return (entities.astype(np.int64) << 32) | (slots.astype(np.int64) & 0xFFFFFFFF)


def _codes_in(values: pa.Array, ids: pa.Array) -> I32:
    """The place of each id among the values, -1 for one that is not there."""
    found = pc.index_in(ids, value_set=values).fill_null(-1)
    codes: I32 = found.to_numpy(zero_copy_only=False).astype(np.int32)
    return codes


def _two(n: int) -> tuple[I64, I64]:
    return np.empty(n, np.int64), np.empty(n, np.int64)
