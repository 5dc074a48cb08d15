"""The matcher against the oracle: every type, bound kind and emission, and sets that change."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limen
from limen import Matcher, QueryError, QuerySet
from limen.engine import matcher as matcher_module
from limen.testing.oracle import Condition, exact, matching
from limen.testing.strategies import DOMAINS, INT64, bodies, events, schema

UNJITTED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
NAMES = st.lists(st.sampled_from(sorted(DOMAINS)), min_size=1, max_size=4, unique=True)


def where(body: list[Condition]) -> dict[str, dict[str, object]]:
    """The conditions as `QuerySet.of` takes them; a repeated operator is left to the later one."""
    found: dict[str, dict[str, object]] = {}
    for name, symbol, bound in body:
        found.setdefault(name, {})[symbol] = bound
    return found


def accepted(
    bodies_by_id: dict[Any, list[Condition]], names: list[str]
) -> dict[Any, list[Condition]]:
    """The queries that are not refused for matching nothing."""
    kept = {}
    for who, body in bodies_by_id.items():
        try:
            QuerySet.of([{"id": who, "where": where(body)}], schema(names))
        except QueryError as error:
            assert any(w in str(error) for w in ("above", "no value", "empty", "together")), error
            continue
        kept[who] = body
    return kept


def query_set(bodies_by_id: dict[Any, list[Condition]], names: list[str]) -> QuerySet:
    return QuerySet.of(
        [{"id": w, "where": where(b)} for w, b in bodies_by_id.items()], schema(names)
    )


SAYS_NOTHING = {  # true of every value of its type, and so no condition
    ("int64", ">=", -(2**63)),
    ("int64", "<=", 2**63 - 1),
    ("uint64", ">=", 0),
    ("uint64", "<=", 2**64 - 1),
}


def check(
    matcher: Matcher, bodies_by_id: dict[Any, list[Condition]], rows: list, names: list
) -> None:
    bodies_by_id = {
        who: [condition for condition in body if condition not in SAYS_NOTHING]
        for who, body in bodies_by_id.items()
    }
    table = pa.Table.from_pylist([{**row, "n": n} for n, row in enumerate(rows)], with_row(names))
    rows = table.to_pylist()
    needed = {name for body in bodies_by_id.values() for name, _, _ in body} & set(
        matcher.attributes
    )
    needed |= set(matcher.attributes)
    good = [row for row in rows if all(exact(row[name]) is not None for name in needed)]
    expected = {row["n"]: matching(row, bodies_by_id) for row in good}

    matched, quarantine = matcher.match(table, "rows")
    found = Counter(zip(matched["n"].to_pylist(), matched["query_id"].to_pylist(), strict=True))
    assert found == Counter((n, who) for n, ids in expected.items() for who in ids)
    assert sorted(quarantine["n"].to_pylist()) == sorted({r["n"] for r in rows} - expected.keys())
    for row in quarantine.to_pylist():
        bad = [name for name in needed if exact(row[name]) is None]
        assert sorted(part.split(":")[0] for part in row["reason"].split("; ")) == sorted(bad)

    lists = matcher.match(table, "ids").matches
    assert lists["n"].to_pylist() == list(expected)
    assert [sorted(ids, key=str) for ids in lists["query_ids"].to_pylist()] == [
        sorted(ids, key=str) for ids in expected.values()
    ]
    counts = matcher.match(table, "count", columns=["n"]).matches
    assert counts.to_pydict() == {
        "n": list(expected),
        "matches": [len(i) for i in expected.values()],
    }


def with_row(names: list[str]) -> pa.Schema:
    return schema(names).append(pa.field("n", pa.int64()))


@given(names=NAMES, data=st.data())
def test_matches_are_the_oracles(names: list[str], data: st.DataObject) -> None:
    drawn = data.draw(st.lists(bodies(names), max_size=12))
    queries = accepted(dict(enumerate(drawn)), names)
    check(Matcher(query_set(queries, names)), queries, data.draw(events(names)), names)


@given(names=NAMES, data=st.data())
def test_refused_queries_would_match_nothing(names: list[str], data: st.DataObject) -> None:
    drawn = dict(enumerate(data.draw(st.lists(bodies(names), max_size=8))))
    refused = {who: drawn[who] for who in drawn.keys() - accepted(drawn, names).keys()}
    table = pa.Table.from_pylist(data.draw(events(names)), schema(names))
    assert all(not matching(row, refused) for row in table.to_pylist())


@given(names=NAMES, data=st.data())
def test_histories_of_adding_and_removing(names: list[str], data: st.DataObject) -> None:
    rows = data.draw(events(names))
    matcher, queries = Matcher(QuerySet.empty("string")), {}
    for step in range(data.draw(st.integers(1, 4))):
        drawn = data.draw(st.lists(bodies(names), max_size=6))
        new = accepted({f"{step}-{i}": body for i, body in enumerate(drawn)}, names)
        again = dict(list(queries.items())[:2])
        if new or again:
            assert matcher.add(query_set({**again, **new}, names)) == len(new)
        queries |= new
        gone = [who for who in queries if data.draw(st.booleans())]
        assert matcher.remove(gone) == len(gone)
        for who in gone:
            del queries[who]
        assert len(matcher) == len(queries)
        check(matcher, queries, rows, names)
    assert sorted(matcher.queries().ids.to_pylist()) == sorted(queries)
    check(Matcher(matcher.queries()), {**queries}, rows, names)


def constrained(who: Any, body: list[Condition], names: list[str]) -> set[str]:
    """The attributes of which the query leaves something out."""
    one = query_set({who: body}, names)
    whole = (INT64[0], INT64[1])
    open_ = {name for name in one.lo if (one.lo[name][0], one.hi[name][0]) == whole}
    return set(one.attributes) - open_


@settings(max_examples=30 if UNJITTED else 120)
@given(names=NAMES, text=st.booleans(), data=st.data())
def test_nothing_depends_on_the_history(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], text: bool, data: st.DataObject
) -> None:
    rows = data.draw(events(names))
    folder = tmp_path_factory.mktemp("history")
    matchers = [Matcher(QuerySet.empty("string" if text else "int64"))]
    queries: dict[Any, list[Condition]] = {}
    for step in range(data.draw(st.integers(1, 5))):
        drawn = data.draw(st.lists(bodies(names), max_size=5))
        free = [who for who in range(12) if (str(who) if text else who) not in queries]
        new = {(str(who) if text else who): body for who, body in zip(free, drawn, strict=False)}
        new = {
            who: body
            for who, body in accepted(new, names).items()
            if constrained(who, body, names) == {name for name, _, _ in body}
        }
        gone = [who for who in queries if data.draw(st.booleans())]
        for matcher in matchers:
            assert matcher.add(query_set(new, names)) == len(new)
            assert matcher.remove(gone) == len(gone)
        queries |= new
        for who in gone:
            del queries[who]
        if data.draw(st.booleans()):
            matchers[-1].save(folder / str(step), durable=False)
            matchers[1:] = [Matcher.load(folder / str(step))]
        needed = {name for body in queries.values() for name, _, _ in body}
        for matcher in (*matchers, Matcher(matchers[0].queries())):
            assert matcher.attributes == {name: schema(names).field(name).type for name in needed}
            check(matcher, queries, rows, names)


PRICES = {"price": "float64"}


def test_a_refused_change_changes_nothing() -> None:
    matcher = Matcher(QuerySet.of({"a": "price > 1", "b": "price > 2"}, PRICES))
    before = matcher.queries()
    with pytest.raises(
        QueryError, match=r"row 1 \(id 'a'\): the id is in already with another body"
    ):
        matcher.add(QuerySet.of({"c": "price > 3", "a": "price > 9"}, PRICES))
    with pytest.raises(QueryError, match="field 'price': is float64 here, not int64"):
        matcher.add(QuerySet.of({"c": "price > 3"}, {"price": "int64"}))
    with pytest.raises(QueryError, match="ids are string here, not int64"):
        matcher.add(QuerySet.of({7: "price > 3"}, PRICES))
    with pytest.raises(QueryError, match="no query has the id 'x'"):
        matcher.remove(["a", "x"])
    assert matcher.queries() == before
    assert matcher.match(pa.table({"price": [1.5]})).matches["query_id"].to_pylist() == ["a"]


def test_many_removals_lay_the_set_out_anew() -> None:
    n = 3000
    table = pa.table(
        {"id": np.arange(n), "price_lo": np.arange(n) * 1.0, "price_hi": np.arange(n) + 5.0}
    )
    matcher = Matcher(QuerySet.of(table))
    matcher.remove(range(0, n - 10))
    assert len(matcher) == 10 and matcher._slots.used < 100
    assert matcher.match(pa.table({"price": [n - 1.0]})).matches.num_rows == 6
    matcher.remove(range(n - 10, n))
    assert len(matcher) == 0
    assert matcher.match(pa.table({"price": [n - 1.0]}), "ids").matches[
        "query_ids"
    ].to_pylist() == [[]]


def test_batches_are_joined_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher_module, "BATCH_ROWS", 7)
    table = pa.table({"x": [*range(40), None]})
    counted = Matcher(QuerySet.of({"q": "x >= 20"}, table.schema)).match(table, "count")
    assert counted.matches["matches"].to_pylist() == [0] * 20 + [1] * 20
    assert counted.quarantine.to_pylist() == [{"x": None, "reason": "x: null"}]


def test_lists_too_long_for_one_chunk_make_more(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": [0, 3, 1, 9, 2, 0]})
    queries = {i: f"x > {i}" for i in range(4)}
    whole = limen.match(table, queries, "ids")["query_ids"]
    monkeypatch.setattr("limen.engine.emit.MOST_IDS", 4)
    parts = limen.match(table, queries, "ids")["query_ids"]
    assert parts.num_chunks > whole.num_chunks
    assert [sorted(ids) for ids in parts.to_pylist()] == [sorted(ids) for ids in whole.to_pylist()]


def test_empty_sets_and_batches() -> None:
    table = pa.table({"x": pa.array([1, 2], pa.int64())})
    assert limen.match(table, {}).to_pydict() == {"x": [], "query_id": []}
    assert limen.match(table, {}, "count")["matches"].to_pylist() == [0, 0]
    none = limen.match(table.slice(0, 0), {"q": "x > 0"}, "ids")
    assert none.num_rows == 0 and none.schema.names == ["x", "query_ids"]


def test_the_plain_call_takes_frames_and_warns_of_quarantine() -> None:
    queries = pd.DataFrame({"id": [1, 2], "x_lo": [0.0, 5.0], "x_hi": [5.0, 9.0]})
    for frame in (
        pd.DataFrame({"x": [5.0]}),
        pl.DataFrame({"x": [5.0]}),
        [{"x": 5.0}],
        {"x": [5.0]},
    ):
        assert sorted(limen.match(frame, queries)["query_id"].to_pylist()) == [1, 2]
        assert limen.match(frame, queries, bounds="[)")["query_id"].to_pylist() == [2]
        assert limen.match(frame, pl.from_pandas(queries), bounds="(]")["query_id"].to_pylist() == [
            1
        ]
    with pytest.warns(
        limen.QuarantineWarning, match=r"2 of 3 events were not matched \(the first: x: NaN"
    ):
        matched = limen.match(pa.table({"x": [float("nan"), None, 1.0]}), queries)
    assert matched["query_id"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"y": [1.0]}, r"event column 'price': is missing; the queries need it \(columns: y\)"),
        ({"price": [1]}, "event column 'price': has type int64, which cannot be read as float64"),
        ({"price": ["1"]}, "event column 'price': has type string"),
        ({"price": [1.0], "query_id": [1]}, "the events have a column 'query_id'"),
    ],
)
def test_columns_that_cannot_be_matched(table: dict, message: str) -> None:
    with pytest.raises(limen.LimenError, match=message):
        Matcher(QuerySet.of({"a": "price > 1"}, PRICES)).match(pa.table(table))


def test_arguments_that_make_no_sense() -> None:
    table = pa.table({"price": [1.0]})
    with pytest.raises(limen.LimenError, match="emit='all' is not one of rows, ids, count"):
        limen.match(table, {"a": "price > 1"}, "all")  # type: ignore[arg-type]
    with pytest.raises(limen.LimenError, match="the events have no column 'x'"):
        limen.match(table, {"a": "price > 1"}, columns=["x"])
    with pytest.raises(limen.LimenError, match="cannot read events from a int"):
        limen.match(3, {})


def test_categorical_columns_are_read_as_what_they_hold() -> None:
    frame = pd.DataFrame({"symbol": pd.Categorical(["IBM", "KO", None]), "price": [1.0, 2.0, 3.0]})
    queries = QuerySet.of({"q": "symbol = 'KO' AND price > 1"}, pa.Table.from_pandas(frame).schema)
    matches, quarantine = Matcher(queries).match(pa.Table.from_pandas(frame))
    assert matches["query_id"].to_pylist() == ["q"]
    assert quarantine["reason"].to_pylist() == ["symbol: null"]


def test_text_ids_are_a_dictionary_over_the_set() -> None:
    ids = limen.match(pa.table({"price": [2.0]}), {"a": "price > 1"}, "ids")["query_ids"]
    assert pa.types.is_dictionary(ids.type.value_type)


def test_plain_text_ids_are_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = Matcher(QuerySet.of({f"é{i}": f"price > {i}" for i in range(9)}, PRICES))
    matcher.remove(["é3"])
    matcher.add(QuerySet.of({"é3": "price > 3"}, PRICES))
    table = pa.table({"price": [0.5, 3.5, -1.0, 8.5, 0.0, 2.5]})
    for most in (None, 2, 3, 100):
        if most is not None:
            monkeypatch.setattr("limen.engine.emit.MOST_TEXTS", most)
            matcher._names = {}
        for emit, kind in (("rows", pa.string()), ("ids", pa.list_(pa.string()))):
            plain = matcher.match(table, emit, text_ids="plain").matches  # type: ignore[arg-type]
            encoded = matcher.match(table, emit).matches  # type: ignore[arg-type]
            assert plain.schema.types[-1] == kind
            assert plain.to_pylist() == encoded.to_pylist()
            none = matcher.match(table.slice(0, 0), emit, text_ids="plain").matches  # type: ignore[arg-type]
            assert none.schema == plain.schema
    numbered = Matcher(QuerySet.of({7: "price > 0"}, PRICES)).match(table, text_ids="plain")
    assert set(numbered.matches["query_id"].to_pylist()) == {7}
    with pytest.raises(limen.LimenError, match="text_ids='x' is not one of dictionary, plain"):
        matcher.match(table, text_ids="x")  # type: ignore[arg-type]


def test_tables_that_come_one_at_a_time() -> None:
    matcher = Matcher(QuerySet.of({7: "price > 2"}, PRICES))
    ((found, quarantine),) = matcher.match_batch(pa.table({"price": [3.0, None]}), "count")
    assert found.to_pylist() == [{"price": 3.0, "matches": 1}] and len(quarantine) == 1
    ((found, _),) = matcher.match_batch(pa.table({"price": pa.array([], pa.float64())}))
    assert found.num_rows == 0
    with pytest.raises(limen.EventError, match="is missing"):
        matcher.match_batch(pa.table({"x": [1]}))  # before it is asked for the first result


@pytest.mark.parametrize("emit", ["rows", "ids", "count"])
def test_polars_text_columns(emit: str) -> None:
    frame = pl.DataFrame(
        {"symbol": ["IBM", None, "KO"], "price": [45.0, 1.0, 2.0], "note": ["a", "b", "c"]}
    )
    with pytest.warns(limen.QuarantineWarning, match="symbol: null"):
        found = limen.match(frame, {"q": "symbol = 'IBM' AND price > 1"}, emit)  # type: ignore[arg-type]
    assert found.to_pylist()[0]["note"] == "a"


def test_dictionaries_of_every_make() -> None:
    many = pa.DictionaryArray.from_arrays(
        pa.array(range(128), pa.int8()), pa.array([f"s{i}" for i in range(128)])
    )
    more = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["t"]))
    inside = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([None, "t"]))
    queries = {"s": "symbol = 's127'", "t": "symbol = 't'"}
    matcher = Matcher(QuerySet.of(queries, {"symbol": "string"}))
    for chunks, found, bad in (
        ([many], ["s"], 0),
        ([many, more], ["s", "t"], 0),
        ([inside], ["t"], 1),
    ):
        column = pa.chunked_array(chunks)
        matched, quarantine = matcher.match(pa.table({"symbol": column}), columns=[])
        assert matched["query_id"].to_pylist() == found and len(quarantine) == bad


def test_where_much_matches_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher_module, "BATCH_IDS", 100)
    n = 300
    table = pa.table({"id": range(n), "x_lo": [0] * n, "y_lo": range(n)})
    matcher = Matcher(QuerySet.of(table, {"x": "int64", "y": "int64"}))
    events = pa.table({"x": [1] * 50, "y": [*range(49), None]})
    for emit in ("rows", "ids", "count"):
        parts = list(matcher.match_batches([events], emit, schema=events.schema))  # type: ignore[arg-type]
        assert len(parts) > 10 and sum(len(part.quarantine) for part in parts) == 1
        last = pa.concat_tables(part.matches for part in parts).column(-1)
        if emit == "count":
            assert last.to_pylist() == list(range(1, 50))
        elif emit == "ids":
            assert [len(ids) for ids in last.to_pylist()] == list(range(1, 50))
        else:
            assert len(last) == sum(range(1, 50))


def test_an_id_removed_and_added_again_is_one_name() -> None:
    matcher = Matcher(QuerySet.of({"a": "price > 1", "b": "price > 2"}, PRICES))
    for bound in (5, 6, 7):
        matcher.remove(["a"])
        matcher.add(QuerySet.of({"a": f"price > {bound}"}, PRICES))
        events = pa.table({"price": [3.0, bound + 0.5]})
        found = matcher.match(events).matches
        assert found.to_pandas()["query_id"].tolist() == ["b", "b", "a"]
        lists = matcher.match(events, "ids").matches["query_ids"]
        assert [sorted(ids) for ids in lists.to_pylist()] == [["b"], ["a", "b"]]
        names = found["query_id"].chunk(found["query_id"].num_chunks - 1).dictionary.to_pylist()
        assert len(set(names)) == len(names)


def test_ids_to_remove_are_a_list_of_ids() -> None:
    matcher = Matcher(QuerySet.of({"a": "price > 1", "b": "price > 2", "ab": "price > 3"}, PRICES))
    with pytest.raises(QueryError, match=r"ids are given as a list; for one, \['ab'\]"):
        matcher.remove("ab")
    numbered = Matcher(QuerySet.of({1: "price > 1"}, PRICES))
    with pytest.raises(QueryError, match="no query has the id True"):
        numbered.remove([True])
    assert len(matcher) == 3 and len(numbered) == 1


def test_an_emptied_set_takes_ids_of_another_kind() -> None:
    matcher = Matcher(QuerySet.of({"a": "price > 1"}, PRICES))
    matcher.remove(["a"])
    assert matcher.add(QuerySet.of({7: "price > 3"}, PRICES)) == 1
    assert matcher.match(pa.table({"price": [4.0]})).matches["query_id"].to_pylist() == [7]


def test_rows_that_are_no_columns() -> None:
    with pytest.raises(limen.EventError, match="cannot be read as columns of one type each"):
        limen.match([{"p": 1.0}, {"p": "x"}], {"a": "p > 0"})


def test_rows_of_wide_events_come_in_pieces(monkeypatch):
    queries = QuerySet.of({i: f"x >= {i % 3}" for i in range(9)}, {"x": "int64"})
    table = pa.table({"x": [0, 1, 2] * 5, "text": ["long " * n for n in range(15)]})
    whole = Matcher(queries).match(table).matches
    monkeypatch.setattr("limen.engine.emit.PIECE_BYTES", 100)
    pieces = Matcher(queries).match(table).matches
    assert pieces.column("text").num_chunks > 3 and pieces.to_pylist() == whole.to_pylist()
