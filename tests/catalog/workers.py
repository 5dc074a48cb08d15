"""What other processes do to a catalog; conftest's `start` runs one function of this file in each.

`say` is the end of a pipe. A process that is killed has said all that it was told to be done.
"""

from __future__ import annotations

import os
import random
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from limen.catalog import Catalog, bindings
from limen.catalog import catalog as catalog_module
from limen.catalog.table import DeltaTable, Table
from limen.model import LimenError

ATTRIBUTES = {"n": "int64", "x": "float64", "s": "string"}


def _begin(say: Connection) -> None:
    say.send("ready")
    say.recv()


def add_each(say: Connection, path: Path, batches: list[dict[str, str]]) -> None:
    """Add one batch after the other; say the version and how many were new, or the error."""
    catalog = Catalog.open(path)
    _begin(say)
    for batch in batches:
        try:
            receipt = catalog.add(batch)
            say.send((receipt.version, receipt.added))
        except LimenError as error:
            say.send((type(error).__name__, str(error)))


def compact_often(say: Connection, path: Path) -> None:
    """Until told to stop, and once more."""
    catalog = Catalog.open(path)
    _begin(say)
    while not say.poll(0.005):
        say.send(catalog.compact())
    say.recv()
    say.send(catalog.compact())


def make(say: Connection, path: Path, attributes: dict[str, str]) -> None:
    _begin(say)
    catalog = Catalog.open(path, attributes)
    name = next(iter(attributes))
    say.send((catalog.id, catalog.add({f"of {name}": f"{name} > 1"}).version))


def declare(say: Connection, path: Path, attributes: dict[str, str]) -> None:
    catalog = Catalog.open(path)
    _begin(say)
    for name, kind in attributes.items():
        try:
            catalog.declare({name: kind})
            say.send(name)
        except LimenError as error:
            say.send((type(error).__name__, str(error)))


def bind(say: Connection, path: Path, version: int, batches: int) -> None:
    _begin(say)
    say.send([bindings.bind(path, "stream", batch, version) for batch in range(batches)])


def toil(say: Connection, path: Path, seed: int) -> None:
    """Add three, remove three, compact, as chance has it, until killed; say what is done."""
    chance = random.Random(seed)
    catalog_module.COMPACT_AFTER = 10**9
    catalog = Catalog.open(path)
    live = sorted({entry.id.rsplit("-", 1)[0] for entry in catalog.list()})
    for turn in range(10**6):
        what = chance.random()
        if what < 0.15:
            say.send(("compact", "", catalog.compact()))
        elif what < 0.45 and live:
            group = live.pop(chance.randrange(len(live)))
            say.send(("remove", group, catalog.remove(_group(group)).version))
        else:
            group = f"{seed}.{turn}"
            live.append(group)
            say.send(("add", group, catalog.add(dict.fromkeys(_group(group), "n = 1")).version))


def _group(name: str) -> list[str]:
    return [f"{name}-{part}" for part in range(3)]


def crash(say: Connection, path: Path, where: str, what: str) -> None:
    """Do something and die at a certain place in it."""
    before, _, function = where.rpartition(" ")
    owner = {"write": Table, "create_write_transaction": DeltaTable, "fold": Catalog}.get(function)
    if owner is not None:
        name = "_fold" if owner is Catalog else function
        original = getattr(owner, name)

        def dying(self, *args, **kwargs):
            if before == "before":
                os._exit(9)
            original(self, *args, **kwargs)
            os._exit(9)

        setattr(owner, name, dying)
    else:
        from deltalake.table import TableAlterer

        original = TableAlterer.set_table_properties
        TableAlterer.set_table_properties = lambda *args, **kwargs: os._exit(9)
    catalog = Catalog.open(path)
    say.send("begun")
    if what == "add":
        catalog.add({"new 1": "n = 1", "new 2": "s = 'x'"})
    elif what == "remove":
        catalog.remove(["a", "b"])
    elif what == "compact":
        catalog.compact()
    else:
        catalog.declare({"late": what})
    say.send("survived")


def crash_in_making(say: Connection, path: Path) -> None:
    """Die when only the folders of the new catalog are there."""
    (path / "_delta_log").mkdir(parents=True)
    os.kill(os.getpid(), signal.SIGKILL)


def use_after_a_fork(say: Connection, path: Path) -> None:
    catalog = Catalog.open(path)
    catalog.add({"before": "n = 1"})
    if os.fork():
        os.wait()
        say.send(catalog.add({"after": "n = 1"}).added)
        return
    for use in (lambda: catalog.add({"forked": "n = 1"}), lambda: Catalog.open(path)):
        try:
            use()
        except LimenError as error:
            say.send(str(error))
    os._exit(0)


def use_a_pickled_one(say: Connection, catalog: Catalog) -> None:
    say.send((catalog.version, len(catalog), catalog.add({"from afar": "n = 1"}).version))


def read_only(say: Connection, path: Path) -> None:
    """As a user who may read and not write."""
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    catalog = Catalog.open(path)
    say.send((len(catalog), len(catalog.snapshot())))
    for use in (
        lambda: catalog.add({"new": "n = 1"}),
        catalog.compact,
        lambda: catalog.declare({"z": "int64"}),
        lambda: catalog.bind("stream", 1),
        lambda: Catalog.open(path.parent / "another", {"n": "int64"}),
    ):
        try:
            say.send(use())
        except LimenError as error:
            say.send((type(error).__name__, str(error)))
        except BaseException as error:
            say.send(("raw", type(error).__name__, str(error)))


if __name__ == "worker":
    job, pipe, args = CALL  # type: ignore[name-defined]  # noqa: F821
    globals()[job](pipe, *args)
