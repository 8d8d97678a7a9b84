"""The catalog's own version.

Laws: opening an up-to-date catalog asks one query and loads no migrations. A migration happens whole or not at all,
once, however many processes open the catalog together. A catalog newer than this program is never touched.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from rollview import errors
from rollview.catalog.database import Database
from rollview.catalog.tables import HEAD, VERSION_TABLE, version

_LOCK = 7_655_863_921


def find_version(connection: sa.Connection) -> str | None:
    """The catalog's version, or None where there is no catalog."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(sa.select(version.c.version_num)).scalar()


def create(database: Database) -> None:
    file = database.address.file
    if file is not None and not file.parent.is_dir():
        raise errors.NotFound("folder", str(file.parent))
    if file is not None:
        _make_private(file)
    with database.write() as connection:
        _lock(connection)
        if find_version(connection) is not None:
            raise errors.AlreadyExists("catalog", database.address.shown)
        _upgrade(connection)


def _make_private(file: Path) -> None:
    """SQLite gives the files that it puts beside this one the same mode."""
    with suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def bring_up_to_date(database: Database) -> None:
    file = database.address.file
    if file is not None and not file.exists():
        raise _no_catalog(database)
    with database.read() as connection:
        found = find_version(connection)
    if found is None:
        raise _no_catalog(database)
    if found != HEAD:
        _migrate(database, found)


def _migrate(database: Database, found: str) -> None:
    if not found.isdigit() or int(found) > int(HEAD):
        raise errors.EnvironmentFault(
            f"The catalog {database.address.shown} has version {found}; this rollview knows versions up to {HEAD}.",
            hint="A newer rollview wrote it. Install that one or a later one.",
            found=found,
            known=HEAD,
        )
    with database.write() as connection:
        _lock(connection)
        _upgrade(connection)


def _no_catalog(database: Database) -> errors.NotFound:
    return errors.NotFound("catalog", database.address.shown, hint="Create the warehouse first.")


def _lock(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


def _upgrade(connection: sa.Connection, version: str = "head") -> None:
    # Alembic takes longer to load than an up-to-date catalog takes to open.
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    folder = Path(__file__).parent / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, version)
    except CommandError as error:
        raise errors.EnvironmentFault(f"The catalog cannot be brought up to date: {error}.") from error
