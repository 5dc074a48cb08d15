"""Which bucket each entity of a column belongs to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.engine.codes import bytes_of
from limen.kernels.buckets import bucket_numbers, bucket_texts


def buckets_of(column: pa.ChunkedArray, buckets: int) -> npt.NDArray[np.uint32]:
    """The bucket of each entity; a missing one belongs to the first."""
    names = column.combine_chunks()
    if isinstance(names, pa.ChunkedArray):
        names = names.chunk(0)
    if pa.types.is_dictionary(names.type):
        names = names.dictionary_decode()
    found = np.empty(len(names), np.int32)
    if pa.types.is_integer(names.type):
        numbers = names.cast(pa.int64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False)
        bucket_numbers(np.require(numbers, np.int64, ["C", "W"]), buckets, found)
    else:
        ends, texts = bytes_of(names)
        bucket_texts(ends, texts, buckets, found)
    if names.null_count:
        found[names.is_null().to_numpy(zero_copy_only=False)] = 0
    return found.astype(np.uint16) if buckets <= 1 << 16 else found.astype(np.uint32)
