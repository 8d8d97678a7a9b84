"""A MySQL server of its own on a loopback port; runs as root too.

The server is what ``make mysql`` has put into ``.mysql``, or the program that ``ROLLVIEW_MYSQL`` names. Without one
tests that need it are skipped with that reason.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.mariadb import MariadbServer, answering, free_port

_PROGRAM = Path(__file__).parents[2] / ".mysql" / "mysqld"
_MISSING = "NOT RUN: no MySQL server; 'make mysql' gets one and runs these tests, ROLLVIEW_MYSQL names a mysqld"
_FAST = (
    "--innodb-flush-method=nosync",
    "--skip-innodb-doublewrite",
    "--innodb-redo-log-capacity=16M",
    "--innodb-buffer-pool-size=32M",
    "--secure-file-priv=NULL",
)
_SETTINGS = (
    "--log-bin=binlog",
    "--server-id=1",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--binlog-row-metadata=FULL",
    "--bind-address=127.0.0.1",
    "--mysqlx=OFF",
    "--innodb-flush-log-at-trx-commit=0",
    "--sync-binlog=0",
)


@dataclass(frozen=True, slots=True)
class MysqlServer(MariadbServer):
    def url(self, database: str) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{database}"


def find_mysql() -> Path | None:
    named = os.environ.get("ROLLVIEW_MYSQL")
    return next((path for path in (Path(named) if named else None, _PROGRAM) if path and path.exists()), None)


@contextmanager
def running_mysql(program: Path) -> Iterator[MysqlServer]:
    home = Path(tempfile.mkdtemp(prefix="rollview-mysql-"))
    common = ["--no-defaults", f"--datadir={home}/data", f"--user={pwd.getpwuid(os.geteuid()).pw_name}", *_FAST]
    subprocess.run([program, *common, "--initialize-insecure"], check=True, capture_output=True)
    port = free_port()
    files = [f"--socket={home}/socket", f"--pid-file={home}/pid"]
    with (home / "log").open("w") as log:
        server = subprocess.Popen([program, *common, *_SETTINGS, *files, f"--port={port}"], stdout=log, stderr=log)
    try:
        yield answering(MysqlServer(port), home / "log")
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[MysqlServer]:
    program = find_mysql()
    if program is None:
        pytest.skip(_MISSING)
    with running_mysql(program) as server:
        yield server
