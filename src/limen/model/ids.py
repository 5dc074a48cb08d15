"""Query ids: int64, or text of 1 to 256 UTF-8 bytes without control characters.

All ids of a set are of one kind. Checks are column work; the first bad row is named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from limen.model.errors import QueryError
from limen.model.ordinals import plain
from limen.model.types import lossless, type_name

MAX_ID_BYTES = 256
CONTROL_CHARACTERS = (
    r"[\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]"  # C0, C1, line ends, bidi
)


def id_column(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The ids of a frame's column, as int64 or string."""
    column = plain(column)
    if not len(column) and pt.is_null(column.type):
        return pa.array([], pa.int64())
    if column.null_count:
        raise QueryError("an id is missing (null)", row=_first(column.is_null()), field="id")
    if lossless(column.type, pa.string()):
        ids = column.cast(pa.string())
        _check_text(ids)
        return ids
    if pt.is_uint64(column.type):
        too_large = pc.greater(column, pa.scalar(2**63 - 1, pa.uint64()))
        if (row := _first(too_large)) is not None:
            raise QueryError(f"id {column[row]} does not fit int64", row=row, field="id")
    if not pt.is_integer(column.type):
        raise QueryError(
            f"ids of type {type_name(column.type)} are not supported; use int64 or string",
            field="id",
        )
    return column.cast(pa.int64())


def id_array(ids: Sequence[object]) -> pa.Array:
    """The ids of Python rows, as int64 or string."""
    first_kind: type | None = None
    for row, value in enumerate(ids):
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            kind: type = int
            if not -(2**63) <= value < 2**63:
                raise QueryError(f"id {value} does not fit int64", row=row, field="id")
        elif isinstance(value, str):
            kind = str
        else:
            problem = "is missing" if value is None else f"{value!r} is a {type(value).__name__}"
            raise QueryError(f"id {problem}; use an int or a str", row=row, field="id")
        if first_kind is None:
            first_kind = kind
        elif kind is not first_kind:
            raise QueryError(
                f"id {value!r} is a {kind.__name__}, the ids before it are "
                f"{first_kind.__name__}: one set has ids of one kind",
                row=row,
                field="id",
            )
    if first_kind is not str:
        return pa.array(ids, pa.int64())
    try:
        column = pa.array(ids, pa.string())
    except UnicodeEncodeError:
        row = next(i for i, text in enumerate(ids) if not _encodes(str(text)))
        raise QueryError("id is not valid Unicode text", row=row, field="id") from None
    _check_text(column)
    return column


def _check_text(ids: pa.Array) -> None:
    length = pc.binary_length(ids)
    for refused, reason in (
        (pc.equal(length, 0), "id is empty"),
        (pc.greater(length, MAX_ID_BYTES), f"id is longer than {MAX_ID_BYTES} bytes of UTF-8"),
        (pc.match_substring_regex(ids, CONTROL_CHARACTERS), "id has a control character"),
    ):
        if (row := _first(refused)) is not None:
            text = ids[row].as_py()
            shown = None if not text or len(text) > 80 else text
            raise QueryError(reason, row=row, query_id=shown, field="id")


def _first(mask: pa.Array) -> int | None:
    row = pc.index(mask, True).as_py()
    return None if row < 0 else int(row)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
