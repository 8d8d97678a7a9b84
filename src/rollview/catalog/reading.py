"""Rows of the catalog as values. Every function takes an open transaction and asks as few queries as it can."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import starmap
from typing import Any

import sqlalchemy as sa

from rollview.catalog import tables as t
from rollview.catalog.clock import LastSeen, Uptime
from rollview.catalog.definitions import read_versions
from rollview.catalog.schemas import read_reasons
from rollview.catalog.texts import as_text, constraints_in, definition_in, schema_in
from rollview.catalog.values import (
    ChangeCount,
    DefinitionVersion,
    Identity,
    Layout,
    LedgerEntry,
    Moment,
    Part,
    Pin,
    PlaceInDelta,
    Relation,
    RelationKind,
    Snapshot,
    Step,
    UnitPart,
    folded,
)
from rollview.core.interval import Csn, Interval
from rollview.core.states import ViewState, one_of

REFRESHING = ("propagate", "apply", "recompute")

_RELATIONS: sa.Select[Any] = (
    sa.select(*as_text(t.relation), t.source.c.name.label("source"))
    .outerjoin(t.source_table, t.source_table.c.relation_id == t.relation.c.id)
    .outerjoin(t.source, t.source.c.id == t.source_table.c.source_id)
    .where(t.relation.c.folded.is_not(None))
    .order_by(t.relation.c.id)
)
_PINS = sa.select(t.pin)
_LAYOUTS = sa.select(*as_text(t.layout)).order_by(t.layout.c.id)
_OWN_PLACE = (t.place.c.relation_id == t.dependency.c.relation_id) & (t.place.c.reads_id == t.dependency.c.reads_id)
_DEPENDENCIES = (
    sa.select(t.dependency, t.place.c.csn, t.place.c.moved, t.place.c.queries)
    .outerjoin(t.place, _OWN_PLACE)
    .order_by(t.dependency.c.relation_id, t.dependency.c.place)
)
_CLOCK = sa.select(t.clock.c.csn, t.clock.c.time)
_IDENTITY = sa.select(t.identity)
_COUNTED = (t.relation.c.name, t.change.c.csn, t.change.c.inserted, t.change.c.deleted, t.change.c.updated)
_CHANGES = sa.select(*_COUNTED).join(t.relation).order_by(t.change.c.csn, t.relation.c.id)

_PARTS = sa.select(t.part).order_by(t.part.c.csn, t.part.c.place)


def read_moment(connection: sa.Connection, *, lock: bool = False) -> Moment:
    row = connection.execute(_CLOCK.with_for_update() if lock else _CLOCK).one()
    return Moment(row.csn, row.time)


def read_last_seen(connection: sa.Connection) -> LastSeen:
    row = connection.execute(sa.select(t.clock)).one()
    uptime = None if row.boot is None else Uptime(row.boot, row.uptime)
    return LastSeen(row.time, row.wall, uptime, row.accepted)


def read_identity(connection: sa.Connection) -> Identity:
    row = connection.execute(_IDENTITY).one()
    return Identity(row.warehouse, row.previous, row.begun)


def read_snapshot(connection: sa.Connection) -> Snapshot:
    moment = read_moment(connection)
    rows = connection.execute(_RELATIONS).all()
    names = {row.id: row.name for row in rows}
    pins, layouts = _pins(connection), _layouts(connection)
    reads, places = _reads(connection, names)
    versions = read_versions(connection, names)
    relations = (
        _relation(
            row,
            pins[row.id],
            tuple(names[i] for i in reads[row.id]),
            tuple(layouts[row.id]),
            versions.get(row.id, ()),
            places.get(row.id, {}),
        )
        for row in rows
    )
    return Snapshot(moment, {relation.name: relation for relation in relations})


def read_row_counts(connection: sa.Connection) -> tuple[int, int, int]:
    """How many rows there are of the ledger, of changes and of steps."""
    counts = (sa.select(sa.func.count()).select_from(table).scalar_subquery() for table in (t.ledger, t.change, t.step))
    ledger, changes, steps = connection.execute(sa.select(*counts)).one()
    return ledger, changes, steps


def read_ledger(connection: sa.Connection, interval: Interval | None, limit: int | None) -> tuple[LedgerEntry, ...]:
    query = sa.select(t.ledger).order_by(t.ledger.c.csn.desc()).limit(limit)
    if interval is not None:
        query = query.where(t.ledger.c.csn > interval.after, t.ledger.c.csn <= interval.through)
    rows = connection.execute(query).all()[::-1]
    if not rows:
        return ()
    changes = defaultdict(list)
    for count in _counts(connection, _CHANGES.where(t.change.c.csn.between(rows[0].csn, rows[-1].csn))):
        changes[count.csn].append(count)
    parts = _parts(connection, rows[0].csn, rows[-1].csn)
    schema = read_reasons(connection, rows[0].csn, rows[-1].csn)
    return tuple(
        LedgerEntry(
            **row._mapping,
            changes=tuple(changes[row.csn]),
            parts=tuple(parts[row.csn]),
            schema=schema.get(row.csn, ()),
        )
        for row in rows
    )


def read_parts(
    connection: sa.Connection, source: str, interval: Interval, limit: int | None
) -> tuple[tuple[Csn, UnitPart], ...]:
    """The units of work of one source, the newest first, and those of global transactions that it has parts of."""

    def of(table: sa.Table) -> sa.Select[Any]:
        columns = (table.c.csn, table.c.source, table.c.position, table.c.transaction, table.c.source_time)
        inside = (table.c.csn > interval.after) & (table.c.csn <= interval.through)
        return sa.select(*columns).where(table.c.source == source, inside).order_by(table.c.csn.desc()).limit(limit)

    rows = [row for table in (t.ledger, t.part) for row in connection.execute(of(table))]
    newest = sorted(rows, key=lambda row: -row.csn)[:limit]
    return tuple((row.csn, UnitPart(*row[1:])) for row in newest)


def read_commit_times(connection: sa.Connection, interval: Interval) -> Mapping[Csn, datetime]:
    inside = (t.ledger.c.csn > interval.after) & (t.ledger.c.csn <= interval.through)
    query = sa.select(t.ledger.c.csn, t.ledger.c.effective).where(inside)
    return {row.csn: row.effective for row in connection.execute(query)}


def read_changes(connection: sa.Connection, relation: str, interval: Interval) -> tuple[ChangeCount, ...]:
    own = sa.select(t.relation.c.id).where(t.relation.c.folded == folded(relation))
    of_relation = _CHANGES.where(t.change.c.relation_id == own.scalar_subquery())
    inside = of_relation.where(t.change.c.csn > interval.after, t.change.c.csn <= interval.through)
    counts = _counts(connection, inside)
    if not counts and connection.execute(own).scalar() is None:
        # Says which names are close.
        read_snapshot(connection).get(relation)
    return counts


def read_oldest_change(connection: sa.Connection, relations: Iterable[str], interval: Interval) -> datetime | None:
    # Times of the ledger grow with the csns, so the first change is the oldest: one look into the index for each
    # relation. The daemon asks for each view several times a second, however far it is behind.
    inside = t.change.c.csn.between(interval.after + 1, interval.through)
    own = sa.select(sa.func.min(t.change.c.csn)).where(t.change.c.relation_id == t.relation.c.id, inside)
    named = t.relation.c.folded.in_([folded(name) for name in relations])
    first = sa.select(sa.func.min(own.correlate(t.relation).scalar_subquery())).where(named)
    query = sa.select(t.ledger.c.ledger_time).where(t.ledger.c.csn == first.scalar_subquery())
    return connection.execute(query).scalar()


def read_steps(
    connection: sa.Connection, relation: str | None, limit: int | None, status: str | None
) -> tuple[Step, ...]:
    query = sa.select(t.step).order_by(t.step.c.id.desc()).limit(limit)
    if relation is not None:
        query = query.where(t.step.c.folded == folded(relation))
    if status is not None:
        query = query.where(t.step.c.status == status)
    return tuple(_step(row) for row in connection.execute(query))


def read_last_steps(connection: sa.Connection) -> Mapping[str, Step]:
    """The newest finished refresh step of each living relation."""
    newest = (
        sa.select(sa.func.max(t.step.c.id))
        .join(t.relation, t.step.c.relation_id == t.relation.c.id)
        .where(t.relation.c.folded.is_not(None), t.step.c.status == "done", t.step.c.kind.in_(REFRESHING))
        .group_by(t.step.c.relation_id)
    )
    query = sa.select(t.step, t.relation.c.name).join(t.relation, t.step.c.relation_id == t.relation.c.id)
    return {row.name: _step(row) for row in connection.execute(query.where(t.step.c.id.in_(newest)))}


def read_last_step(connection: sa.Connection, relation: str, kind: str) -> Step | None:
    """The newest finished step of a kind."""
    of_kind = sa.select(t.step).where(t.step.c.folded == folded(relation), t.step.c.kind == kind)
    query = of_kind.where(t.step.c.status == "done").order_by(t.step.c.id.desc()).limit(1)
    return next((_step(row) for row in connection.execute(query)), None)


def read_settled(connection: sa.Connection, relation: str) -> datetime | None:
    """When a step of the relation last ended."""
    ended = sa.select(sa.func.max(t.step.c.finished)).where(t.step.c.folded == folded(relation))
    return connection.execute(ended).scalar()


def read_dropped(connection: sa.Connection) -> Mapping[str, datetime]:
    """When relations were dropped, by their folders."""
    query = sa.select(t.step.c.folders, t.step.c.finished).where(t.step.c.kind == "drop", t.step.c.status == "done")
    return {folder: row.finished for row in connection.execute(query) for folder in row.folders}


def _parts(connection: sa.Connection, first: Csn, last: Csn) -> Mapping[Csn, list[UnitPart]]:
    parts: dict[Csn, list[UnitPart]] = defaultdict(list)
    for row in connection.execute(_PARTS.where(t.part.c.csn.between(first, last))):
        parts[row.csn].append(UnitPart(row.source, row.position, row.transaction, row.source_time))
    return parts


def _pins(connection: sa.Connection) -> Mapping[int, dict[Part, Pin]]:
    pins: dict[int, dict[Part, Pin]] = defaultdict(dict)
    for row in connection.execute(_PINS):
        part = one_of(Part, row.part, "a part of a table or view")
        pins[row.relation_id][part] = Pin(part, row.version, row.after, row.through, row.rows)
    return pins


def _reads(
    connection: sa.Connection, names: Mapping[int, str]
) -> tuple[Mapping[int, list[int]], Mapping[int, dict[str, PlaceInDelta]]]:
    """What each relation reads, and the places of those that have one."""
    reads: dict[int, list[int]] = defaultdict(list)
    places: dict[int, dict[str, PlaceInDelta]] = defaultdict(dict)
    for row in connection.execute(_DEPENDENCIES):
        reads[row.relation_id].append(row.reads_id)
        if row.csn is not None:
            places[row.relation_id][names[row.reads_id]] = PlaceInDelta(row.csn, row.moved, row.queries)
    return reads, places


def _layouts(connection: sa.Connection) -> Mapping[int, list[Layout]]:
    layouts: dict[int, list[Layout]] = defaultdict(list)
    for row in connection.execute(_LAYOUTS):
        layouts[row.relation_id].append(Layout(row.csn, row.position, schema_in(row.columns), row.reason))
    return layouts


def _counts(connection: sa.Connection, query: sa.Select[Any]) -> tuple[ChangeCount, ...]:
    # As many as there are commits: a row's columns by their places, not by their names.
    return tuple(starmap(ChangeCount, connection.execute(query)))


def _relation(
    row: sa.Row[Any],
    pins: Mapping[Part, Pin],
    reads: tuple[str, ...],
    layouts: tuple[Layout, ...],
    versions: tuple[DefinitionVersion, ...],
    places: Mapping[str, PlaceInDelta],
) -> Relation:
    return Relation(
        id=row.id,
        name=row.name,
        kind=one_of(RelationKind, row.kind, f"the kind of '{row.name}'"),
        schema=schema_in(row.columns),
        constraints=constraints_in(row.constraints),
        definition=None if row.definition is None else definition_in(row.definition),
        depends_on=reads,
        folder=row.folder,
        created=row.created,
        pins=pins,
        coarse=tuple(Interval(after, through) for after, through in row.coarse),
        problem=row.problem,
        source=row.source,
        state=None if row.state is None else one_of(ViewState, row.state, f"the state of view '{row.name}'"),
        layouts=layouts,
        replaced=tuple(row.replaced or ()),
        versions=versions,
        until=next((version.csn for version in versions if version.pending), None),
        places=places,
    )


def _step(row: sa.Row[Any]) -> Step:
    return Step(
        id=row.id,
        relation=row.relation,
        kind=row.kind,
        interval=Interval(row.after, row.through),
        status=row.status,
        started=row.started,
        finished=row.finished,
        owner=row.owner,
        folders=tuple(row.folders),
        profile=row.profile,
        tokens=row.tokens or {},
        expires=row.expires,
    )
