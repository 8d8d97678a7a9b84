"""What the files of a folder have as columns, and what its table has by that.

Law: what a file had when it was read is remembered with the position, so a column that files had all along, and that
was left out, is known to be no new one. A name that a user has said to be a column's new one means that column in every
file from the first file on that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rollview.core.schema import Schema
from rollview.errors import SchemaChanged
from rollview.sources.files.columns import ColumnRules, FileColumns, change_between
from rollview.sources.files.formats import present_names
from rollview.sources.files.listing import Listing
from rollview.sources.protocol import SAID, LayoutChange, words_of
from rollview.sources.settings import NEW_COLUMNS, TableSettings

_CALLED = "called"
"""In the memory, by tables: the present names of columns that files may have under former ones."""

SeenColumns = dict[tuple[str, str], tuple[Any, FileColumns]]
"""By table and path: what a file is known by, and its columns."""


@dataclass(frozen=True, slots=True)
class FolderColumns:
    """``memory``: of the position that is read from. ``takes``: whether new columns are taken. ``read``: the columns of
    a file; ``seen``: of those that were read before."""

    source: str
    memory: Mapping[str, Any]
    takes: bool
    read: Callable[[TableSettings, str], FileColumns]
    seen: SeenColumns

    def change(self, settings: TableSettings, known: Schema, before: Listing, now: Listing) -> LayoutChange | None:
        """What is another in the table by files that have come, changed and gone."""
        said = self._said(settings, known, now)
        if said is not None:
            return said
        present, there = self.present(settings, known, before, now), self._called_now(settings, now)
        old = {name for path in now if before.get(path) == now[path] for name in there[path]}
        change = change_between(self.source, settings.remote, known, present, old)
        if change is not None and not set(change.gone).isdisjoint(self.key(settings)):
            raise SchemaChanged(self.source, settings.remote, "its declared key is gone")
        return change

    def present(self, settings: TableSettings, base: Schema, before: Listing, now: Listing) -> Schema:
        called = self.called(settings)
        declared = {called.get(name, name): type_ for name, type_ in settings.types.items()}
        files = (self._called_now(settings, listing).values() for listing in (before, now))
        return ColumnRules(declared, self.takes).present(base, *files)

    def key(self, settings: TableSettings) -> tuple[str, ...]:
        return tuple(self.called(settings).get(name, name) for name in settings.key)

    def called(self, settings: TableSettings) -> Mapping[str, str]:
        """The present names of columns that files may have under former ones."""
        called: Mapping[str, str] = self.memory.get(_CALLED, {}).get(settings.remote, {})
        return called

    def own(self, settings: TableSettings, files: Listing) -> dict[str, FileColumns]:
        """By paths, as the files have them; what is known of a file from the last reading is not read again."""
        noted = self.memory.get(NEW_COLUMNS, {}).get(settings.remote, {})
        taken = self.memory.get("files", {}).get(settings.remote, {})
        found: dict[str, FileColumns] = {}
        for path, facts in files.items():
            if path in noted and tuple(taken.get(path, ())) == tuple(facts):
                found[path] = noted[path]
                continue
            key = (settings.remote, path)
            if key not in self.seen or self.seen[key][0] != facts:
                self.seen[key] = (facts, self.read(settings, path))
            found[path] = self.seen[key][1]
        return found

    def _called_now(self, settings: TableSettings, files: Listing) -> dict[str, FileColumns]:
        """By paths, under the present names of columns."""
        called, found = self.called(settings), self.own(settings, files)
        if not called:
            return found
        return {
            path: dict(zip(present_names(columns, called), columns.values(), strict=True))
            for path, columns in found.items()
        }

    def _said(self, settings: TableSettings, known: Schema, files: Listing) -> LayoutChange | None:
        """Whether files have a column under the new name that a user has said of it."""
        said: Mapping[str, str] = self.memory.get(SAID, {}).get(settings.remote, {})
        there = {name for columns in self.own(settings, files).values() for name in columns} if said else set()
        for old, new in said.items():
            if known.find(old) is not None and known.find(new) is None and new in there:
                reason = words_of((), {old: new}, {}, ())
                about = (self.source, settings.remote, reason)
                memory = self._with_name(settings, said, old, new)
                return LayoutChange(*about, renamed=((old, new),), with_rows=True, memory=memory)
        return None

    def _with_name(self, settings: TableSettings, said: Mapping[str, str], old: str, new: str) -> Mapping[str, Any]:
        called = {own: new if now == old else now for own, now in self.called(settings).items()} | {old: new}
        waiting = {key: value for key, value in said.items() if key != old}
        return {
            **self.memory,
            SAID: {**self.memory[SAID], settings.remote: waiting},
            _CALLED: {**self.memory.get(_CALLED, {}), settings.remote: called},
        }
