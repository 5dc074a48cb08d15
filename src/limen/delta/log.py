"""The two questions that are asked of a Delta log all the time: what is new, and what did a commit say.

Delta's protocol fixes the names and the lines of the log, so both are answered by looking at small files
(tens of microseconds) instead of replaying the log. Everything else goes through `deltalake`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = "_delta_log"
INFO = "limen"  # our own facts in a commit


def begun(table: Path) -> bool:
    """Is there a first commit?"""
    return any((table / FOLDER).glob("*.json"))


def newest(table: Path, known: int = -1) -> int:
    """The newest version, from a known one on; -1 if there is no commit."""
    if known < 0:
        found = [int(p.stem) for p in (table / FOLDER).glob("*.json") if p.stem.isdigit()]
        known = max(found, default=-1)
    while known >= 0 and commit_file(table, known + 1).exists():
        known += 1
    return known


def commit_file(table: Path, version: int) -> Path:
    return table / FOLDER / f"{version:020}.json"


def actions(table: Path, version: int) -> list[dict[str, Any]] | None:
    """The lines of a commit, or None if its file is no longer (or not yet) there.

    Raises ValueError if it is damaged.
    """
    try:
        data = commit_file(table, version).read_bytes()
    except FileNotFoundError:
        return None
    lines = [json.loads(line) for line in data.splitlines()]
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise ValueError("it is empty" if not lines else "a line is not an object")
    return lines
