"""`limen archive`: each command is the archive's own call, numbers add up, refusals are sentences."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from limen.archive import LAYOUTS, Archive, layouts
from limen.cli import app
from limen.cli.words import in_bytes
from limen.testing.joined import Joined

SMALL = Joined(rows=300, steps=6, every=10, keys=20, row_bytes=60)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def make(path, layout="NoRebuild3x2", joined=SMALL, updates=4):
    """An archive of the joined windows' results, some updates after its initial stage."""
    archive = Archive.open(
        path,
        joined.schema,
        key="key",
        window=joined.window,
        every=joined.every,
        layout=layout,
        counts=joined.counts if joined.counted else None,
    )
    for step in range(updates + 1):
        results = joined.update(step) if step else joined.initial()
        counts = joined.seen(step) if joined.counted else None
        archive.update(step * joined.every, results, counts=counts)
    return archive


@pytest.fixture
def joined(run, tmp_path):
    return make(tmp_path / "joined")


@pytest.fixture
def timed(run, tmp_path):
    """Times are timestamps, keys are text, two windows can be shortened one by one."""
    at = [NOON - i * MINUTE for i in range(6)]
    results = {
        "key": ["a", "b", "c", "a", "b", "-x"],
        "generated": at,
        "expires": [t + 10 * MINUTE for t in at],
        "left": [t - i * MINUTE for i, t in enumerate(at)],
        "right": at,
    }
    clock = pa.timestamp("us", "UTC")
    table = pa.table(results).cast(
        pa.schema([("key", pa.string()), *((n, clock) for n in list(results)[1:])])
    )
    archive = Archive.open(
        tmp_path / "timed",
        table.schema,
        key="key",
        window=10 * MINUTE,
        every=MINUTE,
        layout="Rebuild2x2",
        stamps={"l": ("left", 20 * MINUTE), "r": ("right", 10 * MINUTE)},
    )
    archive.update(NOON, table)
    return archive


def told(result):
    """The one sentence of a refusal."""
    assert result.exit_code == 1 and result.stdout == "", result.output
    assert result.stderr.startswith("limen: ") and "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("limen: ").rstrip("\n")


def lines(result):
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def facts(run, folder, *options):
    result = run("archive", "info", folder, "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# -- info --------------------------------------------------------------------------------------------


def test_info_tells_what_it_is(run, joined):
    result = run("archive", "info", "joined")
    assert result.exit_code == 0 and result.stderr == "", result.output
    said = result.stdout
    for part in (
        "key: int64, generated: int64, expires: int64, body: binary",
        "60, updated every 10: 6 steps",
        "NoRebuild3x2: 3 x 2",
        "generation round-robin, expiration round-robin, not clustered anew",
        f"time         {joined.time}\n",
        "version      5\n",
        f"{len(joined.scan()):,} alive\n",
        "the next update touches 4 of 6 sub-indices: + inserts new results here, ? looks here",
    ):
        assert part in said
    assert "invalidated" not in said and "waiting" not in said and "stream" not in said


def cells_of(result):
    """What is drawn in the grid, line by line and column by column."""
    drawn = [row for row in result.stdout.splitlines() if "│" in row]
    return [[cell.strip() for cell in row.split("│")[1:-1]] for row in drawn[1:]]


def test_the_grid_has_the_sizes_of_all(run, joined):
    cells = cells_of(run("archive", "info", "joined"))
    rows = [int(cell) for line in cells for cell in line[1:] if cell.isdigit()]
    assert rows == [sub.rows for sub in joined.sub_indices()]
    # update 5 is of row 4 mod 3 and of column 4 mod 2
    signs = [line[1:] for line in cells if set("".join(line[1:])) & set("+?")]
    assert signs == [["?", ""], ["+ ?", "+"], ["?", ""]]


@pytest.mark.parametrize("name", LAYOUTS)
def test_numbers_add_up_and_the_next_update_does_as_marked(run, tmp_path, name):
    counted = name.startswith("Count")
    layout = f"{name}{'3' if LAYOUTS[name].rivals else '3x2'}"
    small = Joined(rows=300, steps=6, every=10, keys=20, row_bytes=60, counted=counted)
    archive = make(tmp_path / "a", layout, small)
    found = facts(run, "a")
    tiles = found["sub_indices"]
    assert len(tiles) == archive.layout.rows * archive.layout.columns
    for total, part in (
        ("rows", "rows"),
        ("alive", "alive"),
        ("files", "files"),
        ("bytes", "bytes"),
    ):
        assert found[total] == sum(tile[part] for tile in tiles)
    assert found["alive"] == len(archive.scan()) <= found["rows"]
    assert found["bytes"] == sum(p.stat().st_size for p in _live(archive))
    on = {
        k: v for k, v in found["layout"].items() if k in ("generation", "expiration", "recluster")
    }
    assert on == {k: v for k, v in LAYOUTS[name]._asdict().items() if k != "rivals"}
    touched = {(tile["row"], tile["column"]) for tile in tiles if tile["next"]}
    counts = small.seen(5) if counted else None
    assert archive.update(50, small.update(5), counts=counts).touched == len(touched)
    if not counted:
        assert len(touched) == archive.layout.touched


def test_the_grid_tells_what_is_alive_and_what_has_gone(run, tmp_path):
    archive = make(tmp_path / "lazy", "LazyNoRebuild3x2", updates=4)
    archive.invalidate(range(20))
    row = {"key": [1], "generated": [50], "expires": [70], "body": [b"x"]}
    archive.update(50, pa.table(row, schema=archive.shape.schema))
    archive.invalidate([2])
    tiles = facts(run, "lazy")["sub_indices"]
    cells = [cell for line in cells_of(run("archive", "info", "lazy")) for cell in line[1:]]
    gone = [tile["rows"] - tile["alive"] for tile in tiles]
    assert [int(cell) for cell in cells if cell.isdigit()] == [tile["alive"] for tile in tiles]
    assert [cell for cell in cells if "gone" in cell] == [f"{n:,} gone" for n in gone if n]
    assert any(not tile["alive"] for tile in tiles if tile["rows"])


def _live(archive):
    return [archive.path / file.path for file in archive.snapshot().files]


def test_lazy_rows_are_thrown_away_when_marked(run, tmp_path):
    archive = make(tmp_path / "lazy", "LazyNoRebuild3x2", updates=0)
    seen = set()
    for step in range(1, 8):
        dropped = {t["row"] for t in facts(run, "lazy")["sub_indices"] if "drop" in t["next"]}
        before = archive.snapshot().state
        archive.update(step * 10, SMALL.update(step))
        plan = layouts.update(before.layout, 6, before.stretches, step, step)
        assert dropped == plan.dropped
        seen |= dropped
    assert seen
    gone = facts(run, "lazy")
    assert gone["rows"] > gone["alive"]
    assert "more that have gone lie there" in run("archive", "info", "lazy").stdout


def test_info_of_an_older_version(run, joined):
    assert facts(run, "joined", "--version", 2)["time"] == 10
    assert told(run("archive", "info", "joined", "--version", 99)) == (
        "joined: there is no version 99; the newest is 5"
    )


def test_info_before_the_first_update(run, tmp_path):
    make(tmp_path / "new", updates=-1)
    found = facts(run, "new")
    assert found["time"] is None and found["rows"] == 0
    assert not any(tile["next"] for tile in found["sub_indices"])
    assert "before the first update" in run("archive", "info", "new").stdout
    assert lines(run("archive", "scan", "new", "--json")) == []
    assert lines(run("archive", "probe", "new", "1", "--json")) == []


def test_info_of_invalidated_keys_and_of_streams(run, joined):
    joined.invalidate([1, 2])
    schema = joined.shape.schema
    for batch, (at, waiting) in enumerate([(41, 1), (43, 2), (58, 1)]):  # 58 is past an update
        row = {"key": [1], "generated": [at], "expires": [at + 9], "body": [b"x"]}
        joined.take_in("first", batch, pa.table(row, schema=schema))
        found = facts(run, "joined")
        assert (found["waiting"], found["streams"]) == (waiting, {"first": batch})
    assert found["invalidated"] == 2
    assert found["alive"] == len(joined.scan()) < found["rows"]
    said = run("archive", "info", "joined").stdout
    assert "invalidated  2 keys" in said and "first: up to batch 2" in said
    assert "waiting      1 result of streams" in said


def test_streams_are_known_after_a_checkpoint(run, tmp_path):
    archive = make(tmp_path / "a", updates=0)
    row = {"key": [1], "generated": [5], "expires": [9], "body": [b"x"]}
    for batch in range(14):
        archive.take_in("s", batch, pa.table(row, schema=archive.shape.schema))
    assert list((tmp_path / "a" / "_delta_log").glob("*.checkpoint.parquet"))
    assert facts(run, "a")["streams"] == {"s": 13}
    assert facts(run, "a", "--version", 11)["streams"] == {"s": 9}


def test_streams_are_told_by_what_is_signed(run, joined):
    """Whatever has become of an older commit."""
    row = {"key": [1], "generated": [41], "expires": [50], "body": [b"x"]}
    for stream, batch in (("s", 7), ("r", 3), ("r", 4)):
        joined.take_in(stream, batch, pa.table(row, schema=joined.shape.schema))
    commit = joined.path / "_delta_log" / f"{6:020}.json"
    text = commit.read_text()
    for damaged in (text.replace('"version":7', '"version":9'), ""):
        assert damaged != text
        commit.write_text(damaged)
        assert facts(run, "joined")["streams"] == {"r": 4, "s": 7}
        said = run("archive", "info", "joined").stdout
        assert "r: up to batch 4\n" in said and "s: up to batch 7\n" in said


def test_large_grids_are_drawn_in_shades(run, tmp_path):
    wide = Joined(rows=300, steps=36, every=10, keys=20, row_bytes=60)
    make(tmp_path / "a", "Rebuild12x36", wide, updates=1)
    drawn = run("archive", "info", "a").stdout
    assert "each with its results alive: the darker the more" in drawn and " alive, " in drawn
    narrow = CliRunner().invoke(app, ["archive", "info", "a"], env={"COLUMNS": "80"}).stdout
    assert "columns 16 to 31" in narrow
    assert max(map(len, narrow.split("\n\n")[1].splitlines()[:-1])) <= 80


def test_timestamps_in_json(run, timed):
    found = facts(run, "timed")
    assert (found["times"], found["window"], found["every"]) == ("timestamps", 600.0, 60.0)
    assert found["time"] == "2026-03-01T12:00:00+00:00"
    assert found["stamps"]["l"] == {"column": "left", "size": 1200.0}
    assert "0:10:00, updated every 0:01:00: 10 steps" in run("archive", "info", "timed").stdout


# -- probe and scan ----------------------------------------------------------------------------------


def test_probe(run, joined):
    result = run("archive", "probe", "joined", 3, 5, "--columns", "key,expires", "--json")
    assert lines(result) == joined.probe([3, 5], columns=["key", "expires"]).to_pylist()
    count = len(joined.probe([3, 5]))
    assert result.stderr.startswith(f"{count} results; ") and "row groups read" in result.stderr
    result = run(
        "archive", "probe", "joined", "--between", 3, 5, "--columns", "key,expires", "--json"
    )
    assert lines(result) == joined.probe(between=(3, 5), columns=["key", "expires"]).to_pylist()
    result = run("archive", "probe", "joined", "99")
    assert result.exit_code == 0 and "0 results; 0 of" in result.stderr
    result = run("archive", "probe", "joined", "--", "-4")
    assert result.exit_code == 0 and "0 results; 0 of" in result.stderr
    assert run("archive", "probe", "joined", "--between", "-4", "1").exit_code == 0


def test_probe_says_how_much_was_read(run, tmp_path):
    wide = Joined(rows=600, steps=6, every=10, keys=20, row_bytes=9000)
    archive = make(tmp_path / "a", "Rebuild2x2", wide, updates=0)
    snapshot = archive.snapshot()
    groups = sum(len(file.groups_of(7, 7)) for file in snapshot.named(7))
    total = sum(len(file.groups) for file in snapshot.files)
    assert groups < total
    said = run("archive", "probe", "a", 7).stderr
    assert f"4 of 4 files and {groups} of {total} row groups read" in said


def test_a_table_has_the_first(run, joined):
    result = run("archive", "probe", "joined", 3, "--limit", 2)
    there = len(joined.probe(3))
    assert f"the first 2 of {there}; --limit N shows more" in result.stdout
    assert result.stdout.count(".. (36 bytes)") == 2 and f"{there} results" in result.stderr
    result = run("archive", "scan", "joined")
    assert result.stdout.count(".. (36 bytes)") == 20
    assert result.stderr == "the first 20 results; --limit N shows more, --output FILE keeps all\n"
    result = run("archive", "scan", "joined", "--limit", 100000)
    assert f"{len(joined.scan())} results; " in result.stderr


@pytest.mark.parametrize("order", ["key", "generated", "expires"])
def test_scan_is_in_order(run, joined, order):
    found = lines(run("archive", "scan", "joined", "--order", order, "--json"))
    values = [row[order] for row in found]
    assert values == sorted(values) and len(found) == len(joined.scan())
    assert {row["body"] for row in found} == {b.hex() for b in joined.scan()["body"].to_pylist()}
    assert (
        len(lines(run("archive", "scan", "joined", "--order", order, "--json", "--limit", 7))) == 7
    )


@pytest.mark.parametrize("slices", [1, 5])
def test_scans_go_to_files_in_parts(run, joined, tmp_path, monkeypatch, slices):
    rows = len(joined.scan())
    monkeypatch.setattr("limen.archive.reader.SLICE_ROWS", rows // slices)
    expected = sorted(joined.scan().to_pylist(), key=lambda r: (r["key"], r["expires"], r["body"]))
    for name in ("a.parquet", "a.jsonl", "a.csv"):
        result = run("archive", "scan", "joined", "-o", name)
        assert result.exit_code == 0 and result.stderr.startswith(f"{rows} results; ")
    plain = [{**row, "body": row["body"].hex()} for row in expected]
    written = pq.read_table(tmp_path / "a.parquet").to_pylist()
    texts = (tmp_path / "a.jsonl").read_text().splitlines()
    cells = pa_csv.read_csv(
        tmp_path / "a.csv",
        convert_options=pa_csv.ConvertOptions(column_types={"body": pa.string()}),
    ).to_pylist()
    for found, wanted in ((written, expected), ([*map(json.loads, texts)], plain), (cells, plain)):
        assert [r["key"] for r in found] == [r["key"] for r in wanted]
        assert sorted(found, key=lambda r: (r["key"], r["expires"], r["body"])) == wanted


LISTS = [[1, None], None, [], [None], [2, 3, 4]]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_lists_go_to_csv_with_their_nulls(run, tmp_path, monkeypatch, kind):
    lists = [
        rows and [n if n is None else pa.scalar(n).cast(kind).as_py() for n in rows]
        for rows in LISTS
    ]
    times = [("key", pa.int64()), ("generated", pa.int64()), ("expires", pa.int64())]
    schema = pa.schema([*times, ("y", pa.list_(kind))])
    archive = Archive.open(tmp_path / "a", schema, key="key", window=10, every=5)
    n = len(lists)
    archive.update(0, {"key": range(n), "generated": [0] * n, "expires": [9] * n, "y": lists})
    assert run("archive", "scan", "a", "--columns", "key,y", "-o", "a.csv").exit_code == 0
    written = (tmp_path / "a.csv").read_text().splitlines()[1:]
    assert written == ['0,"1;"', "1,", '2,""', '3,""', '4,"2;3;4"']
    assert run("archive", "scan", "a", "--limit", 1, "-o", "one.csv").exit_code == 0
    assert (tmp_path / "one.csv").read_text().splitlines()[1:] == ['0,0,9,"1;"']


DEEP = {  # of what JSON has no word for, as Arrow has it and as JSON does
    "floats": (
        pa.list_(pa.float64()),
        [float("nan"), 1.5, float("inf"), None],
        [None, 1.5, None, None],
    ),
    "float": (pa.float32(), float("-inf"), None),
    "struct": (
        pa.struct([("b", pa.binary()), ("t", pa.timestamp("us", "UTC")), ("f", pa.float64())]),
        {"b": b"\x01\xff", "t": NOON, "f": float("nan")},
        {"b": "01ff", "t": NOON.isoformat(), "f": None},
    ),
    "structs": (
        pa.list_(pa.struct([("d", pa.date32()), ("f", pa.list_(pa.float32()))])),
        [{"d": date(2026, 1, 2), "f": [float("inf")]}],
        [{"d": "2026-01-02", "f": [None]}],
    ),
    "map": (
        pa.map_(pa.string(), pa.decimal128(5, 2)),
        [("\u00e9", Decimal("1.50"))],
        [["\u00e9", "1.50"]],
    ),
    "naive": (pa.timestamp("us"), datetime(2026, 1, 1), "2026-01-01T00:00:00"),
    "bytes": (pa.binary(), b"\x00", "00"),
}


def test_json_at_any_depth(run, tmp_path):
    """A line on the terminal is the line of a file, and a line of JSON."""
    times = [("key", pa.int64()), ("generated", pa.int64()), ("expires", pa.int64())]
    schema = pa.schema([*times, *((name, kind) for name, (kind, _, _) in DEEP.items())])
    archive = Archive.open(tmp_path / "a", schema, key="key", window=10, every=5)
    given = {name: [value] for name, (_, value, _) in DEEP.items()}
    archive.update(0, {"key": [1], "generated": [0], "expires": [9], **given})
    expected = {name: told for name, (_, _, told) in DEEP.items()}
    for words in (("scan", "a"), ("probe", "a", 1)):
        said = run("archive", *words, "--columns", ",".join(DEEP), "--json")
        (found,) = [
            json.loads(line, parse_constant=pytest.fail) for line in said.stdout.split("\n")[:-1]
        ]
        assert found == expected
        run("archive", *words, "--columns", ",".join(DEEP), "-o", "a.jsonl", "--force")
        assert (tmp_path / "a.jsonl").read_text() == said.stdout


@pytest.mark.parametrize("name", ["struct", "structs", "map"])
def test_csv_has_no_cells_for_what_is_nested(run, tmp_path, name):
    times = [("key", pa.int64()), ("generated", pa.int64()), ("expires", pa.int64())]
    kind, value, _ = DEEP[name]
    archive = Archive.open(
        tmp_path / "a", pa.schema([*times, ("y", kind)]), key="key", window=10, every=5
    )
    archive.update(0, {"key": [1], "generated": [0], "expires": [9], "y": [value]})
    said = told(run("archive", "scan", "a", "-o", "a.csv"))
    assert said.startswith("column 'y' is ") and said.endswith("write .parquet or .jsonl")
    assert not (tmp_path / "a.csv").exists()
    assert run("archive", "scan", "a", "--columns", "key", "-o", "a.csv").exit_code == 0


def test_times_that_python_cannot_say(run, tmp_path):
    kinds = [("key", pa.int64()), ("generated", pa.int64()), ("expires", pa.int64())]
    schema = pa.schema([*kinds, ("at", pa.timestamp("us", "UTC"))])
    archive = Archive.open(tmp_path / "a", schema, key="key", window=10, every=5)
    far = pa.array([2**60], pa.timestamp("us", "UTC"))
    archive.update(0, {"key": [1], "generated": [0], "expires": [9], "at": far})
    for words in ((), ("--json",), ("-o", "a.jsonl")):
        assert "is beyond the years 1 to 9999" in told(run("archive", "scan", "a", *words))
    assert run("archive", "scan", "a", "-o", "a.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "a.parquet").column("at").combine_chunks() == far


def test_files_are_written_when_there_is_nothing_and_kept_when_there(run, joined, tmp_path):
    assert run("archive", "probe", "joined", 99, "-o", "none.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "none.parquet").column_names == joined.shape.schema.names
    assert "none.parquet exists; --force" in told(
        run("archive", "scan", "joined", "-o", "none.parquet")
    )
    again = run("archive", "probe", "joined", 3, "-o", "none.parquet", "--force", "--limit", 1)
    assert again.exit_code == 0 and len(pq.read_table(tmp_path / "none.parquet")) == 1


def test_shorter_windows(run, joined, timed):
    found = lines(
        run("archive", "scan", "joined", "--window", 30, "--json", "--columns", "expires")
    )
    assert found == joined.window(30).scan("key", columns=["expires"]).to_pylist()
    for size, options in (
        (5 * MINUTE, ("--window", "5m")),
        ({"l": 6 * MINUTE}, ("--window", "l=6m")),
        (
            {"l": 6 * MINUTE, "r": 90 * timedelta(seconds=1)},
            ("--window", "l=6m", "--window", "r=1m30s"),
        ),
    ):
        found = lines(run("archive", "scan", "timed", "--json", "--columns", "key", *options))
        assert found == timed.window(size).scan("key", columns=["key"]).to_pylist()
        assert len(found) < 6


KEYS = {
    "text": (pa.string(), ["b", "a"], "a", None),
    "int32": (pa.int32(), [1, 2], "2", "1.5"),
    "float64": (pa.float64(), [1.5, 2.5], "2.5", "x"),
    "float32": (pa.float32(), [0.1, 2.5], "0.1", "1e400"),
    "date": (pa.date32(), [date(2026, 1, 2), date(2026, 1, 3)], "2026-01-02", "2026-13-01"),
    "zoned": (pa.timestamp("us", "UTC"), [NOON, NOON + MINUTE], "2026-03-01T12:00:00Z", "noon"),
    "zoneless": (pa.timestamp("us", "UTC"), [NOON, NOON + MINUTE], "2026-03-01 12:00:00", "12"),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type(run, tmp_path, kind):
    of, keys, asked, wrong = KEYS[kind]
    schema = pa.schema([("k", of), ("generated", pa.int64()), ("expires", pa.int64())])
    archive = Archive.open(tmp_path / "a", schema, key="k", window=10, every=5, layout="Rebuild2x2")
    archive.update(0, pa.table({"k": keys, "generated": [0, 0], "expires": [3, 9]}, schema=schema))
    assert len(lines(run("archive", "probe", "a", asked, "--json"))) == 1
    assert len(lines(run("archive", "probe", "a", "--between", asked, asked, "--json"))) == 1
    if wrong is not None:
        assert f"{wrong!r} is not a key: 'k' is " in told(
            run("archive", "probe", "a", asked, wrong)
        )


def test_a_float32_is_named_as_to_the_archive(run, tmp_path):
    schema = pa.schema([("k", pa.float32()), ("generated", pa.int64()), ("expires", pa.int64())])
    archive = Archive.open(tmp_path / "a", schema, key="k", window=10, every=5, layout="Rebuild2x2")
    archive.update(0, {"k": [0.1, 16777216.0], "generated": [0, 0], "expires": [3, 9]})
    for words, many in (
        (("0.1",), 1),
        (("16777216",), 1),
        (("16777217",), 0),
        (("1e300",), 0),
        (("--between", "0", "0.1"), 1),
        (("--between", "0.1", "16777217"), 2),
        (("--between", "16777217", "inf"), 0),
    ):
        assert len(lines(run("archive", "probe", "a", *words, "--json"))) == many, words


# -- migrate and vacuum ------------------------------------------------------------------------------


def test_migrate(run, joined):
    before = joined.scan("key")
    result = run("archive", "migrate", "joined", "Rebuild2x4")
    assert result.exit_code == 0 and "NoRebuild3x2" in result.stdout and "->" in result.stdout
    last = result.stdout.splitlines()[-1]
    assert last.startswith(f"version 6: NoRebuild3x2 to Rebuild2x4, {len(before)} results in ")
    assert str(joined.snapshot().layout) == "Rebuild2x4" and len(joined.scan("key")) == len(before)
    again = run("archive", "migrate", "joined", "rebuild2x4")
    assert again.stdout == "nothing to do: joined has the layout Rebuild2x4\n"
    assert joined.snapshot().version == 6


def test_migrate_to_what_fits(run, joined):
    result = run("archive", "migrate", "joined", "auto", "--queries", 100)
    assert result.stdout.startswith("Rebuild2x2: a small window (") and "(100)" in result.stdout
    result = run("archive", "migrate", "joined", "auto", "--window-bytes", "5e9")
    assert result.stdout.startswith("NoRebuild3x3: a large window (5 GB) and few queries")
    result = run("archive", "migrate", "joined", "auto", "--space")
    assert result.stdout.startswith("LazyNoRebuild4x4: ")
    result = run(
        "archive",
        "migrate",
        "joined",
        "auto",
        "--window-bytes",
        "5e9",
        "--queries",
        50,
        "--probes-first",
    )
    assert result.stdout.startswith("Rebuild2x2: ")
    result = run("archive", "migrate", "joined", "auto", "--queries", 50)
    assert result.stdout.splitlines()[-1].startswith("nothing to do")


def test_vacuum(run, joined):
    kept = run("archive", "vacuum", "joined")
    assert kept.stdout == "0 files deleted, 0 B\n"
    here = {p for p in joined.path.rglob("generation*/**/*.parquet")}
    freed = sum(p.stat().st_size for p in here - set(_live(joined)))
    result = run("archive", "vacuum", "joined", "--older-than", "0s")
    gone = len(here) - len(_live(joined))
    assert gone and result.stdout == f"{gone} files deleted, {in_bytes(freed)}\n"
    assert "vacuumed" in told(run("archive", "info", "joined", "--version", 1))


# -- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("info", "nope"), "there is no folder nope"),
        (("info", "file"), "file is not a folder"),
        (("info", "empty"), "empty is not an archive: it has no Delta log"),
        (("scan", "delta"), "is a Delta table, but not an archive"),
        (("probe", "joined"), "name the keys, or two with --between"),
        (("probe", "joined", "1", "--between", "1", "2"), "name the keys, or two with --between"),
        (("probe", "joined", "ibm"), "'ibm' is not a key: 'key' is int64 here"),
        (("probe", "joined", "1", "--window", "1h"), "times are integers here"),
        (("probe", "joined", "1", "--window", "61"), "window=61: the archive's is 60"),
        (("probe", "joined", "1", "--window", "0"), "not a length of time"),
        (("probe", "joined", "1", "--window", "a=5"), "no timestamps of a window 'a'"),
        (("probe", "joined", "1", "--window", "a="), "--window 'a=': times are integers here"),
        (("scan", "joined", "--window", "=5"), "write SIZE, or NAME=SIZE once for each"),
        (("scan", "joined", "--window", "5", "--window", "6"), "once for each window"),
        (("scan", "joined", "--window", "5", "--window", "a=6"), "one size for all windows, or"),
        (("scan", "joined", "--columns", "price"), "there is no column 'price'"),
        (("scan", "joined", "--columns", ", ,"), "--columns ', ,': name the columns, with commas"),
        (("scan", "joined", "-o", "a.xls"), "a.xls"),
        (("scan", "joined", "-o", "joined/a.csv"), "is inside of the archive"),
        (("scan", "joined", "-o", "nowhere/a.csv"), "there is no folder nowhere"),
        (("migrate", "joined", "Foo4x4"), "there is no layout 'Foo4x4'; there are Rebuild,"),
        (("migrate", "joined", "Rebuild9x9"), "at most 6 rows and columns"),
        (("migrate", "joined", "Rebuild2x2", "--queries", "3"), "are for auto, not for"),
        (("vacuum", "joined", "--older-than", "soon"), "write a time as 1h30m"),
    ],
)
def test_refusals(run, joined, tmp_path, words, sentence):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("text")
    if "delta" in words:
        write_deltalake(str(tmp_path / "delta"), pa.table({"x": [1]}))
    assert sentence in told(run("archive", *words))
    assert joined.snapshot().version == 5


def test_windows_of_timestamps_are_written_as_times(run, timed):
    assert "write a time as 1h30m" in told(run("archive", "probe", "timed", "a", "--window", "5"))
    assert "more than its size" in told(run("archive", "scan", "timed", "--window", "r=1h"))


def test_a_damaged_file_is_named(run, joined):
    path = _live(joined)[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    said = told(run("archive", "scan", "joined", "-o", "a.csv"))
    assert path.name in said and "damaged" in said
    path.write_bytes(data[: len(data) // 2])
    assert path.name in told(run("archive", "info", "joined"))


def test_a_damaged_waiting_file_is_named(run, joined):
    row = {"key": [1], "generated": [41], "expires": [50], "body": [b"x"]}
    joined.take_in("s", 0, pa.table(row, schema=joined.shape.schema))
    (beside,) = (joined.path / "_limen").glob("pending-*")
    beside.write_bytes(b"no")
    assert beside.name in told(run("archive", "info", "joined"))


def test_help_of_each(run):
    for words in ((), ("info",), ("probe",), ("scan",), ("migrate",), ("vacuum",)):
        assert "Usage" in run("archive", *words, "--help").stdout
