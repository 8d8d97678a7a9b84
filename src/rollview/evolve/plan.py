"""What a change of a table's layout at its source means here.

Law: a captured table keeps the columns that mean the same before and after; a projection of a timed relation is timed,
so without the others it is right at every csn. Views that name one of the others are stopped where they are, with the
views that read those; all others go on. Nothing that came after the change is read by the layout before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from rollview.algebra.text import parse_one
from rollview.catalog import Relation, Snapshot, SourceRecord
from rollview.core.interval import Csn
from rollview.core.names import fault_in_name, free_place, same
from rollview.core.schema import Column, Constraints, Schema
from rollview.core.states import OnSchemaChange, ViewState
from rollview.evolve.views import on_schema_change, places_used
from rollview.sources.protocol import LayoutChange, SourceTable
from rollview.sources.renamed import renamed_settings
from rollview.sources.settings import SourceSettings
from rollview.types.spelling import widens


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """The layout that a table has here from csn ``at`` on, for what its source did after ``position``.

    ``lost`` and ``new``: columns that it had, and has now; ``wider``: columns of another type. ``stopped``: views that
    cannot go on. ``copy``: what rows are now is told by another copy of the source.
    """

    relation: str
    schema: Schema
    constraints: Constraints
    position: str
    at: Csn
    reason: str
    lost: tuple[str, ...] = ()
    new: tuple[Column, ...] = ()
    wider: tuple[Column, ...] = ()
    stopped: tuple[str, ...] = ()
    copy: bool = False
    waits: str = ""
    """Why nobody can tell any more which of its rows are captured, if so."""

    def __str__(self) -> str:
        left = f"; left out here: {', '.join(self.lost)}" if self.lost else ""
        left += "; the source is copied again" if self.copy else ""
        left += f"; it waits: {self.waits}" if self.waits else ""
        views = f"; stopped: {', '.join(self.stopped)}" if self.stopped else "; no view is affected"
        return f"table '{self.relation}': {self.reason}{left}{views}"


def plan_change(snapshot: Snapshot, record: SourceRecord, change: LayoutChange) -> LayoutPlan | None:
    """None if the table cannot be read without what is gone, or if nothing of it would change here."""
    relation = snapshot.get(relation_of(record, change.table))
    is_followed = change.keeps_all or change.copy or change.replaced
    change = _nameable(relation, change)
    gone = tuple(c.name for c in relation.schema if any(same(c.name, other) for other in change.gone))
    called, wider = dict(change.renamed), dict(change.widened)
    kept = tuple(_now(column, called, wider) for column in relation.schema if column.name not in gone)
    new = _placed(relation, change.added)
    schema = Schema((*kept, *new))
    # Keys are compared as values of their type.
    constraints = _kept(relation.constraints, (*gone, *change.unsure, *wider)).renamed(called)
    if not len(schema):
        return None
    if not is_followed and schema == relation.schema and constraints == relation.constraints:
        return None
    about = (record.position or "", snapshot.moment.csn + 1, change.reason, gone, new)
    widened = tuple(c for c in kept if any(c.stored == old.stored and c.type != old.type for old in relation.schema))
    stopped = stopped_by(snapshot, relation, (*gone, *wider), called)
    waits = _why_it_waits(snapshot, record, change, gone)
    copy = change.copy or _can_be_told(record, relation, change.table, schema, called)
    return LayoutPlan(relation.name, schema, constraints, *about, widened, stopped, copy, waits)


def _why_it_waits(snapshot: Snapshot, record: SourceRecord, change: LayoutChange, gone: Iterable[str]) -> str:
    """Empty if it does not."""
    remote = change.table
    began = snapshot.get(relation_of(record, remote)).waits_at
    what, at = f"Table '{remote}' of source '{record.name}'", snapshot.moment.csn if began is None else began
    lost = [name for name in gone if restricts_by(record, remote, (name,))]
    if change.replaced and change.copy:
        return f"{what} is another since csn {at}: {change.reason}. It waits there until it is copied: rollview capture"
    if change.replaced:
        return f"{what} is gone. It waits at csn {at} until there is one of its name, and is captured then."
    if not lost:
        return ""
    return (
        f"{what} has lost column '{lost[0]}', by which its rows are chosen: "
        f"{SourceSettings.from_json(record.settings).table(remote).rows}. It waits at csn {at}. Say other rows in "
        f"rollview.yaml, or bring the column back there; then run: rollview source resnapshot {record.name} --widen"
    )


def _can_be_told(
    record: SourceRecord, relation: Relation, remote: str, schema: Schema, called: Mapping[str, str]
) -> bool:
    """Whether a table that waits has all columns again by which its rows are chosen: then a copy tells them."""
    named = named_in_rows(renamed_settings(SourceSettings.from_json(record.settings), remote, called), remote)
    return relation.waits_at is not None and all(schema.find(name) is not None for name in named)


def _nameable(relation: Relation, change: LayoutChange) -> LayoutChange:
    """Without new names that no column can have here: those of rollview's own, and two that differ by case alone."""
    called = dict(change.renamed)
    taken = [called.get(c.name, c.name) for c in relation.schema if c.name not in change.gone]

    def can_be(name: str, times: int) -> bool:
        return fault_in_name(name) is None and sum(same(name, other) for other in taken) <= times

    lost = tuple(old for old, new in change.renamed if not can_be(new, 1))
    renamed = tuple((old, new) for old, new in change.renamed if old not in lost)
    added = tuple(column for column in change.added if can_be(column.name, 0))
    return replace(change, gone=(*change.gone, *lost), renamed=renamed, added=added)


def _now(column: Column, called: Mapping[str, str], wider: Mapping[str, str]) -> Column:
    """It keeps its name in files, and files may be older than its type."""
    if column.name not in wider and column.name not in called:
        return column
    name, type_ = called.get(column.name, column.name), wider.get(column.name, column.type)
    return replace(column, name=name, type=type_, place=column.stored, late=column.late or column.name in wider)


def _placed(relation: Relation, columns: Iterable[Column]) -> tuple[Column, ...]:
    """New columns, each under a name in files that no column of the table has had."""
    taken = {column.stored for layout in relation.layouts for column in layout.schema}
    taken |= {column.stored for column in relation.schema}
    placed: list[Column] = []
    for column in columns:
        place = free_place(column.name, (*taken, *(one.stored for one in placed)))
        placed.append(replace(column, place=place, late=True))
    return tuple(placed)


def plan_widening(snapshot: Snapshot, name: str, table: SourceTable, position: str) -> LayoutPlan | None:
    """Columns that the source has and we do not are here from the next csn on, NULL in all that came before.

    Views that exist do not see them. A name that was here before is another column.
    """
    relation = snapshot.get(name)
    new = _placed(relation, (column for column in table.schema if relation.schema.find(column.name) is None))
    if not new:
        return None
    schema = Schema((*relation.schema.columns, *new))
    about = (position, snapshot.moment.csn + 1, f"taken as well: {', '.join(column.name for column in new)}")
    return LayoutPlan(relation.name, schema, relation.constraints, *about, new=new)


def change_from(record: SourceRecord, relation: Relation, table: SourceTable) -> LayoutChange | None:
    """What is another in the table that was copied again, where columns are known by their names."""
    found = [(column, table.schema.find(column.name)) for column in relation.schema]
    kept = {c.name: other.type for c, other in found if other is not None and other.name == c.name}
    other = [c for c in relation.schema if kept.get(c.name, c.type) != c.type]
    widened = tuple((c.name, kept[c.name]) for c in other if widens(c.type, kept[c.name]))
    grown = dict(widened)
    gone = tuple(c.name for c in relation.schema if kept.get(c.name) != c.type and c.name not in grown)
    unsure = _unkept(relation.constraints, table.constraints)
    if not gone and not unsure and not widened:
        return None
    told = [f"{name} is {type_} now" for name, type_ in widened]
    told += [f"columns that are gone or promise less: {', '.join((*gone, *unsure))}"] if gone or unsure else []
    about = (record.name, table.name, "; ".join(told), gone, unsure)
    return LayoutChange(*about, widened=widened, with_rows=True)


def relation_of(record: SourceRecord, remote: str) -> str:
    return next(table.relation for table in record.tables if table.remote == remote)


def restricts_by(record: SourceRecord, remote: str, gone: Iterable[str]) -> bool:
    """Whether nobody can tell any more which rows are captured."""
    named = named_in_rows(SourceSettings.from_json(record.settings), remote)
    return any(name.lower() in named for name in gone)


def named_in_rows(settings: SourceSettings, remote: str) -> frozenset[str]:
    """The columns by which rows of a table are chosen, in lower case."""
    rows = settings.table(remote).rows
    return frozenset(column.name.lower() for column in parse_one(rows).find_all(exp.Column)) if rows else frozenset()


def stopped_by(
    snapshot: Snapshot, relation: Relation, gone: Iterable[str], renamed: Iterable[str] = ()
) -> tuple[str, ...]:
    """The views that name one of the columns, and the views above those; of names only views that do not follow."""
    lost, called = (_places(relation, names) for names in (gone, renamed))
    naming = [
        view
        for view in snapshot.readers(relation.name)
        if (used := places_used(snapshot, view, relation)) & lost
        or (used & called and on_schema_change(view) is not OnSchemaChange.FOLLOW)
    ]
    stopped = [*naming, *(upper for view in naming for upper in snapshot.above(view.name))]
    return tuple(sorted({view.name for view in stopped if view.state is not ViewState.SCHEMA_CHANGED}))


def _places(relation: Relation, names: Iterable[str]) -> set[str]:
    wanted = set(names)
    return {column.stored for column in relation.schema if column.name in wanted}


def _unkept(promised: Constraints, now: Constraints) -> tuple[str, ...]:
    """Columns of which less is promised than before."""
    key = promised.primary_key if promised.primary_key != now.primary_key else ()
    return (*key, *(name for name in promised.not_null if name not in now.not_null))


def _kept(constraints: Constraints, unsure: tuple[str, ...]) -> Constraints:
    """What is still promised of the columns that are left."""

    def is_sure(columns: Iterable[str]) -> bool:
        return not any(same(column, other) for column in columns for other in unsure)

    return Constraints(
        constraints.primary_key if is_sure(constraints.primary_key) else (),
        tuple(key for key in constraints.unique if is_sure(key)),
        tuple(column for column in constraints.not_null if is_sure((column,))),
        tuple(key for key in constraints.foreign_keys if is_sure(key.columns)),
    )
