"""Which bucket an entity belongs to: a hash of its name, the same in every process and for ever."""

from __future__ import annotations

import numpy as np

from limen.kernels.compiled import loop
from limen.kernels.hashing import SPREAD
from limen.kernels.memory import I32, I64
from limen.kernels.text_hashing import BASIS, PRIME, U8


@loop
def bucket_numbers(xs: I64, buckets: int, out: I32) -> None:
    """out[i] = the bucket of the number xs[i]."""
    for i in range(len(xs)):
        mixed = np.uint64(xs[i]) * SPREAD
        mixed ^= mixed >> np.uint64(32)
        mixed *= SPREAD
        out[i] = np.int64((mixed >> np.uint64(33)) % np.uint64(buckets))


@loop
def bucket_texts(ends: I64, data: U8, buckets: int, out: I32) -> None:
    """out[i] = the bucket of the text data[ends[i]:ends[i + 1]]."""
    for i in range(len(out)):
        mixed = BASIS
        for j in range(ends[i], ends[i + 1]):
            mixed = (mixed ^ np.uint64(data[j])) * PRIME
        mixed ^= mixed >> np.uint64(32)
        mixed *= SPREAD
        out[i] = np.int64((mixed >> np.uint64(33)) % np.uint64(buckets))
