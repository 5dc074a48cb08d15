"""What a catalog hands out: a receipt for a change, entries, changes between versions, history."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from limen.catalog import bindings
from limen.model import QuerySet


@dataclass(frozen=True)
class Receipt:
    """A change that is committed: in force for every batch bound to `version` or a later one."""

    catalog: Path
    version: int
    added: int
    removed: int
    time: datetime

    def wait(self, stream: Any, timeout: float = 60.0) -> int:
        """Wait for the first batch of a running stream that sees this change; returns its number.

        `stream`: a StreamingQuery, or its id. A stream without new events runs no batch: then this
        times out.
        """
        name = str(getattr(stream, "id", stream))
        until = time.monotonic() + timeout
        while True:
            bound = bindings.bindings(self.catalog, name)
            for batch, version in bound.items():
                if version >= self.version:
                    return batch
            if time.monotonic() > until:
                seen = (
                    f"its newest batch saw version {max(bound.values())}" if bound else "no batch"
                )
                raise TimeoutError(
                    f"stream {name}: no batch has seen version {self.version} of {self.catalog} "
                    f"within {timeout:g} s ({seen})"
                )
            time.sleep(0.02)


class Entry(NamedTuple):
    """A query as it stands in the catalog."""

    id: str | int
    where: str
    since: int  # the version in which it came
    expires: datetime | None


class Changes(NamedTuple):
    """From one version to another: take `removed` out, then take `added` in."""

    first: int
    last: int
    removed: pa.Array
    added: QuerySet

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)


class Event(NamedTuple):
    """A line of the catalog's history."""

    version: int
    time: datetime
    kind: str  # create, change, expiry, compaction, declare, vacuum; "foreign" if not written by limen
    added: int
    removed: int
    live: int | None
