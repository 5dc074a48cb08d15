"""One file of a sub-index: Parquet, in order of key and then expiration, cut into row groups by key.

A row group ends where the key changes, once it has MIN_BYTES, so a key's results lie together and a probe
reads little else. The footer has the first and last key of every row group, where its bytes are and their
checksum; the checksum of the footer is in the file's name. So whatever is read is known to be what was
written. Pages have Parquet's own checksums besides, for readers that look at these.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import threading
import uuid
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from limen.archive.errors import ArchiveError
from limen.archive.keys import Key
from limen.archive.layouts import Cell
from limen.archive.shape import COLUMN, I64, ROW, Mask, Shape

MIN_BYTES = 64 << 10  # of a row group that ends with its key
MAX_BYTES = 4 << 20  # of any
LONG = 1 << 30  # of a column's texts, so that they need 64-bit offsets
TAIL = 64 << 10  # read at once to find a footer
KEPT_BYTES = 64 << 20  # of files read until the memory that they were read into is given back
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
MAGIC = b"PAR1"
FACTS = b"limen"


class Group(NamedTuple):
    first: Key
    last: Key
    rows: int
    start: int
    length: int
    crc: int


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
    meta: Any  # Parquet's own

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
    kinds = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    for i, field in enumerate(table.schema):
        if field.type in kinds and table.column(i).nbytes > LONG:
            table = table.set_column(i, field.name, table.column(i).cast(kinds[field.type]))
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
    least, most = max(1, MIN_BYTES // each), max(1, MAX_BYTES // each)
    changes = np.empty(0, np.int64)
    if rows > 1:
        differs = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
        changes = np.flatnonzero(differs) + 1
    ends = np.append(changes, rows)
    begin = 0
    while begin < rows:
        at = int(np.searchsorted(ends, min(begin + least, rows)))
        end = min(int(ends[at]), begin + most)
        yield begin, end
        begin = end


class _Checked(io.RawIOBase):
    """Counts and sums up what is written."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.crc, self._at = raw, 0, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        self.crc = zlib.crc32(data, self.crc)
        self._at += len(data)
        self.raw.write(data)
        return len(data)


# -- reading ---------------------------------------------------------------------------------------


def open_file(folder: Path, path: str) -> DataFile:
    """Read and check the footer of a file."""
    whole = folder / path
    with _reading(whole), whole.open("rb") as file:
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
            meta,
        )


def read(
    folder: Path, file: DataFile, groups: range | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """These row groups, which follow each other, or all; checked."""
    groups = range(len(file.groups)) if groups is None else groups
    first, last = file.groups[groups[0]], file.groups[groups[-1]]
    start, end = first.start, last.start + last.length
    whole = f"{folder}/{file.path}"
    with _reading(whole), _room(file.size, start, end) as room:
        handle = os.open(whole, os.O_RDONLY)
        try:
            _fill(handle, room, start, end)
        finally:
            os.close(handle)
        for i in groups:
            group = file.groups[i]
            if zlib.crc32(room[group.start : group.start + group.length]) != group.crc:
                raise OSError(f"the checksum of row group {i} is another, or the file is cut")
        # without Arrow's threads: a process that ends while they start is aborted
        opened = pq.ParquetFile(pa.BufferReader(pa.py_buffer(room)), metadata=file.meta)
        names = None if columns is None else list(columns)
        return opened.read_row_groups(list(groups), columns=names, use_threads=False)


def _fill(handle: int, room: memoryview, start: int, end: int) -> None:
    """A stretch of a file into the same place of the room."""
    while start < end:
        done = os.preadv(handle, [room[start : min(end, start + (1 << 30))]], start)
        if not done:
            raise OSError("the file is cut")
        start += done


class _Rooms(threading.local):
    """Memory of a thread to read files into.

    Parquet is decoded out of it, so nobody looks at it afterwards and it serves the next read. It is
    twice as long as the longest file, and only the part that stretches are read into is ever touched:
    the memory is warm then, and as much as the longest stretch.
    """

    room: mmap.mmap | None = None
    used = 0


_ROOMS = _Rooms()


@contextmanager
def _room(size: int, start: int, end: int) -> Iterator[memoryview]:
    """A view as long as the file, whose bytes from start to end can be written: they begin in the middle
    of the room, so the file begins before that."""
    if _ROOMS.room is None or len(_ROOMS.room) < 2 * size:
        _ROOMS.room, _ROOMS.used = mmap.mmap(-1, max(2 * size, 1 << 20), flags=PRIVATE), 0
    room = _ROOMS.room
    begin = len(room) // 2 - start
    yield memoryview(room)[begin : begin + size]
    _ROOMS.used += end - start
    if _ROOMS.used > KEPT_BYTES:
        room.madvise(mmap.MADV_DONTNEED)
        _ROOMS.used = 0


@contextmanager
def _reading(path: Path | str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ArchiveError(
            f"{path} is gone: it was vacuumed, or deleted by another program; take a new snapshot"
        ) from None
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError) as error:
        raise ArchiveError(f"{path}: the archive is damaged: {error}") from None


__all__ = ["DataFile", "Group", "in_order", "open_file", "order_of", "read", "write"]
