"""Delta tables of others as a source.

Law: every version is a position, and its files stay as they are, so the state at a position is read from them. Versions
of one table are in order; versions of different tables are units of work of their own, because Delta knows no
transaction over tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rollview.core.lent import Lent, UnlinkableError
from rollview.errors import BadValue, LostPosition, SchemaChanged, SourceDown, SourceStopped, Unreadable, UsageError
from rollview.sources.delta.changes import changed_rows, version_of
from rollview.sources.delta.columns import DeltaColumn, Remembered, columns_of, noted, renamed_memory
from rollview.sources.delta.files import (
    BadLogError,
    DataLostError,
    added_files,
    check_log,
    described,
    hides,
    lent_files,
    read_rows,
    unread_features,
)
from rollview.sources.delta.vacuum import SHORT, kept_for, late
from rollview.sources.inside import Inside
from rollview.sources.protocol import (
    Batch,
    Capability,
    Finding,
    FirstCopy,
    Health,
    LayoutChange,
    LeavesNothing,
    Opening,
    Row,
    Rows,
    SourceTable,
    UnitOfWork,
    projected,
)
from rollview.sources.renamed import renamed_table
from rollview.sources.spool import Collected, changes_and_bad_rows
from rollview.sources.values import UnfitError


class DeltaSource(LeavesNothing):
    kind: ClassVar[str] = "delta"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(Capability) - {
        Capability.ACROSS_TABLES,
        Capability.KEYS,
    }

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._root = Path(opening.address)
        self._inside = Inside.of(opening)
        self._last: dict[tuple[str, int], DeltaTable] = {}
        self._alarm: str | None = None

    def check(self) -> tuple[Finding, ...]:
        found = []
        for remote in self._opening.settings.remotes:
            try:
                check_log(self._place(remote), self._inside)
                table = DeltaTable(self._place(remote))
            except (DeltaError, SourceDown):
                found.append(Finding(f"there is no Delta table in '{self._place(remote)}'"))
                continue
            for feature in unread_features(table):
                found.append(Finding(f"table '{remote}' uses {feature}, which is not read here"))
            found += [Finding(what, repair, blocks=False) for what, repair in self._advice(remote, table)]
            if self._opening.settings.table(remote).key:
                what = f"Delta makes sure of no key, so that of '{remote}' is not used"
                found.append(Finding(what, blocks=False))
        return tuple(found)

    def tables(self) -> tuple[SourceTable, ...]:
        return tuple(self._described(remote, self._at(remote, None)) for remote in self._opening.settings.remotes)

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        opened = {remote: self._at(remote, None) for remote in self._opening.settings.remotes}
        tables = {remote: self._described(remote, table) for remote, table in opened.items()}
        columns = {remote: columns_of(table) for remote, table in opened.items()}

        def rows(remote: str) -> Iterator[Rows]:
            own = {one.name: one for one in columns[remote]}
            located = tuple((column, own[column.name]) for column in tables[remote].schema)
            for file in added_files(opened[remote]).values():
                with self._telling(remote):
                    yield read_rows(opened[remote], file, located, self._inside)

        position = _position([table.version() for table in opened.values()])
        ids = {remote: str(table.metadata().id) for remote, table in opened.items()}
        # Columns of another table are known by their names alone.
        same = {remote: found for remote, found in columns.items() if not self._is_another(remote, opened[remote])}
        changes = self._changes(same)
        memory = {**self._opening.memory, "ids": ids}
        for remote, found in columns.items():
            said = [old for old, _ in changes[remote].renamed] if remote in changes else []
            memory = noted(memory, remote, found, said)
        about = (position, datetime.now(UTC), tuple(tables.values()), rows, memory)
        yield FirstCopy(*about, at_once=4, changes=changes)

    def _changes(self, columns: Mapping[str, Sequence[DeltaColumn]]) -> dict[str, LayoutChange]:
        """Of all tables that were captured before. They are followed before the copy is whole: if it fails, capture
        goes on from the old position, and has to know columns by their new names."""
        memory, changes = self._opening.memory, dict[str, LayoutChange]()
        for remote in columns.keys() & self._opening.known:
            change = self._since(remote, columns[remote])
            if change.renamed:
                memory = renamed_memory(memory, remote, dict(change.renamed))
                change = replace(change, memory=memory)
            changes[remote] = change
        return changes

    def _since(self, remote: str, columns: Sequence[DeltaColumn]) -> LayoutChange:
        """What is another now in a table that was captured before; new columns are taken by their names."""
        found = self._remembered(remote).change(columns, columns)
        nothing = LayoutChange(self._opening.name, remote, "")
        return nothing if found is None else replace(found, added=(), copy=False, memory=None)

    def lent(self, remote: str, position: str) -> tuple[Lent, ...]:
        if self._opening.settings.copies:
            raise UnlinkableError("its settings say so")
        if self._opening.settings.table(remote).rows:
            raise UnlinkableError("only some of its rows are captured")
        place = self._opening.settings.remotes.index(remote)
        return lent_files(self._at(remote, _parsed(position)[place]), self._inside)

    def health(self) -> Health:
        return Health(alarm=self._alarm)

    def read(self, after: str, limit: int) -> Batch:
        seen = _parsed(after)
        units: list[UnitOfWork] = []
        rows, now = 0, datetime.now(UTC)
        for place, remote in enumerate(self._opening.settings.remotes):
            newest = self._checked(remote, seen[place])
            while seen[place] < newest.version():
                if rows >= limit:
                    return Batch(tuple(units), _position(seen), complete=False)
                reached = [*seen[:place], seen[place] + 1, *seen[place + 1 :]]
                try:
                    unit = self._unit(remote, reached[place], _position(reached))
                except SourceStopped:
                    # What came before it is whole, and read by the layout that it had.
                    if not units:
                        raise
                    return Batch(tuple(units), _position(seen), complete=False)
                seen = reached
                rows += sum(len(change.before) + len(change.after) for change in unit.changes.values())
                units.append(unit)
        return Batch(tuple(units), _position(seen), known=now)

    def acknowledge(self, position: str) -> None:
        """The table keeps its versions by its own rules."""

    def order(self, position: str) -> int:
        return sum(_parsed(position))

    def close(self) -> None:
        """No connection is open."""

    def _advice(self, remote: str, table: DeltaTable) -> Iterator[tuple[str, str | None]]:
        """What would make capture cheaper or safer."""
        if kept_for(table) < SHORT:
            yield f"table '{remote}' keeps removed files for {kept_for(table)}: capture it more often than that", None

    def _place(self, remote: str) -> Path:
        named = os.path.normpath(self._root / remote)
        if not self._inside.allows_outside and not Path(named).is_relative_to(os.path.normpath(self._root)):
            raise UsageError(f"'{remote}' leads out of the source's folder '{self._root}'.")
        return self._inside.place(self._root / remote)

    def _at(self, remote: str, version: int | None) -> DeltaTable:
        if version is None:
            check_log(self._place(remote), self._inside)
        try:
            return DeltaTable(self._place(remote), version=version)
        except DeltaError as error:
            check_log(self._place(remote), self._inside)
            raise LostPosition(
                self._opening.name, f"table '{remote}' has no version {version} to read ({error})"
            ) from None

    def _checked(self, remote: str, seen: int) -> DeltaTable:
        newest = self._at(remote, None)
        if self._is_another(remote, newest):
            raise self._opening.new_table(remote).raised()
        if newest.version() < seen:
            raise LostPosition(
                self._opening.name, f"table '{remote}' ends at version {newest.version()}, before {seen}"
            )
        for feature in unread_features(newest):
            raise SchemaChanged(self._opening.name, remote, f"it uses {feature} now, which is not read here")
        return newest

    def _is_another(self, remote: str, table: DeltaTable) -> bool:
        """Whether it is not the table that was captured under this name."""
        ids: Mapping[str, str] = self._opening.memory.get("ids", {})
        return str(table.metadata().id) != ids.get(remote)

    def _changed(self, remote: str, old: DeltaTable, new: DeltaTable, position: str) -> LayoutChange | None:
        """What a version does to the columns. ``position``: after it."""
        before, now = columns_of(old), columns_of(new)
        # What a user has said of names is found where they change.
        change = None if before == now else self._remembered(remote).change(before, now)
        if change is None or change.copy:
            return change
        # A file that stays may have had values all along that the table did not show.
        fresh = [one for one in now if any(one.name == column.name for column in change.added)]
        had, has = added_files(old), added_files(new)
        stay = [file for path, file in has.items() if path in had]
        if fresh and hides(new, stay, fresh, self._inside):
            return replace(change, copy=True, added=())
        return change if had.keys() != has.keys() else replace(change, with_rows=False, position=position)

    def _remembered(self, remote: str) -> Remembered:
        opening = self._opening
        about = (opening.known[remote].schema, opening.settings.table(remote), opening.memory)
        return Remembered(opening.name, remote, *about)

    def _unit(self, remote: str, version: int, position: str) -> UnitOfWork:
        old, new = self._last.get((remote, version - 1)) or self._at(remote, version - 1), self._at(remote, version)
        self._last = {(remote, version): new}
        collected, time = Collected(self._opening, self._opening.known[remote]), _time(new)
        with self._telling(remote, version):
            change = self._changed(remote, old, new, position)
            if change is not None:
                raise change.raised()
            found = version_of(old, new, self._remembered(remote), self._place(remote), self._inside)
            for rows, sign in changed_rows(found):
                collected.add(_as_rows(rows), sign, rows.nbytes)
        self._alarm = late(remote, new, time) or self._alarm
        changes, bad = changes_and_bad_rows({remote: collected})
        return UnitOfWork(position, f"{remote}@{version}", time, changes, quarantined=bad)

    def _described(self, remote: str, table: DeltaTable) -> SourceTable:
        with self._telling(remote):
            settings, found = self._opening.settings.table(remote), described(remote, table)
            if remote in self._opening.known and not self._is_another(remote, table):
                settings = renamed_table(settings, dict(self._since(remote, columns_of(table)).renamed))
            return projected(found, settings)

    @contextmanager
    def _telling(self, remote: str, version: int | None = None) -> Iterator[None]:
        try:
            yield
        except UnfitError as error:
            raise BadValue(self._opening.name, remote, error.column, error.reason, str(version)) from None
        except BadLogError as error:
            raise Unreadable(self._opening.name, str(error), place=f"table '{remote}'") from None
        except DataLostError as error:
            # Where its log is gone as well, the table is away as a whole, and may come back.
            check_log(self._place(remote), self._inside)
            raise LostPosition(self._opening.name, f"a file of table '{remote}' is gone: {error}") from None


def _as_rows(rows: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _time(table: DeltaTable) -> datetime:
    """When the version was committed, as its log says."""
    entries = (entry for entry in table.history(2) if entry.get("version") == table.version())
    return datetime.fromtimestamp(next(entries, {}).get("timestamp", 0) / 1000, UTC)


def _position(versions: Sequence[int]) -> str:
    return ",".join(map(str, versions))


def _parsed(position: str) -> list[int]:
    return [int(version) for version in position.split(",")]
