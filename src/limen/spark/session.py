"""`session()`: the running Spark session, or a well-set one of our own.

A session that runs is never changed: if it lacks what is asked for, that is an error, since a
process has one JVM and the JVM one master and one heap. A session made here leaves nothing in the
working folder: warehouse, shuffle files and logs of executors go to a temporary folder that is
removed when the process ends. Cost: 4 to 12 s for the first of a process, so commands that need no
Spark must not call it.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from limen.model import LimenError
from limen.spark.java import Java, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
GIB = 1 << 30
LEAST_MEMORY = 512 << 20  # Spark refuses a heap below 450 MiB
CONNECT_PORT = 15002  # PySpark's own, which its local Connect session cannot change

LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?")
LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")

# Settings of a session on any master, all of them open to a Connect client.
ALWAYS = {
    "spark.sql.session.timeZone": "UTC",  # events mean the same on every machine
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # State in RocksDB, outside of the heap; a commit uploads what changed, not the whole state.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def session(
    name: str = "limen",
    *,
    master: str | None = None,
    cores: int | None = None,
    memory: str | None = None,
    config: Mapping[str, object] | None = None,
    remote: str | None = None,
) -> SparkSession:
    """The running session if nothing asked for contradicts it, otherwise a new one.

    By default that is a local one on all cores. `master` is any of Spark's; `cores` and `memory`
    ("4g") size a local one; `config` has further settings, which win over ours; `remote` is Spark
    Connect: "sc://host:port", or "local[2]" for a server in this process. Within spark-submit the
    master is spark-submit's. The memory is fixed when the first session of a process starts.
    """
    if remote is None and master is None and cores is None:
        remote = os.environ.get("SPARK_REMOTE")
    _check(master, cores, memory, remote)
    wanted = {key: _text(value) for key, value in (config or {}).items()}
    if cores is not None:
        master = f"local[{cores}]"
    running = _running()
    if running is not None:
        asked = {"spark.master": master, "spark.driver.memory": memory, **wanted}
        _refuse_contradiction(running, asked, remote)
        return running
    if remote is not None and not remote.startswith("local"):
        return _builder(name, ALWAYS | wanted).remote(remote).getOrCreate()
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started the JVM
        return _builder(name, ALWAYS | wanted).getOrCreate()
    return _launched(name, remote or master or f"local[{usable_cores()}]", memory, wanted, remote)


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and its container's share."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota, _, period = _first_line("/sys/fs/cgroup/cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit():
        there = min(there or 1, round(int(quota) / int(period)))
    return max(there or 1, 1)


def usable_memory() -> tuple[int, int]:
    """Bytes that this machine or container has, and how many of them are free now."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = total
    if found := re.search(r"MemAvailable:\s+(\d+) kB", _text_of("/proc/meminfo")):
        free = int(found[1]) * 1024
    limit = _first_line("/sys/fs/cgroup/memory.max")
    if limit.isdigit():
        used = _first_line("/sys/fs/cgroup/memory.current")
        total = min(total, int(limit))
        free = min(free, max(total - int(used or 0), 0))
    return total, free


def default_memory() -> str:
    """The JVM's heap: a quarter of the memory, for Python's workers and the index need theirs."""
    total, _ = usable_memory()
    return f"{min(max(total // 4, GIB), 8 * GIB) >> 20}m"


def _first_line(path: str) -> str:
    return _text_of(path).partition("\n")[0].strip()


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _check(master: str | None, cores: int | None, memory: str | None, remote: str | None) -> None:
    if remote is not None:
        if master is not None or cores is not None:
            raise LimenError(
                "remote says where Spark is, so master and cores cannot be given beside it"
            )
        if not (remote.startswith("sc://") or LOCAL.fullmatch(remote)):
            raise LimenError(f"remote {remote!r} is neither sc://host:port nor local[cores]")
        if memory is not None and remote.startswith("sc://"):
            raise LimenError(
                "memory is for a Spark that is started here; the remote one has its own"
            )
    if cores is not None:
        if master is not None:
            raise LimenError(f"cores is for a local session; master {master!r} says them itself")
        if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
            raise LimenError(f"cores is {cores!r}; it must be a whole number from 1 on")
    if master is not None and not (
        LOCAL.fullmatch(master)
        or LOCAL_CLUSTER.fullmatch(master)
        or master == "yarn"
        or master.startswith(("spark://", "k8s://"))
    ):
        raise LimenError(
            f"master {master!r} is none that Spark knows: local[cores], "
            "local-cluster[workers,cores,MiB], spark://host:port, k8s://... or yarn"
        )
    if memory is not None and _bytes(memory) < LEAST_MEMORY:
        raise LimenError(f"memory {memory!r} is too little; Spark needs 512m at least")


def _bytes(memory: str) -> int:
    found = re.fullmatch(r"(\d+)([kmgt])b?", str(memory).strip().lower())
    if found is None:
        raise LimenError(f"memory {memory!r} is not a size such as 512m or 4g")
    return int(found[1]) << {"k": 10, "m": 20, "g": 30, "t": 40}[found[2]]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spark_session() -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ImportError(
            f"Spark needs PySpark: pip install 'limen[spark]' ({error.name or error} is missing)"
        ) from None
    return SparkSession


def _builder(name: str, settings: Mapping[str, str]) -> Any:
    return _spark_session().Builder().appName(name).config(map=dict(settings))


def _running() -> SparkSession | None:
    spark_session = _spark_session()
    from pyspark.errors import PySparkException

    try:
        return spark_session.active()
    except PySparkException:
        return None


def _refuse_contradiction(
    running: SparkSession, asked: Mapping[str, str | None], remote: str | None
) -> None:
    connected = type(running).__module__.startswith("pyspark.sql.connect")
    if asked["spark.master"] if connected else remote is not None:
        there, other = ("Spark Connect", "classic") if connected else ("classic", "Spark Connect")
        raise LimenError(
            f"a {there} session is running in this process and a {other} one cannot live beside "
            "it: leave the argument out, stop it (spark.stop()), or use another process"
        )
    if remote is not None and remote.startswith("sc://"):
        from pyspark.sql.connect.client.core import DefaultChannelBuilder

        here, there = running.client._builder.endpoint, DefaultChannelBuilder(remote).endpoint
        if here != there:
            raise LimenError(f"a session at {here} is running; stop it first to go to {there}")
        remote = None
    for key, want in {**asked, "spark.master": remote or asked["spark.master"]}.items():
        have = None if want is None else running.conf.get(key, None)
        if want is not None and not _same(key, have, want):
            raise LimenError(
                f"a Spark session is running with {key} = {have or 'its default'}, not {want}; "
                "leave the argument out, or stop that session first (spark.stop())"
            )


def _same(key: str, have: str | None, want: str) -> bool:
    if key == "spark.driver.memory" and have is not None:
        return _bytes(have) == _bytes(want)
    return have == want


def _launched(
    name: str, master: str, memory: str | None, wanted: dict[str, str], remote: str | None
) -> SparkSession:
    """A session on a JVM that this process starts."""
    _spark_session()
    java = find_java()
    if remote is not None:
        _check_connect_port()
    folder = Path(tempfile.mkdtemp(prefix="limen-spark-"))
    atexit.register(_end, folder, os.getpid())
    settings = _settings(master, memory, java, folder)
    for key, value in wanted.items():
        ours = settings.get(key)
        settings[key] = f"{ours} {value}" if ours and key.endswith("JavaOptions") else value
    variables = _variables(master, java, folder)
    if remote is None:
        with _environment(variables):
            return _builder(name, settings).master(master).getOrCreate()
    # Past the builder: a Connect client would set all of them once more, and warn of most.
    settings["spark.app.name"] = name
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    submit = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    variables["PYSPARK_SUBMIT_ARGS"] = f"{shlex.join(words)} {submit}"
    with _environment(variables):
        return _spark_session().Builder().remote(remote).getOrCreate()


def _is_here(master: str) -> bool:
    """Whether the executors run on this machine, with its paths and its loopback."""
    return master.startswith("local") or urlsplit(master).hostname in (LOOPBACK, "localhost")


def _parallelism(master: str) -> int | None:
    if found := LOCAL.fullmatch(master):
        return usable_cores() if found[1] == "*" else max(int(found[1] or 1), 1)
    if found := LOCAL_CLUSTER.fullmatch(master):
        return int(found[1]) * int(found[2])
    return None


def _settings(master: str, memory: str | None, java: Java, folder: Path) -> dict[str, str]:
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    # -Xss8m: a query stopped from within foreachBatch overflows the usual stack.
    options = f"-Xss8m -Djava.io.tmpdir={folder} -Dlog4j2.configurationFile={log}"
    if java.version >= 24:  # otherwise it warns of what Spark, Netty and Arrow do
        options += " --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow"
    found = ALWAYS | {
        "spark.driver.extraJavaOptions": options,
        "spark.driver.memory": memory or default_memory(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    if cores := _parallelism(master):
        found["spark.sql.shuffle.partitions"] = str(cores)
    if _is_here(master):
        found["spark.driver.host"] = found["spark.driver.bindAddress"] = LOOPBACK  # without DNS
        found["spark.connect.grpc.binding.address"] = LOOPBACK
        source = Path(__file__).parents[2]
        if source.name not in ("site-packages", "dist-packages"):  # workers find limen there
            paths = [str(source), *filter(None, [os.environ.get("PYTHONPATH")])]
            found["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(paths)
    if cluster := LOCAL_CLUSTER.fullmatch(master):
        found["spark.executor.memory"] = f"{cluster[3]}m"
        found["spark.executor.extraJavaOptions"] = options
    return found


def _variables(master: str, java: Java, folder: Path) -> dict[str, str]:
    """What the JVM finds in its environment, and its executors after it."""
    found = {"JAVA_HOME": str(java.home)}
    if _is_here(master):
        found["SPARK_LOCAL_IP"] = LOOPBACK
    if _is_here(master) or "PYSPARK_PYTHON" not in os.environ:
        found["PYSPARK_PYTHON"] = found["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if LOCAL_CLUSTER.fullmatch(master):
        found["SPARK_HOME"] = str(_spark_home(folder / "spark"))
    return found


def _spark_home(folder: Path) -> Path:
    """The installed Spark by links: executors log to SPARK_HOME/work, which may not be ours."""
    from pyspark.find_spark_home import _find_spark_home

    folder.mkdir()
    for part in Path(_find_spark_home()).iterdir():
        if part.name != "work":
            (folder / part.name).symlink_to(part)
    return folder


def _check_connect_port() -> None:
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, CONNECT_PORT)) == 0:
            raise LimenError(
                f"port {CONNECT_PORT} is taken, and PySpark's local Connect server needs it: end "
                f"the other server, or go to it with remote='sc://localhost:{CONNECT_PORT}'"
            )


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end(folder: Path, process: int) -> None:
    """At exit: stop Spark, then remove its folder (a forked child leaves both alone)."""
    if os.getpid() != process:
        return
    running = _running()
    if running is not None:
        running.stop()
    shutil.rmtree(folder, ignore_errors=True)
