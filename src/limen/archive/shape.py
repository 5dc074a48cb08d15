"""What an archive's columns mean, and which results it takes.

Times are integers in a unit of the user's, or timestamps with a zone; inside they are int64 (microseconds
for timestamps). A result is alive from its generation until its expiration, which counts no more: at time
t those with `expires` > t are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from limen.archive import keys, rows
from limen.archive.columns import as_table, differ, flags, in_type, is_zoned, one, stored
from limen.archive.errors import ArchiveError
from limen.archive.keys import Key, plus_zero
from limen.archive.times import (
    EPOCH,
    FARTHEST,
    FIRST,
    LAST,
    MOMENT,
    Duration,
    Moment,
    as_duration,
    as_moment,
    as_wait,
)

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
ROW, COLUMN = "generation_partition", "expiration_partition"
MOST_STEPS = 10**6  # of a window; an update takes 0.2 s and 100 MB then to say where each belongs


class Side(NamedTuple):
    """A window that results come from: the column with the time or place of its row, and its size."""

    column: str
    size: int


@dataclass(frozen=True)
class Shape:
    schema: pa.Schema  # as it is stored
    key: str
    generated: str
    expires: str
    window: int
    every: int
    stamps: dict[str, Side] = field(
        default_factory=dict
    )  # windows of time, each to be shortened alone
    counts: dict[str, Side] = field(default_factory=dict)  # windows of a number of rows

    @property
    def steps(self) -> int:
        """Updates until the window has rolled over."""
        return self.window // self.every

    @property
    def count_based(self) -> bool:
        return bool(self.counts)

    @property
    def in_timestamps(self) -> bool:
        return bool(pt.is_timestamp(self.schema.field(self.generated).type))

    @property
    def reach(self) -> tuple[int, int]:
        """The first and the last time that can be: one a window before or after can still be said."""
        if not self.in_timestamps:
            return 1 - FARTHEST, FARTHEST - 1
        longest = max([self.window, *(side.size for side in self.stamps.values())])
        return FIRST + longest, LAST - longest

    def moment(self, value: Moment, what: str = "time") -> int:
        return as_moment(value, self.in_timestamps, what)

    def time_of(self, moment: int) -> Moment:
        """For users: an integer, or a datetime."""
        return EPOCH + timedelta(microseconds=moment) if self.in_timestamps else moment

    def duration(self, value: Duration, what: str) -> int:
        """A length of time of the user's; zero is one."""
        return as_wait(value, self.in_timestamps, what)

    def length(self, duration: int) -> Duration:
        """For users: an integer, or a timedelta."""
        return timedelta(microseconds=duration) if self.in_timestamps else duration

    def said(self, name: str) -> Any:
        """A parameter as the user says it."""
        if name in ("window", "every"):
            return self.length(getattr(self, name))
        if name == "stamps":
            return {who: (side.column, self.length(side.size)) for who, side in self.stamps.items()}
        if name == "counts":
            return {who: tuple(side) for who, side in self.counts.items()}
        return getattr(self, name)

    def words(self, moment: int) -> str:
        if self.in_timestamps and not FIRST <= moment <= LAST:
            return str(np.datetime64(moment, "us"))
        return str(self.time_of(moment))

    def to_json(self) -> str:
        facts = {
            "key": self.key,
            "generated": self.generated,
            "expires": self.expires,
            "window": self.window,
            "every": self.every,
            "stamps": self.stamps,
            "counts": self.counts,
        }
        return json.dumps(facts)

    @classmethod
    def from_json(cls, text: str, schema: pa.Schema) -> Shape:
        facts = json.loads(text)
        for name in ("stamps", "counts"):
            facts[name] = {who: Side(*side) for who, side in facts[name].items()}
        return cls(schema, **facts)

    # -- results that come in --------------------------------------------------------------------

    def table_of(self, results: object) -> pa.Table:
        """The results in the archive's columns; those of a count-based window get estimates later."""
        found = self._arranged(results)
        for bad, name, why in self._gaps(found):
            if bad.any():
                raise ArchiveError(f"result row {int(bad.argmax())}: {name} {why}")
        return found

    def _arranged(self, results: object) -> pa.Table:
        wanted = [f for f in self.schema if not (self.count_based and f.name == self.expires)]
        names = [f.name for f in wanted]
        given = as_table(results, wanted)
        rows.check_names(given.column_names, names, "the results have")
        columns = [in_type(given.column(f.name), f) for f in wanted]
        at = names.index(self.key)
        columns[at] = plus_zero(columns[at])
        return pa.table(columns, schema=pa.schema(wanted))

    def _gaps(self, table: pa.Table) -> Iterator[tuple[Mask, str, str]]:
        """Rows without a value that they need, column by column."""
        for name in self._required():
            if name in table.column_names:
                yield flags(table.column(name).is_null()), f"column {name!r}", "is null"
        key, who = table.column(self.key), f"the key {self.key!r}"
        if pt.is_floating(key.type):
            yield flags(pc.fill_null(pc.is_nan(key), False)), who, "is NaN"
        if pt.is_temporal(key.type):
            yield keys.unsaid(one(key)), who, "is out of range: years are 1 to 9999"

    def sorted_out(self, results: object) -> tuple[pa.Table, pa.Table]:
        """Results that some window can have, and the others with the reason why not."""
        given = self._arranged(results)
        why = np.zeros(len(given), np.int64)
        reasons = [""]
        for bad, name, told in self._gaps(given):
            why[bad] = len(reasons)
            reasons.append(f"{name} {told}")
        at = np.flatnonzero(why == 0)
        whole = given.take(pa.array(at))
        generated, expires = (self.numbers(whole, name) for name in (self.generated, self.expires))
        longest = self.length(self.window)
        for wrong, told in (  # of several the last is said
            (self._out_of_reach(expires), f"{self.expires} is out of range"),
            (self._too_long(generated, expires), f"lives longer than the window, {longest}"),
            (generated > expires, f"{self.generated} is after {self.expires}"),
            (self._out_of_reach(generated), f"{self.generated} is out of range"),
        ):
            why[at[wrong]] = len(reasons)
            reasons.append(told)
        good, name = why == 0, "reason" if "reason" not in given.column_names else "limen_reason"
        said = pa.array(reasons, pa.string()).take(pa.array(why[~good]))
        aside = given.filter(pa.array(~good)).append_column(name, said)
        return given.filter(pa.array(good)), aside

    def _required(self) -> list[str]:
        sides = [*self.stamps.values(), *self.counts.values()]
        return [self.key, self.generated, self.expires, *(side.column for side in sides)]

    def numbers(self, table: pa.Table, column: str) -> I64:
        """A column of times or places as int64."""
        found: I64 = one(table.column(column)).cast(pa.int64()).to_numpy()
        return found

    def check(self, table: pa.Table, last: int | None, now: int, late: bool) -> None:
        """Refuse results that no window of this archive can have at update `now`, or `now` itself."""
        low, high = self.reach
        if not low <= now <= high:
            raise ArchiveError(
                f"the update at {self.words(now)} is out of range: times are from {self.words(low)} "
                f"to {self.words(high)} with such windows"
            )
        generated = self.numbers(table, self.generated)
        self._refuse(generated > now, table, f"is after the time of the update, {self.words(now)}")
        if last is not None and not late:
            told = f"is not after the last update, {self.words(last)}; late results need late=True"
            self._refuse(generated <= last, table, told)
        self._refuse(self._out_of_reach(generated), table, "is out of range")
        if self.count_based:
            return
        expires = self.numbers(table, self.expires)
        self._refuse(generated > expires, table, "is after its expiration", expires)
        longest = self.length(self.window)
        far = self._too_long(generated, expires)
        self._refuse(
            far, table, f"is more than the window, {longest}, before its expiration", expires
        )
        told = "is too late for its expiration, which is out of range"
        self._refuse(self._out_of_reach(expires), table, told, expires)

    def _out_of_reach(self, times: I64) -> Mask:
        first, last = self.reach
        found: Mask = (times < first) | (times > last)
        return found

    def _too_long(self, generated: I64, expires: I64) -> Mask:
        """Whether results live longer than the window; no sum leaves int64."""
        early = (expires > 0) & (generated < expires - self.window)
        return early | (expires <= 0) & (generated + self.window < expires)

    def _refuse(
        self, bad: npt.NDArray[np.bool_], table: pa.Table, why: str, expires: I64 | None = None
    ) -> None:
        if not bad.any():
            return
        row = int(bad.argmax())
        generated = int(self.numbers(table.slice(row, 1), self.generated)[0])
        told = "" if expires is None else f" ({self.words(int(expires[row]))})"
        others = int(bad.sum()) - 1
        more = f" (and {others} more)" if others else ""
        raise ArchiveError(
            f"result row {row}{more}: its generation, {self.words(generated)}, {why}{told}"
        )

    # -- keys ------------------------------------------------------------------------------------

    @property
    def key_type(self) -> pa.DataType:
        return self.schema.field(self.key).type

    def keys_of(self, column: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Keys as they are compared."""
        return keys.compared(one(column))

    def keys_at(self, value: Any) -> tuple[Key, Key]:
        """The least key not below a user's, and the greatest not above it, as they are compared."""
        return keys.keys_at(value, self.schema.field(self.key))

    def keys_in(self, asked: Any) -> list[Key]:
        """A key, or each of a list of keys, as they are compared, in order: those that there can be."""
        ends = [self.keys_at(key) for key in keys.listed(asked)]
        return sorted({low for low, high in ends if low == high})

    def keys_between(self, between: tuple[Any, Any]) -> tuple[Key, Key]:
        """The least and the greatest key of a range, as they are compared."""
        if not isinstance(between, (tuple, list)) or len(between) != 2:
            raise ArchiveError(
                f"between={between!r}: two keys are needed, the least and the greatest"
            )
        return self.keys_at(between[0])[0], self.keys_at(between[1])[1]

    def said_key(self, key: Key) -> Any:
        """A key, as it is compared, as users say it."""
        return keys.said(key, self.key_type)


def make_shape(
    schema: pa.Schema,
    *,
    key: str,
    generated: str,
    expires: str,
    window: Duration,
    every: Duration,
    stamps: Mapping[str, tuple[str, Duration]],
    counts: Mapping[str, tuple[str, int]],
) -> Shape:
    """Check what a user says of a new archive."""
    names = schema.names
    for what, name in (("key", key), ("generated", generated), ("expires", expires)):
        if not isinstance(name, str):
            raise ArchiveError(f"{what}={name!r}: the name of a column is needed")
    if not differ([*names, *([expires] if counts and expires not in names else [])]):
        raise ArchiveError(
            f"a column occurs twice: {', '.join(names)}; a Delta table does not tell capitals from "
            "small letters"
        )
    for name in names:
        if name.lower() in (ROW, COLUMN):
            raise ArchiveError(f"{name} is the archive's own column; give yours another name")
        if not name or "\0" in name:
            raise ArchiveError(f"{name!r} is no name for a column")
    if counts and expires in names:
        raise ArchiveError(
            f"{expires!r} is estimated by the archive if windows are counted; leave the column out"
        )
    if len({key, generated, expires}) < 3:
        raise ArchiveError("key, generation and expiration are three columns")
    sides = {**{k: v[0] for k, v in stamps.items()}, **{k: v[0] for k, v in counts.items()}}
    for name in (key, generated, *sides.values(), *([] if counts else [expires])):
        if name not in names:
            raise ArchiveError(f"there is no column {name!r}; the results have {', '.join(names)}")
    if not (pt.is_integer(schema.field(generated).type) or is_zoned(schema.field(generated).type)):
        raise ArchiveError(
            f"{generated!r} is {schema.field(generated).type}: times are integers or timestamps with "
            "a zone"
        )
    timed = pt.is_timestamp(schema.field(generated).type)
    clock = MOMENT if timed else pa.int64()
    of_time = {generated, expires, *(column for column, _ in stamps.values())}
    fields = []
    for given in schema:
        try:
            kind = stored(given.type)
        except ArchiveError as error:
            raise ArchiveError(f"column {given.name!r}: {error}; give it another") from None
        if given.name in of_time:
            alike = is_zoned(given.type) if timed else pt.is_integer(given.type)
            if not alike:
                raise ArchiveError(
                    f"{given.name!r} is {given.type} and {generated!r} is "
                    f"{schema.field(generated).type}: all times are of one kind"
                )
            kind = clock
        if given.name in {column for column, _ in counts.values()}:
            if not pt.is_integer(given.type):
                raise ArchiveError(
                    f"{given.name!r} is {given.type}: places in a window are integers"
                )
            kind = pa.int64()
        if given.name == key and not keys.is_key(kind):
            raise ArchiveError(
                f"the key {key!r} is {given.type}: keys are integers, floats, text, dates or timestamps"
            )
        fields.append(pa.field(given.name, kind))
    if counts:
        fields.append(pa.field(expires, clock))
    length = as_duration(window, timed, "window")
    step = as_duration(every, timed, "every")
    if length % step:
        raise ArchiveError(f"window={window} is not a whole number of updates every={every}")
    if length // step > MOST_STEPS:
        raise ArchiveError(
            f"window={window} has {length // step:,} updates every={every}, and may have "
            f"{MOST_STEPS:,}: update less often"
        )
    kept = {
        who: Side(c, as_duration(size, timed, f"window {who!r}"))
        for who, (c, size) in stamps.items()
    }
    for who, side in kept.items():
        if side.size < length:
            raise ArchiveError(
                f"window={window} is longer than the window {who!r}: no result outlives its shortest one"
            )
    counted = {}
    for who, (column, size) in counts.items():
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size < FARTHEST:
            raise ArchiveError(f"window {who!r}: {size!r} is not a number of rows")
        counted[who] = Side(column, size)
    return Shape(pa.schema(fields), key, generated, expires, length, step, kept, counted)


def as_sides(given: Any, what: str, size: str) -> dict[str, tuple[str, Any]]:
    """The windows of `stamps` or `counts`: by name, each with a column and a size."""
    shape = f"{what} are given as a dict of windows, each with (a column, {size})"
    if not isinstance(given, Mapping):
        raise ArchiveError(f"{what}={given!r}: {shape}")
    for who, side in given.items():
        pair = isinstance(side, (tuple, list)) and len(side) == 2
        if not (isinstance(who, str) and pair and isinstance(side[0], str)):
            raise ArchiveError(f"{what}={{{who!r}: {side!r}}}: {shape}")
    return {who: (side[0], side[1]) for who, side in given.items()}
