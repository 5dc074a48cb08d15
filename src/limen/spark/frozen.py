"""A fixed set of queries for the workers: a catalog of one version, named by what is in it.

The workers read it from disk, so the folder must be one that they see: LIMEN_SPOOL, or a folder in the
user's cache, which will do for one machine. The same queries again are the same folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from limen.catalog import Catalog, CatalogError
from limen.engine.versions import default_cache
from limen.model import QuerySet, type_name


def frozen(queries: QuerySet) -> Catalog:
    folder = _spool() / _digest(queries)
    if folder.exists():
        try:
            catalog = Catalog.open(folder)
            if len(catalog.snapshot()) == len(queries):
                return catalog
        except CatalogError:
            pass
        shutil.rmtree(folder, ignore_errors=True)  # damaged: made again
    beside = folder.with_name(f".{folder.name}.{uuid.uuid4()}")
    Catalog.open(beside, queries.attributes, ids=queries.ids.type).add(queries)
    try:
        beside.rename(folder)
    except OSError:  # somebody else has just put the same there
        shutil.rmtree(beside, ignore_errors=True)
    return Catalog.open(folder)


def _spool() -> Path:
    spool = os.environ.get("LIMEN_SPOOL")
    return Path(spool) if spool else default_cache() / "sets"


def _digest(queries: QuerySet) -> str:
    """Of what is in the set, in whatever order."""
    found = hashlib.blake2b(digest_size=16)
    queries = queries.take(pc.sort_indices(queries.ids).to_numpy())
    columns: list[tuple[str, pa.Array]] = [("id", queries.ids)]
    for name, kind in sorted(queries.attributes.items()):
        found.update(f"{name}\0{type_name(kind)}\0".encode())
        if name in queries.keys:
            columns.append((name, queries.keys[name]))
        else:
            columns += [(name, pa.array(queries.lo[name])), (name, pa.array(queries.hi[name]))]
    for name, column in columns:
        found.update(f"{name}\0{column.type}\0{len(column)}\0".encode())
        batch = pa.record_batch([column], names=["c"])
        found.update(batch.serialize())
    return found.hexdigest()
