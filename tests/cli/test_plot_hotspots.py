"""`limen plot hotspots`: of query files of every kind, and of a catalog through its versions."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limen

from .test_plot import COLUMNS, N, size


@pytest.mark.parametrize("kind", COLUMNS)
def test_draws(run, tmp_path, kind):
    pq.write_table(pa.table({"id": np.arange(N), **COLUMNS[kind]}), tmp_path / "q.parquet")
    result = run("plot", "hotspots", "q.parquet", "--alpha", "0.05")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("hotspots.png: ") and "2,000 queries on x" in result.stdout
    assert size(tmp_path / "hotspots.png") == (1200, 1100)


def test_says_what_it_drew(run, tmp_path):
    (tmp_path / "q.csv").write_text("id,x_lo,x_hi\n1,1,5\n2,2,9\n3,4,4\n4,70,80\n")
    result = run("plot", "hotspots", "q.csv", "--alpha", "0.6", "-o", "some.svg")
    told = "some.svg: 1 of 2 groups are hotspots and hold 75 % of 4 queries on x\n"
    assert (result.exit_code, result.stdout) == (0, told)
    assert "<svg" in (tmp_path / "some.svg").read_text()


def test_draws_the_versions_of_a_catalog(run, tmp_path):
    catalog = limen.Catalog.open(tmp_path / "alerts", {"x": "int32"}, ids="int64")
    for version in range(5):
        lo = np.arange(10) + 100 * version
        ids = np.arange(10) + 10 * version
        gone = ids - 20 if version > 1 else []
        catalog.change(pa.table({"id": ids, "x_lo": lo, "x_hi": lo + 50}), gone)
    result = run("plot", "hotspots", "alerts", "--alpha", "0.5")
    told = "hotspots.png: 2 of 2 groups are hotspots and hold 100 % of 20 queries on x\n"
    assert (result.exit_code, result.stdout) == (0, told), result.stderr


def test_draws_a_catalog_whose_versions_name_different_attributes(run, tmp_path):
    catalog = limen.Catalog.open(tmp_path / "c", {"x": "int32", "y": "int32"}, ids="int64")
    catalog.add({1: "x >= 1", 2: "y = 3"})
    catalog.remove([2])
    result = run("plot", "hotspots", "c", "--on", "x")
    told = "hotspots.png: 1 of 1 groups are hotspots and hold 100 % of 1 queries on x\n"
    assert (result.exit_code, result.stdout) == (0, told), result.stderr


@pytest.mark.parametrize(("option", "given"), [("--types", "x=int8"), ("--bounds", "[)")])
def test_what_is_said_of_files_is_refused_for_a_catalog(run, tmp_path, option, given):
    limen.Catalog.open(tmp_path / "c", {"x": "int32"}, ids="int64").add({1: "x >= 1"})
    result = run("plot", "hotspots", "c", option, given)
    assert result.exit_code == 1 and f"{option} is for files" in result.stderr


def test_the_title_says_when_a_group_is_hot(run, tmp_path):
    """From alpha on until less than half of it: with 10 of 100 it became hot and with 6 it still is."""
    catalog = limen.Catalog.open(tmp_path / "c", {"x": "int32"}, ids="int64")
    alone = {100 + i: f"x = {100 + i}" for i in range(90)}
    catalog.add({i: "x = 1" for i in range(10)} | alone)
    catalog.remove([0, 1, 2, 3])
    result = run("plot", "hotspots", "c", "--alpha", "0.1", "-o", "some.svg")
    assert "1 of 91 groups are hotspots" in result.stdout, result.stderr
    drawn = re.findall(r"<!-- (.*?) -->", (tmp_path / "some.svg").read_text())
    assert any("hot from 10 % of the queries on, until less than 5 %" in text for text in drawn)


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("id,x_lo\n1,2\n", ("--alpha", "0"), "--alpha is a share above 0 and up to 1, not 0"),
        ("id,x_lo\n1,2\n", ("--alpha", "nan"), "--alpha is a share"),
        ("id,x_lo\n1,2\n", ("-o", "q.gif"), "a picture is .png or .svg"),
        ("id,x_lo\n1,2\n", ("--on", "y"), "attributes with ranges: x"),
        ("id,s\n1,a\n", (), "no query has a range"),
    ],
)
def test_refusals(run, tmp_path, text, options, told):
    (tmp_path / "q.csv").write_text(text)
    result = run("plot", "hotspots", "q.csv", *options)
    assert result.exit_code == 1 and told in result.stderr, result.stderr
    assert result.stderr.startswith("limen: ")


def test_a_folder_that_is_no_catalog(run, tmp_path):
    (tmp_path / "empty").mkdir()
    result = run("plot", "hotspots", "empty")
    assert result.exit_code == 1 and result.stderr.startswith("limen: "), result.stderr
