from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from limen.indexes import saved


def test_only_a_durable_save_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    arrays = {"a": np.arange(3), "b": np.arange(2000)}
    saved.write(tmp_path / "quick", "kind", arrays, {"n": [1, {"x": None}]}, durable=False)
    assert not synced
    saved.write(tmp_path / "sure", "kind", arrays, {})
    assert len(synced) == 3
    found, facts = saved.read(tmp_path / "quick", "kind", verify=True)
    assert facts == {"n": [1, {"x": None}]}
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())


def test_of_two_that_save_at_once_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = saved.os.rename

    def late(beside: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "something").touch()
        real(beside, folder)

    monkeypatch.setattr("os.rename", late)
    with pytest.raises(FileExistsError, match="was saved by another process meanwhile"):
        saved.write(tmp_path / "x", "kind", {}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_parts_keep_their_names() -> None:
    arrays = saved.nested("p1", {"a": np.arange(1)}) | saved.nested("p10", {"a.b": np.arange(2)})
    assert list(saved.part(arrays, "p1")) == ["a"] and list(saved.part(arrays, "p10")) == ["a.b"]
    assert saved.padded(np.ones((3, 2)), 2, 4).tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]
    assert saved.spare_rows(8000) == 8000 + 1000 + 1024
