"""Rows of the ledger, of changes and of steps that nobody needs any more.

Law: behind the horizon no csn and no moment can be asked for; from it on every answer is as before. So the last row of
each source stays, by which a csn tells how far it covers the source, and the last change of each relation, by which its
valid time is told. Of steps, the newest of each relation and kind stay, those that run, and drops.
"""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from rollview import errors
from rollview.catalog import tables as t
from rollview.catalog.values import Moment
from rollview.core.interval import Csn

NEWEST_STEPS = 40
"""So many steps of each relation stay: by them its pace is told."""
_ENDED = ("done", "undone", "failed")


def read_horizon(connection: sa.Connection) -> Moment:
    row = connection.execute(sa.select(t.horizon)).one()
    return Moment(row.csn, row.time)


def check_not_forgotten(
    connection: sa.Connection, what: str, *, csn: Csn | None = None, moment: datetime | None = None
) -> None:
    """Refuse what lies before the horizon."""
    horizon = read_horizon(connection)
    is_before = (csn is not None and csn < horizon.csn) or (moment is not None and moment < horizon.time)
    if horizon.csn and is_before:
        raise errors.OutOfReach(
            f"{what} lies before csn {horizon.csn} of {horizon.time.isoformat()}: the ledger is forgotten there.",
            hint=f"Choose a csn from {horizon.csn} on, or a time from then on.",
            horizon=horizon.csn,
        )


def forget_before(connection: sa.Connection, csn: Csn) -> tuple[int, int, int]:
    """How many rows went, of the ledger, of changes and of steps. The horizon never goes back."""
    horizon = read_horizon(connection)
    if csn <= horizon.csn:
        return 0, 0, _forget_steps(connection, horizon.csn)
    newest = sa.select(sa.func.max(t.ledger.c.effective, type_=t.Instant)).where(t.ledger.c.csn <= csn)
    time = max(horizon.time, connection.execute(newest).scalar() or horizon.time)
    kept = _kept(connection, csn)
    changes, _, ledger = (
        connection.execute(table.delete().where(table.c.csn <= csn, table.c.csn.not_in(kept))).rowcount
        for table in (t.change, t.part, t.ledger)
    )
    connection.execute(t.horizon.update().values(csn=csn, time=time))
    return ledger, changes, _forget_steps(connection, csn)


def _kept(connection: sa.Connection, csn: Csn) -> list[Csn]:
    """At or behind the csn: the last of each source, and the last change of each living relation."""
    living = sa.select(t.relation.c.id).where(t.relation.c.folded.is_not(None))
    last = [
        sa.select(sa.func.max(table.c.csn)).where(table.c.csn <= csn).group_by(table.c.source)
        for table in (t.ledger, t.part)
    ]
    changed = sa.select(sa.func.max(t.change.c.csn)).where(t.change.c.csn <= csn, t.change.c.relation_id.in_(living))
    queries = (*last, changed.group_by(t.change.c.relation_id))
    return sorted({int(one) for query in queries for one in connection.execute(query).scalars()})


def _forget_steps(connection: sa.Connection, csn: Csn) -> int:
    place = sa.func.row_number().over(partition_by=t.step.c.folded, order_by=t.step.c.id.desc()).label("place")
    of_kind = sa.func.row_number().over(
        partition_by=(t.step.c.folded, t.step.c.kind, t.step.c.status), order_by=t.step.c.id.desc()
    )
    numbered = sa.select(t.step.c.id, place, of_kind.label("of_kind")).subquery()
    old = sa.select(numbered.c.id).where(numbered.c.place > NEWEST_STEPS, numbered.c.of_kind > 1)
    ended = t.step.c.status.in_(_ENDED) & (t.step.c.through <= csn) & (t.step.c.kind != "drop")
    return connection.execute(t.step.delete().where(ended, t.step.c.id.in_(old))).rowcount
