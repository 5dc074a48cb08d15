"""Queries given as Python rows, or as texts beside ids, to columns.

Row by row: a body is lowered once, its ranges written into one array an attribute. The first
refused row is named with its id and field. Cost: some microseconds a condition; large sets come
faster as frames of bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from limen.model.columns import QueryColumns
from limen.model.errors import QueryError
from limen.model.ids import id_array
from limen.model.ordinals import INT64_MAX, INT64_MIN
from limen.model.where import Known, Lowered, Query, Where, lowered


def from_rows(rows: Iterable[object], known: Known | None) -> QueryColumns:
    """Columns of `Query` objects or {"id": ..., "where": ...} mappings."""
    ids: list[object] = []
    wheres: list[Where] = []
    for row, given in enumerate(rows):
        query_id, where = _parts(row, given)
        ids.append(query_id)
        wheres.append(where)
    return from_bodies(id_array(ids), wheres, known)


def from_mapping(queries: Mapping[object, object], known: Known | None) -> QueryColumns:
    """Columns of a mapping from id to where."""
    if set(queries) == {"id", "where"}:
        raise QueryError("this is one query; pass a list of queries, or a mapping id -> where")
    return from_bodies(id_array(list(queries)), list(queries.values()), known)


def from_bodies(ids: pa.Array, wheres: Sequence[object], known: Known | None) -> QueryColumns:
    """Columns of bodies, one beside each id."""
    if known is None:
        if wheres:
            raise QueryError(
                "the types of the attributes are not known: pass attributes=, "
                "such as {'price': 'float64', 'symbol': 'string'}"
            )
        known = Known({})
    bodies: list[Lowered] = []
    for row, where in enumerate(wheres):
        try:
            bodies.append(lowered(where, known))  # type: ignore[arg-type]
        except QueryError as error:
            raise error.at(row=row, query_id=ids[row].as_py()) from None
    return _columns(ids, bodies, known)


def _columns(ids: pa.Array, bodies: list[Lowered], known: Known) -> QueryColumns:
    lo, hi = {}, {}
    texts: dict[str, list[str | bool | None]] = {}
    attributes: dict[str, pa.DataType] = {}
    for row, body in enumerate(bodies):
        for name, part in body.items():
            if name not in attributes:
                attributes[name] = known.type_of(name)
                if isinstance(part, tuple):
                    lo[name] = np.full(len(bodies), INT64_MIN, np.int64)
                    hi[name] = np.full(len(bodies), INT64_MAX, np.int64)
                else:
                    texts[name] = [None] * len(bodies)
            if isinstance(part, tuple):
                lo[name][row], hi[name][row] = part
            else:
                texts[name][row] = part
    keys = {name: pa.array(values, attributes[name]) for name, values in texts.items()}
    return QueryColumns(ids, attributes, lo, hi, keys)


def _parts(row: int, given: object) -> tuple[object, Where]:
    if isinstance(given, Query):
        return given.id, given.where
    if not isinstance(given, Mapping):
        raise QueryError(
            f"a {type(given).__name__} is not a query; use Query or {{'id': ..., 'where': ...}}",
            row=row,
        )
    for needed in ("id", "where"):
        if needed not in given:
            raise QueryError(f"the query has no {needed!r}", row=row)
    if extra := sorted(str(key) for key in given if key not in ("id", "where")):
        raise QueryError(f"a query has 'id' and 'where' only, not {', '.join(extra)}", row=row)
    return given["id"], given["where"]
