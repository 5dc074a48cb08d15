"""The queries by slot: ids, ranges, key codes, and which slots are live.

A slot is a small number that the indexes report; slots are given in order and not used again. An
attribute is in `attributes` while some live query constrains it, or from the start if the first set
names it: what is in depends on the queries, not on how they came to be in. Each attribute has a column
as long as the slots, with rows to spare, so that a change costs what it changes; only an attribute
that is new to the whole needs a column of its own for all slots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.engine.codes import NumberCodes, TextCodes
from limen.engine.paths import Ranges, constrained, point_keys_of
from limen.indexes.protocol import with_room
from limen.indexes.saved import Arrays, Facts, nested, padded, part, spare_rows
from limen.model import (
    INT64_MAX,
    INT64_MIN,
    QueryError,
    QuerySet,
    is_key,
    lossless,
    type_name,
)

I32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
NONE = np.int32(-1)


class Slots:
    def __init__(self, queries: QuerySet, dimensions: Collection[str] | None = None) -> None:
        """Where the dimensions are given, every other attribute is a key."""
        self._dimensions = dimensions
        self.used = 0
        self.size = 0  # slots that are live
        self.live: Mask = np.zeros(0, np.bool_)
        self.path_of: I32 = np.zeros(0, np.int32)  # the number of the access path
        self.id_type = queries.ids.type
        self.ids = TextCodes() if pa.types.is_string(self.id_type) else NumberCodes()
        self.attributes: dict[str, pa.DataType] = {}
        self.ranges: Ranges = {}
        self.key_codes: dict[str, I32] = {}
        self.codes: dict[str, TextCodes | NumberCodes] = {}
        self._constraining: dict[str, int] = {}  # live queries, by attribute
        for name, kind in queries.attributes.items():
            self._open(name, kind)
        added = self._append(queries)
        for name in point_keys_of(self.ranges, added) if dimensions is None else ():
            self.codes[name] = NumberCodes()
            self.key_codes[name] = np.zeros(0, np.int32)
            self._append_points(name, 0)

    @property
    def nbytes(self) -> int:
        columns = (self.live, self.path_of, *self.ranges.values(), *self.key_codes.values())
        return self.ids.nbytes + sum(column.nbytes for column in columns)

    # -- by id -----------------------------------------------------------------------------------

    def id_column(self) -> pa.Array:
        """The ids of all slots, dead ones too, as int64 or large_string: a view."""
        if isinstance(self.ids, TextCodes):
            return self.ids.values
        return pa.Array.from_buffers(pa.int64(), self.used, [None, pa.py_buffer(self.ids.values)])

    def find(self, ids: pa.Array) -> I32:
        """The live slots of the ids, -1 for those that are not in."""
        if isinstance(self.ids, TextCodes):
            slots = self.ids.find(ids)
        else:
            numbers = ids.fill_null(0).to_numpy(zero_copy_only=False)
            slots = self.ids.find(np.require(numbers, np.int64, ["C", "W"]))
            if ids.null_count:
                slots[ids.is_null().to_numpy(zero_copy_only=False)] = NONE
        known = slots >= 0
        known[known] = self.live[slots[known]]
        return np.where(known, slots, NONE)

    def find_all(self, ids: Iterable[str | int] | pa.Array | pa.ChunkedArray) -> I32:
        """The distinct slots of ids as a caller may give them, or QueryError if one is not in."""
        if isinstance(ids, (str, bytes)):
            raise QueryError(f"ids are given as a list; for one, [{ids!r}]")
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        if not isinstance(ids, pa.Array):
            ids = list(ids)
        slots = self.find(self._as_ids(ids))
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            absent = [ids[row] for row in missing.tolist()]
            values = [who.as_py() if isinstance(who, pa.Scalar) else who for who in absent]
            others = len({repr(who) for who in values})
            raise QueryError(f"no query has the id {values[0]!r} ({others} such ids)")
        return np.unique(slots)

    def _as_ids(self, ids: list[str | int] | pa.Array) -> pa.Array:
        """A column of the ids, null where one is of another kind: True is not 1, nor is 1.0."""
        text = isinstance(self.ids, TextCodes)
        if isinstance(ids, pa.Array):
            if lossless(ids.type, self.id_type):
                return ids.cast(pa.large_string() if text else pa.int64())
            return pa.nulls(len(ids), self.id_type)
        if text:
            encoded = [_bytes(who) for who in ids]
            return pa.array(encoded, pa.large_binary())
        return pa.array([who if _is_int64(who) else None for who in ids], pa.int64())

    # -- changes ---------------------------------------------------------------------------------

    def check(self, queries: QuerySet) -> None:
        """Refuse ids or attributes of another type than those that are in."""
        if queries.ids.type != self.id_type and self.size:
            raise QueryError(f"ids are {self.id_type} here, not {queries.ids.type}", field="id")
        for name, kind in queries.attributes.items():
            if self.attributes.get(name, kind) != kind:
                known = type_name(self.attributes[name])
                raise QueryError(f"is {known} here, not {type_name(kind)}", field=name)

    def new_ones(self, queries: QuerySet) -> QuerySet:
        """The queries that are not in yet; an id that is in with another body is refused."""
        slots = self.find(queries.ids)
        if not (slots >= 0).any():
            return queries
        rows = np.flatnonzero(slots >= 0)
        same = self.same(slots[rows], queries.take(rows))
        if not same.all():
            row = int(rows[same.argmin()])
            who = queries.ids[row].as_py()
            raise QueryError("the id is in already with another body", row, who)
        return queries.take(np.flatnonzero(slots < 0))

    def append(self, queries: QuerySet) -> I32:
        """Give slots to queries whose ids are not in; returns them."""
        for name, mask in _constrained_by(queries).items():
            if name not in self.attributes and mask.any():
                self._open(name, queries.attributes[name])
        return self._append(queries)

    def _open(self, name: str, kind: pa.DataType) -> None:
        """Begin a column, unconstrained in all slots so far."""
        self.attributes[name] = kind
        self._constraining[name] = 0
        if is_key(kind):
            self.codes[name] = TextCodes()
            self.key_codes[name] = np.full(self.used, NONE, np.int32)
        else:
            self.ranges[name] = np.empty((self.used, 2), np.int64)
            self.ranges[name][:] = INT64_MIN, INT64_MAX
            if self._dimensions is not None and name not in self._dimensions:
                self.codes[name] = NumberCodes()
                self.key_codes[name] = np.full(self.used, NONE, np.int32)

    def _append(self, queries: QuerySet) -> I32:
        first, self.used = self.used, self.used + len(queries)
        self.ids.append(
            queries.ids
            if isinstance(self.ids, TextCodes)
            else queries.ids.to_numpy(zero_copy_only=False)
        )
        self.live = with_room(self.live, self.used)
        self.live[first : self.used] = True
        self.path_of = with_room(self.path_of, self.used)
        self.size += len(queries)
        for name, mask in _constrained_by(queries).items():
            if name in self.attributes:
                self._constraining[name] += int(np.count_nonzero(mask))
        for name in self.attributes:
            codes = self.codes.get(name)
            if isinstance(codes, TextCodes):
                column = with_room(self.key_codes[name], self.used)
                named = name in queries.keys
                column[first : self.used] = codes.learn(queries.keys[name]) if named else NONE
                self.key_codes[name] = column
                continue
            rows = with_room(self.ranges[name], self.used)
            named = name in queries.lo
            rows[first : self.used, 0] = queries.lo[name] if named else INT64_MIN
            rows[first : self.used, 1] = queries.hi[name] if named else INT64_MAX
            self.ranges[name] = rows
            if codes is not None:
                self._append_points(name, first)
        return np.arange(first, self.used, dtype=np.int32)

    def _append_points(self, name: str, first: int) -> None:
        """The key codes of the slots from `first` on: a code where the range is a point, else -1."""
        codes = self.codes[name]
        assert isinstance(codes, NumberCodes)
        column = with_room(self.key_codes[name], self.used)
        column[first : self.used] = NONE
        rows = self.ranges[name][first : self.used]
        points = (rows[:, 0] == rows[:, 1]).nonzero()[0]
        column[first + points] = codes.learn(rows[points, 0])
        self.key_codes[name] = column

    def remove(self, slots: I32) -> list[str]:
        """Let go of distinct live slots; returns the attributes that no query constrains now."""
        self.live[slots] = False
        self.size -= len(slots)
        gone = []
        for name in list(self.attributes):
            lost = int(np.count_nonzero(self._constrain(name, slots)))
            self._constraining[name] -= lost
            if lost and not self._constraining[name]:
                gone.append(name)
                del self.attributes[name], self._constraining[name]
                for columns in (self.ranges, self.key_codes, self.codes):
                    columns.pop(name, None)
        return gone

    def _constrain(self, name: str, slots: I32) -> Mask:
        if name in self.ranges:
            return constrained(self.ranges[name][slots])
        return np.greater_equal(self.key_codes[name][slots], 0)

    def same(self, slots: I32, queries: QuerySet) -> Mask:
        """Does the query in each slot say the same, of every attribute of either, as that row?"""
        same = np.ones(len(slots), np.bool_)
        for name, asked in _constrained_by(queries).items():
            if name not in self.attributes:
                same &= ~asked
            elif name in self.ranges:
                rows = self.ranges[name][slots]
                same &= (rows[:, 0] == queries.lo[name]) & (rows[:, 1] == queries.hi[name])
            else:
                codes = self.codes[name]
                assert isinstance(codes, TextCodes)
                mine = self.key_codes[name][slots]
                same &= np.where(asked, mine >= 0, mine < 0)
                same &= codes.find(queries.keys[name]) == mine
        for name in self.attributes.keys() - queries.attributes.keys():
            same &= ~self._constrain(name, slots)
        return same

    def queries(self, slots: I32 | None = None) -> QuerySet:
        """The queries in these slots; all that are in if not said."""
        rows = np.flatnonzero(self.live[: self.used]) if slots is None else slots
        keys = {}
        for name, codes in self.codes.items():
            if isinstance(codes, TextCodes):
                at = self.key_codes[name][rows]
                found = codes.values.take(pa.array(at, mask=at < 0))
                keys[name] = found.cast(self.attributes[name])
        return QuerySet(
            self.id_column().take(pa.array(rows)).cast(self.id_type),
            dict(self.attributes),
            {name: ends[rows, 0] for name, ends in self.ranges.items()},
            {name: ends[rows, 1] for name, ends in self.ranges.items()},
            keys,
        )

    # -- disk ------------------------------------------------------------------------------------

    def parts(self) -> tuple[Arrays, Facts]:
        """What is saved: columns by number, since an attribute's name may be no file's."""
        rows = spare_rows(self.used)
        arrays: Arrays = {
            "attributes": np.frombuffer(pa.schema(self.attributes).serialize(), np.uint8),
            "live": padded(self.live, self.used, rows),
            "paths": padded(self.path_of, self.used, rows),
            **nested("ids", self.ids.arrays()),
        }
        for number, name in enumerate(self.attributes):
            if name in self.ranges:
                arrays[f"{number}.ranges"] = padded(self.ranges[name], self.used, rows)
            if name in self.codes:
                arrays[f"{number}.codes"] = padded(self.key_codes[name], self.used, rows)
                arrays |= nested(f"{number}.values", self.codes[name].arrays())
        facts: Facts = {
            "used": self.used,
            "size": self.size,
            "ids": str(self.id_type),
            "values": {name: len(codes) for name, codes in self.codes.items()},
            "constraining": self._constraining,
        }
        return arrays, facts

    @classmethod
    def of_parts(
        cls, arrays: Arrays, facts: Facts, dimensions: Collection[str] | None = None
    ) -> Slots:
        slots = cls(QuerySet.empty(facts["ids"]), dimensions)
        slots.used, slots.size = facts["used"], facts["size"]
        slots.live, slots.path_of = arrays["live"], arrays["paths"]
        slots.ids = type(slots.ids).of_arrays(part(arrays, "ids"), slots.used)
        schema = pa.ipc.read_schema(pa.py_buffer(arrays["attributes"]))
        slots.attributes = {field.name: field.type for field in schema}
        slots._constraining = dict(facts["constraining"])
        for number, (name, kind) in enumerate(slots.attributes.items()):
            if not is_key(kind):
                slots.ranges[name] = arrays[f"{number}.ranges"]
            if name in facts["values"]:
                slots.key_codes[name] = arrays[f"{number}.codes"]
                of = TextCodes if is_key(kind) else NumberCodes
                values = part(arrays, f"{number}.values")
                slots.codes[name] = of.of_arrays(values, facts["values"][name])
        return slots


def _constrained_by(queries: QuerySet) -> dict[str, Mask]:
    """By attribute, which rows say something of it."""
    found: dict[str, Mask] = {}
    for name in queries.attributes:
        if name in queries.keys:
            found[name] = queries.keys[name].is_valid().to_numpy(zero_copy_only=False)
        else:
            lo, hi = queries.lo[name], queries.hi[name]
            found[name] = (lo != INT64_MIN) | (hi != INT64_MAX)
    return found


def _is_int64(who: object) -> bool:
    whole = isinstance(who, (int, np.integer)) and not isinstance(who, bool)
    return whole and INT64_MIN <= who <= INT64_MAX  # type: ignore[operator]


def _bytes(who: object) -> bytes | None:
    return who.encode("utf-8", "surrogatepass") if isinstance(who, str) else None
