"""One file of a sub-index: Parquet, in order of key and then expiration, cut into row groups by key.

A row group ends where the key changes, once it or this key has enough bytes, so a key's results lie
together and a probe reads little else. The footer has the first and last key of every row group, where
its bytes are and their checksum; the checksum of the footer is in the file's name. So whatever is read is
known to be what was written. Pages have Parquet's own checksums besides, for readers that look at these.
"""

from __future__ import annotations

import io
import json
import os
import uuid
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limen.archive.errors import ArchiveError
from limen.archive.keys import Key
from limen.archive.layouts import Cell
from limen.archive.mapped import Mapped
from limen.archive.shape import COLUMN, I64, ROW, Mask, Shape
from limen.delta.disk import begin_to_disk

OWN_BYTES = 32 << 10  # of a key that ends its row group
MIN_BYTES = 64 << 10  # of a row group that ends with its key
MAX_BYTES = 4 << 20  # of any
ON_ITS_WAY = 8 << 20  # that are written to the disk while the next are put together
AT_ONCE = 16 << 20  # that are looked at, of a file that is read whole
LONG = 1 << 30  # of a column's texts, so that they need 64-bit offsets
TAIL = 64 << 10  # read at once to find a footer
MAGIC = b"PAR1"
FACTS = b"limen"
FAULTS = (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError)


class Group(NamedTuple):
    first: Key
    last: Key
    rows: int
    start: int
    length: int
    crc: int


@dataclass
class Content:
    """The bytes of a file, from the first read on, and what decodes them."""

    path: str
    size: int
    meta: Any = field(repr=False)  # Parquet's own
    # row groups that could be looked at
    had: set[int] = field(default_factory=set, compare=False, repr=False)
    _mapped: Mapped | None = field(default=None, compare=False, repr=False)
    # a thread takes one, or opens one more
    _idle: list[pq.ParquetFile] = field(default_factory=list, compare=False, repr=False)

    def mapped(self) -> Mapped:
        if self._mapped is None:
            self._mapped = Mapped(self.path, self.size)
        return self._mapped

    def decoded(self, groups: range, columns: list[str] | None) -> pa.Table:
        try:
            opened = self._idle.pop()
        except IndexError:
            source = pa.BufferReader(self.mapped().bytes)
            opened = pq.ParquetFile(source, metadata=self.meta, pre_buffer=False)
        # without Arrow's threads: a process that ends while they start is aborted
        found = opened.read_row_groups(list(groups), columns=columns, use_threads=False)
        self._idle.append(opened)
        return found


class DataFile(NamedTuple):
    """What the directory knows of a file."""

    path: str  # within the table
    cell: Cell
    rows: int
    size: int
    expires: tuple[int, int]  # least and greatest
    generated: tuple[int, int]
    groups: list[Group]
    firsts: list[Key]
    lasts: list[Key]
    content: Content

    def groups_of(self, low: Key, high: Key) -> range:
        """The row groups with keys from low to high; none if the first is the greater."""
        if low > high:  # type: ignore[operator]
            return range(0)
        return range(bisect_left(self.lasts, low), bisect_right(self.firsts, high))


def folder_of(cell: Cell) -> str:
    return f"{ROW}={cell[0]}/{COLUMN}={cell[1]}"


def in_order(table: pa.Table, shape: Shape) -> pa.Table:
    """By key, then expiration."""
    return roomy(table).take(pa.array(order_of([table], shape)))


def order_of(tables: Sequence[pa.Table], shape: Shape, stay: Mask | None = None) -> I64:
    """The places of all rows of these tables, or of those that stay, by key, then expiration.

    Sorted by merging, so tables that are in order already cost a comparison or two a row.
    """
    slim = pa.concat_tables([table.select([shape.key, shape.expires]) for table in tables])
    keys = shape.keys_of(slim.column(shape.key))
    if pa.types.is_string(keys.type):
        keys = _ranks(keys)
    order = np.lexsort((shape.numbers(slim, shape.expires), np.asarray(keys)))
    return order if stay is None else order[stay[order]]


def _ranks(texts: pa.Array) -> I64:
    """Numbers in the order of the texts."""
    coded = texts.dictionary_encode()
    ranks = np.empty(len(coded.dictionary), np.int64)
    ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(ranks))
    found: I64 = ranks[coded.indices.to_numpy()]
    return found


def roomy(table: pa.Table) -> pa.Table:
    """With 64-bit offsets where a column's texts are too long together for 32."""
    if table.get_total_buffer_size() <= LONG:
        return table
    kinds = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    for i, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if kind in kinds and table.column(i).nbytes > LONG:
            table = table.set_column(i, name, table.column(i).cast(kinds[kind]))
    return table


def write(
    folder: Path, cell: Cell, tables: Sequence[pa.Table], shape: Shape, order: I64
) -> DataFile:
    """A file of the rows at these places, which put them in order.

    It is not yet part of the archive, nor surely on disk. Places count through all the tables. Each is in
    order of key, so the rows of a row group are a stretch of each table: they are fetched when it is
    their turn, and no other row is in memory twice.
    """
    names = [shape.key, shape.generated, shape.expires]
    slim = pa.concat_tables([table.select(names) for table in tables])
    starts = np.cumsum([0, *map(len, tables)])
    of = np.searchsorted(starts, order, side="right") - 1
    rows = order - starts[of]
    nbytes = sum(table.nbytes for table in tables) * len(order) // max(1, len(slim))
    slim = slim.take(pa.array(order))
    keys = shape.keys_of(slim.column(shape.key))
    where = folder / folder_of(cell)
    where.mkdir(parents=True, exist_ok=True)
    beside = where / f".{uuid.uuid4()}"
    try:
        with beside.open("wb") as raw:
            sink = _Checked(raw)
            texts = [f.name for f in shape.schema if f.name == shape.key]
            writer = pq.ParquetWriter(
                pa.PythonFile(sink, mode="w"),
                shape.schema,
                compression="lz4",
                use_dictionary=texts,
                write_statistics=[shape.key, shape.generated, shape.expires],
                write_page_checksum=True,
                store_schema=False,
            )
            groups = []
            for begin, end in _cuts(keys, nbytes):
                at, sink.crc = sink.tell(), 0
                part = _rows_at(tables, of[begin:end], rows[begin:end])
                writer.write_table(part, row_group_size=end - begin)
                first, last = keys[begin].as_py(), keys[end - 1].as_py()
                groups.append(Group(first, last, end - begin, at, sink.tell() - at, sink.crc))
            spans = {
                name: (pc.min(column).as_py(), pc.max(column).as_py())
                for name in (shape.generated, shape.expires)
                for column in [slim.column(name).cast(pa.int64())]
            }
            facts = {
                "groups": groups,
                "generated": spans[shape.generated],
                "expires": spans[shape.expires],
            }
            writer.add_key_value_metadata({FACTS.decode(): json.dumps(facts)})
            sink.crc = 0
            writer.close()
            sink.send()
            name = f"{uuid.uuid4()}-{sink.crc:08x}.parquet"
        beside.rename(where / name)
    finally:
        beside.unlink(missing_ok=True)
    return open_file(folder, f"{folder_of(cell)}/{name}")


def _rows_at(tables: Sequence[pa.Table], of: I64, rows: I64) -> pa.Table:
    """These rows of these tables, by way of the least stretch of each that has its own."""
    stretches, places, before = [], np.empty(len(rows), np.int64), 0
    for i, table in enumerate(tables):
        mine = of == i if len(tables) > 1 else np.ones(len(rows), np.bool_)
        here = rows[mine]
        if not len(here):
            continue
        low = int(here.min())
        many = int(here.max()) + 1 - low
        stretches.append(table.slice(low, many))
        places[mine] = here + (before - low)
        before += many
    whole = pa.concat_tables(stretches) if len(stretches) > 1 else stretches[0]
    if before == len(rows) and bool((places[1:] > places[:-1]).all()):
        return whole
    taken = roomy(whole).take(pa.array(places))
    return taken if taken.schema == whole.schema else taken.cast(whole.schema)


def _cuts(keys: pa.Array, nbytes: int) -> Iterator[tuple[int, int]]:
    """Where row groups begin and end."""
    rows = len(keys)
    each = max(1, nbytes // max(rows, 1))
    own, least, most = (max(1, size // each) for size in (OWN_BYTES, MIN_BYTES, MAX_BYTES))
    changes = np.empty(0, np.int64)
    if rows > 1:
        differs = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
        changes = np.flatnonzero(differs) + 1
    ends = np.append(changes, rows)
    large = np.append(ends[np.diff(ends, prepend=0) >= own], rows)
    begin = 0
    while begin < rows:
        at = ends[np.searchsorted(ends, min(begin + least, rows))]
        end = min(int(at), int(large[np.searchsorted(large, begin + 1)]), begin + most)
        yield begin, end
        begin = end


class _Checked(io.RawIOBase):
    """Counts and sums up what is written, and has it on its way to the disk."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.crc, self._at, self._begun = raw, 0, 0, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        self.crc = zlib.crc32(data, self.crc)
        self._at += len(data)
        self.raw.write(data)
        if self._at - self._begun >= ON_ITS_WAY:
            self.send()
        return len(data)

    def send(self) -> None:
        self.raw.flush()
        begin_to_disk(self.raw.fileno(), self._begun, self._at - self._begun)
        self._begun = self._at


# -- reading ---------------------------------------------------------------------------------------


def open_file(folder: Path, path: str) -> DataFile:
    """Read and check the footer of a file."""
    whole = folder / path
    try:
        with whole.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            tail = os.pread(file.fileno(), TAIL, max(0, size - TAIL))
            length = int.from_bytes(tail[-8:-4], "little") + 8
            if tail[-4:] != MAGIC or length > size:
                raise OSError("it does not end as a Parquet file")
            if length > len(tail):
                tail = os.pread(file.fileno(), length, size - length)
        footer = tail[-length:]
        if whole.stem[-8:] != f"{zlib.crc32(footer):08x}":
            raise OSError("the checksum of its footer is another")
        meta = pq.read_metadata(pa.BufferReader(footer))
        facts = json.loads(meta.metadata[FACTS])
        groups = [Group(*group) for group in facts["groups"]]
        row, column = (part.partition("=")[2] for part in path.split("/")[:2])
        return DataFile(
            path,
            (int(row), int(column)),
            meta.num_rows,
            size,
            tuple(facts["expires"]),
            tuple(facts["generated"]),
            groups,
            [group.first for group in groups],
            [group.last for group in groups],
            Content(str(whole), size, meta),
        )
    except FAULTS as fault:
        raise _damaged(whole, fault) from None


def read(
    file: DataFile, groups: range | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """These row groups, which follow each other, or all; checked."""
    groups = range(len(file.groups)) if groups is None else groups
    names = None if columns is None else list(columns)
    try:
        found = [_decoded(file, part, names) for part in _in_parts(file, groups)]
        return found[0] if len(found) == 1 else pa.concat_tables(found)
    except FAULTS as fault:
        raise _damaged(file.content.path, fault) from None


def _in_parts(file: DataFile, groups: range) -> list[range]:
    """Cut so that no more than AT_ONCE is part of the memory of this process."""
    first, last = file.groups[groups[0]], file.groups[groups[-1]]
    if last.start + last.length - first.start <= AT_ONCE:
        return [groups]
    found, begin = [], groups.start
    for i in groups:
        group = file.groups[i]
        if i > begin and group.start + group.length - file.groups[begin].start > AT_ONCE:
            found.append(range(begin, i))
            begin = i
    return [*found, range(begin, groups.stop)]


def _decoded(file: DataFile, groups: range, columns: list[str] | None) -> pa.Table:
    content = file.content
    first, last = file.groups[groups[0]], file.groups[groups[-1]]
    start, end = first.start, last.start + last.length
    mapped, large = content.mapped(), end - start > MAX_BYTES
    mapped.check()
    if large or not content.had.issuperset(groups):
        mapped.have(start, end)
        content.had.update(groups)
    for i in groups:
        group = file.groups[i]
        if zlib.crc32(mapped.view[group.start : group.start + group.length]) != group.crc:
            raise OSError(f"the checksum of row group {i} is another")
    found = content.decoded(groups, columns)
    if large:
        mapped.let_go(start, end)
    return found


def _damaged(path: Path | str, fault: Exception) -> ArchiveError:
    if isinstance(fault, FileNotFoundError):
        return ArchiveError(
            f"{path} is gone: it was vacuumed, or deleted by another program; take a new snapshot"
        )
    return ArchiveError(f"{path}: the archive is damaged: {fault}")


__all__ = ["DataFile", "Group", "in_order", "open_file", "order_of", "read", "write"]
