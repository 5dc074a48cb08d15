"""What a version of an archive is, by its log.

Semantics: each commit of ours is signed with all that it leads to: the state, the list of files, the
columns and the properties. So the newest of ours tells whether any commit before it was lost or changed.
Others may commit too, as long as this stays what it is.
Cost: one commit is read, and those of others after it. Only if they do not fit, each commit since the
last checkpoint is asked in turn, to name the first that is damaged.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from limen.archive.columns import stored
from limen.archive.errors import ArchiveError
from limen.archive.shape import COLUMN, ROW, Shape
from limen.archive.state import State
from limen.delta import log
from limen.delta.disk import plain, unpanicked

FORMAT = "1"
PARTITIONS = [ROW, COLUMN]
OURS = ("CREATE TABLE", "WRITE")  # what deltalake calls our commits
CHECKPOINT = "checkpoint.parquet"
DAMAGED = (
    DeltaError,
    pa.ArrowException,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
)


class OtherFormatError(ValueError):
    """Of another version of this program."""


def sign(info: dict[str, Any], paths: Sequence[str], shape: Shape, grace: float) -> dict[str, Any]:
    """With a checksum of what a version is: its state, its files and what its columns mean."""
    facts = {name: value for name, value in info.items() if name != "checksum"}
    whole = [facts, sorted(paths), shape.to_json(), str(shape.schema), grace]
    text = json.dumps(json.loads(json.dumps(whole)), sort_keys=True)
    return {**facts, "checksum": zlib.crc32(text.encode())}


def info_of(lines: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What a commit of ours says; None if it is another program's.

    Raises ValueError if that cannot be told. One that names files need not be told apart: if it was
    ours, the list of files is no longer the one that was signed.
    """
    facts: dict[str, Any] = next((a["commitInfo"] for a in lines if "commitInfo" in a), {})
    info: dict[str, Any] | None = facts.get(log.INFO)
    if info is None and facts.get("operation", "WRITE") in OURS and not _names_files(lines):
        raise ValueError("it says nothing of the archive")
    return info


def _names_files(lines: list[dict[str, Any]]) -> bool:
    return any("add" in line or "remove" in line for line in lines)


def paths_of(delta: DeltaTable) -> list[str]:
    paths: list[str] = pa.table(delta.get_add_actions(flatten=True)).column("path").to_pylist()
    return paths


def meta_of(path: Path, delta: DeltaTable) -> tuple[Shape, float]:
    """What the columns mean, and the seconds of grace."""
    facts = delta.metadata().configuration
    if not any(name.startswith("limen.archive") for name in facts):
        raise ArchiveError(f"{path} is a Delta table, but not an archive")
    if facts["limen.archive.format"] != FORMAT:
        raise OtherFormatError(
            f"has format {facts['limen.archive.format']}, this program knows {FORMAT}: "
            "install a newer limen"
        )
    schema = pa.schema(delta.schema().to_arrow())
    try:
        fields = [pa.field(f.name, stored(f.type)) for f in schema if f.name not in PARTITIONS]
        shape = Shape.from_json(facts["limen.archive"], pa.schema(fields))
        return shape, float(facts["limen.archive.grace"])
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"its properties cannot be read ({error})") from None


def state_of(path: Path, version: int, paths: list[str], shape: Shape, grace: float) -> State:
    """From the newest commit of ours: others may have vacuumed, but not changed any file."""
    for at in range(version, -1, -1):
        try:
            lines = log.actions(path, at)
            info = None if lines is None else info_of(lines)
            if info is not None and info["checksum"] == sign(info, paths, shape, grace)["checksum"]:
                return State.from_json(info)
        except DAMAGED as error:
            raise not_ours(path, at, error) from None
        if lines is None:
            break
        if info is not None:
            name = log.commit_file(path, at).name
            raise ValueError(
                f"the checksum in {name} is another"
                if at == version
                else f"it is not what {name} has left: another program has changed the table, so what "
                "the archive holds is not known any more; restore the version before"
            )
    raise ValueError("the log has no commit of ours")


def not_ours(path: Path, version: int, error: Exception) -> ArchiveError:
    file = log.commit_file(path, version)
    return ArchiveError(f"{file}: the archive is damaged: not one of its commits ({error})")


def check(path: Path, version: int) -> None:
    """Raises what is wrong with a version."""
    with unpanicked():
        delta = DeltaTable(str(path), version=version)
        state_of(path, version, paths_of(delta), *meta_of(path, delta))


@contextmanager
def looking(path: Path, version: int | None = None) -> Iterator[None]:
    """Whoever looks at a version, or at the newest, is told what is wrong with it, and in which file."""
    try:
        with unpanicked():
            yield
    except ArchiveError:
        raise
    except DAMAGED as error:
        raise _wrong(path, version, error) from None


def _wrong(path: Path, version: int | None, error: Exception) -> ArchiveError:
    newest = log.newest(path)
    points = logged(path, CHECKPOINT)
    starts = [v for v in (0, *points) if v in points or log.commit_file(path, v).exists()]
    if version is not None and version > newest:
        return ArchiveError(f"{path}: there is no version {version}: the newest is {newest}")
    if version is not None and version < min(starts, default=newest + 1):
        return ArchiveError(f"{path}: there is no version {version}: its log was vacuumed")
    hint = path / log.FOLDER / "_last_checkpoint"
    if not _is_there(hint):
        return ArchiveError(f"{hint}: the archive is damaged: it names no checkpoint that is there")
    until = newest if version is None else version
    begin = max((v for v in starts if v <= until), default=None)
    if begin is None:
        return ArchiveError(f"{path}: the archive is damaged: its Delta log is incomplete")
    for at in range(begin, until + 1):
        try:
            check(path, at)
        except ArchiveError as found:
            return found
        except DAMAGED as found:
            file = log.commit_file(path, at)
            file = file.with_suffix(f".{CHECKPOINT}") if at in points else file
            other = isinstance(found, OtherFormatError)
            return ArchiveError(
                f"{file}: the archive {found if other else f'is damaged: {plain(found)}'}"
            )
    return ArchiveError(f"{path}: the archive is damaged: {plain(error)}")


def _is_there(hint: Path) -> bool:
    """Is the checkpoint that Delta's readers begin with? They do without a hint that they cannot read."""
    try:
        version = json.loads(hint.read_bytes())["version"]
        return any(hint.parent.glob(f"{version:020}.checkpoint.*"))
    except DAMAGED:
        return True


def logged(path: Path, kind: str = "json") -> list[int]:
    """The versions whose commits, or checkpoints, are there."""
    found = (
        re.fullmatch(rf"(\d{{20}})\.{re.escape(kind)}", one.name)
        for one in (path / log.FOLDER).iterdir()
    )
    return sorted(int(name[1]) for name in found if name)


__all__ = [
    "CHECKPOINT",
    "DAMAGED",
    "FORMAT",
    "PARTITIONS",
    "check",
    "info_of",
    "logged",
    "looking",
    "meta_of",
    "not_ours",
    "paths_of",
    "sign",
    "state_of",
]
