"""Hotspots of standing queries: where their ranges on one attribute crowd, as queries come and go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.catalog import Catalog
from limen.engine.codes import NumberCodes, TextCodes
from limen.model import (
    INT64_MAX,
    INT64_MIN,
    LimenError,
    QueryError,
    QuerySet,
    attribute_type,
    column_of,
    extremes,
    is_ordinal,
    lossless,
    type_name,
    values_of,
)
from limen.model.frames import is_frame
from limen.model.ids import id_array
from limen.model.where import Known
from limen.partitions.hotspots import Hotspots, Moves
from limen.partitions.partition import Groups

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]

SPARE = 1024  # ids that have gone and are still known, beyond as many as are in


class HotspotTracker:
    """The queries that constrain `on`, in groups with a common value; hot are those with at least a
    share alpha of the queries (and less than half of that before they cease to be).

    >>> queries = {"a": "x >= 1 and x <= 5", "b": "x = 4", "c": "x > 90"}
    >>> tracker = HotspotTracker(queries, alpha=0.5, attributes={"x": "int32"})
    >>> for row in tracker.table().to_pylist():
    ...     print(*row.values())
    0 4 4 2 0.6666666666666666 True
    1 91 None 1 0.3333333333333333 False
    >>> tracker.remove(["b"])
    >>> tracker.add({"d": "x > 80"})
    >>> tracker.table().select(["lo", "hi", "queries"]).to_pylist()
    [{'lo': 91, 'hi': None, 'queries': 2}, {'lo': 1, 'hi': 5, 'queries': 1}]
    """

    def __init__(
        self,
        queries: object,
        on: str | None = None,
        *,
        alpha: float = 0.01,
        epsilon: float = 1.0,
        attributes: Mapping[str, str | pa.DataType] | pa.Schema | None = None,
        bounds: str = "[]",
    ) -> None:
        """`queries`: a catalog, or whatever `QuerySet.of` takes; `on`: an attribute on which they have
        ranges, which need not be said if there is one only. `attributes` are the types, where they are
        not those that a catalog declares, or a frame's own."""
        if attributes is not None and not isinstance(attributes, (Mapping, pa.Schema)):
            told = type(attributes).__name__
            raise QueryError(f"attributes= are names with types, or a schema, not a {told}")
        if isinstance(queries, Catalog):
            known = queries.attributes
            queries = queries.snapshot()
        else:
            queries = _arrow(queries) if is_frame(queries) else queries
            known = _types_of(queries)
        found = queries
        if not isinstance(found, QuerySet):
            found = QuerySet.of(queries, attributes, bounds=bounds)
        self._known = {**known, **found.attributes} if attributes is None else attributes
        self.on, self.kind = _attribute(found, on, self._known)
        if attributes is not None and self.on in (types := Known(attributes)):
            _refuse_other(self.on, self.kind, types.type_of(self.on))
        self._bounds = bounds
        try:
            self._tracked = Hotspots(alpha, epsilon)
        except ValueError as error:
            raise LimenError(str(error)) from None
        ids, lo, hi = self._constraining(found)
        self._numbers = _Numbers(found.ids.type)
        self._tracked.build(self._numbers.give(ids), lo, hi)

    def __len__(self) -> int:
        """How many queries constrain the attribute."""
        return len(self._tracked)

    def add(self, queries: object) -> None:
        """Take these queries in; those that do not constrain the attribute are left out.

        What a set or a frame says of other attributes is not looked at, so it does not matter whether
        these were known before. An id that is in is refused, whatever its query is now.
        """
        found = queries.snapshot() if isinstance(queries, Catalog) else queries
        if not isinstance(found, QuerySet):
            rows = _of_attribute(queries, self.on) if is_frame(queries) else queries
            found = QuerySet.of(rows, self._known, bounds=self._bounds)
        if len(self):
            everyone = self._numbers.column(found.ids) if len(found) else found.ids
            there = self._numbers.find(everyone) >= 0
            if there.any():
                who = everyone[int(there.argmax())].as_py()
                raise QueryError(f"a query with the id {who!r} is in already")
        ids, lo, hi = self._constraining(found)
        if not len(ids):
            return
        if not len(self):
            self._numbers = _Numbers(ids.type)
        self._tracked.insert(self._numbers.give(self._numbers.column(ids)), lo, hi)

    def remove(self, ids: Iterable[str | int] | pa.Array | pa.ChunkedArray) -> None:
        """Take queries out; ids of queries that are not in are passed over."""
        column = _as_array(ids)
        if not len(column) or not len(self):
            return
        numbers = np.unique(self._numbers.find(self._numbers.column(column)))
        numbers = numbers[numbers >= 0]
        self._tracked.delete(numbers)
        self._numbers.take_back(numbers)

    def table(self) -> pa.Table:
        """A row for each group: the range that its queries have in common (null where it has no end), how
        many they are, their share of all, and whether that is a hotspot; the largest first."""
        groups = self._tracked.groups()
        hot = np.isin(groups.group, self._tracked.hot().group)
        lo, hi = self._tracked.common(groups.group)
        order = np.lexsort((groups.point, -groups.size, ~hot))
        share = groups.size / max(1, len(self))
        columns = {
            "group": groups.group,
            "lo": self._values(lo, (lo == INT64_MIN) & (hi != lo)),
            "hi": self._values(hi, (hi == INT64_MAX) & (hi != lo)),
            "queries": groups.size,
            "share": share,
            "hot": hot,
        }
        return pa.table(columns).take(pa.array(order))

    def hot(self) -> Groups:
        """The hotspots, in order of their points; these are ordinals."""
        return self._tracked.hot()

    def groups(self) -> Groups:
        """All groups, likewise."""
        return self._tracked.groups()

    def ranges(self, group: int) -> tuple[I64, I64]:
        """The ends of the queries of a group, as ordinals, in order of the lower ones."""
        return self._tracked.ends(self._tracked.members(group))

    def all_ranges(self) -> tuple[I64, I64]:
        return self._tracked.ends(self._tracked.ids())

    def inside(self, groups: I32) -> I64:
        """A value, as an ordinal, that the queries of each group have in common."""
        lo, hi = self._tracked.common(groups)
        middle = lo + ((hi.astype(np.uint64) - lo.astype(np.uint64)) >> np.uint64(1)).astype(
            np.int64
        )
        no_lo = (lo == INT64_MIN) | np.isneginf(values_of(lo, self.kind))
        no_hi = (hi == INT64_MAX) | np.isposinf(values_of(hi, self.kind))
        found: I64 = np.where(no_hi, lo, np.where(no_lo, hi, middle))
        return found

    def queries(self, group: int) -> pa.Array:
        """The ids of a group's queries, in order of their lower ends."""
        return self._numbers.ids(self._tracked.members(group))

    @property
    def moves(self) -> Moves:
        return self._tracked.moves

    def _values(self, found: I64, none: npt.NDArray[np.bool_]) -> pa.Array:
        """The values of ordinals; null where a range has no end. (The least and the greatest value of
        a type of 64 bits are no ends either, but where a range is that value alone.)"""
        column = column_of(np.where(none, 0, found), self.kind)
        return pa.compute.if_else(pa.array(none), pa.scalar(None, self.kind), column)

    def _constraining(self, queries: QuerySet) -> tuple[pa.Array, I64, I64]:
        """Ids and ends of the queries that constrain the attribute: that leave a value of it out."""
        _refuse_other(self.on, queries.attributes.get(self.on, self.kind), self.kind)
        if self.on not in queries.lo:
            return queries.ids.slice(0, 0), np.empty(0, np.int64), np.empty(0, np.int64)
        lo, hi = queries.lo[self.on], queries.hi[self.on]
        least, most = extremes(self.kind)
        rows = np.flatnonzero((lo > least) | (hi < most))
        return queries.ids.take(pa.array(rows)), lo[rows], hi[rows]


class _Numbers:
    """Small numbers for ids, which are given again when an id has gone."""

    def __init__(self, id_type: pa.DataType) -> None:
        self._id_type = id_type
        self._codes = TextCodes() if pa.types.is_string(id_type) else NumberCodes()
        self._number_of = np.zeros(0, np.int32)  # by code, -1 if the id has gone
        self._code_of = np.zeros(0, np.int32)  # by number
        self._free = np.zeros(0, np.int32)

    def column(self, ids: pa.Array) -> pa.Array:
        """Ids of the type that there is, without nulls, or an error."""
        if not lossless(ids.type, self._id_type):
            raise QueryError(f"ids are {self._id_type} here, not {ids.type}", field="id")
        return ids.cast(self._id_type).drop_null()

    def find(self, ids: pa.Array) -> I32:
        """The number of each id, -1 for those that are not in."""
        codes = self._codes.find(self._keys(ids))
        found = np.full(len(ids), -1, np.int32)
        found[codes >= 0] = self._number_of[codes[codes >= 0]]
        return found

    def give(self, ids: pa.Array) -> I32:
        """Numbers to ids that are not in."""
        codes = self._codes.learn(self._keys(ids))
        again = self._free[: len(ids)]
        more = len(ids) - len(again)
        self._free = self._free[len(ids) :]
        used = len(self._code_of)
        numbers = np.concatenate([again, np.arange(used, used + more, dtype=np.int32)])
        self._code_of = np.append(self._code_of, np.zeros(more, np.int32))
        self._code_of[numbers] = codes
        new = np.full(len(self._codes) - len(self._number_of), -1, np.int32)
        self._number_of = np.append(self._number_of, new)
        self._number_of[codes] = numbers
        return numbers

    def take_back(self, numbers: I32) -> None:
        self._number_of[self._code_of[numbers]] = -1
        self._free = np.append(self._free, numbers)
        live = len(self._code_of) - len(self._free)
        if len(self._codes) > 2 * live + SPARE:
            self._forget()

    def _forget(self) -> None:
        """Keep the ids only that are in."""
        numbers = self._number_of[self._number_of >= 0]
        ids = self.ids(numbers)
        self._codes = TextCodes() if pa.types.is_string(self._id_type) else NumberCodes()
        self._number_of = np.empty(len(numbers), np.int32)
        codes = self._codes.learn(self._keys(ids))
        self._number_of[codes] = numbers
        self._code_of[numbers] = codes

    def ids(self, numbers: I32) -> pa.Array:
        codes = self._code_of[numbers]
        if isinstance(self._codes, TextCodes):
            return self._codes.values.take(pa.array(codes)).cast(self._id_type)
        return pa.array(self._codes.values[codes], self._id_type)

    def _keys(self, ids: pa.Array) -> Any:
        if isinstance(self._codes, TextCodes):
            return ids.cast(pa.large_string())
        return np.require(ids.to_numpy(zero_copy_only=False), np.int64, ["C", "W"])


def _as_array(ids: Iterable[str | int] | pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(ids, (str, bytes)) or not isinstance(ids, (Iterable, pa.Array, pa.ChunkedArray)):
        raise QueryError(f"ids are given as a list; for one, [{ids!r}]")
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    return ids if isinstance(ids, pa.Array) else id_array(list(ids))


def hotspots(
    queries: object,
    on: str | None = None,
    *,
    alpha: float = 0.01,
    attributes: Mapping[str, str | pa.DataType] | pa.Schema | None = None,
    bounds: str = "[]",
) -> pa.Table:
    """The groups of queries whose ranges on an attribute have a common value; see `HotspotTracker`.

    >>> ends = {"price_lo": [10, 12, 50, 14], "price_hi": [20, 30, 60, 16]}
    >>> found = hotspots(pa.table({"id": [1, 2, 3, 4]} | ends), alpha=0.5)
    >>> found.select(["lo", "hi", "queries", "hot"]).to_pylist()
    [{'lo': 14, 'hi': 16, 'queries': 3, 'hot': True}, {'lo': 50, 'hi': 60, 'queries': 1, 'hot': False}]
    """
    return HotspotTracker(queries, on, alpha=alpha, attributes=attributes, bounds=bounds).table()


def _attribute(
    queries: QuerySet, asked: str | None, given: Mapping[str, str | pa.DataType] | pa.Schema
) -> tuple[str, pa.DataType]:
    """The attribute that is meant, and its type: of those with ranges or, if there are none yet, that
    could have some."""
    if asked is not None and not isinstance(asked, str):
        raise QueryError(f"on= is the name of an attribute, not {asked!r}")
    there = list(queries.lo)
    if asked is None:
        there = there or [name for name, kind in _kinds(given).items() if is_ordinal(kind)]
        if len(there) != 1:
            listed = ", ".join(there) or "none"
            raise QueryError(f"on= says which attribute is meant; attributes with ranges: {listed}")
        asked = there[0]
    if asked in queries.lo:
        return asked, queries.attributes[asked]
    kind = queries.attributes.get(asked)
    if kind is None and asked in (known := Known(given)):
        kind = known.type_of(asked)
        if is_ordinal(kind):
            return asked, kind
    told = f"is {type_name(kind)} and takes equality only" if kind else "is in no query"
    listed = ", ".join(there) or "none"
    raise QueryError(f"on={asked!r} {told}; attributes with ranges: {listed}")


def _refuse_other(name: str, found: pa.DataType, kind: pa.DataType) -> None:
    if found != kind:
        raise QueryError(f"has type {type_name(found)}, not {type_name(kind)}", field=name)


def _kinds(given: Mapping[str, str | pa.DataType] | pa.Schema) -> dict[str, pa.DataType]:
    if isinstance(given, pa.Schema):
        return {field.name: field.type for field in given}
    return {name: attribute_type(kind) for name, kind in given.items()}


# -- frames ------------------------------------------------------------------------------------------

ENDS = ("_lo", "_hi")


def _arrow(frame: Any) -> pa.Table:
    """A frame as Arrow columns, without the index of a pandas one."""
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "reset_index"):
        frame = frame.reset_index(drop=True)
    try:
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise QueryError(f"the frame cannot be read as Arrow columns: {error}") from None


def _types_of(queries: object) -> dict[str, pa.DataType]:
    """Of the attributes on which a frame's columns are ranges, also if no row says anything of them."""
    found: dict[str, pa.DataType] = {}
    for field in queries.schema if isinstance(queries, pa.Table) else ():
        name = field.name[: -len(ENDS[0])]
        if name and field.name.endswith(ENDS) and is_ordinal(field.type):
            found.setdefault(name, attribute_type(field.type))
    return found


def _of_attribute(frame: object, on: str) -> pa.Table:
    """The columns that say something of the attribute; all of a frame of texts, any of which may."""
    table = _arrow(frame)
    if "where" in table.column_names and on != "where":
        return table
    mine = ("id", on, *(f"{on}{end}" for end in (*ENDS, "_bounds")))
    return table.select([name for name in table.column_names if name in mine])
