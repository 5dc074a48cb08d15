"""`limen queries`: each command is the catalog's own call, refusals are sentences and write nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from limen.catalog import Catalog
from limen.cli import app
from limen.cli.queries import _duration
from limen.model import QuerySet

TYPES = ("-a", "symbol=string", "-a", "price=float64")
IBM = "symbol = 'IBM' AND price BETWEEN 40 AND 50"


@pytest.fixture
def alerts(run, queries):
    """A catalog of the two queries of the fixture `queries`."""
    assert run("queries", "import", "alerts", queries["csv"], *TYPES).exit_code == 0
    return Catalog.open("alerts")


def told(result):
    """The one sentence of a refusal."""
    assert result.exit_code == 1 and result.stdout == "", result.output
    assert result.stderr.startswith("limen: ") and "Traceback" not in result.stderr
    return result.stderr.removeprefix("limen: ").rstrip("\n")


def bodies(catalog, version=None):
    return {entry.id: entry.where for entry in catalog.list(version=version)}


def lines(result):
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_add_makes_the_catalog(run):
    result = run("queries", "add", "alerts", "ibm", IBM, *TYPES)
    assert result.exit_code == 0 and result.stdout == "version 1: 1 added, 0 removed\n"
    assert (
        result.stderr == "made the catalog alerts (ids: string; symbol: string, price: float64)\n"
    )
    result = run("queries", "add", "alerts", "cheap", "price <= 10")
    assert (result.stdout, result.stderr) == ("version 2: 1 added, 0 removed\n", "")
    result = run("queries", "add", "alerts", "cheap", "price <= 10")
    assert result.stdout == "version 2: nothing to change\n"
    assert bodies(Catalog.open("alerts")).keys() == {"ibm", "cheap"}


def test_add_declares_attributes(run, alerts):
    refused = told(run("queries", "add", "alerts", "big", "qty > 5"))
    assert "unknown attribute 'qty'; known: symbol, price" in refused
    assert run("queries", "add", "alerts", "big", "qty > 5", "-a", "qty=int64").exit_code == 0
    assert bodies(Catalog.open("alerts"))["big"] == "qty >= 6"
    types = ("-a", "at=timestamp[us, tz=UTC]", "-a", "cost=decimal(10,2)")
    assert run("queries", "add", "alerts", "x", "cost = 1.25", *types).exit_code == 0
    assert Catalog.open("alerts").attributes["at"] == pa.timestamp("us", "UTC")


def test_replace(run, alerts):
    words = ("queries", "add", "alerts", "cheap", "price <= 5")
    assert told(run(*words)).endswith("in the catalog with another body; --replace replaces it")
    assert alerts.version == 1
    assert run(*words, "--replace").stdout == "version 2: 1 added, 1 removed\n"
    assert bodies(alerts)["cheap"] == "price <= 5.0"
    assert run(*words, "--replace").stdout == "version 2: nothing to change\n"
    assert run("queries", "add", "alerts", "new", "price > 5", "--replace").exit_code == 0


def test_ttl(run, alerts):
    before = datetime.now(UTC)
    run("queries", "add", "alerts", "flash", "price < 1", "--ttl", "1h30m")
    expires = alerts.get("flash").expires
    assert timedelta(minutes=90) <= expires - before < timedelta(minutes=95)
    assert (
        f"expires  {expires:%Y-%m-%d %H:%M:%S} UTC"
        in run("queries", "show", "alerts", "flash").stdout
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("1h30m", 5400), ("2d", 172_800), ("0.5s", 0.5), ("1d1s", 86_401)],
)
def test_durations(text, seconds):
    assert _duration(text, "--ttl") == timedelta(seconds=seconds)


@pytest.mark.parametrize("kind", ["csv", "where", "jsonl", "parquet"])
def test_imports_agree(run, queries, kind):
    result = run("queries", "import", "alerts", queries[kind], *TYPES)
    assert result.stdout == "version 1: 2 added, 0 removed\n", result.stderr
    assert "2 queries read and committed in" in result.stderr
    expected = {
        "cheap": "price <= 10.0",
        "ibm": "symbol = 'IBM' AND price >= 40.0 AND price <= 50.0",
    }
    assert bodies(Catalog.open("alerts")) == expected
    assert (
        run("queries", "import", "alerts", queries["csv"]).stdout
        == "version 1: nothing to change\n"
    )


def test_import_takes_types_and_ids_from_columns(run, tmp_path):
    frame = {
        "id": [1, 2],
        "day_lo": pa.array([0, 9], pa.date32()),
        "qty_hi": pa.array([5, 6], pa.int16()),
    }
    pq.write_table(pa.table(frame), tmp_path / "q.parquet")
    assert run("queries", "import", "alerts", "q.parquet", "-a", "extra=bool").exit_code == 0
    catalog = Catalog.open("alerts")
    assert catalog.id_type == pa.int64()
    assert catalog.attributes == {"day": pa.date32(), "qty": pa.int16(), "extra": pa.bool_()}
    (tmp_path / "q.csv").write_text("id,x_lo,name\n1,1.5,a\n2,2,b\n")
    assert run("queries", "import", "other", "q.csv", "--bounds", "()").exit_code == 0
    catalog = Catalog.open("other")
    assert catalog.id_type == pa.int64() and str(catalog.attributes["x"]) == "double"
    assert bodies(catalog)[2] == "x > 2.0 AND name = 'b'"


def test_import_of_conditions_needs_types(run, queries, tmp_path):
    for kind in ("where", "jsonl"):
        refused = told(run("queries", "import", "alerts", queries[kind]))
        assert refused.endswith("give --attribute symbol=TYPE --attribute price=TYPE")
    assert not (tmp_path / "alerts").exists()


def test_import_replaces_in_one_commit(run, alerts, tmp_path):
    (tmp_path / "new.csv").write_text(
        "id,symbol,price_lo,price_hi\nibm,IBM,40,50\ncheap,KO,,10\nc,,1,2\n"
    )
    refused = told(run("queries", "import", "alerts", "new.csv"))
    assert refused.startswith("new.csv: query row 1 (id 'cheap'): ") and "--replace" in refused
    result = run("queries", "import", "alerts", "new.csv", "--replace", "--ttl", "1h")
    assert result.stdout == "version 2: 3 added, 2 removed\n"  # ibm has a new expiry
    assert bodies(alerts)["cheap"] == "symbol = 'KO' AND price <= 10.0"
    assert bodies(alerts, 1)["cheap"] == "price <= 10.0"


def test_import_replaces_only_what_differs(run, tmp_path):
    """Against a change by hand, over every way in which two bodies can differ."""
    texts = [
        "x > 1",
        "x > 2",
        "x > 1 AND s = 'a'",
        "s = 'a'",
        "s = 'b'",
        "b = TRUE",
        "b = FALSE AND x > 1",
    ]
    types = {"x": "int64", "s": "string", "b": "bool"}
    pairs = [(one, other) for one in texts for other in texts]
    catalog = Catalog.open("alerts", types, ids="int64")
    catalog.add({i: one for i, (one, _) in enumerate(pairs)})
    (tmp_path / "q.jsonl").write_text(
        "".join(json.dumps({"id": i, "where": other}) + "\n" for i, (_, other) in enumerate(pairs))
    )
    differing = len(pairs) - len(texts)
    result = run("queries", "import", "alerts", "q.jsonl", "--replace")
    assert result.stdout == f"version 2: {differing} added, {differing} removed\n"
    wanted = QuerySet.of({i: other for i, (_, other) in enumerate(pairs)}, types)
    found = catalog.snapshot()
    order = sorted(range(len(pairs)), key=lambda row: found.ids[row].as_py())
    found = found.take(order)
    assert all(
        (found.lo[n] == wanted.lo[n]).all() and (found.hi[n] == wanted.hi[n]).all()
        for n in wanted.lo
    )
    assert all(found.keys[n].equals(wanted.keys[n]) for n in wanted.keys)


def test_import_of_a_refused_file_writes_nothing(run, alerts, tmp_path):
    (tmp_path / "bad.csv").write_text("id,price_lo,price_hi\na,1,2\nb,5,4\n")
    assert told(run("queries", "import", "alerts", "bad.csv")).startswith(
        "bad.csv: query row 1 (id 'b')"
    )
    assert "bad.csv" in told(run("queries", "import", "fresh", "bad.csv"))
    assert alerts.version == 1 and not (tmp_path / "fresh").exists()


def test_csv_ids_that_look_like_numbers(run, alerts, tmp_path):
    (tmp_path / "n.csv").write_text("id,price_lo\n7,1\n8,2\n")
    assert run("queries", "import", "alerts", "n.csv").exit_code == 0
    assert alerts.get("7").where == "price >= 1.0"
    pq.write_table(pa.table({"id": [9], "price_lo": [1.0]}), tmp_path / "n.parquet")
    assert "ids of this catalog are string, not int64" in told(
        run("queries", "import", "alerts", "n.parquet")
    )


def test_ids_that_are_numbers(run):
    run("queries", "add", "c", "42", "x > 1", "-a", "x=int64")
    run("queries", "add", "c", "--", "-7", "x > 1")
    assert [line["id"] for line in lines(run("queries", "list", "c", "--json"))] == [-7, 42]
    assert run("queries", "show", "c", "42").stdout.startswith("id       42\n")
    refused = told(run("queries", "add", "c", "ibm", "x > 1"))
    assert refused == "'ibm' is not an id of this catalog: its ids are int64"
    assert "'ibm' is not an id" in told(run("queries", "show", "c", "ibm"))
    assert run("queries", "remove", "c", "42").stdout == "version 3: 0 added, 1 removed\n"


def test_remove(run, alerts):
    assert told(run("queries", "remove", "alerts", "ibm", "no")) == "no query has the id 'no'"
    assert len(alerts) == 2
    assert (
        run("queries", "remove", "alerts", "ibm", "cheap").stdout
        == "version 2: 0 added, 2 removed\n"
    )
    assert told(run("queries", "remove", "alerts")).startswith("name the ids to remove")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ids.txt", "ibm\n\ncheap\n"),
        ("ids", "ibm\r\ncheap"),
        ("ids.csv", "note,id\nx,ibm\ny,cheap\n"),
        ("ids.jsonl", '{"id": "ibm"}\n{"id": "cheap", "where": "price > 1"}\n'),
    ],
)
def test_remove_from_a_file(run, alerts, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert (
        run("queries", "remove", "alerts", "--from", name).stdout
        == "version 2: 0 added, 2 removed\n"
    )


def test_remove_from_parquet_and_stdin(run, tmp_path):
    Catalog.open("c", {"x": "int64"}, ids="int64").add({i: "x > 1" for i in range(6)})
    pq.write_table(pa.table({"id": [0, 1]}), tmp_path / "ids.parquet")
    result = run("queries", "remove", "c", "2", "--from", "ids.parquet")
    assert result.stdout == "version 2: 0 added, 3 removed\n"
    result = CliRunner().invoke(app, ["queries", "remove", "c", "--from", "-"], input="3\n4\n")
    assert result.stdout == "version 3: 0 added, 2 removed\n"
    (tmp_path / "ids.csv").write_text("name\n5\n")
    assert told(run("queries", "remove", "c", "--from", "ids.csv")).endswith("'id' (columns: name)")
    assert (
        told(run("queries", "remove", "c", "--from", "no.txt"))
        == "no.txt: No such file or directory"
    )
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "ids.parquet")
    assert "'a' is not an id of this catalog" in told(
        run("queries", "remove", "c", "--from", "ids.parquet")
    )
    Catalog.open("t", {"x": "int64"}).add({"a": "x > 1"})
    pq.write_table(pa.table({"id": [5]}), tmp_path / "ids.parquet")
    refused = told(run("queries", "remove", "t", "--from", "ids.parquet"))
    assert refused == "ids.parquet: ids of this catalog are string, not int64"


def test_list(run, alerts):
    alerts.add({f"q{i:02}": f"price > {i}" for i in range(30)})
    result = run("queries", "list", "alerts")
    assert (
        "price <= 10.0" in result.stdout and "q17" in result.stdout and "q18" not in result.stdout
    )
    assert "20 of 32 queries; --limit N shows more, --json all" in result.stdout
    assert "2 of 32 queries" in run("queries", "list", "alerts", "--limit", "2").stdout
    result = run("queries", "list", "alerts", "--version", "1")
    assert "ibm" in result.stdout and "q00" not in result.stdout and " of " not in result.stdout
    assert len(lines(run("queries", "list", "alerts", "--json"))) == 32
    assert lines(run("queries", "list", "alerts", "--json", "--limit", "1", "--version", "1")) == [
        {"id": "cheap", "where": "price <= 10.0", "since": 1, "expires": None}
    ]
    assert told(run("queries", "list", "alerts", "--version", "9")).endswith("the newest is 2")


def test_show(run, alerts):
    alerts.declare({"day": "date"})
    alerts.add({"odd": "symbol = '\x1b[31m' AND price < 1 AND day = DATE '2026-01-31'"})
    result = run("queries", "show", "alerts", "odd")
    assert result.exit_code == 0 and "\x1b" not in result.stdout
    assert "expires  never\n" in result.stdout
    (came,) = (e for e in alerts.history() if e.version == alerts.version)
    assert f"since    version {came.version}, {came.time:%Y-%m-%d %H:%M:%S} UTC\n" in result.stdout
    table = [
        [cell.strip() for cell in line.split("│")]
        for line in result.stdout.splitlines()
        if "│" in line
    ]
    assert ["", "price", "float64", "any", "0.9999999999999999", ""] in table
    assert ["", "day", "date", "2026-01-31", "2026-01-31", ""] in table
    assert told(run("queries", "show", "alerts", "no")) == "no query has the id 'no'"


def test_history(run, alerts):
    alerts.remove(["ibm"])
    found = lines(run("queries", "history", "alerts", "--json"))
    assert [line.pop("time")[-6:] for line in found] == ["+00:00"] * 3
    assert found == [
        {"version": 2, "what": "change", "added": 0, "removed": 1, "queries": 1},
        {"version": 1, "what": "change", "added": 2, "removed": 0, "queries": 2},
        {"version": 0, "what": "create", "added": 0, "removed": 0, "queries": 0},
    ]
    result = run("queries", "history", "alerts", "--limit", "1")
    assert f"{alerts.history(1)[0].time:%Y-%m-%d %H:%M:%S}" in result.stdout
    assert "1 of 3 versions" in result.stdout


def test_compact_and_vacuum(run, alerts):
    alerts.remove(["ibm"])
    assert run("queries", "compact", "alerts").stdout == "version 3: compacted\n"
    assert run("queries", "compact", "alerts").stdout == "version 3: nothing to compact\n"
    assert run("queries", "vacuum", "alerts", "--older-than", "30m").stdout == "0 files deleted\n"
    assert run("queries", "vacuum", "alerts", "--older-than", "0s").stdout == "2 files deleted\n"
    assert "version 1 of the catalog is no longer kept" in told(
        run("queries", "list", "alerts", "--version", "1")
    )
    assert (
        lines(run("queries", "history", "alerts", "--json", "--limit", "1"))[0]["what"] == "vacuum"
    )
    assert bodies(Catalog.open("alerts")).keys() == {"cheap"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("add", "no", "a", "price < 1"), "name its attributes and their types to make one"),
        (
            ("add", "alerts", "a", "price < 1", "--ttl", "90"),
            "--ttl '90': write a time as 1h30m, 45s or 2d",
        ),
        (("add", "alerts", "a", "price < 1", "--ttl", "0s"), "a time to live is positive"),
        (("add", "alerts", "a", "price < 1", "--ttl", "9999999999999d"), "is too long"),
        (("add", "alerts", "a", "price < 1", "-a", "qty"), "'qty' is not of the form name=type"),
        (
            ("add", "alerts", "a", "price < 1", "-a", "qty=int"),
            "--attribute qty: type int is not supported",
        ),
        (
            ("add", "alerts", "a", "price < 1", "-a", "x=int8", "-a", "x=int16"),
            "'x' is given two types",
        ),
        (
            ("add", "alerts", "a", "price < 1", "-a", "price=int64"),
            "'price' is float64 here, not int64",
        ),
        (("add", "alerts", "a", "prize < 1"), "did you mean 'price'?"),
        (
            ("add", "alerts", "a", "price < 1 OR price > 2"),
            "  price < 1 OR price > 2\n            ^^",
        ),
        (("add", "alerts", "", "price < 1"), "id is empty"),
        (("import", "alerts", "no.csv"), "no.csv: No such file or directory"),
        (("import", "alerts", "no.txt"), "files of this kind are not supported"),
        (("list", "no"), "there is no catalog at"),
        (("list", "s3://bucket/alerts"), "s3://bucket/alerts: a catalog is a folder"),
        (("vacuum", "alerts", "--older-than", "week"), "--older-than 'week': write a time as"),
        *(
            ((command, "no"), "there is no catalog at")
            for command in ("history", "compact", "vacuum")
        ),
        *(((command, "no", "a"), "there is no catalog at") for command in ("show", "remove")),
    ],
)
def test_refusals(run, alerts, words, sentence):
    assert sentence in told(run("queries", *words))
    assert Catalog.open("alerts").version == 1


def test_folders_that_are_no_catalog(run, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("")
    refused = told(run("queries", "add", "docs", "a", "price < 1", *TYPES))
    assert refused.endswith("is there and is not a catalog; choose another folder")
    write_deltalake("delta", pa.table({"x": [1]}))
    assert told(run("queries", "list", "delta")).endswith(
        "is a Delta table, but not a catalog of queries"
    )


def test_a_damaged_catalog(run, alerts, tmp_path):
    (file,) = (tmp_path / "alerts").glob("*.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0xFF
    file.write_bytes(data)
    assert "the catalog is damaged" in told(run("queries", "list", "alerts"))


def test_help_of_each(run):
    for command in ("add", "import", "remove", "list", "show", "history", "compact", "vacuum"):
        result = run("queries", command, "--help")
        assert result.exit_code == 0 and "CATALOG" in result.stdout


LIGHT = """
import sys
from limen.cli import app
for words in (
    ["add", "c", "a", "x > 1", "-a", "x=int64"],
    ["import", "c", "q.csv", "--replace"],
    ["list", "c"],
    ["show", "c", "b"],
    ["remove", "c", "b"],
    ["history", "c"],
):
    app(["queries", *words], standalone_mode=False)
heavy = {"numba", "pyspark", "matplotlib"} & set(sys.modules)
assert not heavy, f"limen queries imports {heavy}"
"""


def test_needs_neither_compiler_nor_spark(tmp_path):
    (tmp_path / "q.csv").write_text("id,x_lo\nb,1\n")
    words = [sys.executable, "-c", LIGHT]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
