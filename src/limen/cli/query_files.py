"""Query files: a frame of bounds or of SQL text (csv, parquet), or {"id", "where"} JSON lines.

Cells of a csv file are parsed for the attribute's own type, so that a bound of a decimal attribute is
never rounded through a float; the first bad cell is named with its row, id and column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pyarrow.types as pt

from limen.cli.cells import NUMBERS, TIMES, Use, parsed, type_of_cells
from limen.cli.event_files import format_of, no_twins, opened, readable
from limen.model import LimenError, QueryError, QuerySet, attribute_type, parse_where, type_name
from limen.model.ids import id_array, id_column

ROLES = ("lo", "hi", "bounds")


class QueryFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_text = False
        self._rows: list[Any] | None = None
        kind = format_of(path)
        with readable(path):
            if kind == "jsonl":
                self._rows = list(_json_rows(path))
            elif kind == "parquet":
                self._frame = pq.read_table(path)
            else:
                self._frame, self._is_text = _csv_texts(path), True

    @property
    def has_conditions(self) -> bool:
        """Does it hold SQL or JSON conditions, which say no types, rather than columns of bounds?"""
        return self._rows is not None or "where" in self._frame.column_names

    def uses(self, names: Iterable[str] | None) -> dict[str, Use]:
        """How each attribute is used; `names` are the attributes that there are, if known."""
        found: dict[str, Use] = {}
        try:
            if self.has_conditions:
                for row, (who, where) in enumerate(self._bodies()):
                    _body_uses(found, where, row, who)
            else:
                self._frame_uses(found, None if names is None else set(names))
        except QueryError as error:
            raise LimenError(f"{self._path}: {error}") from None
        return found

    def query_set(self, types: Mapping[str, pa.DataType] | pa.Schema, bounds: str) -> QuerySet:
        """The queries over attributes of these types."""
        try:
            if self._rows is not None:
                kinds = _kinds(types)
                return QuerySet.of([_exact(row, kinds) for row in self._rows], types)
            frame = self._typed(_kinds(types)) if self._is_text else self._frame
            return QuerySet.of(frame, types, bounds=bounds)
        except QueryError as error:
            raise LimenError(f"{self._path}: {error}") from None

    def ids(self) -> pa.Array:
        """The ids alone, of a file that need not say more; those of a csv file as the text they are."""
        try:
            if self._rows is not None:
                rows = [row.get("id") if isinstance(row, dict) else None for row in self._rows]
                return id_array(rows)
            if "id" not in self._frame.column_names:
                there = ", ".join(self._frame.column_names) or "none"
                raise LimenError(f"{self._path} has no column 'id' (columns: {there})")
            return id_column(self._frame.column("id"))
        except QueryError as error:
            raise LimenError(f"{self._path}: {error}") from None

    def own_types(self, given: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """Types of the attributes where there are no events to say: as given, or as used."""
        kinds = {}
        for name, use in self.uses(None).items():
            kind = given.get(name)
            if kind is None and self._rows is None and not self._is_text:
                kind = self._frame_type(name)
            if kind is None:
                kind = (
                    pa.float64() if use.numbers else type_of_cells(pa.array([], pa.string()), use)
                )
                if use.numbers and self._is_text and not use.fractions:
                    kind = pa.int64()
            kinds[name] = kind
        for name in given:
            if name not in kinds:
                raise LimenError(
                    f"--types: no query names {name!r}; they name {', '.join(kinds) or 'nothing'}"
                )
        return kinds

    def _bodies(self) -> Iterator[tuple[object, object]]:
        if self._rows is None:
            ids = self._frame.column("id") if "id" in self._frame.column_names else None
            for row, text in enumerate(self._frame.column("where").to_pylist()):
                yield None if ids is None else ids[row].as_py(), text
        else:
            for query in self._rows:
                if isinstance(query, dict):
                    yield query.get("id"), query.get("where")

    def _frame_uses(self, found: dict[str, Use], names: set[str] | None) -> None:
        columns = self._frame.column_names
        for column in columns:
            name, role = _role(column, columns, names)
            if column == "id" or role == "bounds":
                continue
            use = found.setdefault(name, Use())
            use.ranges |= role != "equal"
            values = self._frame.column(column).combine_chunks().drop_null()
            if self._is_text:
                if not len(values):
                    continue
                kind = type_of_cells(values, Use(ranges=True))
                if role == "equal" and (_padded(values) or parsed(values, kind)[1].any()):
                    kind = pa.string()
            else:
                kind = values.type.value_type if pt.is_dictionary(values.type) else values.type
            if pt.is_boolean(kind):
                use.booleans = True
            elif pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind):
                use.numbers = True
                use.fractions |= not pt.is_integer(kind)
            elif not pt.is_null(kind):
                use.texts += pc.cast(values.slice(0, 64), pa.string()).to_pylist()
                use.ranges |= bool(pt.is_temporal(kind))

    def _frame_type(self, name: str) -> pa.DataType | None:
        kinds = [
            field.type.value_type if pt.is_dictionary(field.type) else field.type
            for field in self._frame.schema
            if _role(field.name, self._frame.column_names, None)[0] == name
            and not field.name.endswith("_bounds")
            and not pt.is_null(field.type)
        ]
        if len({str(kind) for kind in kinds}) == 1:
            return attribute_type(kinds[0])
        return None

    def _typed(self, kinds: Mapping[str, pa.DataType]) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        names = self._frame.column_names
        ids = self._frame.column("id").combine_chunks() if "id" in names else None
        for column in names:
            text = self._frame.column(column).combine_chunks()
            name, role = _role(column, names, set(kinds))
            if column == "id":
                columns[column] = id_texts(text)
            elif role == "bounds" or name not in kinds:
                columns[column] = text
            else:
                columns[column] = _bound_column(text, column, kinds[name], ids)
        return pa.table(columns)


def _csv_texts(path: Path) -> pa.Table:
    with opened(path) as (_, stream):
        names = pa_csv.open_csv(
            stream, parse_options=pa_csv.ParseOptions(invalid_row_handler=lambda row: "skip")
        ).schema.names
    no_twins(path, names)
    with opened(path) as (_, stream):
        return pa_csv.read_csv(
            stream,
            read_options=pa_csv.ReadOptions(use_threads=False),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )


def _json_rows(path: Path) -> Iterator[Any]:
    with opened(path) as (_, stream):
        for number, line in enumerate(stream.read().split(b"\n"), 1):
            if line.strip():
                try:
                    yield json.loads(line, parse_float=Decimal)
                except ValueError as error:
                    told = getattr(error, "msg", "not UTF-8")
                    raise LimenError(f"{path}, line {number}: not valid JSON ({told})") from None


def _kinds(types: Mapping[str, pa.DataType] | pa.Schema) -> dict[str, pa.DataType]:
    if isinstance(types, pa.Schema):
        return {field.name: field.type for field in types}
    return dict(types)


def _role(column: str, columns: Iterable[str], names: set[str] | None) -> tuple[str, str]:
    stem, _, role = column.rpartition("_")
    if not stem or role not in ROLES or (names is not None and stem not in names):
        return column, "equal"
    alone = role == "bounds" and f"{stem}_lo" not in columns and f"{stem}_hi" not in columns
    return (column, "equal") if alone else (stem, role)


def _padded(text: pa.Array) -> bool:
    """Are these codes rather than numbers, such as 02139?"""
    return bool(pc.any(pc.match_substring_regex(text, "^0[0-9]")).as_py())


def id_texts(text: pa.Array) -> pa.Array:
    """int64 where every id is written as one, else text."""
    written = pc.match_substring_regex(text, r"^(0|-?[1-9][0-9]*)$")
    numbers, bad = parsed(text, pa.int64())
    return numbers if not bad.any() and pc.all(written).as_py() else text


def _bound_column(text: pa.Array, column: str, kind: pa.DataType, ids: pa.Array | None) -> pa.Array:
    if pt.is_string(kind) or pt.is_large_string(kind):
        return text
    for candidate in _readings(kind):
        values, bad = parsed(text, candidate)
        if not bad.any():
            return values
    row = int(np.flatnonzero(bad)[0])
    raise QueryError(
        f"{text[row].as_py()!r} is not a value of {type_name(kind)}",
        row,
        None if ids is None else ids[row].as_py(),
        column,
    )


def _readings(kind: pa.DataType) -> tuple[pa.DataType, ...]:
    """Types in which a bound of the attribute can be written, the closest first."""
    if pt.is_integer(kind):
        return (*dict.fromkeys((kind, pa.int64())), pa.float64())
    if pt.is_floating(kind):
        return NUMBERS[1:]
    if pt.is_decimal(kind):
        return (kind, pa.decimal128(38, 18))
    if pt.is_date32(kind):
        return TIMES
    if pt.is_timestamp(kind):
        return tuple(t for t in TIMES[1:] if (t.tz is None) == (kind.tz is None))
    return (kind,)


def _body_uses(found: dict[str, Use], where: object, row: int, who: object) -> None:
    if isinstance(where, str):
        try:
            conditions: Mapping[str, Any] = parse_where(where)
        except QueryError as error:
            query_id = who if isinstance(who, (int, str)) else None
            raise error.at(row=row, query_id=query_id) from None
    elif isinstance(where, dict):
        conditions = {name: _pairs(condition) for name, condition in where.items()}
    else:
        return  # QuerySet.of refuses it with the reason
    for name, pairs in conditions.items():
        use = found.setdefault(name, Use())
        for operator, value in pairs:
            use.ranges |= operator != "="
            if isinstance(value, bool):
                use.booleans = True
            elif isinstance(value, (int, Decimal)):
                use.numbers = True
                use.fractions |= value != int(value) if value == value else False
            elif value is not None:
                use.texts.append(str(value))
                use.ranges |= not isinstance(value, str)


def _pairs(condition: object) -> list[tuple[str, Any]]:
    if not isinstance(condition, dict):
        return [("=", condition)]
    pairs: list[tuple[str, Any]] = []
    for operator, value in condition.items():
        pairs += (
            [(operator, one) for one in value] if isinstance(value, list) else [(operator, value)]
        )
    return pairs


def _exact(query: Any, kinds: Mapping[str, pa.DataType]) -> Any:
    """Numbers of a JSON body as floats, except where the attribute is decimal."""
    if not isinstance(query, dict) or not isinstance(query.get("where"), dict):
        return query
    where = {
        name: condition if pt.is_decimal(kinds.get(name, pa.null())) else _floats(condition)
        for name, condition in query["where"].items()
    }
    return {**query, "where": where}


def _floats(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_floats(one) for one in value]
    if isinstance(value, dict):
        return {key: _floats(one) for key, one in value.items()}
    return value
