"""Strangers: what another user of the machine, or the author of a statement, may make us run or read."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollview import errors
from rollview.algebra.unsafe import refuse_unsafe
from rollview.cli.main import main
from rollview.core import ownership
from rollview.engine import archive, java
from rollview.project import SAFE, find_project, start_project
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRANGER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")


# A project that belongs to somebody else


@pytest.fixture
def project(tmp_path: Path) -> Path:
    start_project(tmp_path / "shop")
    return tmp_path / "shop"


def give(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


@needs_root
@pytest.mark.parametrize("what", ["rollview.yaml", "."])
def test_a_project_of_another_user_is_refused_from_wherever_it_is_found(project: Path, what: str) -> None:
    give(project / what)
    for start in (project, project / "views"):
        with pytest.raises(errors.UsageError, match="belongs to another user") as caught:
            find_project(start)
        assert f"export {SAFE}={project}" in (caught.value.hint or "")


@needs_root
def test_a_link_of_another_user_to_a_file_of_ours_is_refused(project: Path) -> None:
    (project / "rollview.yaml").rename(project / "own.yaml")
    (project / "rollview.yaml").symlink_to("own.yaml")
    find_project(project)
    give(project / "rollview.yaml")
    with pytest.raises(errors.UsageError, match="belongs to another user"):
        find_project(project)


@needs_root
def test_init_reads_no_settings_of_another_user(project: Path) -> None:
    subprocess.run(["rm", "-r", project / ".rollview"], check=True)
    give(project / "rollview.yaml")
    with pytest.raises(errors.UsageError, match="belongs to another user"):
        start_project(project)


@needs_root
def test_a_project_of_another_user_can_be_allowed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(project / "rollview.yaml")
    monkeypatch.setenv(SAFE, f"/elsewhere{os.pathsep}{project}")
    assert find_project(project / "views").folder == project
    monkeypatch.setenv(SAFE, str(project.parent))
    with pytest.raises(errors.UsageError, match="belongs to another user"):
        find_project(project)


@needs_root
def test_who_called_sudo_may_own_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give(project / "rollview.yaml")
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert find_project(project).folder == project


@needs_root
def test_root_is_no_stranger(tmp_path: Path) -> None:
    """In a container the settings often are root's, and the process is not."""
    code = Path(ownership.__file__).read_text() + "\nprint(is_trusted(Path('/etc/passwd')))"
    identity = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
    done = subprocess.run(["python3", "-c", code], cwd="/", capture_output=True, text=True, check=True, **identity)
    assert done.stdout.strip() == "True"


# What is created is this user's own


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022])
def test_warehouse_and_catalog_are_made_for_their_owner_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with Warehouse.create(tmp_path / "deep" / "warehouse") as warehouse:
            warehouse.catalog.snapshot()
            files = list(warehouse.root.glob("catalog.db*"))
            assert {mode(file) for file in files} == {0o600}
            assert len(files) > 1
        assert mode(warehouse.root) == mode(warehouse.root / "data") == 0o700
    finally:
        os.umask(before)


# Java from a home that several users share


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "rollview"


def prepared() -> Path:
    """The ``java`` that Spark would be started with."""
    environment = dict(os.environ)
    java.prepare(environment)
    return Path(environment["JAVA_HOME"]) / "bin" / "java"


def test_a_shim_with_another_content_is_written_anew(home: Path) -> None:
    shim = prepared()
    assert shim.is_relative_to(home)
    right = shim.read_text()
    shim.write_text("#!/bin/sh\necho taken over\n")
    assert prepared() == shim
    assert shim.read_text() == right


def test_a_shim_that_others_may_write_is_written_anew(home: Path) -> None:
    shim = prepared()
    inode = shim.stat().st_ino
    shim.chmod(0o777)
    (home / shim.parent.parent.name).chmod(0o777)
    home.chmod(0o777)
    assert prepared() == shim
    assert shim.stat().st_ino != inode
    assert {mode(path) & 0o022 for path in (shim, shim.parent.parent, home)} == {0}


@needs_root
@pytest.mark.parametrize("what", ["bin/java", "bin", "."])
def test_a_shim_of_another_user_is_not_run(home: Path, what: str) -> None:
    shim = prepared()
    give(shim.parent.parent / what)
    again = prepared()
    assert again != shim or again.stat().st_uid == os.geteuid()
    assert all(path.stat().st_uid == os.geteuid() for path in (again, again.parent, again.parent.parent))


@needs_root
def test_a_cache_of_another_user_is_not_used(home: Path) -> None:
    home.mkdir(parents=True)
    give(home)
    assert not prepared().is_relative_to(home)


@needs_root
def test_what_stands_in_for_the_cache_is_gone_with_the_process(home: Path, tmp_path: Path) -> None:
    home.mkdir(parents=True)
    give(home)
    code = "import os; from rollview.engine import java; print(java.cache_folder(os.environ))"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    stand_in = Path(done.stdout.strip())
    assert stand_in.parent == tmp_path
    assert not stand_in.exists()


@needs_root
def test_a_class_archive_of_another_user_is_not_used(home: Path) -> None:
    found = java.find_java()
    stored = archive.archive_path(found)
    stored.touch(mode=0o600)
    assert archive.find_archive(found) == stored
    give(stored)
    assert archive.find_archive(found) is None


def test_a_class_archive_that_others_may_write_is_not_used(home: Path) -> None:
    found = java.find_java()
    stored = archive.archive_path(found)
    stored.touch(mode=0o600)
    stored.chmod(0o666)
    assert archive.find_archive(found) is None


def test_java_does_not_inherit_variables_that_hold_secrets(home: Path, tmp_path: Path) -> None:
    shim = prepared()
    printing = tmp_path / "printing"
    printing.write_text("#!/bin/sh\nenv\n")
    printing.chmod(0o700)
    *lines, last = shim.read_text().splitlines()
    assert last.startswith("exec ")
    shim.write_text("\n".join([*lines, f"exec {printing}"]))
    told = subprocess.run(
        [shim], env={"BANK_URL": "hidden", "OTHER": "seen", java.UNSET: "BANK_URL"}, capture_output=True, text=True
    ).stdout
    assert "OTHER=seen" in told
    assert "BANK_URL" not in told


# SQL that somebody else wrote

CALLS = [
    "SELECT java_method('java.lang.System', 'getProperty', 'user.home')",
    "SELECT `reflect`('java.lang.System', 'getProperty', 'user.home')",
    "SELECT system.builtin.Try_Reflect /* x */ ('java.lang.System', 'getProperty', 'user.home')",
    "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getProperty', 'user.home')",
    "SELECT TRANSFORM (1) USING 'cat' AS (x STRING)",
    'FROM (SELECT 1 AS a) MAP a USING "cat" AS x',
    "FROM (SELECT 1 AS a) REDUCE a USING 'cat' AS x",
    "SELECT * FROM read_files('/etc/passwd')",
    "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
]
PATHS = ["SELECT * FROM text.`/etc/passwd`", "SELECT * FROM csv.`file:/etc/passwd` AS t", "TABLE binaryFile.`/etc/*`"]


@pytest.mark.parametrize("text", CALLS)
def test_a_text_that_runs_code_or_reads_files_is_refused_by_its_words(text: str) -> None:
    with pytest.raises(errors.Unsafe) as caught:
        refuse_unsafe(f"INSERT INTO t\n{text}")
    assert caught.value.facts["line"] == 2
    assert "--allow-unsafe" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'reflect (x) USING', transform(a, x -> x + 1) FROM r JOIN s USING (k) -- reflect(",
        "SELECT reflect, identifier FROM t",
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = 'reflect('",
    ],
)
def test_what_only_looks_like_it_is_taken(text: str) -> None:
    refuse_unsafe(text)


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    root = tmp_path_factory.mktemp("strangers") / "warehouse"
    Warehouse.create(root).close()
    with Warehouse.open(root, spark=spark) as opened:
        opened.sql("CREATE TABLE t (a STRING)", "INSERT INTO t VALUES ('x')")
        yield opened


@pytest.mark.spark
@pytest.mark.parametrize("text", [*CALLS, *PATHS])
def test_no_statement_and_no_view_runs_code_or_reads_files(warehouse: Warehouse, text: str) -> None:
    changes = (f"INSERT INTO t {text}", f"DELETE FROM t WHERE a IN ({text})", f"CREATE TABLE made AS {text}")
    for statement in (text, *changes, f"CREATE MATERIALIZED VIEW v AS {text}"):
        with pytest.raises(errors.SqlError):
            warehouse.sql(statement)
        with pytest.raises(errors.SqlError), warehouse.transaction() as transaction:
            (transaction.query if statement == text else transaction.sql)(statement)
    with pytest.raises(errors.SqlError):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS {text}")
    assert [row.a for row in warehouse.read("t").collect()] == ["x"]
    assert set(warehouse.snapshot().relations) == {"t"}


@pytest.mark.spark
def test_what_is_allowed_runs(warehouse: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\n")
    read = f"SELECT value AS a FROM text.`{tmp_path / 'lines'}`"
    with pytest.raises(errors.Unsafe, match="it reads any file"):
        warehouse.sql(read)
    for text, found in ((read, "one"), (CALLS[0].replace("')", "') AS a"), str(Path.home()))):
        (answer,) = warehouse.sql(text, allow_unsafe=True)
        assert answer.rows is not None
        assert [row.a for row in answer.rows.collect()] == [found]
    warehouse.sql(f"CREATE TABLE copied AS {read}", f"INSERT INTO copied {read}", allow_unsafe=True)
    with warehouse.transaction(allow_unsafe=True) as transaction:
        transaction.sql(f"INSERT INTO copied {read}")
    assert [row.a for row in warehouse.read("copied").collect()] == ["one"] * 3
    with pytest.raises(errors.SqlError):
        warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {read}", allow_unsafe=True)
    warehouse.drop_table("copied")


def test_help_says_that_a_python_file_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["view", "create", "--help"])
    assert "run as a program" in capsys.readouterr().out
