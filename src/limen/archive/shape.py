"""What an archive's columns mean, and which results it takes.

Times are integers in a unit of the user's, or timestamps with a zone; inside they are int64 (microseconds
for timestamps). A result is alive from its generation until its expiration, which counts no more: at time
t those with `expires` > t are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from limen.archive import rows
from limen.archive.errors import ArchiveError
from limen.model import lossless, type_name

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MOMENT = pa.timestamp("us", tz="UTC")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROW, COLUMN = "generation_partition", "expiration_partition"
FARTHEST = 2**62  # times and windows lie within it, so that their sums are int64
MOST_STEPS = 10**6  # of a window; an update takes 0.2 s and 100 MB then to say where each belongs
FIRST, LAST = (  # of what a datetime can say
    (end.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    for end in (datetime.min, datetime.max)
)

Moment = int | datetime
Duration = int | timedelta
Key = int | float | str  # as it is compared: dates and timestamps are integers


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
        columns = [_column(given.column(f.name), f) for f in wanted]
        at = names.index(self.key)
        columns[at] = plus_zero(columns[at])
        return pa.table(columns, schema=pa.schema(wanted))

    def _gaps(self, table: pa.Table) -> Iterator[tuple[Mask, str, str]]:
        """Rows without a value that they need, column by column."""
        for name in self._required():
            if name in table.column_names:
                yield _flags(table.column(name).is_null()), f"column {name!r}", "is null"
        key = table.column(self.key)
        if pt.is_floating(key.type):
            yield _flags(pc.fill_null(pc.is_nan(key), False)), f"the key {self.key!r}", "is NaN"

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
        return plain_keys(one(column))

    def key_of(self, value: Any) -> Any:
        """A key of the user's as Python has it; one of another type is refused."""
        kind = self.key_type
        if isinstance(value, np.generic):
            value = value.item()
        if _is_number(kind) and _is_like(value, kind):
            return value  # one that the type cannot hold is no key, but can be compared
        told = f"{value!r} is not a key: {self.key!r} is {type_name(kind)} here"
        if not _is_like(value, kind):
            raise ArchiveError(told)
        if pt.is_timestamp(kind) and value.tzinfo is None:
            raise ArchiveError(f"{told}; a datetime with a zone is needed")
        try:
            pa.array([value], kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise ArchiveError(told) from None
        return value

    def keys_at(self, value: Any, nearest: bool = False) -> tuple[Key, Key]:
        """The least key not below a user's, and the greatest not above it, as they are compared.

        Both are that key; if the type cannot hold it, it lies between them and the first is the greater.
        `nearest`: the float32 that 0.1 was stored as is meant, not 0.1 itself.
        """
        kind, value = self.key_type, self.key_of(value)
        if pt.is_floating(kind):
            number = kind.to_pandas_dtype()
            if nearest and isinstance(value, float) and abs(value) <= float(np.finfo(number).max):
                value = float(number(value))
            return floats_at(value, number)
        if pt.is_integer(kind):
            limits = np.iinfo(kind.to_pandas_dtype())
            return max(value, int(limits.min)), min(value, int(limits.max))
        found: Key = plain_keys(pa.array([value], kind))[0].as_py()
        if getattr(value, "nanosecond", 0):  # of a timestamp of pandas, which Arrow cuts off
            assert isinstance(found, int)
            return found + 1, found
        return found, found

    def keys_between(self, between: tuple[Any, Any]) -> tuple[Key, Key]:
        """The least and the greatest key of a range, as they are compared."""
        if not isinstance(between, (tuple, list)) or len(between) != 2:
            raise ArchiveError(
                f"between={between!r}: two keys are needed, the least and the greatest"
            )
        return self.keys_at(between[0])[0], self.keys_at(between[1])[1]

    def said_key(self, key: Key) -> Any:
        """A key, as it is compared, as users say it."""
        if pt.is_date32(self.key_type):
            return EPOCH.date() + timedelta(int(key))
        return EPOCH + timedelta(microseconds=int(key)) if pt.is_timestamp(self.key_type) else key


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
    if not _differ([*names, *([expires] if counts and expires not in names else [])]):
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
    if not (pt.is_integer(schema.field(generated).type) or _zoned(schema.field(generated).type)):
        raise ArchiveError(
            f"{generated!r} is {schema.field(generated).type}: times are integers or timestamps with "
            "a zone"
        )
    timed = pt.is_timestamp(schema.field(generated).type)
    clock = MOMENT if timed else pa.int64()
    of_time = {generated, expires, *(column for column, _ in stamps.values())}
    fields = []
    for one in schema:
        try:
            kind = stored(one.type)
        except ArchiveError as error:
            raise ArchiveError(f"column {one.name!r}: {error}; give it another") from None
        if one.name in of_time:
            alike = _zoned(one.type) if timed else pt.is_integer(one.type)
            if not alike:
                raise ArchiveError(
                    f"{one.name!r} is {one.type} and {generated!r} is "
                    f"{schema.field(generated).type}: all times are of one kind"
                )
            kind = clock
        if one.name in {column for column, _ in counts.values()}:
            if not pt.is_integer(one.type):
                raise ArchiveError(f"{one.name!r} is {one.type}: places in a window are integers")
            kind = pa.int64()
        if one.name == key and not _is_key(kind):
            raise ArchiveError(
                f"the key {key!r} is {one.type}: keys are integers, floats, text, dates or timestamps"
            )
        fields.append(pa.field(one.name, kind))
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


def as_moment(value: Moment, timed: bool, what: str) -> int:
    """A time of the user's as an integer."""
    if timed:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise ArchiveError(f"{what}={value!r}: a datetime with a zone is needed here")
        if getattr(value, "nanosecond", 0):  # of a timestamp of pandas
            raise ArchiveError(f"{what}={value!r}: times are whole microseconds here")
        moment = (value - EPOCH) // timedelta(microseconds=1)
        if not FIRST <= moment <= LAST:  # in a zone that is ahead or behind
            raise ArchiveError(f"{what}={value!r} is out of range")
        return moment
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArchiveError(f"{what}={value!r}: times are integers here")
    if not -FARTHEST < value < FARTHEST:
        raise ArchiveError(f"{what}={value!r} is out of range")
    return int(value)


def as_duration(value: Duration, timed: bool, what: str) -> int:
    if timed:
        if not isinstance(value, timedelta):
            raise ArchiveError(
                f"{what}={value!r}: a timedelta is needed, since times are timestamps"
            )
        if getattr(value, "nanoseconds", 0):  # of a length of time of pandas
            raise ArchiveError(f"{what}={value!r}: times are whole microseconds here")
        value = value // timedelta(microseconds=1)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise ArchiveError(f"{what}={value!r}: an integer is needed, since times are integers")
    if not 0 < value < FARTHEST:
        raise ArchiveError(f"{what}={value!r} is not a length of time")
    return int(value)


def as_wait(value: Duration, timed: bool, what: str) -> int:
    """A length of time that may be zero."""
    nothing = timedelta(0) if timed else 0
    return 0 if value == nothing else as_duration(value, timed, what)


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


def as_table(results: object, wanted: Sequence[pa.Field]) -> pa.Table:
    """What is given as a table; Python's own values are taken as the columns that are wanted."""
    if isinstance(results, pa.Table):
        return results
    if isinstance(results, (list, Mapping)) and not results:
        return pa.schema(wanted).empty_table()
    if isinstance(results, list) and all(isinstance(row, Mapping) for row in results):
        results = rows.turned(results, [field.name for field in wanted])
    try:
        if isinstance(results, pa.RecordBatch):
            return pa.Table.from_batches([results])
        if isinstance(results, Mapping):
            return pa.table(_built(results, wanted))
        if type(results).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(results, preserve_index=False)
        if hasattr(results, "__arrow_c_stream__"):
            return pa.table(results)
    except ArchiveError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ArchiveError(f"the results cannot be read as a table: {error}") from None
    raise ArchiveError(f"results are a table or a frame, not a {type(results).__name__}")


def _built(columns: Mapping[str, Any], wanted: Sequence[pa.Field]) -> dict[str, Any]:
    fields = {field.name: field for field in wanted}
    return {
        name: rows.column(values, fields[name])
        if name in fields and rows.is_plain(values)
        else values
        for name, values in columns.items()
    }


def floats_at(value: float, number: type[np.floating[Any]]) -> tuple[float, float]:
    """The least float of this kind not below a number, and the greatest not above it.

    The number may be an integer of any size: Python compares these with floats exactly.
    """
    most = float(np.finfo(number).max)
    inside = -most <= value <= most
    near = float(number(value if inside else math.inf if value > 0 else -math.inf))
    if near < value:
        return float(np.nextafter(number(near), number(math.inf))), near
    if near > value:
        return near, float(np.nextafter(number(near), number(-math.inf)))
    return near, near


def plus_zero(keys: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """With one zero only: -0.0 equals 0.0, but not to all that compares."""
    return pc.add(keys, pa.scalar(0, keys.type)) if pt.is_floating(keys.type) else keys


def plain_keys(keys: pa.Array) -> pa.Array:
    if pt.is_date32(keys.type):
        return keys.cast(pa.int32())
    return keys.cast(pa.int64()) if pt.is_timestamp(keys.type) else keys


def _column(found: pa.ChunkedArray, wanted: pa.Field) -> pa.ChunkedArray:
    if found.type == wanted.type:
        return found
    try:
        if not _widens(found.type, wanted.type):
            raise pa.ArrowInvalid("")
        return found.cast(wanted.type)
    except (ArchiveError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ArchiveError(
            f"column {wanted.name!r} is {found.type} in the results and {wanted.type} in the archive"
        ) from None


def _widens(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Can the wanted type hold all values of the other? Of what is nested, each part of its own."""
    if pt.is_dictionary(found):
        return _widens(found.value_type, wanted)
    if pt.is_map(found) and pt.is_map(wanted):
        return _widens(found.key_type, wanted.key_type) and _widens(
            found.item_type, wanted.item_type
        )
    if _is_list(found) and _is_list(wanted):
        return _widens(found.value_type, wanted.value_type)
    if pt.is_struct(found) and pt.is_struct(wanted):
        return found.names == wanted.names and all(
            _widens(found.field(name).type, wanted.field(name).type) for name in wanted.names
        )
    return lossless(found, wanted) or stored(found) == wanted


def stored(kind: pa.DataType) -> pa.DataType:
    """The type as a Delta table has it: one spelling of texts, bytes, times and lists, nulls anywhere.

    One that a Delta table does not have is refused.
    """
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return stored(kind.value_type)
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return pa.string()
    if pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_fixed_size_binary(kind):
        return pa.binary()
    if pt.is_timestamp(kind):
        return pa.timestamp("us", tz=None if kind.tz is None else "UTC")
    if pt.is_date(kind):
        return pa.date32()
    if pt.is_unsigned_integer(kind):
        return pa.int64() if kind.bit_width >= 32 else pa.int32()
    if pt.is_map(kind):
        return pa.map_(stored(kind.key_type), stored(kind.item_type))
    if _is_list(kind):
        return pa.list_(pa.field("element", stored(kind.value_type)))
    if pt.is_struct(kind) and kind.num_fields and _differ(kind.names):
        return pa.struct([(name, stored(kind.field(name).type)) for name in kind.names])
    if pt.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return pa.decimal128(kind.precision, kind.scale)
    if pt.is_signed_integer(kind) or pt.is_boolean(kind):
        return kind
    if pt.is_float32(kind) or pt.is_float64(kind):
        return kind
    raise ArchiveError(f"{kind} is a type that a Delta table does not have")


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def _differ(names: list[str]) -> bool:
    """As Delta sees them, which does not tell capitals from small letters."""
    return len({name.lower() for name in names}) == len(names)


def _is_like(value: object, kind: pa.DataType) -> bool:
    """Is it of the Python type that keys of this type are of? To Python True is 1, a datetime a date."""
    if pt.is_timestamp(kind):
        return isinstance(value, datetime)
    if isinstance(value, (bool, datetime)):
        return False
    if pt.is_floating(kind):
        return isinstance(value, int) or (isinstance(value, float) and not math.isnan(value))
    return isinstance(value, int if pt.is_integer(kind) else str if pt.is_string(kind) else date)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_float32(kind) or pt.is_float64(kind))


def _is_key(kind: pa.DataType) -> bool:
    return bool(_is_number(kind) or pt.is_string(kind) or pt.is_date32(kind) or _zoned(kind))


def _zoned(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) and kind.tz is not None)


def _flags(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = one(column).to_numpy(zero_copy_only=False)
    return found


def one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
