"""The definitions that views have had, each from a csn on.

Law: of a view's versions the one with the greatest csn that is not above t holds at csn t; the first holds below its
own csn too. A version is ``pending`` until the view has rows of it; until then the view has rows below its csn only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from rollview.catalog import tables as t
from rollview.catalog.texts import as_text, definition_in, schema_in
from rollview.catalog.values import Definition, DefinitionVersion, Part, Pin, Relation, StoredParts
from rollview.core.interval import Csn, Interval
from rollview.core.schema import Schema

TABLES = "tables"
"""The fact of a definition that names tables which are called otherwise by now: folded names in its text, and those of
now."""

_SEVERAL = sa.select(t.definition.c.relation_id).group_by(t.definition.c.relation_id).having(sa.func.count() > 1)
_OF_SEVERAL = (
    sa.select(*as_text(t.definition))
    .where(t.definition.c.relation_id.in_(_SEVERAL))
    .order_by(t.definition.c.relation_id, t.definition.c.csn)
)


def read_versions(connection: sa.Connection, names: Mapping[int, str]) -> Mapping[int, tuple[DefinitionVersion, ...]]:
    """The versions of views that have several, by the view's id. ``names``: of the relations, by id."""
    found: dict[int, list[DefinitionVersion]] = defaultdict(list)
    for row in connection.execute(_OF_SEVERAL):
        found[row.relation_id].append(_version(row, names))
    return {relation_id: tuple(versions) for relation_id, versions in found.items()}


def read_log(connection: sa.Connection, view: Relation, names: Mapping[int, str]) -> tuple[DefinitionVersion, ...]:
    """All versions of one view, the oldest first."""
    query = sa.select(*as_text(t.definition)).where(t.definition.c.relation_id == view.id).order_by(t.definition.c.csn)
    return tuple(_version(row, names) for row in connection.execute(query))


class DefinitionWriter:
    def __init__(self, connection: sa.Connection, now: Callable[[], datetime]) -> None:
        self._connection = connection
        self._now = now

    def put(
        self,
        relation_id: int,
        csn: Csn,
        definition: Definition,
        schema: Schema,
        reads: Sequence[int],
        why: str,
        *,
        anew: bool = False,
        pending: bool = False,
    ) -> None:
        """A version from a csn on, in the place of one that began there. ``anew``: its rows are not those of before."""
        self._connection.execute(t.definition.delete().where(*self._one(relation_id, csn)))
        told = {"definition": asdict(definition), "columns": schema.to_json(), "reads": list(reads), "why": why}
        about = {"relation_id": relation_id, "csn": csn, "recorded": self._now(), "anew": anew, "pending": pending}
        self._connection.execute(t.definition.insert().values(**told, **about))

    def change(self, relation_id: int, definition: Definition, schema: Schema) -> None:
        """What the newest version with rows says, where no row of the view changes by it."""
        newest = sa.select(sa.func.max(t.definition.c.csn)).where(
            t.definition.c.relation_id == relation_id, t.definition.c.pending.is_(False)
        )
        csn = self._connection.execute(newest).scalar()
        if csn is not None:
            values = {"definition": asdict(definition), "columns": schema.to_json()}
            self._connection.execute(t.definition.update().where(*self._one(relation_id, csn)).values(**values))

    def call_otherwise(self, table_id: int, old: str, new: str) -> None:
        """A table has another name: definitions that read it know it by the one that their texts have."""
        for row in self._connection.execute(sa.select(t.definition)).all():
            if table_id in row.reads:
                one = self._one(row.relation_id, row.csn)
                self._connection.execute(
                    t.definition.update().where(*one).values(definition=_called(row.definition, old, new))
                )
        readers = sa.select(t.dependency.c.relation_id).where(t.dependency.c.reads_id == table_id)
        query = sa.select(t.relation.c.id, t.relation.c.definition).where(t.relation.c.id.in_(readers))
        for row in self._connection.execute(query).all():
            change = t.relation.update().where(t.relation.c.id == row.id)
            self._connection.execute(change.values(definition=_called(row.definition, old, new)))

    def take(self, relation_id: int, csn: Csn, before: StoredParts) -> None:
        """The version of that csn, and later ones of the same rows, are no longer pending; the parts of those before
        are ``before``."""
        of_view = t.definition.c.relation_id == relation_id
        older = of_view & (t.definition.c.csn < csn) & t.definition.c.stored.is_(None)
        self._connection.execute(t.definition.update().where(older).values(stored=stored_json(before)))
        next_anew = sa.select(sa.func.min(t.definition.c.csn)).where(
            of_view, t.definition.c.csn > csn, t.definition.c.anew.is_(True)
        )
        end = self._connection.execute(next_anew).scalar()
        taken = of_view & (t.definition.c.csn >= csn)
        if end is not None:
            taken &= t.definition.c.csn < end
        self._connection.execute(t.definition.update().where(taken).values(pending=False))

    def show(self, relation_id: int, folder: str | None, pins: Sequence[Pin] = ()) -> None:
        """Readers find the view in the parts of an earlier definition that are in a folder, by these pins of them.
        None: where its present ones are."""
        of_view = (t.definition.c.relation_id == relation_id) & t.definition.c.stored.is_not(None)
        for row in self._connection.execute(sa.select(t.definition.c.csn, t.definition.c.stored).where(of_view)).all():
            parts = replace(_stored(row.stored), is_shown=row.stored["folder"] == folder)
            if parts.is_shown:
                parts = replace(parts, pins={**parts.pins, **{pin.part: pin for pin in pins}})
            update = t.definition.update().where(*self._one(relation_id, row.csn))
            self._connection.execute(update.values(stored=stored_json(parts)))

    def withdraw(self, relation_id: int) -> None:
        """Versions of which the view has no rows."""
        condition = (t.definition.c.relation_id == relation_id) & t.definition.c.pending.is_(True)
        self._connection.execute(t.definition.delete().where(condition))

    def forget(self, relation_id: int, before: Csn | None = None) -> None:
        """All versions of a view, or those that begin before a csn."""
        condition = t.definition.c.relation_id == relation_id
        if before is not None:
            condition &= t.definition.c.csn < before
        self._connection.execute(t.definition.delete().where(condition))

    @staticmethod
    def _one(relation_id: int, csn: Csn) -> tuple[sa.ColumnElement[bool], ...]:
        return t.definition.c.relation_id == relation_id, t.definition.c.csn == csn


def _called(definition: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    known: dict[str, str] = definition["facts"].get(TABLES, {})
    written = next((name for name, present in known.items() if present == old), old.lower())
    return {**definition, "facts": {**definition["facts"], TABLES: {**known, written: new}}}


def _version(row: sa.Row[Any], names: Mapping[int, str]) -> DefinitionVersion:
    return DefinitionVersion(
        csn=row.csn,
        definition=definition_in(row.definition),
        schema=schema_in(row.columns),
        depends_on=tuple(names[read] for read in row.reads if read in names),
        why=row.why,
        recorded=row.recorded,
        anew=row.anew,
        pending=row.pending,
        stored=None if row.stored is None else _stored(row.stored),
    )


def _stored(data: dict[str, Any]) -> StoredParts:
    pins = {Part(part): Pin(Part(part), *numbers) for part, *numbers in data["pins"]}
    coarse = tuple(Interval(*stretch) for stretch in data["coarse"])
    return StoredParts(data["folder"], pins, coarse, data.get("shown", False))


def stored_json(parts: StoredParts) -> dict[str, Any]:
    pins = [[pin.part.value, pin.version, pin.after, pin.through, pin.rows] for pin in parts.pins.values()]
    coarse = [[one.after, one.through] for one in parts.coarse]
    return {"folder": parts.folder, "pins": pins, "coarse": coarse, "shown": parts.is_shown}
