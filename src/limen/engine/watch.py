"""What is watched: the columns of the readings, and what counts as a crossing. Checked at the door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from limen.model import (
    INT64_MAX,
    LimenError,
    attribute_type,
    is_key,
    is_ordinal,
    lossless,
    type_name,
    widened,
)

CROSSING, QUERY, VERSION, REASON = "crossing", "query_id", "version", "reason"
PREVIOUS = "previous_"
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
OFF = -1


@dataclass(frozen=True)
class Watch:
    """The columns, and the times in the units of the time column (OFF: not asked for)."""

    entity: str
    entity_type: pa.DataType  # int64 or string
    on: dict[str, pa.DataType]
    keys: dict[str, pa.DataType]
    time: str | None
    time_type: pa.DataType | None
    margins: dict[str, Any]
    dwell: int
    ttl: int
    lateness: int
    exit_on_removal: bool
    enter_on_add: bool

    @classmethod
    def of(
        cls,
        schema: pa.Schema,
        attributes: Mapping[str, pa.DataType],
        *,
        entity: str,
        on: Sequence[str] | str | None = None,
        time: str | None = None,
        keys: Sequence[str] | str = (),
        dwell: object = None,
        hysteresis: object = None,
        ttl: object = None,
        lateness: object = None,
        exit_on_removal: bool = False,
        enter_on_add: bool = False,
    ) -> Watch:
        """Check all of it against the columns of the readings and the attributes of the queries.

        `keys`: columns that queries to come may ask for, beside those that they do. Dwell, ttl and
        lateness are timedeltas, or numbers: seconds where the time is a timestamp, days where it is a
        date, and the column's own units where it is a number.
        """
        _there(schema, "entity", entity)
        if time is not None:
            _there(schema, "time", time)
        carried = _names("keys", keys)
        for name in carried:
            _there(schema, "keys", name)
        values = _names("on", on)
        if values is None:
            values = _ordinal(attributes, schema, {entity, time, *carried})
        if not values:
            raise LimenError("on=[...] is empty: say which columns are watched")
        for name in values:
            _there(schema, "on", name)
            if name in carried:
                raise LimenError(f"{name!r} is watched and cannot be a key too")
        kinds = {name: _kind(name, schema, attributes) for name in values}
        more = {n: attribute_type(schema.field(n).type) for n in carried}
        attributes = {**more, **attributes}
        key_types = {name: kind for name, kind in attributes.items() if name not in kinds}
        if entity in kinds:
            raise LimenError(f"{entity!r} is the entity and cannot be watched too")
        time_type = None
        if time is not None:
            if time == entity or time in kinds:
                what = "be the entity" if time == entity else "be watched"
                raise LimenError(f"{time!r} is the time and cannot {what} too")
            time_type = _plain(schema.field(time).type)
            if not (
                pt.is_timestamp(time_type) or pt.is_date32(time_type) or pt.is_int64(time_type)
            ):
                found = schema.field(time).type
                raise LimenError(
                    f"time: {time!r} is {found}; a timestamp, date (32 bits) or integer is needed"
                )
            if time in carried:
                raise LimenError(f"{time!r} is the time and cannot be a key too")
            if time in key_types:
                raise LimenError(
                    f"time: the queries ask for {time!r}, so it cannot be the time too"
                )
        for what, told in (("exit_on_removal", exit_on_removal), ("enter_on_add", enter_on_add)):
            if not isinstance(told, bool):
                raise LimenError(f"{what}={told!r} is neither True nor False")
        spans = {"dwell": dwell, "ttl": ttl, "lateness": lateness}
        units = {name: _units(name, span, time_type) for name, span in spans.items()}
        if units["ttl"] != OFF and units["lateness"] == OFF:
            raise LimenError(
                "ttl needs lateness=...: how far a reading may be behind the newest one; only when that "
                "much more time has passed can an entity be forgotten for good"
            )
        watch = cls(
            entity=entity,
            entity_type=_entity_type(schema.field(entity).type, entity, attributes),
            on=kinds,
            keys=key_types,
            time=time,
            time_type=time_type,
            margins=_margins(hysteresis, kinds),
            **units,
            exit_on_removal=exit_on_removal,
            enter_on_add=enter_on_add,
        )
        watch._refuse_names()
        return watch

    def _refuse_names(self) -> None:
        own = [QUERY, CROSSING, VERSION, REASON, *(f"{PREVIOUS}{name}" for name in self.on)]
        for name in (self.entity, *self.on, *([self.time] if self.time else [])):
            if name in own:
                raise LimenError(
                    f"the readings' column {name!r} has the name of one of the result's"
                )

    @property
    def needed(self) -> dict[str, pa.DataType]:
        """What a reading cannot do without, apart from the keys that some query asks for."""
        found = {**self.on, self.entity: self.keys.get(self.entity, self.entity_type)}
        if self.time is not None:
            assert self.time_type is not None
            found[self.time] = self.time_type
        return found

    @property
    def columns(self) -> list[str]:
        """All columns that readings are taken from."""
        return list({**self.needed, **self.keys})

    @property
    def holds(self) -> bool:
        """Is anything remembered of pairs of an entity and a query?"""
        return bool(self.margins) or self.dwell > 0

    @property
    def has_clock(self) -> bool:
        """Does it matter what time it is, by all readings?"""
        return self.lateness != OFF

    @property
    def follows(self) -> bool:
        """Does it matter which queries came and went since the last batch?"""
        return self.exit_on_removal or self.enter_on_add or self.holds

    @property
    def reading(self) -> pa.Schema:
        """Of the last readings of entities."""
        fields = [(self.entity, self.entity_type)]
        if self.time is not None:
            fields.append((self.time, self.time_type))
        return pa.schema([*fields, *self.on.items()])

    def schema(self, id_type: pa.DataType) -> pa.Schema:
        """Of the crossings."""
        first, *others = self.reading
        before = [(f"{PREVIOUS}{name}", kind) for name, kind in self.on.items()]
        return pa.schema([first, (QUERY, id_type), (CROSSING, pa.string()), *others, *before])


def _ordinal(
    attributes: Mapping[str, pa.DataType], schema: pa.Schema, taken: set[str | None]
) -> list[str]:
    """What queries can have ranges of, in the order of the columns."""
    found = [n for n, kind in attributes.items() if is_ordinal(kind) and n not in taken]
    if not found:
        raise LimenError("on=[...]: say which columns are watched; the queries name none")
    missing = len(schema)
    return sorted(found, key=lambda n: schema.names.index(n) if n in schema.names else missing)


def _names(what: str, asked: object) -> Any:
    """Names of columns as a list, or None."""
    if asked is None:
        return None
    if isinstance(asked, str):
        return [asked]
    if not isinstance(asked, Iterable):
        raise LimenError(f"{what}={asked!r}: give the names of columns, as a list")
    names = list(asked)
    for name in names:
        _check_name(what, name)
    if len(set(names)) < len(names):
        raise LimenError(f"{what}: a name is there twice: {', '.join(names)}")
    return names


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise LimenError(f"{what}: {name!r} is not the name of a column")


def _there(schema: pa.Schema, what: str, name: str) -> None:
    _check_name(what, name)
    if len(schema.get_all_field_indices(name)) != 1:
        there = ", ".join(schema.names) or "none"
        raise LimenError(f"{what}: the readings have no column {name!r} (columns: {there})")


def _kind(name: str, schema: pa.Schema, attributes: Mapping[str, pa.DataType]) -> pa.DataType:
    kind = attributes.get(name, _plain(schema.field(name).type))
    if not is_ordinal(kind):
        raise LimenError(f"on: {name!r} is {type_name(kind)}, which has no borders to cross")
    if not lossless(schema.field(name).type, kind):
        raise LimenError(
            f"on: {name!r} is {schema.field(name).type}, which cannot be read as {type_name(kind)} "
            "without losing values"
        )
    return kind


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type in which values of a column are held: whole numbers as int64."""
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_string_view(kind) or pt.is_large_string(kind):
        return pa.string()
    return pa.int64() if pt.is_integer(kind) and not pt.is_uint64(kind) else kind


def _entity_type(
    kind: pa.DataType, name: str, attributes: Mapping[str, pa.DataType]
) -> pa.DataType:
    plain = _plain(kind)
    key = attributes.get(name, plain)
    if pt.is_int64(plain) and (not pt.is_integer(key) or pt.is_uint64(key)):
        raise LimenError(
            f"entity: {name!r} is {kind} and {type_name(key)} to the queries; strings, or integers of "
            "up to 64 bits with a sign, can be both"
        )
    if is_key(plain) and not pt.is_boolean(plain):
        return pa.string()
    if pt.is_int64(plain):
        return pa.int64()
    raise LimenError(f"entity: {name!r} is {kind}; strings or integers are needed")


def _units(what: str, span: object, time_type: pa.DataType | None) -> int:
    """A span of time in units of the time column, upwards to whole ones."""
    if span is None:
        return OFF
    if time_type is None:
        raise LimenError(f"{what} needs time=...: the column that says when a reading was taken")
    span = span.item() if isinstance(span, np.generic) else span
    if isinstance(span, timedelta):
        if pt.is_int64(time_type):
            raise LimenError(f"{what}: the time column is a number; give a number of its units")
        exact = Fraction(span // timedelta(microseconds=1), 10**6)
        exact *= Fraction(1, 86_400) if pt.is_date32(time_type) else UNITS[time_type.unit]
    elif isinstance(span, (int, float)) and not isinstance(span, bool) and abs(span) < 2**63:
        exact = Fraction(span) * (UNITS[time_type.unit] if pt.is_timestamp(time_type) else 1)
    else:
        raise LimenError(f"{what}: {span!r} is no span of time; use a timedelta or a number")
    if not 0 <= exact <= INT64_MAX:
        raise LimenError(f"{what}: {span!r} is negative or too long")
    return -int(-exact // 1)


def _margins(hysteresis: object, on: Mapping[str, pa.DataType]) -> dict[str, Any]:
    if hysteresis is None:
        return {}
    if isinstance(hysteresis, Mapping):
        for name in hysteresis:
            if name not in on:
                raise LimenError(f"hysteresis: {name!r} is not watched (on: {', '.join(on)})")
        margins = dict(hysteresis)
    elif len(on) > 1:
        raise LimenError("hysteresis: with several columns say of which, as {column: margin}")
    else:
        margins = {name: hysteresis for name in on}
    none = np.empty(0, np.int64)
    for name, margin in margins.items():
        try:
            widened(none, none, margin, on[name])
        except LimenError as error:
            raise LimenError(f"hysteresis: {name}: {error}") from None
    return margins
