"""Dense codes for key values: text through a dictionary, integers through a hash table.

A code, once given, stays. Text costs Python time per distinct value of a batch, not per row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from limen.kernels.hashing import find_codes, put_codes

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


class TextCodes:
    """Codes of strings or booleans; null has none (-1)."""

    def __init__(self) -> None:
        self.codes: dict[object, int] = {}

    def __len__(self) -> int:
        return len(self.codes)

    def _of_distinct(self, column: pa.Array, *, new: bool) -> I32:
        encoded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
        distinct = encoded.dictionary.to_pylist()
        if new:
            for value in distinct:
                self.codes.setdefault(value, len(self.codes))
        known = np.array([self.codes.get(value, -1) for value in distinct] + [-1], np.int32)
        indices = encoded.indices.cast(pa.int64())  # its own type may not hold one more
        at: I64 = pc.fill_null(indices, len(distinct)).to_numpy(zero_copy_only=False)
        return known[at]

    def learn(self, column: pa.Array) -> I32:
        """The codes of the values, new ones for new values."""
        return self._of_distinct(column, new=True)

    def find(self, column: pa.Array) -> I32:
        """The codes of the values, -1 for unknown ones."""
        return self._of_distinct(column, new=False)


class NumberCodes:
    """Codes of int64 numbers."""

    def __init__(self) -> None:
        self._keys = np.empty(16, np.int64)
        self._bits = 5
        self._slots = np.full(1 << self._bits, -1, np.int32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def learn(self, values: I64) -> I32:
        distinct = np.unique(values)
        fresh = distinct[self.find(distinct) < 0]
        total = self._size + len(fresh)
        if total > len(self._keys):
            keys = np.empty(max(total, 2 * len(self._keys)), np.int64)
            keys[: self._size] = self._keys[: self._size]
            self._keys = keys
        self._keys[self._size : total] = fresh
        first = self._size
        if 2 * total > len(self._slots):
            self._bits = (4 * total).bit_length()
            self._slots = np.full(1 << self._bits, -1, np.int32)
            first = 0
        put_codes(self._slots, self._bits, self._keys, first, total)
        self._size = total
        return self.find(values)

    def find(self, values: I64) -> I32:
        codes = np.empty(len(values), np.int32)
        find_codes(self._slots, self._bits, self._keys, values, codes)
        return codes


class GroupCodes:
    """One code for a combination of key codes, built pair by pair; -1 in any of them gives -1."""

    def __init__(self, keys: int) -> None:
        self._pairs = [NumberCodes() for _ in range(keys - 1)]

    def learn(self, columns: list[I32]) -> I32:
        return self._fold(columns, new=True)

    def find(self, columns: list[I32]) -> I32:
        return self._fold(columns, new=False)

    def _fold(self, columns: list[I32], *, new: bool) -> I32:
        codes = columns[0]
        for pairs, column in zip(self._pairs, columns[1:], strict=True):
            both = (codes.astype(np.int64) << 32) | column.astype(np.int64)
            unknown = (codes < 0) | (column < 0)
            codes = pairs.learn(both) if new else pairs.find(both)
            codes = np.where(unknown, np.int32(-1), codes)
        return codes
