"""A table from texts to small codes: that of `hashing.py`, for bytes.

Text i is data[offsets[i]:offsets[i + 1]], as in Arrow. `slots` is a power of two long and at most half
full, and holds codes (-1: free). The text of a code that is met is compared byte by byte, so texts
whose hashes agree are told apart. Looking up is a pass over the text's bytes and, nearly always, one
comparison.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from limen.kernels.compiled import leaf, loop
from limen.kernels.hashing import SPREAD
from limen.kernels.memory import I32, I64

U8 = npt.NDArray[np.uint8]

BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a


@leaf
def _home(data: U8, begin: int, end: int, bits: int) -> int:
    mixed = BASIS
    for i in range(begin, end):
        mixed = (mixed ^ np.uint64(data[i])) * PRIME
    mixed ^= mixed >> np.uint64(32)
    return np.int64((mixed * SPREAD) >> np.uint64(64 - bits))


@leaf
def _same(a: U8, i: int, b: U8, j: int, n: int) -> bool:
    k = 0
    while k < n and a[i + k] == b[j + k]:
        k += 1
    return k == n


@leaf
def _place(slots: I32, bits: int, offsets: I64, data: U8, text: U8, begin: int, end: int) -> int:
    """Where in the table the text is, or the free place where it would be."""
    at = _home(text, begin, end, bits)
    n = end - begin
    while slots[at] >= 0:
        other = offsets[slots[at]]
        if offsets[slots[at] + 1] - other == n and _same(data, other, text, begin, n):
            break
        at = (at + 1) & ((1 << bits) - 1)
    return at


@loop
def put_texts(slots: I32, bits: int, offsets: I64, data: U8, begin: int, end: int) -> None:
    """Enter texts begin to end; one that is in already gets the later code."""
    for code in range(begin, end):
        at = _place(slots, bits, offsets, data, data, offsets[code], offsets[code + 1])
        slots[at] = code


@loop
def find_texts(
    slots: I32, bits: int, offsets: I64, data: U8, ends: I64, texts: U8, codes: I32
) -> None:
    """codes[i] = the code of texts[ends[i]:ends[i + 1]], or -1."""
    for i in range(len(codes)):
        codes[i] = slots[_place(slots, bits, offsets, data, texts, ends[i], ends[i + 1])]
