"""The `limen` command run in this process, and small files of events and queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from limen.cli import app

EVENTS = [
    {"symbol": "IBM", "price": 45.5, "volume": 100},
    {"symbol": "KO", "price": 9.5, "volume": 20},
    {"symbol": "IBM", "price": 9.0, "volume": 7},
    {"symbol": "AA", "price": 70.0, "volume": 1},
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def go(*args: object) -> Result:
        return CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200"})

    return go


@pytest.fixture
def events(tmp_path: Path) -> dict[str, Path]:
    """The same events in each format."""
    csv, jsonl, parquet = (tmp_path / f"events.{ext}" for ext in ("csv", "jsonl", "parquet"))
    csv.write_text(
        "symbol,price,volume\n"
        + "".join(f"{e['symbol']},{e['price']},{e['volume']}\n" for e in EVENTS)
    )
    jsonl.write_text("".join(f"{e}\n".replace("'", '"') for e in EVENTS))
    pq.write_table(pa.Table.from_pylist(EVENTS), parquet)
    return {"csv": csv, "jsonl": jsonl, "parquet": parquet}


@pytest.fixture
def queries(tmp_path: Path) -> dict[str, Path]:
    """The same two queries in each format."""
    csv, where, jsonl, parquet = (
        tmp_path / name for name in ("q.csv", "where.csv", "q.jsonl", "q.parquet")
    )
    csv.write_text("id,symbol,price_lo,price_hi\nibm,IBM,40,50\ncheap,,,10\n")
    where.write_text(
        "id,where\nibm,\"symbol = 'IBM' AND price BETWEEN 40 AND 50\"\ncheap,price <= 10\n"
    )
    jsonl.write_text(
        '{"id": "ibm", "where": {"symbol": "IBM", "price": {"between": [40, 50]}}}\n\n'
        '{"id": "cheap", "where": "price <= 10"}\n'
    )
    table = pa.table(
        {
            "id": ["ibm", "cheap"],
            "symbol": ["IBM", None],
            "price_lo": [40.0, None],
            "price_hi": [50.0, 10.0],
        }
    )
    pq.write_table(table, parquet)
    return {"csv": csv, "where": where, "jsonl": jsonl, "parquet": parquet}
