"""One secret of each kind, in a project that uses them all: none is anywhere but where it has to be.

The project's catalog and source are in PostgreSQL, with passwords; Spark has settings by reference; a program holds
Spark open while its processes and pages are looked at.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import pytest

from rollview.cli.main import main
from rollview.project import start_project
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

CANARY = "S3cr3tCanary"
PIN = f"{CANARY}-pin ü=\\:"
SETTINGS = """\
version: 1
catalog: env:SHOP_CATALOG
sources:
  bank: {{kind: postgres, address: "env:BANK_URL", tables: [{table}]}}
  down: {{kind: postgres, address: "env:DOWN_URL", tables: [{table}]}}
  odd: {{kind: mysql, address: "env:ODD_URL", tables: [{table}]}}
spark:
  spark.ui.enabled: true
  spark.ui.port: {port}
  spark.hadoop.fs.s3a.secret.key: env:S3_KEY
  spark.hadoop.shop.pin: file:pin
"""


@dataclass(frozen=True, slots=True)
class Shop:
    folder: Path
    environment: dict[str, str]
    catalog: str
    port: int

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def told(self, *arguments: str) -> str:
        """What a command prints, in this process: Spark is not needed."""
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said), pytest.raises(SystemExit):
            main([*arguments, "--project-dir", str(self.folder), "--debug"])
        return said.getvalue()

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def shop(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("canary") / "shop"
    with (
        postgres_server.new_schema() as catalog,
        postgres_server.new_schema() as bank,
        socket.create_server(("127.0.0.1", 0)) as free,
    ):
        port = free.getsockname()[1]
        free.close()
        with psycopg.connect(bank, autocommit=True) as connection:
            connection.execute("CREATE TABLE accounts (id INT PRIMARY KEY)")
            connection.execute("ALTER TABLE accounts REPLICA IDENTITY FULL")
            connection.execute("INSERT INTO accounts VALUES (1)")
            schema = connection.execute("SELECT current_schema").fetchone()[0]  # type: ignore[index]
        environment = {
            **os.environ,
            "SHOP_CATALOG": catalog.replace("postgres@", f"postgres:{CANARY}-catalog@"),
            "BANK_URL": bank.replace("postgres@", f"postgres:{CANARY}-bank@"),
            "DOWN_URL": f"postgresql://u:{CANARY}-down@127.0.0.1:1/none",
            "ODD_URL": f"mysql://u:{CANARY}/odd@h/db",
            "S3_KEY": f"{CANARY}-s3",
        }
        secrets = {name: value for name, value in environment.items() if CANARY in value}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in secrets.items():
                patch.setenv(name, value)
            start_project(folder, "env:SHOP_CATALOG")
            settings = SETTINGS.format(port=port, table=f"{schema}.accounts")
            (folder / "rollview.yaml").write_text(settings)
            (folder / "pin").write_text(f"{PIN}\n")
            yield Shop(folder, environment, catalog, port)


@pytest.fixture(scope="module")
def talk(shop: Shop) -> str:
    """What commands say that work, that fail, and that should never have been typed."""
    return "\n".join(
        shop.told(*command, *form)
        for form in ((), ("--output", "json"))
        for command in (
            ("source", "add", "bank"),
            ("source", "check", "bank"),
            ("source", "show", "bank"),
            ("source", "list"),
            ("source", "add", "down"),
            ("source", "add", "odd"),
            ("source", "add", "typed", "postgres", f"postgresql://u:{CANARY}@h/d", "--table", "t"),
            ("source", "add", "typed", f"postgresql://u:{CANARY}@h/d", "postgres", "--table", "t"),
            ("capture",),
            ("status",),
            ("log",),
        )
    )


def test_no_command_tells_a_secret(talk: str) -> None:
    assert "Traceback" in talk
    assert "does not answer" in talk
    assert "cannot be understood" in talk
    assert CANARY not in talk


def test_the_catalog_holds_no_secret(shop: Shop, talk: str) -> None:
    with psycopg.connect(shop.catalog) as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'rollview%'")
        names = [name for (name,) in found]
        rows = [str(connection.execute(f'SELECT t::text FROM "{name}" t'.encode()).fetchall()) for name in names]
    assert any("env:BANK_URL" in row for row in rows)
    assert CANARY not in "".join(rows)


def test_the_projects_files_hold_no_secret(shop: Shop, talk: str) -> None:
    files = [path for path in shop.folder.rglob("*") if path.is_file() and path.name != "pin"]
    assert len(files) > 2
    assert not [path for path in files if CANARY.encode() in path.read_bytes()]


WORK = """\
import hashlib, sys
from rollview.errors import RollviewError
from rollview.project import find_project

with find_project().open() as warehouse:
    conf = warehouse.spark.sparkContext.getConf()
    for name in ("fs.s3a.secret.key", "shop.pin"):
        print(hashlib.sha256(conf.get(f"spark.hadoop.{name}").encode()).hexdigest())
    variable = "reflect('java.lang.System', 'getenv', 'S3_KEY')"
    print(warehouse.spark.sql(f"SELECT {variable} AS found").first().found)
    print("ready", flush=True)
    sys.stdin.readline()
    for text in ("SELECT nothing", "SELECT CAST('x' AS INT)"):
        try:
            warehouse.sql(text)[0].rows.collect()
        except Exception as error:
            print(repr(error), error, getattr(error, "facts", ""))
"""


def test_a_running_spark_has_the_secrets_and_shows_none(shop: Shop, talk: str) -> None:
    """Neither by the command lines and environments of its processes, nor by its pages, its log or its errors."""
    work = shop.started("-c", WORK)
    assert work.stdout is not None
    try:
        said = list(iter(work.stdout.readline, "ready\n"))
        children = psutil.Process(work.pid).children(recursive=True)
        lines, inherited = zip(*_of_the_living(children), strict=True)
        (application,) = json.loads(shop.page("/api/v1/applications"))
        environment = shop.page(f"/api/v1/applications/{application['id']}/environment")
        pages = [environment, *(shop.page(path) for path in ("/environment/", "/jobs/", "/SQL/"))]
        said.append(work.communicate("\n")[0])
    finally:
        work.kill()
        work.wait()
    whole = [hashlib.sha256(secret.encode()).hexdigest() for secret in (f"{CANARY}-s3", PIN)]
    assert [line.strip() for line in said if line.strip() in (*whole, "null")] == [*whole, "null"], said
    assert any("SparkSubmit" in line for line in lines)
    assert not any("BANK_URL" in variables for variables in inherited)
    told = dict(json.loads(environment)["sparkProperties"])
    assert told["spark.hadoop.fs.s3a.secret.key"] == told["spark.hadoop.shop.pin"] == "*********(redacted)"
    assert CANARY not in "".join((*lines, *inherited, *pages, *said))


def _of_the_living(processes: list[psutil.Process]) -> Iterator[tuple[str, str]]:
    """Command line and environment; a helper of the launcher may have ended."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            yield " ".join(process.cmdline()), str(process.environ())
