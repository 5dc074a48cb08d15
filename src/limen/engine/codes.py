"""Dense codes for values, through hash tables in arrays: of key values, and of ids by slot.

Values are kept in a column that only grows; a value's code is its place there. `learn` gives a code to
each distinct value (keys); `append` puts values behind the others, and one that was in before is found
at its new place from then on (ids that come again). A code, once given, stays.

The table, at most half full, is brought up to date when something is looked up, in time proportional
to what is new, and made anew when it is too small. All of it is arrays: it can be saved and mapped,
with spare room, so that what is added later is all that becomes private.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.indexes.protocol import with_room
from limen.indexes.saved import Arrays, padded, spare_rows
from limen.kernels.hashing import find_codes, put_codes
from limen.kernels.text_hashing import find_texts, put_texts

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

SPARE_BYTES = 1 << 15  # of text, beyond an eighth


class _Table:
    """The table from values to codes; what a value is, the two classes below know."""

    def __init__(self) -> None:
        self._size = 0
        self._table: I32 = np.full(32, -1, np.int32)
        self._entered = 0  # codes that the table knows of

    def __len__(self) -> int:
        return self._size

    def _bits(self, size: int) -> int:
        """Bring the table up to date, with room for so many codes; returns its bits."""
        if 2 * size > len(self._table):
            self._table = np.full(1 << (5 * size // 2).bit_length(), -1, np.int32)
            self._entered = 0
        bits = len(self._table).bit_length() - 1
        if self._entered < self._size:
            self._put(bits)
            self._entered = self._size
        return bits

    def _put(self, bits: int) -> None:
        raise NotImplementedError

    def _saved_table(self) -> I32:
        self._bits(spare_rows(self._size))
        return self._table

    @classmethod
    def _of_table(cls, arrays: Arrays, size: int) -> Self:
        codes = cls()
        codes._table, codes._size, codes._entered = arrays["table"], size, size
        return codes


class NumberCodes(_Table):
    """Codes of int64 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._keys = np.empty(0, np.int64)

    @property
    def values(self) -> I64:
        return self._keys[: self._size]

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self._table.nbytes

    def append(self, values: I64) -> None:
        total = self._size + len(values)
        self._keys = with_room(self._keys, total)
        self._keys[self._size : total] = values
        self._size = total

    def learn(self, values: I64) -> I32:
        """The codes of the values, new ones for new values."""
        codes = self.find(values)
        if (codes < 0).any():
            self.append(np.unique(values[codes < 0]))
            codes = self.find(values)
        return codes

    def find(self, values: I64) -> I32:
        """The codes of the values, -1 for unknown ones."""
        codes = np.empty(len(values), np.int32)
        bits = self._bits(self._size)  # first: it may put another table in place
        find_codes(self._table, bits, self._keys, values, codes)
        return codes

    def _put(self, bits: int) -> None:
        put_codes(self._table, bits, self._keys, self._entered, self._size)

    def arrays(self) -> Arrays:
        """What is saved, apart from the length."""
        keys = padded(self._keys, self._size, spare_rows(self._size))
        return {"keys": keys, "table": self._saved_table()}

    @classmethod
    def of_arrays(cls, arrays: Arrays, size: int) -> Self:
        codes = cls._of_table(arrays, size)
        codes._keys = arrays["keys"]
        return codes


class TextCodes(_Table):
    """Codes of strings or booleans; null has none (-1)."""

    def __init__(self) -> None:
        super().__init__()
        self._offsets = np.zeros(1, np.int64)
        self._data = np.empty(0, np.uint8)
        self._seen: pa.Array | None = None

    @property
    def values(self) -> pa.Array:
        """The values by code, as large_string: a view, not a copy."""
        if self._seen is None:
            offsets = self._offsets[: self._size + 1]
            data = self._data[: offsets[-1]]
            self._seen = pa.LargeStringArray.from_buffers(
                self._size, pa.py_buffer(offsets), pa.py_buffer(data)
            )
        return self._seen

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes) + self._table.nbytes

    def append(self, values: pa.Array) -> None:
        """Put values, none of them null, behind the others."""
        ends, texts = bytes_of(values)
        begin, total = self._offsets[self._size], self._size + len(values)
        self._offsets = with_room(self._offsets, total + 1)
        self._offsets[self._size + 1 : total + 1] = begin + ends[1:]
        self._data = with_room(self._data, begin + len(texts))
        self._data[begin : begin + len(texts)] = texts
        self._size, self._seen = total, None

    def learn(self, column: pa.Array) -> I32:
        """The codes of the values, new ones for new values."""
        codes = self.find(column)
        new = (codes < 0) & column.is_valid().to_numpy(zero_copy_only=False)
        if new.any():
            unknown = column.filter(pa.array(new))
            if pa.types.is_dictionary(column.type):
                unknown = unknown.dictionary_decode()
            self.append(unknown.unique().drop_null())
            codes = self.find(column)
        return codes

    def find(self, column: pa.Array) -> I32:
        """The codes of the values, -1 for unknown ones."""
        if pa.types.is_dictionary(column.type):
            if len(column.dictionary) > len(column):
                return self.find(column.dictionary_decode())
            known = np.append(self.find(column.dictionary), np.int32(-1))
            indices = column.indices.cast(pa.int64())  # its own type may not hold one more
            at: I64 = indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
            return known[at]
        ends, texts = bytes_of(column)
        codes = np.empty(len(column), np.int32)
        bits = self._bits(self._size)
        find_texts(self._table, bits, self._offsets, self._data, ends, texts, codes)
        if column.null_count:
            codes[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return codes

    def _put(self, bits: int) -> None:
        put_texts(self._table, bits, self._offsets, self._data, self._entered, self._size)

    def arrays(self) -> Arrays:
        """What is saved, apart from the length."""
        used = int(self._offsets[self._size])
        offsets = padded(self._offsets, self._size + 1, spare_rows(self._size) + 1)
        data = padded(self._data, used, used + used // 8 + SPARE_BYTES)
        return {"offsets": offsets, "data": data, "table": self._saved_table()}

    @classmethod
    def of_arrays(cls, arrays: Arrays, size: int) -> Self:
        codes = cls._of_table(arrays, size)
        codes._offsets, codes._data = arrays["offsets"], arrays["data"]
        return codes


class GroupCodes:
    """One code for a combination of key codes, built pair by pair; -1 in any of them gives -1."""

    def __init__(self, keys: int) -> None:
        self.pairs = [NumberCodes() for _ in range(keys - 1)]

    def learn(self, columns: list[I32]) -> I32:
        return self._fold(columns, new=True)

    def find(self, columns: list[I32]) -> I32:
        return self._fold(columns, new=False)

    def _fold(self, columns: list[I32], *, new: bool) -> I32:
        codes = columns[0]
        for pairs, column in zip(self.pairs, columns[1:], strict=True):
            both = (codes.astype(np.int64) << 32) | column.astype(np.int64)
            unknown = (codes < 0) | (column < 0)
            codes = pairs.learn(both) if new else pairs.find(both)
            codes = np.where(unknown, np.int32(-1), codes)
        return codes


def bytes_of(column: pa.Array) -> tuple[I64, U8]:
    """Where each text ends, from 0 on, and their bytes: arrays of the one kind that kernels take."""
    kind = column.type
    narrow = pa.types.is_string(kind) or pa.types.is_binary(kind)
    if not narrow and not pa.types.is_large_binary(kind):
        column = column.cast(pa.large_string())
    if not len(column):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    _, offsets, data = column.buffers()
    width: Any = np.int32 if narrow else np.int64
    ends = np.frombuffer(offsets, width, len(column) + 1, column.offset * width().itemsize)
    ends = ends.astype(np.int64)
    texts = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    return ends - ends[0], np.require(texts, None, ["C", "W"])
