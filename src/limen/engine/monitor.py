"""The queries of one version of a query set, by their borders: what `Crosser` asks.

The counterpart of `Matcher` for border monitoring. The ranges of a query on the watched attributes are
its dimensions; whatever else it says must be an equality (a tenant, a symbol), and such keys choose the
group of queries that a reading can cross at all. Queries with the same key names share a `BMQIndex`, and,
where there is a margin, a second one of their ranges with the margin around them.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.borders.bmq import BMQIndex
from limen.engine.codes import GroupCodes, NumberCodes
from limen.engine.slots import Slots
from limen.indexes import saved
from limen.model import (
    INT64_MAX,
    INT64_MIN,
    QueryError,
    QuerySet,
    is_ordinal,
    type_name,
    widened,
)

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

KIND = "monitor"

_stamps = itertools.count(1)


@dataclasses.dataclass
class Region:
    """Queries with the same key names."""

    keys: tuple[str, ...]
    groups: GroupCodes | None
    borders: BMQIndex
    margins: BMQIndex | None  # of the ranges with their margins


class Monitor:
    """Queries by their borders on the columns `on`, and with `margins` around them.

    `lenient` lists the attributes that readings carry beside: a query that cannot be watched there, since
    it asks for a range of one of them or names another, is left out with a warning, and not refused.
    """

    def __init__(
        self,
        queries: QuerySet,
        on: Sequence[str],
        margins: Mapping[str, object] | None = None,
        lenient: Collection[str] | None = None,
    ) -> None:
        self.on = tuple(on)
        self._margins = dict(margins or {})
        self._lenient = lenient
        self._lay_out(self._watched(queries))

    def _lay_out(self, queries: QuerySet) -> None:
        self.stamp = next(_stamps)  # another after every change
        self._slots = Slots(queries, self.on)
        self.regions: dict[tuple[str, ...], Region] = {}
        self._lead_to(np.arange(len(queries), dtype=np.int32))

    def __len__(self) -> int:
        return self._slots.size

    @property
    def attributes(self) -> dict[str, pa.DataType]:
        """What some query says something of."""
        return self._slots.attributes

    @property
    def nbytes(self) -> int:
        indexes = [i for r in self.regions.values() for i in (r.borders, r.margins) if i]
        return self._slots.nbytes + sum(index.nbytes for index in indexes)

    # -- the query set ---------------------------------------------------------------------------

    def add(self, queries: QuerySet) -> int:
        """Take in more queries; returns how many were new. The same query again is no change."""
        if not len(queries):
            return 0
        self._slots.check(queries)
        queries = self._watched(queries)
        if queries.ids.type != self._slots.id_type:
            self._lay_out(dataclasses.replace(self.queries(), ids=queries.ids.slice(0, 0)))
        queries = self._slots.new_ones(queries)
        if len(queries):
            self.stamp = next(_stamps)
            self._lead_to(self._slots.append(queries))
        return len(queries)

    def remove(self, ids: Iterable[str | int] | pa.Array | pa.ChunkedArray) -> int:
        """Take queries out; an id that is not in is refused and nothing is changed."""
        if self._lenient is not None and isinstance(ids, pa.Array):
            ids = ids.filter(pa.array(self.find(ids) >= 0))
        slots = self._slots.find_all(ids)
        self.stamp = next(_stamps)
        number_of = self._slots.path_of[slots]
        for number, region in enumerate(self.regions.values()):
            mine = slots[number_of == number]
            for index in (region.borders, region.margins):
                if index is not None:
                    index.delete(mine)
        self._slots.remove(slots)
        if self._slots.used > 2 * len(self) + 1024:
            self._lay_out(self.queries())
        return len(slots)

    def queries(self) -> QuerySet:
        """The queries that are in."""
        return self._slots.queries()

    def some(self, ids: Iterable[str | int] | pa.Array) -> QuerySet:
        """The queries with these ids; one that is not in is refused."""
        return self._slots.queries(self._slots.find_all(ids))

    @property
    def id_type(self) -> pa.DataType:
        return self._slots.id_type

    def _watched(self, queries: QuerySet) -> QuerySet:
        """The queries that can be watched; the others are refused, or left out with a warning."""
        bad, name = unwatchable(queries, self.on, self._lenient)
        if not len(bad):
            return self._carried(queries)
        row = int(bad[0])
        reason = f"asks for a range, but crossings are watched on {', '.join(self.on)} only"
        if self._lenient is not None and name not in self._lenient:
            reason = "is not carried with the readings"
        error = QueryError(reason, row, queries.ids[row].as_py(), name)
        if self._lenient is None:
            raise error
        warnings.warn(f"{len(bad):,} queries are left out (the first: {error})", stacklevel=3)
        return self._carried(queries.take(np.setdiff1d(np.arange(len(queries)), bad)))

    def _carried(self, queries: QuerySet) -> QuerySet:
        """Without the attributes of which readings have nothing, and these queries say nothing."""
        if self._lenient is None:
            return queries
        known = {*self.on, *self._lenient}
        columns = (queries.attributes, queries.lo, queries.hi, queries.keys)
        kept = [{n: v for n, v in column.items() if n in known} for column in columns]
        return QuerySet(queries.ids, *kept)

    def _lead_to(self, slots: I32) -> None:
        """Put queries that have a slot into the indexes of their regions."""
        used = np.zeros(len(slots), np.int64)
        present = {name: codes[slots] >= 0 for name, codes in self._slots.key_codes.items()}
        for there in present.values():
            used = np.unique(2 * used + there, return_inverse=True)[1]
        for row in np.unique(used, return_index=True)[1]:
            keys = tuple(name for name, there in present.items() if there[row])
            self._put(keys, slots[used == used[row]])

    def _put(self, keys: tuple[str, ...], slots: I32) -> None:
        if keys not in self.regions:
            dims = len(self.on)
            self.regions[keys] = Region(
                keys,
                GroupCodes(len(keys)) if keys else None,
                BMQIndex(dims),
                BMQIndex(dims) if self._margins else None,
            )
        region = self.regions[keys]
        self._slots.path_of[slots] = list(self.regions).index(keys)
        groups = None
        if region.groups is not None:
            groups = region.groups.learn([self._slots.key_codes[name][slots] for name in keys])
        lo = np.full((len(slots), len(self.on)), INT64_MIN, np.int64)
        hi = np.full((len(slots), len(self.on)), INT64_MAX, np.int64)
        wide_lo, wide_hi = lo.copy(), hi.copy()
        for k, name in enumerate(self.on):
            if name in self._slots.ranges:
                low, high = self._slots.ranges[name][slots].T.copy()
                lo[:, k], hi[:, k] = low, high
                if name in self._margins:
                    kind = self._slots.attributes[name]
                    low, high = widened(low, high, self._margins[name], kind)
                wide_lo[:, k], wide_hi[:, k] = low, high
        region.borders.insert(slots, lo, hi, groups)
        if region.margins is not None:
            region.margins.insert(slots, wide_lo, wide_hi, groups)

    # -- what a crosser asks ---------------------------------------------------------------------

    def find(self, ids: pa.Array) -> I32:
        """The slots of the ids, -1 for those that are not in."""
        return self._slots.find(ids)

    def ids_of(self, slots: I32) -> pa.Array:
        return self._slots.id_column().take(pa.array(slots)).cast(self._slots.id_type)

    def key_codes(self, name: str, values: pa.Array | I64) -> I32:
        """The codes that the queries have for values of a key, -1 where none asks for it."""
        if name not in self._slots.codes:
            return np.full(len(values), -1, np.int32)
        codes = self._slots.codes[name]
        if isinstance(codes, NumberCodes):
            return codes.find(np.require(values, np.int64, ["C", "W"]))
        return codes.find(values)

    # -- disk ------------------------------------------------------------------------------------

    def save(self, folder: str | pathlib.Path, *, durable: bool = True) -> None:
        """Write the monitor to a new folder, whole or not at all."""
        whole = self
        if len(self) < self._slots.used:
            whole = Monitor(self.queries(), self.on, self._margins, self._lenient)
        arrays, slots = whole._slots.parts()
        arrays = saved.nested("slots", arrays)
        regions = []
        for number, region in enumerate(whole.regions.values()):
            pairs = region.groups.pairs if region.groups is not None else []
            for i, codes in enumerate(pairs):
                arrays |= saved.nested(f"region{number}.pairs.{i}", codes.arrays())
            facts: saved.Facts = {"keys": region.keys, "pairs": [len(codes) for codes in pairs]}
            for name, index in (("borders", region.borders), ("margins", region.margins)):
                if index is not None:
                    of_index, facts[name] = index.parts()
                    arrays |= saved.nested(f"region{number}.{name}", of_index)
            regions.append(facts)
        saved.write(
            pathlib.Path(folder),
            KIND,
            arrays,
            {"slots": slots, "on": self.on, "regions": regions},
            durable=durable,
        )

    @classmethod
    def load(
        cls,
        folder: str | pathlib.Path,
        margins: Mapping[str, object] | None = None,
        lenient: Collection[str] | None = None,
        *,
        verify: bool = True,
    ) -> Self:
        """Map a saved monitor; processes on one machine share one copy until it changes."""
        arrays, facts = saved.read(pathlib.Path(folder), KIND, verify=verify)
        monitor = cls.__new__(cls)
        monitor.stamp = next(_stamps)
        monitor.on, monitor._margins = tuple(facts["on"]), dict(margins or {})
        monitor._lenient = lenient
        monitor._slots = Slots.of_parts(saved.part(arrays, "slots"), facts["slots"], monitor.on)
        monitor.regions = {}
        for number, region in enumerate(facts["regions"]):
            mine = saved.part(arrays, f"region{number}")
            keys = tuple(region["keys"])
            groups = GroupCodes(len(keys)) if keys else None
            if groups is not None:
                groups.pairs = [
                    NumberCodes.of_arrays(saved.part(mine, f"pairs.{i}"), size)
                    for i, size in enumerate(region["pairs"])
                ]
            borders, wide = (
                BMQIndex.of_parts(saved.part(mine, name), region[name]) if name in region else None
                for name in ("borders", "margins")
            )
            assert borders is not None
            monitor.regions[keys] = Region(keys, groups, borders, wide)
        return monitor


def unwatchable(
    queries: QuerySet, on: Collection[str], carried: Collection[str] | None
) -> tuple[I64, str]:
    """The rows of the queries that cannot be watched, and the attribute that is in the first one's way.

    Only what is watched may be asked for by a range, and only what is carried (anything, where that is
    not said) may be asked for at all.
    """
    found, why = np.empty(0, np.int64), ""
    for name, kind in queries.attributes.items():
        if name in on:
            if not is_ordinal(kind):
                raise QueryError(f"is {type_name(kind)}, which has no borders", field=name)
            continue
        if name in queries.lo:
            lo, hi = queries.lo[name], queries.hi[name]
            asked = (lo != INT64_MIN) | (hi != INT64_MAX)
            bad = asked & (lo != hi)
        else:
            asked = queries.keys[name].is_valid().to_numpy(zero_copy_only=False)
            bad = np.zeros(len(queries), np.bool_)
        if carried is not None and name not in carried:
            bad = asked
        rows = np.flatnonzero(bad)
        if len(rows) and (not len(found) or rows[0] < found[0]):
            why = name
        found = np.union1d(found, rows)
    return found, why


def to_watch(
    queries: QuerySet,
    columns: Sequence[str],
    taken: Collection[str | None],
    declared: Mapping[str, pa.DataType] | None = None,
) -> list[str] | None:
    """What is watched if it is not said: what some query asks a range of, in the order of the columns.

    Of what is declared, also what no query asks of yet. None where only equalities are asked for.
    """
    found, asked_of = [], set()
    for name, lo in queries.lo.items():
        hi = queries.hi[name]
        asked = (lo != INT64_MIN) | (hi != INT64_MAX)
        if asked.any():
            asked_of.add(name)
        if (asked & (lo != hi)).any():
            found.append(name)
    if declared is not None:
        found += [n for n, kind in declared.items() if is_ordinal(kind) and n not in asked_of]
    places = {name: place for place, name in enumerate(columns)}
    kept = [name for name in found if name not in taken]
    return sorted(kept, key=lambda name: places.get(name, len(places))) or None


def changed(removed: QuerySet, added: QuerySet) -> tuple[QuerySet, QuerySet]:
    """What was removed and added, without queries that came again as they had been."""
    if not len(removed) or not len(added) or removed.ids.type != added.ids.type:
        return removed, added
    slots = Slots(removed)
    at = slots.find(added.ids)
    rows = np.flatnonzero(at >= 0)
    rows = rows[slots.same(at[rows], added.take(rows))]
    others = np.setdiff1d(np.arange(len(removed)), at[rows])
    return removed.take(others), added.take(np.setdiff1d(np.arange(len(added)), rows))
