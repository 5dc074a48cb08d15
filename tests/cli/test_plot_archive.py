"""`limen plot archive`: pictures of every kind of layout, sentences else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from limen.archive.grid import tiles_of
from limen.plotting import archive as plotting
from limen.testing.joined import Joined

from .test_archive import SMALL, make, timed, told  # noqa: F401
from .test_plot import size

COUNTED = Joined(rows=300, steps=6, every=10, keys=20, row_bytes=60, counted=True)
LONG = Joined(rows=2000, steps=60, every=10, keys=20, row_bytes=60)


@pytest.mark.parametrize(
    ("layout", "joined"),
    [
        ("NoRebuild4x4", SMALL),
        ("LazyRebuild3x2", SMALL),
        ("CountNoRebuild3x2", COUNTED),
        ("R-exp6", SMALL),
        ("WATA4", SMALL),
        ("Rebuild12x12", LONG),
    ],
)
def test_draws(run, tmp_path, layout, joined):
    archive = make(tmp_path / "a", layout, joined, updates=3)
    result = run("plot", "archive", "a")
    alive, shape = len(archive.scan()), archive.layout
    said = f"archive.png: {alive:,} results in {shape.rows} x {shape.columns} sub-indices of {layout}\n"
    assert (result.exit_code, result.stdout) == (0, said), result.stderr
    assert size(tmp_path / "archive.png") == (1500, 800)


def test_draws_timestamps_and_older_versions(run, timed, tmp_path):  # noqa: F811
    result = run("plot", "archive", "timed", "-o", "grid.svg", "--version", 1)
    assert result.exit_code == 0 and result.stdout.startswith("grid.svg: 6 results"), result.stderr
    assert "<svg" in (tmp_path / "grid.svg").read_text()


def test_one_result(run, tmp_path):
    archive = make(tmp_path / "a", "Rebuild2x2", updates=-1)
    row = {"key": [1], "generated": [0], "expires": [9], "body": [b"x"]}
    archive.update(0, pa.table(row, schema=archive.shape.schema))
    assert run("plot", "archive", "a").stdout.startswith("archive.png: 1 result in 2 x 2 sub-ind")


def test_points_are_results_of_their_sub_index(tmp_path):
    archive = make(tmp_path / "a", "NoRebuild3x2")
    snapshot = archive.snapshot()
    generated, expires, cells = plotting._sample(snapshot)
    there = archive.scan()
    assert sorted(zip(generated, expires, strict=True)) == sorted(
        zip(there["generated"].to_pylist(), there["expires"].to_pylist(), strict=True)
    )
    rows = [tile.rows for tile in tiles_of(snapshot)]
    assert np.bincount(2 * cells[:, 0] + cells[:, 1], minlength=6).tolist() == rows


def test_every_sub_index_has_its_colour():
    for rows, columns in ((1, 1), (4, 4), (6, 3), (20, 5), (1, 12)):
        found = plotting._colours(rows, columns)
        assert found.shape == (rows, columns, 3) and found.min() >= 0 and found.max() <= 1
        assert len(np.unique(found.reshape(-1, 3), axis=0)) == rows * columns


def test_refusals(run, tmp_path):
    make(tmp_path / "new", updates=-1)
    assert "no update has been made" in told(run("plot", "archive", "new"))
    assert told(run("plot", "archive", "nope")) == "there is no folder nope"
    assert "a picture is .png or .svg" in told(run("plot", "archive", "new", "-o", "a.gif"))
    assert "the newest is 0" in told(run("plot", "archive", "new", "--version", 3))
