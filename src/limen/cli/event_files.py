"""Event files, read in batches of bounded size: typed rows, and rows that could not be read.

Parquet has its schema. In csv and JSON lines the types of the fields that queries need are taken from
the first block and from the queries; a row with a cell that does not parse is set apart with the
reason and never stops the run. Csv columns that no query needs are carried as the text that they are.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq
import pyarrow.types as pt

from limen.cli.cells import Use, column_of_values, parsed, type_of_cells, type_of_values
from limen.model import LimenError

BLOCK_BYTES = 1 << 22
SAMPLE_BYTES = 1 << 20  # from which types are guessed
BATCH_ROWS = 1 << 17
SUPPORTED = ".parquet, .csv, .jsonl (also .ndjson, .json), and .csv.gz, .jsonl.gz"
_FORMATS = {".parquet": "parquet", ".csv": "csv"} | dict.fromkeys(
    (".jsonl", ".ndjson", ".json"), "jsonl"
)


class Batch(NamedTuple):
    """Rows of a file: the typed ones with their place, all as they stand in the file, the bad ones."""

    table: pa.Table
    raw: pa.Table
    bad: list[tuple[int, str]]  # row of `raw`, reason


class EventFile(Protocol):
    names: list[str]
    place: str  # the name of the column that says where a row stands in the file
    total: int  # of what `done` counts

    def types(self, uses: Mapping[str, Use], given: Mapping[str, pa.DataType]) -> pa.Schema:
        """A type for every column; those that queries need as these use them, or as given."""

    def raw_schema(self, types: pa.Schema) -> pa.Schema: ...
    def batches(self, types: pa.Schema, needed: Sequence[str]) -> Iterator[Batch]: ...
    def done(self) -> int: ...


def format_of(path: Path, *, zipped: bool = True) -> str:
    """parquet, csv or jsonl."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if zipped and suffixes[-1:] == [".gz"] and _FORMATS.get("".join(suffixes[-2:-1])) != "parquet":
        suffixes.pop()
    found = _FORMATS.get("".join(suffixes[-1:]))
    if found is None:
        listed = SUPPORTED if zipped else SUPPORTED.partition(", and")[0]
        raise LimenError(f"{path}: files of this kind are not supported; supported: {listed}")
    return found


def open_events(path: Path) -> EventFile:
    kind = format_of(path)
    with readable(path):
        if kind == "parquet":
            return ParquetEvents(path)
        return CsvEvents(path) if kind == "csv" else JsonEvents(path)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Arrow's complaints about a file as ours, with its name."""
    try:
        yield
    except LimenError:
        raise
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise LimenError(f"{path} cannot be read: {str(error).partition(chr(10))[0]}") from None


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[io.BufferedReader, Any]]:
    """The file, whose position is the progress, and the stream of its unzipped bytes."""
    with path.open("rb") as file:
        if path.suffix.lower() == ".gz":
            yield file, pa.CompressedInputStream(pa.PythonFile(file, "r"), "gzip")
        else:
            yield file, pa.PythonFile(file, "r")


def unused(name: str, names: Sequence[str]) -> str:
    while name in names:
        name = f"limen_{name}"
    return name


def no_twins(path: Path, names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise LimenError(f"{path}: column {twice[0]!r} is there more than once")
    return names


class ParquetEvents:
    def __init__(self, path: Path) -> None:
        self._path = path
        with pq.ParquetFile(path) as file:
            self._schema = file.schema_arrow.remove_metadata()
            self.total = file.metadata.num_rows
        self.names = no_twins(path, self._schema.names)
        self.place = unused("row", self.names)
        self._rows = 0

    def types(self, uses: Mapping[str, Use], given: Mapping[str, pa.DataType]) -> pa.Schema:
        return pa.schema(
            [
                field.with_type(field.type.value_type) if pt.is_dictionary(field.type) else field
                for field in self._schema
            ]
        )

    def raw_schema(self, types: pa.Schema) -> pa.Schema:
        return pa.schema([pa.field(self.place, pa.int64()), *types])

    def done(self) -> int:
        return self._rows

    def batches(self, types: pa.Schema, needed: Sequence[str]) -> Iterator[Batch]:
        with readable(self._path), pq.ParquetFile(self._path) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=types.names):
                table = pa.Table.from_batches([batch]).select(types.names).cast(types)
                places = pa.array(np.arange(self._rows + 1, self._rows + len(table) + 1))
                self._rows += len(table)
                table = table.add_column(0, self.place, places)
                yield Batch(table, table, [])


class _TextFile:
    """What csv and JSON lines share: progress is the bytes that were read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total = path.stat().st_size
        self._file: io.BufferedReader | None = None

    def done(self) -> int:
        if self._file is None or self._file.closed:
            return 0 if self._file is None else self.total
        return self._file.tell()


class CsvEvents(_TextFile):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.names = no_twins(path, _csv_header(path))
        self.place = unused("row", self.names)

    def types(self, uses: Mapping[str, Use], given: Mapping[str, pa.DataType]) -> pa.Schema:
        with readable(self._path):
            sample = next(self._read(SAMPLE_BYTES, self.names), None)
        self._file = None  # the reading proper is still to begin
        fields = []
        for name in self.names:
            kind = given.get(name, pa.string())
            if name in uses and name not in given:
                cells = pa.array([], pa.string())
                if sample is not None:
                    cells = _text(sample[0].column(name))[0]
                kind = type_of_cells(cells, uses[name])
            fields.append(pa.field(name, kind))
        return pa.schema(fields)

    def raw_schema(self, types: pa.Schema) -> pa.Schema:
        texts = [pa.field(name, pa.string()) for name in types.names]
        return pa.schema([pa.field(self.place, pa.int64()), *texts])

    def batches(self, types: pa.Schema, needed: Sequence[str]) -> Iterator[Batch]:
        with readable(self._path):
            for batch, places, misfits in self._read(BLOCK_BYTES, types.names):
                yield self._typed(batch, places, misfits, types, needed)

    def _typed(
        self,
        batch: pa.RecordBatch,
        places: npt.NDArray[np.int64],
        misfits: list[tuple[int, str]],
        types: pa.Schema,
        needed: Sequence[str],
    ) -> Batch:
        where = pa.array(places)
        columns, texts, reasons = [where], [where], Reasons(len(places))
        for name in types.names:
            text, garbled = _text(batch.column(name))
            values, bad = parsed(text, types.field(name).type)
            columns.append(values)
            texts.append(text)
            if name in needed:
                reasons.unparsable(name, bad | garbled, text)
        fields = [pa.field(self.place, pa.int64()), *types]
        table = reasons.without(pa.Table.from_arrays(columns, schema=pa.schema(fields)))
        raw = pa.Table.from_arrays(texts, schema=self.raw_schema(types))
        bad_rows = reasons.listed()
        if misfits:
            nothing = [pa.nulls(len(misfits), pa.string())] * len(types)
            numbers = pa.array([number for number, _ in misfits], pa.int64())
            more = pa.Table.from_arrays([numbers, *nothing], schema=raw.schema)
            bad_rows += [(len(raw) + i, reason) for i, (_, reason) in enumerate(misfits)]
            raw = pa.concat_tables([raw, more])
        return Batch(table, raw, bad_rows)

    def _read(
        self, block: int, names: Sequence[str]
    ) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int64], list[tuple[int, str]]]]:
        """Batches of text; the place of each row; rows with too few or too many cells."""
        found: list[tuple[int, str]] = []

        def set_apart(row: Any) -> str:
            cells = f"{row.actual_columns} cells, not {row.expected_columns}"
            found.append((row.number - 1, f"{cells}: {shortened(row.text)!r}"))
            return "skip"

        with opened(self._path) as (self._file, stream):
            reader = pa_csv.open_csv(
                stream,
                read_options=pa_csv.ReadOptions(block_size=block, use_threads=False),
                parse_options=pa_csv.ParseOptions(
                    newlines_in_values=True, invalid_row_handler=set_apart
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.binary()),  # perhaps not UTF-8
                    include_columns=list(names),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            rows = told = 0
            for batch in reader:
                skipped = np.array([number for number, _ in found], np.int64)
                good = np.arange(rows + 1, rows + batch.num_rows + 1)
                shifts = np.searchsorted(skipped - np.arange(len(skipped)), good, "right")
                rows += batch.num_rows
                misfits, told = found[told:], len(found)
                yield batch, good + shifts, misfits
            if found[told:]:
                empty = pa.RecordBatch.from_pylist([], reader.schema)
                yield empty, np.empty(0, np.int64), found[told:]


def _text(cells: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Bytes as text, and the mask of those that are not UTF-8 (shown with replacements)."""
    try:
        return cells.cast(pa.string()), np.zeros(len(cells), np.bool_)
    except pa.ArrowInvalid:
        texts = [
            None if cell is None else cell.decode("utf-8", "replace") for cell in cells.to_pylist()
        ]
        text = pa.array(texts, pa.string())
        same = pc.equal(text.cast(pa.binary()), cells).fill_null(True)
        return text, ~same.to_numpy(zero_copy_only=False)


def _csv_header(path: Path) -> list[str]:
    with opened(path) as (_, stream):
        start = stream.read(BLOCK_BYTES)
    if not start.strip():
        raise LimenError(f"{path} is empty; a csv file begins with a line of column names")
    text = start.decode("utf-8-sig", "replace")
    return next(row for row in csv.reader(io.StringIO(text, newline="")) if row)


class JsonEvents(_TextFile):
    place = "line"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._sample = self._first_rows()
        self.names = list(dict.fromkeys(name for row in self._sample for name in row))
        self.place = unused("line", self.names)

    def _first_rows(self) -> list[dict[str, Any]]:
        rows = []
        for lines, numbers in self._lines(SAMPLE_BYTES):
            if numbers[:1] == [1] and lines[0].lstrip()[:1] == b"[":
                raise LimenError(
                    f"{self._path} is one JSON array; JSON lines has one object on each line"
                )
            rows = [row for row, _ in map(_object, lines) if row is not None]
            if rows:
                break
        self._file = None
        return rows

    def types(self, uses: Mapping[str, Use], given: Mapping[str, pa.DataType]) -> pa.Schema:
        fields = []
        for name in self.names:
            values = [row.get(name) for row in self._sample]
            if name in given:
                kind = given[name]
            elif name in uses:
                kind = type_of_values(values, uses[name])
            else:
                kind = _carried_type(values)
            fields.append(pa.field(name, kind))
        return pa.schema(fields)

    def raw_schema(self, types: pa.Schema) -> pa.Schema:
        return pa.schema({self.place: pa.int64(), "text": pa.string()})

    def batches(self, types: pa.Schema, needed: Sequence[str]) -> Iterator[Batch]:
        with readable(self._path):
            for lines, numbers in self._lines(BLOCK_BYTES):
                where = pa.array(numbers, pa.int64())
                table, bad = _fast(lines, types, needed) or _careful(lines, types, needed)
                raw = pa.table([where, _texts(lines)], schema=self.raw_schema(types))
                if bad.any():
                    where = where.filter(pa.array(~bad.mask()))
                yield Batch(table.add_column(0, self.place, where), raw, bad.listed())

    def _lines(self, block: int) -> Iterator[tuple[list[bytes], list[int]]]:
        """Lines that are not blank, and their numbers."""
        number, rest = 1, b""
        with opened(self._path) as (self._file, stream):
            while True:
                data = stream.read(block)
                lines = (rest + data).split(b"\n")
                rest = lines.pop() if data else b""
                numbered = [(line, number + i) for i, line in enumerate(lines) if line.strip()]
                number += len(lines)
                if numbered:
                    if numbered[0][1] == 1:
                        numbered[0] = (numbered[0][0].removeprefix(b"\xef\xbb\xbf"), 1)
                    yield [line for line, _ in numbered], [at for _, at in numbered]
                if not data:
                    return


class Reasons:
    """Why rows of a batch cannot be read."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._found: dict[int, list[str]] = {}

    def any(self) -> bool:
        return bool(self._found)

    def add(self, row: int, reason: str) -> None:
        self._found.setdefault(row, []).append(reason)

    def unparsable(self, name: str, bad: npt.NDArray[np.bool_], cells: pa.Array) -> None:
        for row in np.flatnonzero(bad).tolist():
            self.add(row, f"{name}: unparsable {shortened(cells[row].as_py())!r}")

    def mask(self) -> npt.NDArray[np.bool_]:
        mask = np.zeros(self._rows, np.bool_)
        mask[list(self._found)] = True
        return mask

    def without(self, table: pa.Table) -> pa.Table:
        return table.filter(pa.array(~self.mask())) if self._found else table

    def listed(self) -> list[tuple[int, str]]:
        return [(row, "; ".join(self._found[row])) for row in sorted(self._found)]


def shortened(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _texts(lines: list[bytes]) -> pa.Array:
    try:
        return pa.array(lines, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([line.decode("utf-8", "replace") for line in lines], pa.string())


def _finite(text: str) -> float | str:
    """1e999 is not infinity: it stays text, which no number is."""
    value = float(text)
    return text if math.isinf(value) else value


def _object(line: bytes) -> tuple[dict[str, Any] | None, str]:
    """The object on a line, or why there is none."""
    try:
        found = json.loads(line, parse_float=_finite)
    except UnicodeDecodeError:
        return None, "not UTF-8"
    except json.JSONDecodeError as error:
        return None, f"not valid JSON ({error.msg} at column {error.colno})"
    except (ValueError, RecursionError):
        return None, "not valid JSON"
    if not isinstance(found, dict):
        return None, "not a JSON object"
    return found, ""


def _carried_type(values: Sequence[Any]) -> pa.DataType:
    """The type of a field that no query needs; text (JSON) for what is mixed or nested."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def _fast(
    lines: list[bytes], types: pa.Schema, needed: Sequence[str]
) -> tuple[pa.Table, Reasons] | None:
    """All lines at once by Arrow; None if one of them is not as expected."""
    plain = pa.schema(
        [
            field
            if pt.is_floating(field.type) or pt.is_integer(field.type) or pt.is_boolean(field.type)
            else pa.field(field.name, pa.string())
            for field in types
        ]
    )
    data = b"\n".join(lines)
    try:
        table = pa_json.read_json(
            io.BytesIO(data),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pa_json.ParseOptions(plain, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowException, ValueError):
        return None
    if len(table) != len(lines):
        return None
    columns, reasons = [], Reasons(len(lines))
    for field in types:
        text = table.column(field.name).combine_chunks()
        if field.type == text.type:
            if pt.is_floating(text.type) and not _surely_exact(text):
                return None
            columns.append(text)
            continue
        values, bad = parsed(text, field.type)
        columns.append(values)
        if field.name in needed:
            reasons.unparsable(field.name, bad, text)
    return reasons.without(pa.table(columns, schema=types)), reasons


def _surely_exact(column: pa.Array) -> bool:
    """Are all values below where float64 begins to skip integers?"""
    largest = pc.max(pc.abs(column)).as_py()
    return largest is None or math.isnan(largest) or largest < 2**53


def _careful(
    lines: list[bytes], types: pa.Schema, needed: Sequence[str]
) -> tuple[pa.Table, Reasons]:
    """Line by line, so that each bad one is found; a value that only is carried becomes its JSON."""
    reasons = Reasons(len(lines))
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines):
        found, why = _object(line)
        rows.append(found or {})
        if found is None:
            reasons.add(number, why)
    columns = []
    for field in types:
        values = [row.get(field.name) for row in rows]
        if pt.is_string(field.type) and field.name not in needed:
            values = [
                value if value is None or isinstance(value, str) else json.dumps(value)
                for value in values
            ]
        column, bad = column_of_values(values, field.type)
        columns.append(column)
        for row in np.flatnonzero(bad).tolist():
            value = values[row]
            told = value if isinstance(value, str) else json.dumps(value)
            reasons.add(row, f"{field.name}: unparsable {shortened(told)!r}")
    return reasons.without(pa.table(columns, schema=types)), reasons
