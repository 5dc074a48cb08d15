"""Queries given as a frame, to columns, without Python per row.

Columns: `id`, and either `where` (SQL text), or for each attribute any of `<attribute>_lo`,
`<attribute>_hi`, `<attribute>_bounds` and `<attribute>` itself (equality). Null leaves an end open
or an attribute unconstrained. Several columns of one attribute intersect. Without given types an
attribute has the type of its own columns, and those must agree without loss.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from limen.model.bound_columns import ordinal_ranges
from limen.model.bounds import check_kind
from limen.model.columns import QueryColumns
from limen.model.errors import LimenError, QueryError
from limen.model.ids import id_column
from limen.model.ordinals import Ordinals, plain
from limen.model.rows import from_bodies
from limen.model.types import attribute_type, is_key, lossless, type_name
from limen.model.where import Known

ROLES = ("lo", "hi", "bounds")
_COMMON = (pa.int64(), pa.float64())


def is_frame(queries: object) -> bool:
    return (
        isinstance(queries, (pa.Table, pa.RecordBatch))
        or _is_pandas(queries)
        or hasattr(queries, "__arrow_c_stream__")
    )


def from_frame(frame: object, known: Known | None, bounds: str) -> QueryColumns:
    """Columns of a frame; `bounds` is the kind of ranges without one of their own."""
    check_kind(bounds)
    table = _table(frame)
    if len(set(table.column_names)) < len(table.column_names):
        raise QueryError(f"a column occurs twice: {', '.join(table.column_names)}")
    if "id" not in table.column_names:
        raise QueryError(f"the frame has no column 'id'; it has {', '.join(table.column_names)}")
    ids = id_column(table["id"])
    if "where" in table.column_names and (known is None or "where" not in known):
        return _from_texts(table, ids, known)

    columns = QueryColumns(ids, {}, {}, {}, {})
    for name, roles in _roles(table, known).items():
        try:
            kind = _inferred(roles) if known is None else known.type_of(name)
            if kind is not None and _names_it(roles):
                _add(columns, name, kind, roles, bounds)
        except QueryError as error:
            query_id = None if error.row is None else ids[error.row].as_py()
            raise error.at(query_id=query_id, field=name) from None
    return columns


def _add(
    columns: QueryColumns, name: str, kind: pa.DataType, roles: dict[str, pa.Array], bounds: str
) -> None:
    equal = roles.get("equal")
    columns.attributes[name] = kind
    if is_key(kind):
        if extra := [role for role in ROLES if role in roles]:
            raise QueryError(
                f"{type_name(kind)} takes equality only: name the column {name!r}, "
                f"not '{name}_{extra[0]}'"
            )
        assert equal is not None
        if not lossless(equal.type, kind):
            raise QueryError(f"a column of {type_name(equal.type)} is not {type_name(kind)}")
        columns.keys[name] = equal.cast(kind)
        return

    found: list[tuple[Ordinals, Ordinals]] = []
    if "lo" in roles or "hi" in roles:
        kinds = roles["bounds"].cast(pa.string()).fill_null(bounds) if "bounds" in roles else bounds
        found.append(ordinal_ranges(roles.get("lo"), roles.get("hi"), kinds, kind))
    elif "bounds" in roles:
        raise QueryError(f"'{name}_bounds' needs '{name}_lo' or '{name}_hi' beside it")
    if equal is not None:
        found.append(ordinal_ranges(equal, equal, "[]", kind))
    lo, hi = found[0]
    for other_lo, other_hi in found[1:]:
        lo, hi = np.maximum(lo, other_lo), np.minimum(hi, other_hi)
        if (lo > hi).any():
            raise QueryError(
                f"the value in {name!r} lies outside its own '{name}_lo' and '{name}_hi'",
                row=int((lo > hi).argmax()),
            )
    columns.lo[name], columns.hi[name] = lo, hi


def _from_texts(table: pa.Table, ids: pa.Array, known: Known | None) -> QueryColumns:
    if extra := [name for name in table.column_names if name not in ("id", "where")]:
        raise QueryError(f"a frame with 'where' has 'id' beside it only, not {', '.join(extra)}")
    texts = plain(table["where"])
    if not lossless(texts.type, pa.string()):
        raise QueryError(f"column 'where' is {type_name(texts.type)}, not SQL text")
    if texts.null_count:
        row = texts.is_null().to_pylist().index(True)
        raise QueryError("where is missing (null)", row=row, query_id=ids[row].as_py())
    return from_bodies(ids, texts.to_pylist(), known)


def _roles(table: pa.Table, known: Known | None) -> dict[str, dict[str, pa.Array]]:
    """For each attribute its columns: any of lo, hi, bounds and equal."""
    found: dict[str, dict[str, pa.Array]] = {}
    for column in table.column_names:
        if column == "id":
            continue
        name, role = _role(column, table.column_names, known)
        values = plain(table[column])
        if role == "bounds" and not lossless(values.type, pa.string()):
            raise QueryError(f"column {column!r} is {type_name(values.type)}, not text", field=name)
        found.setdefault(name, {})[role] = values
    return found


def _role(column: str, names: Iterable[str], known: Known | None) -> tuple[str, str]:
    stem, _, role = column.rpartition("_")
    is_part = bool(stem) and role in ROLES
    if known is None:
        if role == "bounds":
            is_part = is_part and (f"{stem}_lo" in names or f"{stem}_hi" in names)
        return (stem, role) if is_part else (column, "equal")
    is_part = is_part and stem in known
    if is_part and column in known:
        raise QueryError(
            f"column {column!r} could be the attribute {column!r} or the {role} of {stem!r}: "
            "rename one of the attributes"
        )
    if is_part:
        return stem, role
    if column not in known:
        raise QueryError(known.unknown(stem if stem and role in ROLES else column))
    return column, "equal"


def _inferred(roles: dict[str, pa.Array]) -> pa.DataType | None:
    """The one type all columns of an attribute fit; None when they hold nothing but null."""
    kinds = [
        array.type for role, array in roles.items() if role != "bounds" and not _is_null(array.type)
    ]
    if not kinds:
        return None
    try:
        kinds = [attribute_type(kind) for kind in kinds]
    except LimenError as error:
        raise QueryError(str(error)) from None
    for candidate in (*kinds, *_COMMON):
        if all(lossless(kind, candidate) for kind in kinds):
            return candidate
    listed = " and ".join(dict.fromkeys(type_name(kind) for kind in kinds))
    raise QueryError(f"its columns have types {listed}: pass attributes= to say which is meant")


def _names_it(roles: dict[str, pa.Array]) -> bool:
    """Does any row say anything of the attribute?"""
    told = (array for role, array in roles.items() if role != "bounds")
    return any(array.null_count < len(array) for array in told) or set(roles) == {"bounds"}


def _is_null(kind: pa.DataType) -> bool:
    return bool(pt.is_null(kind))


def _table(frame: object) -> pa.Table:
    try:
        if _is_pandas(frame):
            return pa.Table.from_pandas(frame, preserve_index=False)
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise QueryError(f"the frame cannot be read as Arrow columns: {error}") from None


def _is_pandas(frame: object) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns")
