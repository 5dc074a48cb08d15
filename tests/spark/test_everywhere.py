"""The same code and the same answers on every kind of Spark, each in a process of its own."""

from __future__ import annotations

import pytest

SCRIPT = """
import pathlib, tempfile
import pyarrow as pa, pyarrow.parquet as pq
from deltalake import DeltaTable
import limen

quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for JVMs to start, not to run
options = {{f"spark.{{who}}.extraJavaOptions": quick for who in ("driver", "executor")}}
spark = limen.spark.session({where}, config=options)
types = {{"symbol": "string", "price": "float64"}}
queries = {{"ibm": "symbol = 'IBM' AND price < 50", "any": "price > 0"}}
trades = spark.createDataFrame(
    [("IBM", 45.0), ("KO", 9.5), ("IBM", None)], "symbol string, price double"
)
answer = {{}}
for emit in ("rows", "ids", "count"):
    rows = limen.spark.match(trades, queries, emit, metrics="m").collect()
    answer[emit] = sorted(str(tuple(row)) for row in rows)
found = limen.spark.crossings(trades.dropna(), queries, entity="symbol", on="price").collect()
answer["crossings"] = sorted(str((row.symbol, row.query_id, row.crossing)) for row in found)
answer["quarantine"] = [row.reason for row in limen.spark.quarantine(trades, queries).collect()]
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    catalog = limen.Catalog.open(folder / "catalog", types)
    catalog.add(queries)
    (folder / "events").mkdir()
    source = spark.readStream.schema("symbol string, price double").parquet(str(folder / "events"))
    found = limen.spark.match(source, catalog, version_column="v")
    one_by_one = spark.readStream.schema("symbol string, price double").option("maxFilesPerTrigger", 1)
    crossed = limen.spark.crossings(
        one_by_one.parquet(str(folder / "events")), catalog, entity="symbol", on="price"
    )
    for number in range(3):
        table = pa.table({{"symbol": ["IBM", "KO"] * 50, "price": [45.0, float(number)] * 50}})
        pq.write_table(table, folder / "events" / f"{{number}}.parquet")
        stream = limen.spark.write_delta(found, folder / "out", availableNow=True)
        stream.awaitTermination()
        if number != 1:
            limen.spark.write_delta(crossed, folder / "crossed", availableNow=True).awaitTermination()
        catalog.change(add={{f"q{{number}}": f"price = {{number + 1}}"}}, remove=["any"] * (number == 1))
    rows = DeltaTable(folder / "out").to_pyarrow_table()
    counted = rows.group_by(["query_id", "v"]).aggregate([([], "count_all")])
    answer["stream"] = sorted(map(list, zip(*(c.to_pylist() for c in counted.columns))))
    rows = DeltaTable(folder / "crossed").to_pyarrow_table()
    rows = rows.select(["symbol", "query_id", "crossing", "version"])
    answer["crossed"] = sorted(map(list, zip(*(c.to_pylist() for c in rows.columns))))
    answer["bound"] = list(catalog.bindings(stream).values())
spark.stop()
"""

EXPECTED = {
    "rows": ["('IBM', 45.0, 'any')", "('IBM', 45.0, 'ibm')", "('KO', 9.5, 'any')"],
    "ids": ["('IBM', 45.0, ['any', 'ibm'])", "('KO', 9.5, ['any'])"],
    "count": ["('IBM', 45.0, 2)", "('KO', 9.5, 1)"],
    "crossings": ["('IBM', 'any', 'enter')", "('IBM', 'ibm', 'enter')", "('KO', 'any', 'enter')"],
    "quarantine": ["price: null"],
    "stream": [
        ["any", 1, 50],
        ["any", 2, 100],
        ["ibm", 1, 50],
        ["ibm", 2, 50],
        ["ibm", 3, 50],
        ["q0", 2, 50],
        ["q1", 3, 50],
    ],
    "crossed": [
        ["IBM", "any", "enter", 1],
        ["IBM", "ibm", "enter", 1],
        ["KO", "q0", "enter", 3],
        ["KO", "q0", "exit", 3],
        ["KO", "q1", "enter", 3],
    ],
    "bound": [1, 2, 3],
}


@pytest.mark.parametrize(
    "where",
    ["cores=2, memory='1g'", "master='local-cluster[2,1,1024]'", "remote='local[2]'"],
    ids=["local", "local-cluster", "connect"],
)
def test_same_answers(alone, where):
    assert alone(SCRIPT.format(where=where)) == EXPECTED
