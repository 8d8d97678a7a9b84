"""Whether the chosen tables are still those that were recorded, and what of them is another.

Law: the log tells each row's layout, but not that a column was replaced by another of its name and type, nor that all
rows were computed anew. The catalog does: a column's number is never used again, and whoever rewrites a table describes
its column and gives the table another file. Where it cannot tell what rows are now, the source is copied again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollview.core.schema import Column
from rollview.errors import LostPosition, SchemaChanged
from rollview.sources.postgres.identity import Facts, Layout, Told, facts, learned, present_layout
from rollview.sources.postgres.layout import PgColumn, PgTable, split
from rollview.sources.postgres.values import spark_type, told_constant
from rollview.sources.protocol import LayoutChange, Opening, SourceTable, words_of
from rollview.sources.renamed import renamed_table
from rollview.sources.settings import TableSettings
from rollview.types.spelling import widens


def check_logged(source: str, remote: str, recorded: Facts, table: PgTable | None) -> None:
    """Refuse to wait for changes that will never come."""
    if table is None:
        raise SchemaChanged(source, remote, "it is gone")
    if table.oid != recorded["oid"]:
        raise LostPosition(source, f"table '{remote}' was made anew")
    if table.persistence != "p":
        raise LostPosition(source, f"table '{remote}' is not logged any more")


def numbers_of(known: SourceTable, recorded: Facts) -> Mapping[str, int]:
    """The number of each of our columns, by its name here."""
    own = recorded.get("numbers") or {name: column[2] for name, column in recorded["columns"].items()}
    return {name: own[name] for name in known.schema.names}


@dataclass(frozen=True, slots=True)
class TableComparison:
    """A captured table, and what its source's catalog says of it now."""

    opening: Opening
    remote: str
    recorded: Facts
    table: PgTable

    @property
    def known(self) -> SourceTable:
        return self.opening.known[self.remote]

    @property
    def settings(self) -> TableSettings:
        return self.opening.settings.table(self.remote)

    def change(self, layout: Layout, *, copied: bool = False) -> LayoutChange | None:
        """What rows of this layout are not as known. ``copied``: values and new columns are told by a copy."""
        told = {number: one for one in layout for number in one.numbers}
        numbers = numbers_of(self.known, self.recorded)
        doubts = [] if copied else [*self._doubts(layout, numbers), *self._unknown_values(layout, numbers)]
        if doubts:
            return self._change("; ".join(doubts), copy=True)
        gone, renamed, widened = [], {}, {}
        for column in self.known.schema:
            now = told.get(numbers[column.name])
            if now is None or not self._is_kept(column, now):
                gone.append(column.name)
                continue
            if now.name != column.name:
                renamed[column.name] = now.name
            type_ = self._type(column.name, now, {})
            if type_ is not None and type_ != column.type:
                widened[column.name] = type_
        added = () if copied else tuple(self._added(self._new(layout, numbers)))
        if not gone and not renamed and not widened and not added:
            return None
        change = self._change(words_of(gone, renamed, widened, added))
        parts = {"gone": tuple(gone), "renamed": tuple(renamed.items()), "widened": tuple(widened.items())}
        return replace(change, **parts, added=added)  # type: ignore[arg-type]

    def renamed_table(self) -> LayoutChange | None:
        """If it has another name now; all else is as known."""
        schema, name = self.table.schema, self.table.name
        if (schema, name) == split(self.remote):
            return None
        called = name if schema == "public" and "." not in self.remote else f"{schema}.{name}"
        return replace(self._change(words_of((), {}, {}, (), called)), called=called)

    def unsure(self) -> LayoutChange | None:
        """Columns of which less is promised than before."""
        numbers = numbers_of(self.known, self.recorded)
        names = {column.number: column for column in self.table.columns}
        promised = self.known.constraints
        key = tuple(names[n].name if (n := numbers[name]) in names else "" for name in promised.primary_key)
        lost = promised.primary_key if key != self.table.key[: len(key)] or len(key) != len(self.table.key) else ()
        nullable = (
            name for name in promised.not_null if numbers[name] not in names or not names[numbers[name]].not_null
        )
        unsure = tuple(dict.fromkeys((*lost, *nullable)))
        return replace(self._change("its key or NOT NULL is gone"), unsure=unsure) if unsure else None

    def memory(self, layout: Layout | None, change: LayoutChange) -> dict[str, Any]:
        """What is remembered of the table once the change is followed. ``layout``: None: that of the catalog."""
        called = dict(change.renamed)
        numbers = {
            called.get(n, n): k for n, k in numbers_of(self.known, self.recorded).items() if n not in change.gone
        }
        told = present_layout(self.table) if layout is None else layout
        numbers |= {
            one.name: one.number for one in told if one.number and any(one.name == c.name for c in change.added)
        }
        base = facts(self.table) if layout is None else learned(self.recorded, layout)
        return {**base, "numbers": numbers}

    def renamed_memory(self, change: LayoutChange) -> dict[str, Any]:
        """What is remembered where only our names of columns change, and the position is the same."""
        called, numbers = dict(change.renamed), numbers_of(self.known, self.recorded)
        return {**self.recorded, "numbers": {called.get(n, n): k for n, k in numbers.items() if n not in change.gone}}

    def _change(self, reason: str, *, copy: bool = False) -> LayoutChange:
        return LayoutChange(self.opening.name, self.remote, reason, copy=copy)

    @property
    def _is_rewritten(self) -> bool:
        return bool(self.table.file != self.recorded["file"])

    def _column(self, number: int | None) -> PgColumn | None:
        return next((column for column in self.table.columns if column.number == number), None)

    def _doubts(self, layout: Layout, numbers: Mapping[str, int]) -> Iterable[str]:
        """Why it is not known what one of our columns is in the layout, or whether it holds what it held."""
        versions = {column[2]: column[3] for column in self.recorded["columns"].values()}
        if any(not one.numbers for one in layout):
            yield "the log announces columns that its catalog does not explain"
        told = {number: one for one in layout for number in one.numbers}
        for name, number in numbers.items():
            now = self._column(number)
            if number in told and told[number].number is None:
                yield f"the log does not tell which column is '{name}' now"
            elif self._is_rewritten and now is not None and now.version != versions.get(number):
                yield f"column '{name}' was written anew"

    def _unknown_values(self, layout: Layout, numbers: Mapping[str, int]) -> Iterable[str]:
        """Why it is not known what older rows have in a new column."""
        for one, type_ in self._new(layout, numbers):
            present = [now for number in one.numbers if (now := self._column(number)) is not None]
            # Of one that is gone by now nobody can tell what it was, and nobody has to.
            if present and (one.number is None or self._is_rewritten or not _has_constant(present[0], type_)):
                yield f"the log does not tell what older rows have in the new column '{one.name}'"

    def _new(self, layout: Layout, numbers: Mapping[str, int]) -> list[tuple[Told, str]]:
        """Columns that were not there before, with their types, if such are captured."""
        if not self.settings.takes_new:
            return []
        before = {column[2] for column in self.recorded["columns"].values()} | set(numbers.values())
        new = (one for one in layout if not one.numbers <= before)
        called = self._called(layout, numbers)
        return [(one, type_) for one in new if (type_ := self._type(one.name, one, called)) is not None]

    def _called(self, layout: Layout, numbers: Mapping[str, int]) -> dict[str, str]:
        """New names of our columns that are kept."""
        told = {one.number: one for one in layout}
        pairs = [(column, told.get(numbers[column.name])) for column in self.known.schema]
        return {c.name: now.name for c, now in pairs if now and now.name != c.name and self._is_kept(c, now)}

    def _added(self, new: Iterable[tuple[Told, str]]) -> Iterable[Column]:
        for one, type_ in new:
            now = self._column(one.number)
            if now is not None:
                fill = None if now.missing is None else told_constant(now.missing, type_)
                yield Column(one.name, type_, fill=fill)

    def _is_kept(self, column: Column, now: Told) -> bool:
        if now.name != column.name and not self.settings.follows_names:
            return False
        type_ = self._type(column.name, now, {})
        return type_ is not None and (type_ == column.type or widens(column.type, type_))

    def _type(self, name: str, told: Told, called: Mapping[str, str]) -> str | None:
        """The Spark type of a column in the layout; one that was declared stays while the server's own does.
        ``called``: new names of columns, if ``name`` is one beside those."""
        declared = renamed_table(self.settings, called).types.get(name)
        if declared is not None:
            recorded = {called.get(own, own): about for own, about in self.recorded["columns"].items()}.get(name)
            return declared if recorded is None or recorded[0] == told.type_oid else None
        now = self._column(told.number)
        about = (now.category, now.base) if now is not None and now.type_oid == told.type_oid else ("b", None)
        return spark_type(told.type_oid, told.modifier, *about)


def _has_constant(now: PgColumn, type_: str) -> bool:
    return now.missing is None or told_constant(now.missing, type_) is not None
