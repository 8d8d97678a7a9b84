"""An SQLite database as a source.

Law: SQLite has one writer, so every snapshot lies between two commits. All that the log gained between two snapshots
is whole transactions; it is one unit of work, because SQLite does not tell where one transaction ends. A position is
the newest entry of each log, by its number and its mark; a log in which that entry is another is not read on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from rollview.core.names import double_quoted
from rollview.core.schema import Column
from rollview.errors import LostPosition, NotFound, RollviewError, SchemaChanged, SourceDown
from rollview.sources.asking import Ask, SourceAnswer, SourceStream, asked_table, only_asked
from rollview.sources.protocol import (
    ATTEMPT,
    Batch,
    Capability,
    Changes,
    Finding,
    FirstCopy,
    LayoutChange,
    Opening,
    Row,
    Rows,
    SourceTable,
    UnitOfWork,
)
from rollview.sources.quarantine import Sieve
from rollview.sources.sections import NotPlainError, Section
from rollview.sources.settings import TableSettings
from rollview.sources.spool import Collected
from rollview.sources.sqlite import triggers
from rollview.sources.sqlite.asking import LogSeen, asked_rows, read_only, statement
from rollview.sources.sqlite.columns import read_columns
from rollview.sources.sqlite.layout import SqliteLayout, described, findings, read_layout
from rollview.sources.sqlite.triggers import Names
from rollview.sources.sqlite.values import Decode, decoder, spark_type

_BUSY_SECONDS = 30.0
_PIECE = 50_000
_PIECE_BYTES = 16 << 20
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class _Place:
    """An entry of a log. Positions that an older rollview left have no mark."""

    number: int
    mark: str | None


class SqliteSource:
    kind: ClassVar[str] = "sqlite"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.ACROSS_TABLES, Capability.BEFORE_IMAGES, Capability.KEYS, Capability.TRUNCATE}
    )

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._names = self._named(opening.memory.get(ATTEMPT, ""))
        self._connection = self._connect(Path(opening.address))

    def check(self) -> tuple[Finding, ...]:
        found: list[Finding] = []
        with self._reading():
            for table in self._opening.settings.tables:
                layout = read_layout(self._connection, table.remote)
                missing = Finding(f"there is no table '{table.remote}'")
                found += [missing] if layout is None else findings(layout, table)
            if self._connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                what = "the database is not in WAL mode, so writers wait while it is copied"
                found.append(Finding(what, "PRAGMA journal_mode = WAL;", blocks=False))
        return tuple(found)

    def tables(self) -> tuple[SourceTable, ...]:
        with self._reading():
            return tuple(described(self._layout(t.remote), t) for t in self._opening.settings.tables)

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        self._install()
        with self._reading():
            tables = {table.name: table for table in self.tables()}
            own = self._named(self._opening.attempt)
            position = _position([self._place(names, self._newest(names)) for names in own])

            sieve = Sieve(self._opening)

            def rows(remote: str) -> Iterator[Rows]:
                yield from self._rows(tables[remote], sieve)

            slots = {remote: list(self._layout(remote).names) for remote in tables}
            memory = {**self._opening.memory, "slots": slots, ATTEMPT: self._opening.attempt}
            yield FirstCopy(position, datetime.now(UTC), tuple(tables.values()), rows, memory, sieve.found)

    def read(self, after: str, limit: int) -> Batch:
        seen = _parsed(after)
        now = datetime.now(UTC)
        with self._reading():
            self._check_layouts()
            try:
                with self._strict_texts():
                    sieve, found = self._found(seen)
            # Where some text is not UTF-8, texts are read one by one.
            except sqlite3.OperationalError:
                sieve, found = self._found(seen)
        position = _position([last for last, _ in found])
        changes = {remote: change for (_, change), remote in zip(found, self._remotes, strict=True) if change}
        if not changes:
            return Batch((), after, known=now)
        unit = UnitOfWork(position, position, now, changes, quarantined=sieve.take())
        return Batch((unit,), position, known=now)

    def ask(self, asks: Sequence[Ask]) -> SourceAnswer:
        sieve = Sieve(self._opening)
        with self._reading(), read_only(self._connection):
            self._check_layouts()
            position = _position([self._place(names, self._newest(names)) for names in self._names])
            rows = tuple(only_asked(self._asked(one, sieve), one) for one in asks)
        return SourceAnswer(rows, LogSeen(position))

    @staticmethod
    def statement(table: SourceTable, equal: Sequence[str]) -> str:
        return statement(table.name, table.schema.names, equal)

    @contextmanager
    def stream(self) -> Iterator[SourceStream]:
        sieve = Sieve(self._opening)

        def rows(remote: str) -> Iterator[Rows]:
            yield from self._rows(self._opening.known[remote], sieve)

        with self._reading(), read_only(self._connection):
            self._check_layouts()
            position = _position([self._place(names, self._newest(names)) for names in self._names])
            yield SourceStream(rows, LogSeen(position))

    @contextmanager
    def moment(self) -> Iterator[None]:
        with self._reading():
            yield

    def acknowledge(self, position: str) -> None:
        """What is known to be durable is taken out of the logs, except the entry that the position names."""
        with self._translated():
            for names, place in zip(self._names, _parsed(position), strict=True):
                log = double_quoted(names.log)
                old = f"seq < ? AND EXISTS (SELECT 1 FROM {log} WHERE seq = ? AND mark = ?)"
                about = (place.number, place.number, place.mark)
                if self._connection.execute(f"SELECT 1 FROM {log} WHERE {old} LIMIT 1", about).fetchone():
                    self._connection.execute(f"DELETE FROM {log} WHERE {old}", about)

    def order(self, position: str) -> int:
        return sum(place.number for place in _parsed(position))

    def withdraw(self, memory: Mapping[str, Any]) -> None:
        if memory.get(ATTEMPT, "") != self._opening.attempt:
            own = {name for names in self._named(self._opening.attempt) for name in names.all}
            with self._translated():
                self._drop({name: kind for name, kind in self._left().items() if name in own})

    def tidy(self, memory: Mapping[str, Any]) -> None:
        self._take_away(keep=self._named(memory.get(ATTEMPT, "")))

    def remove(self) -> None:
        self._take_away(keep=())

    def close(self) -> None:
        self._connection.close()

    @property
    def _remotes(self) -> tuple[str, ...]:
        return self._opening.settings.remotes

    def _connect(self, path: Path) -> sqlite3.Connection:
        if not path.is_file():
            if self._opening.known:
                raise SourceDown(self._opening.name, f"there is no file '{path}'")
            raise NotFound("SQLite database", str(path))
        with self._translated():
            uri = f"{path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
            # What is not UTF-8 is kept apart from what is, and refused where a value is looked at.
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            return connection

    def _named(self, attempt: str) -> list[Names]:
        """Older versions left one thing for all attempts."""
        tag = self._opening.memory["tag"]
        return [Names(f"{tag}_{attempt}" if attempt else tag, place) for place in range(len(self._remotes))]

    def _install(self) -> None:
        """Beside what the present position is read from, which stays until the copy is published."""
        self._take_away(keep=self._names if self._opening.known else ())
        self._opening.fence()
        with self._writing():
            for names, remote in zip(self._named(self._opening.attempt), self._remotes, strict=True):
                for statement in triggers.create(names, self._layout(remote)):
                    self._connection.execute(statement)

    def _left(self) -> dict[str, str]:
        return triggers.left(self._connection, self._opening.memory["tag"])

    def _take_away(self, keep: Sequence[Names]) -> None:
        """Whoever takes over after the fence has names that are not among those that were found before it."""
        kept = {name for names in keep for name in names.all}
        with self._translated():
            found = {name: kind for name, kind in self._left().items() if name not in kept}
        if found:
            self._opening.fence()
            self._drop(found)

    def _drop(self, found: Mapping[str, str]) -> None:
        if found:
            with self._writing():
                for statement in triggers.drop(found):
                    self._connection.execute(statement)

    def _rows(self, table: SourceTable, sieve: Sieve) -> Iterator[Rows]:
        columns = ", ".join(map(double_quoted, table.schema.names))
        with self._translated():
            cursor = self._connection.execute(f"SELECT {columns} FROM {double_quoted(table.name)}")
            few: list[pa.Table] = []
            while piece := cursor.fetchmany(_AT_ONCE):
                try:
                    few.append(read_columns(zip(*piece, strict=True), table.schema))
                except NotPlainError:
                    yield _decoded(table, piece, None, +1, sieve)
                if sum(rows.num_rows for rows in few) >= _PIECE or sum(rows.nbytes for rows in few) > _PIECE_BYTES:
                    yield Section.of(pa.concat_tables(few))
                    few = []
            if few:
                yield Section.of(pa.concat_tables(few))

    def _asked(self, ask: Ask, sieve: Sieve) -> list[Row]:
        table = asked_table(self._opening.known, self._opening.settings, ask)
        return _decoded(table, asked_rows(self._connection, ask, self._opening.settings.asking), None, +1, sieve)

    def _found(self, seen: Sequence[_Place]) -> tuple[Sieve, list[tuple[_Place, Changes | None]]]:
        sieve = Sieve(self._opening)
        logs = zip(self._names, seen, self._remotes, strict=True)
        return sieve, [self._logged(names, start, remote, sieve) for names, start, remote in logs]

    def _logged(self, names: Names, seen: _Place, remote: str, sieve: Sieve) -> tuple[_Place, Changes | None]:
        """The newest entry of a log, and the changes since ``seen``."""
        last, after = self._newest(names), seen.number
        if last < after:
            raise LostPosition(self._opening.name, f"the log of table '{remote}' ends at {last}, before {after}")
        self._check_place(names, seen, remote)
        table = self._opening.known[remote]
        slots = ", ".join(f"c{self._slot(remote, column.name)}" for column in table.schema)
        query = f"SELECT count, {slots} FROM {double_quoted(names.log)} WHERE seq > ? ORDER BY seq"
        cursor, found = self._connection.execute(query, (after,)), 0
        collected = Collected(self._opening, table, bad=sieve.found)
        while entries := cursor.fetchmany(_AT_ONCE):
            found += len(entries)
            try:
                _collect_columns(collected, entries)
            except NotPlainError:
                self._collect_rows(collected, entries, str(last), sieve)
        if found != last - after:
            raise LostPosition(
                self._opening.name, f"entries {after + 1} to {last} of table '{remote}' are not all there"
            )
        return self._place(names, last), collected.changes() if found else None

    def _check_place(self, names: Names, seen: _Place, remote: str) -> None:
        """Whether the log is still the one in which ``seen`` was read."""
        if seen.mark is None:
            what = (
                f"the log of table '{remote}' was made by an older rollview, and cannot tell whether it was made anew"
            )
            raise LostPosition(self._opening.name, what)
        if self._place(names, seen.number) != seen:
            what = f"entry {seen.number} of the log of table '{remote}' is not the one that was read"
            raise LostPosition(
                self._opening.name, f"{what}: the log was made anew, or the database was restored from a backup"
            )

    def _place(self, names: Names, number: int) -> _Place:
        found = self._connection.execute(
            f"SELECT mark FROM {double_quoted(names.log)} WHERE seq = ?", (number,)
        ).fetchone()
        return _Place(number, None if found is None else str(found[0]))

    def _newest(self, names: Names) -> int:
        """A statement that fails half-way with OR FAIL leaves entries that SQLite's own count does not know."""
        counted = "SELECT max(seq) FROM sqlite_sequence WHERE name = ?"
        query = f"SELECT max(coalesce(({counted}), 0), coalesce((SELECT max(seq) FROM {double_quoted(names.log)}), 0))"
        return int(self._connection.execute(query, (names.log,)).fetchone()[0])

    def _collect_rows(self, collected: Collected, entries: Sequence[Row], position: str, sieve: Sieve) -> None:
        for count in (-1, +1):
            rows = [entry[1:] for entry in entries if entry[0] == count]
            size = sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
            collected.add(_decoded(collected.table, rows, position, count, sieve), count, size)

    def _check_layouts(self) -> None:
        present = {row[0] for row in self._connection.execute("SELECT name FROM sqlite_schema")}
        for names, remote in zip(self._names, self._remotes, strict=True):
            missing = [name for name in (names.log, *names.triggers) if name not in present]
            if missing:
                raise LostPosition(
                    self._opening.name, f"'{missing[0]}', which keeps the changes of '{remote}', is gone"
                )
            self._check_columns(remote, self._layout(remote))

    def _check_columns(self, remote: str, layout: SqliteLayout) -> None:
        """The log's slots follow the columns through a change of name, and SQLite drops no column that a trigger names.
        So what is in a slot under another name is the same column."""
        chosen = self._opening.settings.table(remote)
        present = dict(enumerate(layout.columns))
        pairs = [(one, present.get(self._slot(remote, one.name))) for one in self._opening.known[remote].schema]
        changed = [(column, now) for column, now in pairs if not _is_same(column, now, chosen)]
        if not changed:
            return
        slots = self._opening.memory.get("slots", {})
        marks = self._opening.settings.global_transactions
        follows = remote in slots and not chosen.names_columns and (marks is None or marks.table != remote)
        renamed = {c.name: now[0] for c, now in changed if follows and now is not None and spark_type(now[1]) == c.type}
        gone = tuple(column.name for column, _ in changed if column.name not in renamed)
        told = [f"{old} is {new} now" for old, new in renamed.items()]
        told += [f"columns that are gone or have another type: {', '.join(gone)}"] if gone else []
        memory = None
        if renamed:
            names = [present[place][0] if place in present else name for place, name in enumerate(slots[remote])]
            memory = {**self._opening.memory, "slots": {**slots, remote: names}}
        about = (self._opening.name, remote, "; ".join(told), gone)
        raise LayoutChange(*about, renamed=tuple(renamed.items()), memory=memory).raised()

    def _slot(self, remote: str, column: str) -> int:
        """The place of a column in the log: that which it had when the triggers were made."""
        slots: Mapping[str, Sequence[str]] = self._opening.memory.get("slots", {})
        return slots.get(remote, self._opening.known[remote].schema.names).index(column)

    def _layout(self, remote: str) -> SqliteLayout:
        layout = read_layout(self._connection, remote)
        if layout is None:
            raise SchemaChanged(self._opening.name, remote, "it is gone")
        return layout

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._translated():
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _strict_texts(self) -> Iterator[None]:
        """Texts are read as fast as SQLite's driver can; one that is not UTF-8 is an error."""
        lenient, self._connection.text_factory = self._connection.text_factory, str
        try:
            yield
        finally:
            self._connection.text_factory = lenient

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except RollviewError:
            raise
        except sqlite3.Error as error:
            raise SourceDown(self._opening.name, str(error)) from error


def _collect_columns(collected: Collected, entries: Sequence[Row]) -> None:
    counts, *columns = zip(*entries, strict=True)
    rows, is_new = read_columns(columns, collected.table.schema), np.array(counts) > 0
    for count, which in ((-1, ~is_new), (+1, is_new)):
        if which.any():
            some = rows if which.all() else rows.filter(which)
            collected.add(Section.of(some), count, some.nbytes)


def _decoded(table: SourceTable, rows: Sequence[Row], position: str | None, count: int, sieve: Sieve) -> list[Row]:
    decoders = [decoder(column.type) for column in table.schema]
    return [fit for row in rows for fit in _one(table, decoders, row, position, count, sieve)]


def _one(
    table: SourceTable, decoders: Sequence[Decode], row: Row, position: str | None, count: int, sieve: Sieve
) -> Sequence[Row]:
    """The row; nothing if it is put aside."""
    values: list[Any] = []
    for column, decode, value in zip(table.schema, decoders, row, strict=True):
        try:
            values.append(None if value is None else decode(value))
        except ValueError as error:
            shown = dict(zip(table.schema.names, row, strict=True))
            sieve.refuse(table, column.name, str(error), position, shown, count)
            return ()
    return (tuple(values),)


def _is_same(column: Column, now: tuple[str, str, bool] | None, chosen: TableSettings) -> bool:
    if now is None:
        return False
    name, declared, _ = now
    return name == column.name and (chosen.types.get(name) or spark_type(declared)) == column.type


def _position(places: Sequence[_Place]) -> str:
    return ",".join(f"{place.number}-{place.mark}" for place in places)


def _parsed(position: str) -> list[_Place]:
    parts = (part.partition("-") for part in position.split(","))
    return [_Place(int(number), mark or None) for number, _, mark in parts]
