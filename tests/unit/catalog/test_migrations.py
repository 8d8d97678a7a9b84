from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from tests.servers.postgres import PostgresServer

import rollview.catalog
from rollview import errors
from rollview.catalog import Catalog, address, migrate
from rollview.catalog.database import Database
from rollview.catalog.tables import HEAD, PREFIX, VERSION_TABLE, metadata


def shape(connection: sa.Connection) -> dict[str, Any]:
    """Everything the database tells about our tables."""
    inspector = sa.inspect(connection)

    def named(items: list[Any]) -> list[str]:
        return sorted(str(sorted(item.items())) for item in items)

    return {
        table: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)],
            inspector.get_pk_constraint(table),
            named(inspector.get_foreign_keys(table)),
            named(inspector.get_unique_constraints(table)),
            named(inspector.get_indexes(table)),
            named(inspector.get_check_constraints(table)),
        )
        for table in inspector.get_table_names()
        if table.startswith(PREFIX) and table != VERSION_TABLE
    }


def test_migrations_make_exactly_the_tables_of_the_code(catalog: Catalog, url: str) -> None:
    with closing(Database(address.parse(url))) as database, database.write() as connection:
        migrated = shape(connection)
        context = MigrationContext.configure(
            connection,
            opts={"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True},
        )
        assert compare_metadata(context, metadata) == []
        metadata.drop_all(connection)
        metadata.create_all(connection)
        assert shape(connection) == migrated
        assert set(migrated) == set(metadata.tables)


def test_the_code_knows_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(rollview.catalog.__path__[0]) / "migrations"))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_creating_twice_is_refused(catalog: Catalog, url: str) -> None:
    with pytest.raises(errors.AlreadyExists):
        Catalog.create(url)


def test_there_is_nothing_to_open_before_it_is_created(url: str) -> None:
    with pytest.raises(errors.NotFound, match="no catalog"):
        Catalog.open(url)


def test_a_catalog_from_the_future_is_left_alone(catalog: Catalog, url: str) -> None:
    with closing(Database(address.parse(url))) as database, database.write() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(errors.EnvironmentFault, match=f"has version 9999; this rollview knows versions up to {HEAD}"):
        Catalog.open(url)


def test_a_catalog_with_an_unknown_version_is_left_alone(catalog: Catalog, url: str) -> None:
    with closing(Database(address.parse(url))) as database, database.write() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0000'"))
    with pytest.raises(errors.EnvironmentFault, match="cannot be brought up to date"):
        Catalog.open(url)


def test_a_migration_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade = migrate._upgrade

    def fail_at_the_end(connection: sa.Connection) -> None:
        upgrade(connection)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "_upgrade", fail_at_the_end)
        with pytest.raises(ZeroDivisionError):
            Catalog.create(url)
    Catalog.create(url).close()


def test_tables_of_others_in_the_same_database_stay(postgres_server: PostgresServer) -> None:
    with postgres_server.new_schema() as url:
        with closing(Database(address.parse(url))) as database, database.write() as connection:
            connection.execute(sa.text("CREATE TABLE lease (mine int); CREATE TABLE relation (mine int)"))
        Catalog.create(url).close()
        with closing(Database(address.parse(url))) as database, database.read() as connection:
            names = sa.inspect(connection).get_table_names()
    assert {"lease", "relation"} == {name for name in names if not name.startswith(PREFIX)}


def test_opening_an_up_to_date_catalog_loads_no_migrations(catalog: Catalog, url: str) -> None:
    program = (
        "import sys; from rollview.catalog import Catalog; Catalog.open(sys.argv[1]).snapshot(); "
        "print([m for m in ('alembic', 'mako', 'pyspark', 'pyarrow', 'sqlglot') if m in sys.modules])"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program, url], env=environment, capture_output=True, check=True)
    assert done.stdout == b"[]\n"


def test_a_snapshot_takes_few_queries(catalog: Catalog, reopened: Callable[..., Catalog]) -> None:
    opened = reopened()
    asked: list[str] = []
    sa.event.listen(
        opened._database.engine, "after_cursor_execute", lambda c, u, statement, *_: asked.append(statement)
    )
    opened.snapshot()
    assert len([statement for statement in asked if statement.startswith("SELECT")]) <= 6
