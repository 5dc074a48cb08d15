"""The queries by their borders: regions of keys, changes, and what comes back from disk."""

from __future__ import annotations

import pathlib
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limen import QueryError, QuerySet
from limen.engine import Crosser
from limen.engine.monitor import Monitor
from limen.engine.watch import Watch
from limen.testing import oracle
from limen.testing.oracle import Condition

KINDS = {
    "x": pa.int64(),
    "y": pa.float64(),
    "tenant": pa.int64(),
    "symbol": pa.string(),
}
SCHEMA = pa.schema([("who", pa.string()), *KINDS.items()])
ON = ["x", "y"]


@st.composite
def bodies(draw: st.DrawFn) -> list[Condition]:
    """Closed ranges, with the keys in either order, both, one or none."""
    body: list[Condition] = []
    for name, values in (("tenant", [0, 1, 2]), ("symbol", ["IBM", "KO"])):
        if draw(st.booleans()):
            body.append((name, "=", draw(st.sampled_from(values))))
    if draw(st.booleans()):
        body.reverse()
    for name in draw(st.sampled_from([["x"], ["y"], ["x", "y"]])):
        low, width = draw(st.integers(0, 20)), draw(st.sampled_from([0, 1, 5, 20]))
        body += [(name, ">=", low), (name, "<=", low + width)]
    return body


readings = st.lists(
    st.fixed_dictionaries(
        {
            "who": st.sampled_from(["a", "b", "c"]),
            "x": st.integers(-2, 42),
            "y": st.integers(-4, 84).map(lambda i: i / 2),
            "tenant": st.sampled_from([0, 1, 2, 3]),
            "symbol": st.sampled_from(["IBM", "KO", "?"]),
        }
    ),
    max_size=25,
)


def query_set(queries: dict[Any, list[Condition]]) -> QuerySet:
    rows = []
    for who, body in queries.items():
        where: dict[str, dict[str, object]] = {}
        for name, symbol, bound in body:
            where.setdefault(name, {})[symbol] = bound
        rows.append({"id": who, "where": where})
    return QuerySet.of(rows, SCHEMA) if rows else QuerySet.empty("string")


def crossed(monitor: Monitor, margins: dict[str, Any], table: pa.Table) -> Counter[Any]:
    watch = Watch.of(SCHEMA, KINDS, entity="who", on=ON, hysteresis=margins or None)
    found = Crosser(monitor, watch).cross(table).crossings
    return Counter(
        (row["who"], row["query_id"], row["crossing"], row["x"], row["y"])
        for row in found.to_pylist()
    )


@settings(max_examples=settings.default.max_examples // 4)  # type: ignore[union-attr]
@given(
    margins=st.sampled_from([{}, {}, {"x": 2}, {"x": 1, "y": 0.75}]),
    rows=readings,
    data=st.data(),
)
def test_nothing_depends_on_the_history(
    tmp_path_factory: pytest.TempPathFactory,
    margins: dict[str, Any],
    rows: list[dict[str, Any]],
    data: st.DataObject,
) -> None:
    """Added and removed, saved and loaded: the same crossings as of the oracle."""
    folder = tmp_path_factory.mktemp("monitor")
    table = pa.Table.from_pylist(rows, SCHEMA)
    monitor = Monitor(QuerySet.empty("string"), ON, margins)
    queries: dict[Any, list[Condition]] = {}
    for step in range(data.draw(st.integers(1, 4))):
        free = [who for who in "abcdefghij" if who not in queries]
        new = dict(zip(free, data.draw(st.lists(bodies(), max_size=6)), strict=False))
        again = dict(list(queries.items())[:1])
        assert monitor.add(query_set({**again, **new})) == len(new)
        queries |= new
        gone = [who for who in queries if data.draw(st.booleans())]
        assert monitor.remove(gone) == len(gone)
        for who in gone:
            del queries[who]
        if data.draw(st.booleans()):
            monitor.save(folder / str(step), durable=False)
            before = monitor
            monitor = Monitor.load(folder / str(step), margins)
            assert monitor.on == before.on and monitor.attributes == before.attributes
        assert len(monitor) == len(queries)
        assert sorted(monitor.queries().ids.to_pylist()) == sorted(queries)
        expected = Counter(
            (row.entity, row.query, row.crossing, *(row.value or ()))
            for row in oracle.crossings(rows, queries, entity="who", on=ON, margins=margins)
        )
        assert crossed(monitor, margins, table) == expected
        assert crossed(Monitor(monitor.queries(), ON, margins), margins, table) == expected


def test_saved_while_entities_are_inside(tmp_path: pathlib.Path) -> None:
    """A crosser goes on with a monitor that was loaded as with the one that was saved."""
    queries = query_set({"q": [("tenant", "=", 1), ("x", ">=", 5)], "r": [("x", "<=", 7)]})
    watch = Watch.of(SCHEMA, queries.attributes, entity="who", on=ON)
    crosser = Crosser(Monitor(queries, ON), watch)
    row = {"who": "a", "x": 6, "y": 0.0, "tenant": 1, "symbol": "?"}
    assert crosser.cross(pa.Table.from_pylist([row], SCHEMA)).crossings.num_rows == 2
    crosser.monitor.save(tmp_path / "m")
    none = QuerySet.empty("string")
    assert crosser.move_to(Monitor.load(tmp_path / "m"), none, none).num_rows == 0
    found = crosser.cross(pa.Table.from_pylist([{**row, "tenant": 2, "x": 9}], SCHEMA)).crossings
    assert sorted(
        zip(found["query_id"].to_pylist(), found["crossing"].to_pylist(), strict=True)
    ) == [
        ("q", "exit"),
        ("r", "exit"),
    ]


def test_regions_are_of_key_names() -> None:
    x: list[Condition] = [("x", ">=", 3)]
    monitor = Monitor(
        query_set(
            {
                "none": x,
                "t": [("tenant", "=", 1), *x],
                "t2": [("tenant", "=", 2), *x],
                "s": [("symbol", "=", "KO"), *x],
                "both": [("symbol", "=", "KO"), ("tenant", "=", 1)],
            }
        ),
        ON,
    )
    assert {frozenset(keys) for keys in monitor.regions} == {
        frozenset(),
        frozenset({"tenant"}),
        frozenset({"symbol"}),
        frozenset({"tenant", "symbol"}),
    }
    assert {len(region.borders) for region in monitor.regions.values()} == {1, 2}
    assert all(region.margins is None for region in monitor.regions.values())
    assert monitor.nbytes > 0
    assert monitor.some(["both"]).ids.to_pylist() == ["both"]


def test_a_range_on_what_is_not_watched_is_refused_by_name() -> None:
    first = query_set({"a": [("x", ">=", 3)]})
    ranged = query_set({"b": [("x", ">=", 3)], "c": [("x", ">=", 3), ("tenant", ">=", 1)]})
    message = (
        r"query row 1 \(id 'c'\), field 'tenant': asks for a range, "
        "but crossings are watched on x, y only"
    )
    with pytest.raises(QueryError, match=message):
        Monitor(ranged, ON)
    monitor = Monitor(first, ON)
    with pytest.raises(QueryError, match=message):
        monitor.add(ranged)
    assert monitor.queries() == first
    with pytest.raises(QueryError, match="asks for a range, but crossings are watched on x only"):
        Crosser.of(SCHEMA, {"q": "x > 1 AND tenant > 2"}, entity="who", on="x")


def test_what_has_no_borders_is_refused() -> None:
    with pytest.raises(QueryError, match="field 'symbol': is string, which has no borders"):
        Monitor(query_set({"a": [("symbol", "=", "KO")]}), ["symbol"])


def test_a_refused_change_changes_nothing() -> None:
    monitor = Monitor(query_set({"a": [("x", ">=", 3)], "b": [("x", ">=", 4)]}), ON)
    before = monitor.queries()
    with pytest.raises(QueryError, match="the id is in already with another body"):
        monitor.add(query_set({"c": [("x", ">=", 1)], "a": [("x", ">=", 9)]}))
    with pytest.raises(QueryError, match="no query has the id 'x'"):
        monitor.remove(["a", "x"])
    with pytest.raises(QueryError, match="ids are string here, not int64"):
        monitor.add(query_set({7: [("x", ">=", 1)]}))
    with pytest.raises(QueryError, match="field 'x': is int64 here, not float64"):
        monitor.add(QuerySet.of({"c": "x > 1"}, {"x": "float64"}))
    assert monitor.queries() == before
    assert monitor.add(query_set({"a": [("x", ">=", 3)]})) == 0
    assert monitor.add(QuerySet.empty()) == 0


def test_an_emptied_monitor_takes_ids_of_another_kind() -> None:
    monitor = Monitor(query_set({"a": [("x", ">=", 3)]}), ON)
    monitor.remove(["a"])
    assert monitor.add(query_set({7: [("x", ">=", 3)]})) == 1
    assert monitor.id_type == pa.int64() and len(monitor) == 1
