"""`limen plot hotspots`: of query files of every kind, and of a catalog through its versions."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

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


@pytest.fixture
def drawn(run, tmp_path, monkeypatch):
    """Draw the ranges of a file, on x; returns the three panels."""
    figures = []
    save = Figure.savefig

    def keep(figure, path):
        save(figure, path)
        figures.append(figure)

    def go(lo, hi, *options):
        table = pa.table({"id": np.arange(len(lo)), "x_lo": lo, "x_hi": hi})
        pq.write_table(table, tmp_path / "q.parquet")
        result = run("plot", "hotspots", "q.parquet", *options)
        assert result.exit_code == 0, result.stderr
        return figures[-1].axes

    monkeypatch.setattr(Figure, "savefig", keep)
    return go


def lines_of(axes):
    return [one for one in axes.collections if isinstance(one, LineCollection)]


def test_what_is_in_the_panels(drawn):
    """Three hotspots of twenty ranges each, one after the other, and twelve ranges that are alone."""
    places, alone = np.repeat([100, 200, 300], 20), 7 * np.arange(12)
    lo = np.concatenate([places - np.tile(np.arange(20), 3), alone])
    hi = np.concatenate([places + 5, alone + 1])
    ranges, sizes, moves = drawn(lo, hi, "--alpha", "0.2")
    assert [len(one.get_segments()) for one in lines_of(ranges)] == [20, 20, 20, 12]
    bars = [line.get_xdata()[0] for line in ranges.lines if len(set(line.get_xdata())) == 1]
    assert bars == [102, 202, 302]
    stems = [one.get_segments()[0][:, 0].tolist() for one in lines_of(sizes)]
    assert stems == [[102, 102], [202, 202], [302, 302]]
    dots = [line.get_ydata() for line in sizes.lines if line.get_marker() == "o"]
    assert [float(np.ravel(one)[0]) for one in dots] == [20, 20, 20]
    levels = [line.get_ydata()[0] for line in sizes.lines if line.get_marker() == "None"]
    assert levels == pytest.approx([0.2 * 72, 0.1 * 72])
    (grey,) = [line for line in sizes.lines if line.get_marker() == "."]
    assert grey.get_ydata().tolist() == [1] * 12
    (scatter,) = moves.collections
    at = scatter.get_offsets()
    assert at[at[:, 1] == 72][:, 0].tolist() == [102, 202, 302]
    first = {x: min(t for y, t in at if abs(y - x) < 20) for x in (102, 202, 302)}
    assert first[102] < first[202] < first[302]
    largest = scatter.get_sizes()[at[:, 1] == 72]
    assert largest == pytest.approx([6 + 400 * 20 / 72] * 3)


def test_nothing_lies_over_the_dots(drawn):
    """The words are outside the panel, and the dots of the first and the last time inside."""
    lo = np.repeat(np.arange(0, 50, 10), 200)
    _, sizes, moves = drawn(lo, lo + 3, "--alpha", "0.1")
    right = sizes.get_window_extent().x1
    words = [text for text in sizes.texts if text.get_text() in ("becomes\nhot", "ceases\nto be")]
    boxes = [text.get_window_extent() for text in words]
    assert len(boxes) == 2 and not boxes[0].overlaps(boxes[1])
    assert all(right < box.x0 and box.x1 <= sizes.figure.bbox.x1 for box in boxes)
    (scatter,) = moves.collections
    radius = np.sqrt(scatter.get_sizes()) / 2 * sizes.figure.dpi / 72
    y = moves.transData.transform(scatter.get_offsets())[:, 1]
    panel = moves.get_window_extent()
    assert (y - radius >= panel.y0).all() and (y + radius <= panel.y1).all()


@pytest.mark.parametrize("n", [1, 2, 4, 12, 3000])
def test_sizes_are_plain_numbers(drawn, n):
    _, sizes, _ = drawn(np.zeros(n), np.ones(n), "--alpha", "0.5")
    sizes.figure.canvas.draw()
    ticks = [*sizes.yaxis.get_ticklabels(), *sizes.yaxis.get_ticklabels(minor=True)]
    texts = {tick.get_text() for tick in ticks} - {""}
    assert texts <= {"1", "2", "5", "10", "20", "50", "100", "1k", "0.1", "0.01", "10k"}
    assert {"1", "2"} <= texts if n < 12 else {"1", "10"} <= texts


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_infinite_ends_are_not_on_the_axis(drawn, kind):
    rng = np.random.default_rng(0)
    lo = rng.normal(100, 10, 1000)
    hi = lo + rng.exponential(5, 1000)
    hi[:20], lo[20:40] = np.inf, -np.inf
    for axes in drawn(pa.array(lo, kind), pa.array(hi, kind)):
        least, most = axes.get_xlim()
        assert 50 < least < 90 and 110 < most < 180
    for axes in drawn(*[pa.array(np.repeat([-np.inf, np.inf], 5), kind)] * 2):
        assert np.isfinite(axes.get_xlim()).all()  # there are no others


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
