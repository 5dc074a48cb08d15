"""Arrays in a folder: one .npy file each and a manifest with their sizes and checksums, and its own.

Written beside its place and moved there when complete, so a folder is whole or absent. Reading maps
the files copy-on-write; whatever differs from the manifest is named in DamagedIndexError, never used.

An array that grows is saved with rows to spare (`padded` to `spare_rows`): the first rows added to the
mapped one make private the pages they touch, and nothing is copied.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MANIFEST = "manifest.json"
FORMAT = 3
SMALL = 4096

Arrays = dict[str, npt.NDArray[Any]]
Facts = dict[str, Any]  # what JSON can hold


class DamagedIndexError(ValueError):
    """A saved index that is incomplete or not what was written."""


def spare_rows(n: int) -> int:
    """How many rows to save where n are in use."""
    return n + n // 8 + 1024


def padded(array: npt.NDArray[Any], n: int, rows: int) -> npt.NDArray[Any]:
    """The first n rows and zeros behind them, so many rows in all."""
    longer = np.zeros((rows, *array.shape[1:]), array.dtype)
    longer[:n] = array[:n]
    return longer


def nested(name: str, arrays: Arrays) -> Arrays:
    """The arrays of a part of the whole, under names of their own."""
    return {f"{name}.{key}": array for key, array in arrays.items()}


def part(arrays: Arrays, name: str) -> Arrays:
    """The arrays of a part, under the names that it gave them."""
    head = f"{name}."
    return {key[len(head) :]: array for key, array in arrays.items() if key.startswith(head)}


def write(folder: Path, kind: str, arrays: Arrays, facts: Facts, *, durable: bool = True) -> None:
    """Save to a new folder; one that is not durable may come out damaged where the power fails."""
    if folder.exists():
        raise FileExistsError(f"{folder} is already there; an index is saved to a new folder")
    beside = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    try:
        files = {}
        for name, array in arrays.items():
            path = beside / f"{name}.npy"
            np.save(path, array)
            files[name] = {"bytes": path.stat().st_size, "crc32": _checksum(path)}
            if durable:
                _to_disk(path)
        manifest = {"format": FORMAT, "kind": kind, "facts": facts, "files": files}
        text = json.dumps(manifest, indent=1).encode()
        (beside / MANIFEST).write_bytes(b"%d\n%b" % (zlib.crc32(text), text))
        if durable:
            _to_disk(beside / MANIFEST)
        os.rename(beside, folder)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            raise FileExistsError(f"{folder} was saved by another process meanwhile") from None
        raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def read(folder: Path, kind: str, *, verify: bool) -> tuple[Arrays, Facts]:
    manifest = _manifest(folder)
    if manifest.get("format") != FORMAT or manifest.get("kind") != kind:
        found = f"{manifest.get('kind')!r} of format {manifest.get('format')!r}"
        raise DamagedIndexError(f"{folder}: holds {found}, not {kind!r} of format {FORMAT}")
    arrays = {}
    for name, expected in manifest["files"].items():
        path = folder / f"{name}.npy"
        if not path.exists():
            raise DamagedIndexError(f"{path} is missing; save the index again")
        if path.stat().st_size != expected["bytes"]:
            raise DamagedIndexError(
                f"{path} has {path.stat().st_size} bytes, {expected['bytes']} were written; "
                "save the index again"
            )
        if verify and _checksum(path) != expected["crc32"]:
            raise DamagedIndexError(
                f"{path} is damaged (its checksum differs); save the index again"
            )
        # An empty file cannot be mapped, a small one need not be.
        mapped = expected["bytes"] > SMALL
        array = np.load(path, mmap_mode="c") if mapped else np.load(path)
        arrays[name] = array.view(np.ndarray)
    return arrays, manifest["facts"]


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.exists():
        raise DamagedIndexError(f"{folder} holds no saved index: {MANIFEST} is missing")
    checksum, _, text = path.read_bytes().partition(b"\n")
    if checksum != b"%d" % zlib.crc32(text):
        raise DamagedIndexError(f"{path} is damaged (its checksum differs); save the index again")
    manifest: dict[str, Any] = json.loads(text)
    return manifest


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            value = zlib.crc32(block, value)
    return value


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
