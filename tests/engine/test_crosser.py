"""Crossings against the oracle, however readings are cut into tables; queries that come and go."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limen
from limen import LimenError, QueryError, QuerySet
from limen.engine import Crosser
from limen.engine.monitor import Monitor
from limen.testing import oracle
from limen.testing.oracle import Condition, exact, holds, matching, usable, with_margins
from limen.testing.strategies import DOMAINS, EQUALITY_ONLY, conditions, schema, values

EXAMPLES = settings.default.max_examples  # type: ignore[union-attr]

ORDINAL = sorted(set(DOMAINS) - EQUALITY_ONLY)
PLAIN = ["int64", "float64", "timestamp"]
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tenant": (pa.int32(), [0, 1, 2]),
    "symbol": (pa.string(), ["IBM", "KO", ""]),
}
ENTITIES = {"text": ["a", "b", "é", ""], "number": [0, 1, -7, 2**63 - 1]}
DAY_ONE = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)


class Clock(NamedTuple):
    """A kind of time column: its type, the time after so many units, and a span of them."""

    type: pa.DataType
    at: Any
    span: Any


CLOCKS = {
    "number": Clock(pa.int64(), int, int),
    "timestamp": Clock(
        pa.timestamp("ms", tz="UTC"),
        lambda n: DAY_ONE + dt.timedelta(seconds=n),
        lambda n: dt.timedelta(seconds=n),
    ),
    "date": Clock(
        pa.date32(),
        lambda n: dt.date(2024, 3, 1) + dt.timedelta(days=n),
        lambda n: dt.timedelta(days=n),
    ),
}


class World(NamedTuple):
    """What readings look like."""

    on: list[str]
    keys: list[str]
    entity: str  # a kind of entities
    clock: str | None

    @property
    def schema(self) -> pa.Schema:
        kind = pa.string() if self.entity == "text" else pa.int64()
        found = pa.schema([("who", kind), *((name, KEYS[name][0]) for name in self.keys)])
        if self.clock is not None:
            found = found.append(pa.field("at", CLOCKS[self.clock].type))
        return pa.schema([*found, *schema(self.on)])

    @property
    def time(self) -> str | None:
        return None if self.clock is None else "at"

    @property
    def columns(self) -> dict[str, Any]:
        return {"entity": "who", "on": self.on, "time": self.time}

    def table(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(rows, self.schema)


def some_of(names: list[str], n: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), min_size=n, max_size=n, unique=True)


@st.composite
def worlds(draw: st.DrawFn, *, timed: bool = False, on: list[str] = ORDINAL) -> World:
    return World(
        draw(st.sampled_from([1, 1, 2, 3]).flatmap(lambda n: some_of(on, n))),
        draw(st.sampled_from([[], [], ["tenant"], ["symbol"], ["tenant", "symbol"]])),
        draw(st.sampled_from(sorted(ENTITIES))),
        draw(st.sampled_from([*CLOCKS, *([] if timed else [None])])),
    )


def rows_of(world: World, max_size: int = 20) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Readings: few entities, ties in value and time, now and then a null or NaN anywhere."""
    few = st.sampled_from(ENTITIES[world.entity])
    columns: dict[str, st.SearchStrategy[Any]] = {
        "who": st.one_of(few, few, few, few, few, few, few, few, st.none())
    }
    for name in world.keys:
        some = st.sampled_from(KEYS[name][1])
        columns[name] = st.one_of(some, some, some, some, some, some, some, st.none())
    if world.clock is not None:
        at = CLOCKS[world.clock].at
        moments = st.integers(0, 30)
        columns["at"] = st.one_of(*[moments] * 12, st.none()).map(
            lambda n: None if n is None else at(n)
        )
    columns |= {name: values(name) for name in world.on}
    row = st.fixed_dictionaries(columns)
    rows = st.one_of(
        st.lists(row, max_size=max_size), st.lists(row, min_size=max_size // 2, max_size=max_size)
    )
    again = st.tuples(rows, st.lists(st.integers(0, max_size), max_size=4)).map(
        lambda drawn: [*drawn[0], *(drawn[0][i] for i in drawn[1] if i < len(drawn[0]))]
    )
    return st.one_of(rows, again)


@st.composite
def body_of(draw: st.DrawFn, world: World, *, closed: bool = False) -> list[Condition]:
    """Ranges on some watched columns and equalities with some keys: one condition at least."""
    body: list[Condition] = [
        (name, "=", draw(st.sampled_from(KEYS[name][1])))
        for name in world.keys
        if draw(st.booleans())
    ]
    least = 0 if body else 1
    some = draw(st.lists(st.sampled_from(world.on), min_size=least, unique=True))
    for name in some:
        if not closed:
            body += draw(conditions(name))
            continue
        bound = DOMAINS[name].values  # of the column's type, so that it is not rounded
        low, high = draw(bound), draw(bound)
        low, high = (low, high) if low <= high else (high, low)  # type: ignore[operator]
        body += draw(
            st.sampled_from(
                [
                    [(name, ">=", low)],
                    [(name, "<=", high)],
                    [(name, ">=", low), (name, "<=", high)],
                    [(name, "=", low)],
                ]
            )
        )
    return body


def where(body: list[Condition]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for name, symbol, bound in body:
        found.setdefault(name, {})[symbol] = bound
    return found


def asked(queries: dict[Any, list[Condition]]) -> list[dict[str, object]]:
    return [{"id": who, "where": where(body)} for who, body in queries.items()]


def accepted(queries: dict[Any, list[Condition]], world: World) -> dict[Any, list[Condition]]:
    """The queries that are not refused for matching nothing."""
    kept = {}
    for who, body in queries.items():
        try:
            QuerySet.of(asked({who: body}), world.schema)
        except QueryError as error:
            assert any(w in str(error) for w in ("above", "no value", "empty", "together")), error
            continue
        kept[who] = body
    return kept


@st.composite
def query_sets(
    draw: st.DrawFn, world: World, *, closed: bool = False, max_size: int = 8
) -> dict[Any, list[Condition]]:
    least = draw(st.sampled_from([0, max_size // 2]))
    drawn = draw(st.lists(body_of(world, closed=closed), min_size=least, max_size=max_size))
    text = draw(st.booleans())
    return accepted({(f"q{i}" if text else i): body for i, body in enumerate(drawn)}, world)


MARGINS: dict[str, st.SearchStrategy[Any]] = {
    "date": st.integers(0, 3).map(lambda days: dt.timedelta(days=days)),
    "timestamp": st.integers(0, 6).map(lambda halves: dt.timedelta(seconds=halves / 2)),
    "decimal": st.integers(0, 200).map(lambda cents: Decimal(cents) / 100),
}


@st.composite
def margins_of(draw: st.DrawFn, world: World) -> dict[str, Any]:
    some = draw(st.lists(st.sampled_from(world.on), min_size=1, unique=True))
    number = st.one_of(
        st.integers(0, 4), st.integers(0, 8).map(lambda i: i / 4), st.sampled_from([0.1, 1e300])
    )
    return {name: draw(MARGINS.get(name, number)) for name in some}


class Options(NamedTuple):
    """Spans in units of the clock."""

    dwell: int | None = None
    margins: dict[str, Any] | None = None
    ttl: int | None = None
    lateness: int | None = None

    def given(self, world: World) -> dict[str, Any]:
        found: dict[str, Any] = {"hysteresis": self.margins}
        for name in ("dwell", "ttl", "lateness"):
            span = getattr(self, name)
            found[name] = None if span is None else CLOCKS[world.clock or "number"].span(span)
        return found


WAYS = [
    *([], ["dwell"], ["margins"], ["ttl"], ["dwell", "margins"], ["dwell", "ttl"]),
    *(["margins", "ttl"], ["dwell", "margins", "ttl"]),
]


@st.composite
def options_of(draw: st.DrawFn, world: World) -> Options:
    """Dwell, hysteresis and ttl, alone and together."""
    which = draw(st.sampled_from(WAYS))
    spans = st.integers(0, 12)
    timed = world.clock is not None
    ttl = draw(spans) if timed and "ttl" in which else None
    return Options(
        draw(spans) if timed and "dwell" in which else None,
        draw(margins_of(world)) if "margins" in which else None,
        ttl,
        draw(st.integers(0, 15)) if ttl is not None or (timed and draw(st.booleans())) else None,
    )


def rows_in(table: pa.Table, world: World) -> list[tuple[Any, ...]]:
    """Crossings as the oracle has them."""
    found = []
    for row in table.to_pylist():
        value = tuple(row[name] for name in world.on)
        previous = tuple(row[f"previous_{name}"] for name in world.on)
        found.append(
            (
                row["who"],
                row["query_id"],
                row["crossing"],
                row.get("at"),
                None if None in value else value,
                None if None in previous else previous,
            )
        )
    return found


def same(found: list[Any], expected: list[Any]) -> None:
    """The same rows, as often; and of each pair in the same order."""
    assert Counter(found) == Counter(map(tuple, expected))
    alternate(found)


def alternate(found: list[Any], known: set[Any] | None = None) -> set[Any]:
    """An enter comes first, then an exit, and so on; returns who is inside at last."""
    inside = set() if known is None else known
    for who, query, crossing, *_ in found:
        assert ((who, query) in inside) == (crossing == "exit")
        (inside.add if crossing == "enter" else inside.remove)((who, query))
    return inside


def needed(world: World, queries: dict[Any, list[Condition]]) -> list[str]:
    """The columns that a reading cannot do without."""
    named = {name for body in queries.values() for name, _, _ in body}
    return [name for name in world.schema.names if name not in world.keys or name in named]


def readings_in(table: pa.Table) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in table.to_pylist()}


# -- one set of queries ------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(), data=st.data())
def test_crossings_are_the_oracles(world: World, data: st.DataObject) -> None:
    queries = data.draw(query_sets(world, max_size=12))
    table = world.table(data.draw(rows_of(world)))
    made = Crosser.of(table.schema, asked(queries), **world.columns)
    found, quarantine = made.cross(table)
    expected = oracle.crossings(table.to_pylist(), queries, **world.columns)
    same(rows_in(found, world), expected)

    columns = needed(world, queries)
    rows = table.to_pylist()
    good = [row for row in rows if usable(row, columns)]
    assert len(quarantine) == len(rows) - len(good)
    for row in quarantine.to_pylist():
        bad = [name for name in columns if exact(row[name]) is None]
        assert [part.split(":")[0] for part in row["reason"].split("; ")] == bad
    if world.time is not None:
        good.sort(key=lambda row: row["at"])
    last = {row["who"]: row for row in good}
    assert len(made) == len(last)
    shown = ["who", *(["at"] if world.time else []), *world.on]
    by_hand = {who: tuple(row[name] for name in shown) for who, row in last.items()}
    assert readings_in(made.readings()) == set(by_hand.values())
    for query in queries:
        inside = {who for who, row in last.items() if query in matching(row, queries)}
        assert readings_in(made.inside(query)) == {by_hand[who] for who in inside}


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(), data=st.data())
def test_dwell_hysteresis_and_ttl(world: World, data: st.DataObject) -> None:
    options = data.draw(options_of(world))
    queries = data.draw(query_sets(world, closed=options.margins is not None))
    table = world.table(data.draw(rows_of(world)))
    check_tables(world, queries, options, [table])


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(on=PLAIN), data=st.data())
def test_however_readings_are_cut_into_tables(world: World, data: st.DataObject) -> None:
    options = data.draw(options_of(world))
    queries = data.draw(query_sets(world, closed=options.margins is not None))
    rows = data.draw(rows_of(world, 30))
    if world.time is not None:
        rows = [row for row in rows if row["at"] is not None]
        rows.sort(key=lambda row: row["at"])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    parts = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    pieces = [world.table(rows[begin:end]) for begin, end in parts]
    crosser, late = check_tables(world, queries, options, pieces)
    whole, _ = check_tables(world, queries, options, [world.table(rows)])
    assert not late
    good = next((row for row in rows if usable(row, world.schema.names)), None)
    if world.clock is not None and good is not None:  # long after, a stranger: all that is due
        stranger = "z" if world.entity == "text" else 99
        later = world.table([{**good, "who": stranger, "at": CLOCKS[world.clock].at(90)}])
        found = [rows_in(each.cross(later).crossings, world) for each in (crosser, whole)]
        assert Counter(found[0]) == Counter(found[1])
    assert readings_in(crosser.readings()) == readings_in(whole.readings())


@settings(max_examples=EXAMPLES // 2)
@given(world=worlds(timed=True, on=PLAIN), data=st.data())
def test_late_readings_are_set_apart(world: World, data: st.DataObject) -> None:
    """Tables in any order of time: what is late changes nothing."""
    options = data.draw(options_of(world))
    queries = data.draw(query_sets(world, closed=options.margins is not None, max_size=5))
    tables = data.draw(st.lists(rows_of(world, 8), min_size=2, max_size=5))
    check_tables(world, queries, options, [world.table(rows) for rows in tables])


def check_tables(
    world: World, queries: dict[Any, list[Condition]], options: Options, tables: list[pa.Table]
) -> tuple[Crosser, int]:
    """One table after the other, against the oracle on the readings that were in time."""
    spans = options.given(world)
    crosser = Crosser.of(world.schema, asked(queries), **world.columns, **spans)
    columns = needed(world, queries)
    taken: list[dict[str, Any]] = []
    heard: dict[Any, Any] = {}
    clock, n_late = None, 0
    found: list[Any] = []
    for table in tables:
        result = crosser.cross(table)
        found += rows_in(result.crossings, world)
        good = [row for row in table.to_pylist() if usable(row, columns)]
        if world.time is not None:
            good.sort(key=lambda row: row["at"])
        in_time = []
        for row in good:
            now = row.get("at")
            after = row["who"] not in heard or now is None or now >= heard[row["who"]]
            if after and (clock is None or now >= clock):
                heard[row["who"]] = now
                in_time.append(row)
        reasons = result.quarantine.column("reason").to_pylist()
        assert reasons.count("at: late") == len(good) - len(in_time)
        assert len(reasons) == len(table) - len(in_time)
        n_late += len(good) - len(in_time)
        taken += in_time
        if options.lateness is not None and in_time:
            newest = in_time[-1]["at"] - spans["lateness"]
            clock = newest if clock is None else max(clock, newest)
    expected = oracle.crossings(
        taken,
        queries,
        **world.columns,
        dwell=spans["dwell"],
        margins=options.margins,
        ttl=spans["ttl"],
        clock=clock,
    )
    same(found, expected)
    inside = alternate(found)
    for query in queries:
        entities = {row["who"] for row in crosser.inside(query).to_pylist()}
        assert entities == {who for who, other in inside if other == query}
    known = set(heard)
    if spans["ttl"] is not None and clock is not None:
        known = {who for who in heard if not clock - heard[who] > spans["ttl"]}
    assert {row["who"] for row in crosser.readings().to_pylist()} == known
    return crosser, n_late


@settings(max_examples=max(4, EXAMPLES // 40))
@given(
    seed=st.integers(0, 2**32),
    dims=st.integers(1, 3),
    tenants=st.sampled_from([0, 0, 3]),
    shape=st.sampled_from(["plain", "dwell", "margins"]),
)
def test_long_jumps_among_many_queries(seed: int, dims: int, tenants: int, shape: str) -> None:
    rng = np.random.default_rng(seed)
    on = [*PLAIN[:2], "date"]
    world = World(on[:dims], ["tenant"] if tenants else [], "number", "number")
    n = 250
    queries: dict[Any, list[Condition]] = {}
    for i in range(n):
        body: list[Condition] = []
        if tenants and i % 4:
            body.append(("tenant", "=", i % tenants))
        for name in world.on:
            low = int(rng.integers(0, 400))
            high = low + int(rng.choice([0, 3, 40, 400]))
            if name == "date":
                body += [(name, ">=", day(low)), (name, "<=", day(high))]
            else:
                body += [(name, ">=", low), (name, "<=", high)]
        queries[i] = body
    rows, at = [], np.zeros((3, dims), np.int64)
    for t in range(40):
        who = int(rng.integers(0, 3))
        step = 4 if rng.random() < 0.6 else 400
        at[who] = np.clip(at[who] + rng.integers(-step, step + 1, dims), -20, 820)
        row: dict[str, Any] = {"who": who, "at": t}
        row |= {name: plain_value(name, at[who, k]) for k, name in enumerate(world.on)}
        if tenants:
            row["tenant"] = int(rng.integers(0, tenants)) if rng.random() < 0.3 else 0
        rows.append(row)
    margins = dict.fromkeys(on[:dims], 5)
    if "date" in margins:
        margins["date"] = dt.timedelta(days=2)  # type: ignore[assignment]
    options = Options(
        7 if shape == "dwell" else None, margins if shape == "margins" else None, None, None
    )
    check_tables(world, queries, options, [world.table(rows[:15]), world.table(rows[15:])])


def day(n: int) -> dt.date:
    return dt.date(2000, 1, 1) + dt.timedelta(days=n)


def plain_value(name: str, number: np.int64) -> object:
    return {"int64": int, "float64": float, "date": day}[name](int(number))  # type: ignore[operator]


# -- queries that come and go ------------------------------------------------------------------------


class Model:
    """What `Crosser` promises, for queries that change too: plain loops over pairs."""

    def __init__(self, world: World, options: Options, exits: bool, enters: bool) -> None:
        self.world, self.exits, self.enters = world, exits, enters
        self.spans = options.given(world)
        self.margins = options.margins or {}
        self.queries: dict[Any, list[Condition]] = {}
        self.last: dict[Any, dict[str, Any]] = {}
        self.inside: dict[Any, Any] = {}  # by pair: None, or if pending since when, with what
        self.clock: Any = None

    def value(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.world.on)

    def holds(self, row: dict[str, Any], query: Any, *, wide: bool = False) -> bool:
        body = self.queries[query]
        return all(holds(row, c) for c in (with_margins(body, self.margins) if wide else body))

    def read(self, row: dict[str, Any]) -> list[Any]:
        who, found = row["who"], []
        if who in self.last:
            found += self.pass_time(who, row.get("at"))
        before = self.last.get(who)
        previous = None if before is None else self.value(before)
        value, now = self.value(row), row.get("at")
        for query in self.queries:
            was = (who, query) in self.inside
            inside = self.holds(row, query) or (was and self.holds(row, query, wide=True))
            if inside and not was:
                found += self.enter(who, query, now, value, previous)
            elif was and not inside and self.inside.pop((who, query)) is None:
                found.append((who, query, "exit", now, value, previous))
        self.last[who] = row
        return found

    def enter(self, who: Any, query: Any, now: Any, value: Any, previous: Any) -> list[Any]:
        if self.spans["dwell"]:
            self.inside[who, query] = now, value, previous
            return []
        self.inside[who, query] = None
        return [(who, query, "enter", now, value, previous)]

    def pass_time(self, who: Any, now: Any) -> list[Any]:
        """What has become of an entity since its last reading, which was not after `now`."""
        last, ttl, found = self.last[who], self.spans["ttl"], []
        forgotten = ttl is not None and now - last["at"] > ttl
        until = last["at"] + ttl if forgotten else now
        for pair, pending in list(self.inside.items()):
            if pair[0] != who:
                continue
            if pending is not None and until - pending[0] >= self.spans["dwell"]:
                since, value, previous = pending
                found.append((*pair, "enter", since + self.spans["dwell"], value, previous))
                self.inside[pair] = None
            if forgotten and self.inside.pop(pair) is None:
                found.append((*pair, "exit", until, None, self.value(last)))
        if forgotten:
            del self.last[who]
        return found

    def tick(self, clock: Any) -> list[Any]:
        """The end of a table."""
        found = []
        if clock is not None:
            self.clock = clock if self.clock is None else max(self.clock, clock)
        for who, row in list(self.last.items()):
            if row.get("at") is not None:
                now = row["at"] if self.clock is None else max(row["at"], self.clock)
                found += self.pass_time(who, now)
        return found

    def change(self, add: dict[Any, list[Condition]], remove: list[Any]) -> list[Any]:
        add = {q: body for q, body in add.items() if q not in self.queries or q in remove}
        old = {pair: self.inside.pop(pair) for pair in list(self.inside) if pair[1] in remove}
        for query in remove:
            del self.queries[query]
        self.queries |= add
        found = []
        for who, row in self.last.items():
            value, now = self.value(row), row.get("at")
            for query in {**dict.fromkeys(remove), **add}:
                pair = who, query
                was, stays = pair in old, query in add and self.holds(row, query)
                if was and stays:
                    self.inside[pair] = old[pair]
                elif was and old[pair] is None and self.exits:
                    found.append((*pair, "exit", now, value, value))
                elif stays and self.enters:
                    found += self.enter(*pair, now, value, value)
                elif stays:
                    self.inside[pair] = None
        return found


@st.composite
def changes(
    draw: st.DrawFn, world: World, ids: list[Any], queries: dict[Any, Any], *, closed: bool
) -> tuple[dict[Any, list[Condition]], list[Any]]:
    """Queries to add and to remove: some are replaced, some given once more as they are."""
    remove = list(queries)
    if draw(st.integers(0, 5)) > 0:
        remove = [who for who in queries if draw(st.booleans())]
    free = draw(st.permutations([who for who in ids if who not in queries or who in remove]))
    drawn = draw(st.lists(body_of(world, closed=closed), max_size=5))
    add = accepted(dict(zip(free, drawn, strict=False)), world)
    again = {who: queries[who] for who in queries if draw(st.integers(0, 3)) == 0}
    return {**again, **add} if draw(st.booleans()) else {**add, **again}, remove


@settings(max_examples=EXAMPLES // 2)
@given(
    world=worlds(on=PLAIN),
    held=st.booleans(),
    both=st.booleans(),
    data=st.data(),
)
def test_queries_that_come_and_go(
    world: World, held: bool, both: bool, data: st.DataObject
) -> None:
    exits, enters = both or data.draw(st.booleans()), both or data.draw(st.booleans())
    options = data.draw(options_of(world)) if held else Options()
    spans = options.given(world)
    ids: list[Any] = data.draw(st.sampled_from([[*range(6)], [*"abcdef"]]))
    seed: list[Condition] = [(name, "=", KEYS[name][1][0]) for name in world.keys]
    seed += [(name, ">=", data.draw(DOMAINS[name].values)) for name in world.on[:1]]
    model = Model(world, options, exits, enters)
    model.queries = {ids[0]: seed}  # names all keys
    columns = needed(world, model.queries)
    crosser = Crosser.of(
        world.schema,
        asked(model.queries),
        **world.columns,
        **spans,
        exit_on_removal=exits,
        enter_on_add=enters,
    )
    reported: set[Any] = set()
    for step in range(data.draw(st.integers(1, 5))):
        if data.draw(st.booleans()):
            add, remove = data.draw(
                changes(world, ids, model.queries, closed=options.margins is not None)
            )
            found = rows_in(crosser.change(asked(add) or None, remove), world)
            assert Counter(found) == Counter(model.change(add, remove))
        else:
            rows = world.table(data.draw(rows_of(world, 8))).to_pylist()
            if world.clock is not None:  # after all that were before
                for row in rows:
                    if row["at"] is not None:
                        row["at"] += CLOCKS[world.clock].span(40 * step)
            crossed = crosser.cross(world.table(rows))
            found = rows_in(crossed.crossings, world)
            good = [row for row in rows if usable(row, columns)]
            assert len(crossed.quarantine) == len(rows) - len(good)
            if world.clock is not None:
                good.sort(key=lambda row: row["at"])
            expected = [crossing for row in good for crossing in model.read(row)]
            timed = options.lateness is not None and good
            expected += model.tick(good[-1]["at"] - spans["lateness"] if timed else None)
            assert Counter(found) == Counter(expected)
        if both:
            alternate(found, reported)
            assert {query for _, query in reported} <= model.queries.keys()
        for query in model.queries:
            inside = {w for (w, q), pending in model.inside.items() if q == query and not pending}
            assert {row["who"] for row in crosser.inside(query).to_pylist()} == inside
            if both:
                assert inside == {who for who, q in reported if q == query}
            if both and not held:
                assert inside == {w for w, row in model.last.items() if model.holds(row, query)}


# -- by hand -----------------------------------------------------------------------------------------

ROOMS = pa.schema([("room", pa.string()), ("at", pa.int64()), ("temp", pa.float64())])


def rooms(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ROOMS.names, row, strict=True)) for row in rows], ROOMS)


def short(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values())[:4] for row in table.to_pylist()]


def test_late_null_and_nan_readings_change_nothing() -> None:
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room", time="at")
    crosser.cross(rooms(("a", 5, 31.0), ("b", 1, 0.0)))
    before = readings_in(crosser.readings())
    found, bad = crosser.cross(
        rooms(("a", 4, 0.0), ("b", 2, float("nan")), ("b", 2, None), ("b", None, 40.0))
    )
    assert found.num_rows == 0
    assert Counter(bad.column("reason").to_pylist()) == Counter(
        ["at: late", "temp: NaN", "temp: null", "at: null"]
    )
    assert bad.filter(pa.compute.equal(bad["reason"], "at: late")).to_pylist() == [
        {"room": "a", "at": 4, "temp": 0.0, "reason": "at: late"}
    ]
    assert readings_in(crosser.readings()) == before
    assert crosser.inside("hot")["room"].to_pylist() == ["a"]


def test_what_the_clock_has_passed_is_late() -> None:
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room", time="at", lateness=10)
    crosser.cross(rooms(("a", 50, 31.0)))
    found, bad = crosser.cross(rooms(("b", 39, 31.0), ("c", 40, 31.0)))
    assert short(found) == [("c", "hot", "enter", 40)]
    assert bad["room"].to_pylist() == ["b"]
    assert len(crosser) == 2


def test_of_two_readings_at_one_time_the_later_to_come_decides() -> None:
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room", time="at")
    found = crosser.cross(rooms(("a", 5, 31.0), ("a", 5, 29.0), ("a", 5, 32.0))).crossings
    assert [row[2] for row in short(found)] == ["enter", "exit", "enter"]
    assert short(crosser.cross(rooms(("a", 5, 1.0))).crossings) == [("a", "hot", "exit", 5)]
    assert crosser.readings().to_pylist() == [{"room": "a", "at": 5, "temp": 1.0}]


def test_zeros_and_infinities() -> None:
    queries = {"zero": "temp = 0", "top": {"temp": {">=": float("inf")}}, "up": "temp >= -0.0"}
    crosser = Crosser.of(ROOMS, queries, entity="room", time="at")
    found = crosser.cross(
        rooms(("a", 0, -5e-324), ("a", 1, -0.0), ("a", 2, float("inf")), ("a", 3, float("-inf")))
    ).crossings
    assert Counter(short(found)) == Counter(
        [
            ("a", "zero", "enter", 1),
            ("a", "up", "enter", 1),
            ("a", "zero", "exit", 2),
            ("a", "top", "enter", 2),
            ("a", "top", "exit", 3),
            ("a", "up", "exit", 3),
        ]
    )


@pytest.mark.parametrize("first", [{}, QuerySet.empty("string"), QuerySet.empty("int64")])
@pytest.mark.parametrize("new", [{"hot": "temp >= 30"}, {7: "temp >= 30"}])
@pytest.mark.parametrize(
    "options", [{}, {"enter_on_add": True}, {"dwell": 2}, {"hysteresis": 1.0}, {"dwell": 0}]
)
def test_an_empty_set_fills_later(first: Any, new: dict, options: dict) -> None:
    crosser = Crosser.of(ROOMS, first, entity="room", on="temp", time="at", **options)
    assert crosser.cross(rooms(("a", 0, 31.0), ("b", 0, 1.0))).crossings.num_rows == 0
    (who,) = new
    came = crosser.change(new)
    assert short(came) == ([("a", who, "enter", 0)] if "enter_on_add" in options else [])
    found = crosser.cross(rooms(("a", 1, 2.0), ("b", 1, 40.0), ("c", 9, 0.0), ("b", 9, 41.0)))
    at = 1 + options.get("dwell", 0)
    expected = [("a", who, "exit", 1), ("b", who, "enter", at)]
    assert sorted(short(found.crossings)) == expected
    gone = crosser.change(remove=[who])
    assert gone.num_rows == 0 and len(crosser.monitor) == 0
    other = {"x": "temp >= 0"} if who == 7 else {3: "temp >= 0"}
    crosser.change(other)  # ids of the other kind, now that there are none
    (query,) = other
    assert sorted(crosser.inside(query)["room"].to_pylist()) == ["a", "b", "c"]
    assert crosser.cross(rooms(("b", 12, -9.0))).crossings["query_id"].to_pylist() == [query]


def test_ids_of_two_kinds_do_not_meet() -> None:
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room", exit_on_removal=True)
    crosser.cross(rooms(("a", 0, 31.0)))
    with pytest.raises(QueryError, match="ids are string here, not int64"):
        crosser.change({7: "temp >= 30"}, remove=["hot"])
    assert crosser.inside("hot")["room"].to_pylist() == ["a"]


def test_the_same_query_again_is_no_change() -> None:
    crosser = Crosser.of(
        ROOMS, {"hot": "temp >= 30"}, entity="room", exit_on_removal=True, enter_on_add=True
    )
    crosser.cross(rooms(("a", 0, 31.0)))
    assert crosser.change({"hot": "temp >= 30"}).num_rows == 0
    assert crosser.change({"hot": "temp >= 30"}, remove=["hot"]).num_rows == 0
    moved = crosser.change({"hot": "temp >= 35"}, remove=["hot"])
    assert [row[:3] for row in short(moved)] == [("a", "hot", "exit")]


def test_a_refused_change_changes_nothing() -> None:
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30", "h": "temp > 0"}, entity="room", on="temp")
    crosser.cross(rooms(("a", 0, 31.0)))
    with pytest.raises(QueryError, match="the id is in already with another body"):
        crosser.change({"h": "temp > 5", "new": "temp > 1"}, remove=["hot"])
    with pytest.raises(LimenError, match="'height'"):
        crosser.change({"new": "height > 5"}, remove=["hot"])
    with pytest.raises(QueryError, match="no query has the id 'x'"):
        crosser.change({"new": "temp > 1"}, remove=["hot", "x"])
    with pytest.raises(QueryError, match=r"ids are given as a list; for one, \['h'\]"):
        crosser.change(remove="h")
    assert sorted(crosser.monitor.queries().ids.to_pylist()) == ["h", "hot"]
    assert crosser.inside("hot")["room"].to_pylist() == ["a"]
    assert crosser.change(remove=pa.chunked_array([["h"], ["hot"]])).num_rows == 0
    assert len(crosser.monitor) == 0


def test_queries_on_a_column_that_is_not_carried_are_refused() -> None:
    schema = ROOMS.append(pa.field("floor", pa.int64()))
    crosser = Crosser.of(schema, {"hot": "temp >= 30"}, entity="room", on="temp")
    crosser.monitor.add(QuerySet.of({"up": "temp > 3 AND floor = 2"}, schema))
    readings = pa.Table.from_pylist([{"room": "a", "at": 0, "temp": 4.0, "floor": 2}], schema)
    with pytest.raises(LimenError, match="the queries name 'floor' now, which is not carried"):
        crosser.cross(readings)


def test_no_queries_then_some_with_keys() -> None:
    """Which key they will ask for is said beforehand; whoever is inside leaves silently known queries."""
    schema = ROOMS.append(pa.field("floor", pa.int64()))
    crosser = Crosser.of(schema, {}, entity="room", on="temp", keys=["floor"])
    rows = [{"room": "a", "at": 0, "temp": 31.0, "floor": 2}]
    assert len(crosser.cross(pa.Table.from_pylist(rows, schema)).crossings) == 0
    crosser.change(add={"two": "temp >= 30 AND floor = 2", "three": "temp >= 30 AND floor = 3"})
    rows = [rows[0] | {"floor": 3}, rows[0] | {"room": "b", "floor": 3}]
    found = crosser.cross(pa.Table.from_pylist(rows, schema)).crossings
    kinds = zip(*(found[n].to_pylist() for n in ("room", "query_id", "crossing")), strict=True)
    assert sorted(kinds) == [("a", "three", "enter"), ("a", "two", "exit"), ("b", "three", "enter")]


@pytest.mark.parametrize(
    "readings",
    [
        {"room": ["a"], "at": [0], "temp": [31.0]},
        [{"room": "a", "at": 0, "temp": 31.0}],
        pa.RecordBatch.from_pylist([{"room": "a", "at": 0, "temp": 31.0}]),
    ],
)
def test_a_crosser_takes_what_crossings_takes(readings: Any) -> None:
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room")
    assert len(crosser.cross(readings).crossings) == 1


def test_what_a_crosser_does_not_take() -> None:
    with pytest.raises(
        LimenError, match=r"takes the schema of the readings, such as table\.schema"
    ):
        Crosser.of(rooms(("a", 0, 1.0)), {"hot": "temp >= 30"}, entity="room")
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room")
    with pytest.raises(LimenError, match="cannot read events from a NoneType"):
        crosser.cross(None)
    with pytest.raises(LimenError, match="remove=3: give the ids as a list"):
        crosser.change(remove=3)


def test_times_and_spans_as_long_as_there_are() -> None:
    """Spans of more than an int64 holds are long, not negative."""
    end = 2**63 - 1
    forgetful: dict[str, Any] = {"entity": "room", "time": "at", "lateness": 0}
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, ttl=10, **forgetful)
    found = crosser.cross(rooms(("a", -end, 31.0), ("b", end, 0.0))).crossings
    assert short(found) == [("a", "hot", "enter", -end), ("a", "hot", "exit", 10 - end)]
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, ttl=end, dwell=3, **forgetful)
    found = crosser.cross(rooms(("a", 5, 31.0), ("b", 9, 0.0))).crossings
    assert short(found) == [("a", "hot", "enter", 8)]
    for first in (-end, -end - 1):
        crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room", time="at", dwell=3)
        found = crosser.cross(rooms(("a", first, 31.0), ("a", end, 32.0))).crossings
        assert short(found) == [("a", "hot", "enter", first + 3)]
        crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room", time="at", dwell=3)
        assert len(crosser.cross(rooms(("a", first, 31.0))).crossings) == 0
        assert len(crosser.cross(rooms(("a", first + 2, 1.0))).crossings) == 0


def test_an_exit_just_when_the_dwell_time_is_over() -> None:
    queries = {"hot": "temp >= 30"}
    for at, expected in ((4, []), (5, ["enter", "exit"])):
        crosser = Crosser.of(ROOMS, queries, entity="room", time="at", dwell=5)
        crosser.cross(rooms(("a", 0, 31.0)))
        found = crosser.cross(rooms(("a", at, 1.0))).crossings
        assert found["crossing"].to_pylist() == expected
        assert found["temp"].to_pylist() == [31.0, 1.0][: len(expected)]
        assert found["previous_temp"].to_pylist() == [None, 31.0][: len(expected)]


def test_a_forgotten_entity_has_no_value_and_comes_back_without_a_previous_one() -> None:
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, entity="room", time="at", ttl=10, lateness=5)
    crosser.cross(rooms(("a", 0, 31.0)))
    assert crosser.cross(rooms(("b", 15, 1.0))).crossings.num_rows == 0  # 10 by the clock
    found = crosser.cross(rooms(("b", 16, 1.0))).crossings
    assert found.to_pylist() == [
        {
            "room": "a",
            "query_id": "hot",
            "crossing": "exit",
            "at": 10,
            "temp": None,
            "previous_temp": 31.0,
        }
    ]
    assert len(crosser) == 1 and crosser.inside("hot").num_rows == 0
    back = crosser.cross(rooms(("a", 20, 33.0))).crossings.to_pylist()
    assert [(row["crossing"], row["previous_temp"]) for row in back] == [("enter", None)]


def test_the_entity_may_be_a_key_too() -> None:
    queries = {"a": "room = 'a' AND temp > 3", "any": "temp > 5"}
    found = limen.crossings(
        rooms(("a", 0, 4.0), ("b", 0, 4.0), ("b", 1, 6.0)), queries, entity="room"
    )
    assert sorted(row[:3] for row in short(found)) == [("a", "a", "enter"), ("b", "any", "enter")]


def test_the_plain_call_warns_of_quarantine() -> None:
    readings = rooms(("a", 0, 31.0), ("a", None, 3.0), ("b", 0, None))
    with pytest.warns(
        limen.QuarantineWarning, match=r"2 of 3 readings were not taken \(the first: at: null"
    ):
        found = limen.crossings(readings, {"hot": "temp >= 30"}, entity="room", time="at")
    assert short(found) == [("a", "hot", "enter", 0)]
    assert limen.crossings(
        [{"room": "a", "temp": 31.5}], {"hot": "temp >= 30"}, entity="room"
    ).to_pylist() == [
        {"room": "a", "query_id": "hot", "crossing": "enter", "temp": 31.5, "previous_temp": None}
    ]


def test_many_removals_lay_the_set_out_anew() -> None:
    n = 3000
    queries = pa.table({"id": range(n), "temp_lo": np.arange(n) * 1.0, "temp_hi": [n + 0.5] * n})
    for options in ({}, {"hysteresis": 2.0, "dwell": 1}):
        crosser = Crosser.of(ROOMS, queries, entity="room", time="at", **options)
        crosser.cross(rooms(("a", 0, n - 4.0), ("a", 5, n - 4.0), ("a", 6, n - 5.0)))
        crosser.change(remove=range(n - 10))
        assert crosser.monitor._slots.used < 100
        lingers = 1 if options else 0
        inside = [who for who in range(n - 10, n) if crosser.inside(who).num_rows]
        assert inside == [*range(n - 10, n - 4 + lingers)]
        found = crosser.cross(rooms(("a", 7, -1.0))).crossings
        assert sorted(found["query_id"].to_pylist()) == inside


def test_who_lingers_or_waits_is_forgotten_too() -> None:
    options: dict[str, Any] = {"entity": "room", "time": "at", "ttl": 10, "lateness": 0}
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, hysteresis=5, **options)
    crosser.cross(rooms(("a", 0, 31.0), ("a", 1, 27.0)))
    assert short(crosser.cross(rooms(("b", 20, 1.0))).crossings) == [("a", "hot", "exit", 11)]
    assert crosser.cross(rooms(("a", 21, 27.0))).crossings.num_rows == 0  # it does not linger now
    crosser = Crosser.of(ROOMS, {"hot": "temp >= 30"}, dwell=15, **options)
    crosser.cross(rooms(("a", 0, 31.0)))
    assert crosser.cross(rooms(("b", 20, 1.0))).crossings.num_rows == 0
    assert crosser.cross(rooms(("a", 21, 31.0), ("a", 29, 32.0))).crossings.num_rows == 0
    found = crosser.cross(rooms(("a", 36, 1.0))).crossings  # it waits from 21 on, not from 0
    assert short(found) == [("a", "hot", "enter", 36), ("a", "hot", "exit", 36)]


@pytest.mark.parametrize("enters", [True, False])
def test_who_waits_in_a_query_that_is_replaced_waits_on(enters: bool) -> None:
    crosser = Crosser.of(
        ROOMS, {"hot": "temp >= 30"}, entity="room", time="at", dwell=5, enter_on_add=enters
    )
    crosser.cross(rooms(("a", 0, 31.0), ("b", 0, 36.0), ("c", 0, 29.0)))
    crosser.cross(rooms(("a", 3, 32.0), ("b", 3, 37.0)))
    assert crosser.change({"hot": "temp BETWEEN 28 AND 35"}, remove=["hot"]).num_rows == 0
    inside = crosser.inside("hot")["room"].to_pylist()
    assert inside == ([] if enters else ["c"])  # b has left without a word
    rows = rooms(("a", 6, 33.0), ("b", 6, 37.0), ("c", 6, 29.0))
    expected = [("a", "hot", "enter", 5), *([("c", "hot", "enter", 5)] if enters else [])]
    assert sorted(short(crosser.cross(rows).crossings)) == expected
    assert sorted(crosser.inside("hot")["room"].to_pylist()) == ["a", "c"]


def test_who_is_in_a_new_query_for_long_enough_by_the_clock_enters_at_once() -> None:
    crosser = Crosser.of(
        *(ROOMS, {"cold": "temp < 0"}),
        **{"entity": "room", "time": "at", "dwell": 5, "lateness": 0, "enter_on_add": True},
    )
    crosser.cross(rooms(("a", 1, 31.0), ("b", 48, 31.0), ("c", 50, 1.0)))
    assert short(crosser.change({"hot": "temp >= 30"})) == [("a", "hot", "enter", 6)]
    assert crosser.inside("hot")["room"].to_pylist() == ["a"]
    assert short(crosser.cross(rooms(("c", 53, 1.0))).crossings) == [("b", "hot", "enter", 53)]


def test_margins_are_of_the_keys_queries() -> None:
    kinds = pa.schema([("room", pa.string()), ("tenant", pa.int64()), ("temp", pa.int64())])
    queries = {n: f"tenant = {n} AND temp BETWEEN {10 * n} AND {10 * n + 5}" for n in (1, 2, 3)}
    crosser = Crosser.of(kinds, queries, entity="room", on="temp", hysteresis=2)
    seen = []
    for tenant, temp in ((3, 31), (3, 28), (3, 37), (3, 38), (3, 35), (2, 35), (2, 25), (1, 25)):
        row = {"room": "a", "tenant": tenant, "temp": temp}
        found = crosser.cross(pa.Table.from_pylist([row], kinds)).crossings
        seen.append(
            list(zip(*(found[c].to_pylist() for c in ("query_id", "crossing")), strict=True))
        )
    assert seen == [
        *([(3, "enter")], [], [], [(3, "exit")], [(3, "enter")]),
        *([(3, "exit")], [(2, "enter")], [(2, "exit")]),
    ]


def test_a_query_that_comes_again_as_it_was_is_no_change() -> None:
    """As a renewed expiry has it: removed and added, with the same body."""
    schema = pa.schema([("who", pa.string()), ("at", pa.int64()), ("v", pa.int64())])
    options = {"entity": "who", "time": "at", "hysteresis": 5, "exit_on_removal": True}
    crosser = Crosser.of(schema, {"hot": "v >= 30"}, **options)
    crosser.cross(pa.table([["a", "a"], [1, 2], [31, 27]], schema=schema))
    same = crosser.monitor.queries()
    assert len(crosser.move_to(crosser.monitor, same, same)) == 0
    found = crosser.cross(pa.table([["a"], [3], [28]], schema=schema)).crossings
    assert len(found) == 0 and crosser.inside("hot").num_rows == 1


def test_a_monitor_that_leaves_out_what_it_cannot_watch() -> None:
    attributes = {"v": "int64", "speed": "int64", "tenant": "string"}
    queries = {
        "good": "v > 3 AND tenant = 'a'",
        "range": "v > 3 AND speed > 5",
        "other": "v > 3 AND speed = 5",
    }
    given = QuerySet.of(queries, attributes)
    with pytest.warns(UserWarning, match=r"2 queries are left out \(the first: .*'range'.*speed"):
        monitor = Monitor(given, ["v"], lenient=["tenant"])
    assert monitor.queries().ids.to_pylist() == ["good"] and "speed" not in monitor.attributes
    assert monitor.remove(pa.array(["good", "range"])) == 1
    with pytest.warns(UserWarning, match="2 queries are left out"):
        assert monitor.add(given) == 1


def test_polars_frames_are_taken() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"d": ["a"], "v": [4.0]})
    assert len(limen.crossings(frame, {"h": "v > 3"}, entity="d")) == 1


def test_what_is_held_goes_with_its_query_even_if_nobody_says_so() -> None:
    schema = pa.schema([("who", pa.string()), ("at", pa.int64()), ("v", pa.int64())])
    crosser = Crosser.of(schema, {"hot": "v >= 30"}, entity="who", time="at", dwell=5)
    crosser.cross(pa.table([["a"], [1], [31]], schema=schema))
    none = QuerySet.empty("string")
    other = Monitor(QuerySet.of({"mild": "v < 30"}, {"v": "int64"}), ["v"])
    assert len(crosser.move_to(other, none, none)) == 0 and crosser.touched.tolist() == [0]
    assert len(crosser.cross(pa.table([["a"], [9], [31]], schema=schema)).crossings) == 0
