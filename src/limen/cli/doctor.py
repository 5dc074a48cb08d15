"""`limen doctor`: what Spark needs, what of it is here, what would be used, and how to mend the rest.

It starts nothing unless asked to (--start). Exit code 1 if something that Spark needs is missing.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

OK, WARNING, MISSING = "ok", "warning", "missing"
SPARK = "pip install 'limen[spark]'"
COLOURS = {OK: "green", WARNING: "yellow", MISSING: "red"}


class Finding(NamedTuple):
    part: str
    found: str
    status: str = OK
    mend: str = ""
    needed: bool = True  # whether Spark cannot do without


def doctor(
    checkpoint: Annotated[
        Path | None, typer.Option(help="A folder for checkpoints, to be tried out.")
    ] = None,
    start: Annotated[
        bool, typer.Option("--start", help="Also start Spark and run a small job.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """What Spark needs, what of it is here, and how to mend the rest."""
    findings = [*_software(), *_machine(), *_folders(checkpoint)]
    sound = not _lacking(findings)
    if start:
        findings.append(
            _started() if sound else Finding("start", "not tried", MISSING, "mend the above first")
        )
    if as_json:
        told = [{k: v for k, v in f._asdict().items() if k != "needed"} for f in findings]
        print(json.dumps({"ok": not _lacking(findings), "findings": told}, indent=2))
    else:
        _show(findings)
    if _lacking(findings):
        raise typer.Exit(1)


def _lacking(findings: list[Finding]) -> bool:
    return any(f.needed and f.status == MISSING for f in findings)


def _software() -> Iterator[Finding]:
    from limen import __version__

    yield Finding("Python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("limen", __version__)
    yield _java()
    yield _package("pyspark", SPARK)
    yield _package("pyarrow", "pip install pyarrow")
    yield _pandas()
    yield _package("protobuf", SPARK)
    yield _package("deltalake", "pip install deltalake")
    yield _package("grpcio", "only for Spark Connect: pip install 'limen[connect]'", needed=False)


def _java() -> Finding:
    from limen.model import LimenError
    from limen.spark.java import find_java

    try:
        java = find_java()
    except LimenError as error:
        told, _, mend = str(error).partition("; ")
        return Finding("Java", told, MISSING, mend)
    return Finding("Java", f"{java.version} from {java.source} ({java.binary})")


def _package(name: str, mend: str, needed: bool = True) -> Finding:
    try:
        return Finding(name, version(name), needed=needed)
    except PackageNotFoundError:
        return Finding(name, "not installed", MISSING, mend, needed)


def _pandas() -> Finding:
    found = _package("pandas", SPARK)
    if found.status == OK and int(found.found.partition(".")[0]) >= 3:
        return found._replace(status=WARNING, mend="PySpark warns of it: pip install 'pandas<3'")
    return found


def _machine() -> Iterator[Finding]:
    from limen.spark.session import default_memory, usable_cores, usable_memory

    yield Finding("cores", f"{usable_cores()}, all used by default")
    total, free = usable_memory()
    heap = default_memory()
    told = f"{_gib(total)} in all, {_gib(free)} free; a session takes {_gib(int(heap[:-1]) << 20)}"
    if free < int(heap[:-1]) << 20:
        yield Finding("memory", told, WARNING, "give session() less, such as memory='1g'")
    else:
        yield Finding("memory", told)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _folders(checkpoint: Path | None) -> Iterator[Finding]:
    from limen.spark.java import cache_folders

    try:
        from limen.kernels.compiled import CACHE
    except OSError as error:
        yield Finding("kernels", str(error), MISSING, "set NUMBA_CACHE_DIR to a writable folder")
    else:
        mend = "set NUMBA_CACHE_DIR to a writable folder"
        yield _folder(f"kernels (numba {version('numba')})", Path(CACHE), mend)
    tried = [_folder("cache", path, "set XDG_CACHE_HOME") for path in cache_folders()]
    yield next((finding for finding in tried if finding.status == OK), tried[0])
    yield _folder("temporary files", Path(tempfile.gettempdir()), "set TMPDIR to a writable folder")
    if checkpoint is not None:
        mend = "choose another folder: a local or network file system with hard links"
        yield _folder("checkpoint", checkpoint, mend)


def _folder(part: str, path: Path, mend: str) -> Finding:
    """Does in the folder what limen and Spark do there, and leaves it as it was."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    step = "create the folder"
    try:
        path.mkdir(parents=True, exist_ok=True)
        step = "write a file"
        with tempfile.TemporaryDirectory(prefix=".limen-doctor-", dir=path) as scratch:
            file = Path(scratch) / "written"
            with file.open("wb") as handle:
                handle.write(b"limen")
                handle.flush()
                step = "fsync"
                os.fsync(handle.fileno())
            step = "make a hard link"
            os.link(file, file.with_name("linked"))
            step = "remove a file"
            file.unlink()
    except OSError as error:
        return Finding(part, f"{path}: cannot {step} ({error.strerror})", MISSING, mend)
    finally:
        for folder in made:
            if folder.is_dir():
                folder.rmdir()
    return Finding(part, f"{path} (writable)")


def _started() -> Finding:
    """Starts a session and sends two partitions through Python and back."""
    from limen.spark import session

    def same(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    begun = time.monotonic()
    try:
        spark = session("limen doctor")
        up = time.monotonic()
        rows = spark.range(1000, numPartitions=2).mapInArrow(same, "id long").count()
        done = time.monotonic()
        spark.stop()
    except Exception as error:  # whatever Spark, Py4J or the JVM come up with
        first = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
        return Finding("start", first[:300], MISSING, "see what the JVM wrote above, if anything")
    if rows != 1000:
        return Finding(
            "start", f"1,000 rows went in, {rows:,} came out", MISSING, "reinstall pyspark"
        )
    return Finding(
        "start", f"Spark in {up - begun:.1f} s, a job on 2 partitions in {done - up:.1f} s"
    )


def _show(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in ("part", "found", "status", "to mend it"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        status = Text(finding.status, style=COLOURS[finding.status])
        table.add_row(Text(finding.part), Text(finding.found), status, Text(finding.mend))
    Console().print(table)
