"""A commit of the catalog: what it says of itself, read from the Delta log."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from limen.catalog.errors import CatalogError
from limen.delta.log import FOLDER, INFO, actions, begun, commit_file
from limen.delta.log import newest as newest_of


class Commit(NamedTuple):
    """One line of the catalog's history."""

    version: int
    time: int  # milliseconds since 1970
    info: dict[str, Any] | None  # None: not one of ours
    files: list[str]


def newest(table: Path, known: int = -1) -> int:
    """The newest version, from a known one on."""
    found = newest_of(table, known)
    if found < 0:
        raise CatalogError(f"{table}: the catalog is damaged: {FOLDER} has no commits")
    return found


def read_commit(table: Path, version: int) -> Commit | None:
    """The commit, or None if its file is no longer (or not yet) there."""
    try:
        lines = actions(table, version)
        if lines is None:
            return None
        facts: dict[str, Any] = next((a["commitInfo"] for a in lines if "commitInfo" in a), {})
        files = [a["add"]["path"] for a in lines if "add" in a]
        info = facts.get(INFO)
        numbers = ("added", "removed", "live")
        if info is not None and (
            "kind" not in info or any(int(info.get(n, 0)) < 0 for n in numbers)
        ):
            raise ValueError(f"{INFO}: {info}")
        return Commit(version, int(facts.get("timestamp", 0)), info, files)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogError(
            f"{commit_file(table, version)}: the catalog is damaged: not a Delta commit ({error})"
        ) from None


__all__ = ["FOLDER", "INFO", "Commit", "begun", "commit_file", "newest", "read_commit"]
