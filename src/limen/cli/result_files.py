"""Files of results: written piece by piece under a temporary name, renamed when all is in.

So a file with the final name is always whole. Csv joins a list of ids with `;`, with nothing for a null.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pyarrow.types as pt

from limen.cli.event_files import format_of
from limen.model import LimenError

JSON_ROWS = 8192
SEPARATOR = ";"


def check_target(path: Path, option: str, inputs: Iterable[Path], force: bool) -> None:
    """Refuse a target that cannot be written or would destroy something."""
    format_of(path, zipped=False)
    for other in inputs:
        if _same(path, other):
            raise LimenError(f"{option} {path} is also read or written by this run; name another")
    if path.is_dir():
        raise LimenError(f"{option} {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise LimenError(f"{option} {path}: there is no folder {path.parent}")
    if path.exists() and not force:
        raise LimenError(f"{option} {path} exists; --force overwrites it")


def _same(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


class ResultFile:
    """A context: left in order, the file appears; left by an error, nothing does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._format = format_of(path, zipped=False)
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._writer: Any = None

    def __enter__(self) -> Self:
        self._file = self._part.open("wb")
        return self

    def write(self, table: pa.Table) -> None:
        table = _plain(table)
        if self._format == "jsonl":
            self._write_lines(table)
            return
        if self._format == "csv":
            _refuse_nested(table.schema)
            table = _joined(table)
        if self._writer is None:
            make = pa_csv.CSVWriter if self._format == "csv" else pq.ParquetWriter
            self._writer = make(self._file, table.schema)
        if len(table):
            self._writer.write_table(table)

    def _write_lines(self, table: pa.Table) -> None:
        for lines in json_lines(table):
            self._file.write(lines.encode())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None and self._writer is not None:
                self._writer.close()
            self._file.close()
            if kind is None:
                self._part.replace(self._path)
        finally:
            self._part.unlink(missing_ok=True)


def refuse_separator(ids: pa.Array) -> None:
    if pt.is_string(ids.type) and pc.any(pc.match_substring(ids, SEPARATOR)).as_py():
        raise LimenError(
            f"a query id contains {SEPARATOR!r}, which separates the ids in csv; "
            "write .parquet or .jsonl"
        )


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries: one over all query ids would be written with every piece."""
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pt.is_dictionary(field.type):
            table = table.set_column(i, field.name, column.cast(field.type.value_type))
        elif _is_list(field.type) and pt.is_dictionary(field.type.value_type):
            lists = [_decoded(chunk) for chunk in column.chunks]
            table = table.set_column(i, field.name, pa.chunked_array(lists))
    return table


def _decoded(lists: Any) -> pa.Array:
    return type(lists).from_arrays(lists.offsets, lists.values.dictionary_decode())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind))


def _refuse_nested(schema: pa.Schema) -> None:
    for field in schema:
        kind = field.type.value_type if _is_list(field.type) else field.type
        if pt.is_nested(kind) or (kind != field.type and pt.is_binary(kind)):
            raise LimenError(
                f"column {field.name!r} is {field.type}, which csv has no cells for; write .parquet or "
                ".jsonl"
            )


def _joined(table: pa.Table) -> pa.Table:
    for i, field in enumerate(table.schema):
        if _is_list(field.type):
            large = pt.is_large_list(field.type)
            texts = pa.large_list(pa.string()) if large else pa.list_(pa.string())
            lists = table.column(i).cast(texts).combine_chunks()
            table = table.set_column(i, field.name, _joined_lists(lists))
    return table


def _joined_lists(lists: Any) -> pa.Array:
    """Texts of lists of texts; Arrow alone would make null of all of a list with a null in it."""
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0))
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    filled = type(lists).from_arrays(offsets, pc.fill_null(lists.flatten(), ""))
    return pc.if_else(lists.is_valid(), pc.binary_join(filled, SEPARATOR), None)


def json_lines(table: pa.Table) -> Iterator[str]:
    """Rows as lines of JSON, many at a time.

    JSON has no NaN and no infinity (null), no times (ISO) and no bytes (hexadecimal digits), at any
    depth.
    """
    for start in range(0, len(table), JSON_ROWS):
        rows = python_rows(_finite(table.slice(start, JSON_ROWS)))
        yield "".join(_line(row) + "\n" for row in rows)


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    try:
        return list(table.to_pylist())
    except OverflowError:
        raise LimenError(
            "a date or a timestamp is beyond the years 1 to 9999, so it cannot be shown; write .parquet"
        ) from None


def _line(row: dict[str, Any]) -> str:
    def line(row: object) -> str:
        return json.dumps(row, default=_said, ensure_ascii=False, allow_nan=False)

    try:
        return line(row)
    except ValueError:  # a NaN or an infinity in what is nested
        return line(_finite_within(row))


def _finite(table: pa.Table) -> pa.Table:
    """With nulls for NaN and infinity, but for what is nested."""
    for i, field in enumerate(table.schema):
        if pt.is_floating(field.type):
            column = table.column(i)
            finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, field.type))
            table = table.set_column(i, field.name, finite)
    return table


def _finite_within(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite_within(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite_within(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _said(value: object) -> object:
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
