"""The memory of a process and all its descendants: proportional set size, shared pages counted once."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path


def peak_of(process: subprocess.Popen[bytes]) -> int:
    """The greatest sum seen until the process ends, in bytes."""
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(_pss, _family(process.pid))))
        time.sleep(0.1)
    if process.returncode:
        raise RuntimeError(f"the measured process failed with code {process.returncode}")
    return peak


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
