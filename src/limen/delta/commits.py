"""A commit that takes exactly the next version, or fails; on disk when it is said to be in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, Transaction

from limen.delta import log
from limen.delta.disk import to_disk, unpanicked


def commit(
    path: Path,
    delta: DeltaTable,
    actions: Sequence[AddAction | RemoveAction],
    partition_by: list[str],
    info: dict[str, Any],
    marks: Sequence[Transaction] = (),
) -> int:
    """Commit after the version that `delta` is at; returns the new one.

    Raises CommitFailedError, with nothing changed, if somebody else has taken that version.
    """
    version = int(delta.version()) + 1
    try:
        with unpanicked():
            delta.create_write_transaction(
                list(actions),
                "append",
                delta.schema(),
                partition_by,
                commit_properties=properties(info, marks),
                post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
            )
    except CommitFailedError:
        raise
    except (DeltaError, OSError):  # perhaps of what comes after the commit: a checkpoint
        if not _is_in(path, version, actions, info):
            raise
    to_disk(log.commit_file(path, version))
    to_disk(path / log.FOLDER)
    return version


def properties(info: dict[str, Any], marks: Sequence[Transaction] = ()) -> CommitProperties:
    return CommitProperties(
        custom_metadata={log.INFO: info}, max_commit_retries=0, app_transactions=list(marks) or None
    )


def _is_in(
    path: Path, version: int, actions: Sequence[AddAction | RemoveAction], info: dict[str, Any]
) -> bool:
    lines = log.actions(path, version)
    if lines is None:
        return False
    added = {line["add"]["path"] for line in lines if "add" in line}
    said = [line["commitInfo"].get(log.INFO) for line in lines if "commitInfo" in line]
    return said == [info] and added == {a.path for a in actions if isinstance(a, AddAction)}


__all__ = ["CommitFailedError", "commit", "properties"]
