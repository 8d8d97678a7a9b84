"""Transactions on the catalog's database, and its errors in our words.

Laws: a read transaction sees one moment. Write transactions that hold the clock happen one after another. No driver's
exception and no secret of the address leaves this module.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

import sqlalchemy as sa

from rollview import errors
from rollview.catalog import clock
from rollview.catalog.address import Address
from rollview.catalog.clock import LastSeen, UptimeClock, no_uptime, system_uptime
from rollview.core.lazy import lazy_module
from rollview.core.tls import postgres_tls, with_advice

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite
else:
    postgresql = lazy_module("sqlalchemy.dialects.postgresql")
    sqlite = lazy_module("sqlalchemy.dialects.sqlite")

WallClock = Callable[[], datetime]
IsolationLevel = Literal["REPEATABLE READ", "READ COMMITTED"]

_BUSY_MILLISECONDS = 30_000
_ANSWER_SECONDS = 120.0
"""Longer than any wait for a lock."""
_RETRYABLE_STATES = {"40001", "40P01", "55P03", "57014"}
_WRITING = "rollview_writing"
# SQLite needs some room beside the file even to read it, unless nobody else does.
_NO_ROOM = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
}
_SERVER_TIME = sa.func.clock_timestamp(type_=sa.DateTime(timezone=True))

_engines: WeakSet[sa.Engine] = WeakSet()


def _forget_parents_connections() -> None:
    for engine in _engines:
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_parents_connections)


def system_time() -> datetime:
    return datetime.now(UTC)


class Database:
    """Knows the two dialects, so that nobody else has to."""

    def __init__(
        self, address: Address, wall_clock: WallClock = system_time, uptime: UptimeClock | None = None
    ) -> None:
        """``uptime``: by which ``wall_clock`` is checked; a clock of the caller's own is believed without."""
        self.address = address
        self.wall_clock = wall_clock
        self.uptime = uptime or (system_uptime if wall_clock is system_time else no_uptime)
        self._believed = uptime is None and wall_clock is not system_time
        self.engine = _engine(address)
        self.is_sqlite = self.engine.dialect.name == "sqlite"

    def __repr__(self) -> str:
        return f"Database({self.address.shown!r})"

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        with self._translated(), self._connected() as connection:
            self._choose(connection, "REPEATABLE READ")
            yield connection

    def _connected(self) -> sa.Connection:
        try:
            return self.engine.connect()
        except sa.exc.OperationalError as error:
            if getattr(error.orig, "sqlite_errorcode", None) not in _NO_ROOM:
                raise
            return _engine(self.address, alone=True).connect()

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        with self._translated(), self.engine.connect() as connection:
            # A statement that waited for a lock must see what its holder wrote.
            self._choose(connection, "READ COMMITTED", **{_WRITING: True})
            with connection.begin():
                yield connection

    def now(self, connection: sa.Connection) -> datetime:
        """The time all processes on this database agree on: the server's, or this machine's."""
        if self.is_sqlite:
            return self.wall_clock()
        return connection.execute(sa.select(_SERVER_TIME)).scalar_one()

    def check_time(self, now: datetime, last: LastSeen) -> None:
        """ClockJumped if a second clock contradicts a time that is far later than the last one."""
        if not self._believed:
            clock.check_jump(now, last, lambda: self._second_clock(last))

    def _second_clock(self, last: LastSeen) -> tuple[str, datetime] | None:
        if self.address.file is None:
            return "by the clock of this machine", self.wall_clock()
        return clock.by_uptime(last, self.uptime()) or clock.by_disk(self.address.file.parent)

    def insert_missing(self, connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
        """Add the rows whose keys are not there yet."""
        connection.execute(_insert(self.is_sqlite, table).on_conflict_do_nothing(), rows)

    def close(self) -> None:
        self.engine.dispose()

    def _choose(self, connection: sa.Connection, isolation: IsolationLevel, **options: Any) -> None:
        if not self.is_sqlite:
            options["isolation_level"] = isolation
        connection.execution_options(**options)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            text = str(error)
            cause = None if self.address.holds_secret(text) else error
            raise _in_our_words(error, self.address) from cause


def _engine(address: Address, *, alone: bool = False) -> sa.Engine:
    """``alone``: for SQLite on a full disk. Its connections keep all others out, so none is kept for later."""
    options: dict[str, Any] = {"hide_parameters": True, "json_serializer": _to_json}
    if alone:
        options["poolclass"] = sa.NullPool
    if address.file is None:
        options |= {"pool_pre_ping": True}
    try:
        engine = sa.create_engine(address.url, **options)
    except ModuleNotFoundError as error:
        raise errors.EnvironmentFault(
            "A catalog in PostgreSQL needs the package psycopg.", hint="pip install 'rollview[postgres]'"
        ) from error
    if address.file is None:
        sa.event.listen(engine, "do_connect", _check_server)
        sa.event.listen(engine, "do_connect", _connect_postgresql)
        sa.event.listen(engine, "connect", _prepare_postgresql)
    else:
        sa.event.listen(engine, "connect", _prepare_alone if alone else _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    _engines.add(engine)
    return engine


def _insert(is_sqlite: bool, table: sa.Table) -> Any:
    return sqlite.insert(table) if is_sqlite else postgresql.insert(table)


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise errors.UsageError(f"The catalog cannot store a value: {error}.") from error


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver must not open transactions by itself: it would choose another moment and another lock.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    _log_ahead(connection)
    connection.execute("PRAGMA foreign_keys = ON")


def _log_ahead(connection: Any) -> None:
    """SQLite itself does not wait for another process that switches a new file to its write-ahead log."""
    give_up = time.monotonic() + _BUSY_MILLISECONDS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def _prepare_alone(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA query_only = ON")


def _check_server(_dialect: Any, _record: Any, _arguments: Any, parameters: dict[str, Any]) -> None:
    parameters.update(postgres_tls(parameters, os.environ))


def _connect_postgresql(_dialect: Any, _record: Any, arguments: Any, parameters: dict[str, Any]) -> Any:
    # Only a catalog in PostgreSQL needs the package that this needs.
    from rollview.core.patience import PARAMETERS, connection_type

    return connection_type(_ANSWER_SECONDS).connect(*arguments, **{**PARAMETERS, **parameters})


def _prepare_postgresql(connection: Any, _record: Any) -> None:
    # A writer that was stopped inside its transaction must not hold the others for ever.
    connection.execute(f"SET lock_timeout = {_BUSY_MILLISECONDS}")
    connection.execute(f"SET idle_in_transaction_session_timeout = {2 * _BUSY_MILLISECONDS}")
    connection.commit()


def _begin_sqlite(connection: sa.Connection) -> None:
    writing = connection.get_execution_options().get(_WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN DEFERRED")


def _in_our_words(error: sa.exc.SQLAlchemyError, address: Address) -> errors.RollviewError:
    orig = getattr(error, "orig", None)
    if isinstance(orig, errors.RollviewError):
        return orig
    reason = with_advice(address.without_secrets(str(orig or error).strip().split("\n")[0]))
    where = f"The catalog {address.shown}"
    if _is_retryable(error, reason):
        return errors.Retryable(f"{where} is busy: {reason}.", hint="Try again later.")
    if isinstance(error, sa.exc.DataError) or (orig is not None and not isinstance(error, sa.exc.DBAPIError)):
        return errors.UsageError(f"{where} cannot store a value: {reason}.")
    if isinstance(error, sa.exc.IntegrityError) or "malformed" in reason or "not a database" in reason:
        return errors.Corrupt(f"{where} contradicts itself: {reason}.")
    return errors.EnvironmentFault(f"{where} cannot be used: {reason}.", hint=_advice(address))


def _is_retryable(error: sa.exc.SQLAlchemyError, reason: str) -> bool:
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    locked = isinstance(error, sa.exc.OperationalError) and "database is locked" in reason
    return isinstance(error, sa.exc.TimeoutError) or locked or state in _RETRYABLE_STATES


def _advice(address: Address) -> str:
    if address.file is None:
        return "Check that the server runs and accepts this user."
    return "Check that the folder exists, that this user may write there, and that the disk is not full."
