"""An SQLite database as a source.

Law: SQLite has one writer, so every snapshot lies between two commits. All that the log gained between two snapshots
is whole transactions; it is one unit of work, because SQLite does not tell where one transaction ends. A position is
the newest entry of each log, by its number and its mark; a log in which that entry is another is not read on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from rollview.core.names import double_quoted, same
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
    TableChanged,
    UnitOfWork,
)
from rollview.sources.quarantine import Sieve
from rollview.sources.renamed import renamed_table
from rollview.sources.sections import NotPlainError, Section
from rollview.sources.settings import TableSettings
from rollview.sources.spool import Collected
from rollview.sources.sqlite import triggers
from rollview.sources.sqlite.altering import give_slots, lacks_slots, run_ddl
from rollview.sources.sqlite.asking import LogSeen, asked_rows, read_only, statement
from rollview.sources.sqlite.columns import read_columns
from rollview.sources.sqlite.layout import SqliteLayout, described, findings, read_layout
from rollview.sources.sqlite.log import (
    LogPlace,
    check_place,
    newest,
    newest_places,
    next_cut,
    parsed,
    place_of,
    position_of,
)
from rollview.sources.sqlite.traced import SLOTS, TracedTable, change_of, renamed_slots, slots_of, trace
from rollview.sources.sqlite.triggers import Names, slot_name
from rollview.sources.sqlite.values import Decode, decoder

_BUSY_SECONDS = 30.0
_PIECE = 50_000
_PIECE_BYTES = 16 << 20
_AT_ONCE = 5_000


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
            return tuple(described(self._layout(t.remote), t) for t in self._chosen() if not self._is_missing(t.remote))

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        self._install()
        with self._reading():
            tables = {table.name: table for table in self.tables()}
            own = self._named(self._opening.attempt)
            position = position_of(newest_places(self._connection, own))
            changes = self._changes_by_slots()
            sieve = Sieve(self._opening)

            def rows(remote: str) -> Iterator[Rows]:
                yield from self._rows(tables[remote], sieve)

            slots = {remote: list(self._layout(remote).names) for remote in tables}
            missing = [remote for remote in self._remotes if remote not in tables]
            memory = {**self._opening.memory_without(missing), SLOTS: slots, ATTEMPT: self._opening.attempt}
            copied = (position, datetime.now(UTC), tuple(tables.values()), rows, memory, sieve.found)
            yield FirstCopy(*copied, changes=changes)

    def read(self, after: str, limit: int) -> Batch:
        seen = parsed(after)
        self._give_slots()
        with self._reading():
            self._check_kept()
            for names, place, remote in zip(self._names, seen, self._remotes, strict=True):
                self._check_end(names, place, remote)
            while (cut := next_cut(self._connection, self._names, seen)) is not None:
                before = [place.number - 1 for place in cut.places]
                if before != [place.number for place in seen]:
                    return self._batch(seen, before, complete=False)
                for remote, table in zip(self._remotes, cut.tables, strict=True):
                    if (change := change_of(self._opening, remote, table)) is not None:
                        raise replace(change, position=position_of(cut.places)).raised()
                seen = list(cut.places)
            last = [newest(self._connection, names) for names in self._names]
            self._check_layouts(rows_follow=last != [place.number for place in seen])
            return self._batch(seen, last)

    def _batch(self, seen: Sequence[LogPlace], last: Sequence[int], *, complete: bool = True) -> Batch:
        """What the logs have gained between two places."""
        now = datetime.now(UTC)
        try:
            with self._strict_texts():
                sieve, found = self._found(seen, last)
        # Where some text is not UTF-8, texts are read one by one.
        except sqlite3.OperationalError:
            sieve, found = self._found(seen, last)
        position = position_of([place for place, _ in found])
        changes = {remote: change for (_, change), remote in zip(found, self._remotes, strict=True) if change}
        known = now if complete else None
        if not changes:
            return Batch((), position, complete, known=known)
        unit = UnitOfWork(position, position, now, changes, quarantined=sieve.take())
        return Batch((unit,), position, complete, known=known)

    def alter(self, statement: str) -> None:
        """Run one ALTER TABLE that the triggers would block; the log tells it in order with rows."""
        self._opening.fence()
        with self._writing():
            self._check_kept()
            run_ddl(self._connection, self._names, self._chosen(), statement)

    def ask(self, asks: Sequence[Ask]) -> SourceAnswer:
        sieve = Sieve(self._opening)
        with self._reading(), read_only(self._connection):
            self._check_known()
            position = position_of(newest_places(self._connection, self._names))
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
            self._check_known()
            position = position_of(newest_places(self._connection, self._names))
            yield SourceStream(rows, LogSeen(position))

    @contextmanager
    def moment(self) -> Iterator[None]:
        with self._reading():
            yield

    def acknowledge(self, position: str) -> None:
        """What is known to be durable is taken out of the logs, except the entry that the position names."""
        with self._translated():
            for names, place in zip(self._names, parsed(position), strict=True):
                log = double_quoted(names.log)
                old = f"seq < ? AND EXISTS (SELECT 1 FROM {log} WHERE seq = ? AND mark = ?)"
                about = (place.number, place.number, place.mark)
                if self._connection.execute(f"SELECT 1 FROM {log} WHERE {old} LIMIT 1", about).fetchone():
                    self._connection.execute(f"DELETE FROM {log} WHERE {old}", about)

    def order(self, position: str) -> int:
        return sum(place.number for place in parsed(position))

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
                if self._is_missing(remote):
                    self._run(triggers.create_log(names))
                    continue
                layout = self._layout(remote)
                if layout.unseen:
                    what = f"REPLACE could use its partial or computed UNIQUE index '{layout.unseen[0]}' unseen"
                    raise SchemaChanged(self._opening.name, remote, what)
                self._run(triggers.create(names, layout))

    def _run(self, statements: Iterable[str]) -> None:
        for one in statements:
            self._connection.execute(one)

    def _is_missing(self, remote: str) -> bool:
        """Whether a table that is known to be gone still is."""
        return remote in self._opening.gone and read_layout(self._connection, remote) is None

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
                self._run(triggers.drop(found))

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
        self._layout(ask.table)
        return _decoded(table, asked_rows(self._connection, ask, self._opening.settings.asking), None, +1, sieve)

    def _found(
        self, seen: Sequence[LogPlace], last: Sequence[int]
    ) -> tuple[Sieve, list[tuple[LogPlace, Changes | None]]]:
        sieve = Sieve(self._opening)
        logs = zip(self._names, seen, last, self._remotes, strict=True)
        return sieve, [self._logged(names, start.number, end, remote, sieve) for names, start, end, remote in logs]

    def _check_end(self, names: Names, seen: LogPlace, remote: str) -> None:
        last = newest(self._connection, names)
        if last < seen.number:
            raise LostPosition(self._opening.name, f"the log of table '{remote}' ends at {last}, before {seen.number}")
        check_place(self._opening.name, self._connection, names, seen, remote)

    def _logged(
        self, names: Names, after: int, last: int, remote: str, sieve: Sieve
    ) -> tuple[LogPlace, Changes | None]:
        """The last entry of a log, and the changes since ``after``."""
        if remote in self._opening.gone:
            return place_of(self._connection, names, last), None
        table = self._opening.known[remote]
        slots = ", ".join(slot_name(self._slot(remote, column.name)) for column in table.schema)
        query = f"SELECT count, {slots} FROM {double_quoted(names.log)} WHERE seq > ? AND seq <= ? ORDER BY seq"
        cursor, found = self._connection.execute(query, (after, last)), 0
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
        return place_of(self._connection, names, last), collected.changes() if found else None

    def _collect_rows(self, collected: Collected, entries: Sequence[Row], position: str, sieve: Sieve) -> None:
        for count in (-1, +1):
            rows = [entry[1:] for entry in entries if entry[0] == count]
            size = sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
            collected.add(_decoded(collected.table, rows, position, count, sieve), count, size)

    def _give_slots(self) -> None:
        """Columns that tables have gained are logged from here on, where such are captured."""
        with self._reading():
            tables = zip(self._names, self._chosen(), strict=True)
            taken = [(names, table) for names, table in tables if table.takes_new]
            lacking = [(names, table) for names, table in taken if lacks_slots(self._connection, names)]
        if lacking:
            self._opening.fence()
            with self._writing():
                # Triggers that are made anew know what is unique by now, and tell no more what they did not know.
                self._check_kept()
                for names, table in lacking:
                    give_slots(self._connection, names, table)

    def _check_kept(self) -> None:
        """Whether the changes of all tables are still logged."""
        present = {row[0] for row in self._connection.execute("SELECT name FROM sqlite_schema")}
        for names, remote in zip(self._names, self._remotes, strict=True):
            missing = [name for name in (names.log, *names.triggers) if name not in present]
            # SQLite drops triggers with their table, so one of its name is another.
            if missing == list(names.triggers) and read_layout(self._connection, remote) is not None:
                raise self._opening.new_table(remote).raised()
            if missing == list(names.triggers) and remote in self._opening.gone:
                continue
            if missing == list(names.triggers):
                raise self._opening.lost_table(remote).raised()
            if missing:
                raise LostPosition(
                    self._opening.name, f"'{missing[0]}', which keeps the changes of '{remote}', is gone"
                )
            self._check_unique(names, remote)

    def _check_unique(self, names: Names, remote: str) -> None:
        """Whether the triggers know all that REPLACE goes by."""
        known = triggers.known_unique(self._connection, names)
        layout = None if known is None else read_layout(self._connection, known[0])
        if known is None or layout is None:
            return
        now = frozenset(layout.unique)
        # With a number, a row is looked for before it is told to be gone.
        if layout.unseen or now - known[1] or (layout.rowid is None and now != known[1]):
            what = "other columns are unique than when its capture began, so REPLACE may have taken rows away unseen"
            raise LayoutChange(self._opening.name, remote, what, copy=True).raised()

    def _check_layouts(self, *, rows_follow: bool) -> None:
        """Whether tables are as they are known. ``rows_follow``: rows that were changed with a change of them may
        follow."""
        self._check_kept()
        for names, remote in zip(self._names, self._remotes, strict=True):
            table = trace(self._connection, names)
            if table is None and self._is_missing(remote):
                continue
            if table is None:
                raise self._opening.lost_table(remote).raised()
            if self._is_replaced(remote, table):
                what = f"it is called {table.name} now, and another table has its name"
                raise self._opening.new_table(remote, what).raised()
            if (change := change_of(self._opening, remote, table)) is not None:
                raise replace(change, with_rows=rows_follow).raised()

    def _is_replaced(self, remote: str, table: TracedTable) -> bool:
        """Whether the name that is captured belongs to another table by now."""
        return not same(table.name, remote) and read_layout(self._connection, remote) is not None

    def _check_known(self) -> None:
        """Whether the columns that are known are there as they are known; others may have come."""
        try:
            self._check_layouts(rows_follow=False)
        except TableChanged as error:
            change = error.change
            if change.gone or change.renamed or change.widened or change.copy or change.replaced:
                raise

    def _changes_by_slots(self) -> dict[str, LayoutChange]:
        """What a copy finds called otherwise, or in the place of another, by the triggers of the copy before. It is
        followed before the copy is whole: if that fails, the log is read on from the old position."""
        found, memory = dict[str, LayoutChange](), self._opening.memory
        for names, remote in zip(self._names, self._remotes, strict=True) if self._opening.known else ():
            table = trace(self._connection, names)
            if table is None or not same(table.name, remote):
                continue
            if (change := change_of(self._opening, remote, table)) is not None:
                memory = renamed_slots(memory, remote, table)
                found[remote] = replace(change, added=(), copy=False, with_rows=True, memory=memory)
        return found

    def _chosen(self) -> tuple[TableSettings, ...]:
        """What is said of each table, in the names that its columns have now."""
        if not self._opening.known:
            return self._opening.settings.tables
        pairs = zip(self._names, self._opening.settings.tables, strict=True)
        return tuple(renamed_table(one, self._called(names, one.remote)) for names, one in pairs)

    def _called(self, names: Names, remote: str) -> Mapping[str, str]:
        """New names of captured columns that are proven to be the same."""
        table = trace(self._connection, names)
        if table is None or self._is_replaced(remote, table):
            return {}
        change = change_of(self._opening, remote, table)
        return {} if change is None else dict(change.renamed)

    def _slot(self, remote: str, column: str) -> int:
        """The place of a column in the log."""
        return slots_of(self._opening, remote).index(column)

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
