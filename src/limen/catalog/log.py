"""The two questions that a worker asks of a Delta log before every batch: what is new, and which files.

Delta's protocol fixes the names and the lines of the log, so both are answered by looking at small files
(tens of microseconds) instead of replaying the log. Everything else goes through `deltalake`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from limen.catalog.errors import CatalogError

FOLDER = "_delta_log"
INFO = "limen"  # our own facts in a commit


class Commit(NamedTuple):
    """One line of the catalog's history."""

    version: int
    time: int  # milliseconds since 1970
    info: dict[str, Any] | None  # None: not one of ours
    files: list[str]


def begun(table: Path) -> bool:
    """Is there a first commit?"""
    return any((table / FOLDER).glob("*.json"))


def newest(table: Path, known: int = -1) -> int:
    """The newest version, from a known one on."""
    if known < 0:
        found = [int(p.stem) for p in (table / FOLDER).glob("*.json") if p.stem.isdigit()]
        if not found:
            raise CatalogError(f"{table}: the catalog is damaged: {FOLDER} has no commits")
        known = max(found)
    while commit_file(table, known + 1).exists():
        known += 1
    return known


def commit_file(table: Path, version: int) -> Path:
    return table / FOLDER / f"{version:020}.json"


def read_commit(table: Path, version: int) -> Commit | None:
    """The commit, or None if its file is no longer (or not yet) there."""
    path = commit_file(table, version)
    try:
        actions = [json.loads(line) for line in path.read_bytes().splitlines()]
        facts: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        files = [a["add"]["path"] for a in actions if "add" in a]
        info = facts.get(INFO)
        numbers = ("added", "removed", "live")
        if not actions:
            raise ValueError("it is empty")
        if info is not None and (
            "kind" not in info or any(int(info.get(n, 0)) < 0 for n in numbers)
        ):
            raise ValueError(f"{INFO}: {info}")
        return Commit(version, int(facts.get("timestamp", 0)), info, files)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogError(
            f"{path}: the catalog is damaged: not a Delta commit ({error})"
        ) from None
