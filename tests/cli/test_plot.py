"""`limen plot`: pictures of sensible size for every kind of attribute and index, sentences else."""

from __future__ import annotations

import datetime as dt
import struct
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limen.indexes import create
from limen.kernels import lci_bv_dt
from limen.plotting import pieces, searches

RNG = np.random.default_rng(5)
N = 2000
FLOATS = RNG.uniform(-50, 1000, N)
SPREAD = np.exp(RNG.normal(0, 4, N))
INTEGERS = RNG.integers(0, 500, N)
DAYS = (np.datetime64("2024-01-01") + INTEGERS).astype("datetime64[D]")
OPEN = RNG.random(N) < 0.1


def bounds(lo, hi) -> dict[str, pa.Array]:
    return {"x_lo": pa.array(lo, mask=OPEN), "x_hi": pa.array(hi)}


COLUMNS = {
    "floats": bounds(FLOATS, FLOATS + 20),
    "lognormal": bounds(SPREAD, SPREAD * 1.1),
    "float32": bounds(FLOATS.astype(np.float32), (FLOATS + 1).astype(np.float32)),
    "integers": bounds(INTEGERS, INTEGERS + 9),
    "unsigned": bounds(INTEGERS.astype(np.uint64), (INTEGERS + 9).astype(np.uint64)),
    "dates": bounds(DAYS, DAYS + 30),
    "timestamps": bounds(DAYS.astype("datetime64[us]"), (DAYS + 30).astype("datetime64[us]")),
    "decimals": {
        name: pa.array([Decimal(int(v)) / 4 for v in INTEGERS + extra], pa.decimal128(10, 2))
        for name, extra in (("x_lo", 0), ("x_hi", 10))
    },
    "one point": {"x_lo": pa.array([3.5] * N), "x_hi": pa.array([3.5] * N)},
    "extremes": bounds(np.where(INTEGERS < 250, -1e308, 0.0), np.where(INTEGERS < 250, 1e308, 1.0)),
    "dates to 9999": bounds(DAYS, np.where(INTEGERS < 250, np.datetime64("9999-12-31"), DAYS + 30)),
    "timestamps from 1": bounds(
        np.where(INTEGERS < 250, np.datetime64("0001-01-01T00:00:00.000000"), DAYS), DAYS + 30
    ),
    "open ends only": {"x_lo": pa.array(INTEGERS)},
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_draws(run, tmp_path, kind):
    pq.write_table(pa.table({"id": np.arange(N), **COLUMNS[kind]}), tmp_path / "q.parquet")
    result = run("plot", "queries", "q.parquet")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "queries.png: x of 2,000 queries\n"
    data = (tmp_path / "queries.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (1200, 1000)
    assert 20_000 < len(data) < 500_000


def test_chooses_the_attribute_most_constrain(run, tmp_path):
    (tmp_path / "q.jsonl").write_text(
        '{"id": 1, "where": "price > 1.5 AND qty < 7"}\n{"id": 2, "where": {"qty": {">=": 3}}}\n'
    )
    result = run("plot", "queries", "q.jsonl", "-o", "q.svg")
    assert result.stdout.startswith("q.svg: qty of 2 queries (of 2 attributes the one that most")
    assert "<svg" in (tmp_path / "q.svg").read_text()
    assert run("plot", "queries", "q.jsonl", "--on", "price").stdout.startswith(
        "queries.png: price"
    )
    assert run("plot", "queries", "q.jsonl", "--types", "qty=int32").exit_code == 0


def test_csv_dates(run, tmp_path):
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(50)]
    (tmp_path / "q.csv").write_text(
        "id,day_lo,day_hi\n"
        + "".join(f"{i},{d},{d + dt.timedelta(9)}\n" for i, d in enumerate(days))
    )
    result = run("plot", "queries", "q.csv")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("id,x_lo\n1,2\n", ("-o", "q.gif"), "a picture is .png or .svg"),
        ("id,x_lo\n1,2\n", ("-o", "no/q.png"), "there is no folder no"),
        ("id,x_lo\n1,2\n", ("--on", "y"), "attributes with ranges: x"),
        ("id,x_lo,s\n1,2,a\n", ("--on", "s"), "'s' takes equality only"),
        ("id,s\n1,a\n", (), "no query has a range"),
        ("id,x_lo\n", (), "no query has a range"),
        ("id,x_lo\n1,2\n", ("--types", "y=int32"), "no query names 'y'"),
        ("id,x_lo\n1,2\n2,z\n", (), "field 'x_lo': 'z' is not a value of"),
    ],
)
def test_refusals(run, tmp_path, text, options, told):
    (tmp_path / "q.csv").write_text(text)
    result = run("plot", "queries", "q.csv", *options)
    assert result.exit_code == 1 and told in result.stderr, result.stderr
    assert result.stderr.startswith("limen: ")


def test_without_matplotlib(run, tmp_path, monkeypatch):
    (tmp_path / "q.csv").write_text("id,x_lo\n1,2\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("plot", "queries", "q.csv")
    assert result.exit_code == 1
    assert result.stderr == "limen: limen plot needs matplotlib: pip install 'limen[plot]'\n"


def size(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("ends", ["closed", "half-open"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("lci", "cei-plain", "--value", "3"),
        ("is-list", "is-list", "--query", "0:1"),
        ("ui", "dlist", "--domain=-9:3", "--query=-9:3", "--value=-4"),
        ("--length", "1", "--query", "30:31"),
        ("--domain", "0:0", "--length", "1", "--query", "0:1", "--value", "0", "ui", "sci"),
        ("--domain=-100:155", "--length", "64", "--query=-90:130"),
        ("sci-bc", "--domain", "0:255", "--length", "256", "--query", "1:255"),
    ],
)
def test_draws_pieces(run, tmp_path, ends, options):
    if "0:0" in options and ends == "closed":
        options = ["0:0" if option == "0:1" else option for option in options]
    result = run("plot", "pieces", "--ends", ends, *options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("pieces.png: [")
    width, height = size(tmp_path / "pieces.png")
    assert width == 1200 and 200 < height < 1600


def test_pieces_says_what_it_drew(run, tmp_path):
    result = run("plot", "pieces", "sci", "ui", "sci", "--query", "3:9", "-o", "p.svg")
    assert result.stdout == "p.svg: [3, 9) in sci, ui\n"
    text = (tmp_path / "p.svg").read_text()
    assert "<svg" in text
    assert run("plot", "pieces", "--ends", "closed").stdout.startswith("pieces.png: [3, 22] in ui,")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--query", "3-9"), "--query 3-9: two integers are needed, such as 3:22"),
        (("--query", "3:"), "--query 3:: two integers are needed"),
        (("--query", "1:2:3"), "two integers are needed"),
        (("--domain", "0:x"), "--domain 0:x: two integers are needed"),
        (("--query", "3:40"), "the query: [3, 40) is not within the domain [0, 32)"),
        (("--query", "9:3"), "--query 9:3: 9 is above 3"),
        (("--query", "9:9"), "the query: [9, 9) holds nothing"),
        (("--domain", "5:0"), "--domain 5:0: 5 is above 0"),
        (("--domain", "0:1000"), "a picture has room for 256 values, not for 1,001"),
        (("--length", "12"), "length 12 is not a power of two"),
        (("--length", "64"), "length 64 is larger than the domain, which has 32 values"),
        (("--ends", "open"), "ends are closed or half-open, not 'open'"),
        (("--value", "32"), "the value 32 is not within the domain"),
        (("--value", "-0.5"), "the value -0.5 is not within the domain"),
        (("--value", "nan"), "the value nan is not within the domain"),
        (
            ("--ends", "closed", "--value", "3.5"),
            "with closed ends values are integers, 3.5 is not",
        ),
        (("b-tree",), "no index named 'b-tree'; there are: cei, cei-plain"),
        (("cei",), "cei has no constructs that are the same for all queries"),
        (("-o", "p.gif"), "a picture is .png or .svg"),
        (("-o", "no/p.png"), "there is no folder no"),
    ],
)
def test_pieces_refusals(run, tmp_path, options, told):
    result = run("plot", "pieces", *options)
    assert result.exit_code == 1 and told in result.stderr, result.stderr
    assert result.stderr.startswith("limen: ")
    assert not (tmp_path / "pieces.png").exists()


def a_scene(ends, query=(3, 22), value=None, domain=range(32)):
    return pieces.scene(pieces.NAMES, domain, 8, ends, query, value)


@pytest.mark.parametrize(
    ("ends", "alike", "lists"),
    [
        ("half-open", [2, 2, 4, 1], [1, 8 * 9 // 2, 2 * 8 - 1, 3 + 1]),
        ("closed", [1, 1, 2, 4, 1], [2, 1, 8 * 11 // 2, 2 * 8 + 3, 3 + 2]),
    ],
)
def test_a_value_crosses_every_track_once(ends, alike, lists):
    """So the height of a row is the papers' number of constructs over a value."""
    drawn = a_scene(ends)
    rows = pieces.rows_of(pieces.NAMES, drawn)
    assert [len(row.names) for row in rows] == alike
    assert [1 + max(row.tracks.values()) for row in rows] == lists
    for row in rows:
        over = [row.tracks[label] for label, a, b in row.found.tolist() if a <= drawn.at <= b]
        assert sorted(over) == list(range(len(over))) and row.room
        by_label = {label: (a, b) for label, a, b in row.found.tolist()}
        assert all(by_label[label] == (a, b) for label, a, b in row.pieces)


def test_too_many_constructs_share_tracks():
    drawn = pieces.scene(["sci"], range(256), 128, "half-open", (0, 200), None)
    (row,) = pieces.rows_of(["sci"], drawn)
    assert not row.room and 1 + max(row.tracks.values()) == 128


@pytest.mark.parametrize("ends", ["closed", "half-open"])
@pytest.mark.parametrize("query", [(3, 22), (0, 31), (7, 8)])
def test_the_marked_edges_are_the_pieces_of_the_index(ends, query):
    drawn = a_scene(ends, query)
    skips = pieces.skips_of(drawn)
    index = create("is-list", ends=ends)
    lo, hi = pieces.some_queries(drawn, pieces.OTHERS)
    ids = np.roll(np.arange(len(lo)), -1)
    index.build(ids, lo[ids], hi[ids] + (ends == "half-open"))
    assert skips.marked == index.pieces(*query)
    for value in range(32):
        over = pieces.skips_of(drawn._replace(value=value)).over
        assert len(over) >= index.lists_many(np.array([value]))[0]
        assert len({level for level, _, _ in over}) == len(over)


@pytest.mark.parametrize("ends", ["closed", "half-open"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--value", "0"),
        ("--domain=-9:3", "--query=-9:3", "--value=-4", "--length", "1"),
        ("--domain", "0:255", "--length", "256", "--value", "255"),
    ],
)
def test_draws_searches(run, tmp_path, ends, options):
    result = run("plot", "searches", "--ends", ends, *options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("searches.png: a search for ")
    assert size(tmp_path / "searches.png") == (1200, 490)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--query", "3:40"), "the query: [3, 40) is not within the domain [0, 32)"),
        (("--query", "x"), "--query x: two integers are needed"),
        (("--length", "12"), "length 12 is not a power of two"),
        (("-o", "p.gif"), "a picture is .png or .svg"),
    ],
)
def test_searches_refusals(run, options, told):
    result = run("plot", "searches", *options)
    assert result.exit_code == 1 and told in result.stderr, result.stderr


@pytest.mark.parametrize("ends", ["closed", "half-open"])
def test_what_a_search_reads_is_what_the_indexes_have(ends):
    drawn = a_scene(ends)
    lo, hi = pieces.some_queries(drawn, searches.SEARCHED)
    index = create("lci-bv-dt", domain=drawn.domain, length=8, ends=ends)
    index.build(np.arange(len(lo)), lo, hi + (ends == "half-open"))
    distances, _ = lci_bv_dt.distance_table(8, int(ends == "closed"))
    for value in range(32):
        found = searches.segment_of(drawn._replace(value=value))
        assert (found.active & found.over).sum() == index.lists_many(np.array([value]))[0]
        labels = found.least + distances
        assert np.flatnonzero(found.over).tolist() == sorted(labels[labels >= 0].tolist())
        assert found.bits == (8 - (ends == "half-open")) * 4 + 1
