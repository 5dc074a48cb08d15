"""Change records: how queries lie in the catalog's table, and what a history of them amounts to.

A record is an added query (its ranges as ordinals, null where it leaves an attribute open; its keys) or a
removed id. Within one version removals come before additions, so a query can be replaced in one commit.

`live` and `net` rest on one invariant, which the writer keeps: the records of an id alternate between
added and removed. Both are column work; Python never sees a single query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from limen.model import INT64_MAX, INT64_MIN, QuerySet, is_key

I64 = npt.NDArray[np.int64]
MOMENT = pa.timestamp("us", tz="UTC")


class Layout(NamedTuple):
    """What the columns of a catalog's table mean. Attributes have numbers: names can be anything.

    A column's name tells its type, so one that a crash in `declare` left behind fits whoever gets its
    number.
    """

    id_type: pa.DataType
    attributes: dict[str, pa.DataType]

    def columns(self) -> dict[str, tuple[str, ...]]:
        """The table's columns of each attribute."""
        return {
            name: (f"{kind}_{i}",) if is_key(kind) else (f"lo_{i}", f"hi_{i}")
            for i, (name, kind) in enumerate(self.attributes.items())
        }

    def schema(self) -> pa.Schema:
        """The columns of a data file; the table has `version` beside them, as its partition."""
        fields = [
            pa.field("added", pa.bool_()),
            pa.field("id", self.id_type),
            pa.field("since", pa.int64()),  # null: the record's own version
            pa.field("expires", MOMENT),
        ]
        for name, columns in self.columns().items():
            kind = self.attributes[name] if is_key(self.attributes[name]) else pa.int64()
            fields += [pa.field(column, kind) for column in columns]
        return pa.schema(fields)


def additions(layout: Layout, queries: QuerySet, expires: pa.Array) -> pa.Table:
    n = len(queries)
    found: dict[str, pa.Array] = {
        "added": pa.array(np.ones(n, np.bool_)),
        "id": queries.ids,
        "since": pa.nulls(n, pa.int64()),
        "expires": expires,
    }
    for name, columns in layout.columns().items():
        if name in queries.keys:
            found[columns[0]] = queries.keys[name]
        elif name in queries.lo:
            lo, hi = queries.lo[name], queries.hi[name]
            is_open = (lo == INT64_MIN) & (hi == INT64_MAX)
            mask = is_open if is_open.any() else None
            found[columns[0]], found[columns[1]] = pa.array(lo, mask=mask), pa.array(hi, mask=mask)
    return _filled(found, layout, n)


def removals(layout: Layout, ids: pa.Array) -> pa.Table:
    n = len(ids)
    return _filled({"added": pa.array(np.zeros(n, np.bool_)), "id": ids}, layout, n)


def _filled(columns: Mapping[str, pa.Array], layout: Layout, n: int) -> pa.Table:
    schema = layout.schema()
    arrays = [columns[f.name] if f.name in columns else pa.nulls(n, f.type) for f in schema]
    return pa.table(arrays, schema=schema)


def at_version(records: pa.Table, version: int) -> pa.Table:
    """The records of one commit, each with its version beside it."""
    versions = pa.array(np.full(len(records), version, np.int64))
    at = records.schema.get_field_index("since")
    if at < 0:
        records = records.append_column("since", versions)
    elif records.column(at).null_count:
        records = records.set_column(at, "since", records.column(at).fill_null(version))
    return records.append_column("version", versions)


def said(records: pa.Table) -> pa.Table:
    """Without the columns that hold nothing but null: a data file need not have them."""
    return records.select(
        [name for name in records.column_names if records.column(name).null_count < len(records)]
    )


def joined(parts: Sequence[pa.Table], layout: Layout) -> pa.Table:
    """Records of several commits; those of before an attribute was declared get nulls for it."""
    empty = at_version(layout.schema().empty_table(), 0)
    return pa.concat_tables([empty, *parts], promote_options="default")


def live(records: pa.Table) -> pa.Table:
    """The added records that no later one removes."""
    gone = records.filter(pc.invert(records.column("added")))
    if not len(gone):
        return records
    last = gone.group_by("id").aggregate([("version", "max")])
    removed_at = pc.index_in(records.column("id"), value_set=_one(last.column("id")))
    rows = removed_at.combine_chunks()
    doubtful = np.flatnonzero(rows.is_valid().to_numpy(zero_copy_only=False))
    at = rows.take(pa.array(doubtful)).to_numpy(zero_copy_only=False)
    versions = records.column("version").take(pa.array(doubtful)).to_numpy()
    added = records.column("added").take(pa.array(doubtful)).to_numpy(zero_copy_only=False)
    stays = added & (last.column("version_max").to_numpy()[at] <= versions)
    kept = np.ones(len(records), np.bool_)
    kept[doubtful] = stays
    return records.filter(pa.array(kept))


def net(records: pa.Table) -> tuple[pa.Array, pa.Table]:
    """What the records change in all: ids to take out first, and then records to take in."""
    added = records.column("added").to_numpy()
    order = np.lexsort((added, records.column("version").to_numpy()))
    codes = _one(records.column("id")).dictionary_encode().indices
    codes = codes.to_numpy(zero_copy_only=False)[order]
    first = order[np.unique(codes, return_index=True)[1]]
    last = order[len(codes) - 1 - np.unique(codes[::-1], return_index=True)[1]]
    gone, new = np.sort(first[~added[first]]), np.sort(last[added[last]])
    return _one(records.column("id").take(pa.array(gone))), records.take(pa.array(new))


def difference(before: pa.Table, after: pa.Table) -> tuple[pa.Array, pa.Table]:
    """The same for two whole states: a query is the same if its id and the version it came in are."""
    gone = before.join(after.select(["id", "since"]), ["id", "since"], join_type="left anti")
    new = after.join(before.select(["id", "since"]), ["id", "since"], join_type="left anti")
    return _one(gone.column("id")), new


def queries_of(layout: Layout, records: pa.Table) -> QuerySet:
    """The queries of added records, over the attributes that some of them constrains."""
    lo, hi, keys, attributes = {}, {}, {}, {}
    for name, columns in layout.columns().items():
        if columns[0] not in records.column_names:
            continue  # declared since the records were read
        found = [_one(records.column(column)) for column in columns]
        if found[0].null_count == len(records):
            continue
        attributes[name] = layout.attributes[name]
        if len(found) == 1:
            keys[name] = found[0]
        else:
            lo[name], hi[name] = _ends(found[0], INT64_MIN), _ends(found[1], INT64_MAX)
    return QuerySet(_one(records.column("id")), attributes, lo, hi, keys)


def _ends(column: pa.Array, open_end: int) -> I64:
    ends: I64 = column.fill_null(open_end).to_numpy(zero_copy_only=False)
    if ends.flags.writeable:
        ends.flags.writeable = False
    return ends


def _one(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined
