"""Bitmap vectors of the VCI paper: for each position, which active constructs cover it.

Row j begins at the label base + step * j: with base = step = 0 it has a bit for every construct (VCI,
section 2.2), else only for the covering segment of position j, whose least label that is (bitmap
clipping, section 3). A search walks the set bits of one row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from limen.kernels.compiled import leaf

U64 = npt.NDArray[np.uint64]

if config.DISABLE_JIT:

    def lowest_bit(word: int) -> int:
        return (int(word) & -int(word)).bit_length() - 1

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def lowest_bit(typingctx: Any, word: Any) -> Any:
        """The position of the lowest bit that is set, of a word that is not zero."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.IntType(1)(1))  # zero is not asked for

        return types.int64(types.uint64), codegen


@leaf
def set_bits(bits: U64, base: int, step: int, label: int, first: int, last: int) -> None:
    """A construct that covers first..last has become active."""
    for j in range(first, min(last + 1, len(bits))):
        at = label - base - step * j
        bits[j, at >> 6] |= np.uint64(1) << np.uint64(at & 63)


@leaf
def clear_bits(bits: U64, base: int, step: int, label: int, first: int, last: int) -> None:
    """Its list is empty again."""
    for j in range(first, min(last + 1, len(bits))):
        at = label - base - step * j
        bits[j, at >> 6] &= ~(np.uint64(1) << np.uint64(at & 63))
