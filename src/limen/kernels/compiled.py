"""The three ways in which kernels are compiled, and where the compiled code is kept.

Numba counts references to every array that crosses a function; in a loop over millions of values the
counting alone costs several times the work (a probe: 140 ns with it, 29 ns without). So whatever runs
once a value is compiled without it: a `leaf` is merged into its caller, a `loop` is called from
Python. Neither may create an array: scratch space comes in as an argument. What runs once a batch
and creates its result is `compiled`.

Compiled code is kept in the user's cache folder (NUMBA_CACHE_DIR moves it), under a name that changes
with any kernel's source: all processes of a machine share it, and none runs yesterday's code, which
numba by itself would do when only a callee has changed. With NUMBA_DISABLE_JIT=1 kernels are plain
Python.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def _cache_folder() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for source in sources:
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()}"
    home = numba.config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    for parent in (Path(home) / "limen", Path(tempfile.gettempdir()) / f"limen-{user}"):
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(parent / name, os.W_OK):
            return str(parent / name)
    raise OSError("no folder to keep compiled kernels in; set NUMBA_CACHE_DIR to a writable one")


CACHE = _cache_folder()


def _jit(function: F, **options: bool) -> F:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = CACHE
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def compiled(function: F) -> F:
    return _jit(function)


def loop(function: F) -> F:
    return _jit(function, _nrt=False)


def leaf(function: F) -> F:
    return _jit(function, _nrt=False, forceinline=True)
