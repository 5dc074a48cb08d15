"""`limen match`: the same answer whatever the formats, bad events set apart, bad inputs refused."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

MATCHES = [("IBM", 9.0, "cheap"), ("IBM", 45.5, "ibm"), ("KO", 9.5, "cheap")]


def rows_of(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return pa_csv.read_csv(path).to_pylist()


def found(path: Path) -> list[tuple[object, ...]]:
    return sorted((r["symbol"], r["price"], r["query_id"]) for r in rows_of(path))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("how", ["csv", "where", "jsonl", "parquet"])
def test_formats_agree(run, events, queries, tmp_path, kind, how):
    result = run("match", events[kind], queries[how], "--output", "out.parquet")
    assert result.exit_code == 0, result.stderr
    assert "4 events, 0 quarantined, 3 matches against 2 queries in" in result.stderr
    assert found(tmp_path / "out.parquet") == MATCHES


@pytest.mark.parametrize("ext", ["csv", "jsonl", "parquet"])
def test_emits(run, events, queries, tmp_path, ext):
    out = tmp_path / f"out.{ext}"
    for emit in ("rows", "ids", "count"):
        options = ("--emit", emit, "--output", out, "--force", "--columns", "price")
        assert run("match", events["parquet"], queries["csv"], *options).exit_code == 0
        rows = rows_of(out)
        if emit == "rows":
            got = sorted((r["price"], r["query_id"]) for r in rows)
            assert got == [(9.0, "cheap"), (9.5, "cheap"), (45.5, "ibm")]
        elif emit == "count":
            expected = [(45.5, 1), (9.5, 1), (9.0, 1), (70.0, 0)]
            assert [(r["price"], r["matches"]) for r in rows] == expected
        else:
            ids = [r["query_ids"] for r in rows]
            if ext == "csv":
                assert ids == ["ibm", "cheap", "cheap", ""]
            else:
                assert ids == [["ibm"], ["cheap"], ["cheap"], []]


def test_csv_joins_ids(run, tmp_path):
    (tmp_path / "e.csv").write_text("x\n5\n")
    (tmp_path / "q.csv").write_text("id,x_lo,x_hi\n1,0,9\n2,5,5\n")
    assert run("match", "e.csv", "q.csv", "--emit", "ids", "-o", "out.csv").exit_code == 0
    ((_, ids),) = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))[1:]
    assert sorted(ids.split(";")) == ["1", "2"]
    (tmp_path / "q.csv").write_text("id,x_lo,x_hi\na;b,0,9\n")
    result = run("match", "e.csv", "q.csv", "--emit", "ids", "-o", "out2.csv")
    assert result.exit_code == 1 and "a query id contains ';'" in result.stderr


def test_prints_a_table(run, events, queries):
    result = run("match", events["csv"], queries["csv"], "--limit", "2")
    assert result.exit_code == 0
    assert "query_id" in result.stdout and "IBM" in result.stdout
    assert "the first 2 of 3 rows; --output FILE keeps them all" in result.stdout
    assert "\x1b" not in result.stdout + result.stderr


def test_zipped(run, events, queries, tmp_path):
    for kind in ("csv", "jsonl"):
        zipped = tmp_path / f"z.{kind}.gz"
        zipped.write_bytes(gzip.compress(events[kind].read_bytes()))
        run("match", zipped, queries["csv"], "--output", "out.parquet", "--force")
        assert found(tmp_path / "out.parquet") == MATCHES


def test_bounds_kind(run, tmp_path):
    (tmp_path / "e.csv").write_text("x\n1\n2\n3\n")
    (tmp_path / "q.csv").write_text("id,x_lo,x_hi\n1,1,3\n")
    for bounds, expected in (("[]", [1, 1, 1]), ("[)", [1, 1, 0]), ("()", [0, 1, 0])):
        options = ("--emit", "count", "--bounds", bounds, "-o", "out.csv", "--force")
        assert run("match", "e.csv", "q.csv", *options).exit_code == 0
        assert [r["matches"] for r in rows_of(tmp_path / "out.csv")] == expected


def test_bad_cells_are_quarantined(run, queries, tmp_path):
    (tmp_path / "e.csv").write_text(
        "symbol,price,note\nIBM,45,a\nIBM,abc,b\nIBM,,c\nIBM,NaN,d\nIBM\nKO,1e400,e\nKO,9,f\n"
    )
    result = run("match", "e.csv", queries["csv"], "-o", "out.csv", "--quarantine", "bad.csv")
    assert result.exit_code == 0
    assert "7 events, 5 quarantined, 2 matches against 2 queries" in result.stderr
    rows = csv.DictReader((tmp_path / "bad.csv").read_text().splitlines())
    bad = {r["row"]: (r["price"], r["reason"]) for r in rows}
    assert bad == {
        "2": ("abc", "price: unparsable 'abc'"),
        "3": ("", "price: null"),
        "4": ("NaN", "price: NaN"),
        "5": ("", "1 cells, not 3: 'IBM'"),
        "6": ("1e400", "price: unparsable '1e400'"),
    }
    result = run("match", "e.csv", queries["csv"])
    assert "5 quarantined: price: unparsable such as 'abc' (2); " in result.stderr
    assert "--quarantine FILE keeps them" in result.stderr


def test_a_row_without_enough_cells_keeps_the_places_right(run, queries, tmp_path):
    lines = ["IBM,45"] * 50
    lines[10], lines[20], lines[30] = "IBM", "IBM,x", "IBM"
    (tmp_path / "e.csv").write_text("symbol,price\n" + "\n".join(lines) + "\n")
    run("match", "e.csv", queries["csv"], "-o", "out.csv", "--quarantine", "bad.jsonl")
    assert sorted(r["row"] for r in rows_of(tmp_path / "bad.jsonl")) == [11, 21, 31]


def test_bad_lines_are_quarantined(run, queries, tmp_path):
    (tmp_path / "e.jsonl").write_text(
        '{"symbol": "IBM", "price": 45.5}\n\n'
        '{"symbol": "IBM", "price": "abc"}\n'
        '{"symbol": "IBM", "price": 4\n'
        '{"symbol": 7, "price": 45.5}\n'
        '{"symbol": "KO"}\n'
        "[1]\n"
        '{"symbol": "KO", "price": true}\n'
        '{"symbol": "KO", "price": 9}\n'
    )
    options = ("-o", "out.jsonl", "--quarantine", "bad.jsonl")
    result = run("match", "e.jsonl", queries["csv"], *options)
    assert "8 events, 6 quarantined, 2 matches" in result.stderr
    bad = {r["line"]: r["reason"] for r in rows_of(tmp_path / "bad.jsonl")}
    assert bad.pop(4).startswith("not valid JSON (Expecting ',' delimiter at column")
    assert bad == {
        3: "price: unparsable 'abc'",
        5: "symbol: unparsable '7'",
        6: "price: null",
        7: "not a JSON object",
        8: "price: unparsable 'true'",
    }
    texts = {r["line"]: r["text"] for r in rows_of(tmp_path / "bad.jsonl")}
    assert texts[4] == '{"symbol": "IBM", "price": 4'


def test_parquet_quarantine_has_its_row(run, queries, tmp_path):
    table = pa.table({"symbol": ["IBM", None, "KO"], "price": [45.0, 1.0, float("nan")]})
    pq.write_table(table, tmp_path / "e.parquet")
    run("match", "e.parquet", queries["csv"], "-o", "o.csv", "--quarantine", "bad.parquet")
    bad = [(r["row"], r["reason"]) for r in rows_of(tmp_path / "bad.parquet")]
    assert bad == [(2, "symbol: null"), (3, "price: NaN")]


def test_integers_of_the_first_rows_do_not_narrow_fractional_bounds(run, tmp_path):
    (tmp_path / "e.csv").write_text("x\n1\n2\n2.5\n")
    (tmp_path / "q.csv").write_text("id,x_lo\n1,1.5\n")
    run("match", "e.csv", "q.csv", "--emit", "count", "-o", "out.csv")
    assert [r["matches"] for r in rows_of(tmp_path / "out.csv")] == [0, 1, 1]


def test_types_can_be_given(run, tmp_path):
    (tmp_path / "e.csv").write_text("x\n0.10\n0.30\n")
    (tmp_path / "q.csv").write_text("id,x_lo,x_hi\n1,0.1,0.1\n2,0.3,\n")
    options = ("--types", "x=decimal(10,2)", "--emit", "ids", "-o", "out.jsonl")
    assert run("match", "e.csv", "q.csv", *options).exit_code == 0
    expected = [{"x": "0.10", "query_ids": [1]}, {"x": "0.30", "query_ids": [2]}]
    assert rows_of(tmp_path / "out.jsonl") == expected


def test_dates_and_times(run, tmp_path):
    (tmp_path / "e.csv").write_text("day,at\n2024-01-01,2024-01-01T10:00:00Z\n2024-02-01,x\n")
    (tmp_path / "q.csv").write_text("id,day_lo,day_hi\n1,2024-01-01,2024-01-31\n")
    run("match", "e.csv", "q.csv", "--emit", "count", "-o", "out.jsonl")
    assert [r["matches"] for r in rows_of(tmp_path / "out.jsonl")] == [1, 0]
    (tmp_path / "q.jsonl").write_text(
        '{"id": 1, "where": "at >= TIMESTAMP \'2024-01-01 09:00:00Z\'"}\n'
    )
    result = run("match", "e.csv", "q.jsonl", "--emit", "count", "-o", "o2.jsonl")
    assert "2 events, 1 quarantined, 1 matches" in result.stderr, result.stderr


def test_many_batches(run, tmp_path, monkeypatch):
    """Blocks smaller than the file, with bad cells in all of them, give the same as one."""
    from limen.cli import event_files

    values = [("x" if i % 97 == 0 else str(i % 50)) for i in range(5000)]
    (tmp_path / "e.csv").write_text("a,b\n" + "".join(f"{v},{i}\n" for i, v in enumerate(values)))
    (tmp_path / "e.jsonl").write_text(
        "".join(
            json.dumps({"a": v if v == "x" else int(v), "b": i}) + "\n"
            for i, v in enumerate(values)
        )
    )
    (tmp_path / "q.csv").write_text("id,a_lo,a_hi\n1,10,20\n2,15,40\n")
    monkeypatch.setattr(event_files, "BLOCK_BYTES", 1000)
    for name in ("e.csv", "e.jsonl"):
        options = ("--emit", "count", "-o", "out.parquet", "--quarantine", "bad.parquet", "--force")
        assert run("match", name, "q.csv", *options).exit_code == 0
        counts = {int(r["b"]): r["matches"] for r in rows_of(tmp_path / "out.parquet")}
        assert counts == {
            i: (10 <= int(v) <= 20) + (15 <= int(v) <= 40) for i, v in enumerate(values) if v != "x"
        }
        bad = rows_of(tmp_path / "bad.parquet")
        assert [r.get("row", r.get("line")) for r in bad] == list(range(1, 5001, 97))


@pytest.mark.parametrize(
    ("events_text", "queries_text", "options", "told"),
    [
        ("x\n1\n", "id,y_lo\n1,2\n", (), "unknown attribute 'y'"),
        ("x\n1\n", "id,x_lo\n1,2\n7,abc\n", (), "query row 1 (id '7'), field 'x_lo': 'abc' is not"),
        ("x\n1\n", "id,x_lo,x_hi\na,2,3\nb,5,4\n", (), "query row 1 (id 'b'), field 'x'"),
        ("x\n1\n", "id,where\na,x > 1 OR x < 0\n", (), "query row 0 (id 'a'): OR is not supported"),
        ("", "id,x_lo\n1,2\n", (), "e.csv is empty"),
        ("x\na\n", "id,x_lo\n1,b\n", (), "field 'x': string takes equality only"),
        ("x,query_id\n1,2\n", "id,x_lo\n1,2\n", (), "with --columns, without it"),
        ("x\n1\n", "", (), "q.csv"),
        ("x\n1\n", "id,x_lo\n1,2\n", ("--columns", "z"), "has no column 'z' (columns: x)"),
        ("x\n1\n", "id,x_lo\n1,2\n", ("--types", "x"), "'x' is not of the form attribute=type"),
        ("x\n1\n", "id,x_lo\n1,2\n", ("--types", "x=money"), "type money is not supported"),
        ("x\n1\n", "id,x_lo\n1,2\n", ("-o", "e.csv", "--force"), "is also read or written"),
        ("x\n1\n", "id,x_lo\n1,2\n", ("-o", "there.csv"), "exists; --force overwrites it"),
        ("x\n1\n", "id,x_lo\n1,2\n", ("-o", "no/o.csv"), "there is no folder no"),
        ("x\n1\n", "id,x_lo\n1,2\n", ("-o", "o.xlsx"), "not supported; supported: .parquet"),
        ("x\n1\n", "id,x_lo\n1,2\n", ("-o", "o.csv", "--quarantine", "o.csv"), "is also read or"),
        ("x,x\n1,1\n", "id,x_lo\n1,2\n", (), "column 'x' is there more than once"),
    ],
)
def test_refusals(run, tmp_path, events_text, queries_text, options, told):
    (tmp_path / "e.csv").write_text(events_text)
    (tmp_path / "q.csv").write_text(queries_text)
    (tmp_path / "there.csv").write_text("kept")
    result = run("match", "e.csv", "q.csv", *options)
    assert result.exit_code == 1
    assert result.stderr.startswith("limen: ") and told in result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "there.csv").read_text() == "kept"
    assert not list(tmp_path.glob(".*.part"))


def test_files_that_are_not_there_or_not_understood(run, tmp_path, queries):
    (tmp_path / "e.txt").write_text("x")
    (tmp_path / "e.parquet").write_text("x")
    (tmp_path / "e.jsonl").write_text('[{"price": 1}]')
    for name, told in (
        ("none.csv", "none.csv: No such file or directory"),
        (
            "e.txt",
            "supported: .parquet, .csv, .jsonl (also .ndjson, .json), and .csv.gz, .jsonl.gz",
        ),
        ("e.parquet", "e.parquet cannot be read"),
        ("e.jsonl", "JSON lines has one object on each line"),
    ):
        result = run("match", name, queries["csv"])
        assert result.exit_code == 1 and told in result.stderr, result.stderr
    (tmp_path / "q.jsonl").write_text('{"id": 1, "where": "price > 1"}\n{"id": 2,\n')
    (tmp_path / "e.csv").write_text("price\n1\n")
    result = run("match", "e.csv", "q.jsonl")
    assert result.exit_code == 1 and "q.jsonl, line 2: not valid JSON" in result.stderr


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.parquet"])
def test_no_events(run, tmp_path, name):
    (tmp_path / "e.csv").write_text("price\n")
    (tmp_path / "e.jsonl").write_text("")
    pq.write_table(pa.table({"price": pa.array([], pa.float64())}), tmp_path / "e.parquet")
    (tmp_path / "q.csv").write_text("id,price_lo\n1,2\n")
    result = run("match", name, "q.csv", "-o", "out.csv")
    assert result.exit_code == 0, result.stderr
    assert "0 events, 0 quarantined, 0 matches against 1 queries" in result.stderr
    header = '"query_id"\n' if name == "e.jsonl" else '"price","query_id"\n'
    assert (tmp_path / "out.csv").read_text() == header


BIG = 2**53 + 1  # no float64


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_integers_are_not_cast_because_a_bound_is_fractional(run, tmp_path, name):
    (tmp_path / "e.csv").write_text(f"qty\n{BIG}\n40\n41\n")
    (tmp_path / "e.jsonl").write_text(f'{{"qty": {BIG}}}\n{{"qty": 40}}\n{{"qty": 41}}\n')
    (tmp_path / "q.csv").write_text(f"id,where\na,qty = {BIG - 1}\nb,qty >= 40.5\n")
    assert run("match", name, "q.csv", "-o", "out.jsonl").exit_code == 0
    assert rows_of(tmp_path / "out.jsonl") == [
        {"qty": BIG, "query_id": "b"},
        {"qty": 41, "query_id": "b"},
    ]


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl"])
def test_numbers_that_float64_cannot_hold_are_quarantined(run, tmp_path, name):
    cells = ["0.5", "1.5", "2.5", str(BIG), "1e999", str(2**60)]
    (tmp_path / "e.csv").write_text("x\n" + "\n".join(cells))
    (tmp_path / "e.jsonl").write_text("\n".join(f'{{"x": {cell}}}' for cell in cells))
    (tmp_path / "q.csv").write_text("id,where\na,x > 1\n")
    run("match", name, "q.csv", "-o", "out.jsonl", "--quarantine", "bad.jsonl")
    assert [row["x"] for row in rows_of(tmp_path / "out.jsonl")] == [1.5, 2.5, 2.0**60]
    reasons = [row["reason"] for row in rows_of(tmp_path / "bad.jsonl")]
    assert reasons == [f"x: unparsable '{BIG}'", "x: unparsable '1e999'"]


def test_text_that_is_not_utf8(run, queries, tmp_path):
    (tmp_path / "e.csv").write_bytes(b"symbol,price,note\nIBM,45,caf\xe9\nIB\xe9,45,a\nIBM,46,b\n")
    run("match", "e.csv", queries["csv"], "-o", "out.jsonl", "--quarantine", "bad.jsonl")
    assert [r["note"] for r in rows_of(tmp_path / "out.jsonl")] == ["caf\ufffd", "b"]
    (bad,) = rows_of(tmp_path / "bad.jsonl")
    assert bad["row"] == 2 and bad["reason"] == "symbol: unparsable 'IB\ufffd'"


def test_categories_of_a_parquet_file(run, queries, tmp_path):
    symbols = pa.array(["IBM", "KO"]).dictionary_encode()
    pq.write_table(pa.table({"symbol": symbols, "price": [45.0, 45.0]}), tmp_path / "e.parquet")
    result = run("match", "e.parquet", queries["csv"], "-o", "out.csv")
    assert result.exit_code == 0, result.stderr
    assert found(tmp_path / "out.csv") == [("IBM", 45.0, "ibm")]


def test_codes_with_zeros_in_front_are_text(run, tmp_path):
    (tmp_path / "e.csv").write_text("zip\n02139\n2139\n")
    (tmp_path / "q.csv").write_text("id,zip\n1,02139\n")
    run("match", "e.csv", "q.csv", "-o", "out.jsonl")
    assert rows_of(tmp_path / "out.jsonl") == [{"zip": "02139", "query_id": 1}]


def test_no_queries(run, tmp_path, events):
    (tmp_path / "q.csv").write_text("id,price_lo\n")
    result = run("match", events["csv"], "q.csv")
    assert result.exit_code == 0
    assert "4 events, 0 quarantined, 0 matches against 0 queries" in result.stderr


def test_usage_errors_are_2(run, events, queries):
    assert run("match", events["csv"]).exit_code == 2
    assert run("match", events["csv"], queries["csv"], "--emit", "no").exit_code == 2
