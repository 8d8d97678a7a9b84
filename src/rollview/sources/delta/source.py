"""Delta tables of others as a source.

Law: every version is a position, and its files stay as they are, so the state at a position is read from them. Versions
of one table are in order; versions of different tables are units of work of their own, because Delta knows no
transaction over tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from rollview.core.lent import Lent, UnlinkableError
from rollview.errors import BadValue, LostPosition, SchemaChanged, SourceDown, SourceStopped, Unreadable, UsageError
from rollview.sources.delta.changes import changed_rows, version_of
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
    words_of,
)
from rollview.sources.spool import Collected, changes_and_bad_rows
from rollview.sources.values import UnfitError
from rollview.types.spelling import widens


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

        def rows(remote: str) -> Iterator[Rows]:
            for file in added_files(opened[remote]).values():
                with self._telling(remote):
                    yield read_rows(opened[remote], file, tables[remote].schema, self._inside)

        position = _position([table.version() for table in opened.values()])
        ids = {remote: str(table.metadata().id) for remote, table in opened.items()}
        memory = {**self._opening.memory, "ids": ids}
        yield FirstCopy(position, datetime.now(UTC), tuple(tables.values()), rows, memory, at_once=4)

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
        if str(newest.metadata().id) != self._opening.memory["ids"][remote] or newest.version() < seen:
            raise LostPosition(self._opening.name, f"table '{remote}' was made anew")
        for feature in unread_features(newest):
            raise SchemaChanged(self._opening.name, remote, f"it uses {feature} now, which is not read here")
        return newest

    def _changed(self, remote: str, old: DeltaTable, new: DeltaTable) -> LayoutChange | None:
        """What a version does to the columns. A column is its name here: files of one that is gone are gone as well."""
        known, now = self._opening.known[remote].schema, self._described(remote, new).schema
        found = {column.name: now.find(column.name) for column in known}
        kept = {name: one for name, one in found.items() if one is not None and one.name == name}
        other = {c.name: kept[c.name].type for c in known if c.name in kept and kept[c.name].type != c.type}
        widened = {c.name: other[c.name] for c in known if c.name in other and widens(c.type, other[c.name])}
        lost = tuple(c.name for c in known if not now.has(c) and c.name not in widened)
        takes = self._opening.settings.table(remote).takes_new and new.schema() != old.schema()
        before = self._described(remote, old).schema if takes else now
        added = tuple(column for column in now if before.find(column.name) is None and known.find(column.name) is None)
        if not (lost or widened or added):
            return None
        about = (self._opening.name, remote, words_of(lost, {}, widened, added))
        # A file may have had values all along that the table did not show.
        if added and hides(old, {column.name.lower() for column in added}, self._inside):
            return LayoutChange(*about, copy=True)
        return LayoutChange(*about, lost, widened=tuple(widened.items()), added=added, with_rows=True)

    def _unit(self, remote: str, version: int, position: str) -> UnitOfWork:
        old, new = self._last.get((remote, version - 1)) or self._at(remote, version - 1), self._at(remote, version)
        self._last = {(remote, version): new}
        schema = self._opening.known[remote].schema
        change = self._changed(remote, old, new)
        if change is not None:
            raise change.raised()
        collected, time = Collected(self._opening, self._opening.known[remote]), _time(new)
        with self._telling(remote, version):
            for rows, sign in changed_rows(version_of(old, new, self._place(remote), self._inside), schema):
                collected.add(_as_rows(rows), sign, rows.nbytes)
        self._alarm = late(remote, new, time) or self._alarm
        changes, bad = changes_and_bad_rows({remote: collected})
        return UnitOfWork(position, f"{remote}@{version}", time, changes, quarantined=bad)

    def _described(self, remote: str, table: DeltaTable) -> SourceTable:
        with self._telling(remote):
            return projected(described(remote, table), self._opening.settings.table(remote))

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
