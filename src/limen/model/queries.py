"""The set of standing queries: immutable, columnar, checked before it exists.

Row i of every column belongs to `ids[i]`. Per ordinal attribute `lo` and `hi` hold closed ordinal
ranges, full int64 where the row leaves the attribute open; per key attribute `keys` holds the value
or null. An id occurs once; an attribute is present if some query names it, even to leave it open
(an event needs a value there). Building from a frame of bounds is column work throughout: a few
hundred milliseconds a million rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from limen.model.bounds import check_kind
from limen.model.columns import QueryColumns, settled, taken, widened
from limen.model.errors import LimenError, QueryError
from limen.model.frames import from_frame, is_frame
from limen.model.ordinals import Ordinals
from limen.model.rows import from_mapping, from_rows
from limen.model.types import type_name
from limen.model.where import Known


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class QuerySet:
    """Standing queries as columns.

    >>> queries = QuerySet.of(
    ...     {"q1": {"price": {">=": 40, "<": 50}}, "q2": "price > 45 AND symbol = 'IBM'"},
    ...     attributes={"price": "int32", "symbol": "string"},
    ... )
    >>> queries
    QuerySet(2 queries; price: int32, symbol: string)
    >>> queries.lo["price"], queries.keys["symbol"].to_pylist()
    (array([40, 46]), [None, 'IBM'])
    """

    ids: pa.Array
    attributes: dict[str, pa.DataType]
    lo: dict[str, Ordinals]
    hi: dict[str, Ordinals]
    keys: dict[str, pa.Array]

    @classmethod
    def of(
        cls,
        queries: object,
        attributes: Mapping[str, str | pa.DataType] | pa.Schema | None = None,
        *,
        bounds: str = "[]",
    ) -> QuerySet:
        """The set of these queries, or an error that names the first bad one.

        `queries`: a QuerySet; Query objects or {"id", "where"} mappings; a mapping id -> where; or
        an Arrow, pandas or polars frame (columns: see `limen.model.frames`). `bounds` is the kind
        of a frame's ranges that do not say.

        >>> frame = pa.table({"id": [1, 2], "price_lo": [40.0, None], "price_hi": [50.0, 9.5]})
        >>> QuerySet.of(frame, bounds="[)")
        QuerySet(2 queries; price: float64)
        """
        check_kind(bounds)
        known = None if attributes is None else Known(attributes)
        if isinstance(queries, QuerySet):
            return queries._checked(known)
        if is_frame(queries):
            found = from_frame(queries, known, bounds)
        elif isinstance(queries, Mapping):
            found = from_mapping(queries, known)
        elif isinstance(queries, Iterable) and not isinstance(queries, (str, bytes)):
            found = from_rows(queries, known)
        else:
            raise QueryError(
                f"cannot read queries from a {type(queries).__name__}; use a frame, a list of "
                "queries or a mapping id -> where"
            )
        return cls._of_columns(settled(found))

    @classmethod
    def empty(cls, id_type: str | pa.DataType = "int64") -> QuerySet:
        """No queries; `id_type` is int64 or string."""
        kinds = {"int64": pa.int64(), "string": pa.string()}
        if str(id_type) not in kinds:
            raise QueryError(f"ids are int64 or string, not {id_type}")
        return cls(pa.array([], kinds[str(id_type)]), {}, {}, {}, {})

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        parts = [f"{name}: {type_name(kind)}" for name, kind in self.attributes.items()]
        listed = ", ".join(parts[:8]) + (", ..." if len(parts) > 8 else "")
        count = f"{len(self):,} {'query' if len(self) == 1 else 'queries'}"
        return f"QuerySet({count}; {listed})" if parts else f"QuerySet({count})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuerySet):
            return NotImplemented
        return (
            self.attributes == other.attributes
            and bool(self.ids.equals(other.ids))
            and all(np.array_equal(self.lo[name], other.lo[name]) for name in self.lo)
            and all(np.array_equal(self.hi[name], other.hi[name]) for name in self.hi)
            and all(self.keys[name].equals(other.keys[name]) for name in self.keys)
        )

    __hash__ = None  # type: ignore[assignment]

    def take(self, indices: npt.ArrayLike) -> QuerySet:
        """The queries at these rows, in this order."""
        rows = np.asarray(indices)
        if rows.size == 0:
            rows = rows.astype(np.intp)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise LimenError("take needs a flat sequence of row numbers")
        if rows.size and not (rows.min() >= 0 and rows.max() < len(self)):
            raise LimenError(f"take needs rows from 0 to {len(self) - 1}")
        if len(np.unique(rows)) < rows.size:
            raise LimenError("take needs each row at most once: an id occurs once in a set")
        return self._of_columns(taken(self._columns(), rows.astype(np.intp)))

    def concat(self, other: QuerySet) -> QuerySet:
        """Both sets' queries, these first; the same query in both is kept once."""
        for name, kind in other.attributes.items():
            if self.attributes.get(name, kind) != kind:
                raise QueryError(
                    f"has type {type_name(self.attributes[name])} in one set and "
                    f"{type_name(kind)} in the other",
                    field=name,
                )
        if not len(self) or not len(other):
            return self if len(self) else other
        if self.ids.type != other.ids.type:
            raise QueryError(
                f"one set has {self.ids.type} ids, the other {other.ids.type}: "
                "one set has ids of one kind",
                field="id",
            )
        attributes = {**self.attributes, **other.attributes}
        first, second = widened(self._columns(), attributes), widened(other._columns(), attributes)
        joined = QueryColumns(
            pa.concat_arrays([first.ids, second.ids]),
            attributes,
            {name: np.concatenate([first.lo[name], second.lo[name]]) for name in first.lo},
            {name: np.concatenate([first.hi[name], second.hi[name]]) for name in first.hi},
            {name: pa.concat_arrays([first.keys[name], second.keys[name]]) for name in first.keys},
        )
        return self._of_columns(settled(joined))

    def _columns(self) -> QueryColumns:
        return QueryColumns(self.ids, self.attributes, self.lo, self.hi, self.keys)

    def _checked(self, known: Known | None) -> QuerySet:
        for name, kind in self.attributes.items() if known is not None else ():
            assert known is not None
            if known.type_of(name) != kind:
                raise QueryError(
                    f"has type {type_name(kind)}, not {type_name(known.type_of(name))}", field=name
                )
        return self

    @classmethod
    def _of_columns(cls, columns: QueryColumns) -> QuerySet:
        for ends in (*columns.lo.values(), *columns.hi.values()):
            ends.flags.writeable = False
        return cls(*columns)
