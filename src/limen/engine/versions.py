"""The index of any version of a catalog, in this process: a `Matcher`, or a `Monitor`.

On each machine the index of some *base* version lies in a folder of files, built once under a lock and
mapped by every process: one copy in memory for all of them. A process moves its own from the base
to the version asked for by the changes between them; what they touch is private to it (the overlay). When
the changes since the base are more than a share of the queries, a new base is built.

The answer is the same whichever base and history it came from. A base that is damaged is thrown away and
built again. Cost: nothing for the version held; as many queries as have changed for a newer one;
mapping and checking the files (0.1 s for a million queries) for the first; building (1 s) if there is no
base on the machine yet.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from limen.catalog import Catalog, CatalogError
from limen.engine.matcher import Matcher
from limen.engine.monitor import Monitor
from limen.indexes.saved import DamagedIndexError
from limen.model import QuerySet

FEW = 10_000  # changes that are always applied to a base, and
SHARE = 16  # so are those of up to a 16th of its queries
KEPT_BASES = 2
KEPT_DAYS = 30  # without use, before another catalog's bases go
INDEXES = "indexes"


def default_cache() -> Path:
    """Limen's folder for what can be made again: LIMEN_CACHE, or one in the user's cache, or one among
    temporary files."""
    if "LIMEN_CACHE" in os.environ:
        return Path(os.environ["LIMEN_CACHE"])
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "limen"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if os.access(home, os.W_OK):
            return home
    except OSError:
        pass
    return Path(tempfile.gettempdir()) / f"limen-{os.getuid()}"


def forget(catalog: Catalog) -> None:
    """Throw away the bases of a catalog that will not be used again."""
    for folder in (default_cache() / INDEXES).glob(f"{catalog.id}*"):
        shutil.rmtree(folder, ignore_errors=True)


class Index(Protocol):
    """What is kept for a version: it can be moved to another, and saved."""

    def __len__(self) -> int: ...
    def add(self, queries: QuerySet) -> int: ...
    def remove(self, ids: pa.Array) -> int: ...
    def save(self, folder: Path, *, durable: bool) -> None: ...


T = TypeVar("T", bound=Index)


class Make(NamedTuple, Generic[T]):
    """How an index is made, or mapped from a folder that holds one."""

    name: str  # of its own for every kind, and for what else decides how one is made
    build: Callable[[QuerySet], T]
    load: Callable[[Path, bool], T]


MATCHER = Make("", Matcher, lambda folder, verify: Matcher.load(folder, verify=verify))


def monitor(on: Sequence[str], margins: Mapping[str, object], keys: Sequence[str]) -> Make[Monitor]:
    """Monitors of these columns and margins, and of no queries that need other keys."""
    sizes = sorted((name, repr(margin)) for name, margin in margins.items())
    facts = repr((tuple(on), sizes, tuple(keys)))
    digest = hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()
    return Make(
        f"-monitor-{digest}",
        lambda queries: Monitor(queries, on, margins, keys),
        lambda folder, verify: Monitor.load(folder, margins, keys, verify=verify),
    )


class Versions(Generic[T]):
    """Indexes of one catalog; for one thread, like the index itself."""

    def __init__(self, catalog: Catalog, make: Make[T], cache: Path | None = None) -> None:
        self.catalog = catalog
        self._make = make
        self._folder = (cache or default_cache() / INDEXES) / f"{catalog.id}{make.name}"
        self._index: T | None = None
        self._version = -1
        self._print = ""  # of that version
        self._changed = 0  # queries added and removed since the base

    def at(self, version: int) -> T:
        """The index of this version. It belongs to this object: ask again for another version."""
        if self._index is not None and self._print != self.catalog.fingerprint(self._version):
            self.catalog, self._index = Catalog.open(self.catalog.path), None  # put back in time
        if self._index is None or version < self._version:
            return self._from_base(version)
        if version > self._version and not self._move(version):
            return self._from_base(version)
        assert self._index is not None
        return self._index

    def _move(self, version: int) -> bool:
        """Bring the matcher to a newer version, unless too much has changed."""
        index, self._index = self._index, None  # not to be used if a change fails half-way
        assert index is not None
        try:
            changes = self.catalog.changes(self._version, version)
        except (
            CatalogError
        ):  # that far back nothing is kept; if more is amiss, the snapshot says it
            return False
        if self._changed + len(changes) > max(FEW, len(index) // SHARE):
            return False
        if len(changes.removed):
            index.remove(changes.removed)
        if len(changes.added):
            index.add(changes.added)
        self._index, self._version = index, version
        self._print = self.catalog.fingerprint(version)
        self._changed += len(changes)
        return True

    def _from_base(self, version: int) -> T:
        self._index = None
        try:
            if not self._load(version):
                with self._alone():
                    if not self._load(version, alone=True):
                        self._build(version)
        except OSError as error:
            warnings.warn(
                f"the index of {self.catalog.path} cannot be kept in {self._folder} ({error}): "
                "every process holds its own",
                stacklevel=2,
            )
            self._take(self._make.build(self.catalog.snapshot(version)), version)
        assert self._index is not None
        return self._index

    def _take(self, index: T, version: int) -> None:
        self._index, self._version, self._changed = index, version, 0
        self._print = self.catalog.fingerprint(version)

    def _base(self, version: int) -> Path:
        """Named by what the version is, too: a copy of a catalog has the id of the original."""
        return self._folder / f"{version}-{self.catalog.fingerprint(version)}"

    def _load(self, version: int, alone: bool = False) -> bool:
        """Map the newest base from which the version can be reached by few changes.

        One that cannot be read is thrown away by whoever is alone; to others it may just be going.
        """
        for base in reversed(self._bases()):
            if base > version:
                continue
            folder = self._base(base)
            try:
                self._take(self._make.load(folder, True), base)
            except (DamagedIndexError, FileNotFoundError) as error:
                if not alone:
                    return False
                warnings.warn(f"{error}; it is built again", stacklevel=2)
                shutil.rmtree(folder, ignore_errors=True)
                continue
            with suppress(OSError):
                os.utime(self._folder)  # in use
            return base == version or self._move(version)
        return False

    def _build(self, version: int) -> None:
        for rest in self._folder.glob(".*.part"):  # of a process that was killed
            shutil.rmtree(rest, ignore_errors=True)
        index = self._make.build(self.catalog.snapshot(version))
        index.save(self._base(version), durable=False)
        self._tidy(version)
        self._take(self._make.load(self._base(version), False), version)

    def _tidy(self, version: int) -> None:
        """Keep few bases of this catalog, and none of catalogs that nobody has used for long."""
        others = [base for base in self._bases() if base != version]
        for base in others[: 1 - KEPT_BASES]:
            shutil.rmtree(self._base(base), ignore_errors=True)
        for folder in self._folder.parent.iterdir():
            with suppress(OSError):
                if folder.stat().st_mtime < time.time() - KEPT_DAYS * 86_400:
                    shutil.rmtree(folder, ignore_errors=True)

    def _bases(self) -> list[int]:
        """The versions of the bases that are of this catalog's history."""
        try:
            names = [path.name.partition("-") for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        versions = {int(head): tail for head, _, tail in names if head.isdigit()}
        newest = self.catalog.version
        return sorted(
            v for v, tail in versions.items() if v <= newest and tail == self.catalog.fingerprint(v)
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one process of the machine build at a time."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
