"""Folders of files as a source.

Law: a table is the bag of all rows of its whole files. What changed between two readings is one unit of work; when
files only came, it is their rows, and otherwise the difference from what the warehouse holds. The position counts the
readings in which something had changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import BadValue, SchemaChanged, SourceDown, UsageError
from rollview.sources.files.columns import FileColumns, file_columns
from rollview.sources.files.emptied import (
    CONFIRM_SECONDS,
    OtherDeviceError,
    check_devices,
    devices,
    emptied,
    is_confirmed,
    waiting,
)
from rollview.sources.files.folder_columns import FolderColumns, SeenColumns
from rollview.sources.files.formats import (
    SUFFIXES,
    UnreadableError,
    parquet_schema,
    read_file,
    telling_unreadable,
)
from rollview.sources.files.listing import SETTLE_SECONDS, Listing, NotSettledError, is_same, list_files, settled
from rollview.sources.inside import Inside
from rollview.sources.protocol import (
    Batch,
    Capability,
    Changes,
    Finding,
    FirstCopy,
    Health,
    LeavesNothing,
    Opening,
    Rows,
    SourceTable,
    UnitOfWork,
)
from rollview.sources.settings import NEW_COLUMNS, NewColumns, TableSettings
from rollview.sources.values import UnfitError, as_table

_FOLDERS = "folders"
"""What the position remembers: the device of each folder with files."""
_EMPTY = "empty"
"""And folders that look emptied, as long as that is in doubt."""


@dataclass(frozen=True, slots=True)
class _Files:
    """Whole files of a table, and how they differ from those of the last reading."""

    now: Listing
    before: Listing

    @property
    def changed(self) -> bool:
        return self.now != self.before

    @property
    def only_came(self) -> tuple[str, ...] | None:
        """The new files, if no other has changed."""
        same = all(self.now.get(path) == facts for path, facts in self.before.items())
        return tuple(path for path in self.now if path not in self.before) if same else None


@dataclass(frozen=True, slots=True)
class _TableFiles(_Files):
    table: SourceTable


class FilesSource(LeavesNothing):
    kind: ClassVar[str] = "files"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(
        {Capability.ACROSS_TABLES, Capability.KEYS, Capability.TRUNCATE}
    )

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._root = Path(opening.address)
        self._inside = Inside.of(opening)
        self._seconds = float(opening.settings.options.get("settle_seconds", SETTLE_SECONDS))
        self._confirm_seconds = float(opening.settings.options.get("confirm_empty_seconds", CONFIRM_SECONDS))
        self._memory = opening.memory
        self._memories: Mapping[str, Mapping[str, Any]] = {}
        self._seen_columns: SeenColumns = {}
        self._alarm: str | None = None
        self._being_written: str | None = None
        self._new_columns = NewColumns(opening.settings.options.get(NEW_COLUMNS, NewColumns.STOP))

    def check(self) -> tuple[Finding, ...]:
        found = []
        for table in self._opening.settings.tables:
            folder = self._folder(table)
            if not folder.is_dir():
                found.append(Finding(f"there is no folder '{folder}'", f"mkdir -p {str(folder)!r}"))
            elif (table.format or "") not in SUFFIXES:
                found.append(Finding(f"'{table.remote}' has no known format; say csv, json or parquet"))
            elif table.format != "parquet" and not table.types:
                found.append(Finding(f"the types of the columns of '{table.remote}' are not declared"))
            elif table.format == "parquet" and not table.types and not self._files(table):
                found.append(Finding(f"there is no Parquet file in '{folder}' yet that tells the columns"))
        return tuple(found)

    def tables(self) -> tuple[SourceTable, ...]:
        return tuple(self._described(table) for table in self._opening.settings.tables)

    @contextmanager
    def first_copy(self) -> Iterator[FirstCopy]:
        number = int(self._memory.get("readings", 0)) + 1
        found = self._believed()
        tables = self.tables()
        readings = {table.name: _of_table(table, found[table.name]) for table in tables}

        def rows(remote: str) -> Iterator[Rows]:
            reading = readings[remote]
            if reading.table.constraints.primary_key:
                # Whether a key is there once can only be told of all rows together.
                yield self._whole(reading)
                return
            for path in reading.now:
                yield self._read(reading, (path,))

        memory = self._remembered(number, readings)
        yield FirstCopy(str(number), datetime.now(UTC), tables, rows, memory)

    def read(self, after: str, limit: int) -> Batch:
        self._memory = self._memories.get(after, self._opening.memory)
        self._memories = {after: self._memory}
        self._alarm = self._being_written = None
        taken: Mapping[str, Any] = self._memory["files"]
        known = datetime.now(UTC) - timedelta(seconds=self._seconds)
        try:
            readings = {
                remote: _of_table(table, self._files_of(self._opening.settings.table(remote), taken[remote]))
                for remote, table in self._opening.known.items()
            }
        except NotSettledError as error:
            self._being_written = f"file '{error}', which is being written"
            return Batch((), after)
        in_doubt = self._in_doubt(readings)
        if in_doubt is not None:
            return Batch((), after, memory=self._remember(after, self._noted(readings, in_doubt)))
        if not any(reading.changed for reading in readings.values()):
            noted = self._noted(readings, None)
            memory = None if noted == self._memory else self._remember(after, noted)
            return Batch((), after, memory=memory, known=known)
        self._check_columns(readings)
        position = str(int(after) + 1)
        changes = {remote: self._changes(reading) for remote, reading in readings.items() if reading.changed}
        unit = UnitOfWork(position, position, _newest(readings.values()), changes)
        memory = self._remember(position, self._remembered(int(position), readings))
        return Batch((unit,), position, memory=memory, known=known)

    def health(self) -> Health:
        return Health(alarm=self._alarm, oldest_open=self._being_written)

    def acknowledge(self, position: str) -> None:
        """A folder keeps nothing for us."""

    def order(self, position: str) -> int:
        return int(position)

    def close(self) -> None:
        """No connection is open."""

    def _folder(self, table: TableSettings) -> Path:
        named = os.path.normpath(self._root / table.remote)
        if not self._inside.allows_outside and not Path(named).is_relative_to(os.path.normpath(self._root)):
            raise UsageError(f"'{table.remote}' leads out of the source's folder '{self._root}'.")
        return self._inside.place(self._root / table.remote)

    def _files(self, table: TableSettings) -> Listing:
        return list_files(self._folder(table), SUFFIXES[table.format or ""], self._inside)

    def _check_columns(self, readings: Mapping[str, _TableFiles]) -> None:
        """Whether the tables have the columns that they are known with."""
        for remote, reading in readings.items():
            if reading.changed and self._by_name:
                settings, known = self._opening.settings.table(remote), self._opening.known[remote].schema
                with self._telling(remote, ""):
                    change = self._columns.change(settings, known, reading.before, reading.now)
                if change is not None:
                    raise change.raised()

    @property
    def _by_name(self) -> bool:
        return self._new_columns is not NewColumns.STOP

    @property
    def _columns(self) -> FolderColumns:
        takes = self._new_columns is NewColumns.TAKE
        return FolderColumns(self._opening.name, self._memory, takes, self._columns_of, self._seen_columns)

    def _columns_of(self, settings: TableSettings, path: str) -> FileColumns:
        folder = self._folder(settings)
        if not (folder / path).exists():
            return {}
        with (
            self._telling(settings.remote, path),
            self._inside.open(folder / path) as file,
            self._inside.reading(),
            telling_unreadable(),
        ):
            return file_columns(file, settings.format or "")

    def _described(self, table: TableSettings) -> SourceTable:
        """A table that is known has the columns that its files have by now, as far as they are followed."""
        if not self._by_name:
            return self._declared(table)
        known = self._opening.known.get(table.remote)
        base = self._declared(table).schema if known is None else known.schema
        taken = self._memory.get("files", {}).get(table.remote, {})
        before = {path: tuple(facts) for path, facts in taken.items()}
        with self._telling(table.remote, ""):
            schema = self._columns.present(table, base, before, self._files(table))
        key = self._columns.key(table)
        return SourceTable(table.remote, schema, Constraints(key, (), key))

    def _declared(self, table: TableSettings) -> SourceTable:
        constraints = Constraints(table.key, (), table.key)
        if table.types:
            columns = tuple(Column(name, type_.lower()) for name, type_ in table.types.items())
            return SourceTable(table.remote, Schema(columns), constraints)
        with self._telling(table.remote, ""):
            for path in self._files(table):
                with self._inside.open(self._folder(table) / path) as file, self._inside.reading():
                    return SourceTable(table.remote, parquet_schema(file), constraints)
        raise SchemaChanged(self._opening.name, table.remote, "there is no file that tells its columns")

    def _files_of(self, table: TableSettings, taken: Mapping[str, Any]) -> _Files:
        """``taken``: its files in the last reading, as the position remembers them."""
        if not self._folder(table).is_dir():
            raise SourceDown(self._opening.name, f"there is no folder '{self._folder(table)}'")
        before = {path: tuple(facts) for path, facts in taken.items()}
        return _Files(settled(self._files(table), before, self._seconds), before)

    def _believed(self) -> Mapping[str, _Files]:
        """The files for a copy. One that is made again takes rows away, so it doubts whatever a reading doubts; unless
        a user wants the folders taken as they are."""
        taken: Mapping[str, Any] = self._memory.get("files", {})
        try:
            found = {
                table.remote: self._files_of(table, taken.get(table.remote, {}))
                for table in self._opening.settings.tables
            }
        except NotSettledError as error:
            raise SourceDown(self._opening.name, f"file '{error}' is being written") from None
        in_doubt = None if self._opening.as_it_is else self._in_doubt(found)
        if in_doubt is not None:
            # The next attempt has to know since when, or it would begin anew for ever.
            self._opening.keep(self._noted(found, in_doubt))
            raise SourceDown(self._opening.name, f"{self._alarm} ({self._take_as_it_is()})")
        return found

    def _in_doubt(self, files: Mapping[str, _Files]) -> dict[str, Any] | None:
        """The folders that look emptied, by their tables, and since when; None if that is believed, or none does."""
        if self._confirm_seconds <= 0:
            return None
        now, known = datetime.now(UTC), self._memory.get(_EMPTY, {})
        found: dict[str, Any] = {}
        for remote, one in files.items():
            paths = emptied(one.before, one.now)
            self._check_devices(remote, paths)
            if paths:
                found[remote] = dict(waiting(paths, known.get(remote, {}), now))
        doubted = [remote for remote in found if not is_confirmed(found[remote], now, self._confirm_seconds)]
        if not doubted:
            return None
        path = next(iter(found[doubted[0]]))
        self._alarm = self._doubt(self._folder(self._opening.settings.table(doubted[0])) / path)
        # Tables are believed together, so none of them may forget its time while another is in doubt.
        return found

    def _check_devices(self, remote: str, paths: Sequence[str]) -> None:
        folder = self._folder(self._opening.settings.table(remote))
        with self._inside.reading():
            try:
                check_devices(folder, paths, self._memory.get(_FOLDERS, {}).get(remote, {}))
            except OtherDeviceError as error:
                what = f"'{folder / str(error)}' is empty, and on another device than its files were: is it mounted?"
                raise SourceDown(self._opening.name, f"{what} ({self._take_as_it_is()})") from None

    def _take_as_it_is(self) -> str:
        return f"if it is to be empty, rollview source resnapshot {self._opening.name}"

    def _doubt(self, folder: Path) -> str:
        return (
            f"folder '{folder}' has lost all its files; they count as deleted if it is still so "
            f"in a reading {self._confirm_seconds:g} seconds later"
        )

    def _changes(self, reading: _TableFiles) -> Changes:
        came = reading.only_came
        key = reading.table.constraints.primary_key
        if came is not None and not key:
            rows = self._read(reading, came)
            return Changes(after=list(zip(*(column.to_pylist() for column in rows.columns), strict=True)))
        return Changes(after=self._whole(reading), replaces=True)

    def _whole(self, reading: _TableFiles) -> pa.Table:
        rows = self._read(reading, tuple(reading.now))
        self._check_key(reading.table, rows)
        return rows

    def _read(self, reading: _TableFiles, paths: tuple[str, ...]) -> pa.Table:
        chosen = self._opening.settings.table(reading.table.name)
        folder, tables = self._folder(chosen), []
        for path in paths:
            with (
                self._telling(reading.table.name, path),
                self._inside.open(folder / path) as file,
                self._inside.reading(),
            ):
                about = (file, chosen.format or "", reading.table.schema)
                tables.append(read_file(*about, by_name=self._by_name, called=self._columns.called(chosen)))
        if not all(is_same(folder, path, reading.now[path], self._inside) for path in paths):
            raise SourceDown(self._opening.name, f"files of '{chosen.remote}' changed while they were read")
        return pa.concat_tables(tables) if tables else as_table((), reading.table.schema)

    def _check_key(self, table: SourceTable, rows: pa.Table) -> None:
        key = table.constraints.primary_key
        if not key:
            return
        for name in key:
            if rows[name].null_count:
                raise BadValue(self._opening.name, table.name, name, "it is NULL, but part of the declared key")
        places = [f"k{place}" for place in range(len(key))]
        keys = pa.table([_with_one_zero(rows[name]) for name in key], names=places)
        counts = keys.group_by(places).aggregate([([], "count_all")])
        twice = counts.filter(pc.greater(counts["count_all"], 1))
        if twice.num_rows:
            value = ", ".join(str(twice[place][0].as_py()) for place in places)
            raise BadValue(self._opening.name, table.name, ", ".join(key), f"the key {value} is there more than once")

    @contextmanager
    def _telling(self, table: str, path: str) -> Iterator[None]:
        where = f" (file '{path}')" if path else ""
        try:
            yield
        except UnfitError as error:
            raise BadValue(self._opening.name, table, error.column, f"{error.reason}{where}") from None
        except UnreadableError as error:
            raise BadValue(self._opening.name, table, "*", f"{error}{where}") from None

    def _remember(self, position: str, memory: Mapping[str, Any]) -> Mapping[str, Any]:
        """What belongs to a position is known here, too, when it is read on from there."""
        self._memories = {**self._memories, position: memory}
        return memory

    def _remembered(self, number: int, readings: Mapping[str, _TableFiles]) -> dict[str, Any]:
        files = {remote: {path: list(facts) for path, facts in r.now.items()} for remote, r in readings.items()}
        kept = {key: value for key, value in self._memory.items() if key not in (_EMPTY, NEW_COLUMNS)}
        if self._by_name:
            tables = {remote: self._opening.settings.table(remote) for remote in readings}
            kept[NEW_COLUMNS] = {r: self._columns.own(tables[r], reading.now) for r, reading in readings.items()}
        return {**kept, "readings": number, "files": files, _FOLDERS: self._devices(readings)}

    def _noted(self, files: Mapping[str, _Files], in_doubt: Mapping[str, Any] | None) -> dict[str, Any]:
        """The memory of a reading that changes nothing. Many systems number their devices anew when they start, so what
        counts is the device that a folder had when its files were last seen."""
        known = self._memory.get(_FOLDERS, {})
        folders = {remote: {**known.get(remote, {}), **now} for remote, now in self._devices(files).items()}
        kept = {key: value for key, value in self._memory.items() if key != _EMPTY}
        return {**kept, _FOLDERS: folders, **({} if in_doubt is None else {_EMPTY: in_doubt})}

    def _devices(self, files: Mapping[str, _Files]) -> dict[str, dict[str, int]]:
        with self._inside.reading():
            return {
                remote: dict(devices(self._folder(self._opening.settings.table(remote)), one.now))
                for remote, one in files.items()
            }


def _of_table(table: SourceTable, files: _Files) -> _TableFiles:
    return _TableFiles(files.now, files.before, table)


def _newest(readings: Any) -> datetime:
    """When the last of the changed files was written."""
    times = [facts[1] for reading in readings for facts in reading.now.values()]
    return datetime.fromtimestamp(max(times) / 1e9, UTC) if times else datetime.now(UTC)


def _with_one_zero(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Keys are equal as GROUP BY means it, and Arrow tells 0.0 from -0.0."""
    return pc.add(values, pa.scalar(0, values.type)) if pa.types.is_floating(values.type) else values
