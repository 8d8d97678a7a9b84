"""A MariaDB server of its own on a loopback port, from the machine's programs; runs as root too.

Without MariaDB (Debian: mariadb-server) tests that need it are skipped with that reason. ``ROLLVIEW_MARIADB`` names the
folder that holds its ``sbin`` if that is not in ``/usr``.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pymysql
import pytest

_SETTINGS = (
    "--log-bin=binlog",
    "--server-id=1",
    "--binlog-format=ROW",
    "--binlog-row-image=FULL",
    "--binlog-row-metadata=FULL",
    "--bind-address=127.0.0.1",
    "--skip-networking=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=32M",
)
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class MariadbServer:
    port: int

    def connect(self, database: str | None = None) -> Any:
        return pymysql.connect(host="127.0.0.1", port=self.port, user="root", database=database, autocommit=True)

    def url(self, database: str) -> str:
        return f"mariadb://root@127.0.0.1:{self.port}/{database}"


S = TypeVar("S", bound=MariadbServer)


def find_mariadb() -> Path | None:
    """The folder that holds ``sbin/mariadbd``."""
    places = [os.environ.get("ROLLVIEW_MARIADB"), "/usr", "/usr/local"]
    return next((Path(place) for place in places if place and (Path(place) / "sbin" / "mariadbd").exists()), None)


@contextmanager
def running_mariadb(base: Path) -> Iterator[MariadbServer]:
    home = Path(tempfile.mkdtemp(prefix="rollview-mariadb-"))
    user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() == 0:
        shutil.chown(home, user)
    common = [f"--basedir={base}", f"--datadir={home}/data", f"--tmpdir={home}", f"--user={user}"]
    messages = f"--lc-messages-dir={base}/share/mysql"
    install = [base / "bin" / "mariadb-install-db", "--no-defaults", *common, messages]
    subprocess.run(
        [*install, "--auth-root-authentication-method=normal", "--skip-test-db"], check=True, capture_output=True
    )
    port = free_port()
    program = [base / "sbin" / "mariadbd", "--no-defaults", *common, messages, *_SETTINGS, f"--port={port}"]
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [*program, f"--socket={home}/socket", f"--pid-file={home}/pid"], stdout=log, stderr=log
        )
    try:
        yield answering(MariadbServer(port), home / "log")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariadbServer]:
    base = find_mariadb()
    if base is None:
        pytest.skip("MariaDB is not installed: install Debian's mariadb-server, or set ROLLVIEW_MARIADB")
    with running_mariadb(base) as server:
        yield server


def answering(server: S, log: Path) -> S:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            server.connect().close()
            return server
        except pymysql.MySQLError:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server does not answer: {log.read_text()}") from None
            time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
