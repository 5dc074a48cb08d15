"""The machine and the versions that a result was measured with, in a line."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

from limen import __version__


def machine() -> str:
    processor, memory = platform.processor() or platform.machine(), ""
    if Path("/proc/cpuinfo").exists():
        named = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        processor = named[1] if named else processor
        size = re.search(r"^MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.M)
        memory = f", {int(size[1]) / 2**20:.0f} GiB" if size else ""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    return (
        f"{processor}, {os.cpu_count()} cores{memory}; limen {__version__}, "
        f"Python {platform.python_version()}, {packages}"
    )
