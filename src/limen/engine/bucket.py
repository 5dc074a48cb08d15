"""The carried state of some of the entities, in a store that commits with each batch.

In the store lie *entries*: what was known, at the end of a batch, of the entities that the batch touched.
Read in order they give the state. A batch writes one entry of what it touched, so it writes in proportion
to that, and not to what is known. When FAN entries of about one size have gathered they are written anew
as one, so that an entity is written again no more than log(known / touched) times. An entry all of whose
entities are in a newer one is dropped.

A process keeps its copy of a bucket for the next batch. The head of the store names the state by a token;
a copy with another token catches up by the entries that it has not seen, if its own token is one of the
last few of the store, and is otherwise read anew: it may come from a batch that was never committed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from limen.engine.carried import absorb, encode
from limen.engine.crosser import Crosser

I32 = npt.NDArray[np.int32]

FAN = 8
PART_ROWS = 1 << 14  # entities in one value of the store, at most
PAST = 32  # tokens by which a copy is known to be only late
NO_VERSION = -1
NOBODY: I32 = np.empty(0, np.int32)


class Kept(Protocol):
    """The state of a bucket, to be read."""

    def head(self) -> bytes | None: ...
    def part(self, entry: int, part: int) -> bytes: ...


class Store(Kept, Protocol):
    """What a bucket has of the state store."""

    def set_head(self, data: bytes) -> None: ...
    def set_part(self, entry: int, part: int, data: bytes) -> None: ...
    def drop_part(self, entry: int, part: int) -> None: ...


class Entry(NamedTuple):
    id: int
    parts: int
    entities: I32  # numbers of the crosser


class Bucket:
    def __init__(self, fresh: Callable[[], Crosser]) -> None:
        self._make = fresh
        self.crosser = self._fresh()
        self.version = NO_VERSION  # of the queries, at the last batch
        self._clock = self.crosser.clock  # that is in the store
        self._entries: list[Entry] = []
        self._token = ""
        self._past: list[str] = []

    def _fresh(self) -> Crosser:
        crosser = self._make()
        crosser.compacts = False  # the entries know entities by their numbers
        return crosser

    @property
    def is_new(self) -> bool:
        """Is there nothing of it in the store yet?"""
        return not self._token

    def bring_to(self, store: Kept) -> None:
        """Make this the state that is in the store."""
        head = store.head()
        facts: dict[str, Any] = {"token": "", "past": [], "entries": []}
        if head is not None:
            facts = json.loads(head)
        if facts["token"] == self._token:
            return
        if not self._token or self._token not in facts["past"]:
            self.crosser, self._entries = self._fresh(), []
        seen = {entry.id: entry for entry in self._entries}
        self._entries = []
        for number, parts in facts["entries"]:
            if number not in seen:
                found = [absorb(self.crosser, store.part(number, part)) for part in range(parts)]
                seen[number] = Entry(number, parts, np.concatenate([NOBODY, *found]))
            self._entries.append(seen[number])
        self.version = facts.get("version", NO_VERSION)
        self.crosser.clock = facts.get("clock", self.crosser.clock)
        self._clock = self.crosser.clock
        self._token, self._past = facts["token"], facts["past"]

    def save(self, store: Store, touched: I32, version: int) -> None:
        """Write what a batch has touched."""
        compacts = self.crosser.crowded
        if compacts:
            self.crosser.compact()
            touched = np.arange(self.crosser.streams.size, dtype=np.int32)
        before = {entry.id: entry for entry in self._entries}
        if len(touched) or compacts:
            self._put(store, touched, alone=compacts)
        elif (version, self.crosser.clock) == (self.version, self._clock):
            return
        self.version, self._clock = version, self.crosser.clock
        self._past = [*self._past, self._token][-PAST:] if self._token else []
        if compacts:  # who was left out is in no entry: a late copy would still know them
            self._past = []
        self._token = secrets.token_hex(8)
        facts = {
            "token": self._token,
            "past": self._past,
            "version": version,
            "clock": self.crosser.clock,
            "entries": [[entry.id, entry.parts] for entry in self._entries],
        }
        store.set_head(json.dumps(facts).encode())
        for number in before.keys() - {entry.id for entry in self._entries}:
            for part in range(before[number].parts):
                store.drop_part(number, part)

    def _put(self, store: Store, entities: I32, *, alone: bool) -> None:
        """Write an entry of these entities, and of those of the entries that it takes the place of."""
        kept = [] if alone else self._without(entities)
        while (tail := _tail(kept, len(entities))) >= FAN - 1:
            merged = [entry.entities for entry in kept[len(kept) - tail :]]
            entities = np.unique(np.concatenate([entities, *merged]))
            kept = kept[: len(kept) - tail]
        number = secrets.randbits(62)
        blobs = [
            encode(self.crosser, entities[i : i + PART_ROWS])
            for i in range(0, len(entities), PART_ROWS)
        ]
        for part, blob in enumerate(blobs):
            store.set_part(number, part, blob)
        self._entries = [*kept, Entry(number, len(blobs), entities)]

    def _without(self, entities: I32) -> list[Entry]:
        """The entries of which not every entity is among these."""
        covered = np.zeros(self.crosser.streams.size, np.bool_)
        covered[entities] = True
        return [
            entry
            for entry in self._entries
            if len(entry.entities) > len(entities) or not covered[entry.entities].all()
        ]


def _tail(entries: list[Entry], size: int) -> int:
    """How many of the last entries are about as small as this size, or smaller."""
    limit = FAN
    while limit < size:
        limit *= FAN
    found = 0
    while found < len(entries) and len(entries[-1 - found].entities) <= limit:
        found += 1
    return found
