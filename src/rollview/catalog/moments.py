"""Moments and the ledger.

Law: a moment means that moment at every source. The units of work up to its csn are exactly those that count as
committed by then, or there is an error: one source is not known to have passed it, or the order in which the units
came has no csn that is exactly that moment. What is changed here by SQL counts when it gets its csn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

import sqlalchemy as sa

from rollview import errors
from rollview.catalog import tables as t
from rollview.catalog.forgotten import check_not_forgotten
from rollview.catalog.reading import read_moment, read_snapshot
from rollview.catalog.sources import read_sources
from rollview.catalog.values import MissedCommits, Moment, Snapshot, SourcePosition, SourceRecord, folded
from rollview.core.interval import Csn, Interval

LOCAL = "local"


def read_csn_at(connection: sa.Connection, moment: datetime, relations: Iterable[str] | None) -> Csn:
    _check_zone(moment)
    check_not_forgotten(connection, f"The moment {moment.isoformat()}", moment=moment)
    known = {source.name: source for source in read_sources(connection)}
    names = {*known, LOCAL} if relations is None else _sources_below(read_snapshot(connection), relations)
    for source in (known[name] for name in sorted(names & known.keys())):
        _check_passed(source, moment)
    csn = _last_before(connection, moment, names)
    late = connection.execute(_units(names).where(t.ledger.c.csn > csn, t.ledger.c.effective <= moment)).first()
    if late is not None:
        raise _mixed(connection, moment, csn, late)
    return csn


def read_csn_recorded_by(connection: sa.Connection, moment: datetime) -> Csn:
    _check_zone(moment)
    query = sa.select(sa.func.max(t.ledger.c.csn)).where(t.ledger.c.ledger_time <= moment)
    return connection.execute(query).scalar() or 0


def read_positions(connection: sa.Connection, csn: Csn) -> tuple[SourcePosition, ...]:
    newest = read_moment(connection).csn
    check_not_forgotten(connection, f"Csn {csn}", csn=csn)
    if not 0 <= csn <= newest:
        raise errors.OutOfReach(f"There is no csn {csn}: the newest is {newest}.", csn=csn, newest=newest)
    return tuple(_position(connection, source.name, csn) for source in read_sources(connection))


def read_last_changes(connection: sa.Connection, names: Collection[str], at: Csn) -> tuple[Moment, ...]:
    """Of each relation that has changed by then, its last change: the csn, and when that counts as committed."""
    return _changes_at(connection, names, sa.func.max(t.change.c.csn), t.change.c.csn <= at)


def read_next_changes(connection: sa.Connection, names: Collection[str], after: Csn) -> tuple[Moment, ...]:
    """Of each relation that has changed since then, its first change."""
    return _changes_at(connection, names, sa.func.min(t.change.c.csn), t.change.c.csn > after)


def read_missed(
    connection: sa.Connection, names: Collection[str], interval: Interval, since: datetime, until: datetime
) -> MissedCommits:
    ids = sa.select(t.relation.c.id).where(t.relation.c.folded.in_([folded(name) for name in names]))
    inside = t.change.c.csn.between(interval.after + 1, interval.through)
    changed = sa.select(t.change.c.csn).where(t.change.c.relation_id.in_(ids))
    lacking = t.ledger.c.csn.in_(changed.where(inside))
    counts = sa.func.count(), sa.func.min(t.ledger.c.ledger_time, type_=t.Instant)
    commits, oldest = connection.execute(sa.select(*counts).where(lacking)).one()
    # When a source made them: all that is captured after a pause came at one moment.
    made = sa.select(sa.func.count()).where(t.ledger.c.effective.between(since, until), t.ledger.c.csn.in_(changed))
    return MissedCommits(commits, oldest, connection.execute(made).scalar_one())


def _changes_at(
    connection: sa.Connection, names: Collection[str], which: sa.Function[Csn], when: sa.ColumnElement[bool]
) -> tuple[Moment, ...]:
    # One look into the index for each relation; grouped, all changes of all of them would be read.
    own = sa.select(which).where(t.change.c.relation_id == t.relation.c.id, when).correlate(t.relation)
    named = t.relation.c.folded.in_([folded(name) for name in names])
    chosen = sa.select(own.scalar_subquery()).where(named)
    committed = sa.func.coalesce(t.ledger.c.effective, t.ledger.c.ledger_time, type_=t.Instant)
    query = sa.select(t.ledger.c.csn, committed.label("time")).where(t.ledger.c.csn.in_(chosen))
    return tuple(Moment(row.csn, row.time) for row in connection.execute(query))


def _check_zone(moment: datetime) -> None:
    if moment.tzinfo is None:
        raise errors.UsageError(f"The moment {moment} has no time zone.", hint="Add one, for example +00:00.")


def _sources_below(snapshot: Snapshot, names: Iterable[str]) -> set[str]:
    below: set[str] = set()
    for relation in map(snapshot.get, names):
        reads_nothing = not relation.depends_on
        below |= {relation.source or LOCAL} if reads_nothing else _sources_below(snapshot, relation.depends_on)
    return below


def _check_passed(source: SourceRecord, moment: datetime) -> None:
    if source.known is None or source.known < moment:
        raise errors.NotPassed(source.name, moment, source.known)


def _units(names: Collection[str]) -> sa.Select[tuple[Csn, str, datetime]]:
    """Those in which one of the sources has a part, in the ledger's order."""
    parts = sa.select(t.part.c.csn).where(t.part.c.source.in_(names))
    own = t.ledger.c.source.in_(names) | t.ledger.c.csn.in_(parts)
    return sa.select(t.ledger.c.csn, t.ledger.c.source, t.ledger.c.effective).where(own).order_by(t.ledger.c.csn)


def _last_before(connection: sa.Connection, moment: datetime, names: Collection[str]) -> Csn:
    later = connection.execute(_units(names).where(t.ledger.c.effective > moment).limit(1)).first()
    return read_moment(connection).csn if later is None else int(later.csn) - 1


def _mixed(
    connection: sa.Connection, moment: datetime, csn: Csn, late: sa.Row[tuple[Csn, str, datetime]]
) -> errors.OutOfReach:
    first = connection.execute(sa.select(t.ledger.c.source).where(t.ledger.c.csn == csn + 1)).scalar_one()
    return errors.OutOfReach(
        f"No csn is exactly {moment.isoformat()}: csn {csn + 1} of source '{first}' was committed after it, "
        f"but came before csn {late.csn} of source '{late.source}', which was committed by then.",
        hint="Roll to a csn, or say 'order: commit_time' in rollview.yaml, so that later commits come in that order.",
        before=csn,
        late=late.csn,
    )


def _position(connection: sa.Connection, source: str, csn: Csn) -> SourcePosition:
    of = [_newest(table, source, csn) for table in (t.ledger, t.part)]
    rows = [row for query in of if (row := connection.execute(query).first()) is not None]
    newest = max(rows, key=lambda row: int(row.csn), default=None)
    if newest is None:
        return SourcePosition(source, 0, None, None)
    return SourcePosition(source, newest.csn, newest.position, newest.source_time)


def _newest(table: sa.Table, source: str, csn: Csn) -> sa.Select[tuple[Csn, str, datetime]]:
    columns = (table.c.csn, table.c.position, table.c.source_time)
    return sa.select(*columns).where(table.c.source == source, table.c.csn <= csn).order_by(table.c.csn.desc()).limit(1)
