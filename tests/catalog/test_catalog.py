"""Random histories against a dictionary a version."""

from __future__ import annotations

import datetime as dt
import os
import struct
import tempfile
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from limen.catalog import Catalog
from limen.model import QueryError, QuerySet

OPEN = (-(2**63), 2**63 - 1)
NAMED = {"n": "int64", "x": "float64", "s": "string"}
LATER = {"flag": "bool", "day": "date", "u": "int8", 'odd "name". é': "string", "key": "string"}
TYPES = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "int8": pa.int8(),
}
EPOCH = dt.date(1970, 1, 1)

Part = str | bool | tuple[int, int]  # a key, or the ends as whole numbers
Body = dict[str, Part]


class Held(NamedTuple):
    body: Body
    since: int
    expires: int | None


State = dict[str | int, Held]


def ends() -> st.SearchStrategy[tuple[int, int]]:
    pair = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda p: (min(p), max(p)))
    low, high = st.integers(0, 5).map(lambda n: (n, OPEN[1])), st.integers(0, 5)
    return st.one_of(pair, low, high.map(lambda n: (OPEN[0], n)))


def parts(kind: str) -> st.SearchStrategy[Part]:
    if kind == "string":
        return st.sampled_from(["IBM", "", "é", "it's"])
    if kind == "bool":
        return st.booleans()
    return st.one_of(ends(), st.just(OPEN)) if kind == "int64" else ends()


def bodies(types: dict[str, str]) -> st.SearchStrategy[Body]:
    """Mostly small, from few values: the same body comes again."""
    return st.fixed_dictionaries({}, optional={name: parts(kind) for name, kind in types.items()})


def where(body: Body, types: dict[str, str]) -> dict[str, Any]:
    """The body as it is given to the catalog."""
    given: dict[str, Any] = {}
    for name, part in body.items():
        if not isinstance(part, tuple):
            given[name] = part
        elif part == OPEN:
            given[name] = {">=": OPEN[0]}
        else:
            given[name] = {
                sign: _value(end, types[name])
                for sign, end, none in zip((">=", "<="), part, OPEN, strict=True)
                if end != none
            }
    return given


def _value(end: int, kind: str) -> object:
    return {"date": EPOCH + dt.timedelta(days=end), "float64": float(end)}.get(kind, end)


def kept(body: Body) -> Body:
    """Without what constrains nothing."""
    return {name: part for name, part in body.items() if part != OPEN}


def read(queries: QuerySet, types: dict[str, str]) -> dict[str | int, Body]:
    """A set as plain bodies."""
    assert {n: TYPES[types[n]] for n in queries.attributes} == queries.attributes
    found: dict[str | int, Body] = {}
    for row, who in enumerate(queries.ids.to_pylist()):
        body: Body = {}
        for name in queries.attributes:
            if name in queries.keys:
                if (key := queries.keys[name][row].as_py()) is not None:
                    body[name] = key
            elif (pair := (int(queries.lo[name][row]), int(queries.hi[name][row]))) != OPEN:
                floats = types[name] == "float64"
                body[name] = tuple(map(_whole, pair)) if floats else pair  # type: ignore[assignment]
        found[who] = body
    assert len(found) == len(queries)
    assert set(queries.attributes) == {name for body in found.values() for name in body}
    return found


def _whole(ordinal: int) -> int:
    """The float of this ordinal, if it is an end that was given."""
    return ordinal if ordinal in OPEN else int(struct.unpack("<d", struct.pack("<q", ordinal))[0])


class Histories(RuleBasedStateMachine):
    ids: tuple[str | int, ...] = ("a", "b", "é", "it's", "x" * 256)
    id_type = "string"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("limen.catalog.catalog._now", lambda: self.now)
        self.patch.setattr("limen.catalog.catalog.PENDING_ROWS", 4)
        self.now = 1_800_000_000_000_000
        self.types = dict(NAMED)
        self.states: list[State] = [{}]
        self.kinds: list[tuple[str, int, int]] = [("create", 0, 0)]

    @initialize()
    def make(self) -> None:
        path = os.path.join(self.folder.name, "catalog")
        self.handles = [Catalog.open(path, NAMED, ids=self.id_type), Catalog.open(path)]
        assert self.handles[0].id == self.handles[1].id

    def teardown(self) -> None:
        if hasattr(self, "handles"):
            self.all_versions()
        self.patch.undo()
        self.folder.cleanup()

    # -- what happens --------------------------------------------------------------------------

    @rule(data=st.data(), who=st.integers(0, 1), ttl=st.sampled_from([None, None, 5.0, 10.0]))
    def change(self, data: st.DataObject, who: int, ttl: float | None) -> None:
        some = st.lists(st.sampled_from(self.ids), max_size=3)
        new = {q: data.draw(bodies(self.types)) for q in data.draw(some)}
        live = sorted(self.states[-1]) or self.ids
        gone = data.draw(st.lists(st.sampled_from(live), max_size=2))
        self.changed(who, new, gone, ttl)

    @rule(data=st.data(), who=st.integers(0, 1), ttl=st.sampled_from([None, None, 5.0, 10.0]))
    def add(self, data: st.DataObject, who: int, ttl: float | None) -> None:
        absent = [q for q in self.ids if q not in self.states[-1]] or self.ids
        chosen = data.draw(st.lists(st.sampled_from(absent), min_size=1, max_size=3))
        self.changed(who, {q: data.draw(bodies(self.types)) for q in chosen}, [], ttl)

    @rule(data=st.data(), who=st.integers(0, 1), ttl=st.sampled_from([None, 5.0]))
    def add_again(self, data: st.DataObject, who: int, ttl: float | None) -> None:
        held = {q: h.body for q, h in self.states[-1].items()}
        chosen = data.draw(st.lists(st.sampled_from(sorted(held)), max_size=2)) if held else []
        self.changed(who, {q: held[q] for q in chosen}, [], ttl)

    @rule(data=st.data(), who=st.integers(0, 1))
    def replace(self, data: st.DataObject, who: int) -> None:
        if self.states[-1]:
            query = data.draw(st.sampled_from(sorted(self.states[-1])))
            self.changed(who, {query: data.draw(bodies(self.types))}, [query], None)

    @rule(seconds=st.sampled_from([1, 5, 6]))
    def time_goes_by(self, seconds: int) -> None:
        self.now += seconds * 1_000_000

    @rule(who=st.integers(0, 1))
    def expire(self, who: int) -> None:
        due = self.due()
        assert self.handles[who].expiry_is_due() == bool(due)
        receipt = self.handles[who].expire()
        assert (receipt is None) == (not due)
        if receipt is not None:
            assert (receipt.added, receipt.removed) == (0, len(due))
            self.follows({q: h for q, h in self.states[-1].items() if q not in due})
            self.kinds.append(("expiry", 0, len(due)))
        assert not self.handles[who].expiry_is_due()

    @rule(who=st.integers(0, 1))
    def compact(self, who: int) -> None:
        version = self.handles[who].compact()
        if version == len(self.states):
            self.follows(self.states[-1])
            self.kinds.append(("compaction", 0, 0))
        assert version == len(self.states) - 1
        assert len(self.files()) <= 1

    @rule(who=st.integers(0, 1), name=st.sampled_from(sorted(LATER)))
    def declare(self, who: int, name: str) -> None:
        self.handles[who].declare({name: LATER[name]})
        self.types[name] = LATER[name]
        self.idle("declare")

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.handles[who] = Catalog.open(self.handles[who].path)

    @rule()
    def another_program_commits(self) -> None:
        DeltaTable(str(self.handles[0].path)).alter.set_table_description("queries")
        self.idle("foreign")

    @rule(who=st.integers(0, 1))
    def another_program_rewrites_the_files(self, who: int) -> None:
        if self.files():
            DeltaTable(str(self.handles[0].path)).optimize.z_order(["id"])
            self.idle("foreign")

    # -- what the model says -------------------------------------------------------------------

    def due(self) -> set[str | int]:
        held = self.states[-1].items()
        return {q for q, h in held if h.expires is not None and h.expires <= self.now}

    def changed(
        self, who: int, new: dict[Any, Body], gone: list[str | int], ttl: float | None
    ) -> None:
        before, handle = self.states[-1], self.handles[who]
        given = {q: where(body, self.types) for q, body in new.items()}
        left = {q: h for q, h in before.items() if q not in self.due() and q not in gone}
        refused = not before.keys() >= set(gone) or any(
            q in left and kept(left[q].body) != kept(body) for q, body in new.items()
        )
        if refused:
            files = self.files()
            with pytest.raises(QueryError):
                handle.change(given, gone, ttl=ttl)
            assert handle.version == len(self.states) - 1 and self.files() == files
            return
        receipt = handle.change(given, gone, ttl=ttl)
        expires = None if ttl is None else self.now + round(ttl * 1e6)
        same = {q for q in new if q in left and left[q].expires == expires}
        added = {q: Held(b, len(self.states), expires) for q, b in new.items() if q not in same}
        removed = (before.keys() - left.keys()) | (added.keys() & left.keys())
        assert (receipt.added, receipt.removed) == (len(added), len(removed))
        if added or removed:
            self.follows({**left, **added})
            self.kinds.append(("change" if added or gone else "expiry", len(added), len(removed)))
        assert receipt.version == len(self.states) - 1

    def follows(self, state: State) -> None:
        self.states.append(state)

    def idle(self, kind: str) -> None:
        """Versions in which nothing changes, as many as there are."""
        while len(self.states) <= self.handles[0].version:
            self.follows(self.states[-1])
            self.kinds.append((kind, 0, 0))

    def files(self) -> list[str]:
        return sorted(DeltaTable(str(self.handles[0].path)).file_uris())

    # -- what must hold ------------------------------------------------------------------------

    @invariant()
    def newest(self) -> None:
        if not hasattr(self, "handles"):
            return
        state = self.states[-1]
        for handle in self.handles:
            assert handle.version == len(self.states) - 1
            assert len(handle) == len(state)
        handle = self.handles[len(self.states) % 2]
        entries = list(handle.list())
        assert [(e.id, e.since, _moment(e.expires)) for e in entries] == [
            (q, state[q].since, state[q].expires) for q in sorted(state, key=_bytes)
        ]
        assert list(handle.list(2)) == entries[:2]
        for query in self.ids:
            assert handle.get(query) == next((e for e in entries if e.id == query), None)
        self.of_version(handle, len(self.states) - 1)
        self.between(handle, max(0, len(self.states) - 4), len(self.states) - 1)

    def of_version(self, handle: Catalog, version: int) -> None:
        expected = {q: kept(h.body) for q, h in self.states[version].items()}
        assert read(handle.snapshot(version), self.types) == expected

    def between(self, handle: Catalog, first: int, last: int) -> None:
        before, after = self.states[first], self.states[last]
        changes = handle.changes(first, last)
        gone, new = changes.removed.to_pylist(), read(changes.added, self.types)
        assert len(gone) == len(set(gone))
        assert set(gone) == {q for q in before if q not in after or after[q].since > first}
        assert new == {q: kept(h.body) for q, h in after.items() if h.since > first}
        assert len(changes) == len(gone) + len(new)

    def all_versions(self) -> None:
        fresh = Catalog.open(self.handles[0].path)
        for last in range(len(self.states)):
            self.of_version(fresh, last)
            for first in range(last + 1):
                self.between(self.handles[0], first, last)
        for handle in self.handles:
            lines = [(e.kind, e.added, e.removed) for e in reversed(handle.history())]
            assert lines == self.kinds
            for event in handle.history(3):
                assert event.live in (None, len(self.states[event.version]))


def _moment(expires: dt.datetime | None) -> int | None:
    return None if expires is None else round(expires.timestamp() * 1e6)


def _bytes(query: str | int) -> Any:
    return query if isinstance(query, int) else query.encode()


class HistoriesOfNumbers(Histories):
    ids = (0, 1, -5, 2**63 - 1, -(2**63))
    id_type = "int64"


few = settings(max_examples=15, stateful_step_count=12)
TestHistories = Histories.TestCase
TestHistories.settings = few
TestHistoriesOfNumbers = HistoriesOfNumbers.TestCase
TestHistoriesOfNumbers.settings = few
