"""Files as memory: what cannot be looked at is an error and not the end of the process."""

from __future__ import annotations

import gc
import mmap
import os
import sys
from pathlib import Path

import pytest

from limen.archive import mapped
from limen.archive.mapped import Mapped

SIZE = 3 * mmap.PAGESIZE + 100
LINUX = sys.platform == "linux"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(SIZE))
    return path


def test_it_has_the_bytes(path):
    found = Mapped(path, SIZE)
    for start, end in ((0, SIZE), (mmap.PAGESIZE, mmap.PAGESIZE + 1), (5, SIZE - 5)):
        found.check()
        found.have(start, end)
        assert found.view[start:end] == path.read_bytes()[start:end]
        found.let_go(start, end)
        assert found.view[start:end] == path.read_bytes()[start:end]


def test_a_file_that_is_cut(path):
    found = Mapped(path, SIZE)
    found.have(0, SIZE)
    os.truncate(path, mmap.PAGESIZE)
    with pytest.raises(OSError, match="it is cut"):
        found.check()
    if mapped.READABLE is not None:  # it was not seen in time: still no signal
        found.have(0, mmap.PAGESIZE)
        with pytest.raises(OSError, match=r"Bad address|Input/output"):
            found.have(0, SIZE)


def test_a_file_that_has_gone(path):
    whole = path.read_bytes()
    found = Mapped(path, SIZE)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        found.check()
    assert found.view == whole
    with pytest.raises(FileNotFoundError):
        Mapped(path, SIZE)


def test_nothing_to_map(path):
    with pytest.raises(OSError, match="Invalid argument"):
        Mapped(path, 0)


@pytest.mark.skipif(not LINUX, reason="asks /proc")
def test_it_is_let_go_with_the_last_that_refers_to_it(path):
    def is_mapped() -> bool:
        return str(path) in Path("/proc/self/maps").read_text()

    handles = len(os.listdir("/proc/self/fd"))
    found = Mapped(path, SIZE)
    part = found.bytes.slice(7, 100)
    assert is_mapped() and len(os.listdir("/proc/self/fd")) == handles
    del found
    gc.collect()
    assert is_mapped() and part.to_pybytes() == path.read_bytes()[7:107]
    del part
    gc.collect()
    assert not is_mapped()


@pytest.mark.parametrize("advice", [None, 9999])
def test_a_system_that_cannot_tell(path, monkeypatch, advice):
    """One that has no such advice, and a kernel that does not know it."""
    monkeypatch.setattr(mapped, "READABLE", advice)
    found = Mapped(path, SIZE)
    found.have(0, SIZE)
    assert found.view == path.read_bytes()
