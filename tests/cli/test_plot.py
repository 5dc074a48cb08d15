"""`limen plot queries`: a picture of sensible size for every kind of attribute, sentences else."""

from __future__ import annotations

import datetime as dt
import struct
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
