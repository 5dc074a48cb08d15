"""Which version of the catalog a batch of a stream sees: written once, the same for ever.

A binding is a small file beside the catalog, named by stream and batch, that holds the version. It is put
there by a hard link, which fails if the file exists: of all tasks that want to bind a batch, now or when
it is replayed after a crash, the first decides and the others read.

Beside it lie settings that a stream was begun with, and the numbers of events that could not be matched:
a file for each task of the batch that had some. A task that is run again writes the same; a batch that is
run again by another start of the stream, which may cut it into other tasks, begins anew.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from urllib.parse import quote

from limen.catalog.errors import CatalogError

FOLDER = Path("_limen") / "bindings"
KEPT = 1000  # batches of a stream; Spark itself keeps the last 100


def bind(table: Path, stream: str, batch: int, version: int) -> int:
    """The version that the batch is bound to: this one if it is the first to ask."""
    if (already := bound(table, stream, batch)) is not None:
        return already
    folder = _folder(table, stream)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        first = _link(folder, str(batch), f"{version}\n")
        if first:
            (folder / str(batch - KEPT)).unlink(missing_ok=True)
    except OSError as error:
        raise CatalogError(f"{folder}: batch {batch} cannot be bound: {error}") from None
    return version if first else _read(folder / str(batch))


def note_settings(table: Path, stream: str, name: str, text: str) -> None:
    """What the stream's checkpoint was made with; the checkpoint itself is what counts."""
    folder = _folder(table, stream)
    path = _settings(folder, name)
    try:
        if noted_settings(table, stream, name) != text:
            folder.mkdir(parents=True, exist_ok=True)
            _written(folder, text).replace(path)
    except OSError as error:
        raise CatalogError(f"{path}: settings cannot be noted: {error}") from None


def noted_settings(table: Path, stream: str, name: str) -> str | None:
    path = _settings(_folder(table, stream), name)
    try:
        return path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CatalogError(f"{path}: settings cannot be read: {error}") from None


def _settings(folder: Path, name: str) -> Path:
    return folder / f"{quote(name, safe='')}.settings"


def _written(folder: Path, text: str) -> Path:
    """A whole file, on disk, that has no name of its own yet."""
    beside = folder / f".{uuid.uuid4()}"
    with beside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return beside


def _link(folder: Path, name: str, text: str) -> bool:
    """Put a whole file there, on disk; False if it is there already."""
    beside = _written(folder, text)
    try:
        os.link(beside, folder / name)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return True


def bound(table: Path, stream: str, batch: int) -> int | None:
    try:
        return _read(_folder(table, stream) / str(batch))
    except FileNotFoundError:
        return None


def bindings(table: Path, stream: str) -> dict[int, int]:
    """The version of every batch that is bound, in the order of the batches."""
    try:
        names = [p.name for p in _folder(table, stream).iterdir() if p.name.isdigit()]
    except FileNotFoundError:
        return {}
    found = {int(name): bound(table, stream, int(name)) for name in names}
    return {batch: at for batch, at in sorted(found.items()) if at is not None}


def note_quarantined(
    table: Path, stream: str, batch: int, task: int, run: str, events: int
) -> None:
    """So many events of a task of the batch, in this run of the stream, could not be matched."""
    folder = _folder(table, stream)
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{uuid.uuid4()}"
    beside.write_text(f"{events}\n")
    group = f"{batch}.{quote(run, safe='').replace('.', '%2E')}."
    beside.replace(folder / f"{group}{task}.quarantined")
    for old in (f for b in (batch, batch - KEPT) for f in folder.glob(f"{b}.*.quarantined")):
        if not old.name.startswith(group):
            old.unlink(missing_ok=True)


def quarantined(table: Path, stream: str) -> dict[int, int]:
    """How many events could not be matched, by batch; batches without are not there."""
    found: dict[int, int] = {}
    for path in sorted(_folder(table, stream).glob("*.quarantined")):
        batch = int(path.name.partition(".")[0])
        found[batch] = found.get(batch, 0) + int(path.read_text())
    return dict(sorted(found.items()))


def _folder(table: Path, stream: str) -> Path:
    if stream in ("", ".", ".."):
        raise CatalogError(f"{stream!r} is not the name of a stream")
    return table / FOLDER / quote(stream, safe="")


def _read(path: Path) -> int:
    try:
        return int(path.read_text())
    except ValueError:
        raise CatalogError(
            f"{path} is damaged: it should hold the version that the batch is bound to"
        ) from None
