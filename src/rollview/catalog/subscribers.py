"""What the catalog knows of subscribers.

Law: a position grows by what its subscriber has acknowledged, and by nothing else. Only a resync, which gives the
subscriber another token, may take it back; whoever still has the old token moves nothing.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import sqlalchemy as sa

from rollview import errors
from rollview.catalog import tables as t
from rollview.catalog.database import WallClock
from rollview.catalog.values import Relation, SubscriberRecord, folded
from rollview.core import names
from rollview.core.interval import Csn, Interval
from rollview.core.schema import Schema

_SUBSCRIBERS = (
    sa.select(t.subscriber, t.relation.c.name.label("view"))
    .join(t.relation, t.relation.c.id == t.subscriber.c.relation_id)
    .order_by(t.subscriber.c.id)
)


def read_subscribers(connection: sa.Connection) -> tuple[SubscriberRecord, ...]:
    return tuple(_subscriber(row) for row in connection.execute(_SUBSCRIBERS))


def get_subscriber(connection: sa.Connection, name: str) -> SubscriberRecord:
    row = connection.execute(_SUBSCRIBERS.where(t.subscriber.c.folded == folded(name))).first()
    if row is None:
        raise errors.NotFound("subscriber", name, hint="See 'rollview subscriber list'.")
    return _subscriber(row)


class SubscriberWriter:
    """Part of one catalog transaction."""

    def __init__(self, connection: sa.Connection, wall_clock: WallClock) -> None:
        self._connection = connection
        self._wall_clock = wall_clock

    def get(self, name: str) -> SubscriberRecord:
        return get_subscriber(self._connection, name)

    def of(self, relation: Relation) -> tuple[str, ...]:
        """The names of those who have the relation's changes."""
        query = sa.select(t.subscriber.c.name).where(t.subscriber.c.relation_id == relation.id)
        return tuple(self._connection.execute(query.order_by(t.subscriber.c.id)).scalars())

    def add(
        self, name: str, relation: Relation, warehouse: str, position: Csn, *, full: bool, sink: str | None
    ) -> None:
        fault = names.fault_in_name(name)
        if fault is not None:
            raise errors.InvalidName("subscriber", name, fault)
        known = sa.select(t.subscriber.c.name).where(t.subscriber.c.folded == folded(name))
        if (present := self._connection.execute(known).scalar()) is not None:
            raise errors.AlreadyExists("subscriber", present)
        about = {"name": name, "folded": folded(name), "relation_id": relation.id, "sink": sink}
        begun = self._begun(relation, warehouse, position, full=full)
        self._connection.execute(t.subscriber.insert().values(**about, **begun, added=self._wall_clock()))

    def begin_anew(self, name: str, relation: Relation, warehouse: str, position: Csn) -> None:
        """All rows at ``position`` come first; what was offered or acknowledged before counts no more."""
        self._update(self.get(name), **self._begun(relation, warehouse, position, full=True), problem=None)

    def offer(self, subscriber: SubscriberRecord, through: Csn) -> Interval:
        """The next batch: it ends there, or where one ends that was offered before and is not acknowledged yet."""
        now = self._same(subscriber)
        if now.offered is not None and now.offered > now.position:
            return Interval(now.position, now.offered)
        if through > now.position:
            self._update(now, offered=through)
        return Interval(now.position, max(now.position, through))

    def advance(self, subscriber: SubscriberRecord, csn: Csn, *, full: bool = False) -> Csn:
        """Idempotent; returns the position, which never goes back. ``full``: the rows at it are there as well."""
        now = self._same(subscriber)
        _check_offered(now, csn, full=full)
        if csn > now.position or (now.full and full):
            moved = {"position": csn, "full": False, "moved": self._wall_clock(), "problem": None}
            self._update(now, **moved)
        return max(csn, now.position)

    def skip(self, subscriber: SubscriberRecord, csn: Csn) -> None:
        """Nothing changed up to there, so nothing has to be handed out; unless something was, and is on its way."""
        now = self._same(subscriber)
        if csn > now.position and not now.full and (now.offered is None or now.offered <= now.position):
            self._update(now, position=csn)

    def set_problem(self, name: str, problem: str | None) -> None:
        self._update(self.get(name), problem=problem)

    def remove(self, name: str) -> None:
        self._connection.execute(t.subscriber.delete().where(t.subscriber.c.id == self.get(name).id))

    def _begun(self, relation: Relation, warehouse: str, position: Csn, *, full: bool) -> dict[str, Any]:
        history = {"warehouse": warehouse, "folder": relation.folder, "columns": relation.schema.to_json()}
        # Whatever is begun later sorts behind.
        token = f"{int(self._wall_clock().timestamp() * 1_000_000):016x}{uuid4().hex[:16]}"
        return {**history, "token": token, "position": position, "full": full, "offered": None}

    def _same(self, subscriber: SubscriberRecord) -> SubscriberRecord:
        """As it is now; out of reach if it was begun anew meanwhile."""
        now = self.get(subscriber.name)
        if now.token != subscriber.token:
            raise errors.OutOfReach(
                f"Subscriber '{now.name}' was begun anew meanwhile: what was pulled before counts no more.",
                hint=f"Pull again: rollview subscriber pull {now.name}",
                subscriber=now.name,
            )
        return now

    def _update(self, subscriber: SubscriberRecord, **values: Any) -> None:
        self._connection.execute(t.subscriber.update().where(t.subscriber.c.id == subscriber.id).values(**values))


def _check_offered(now: SubscriberRecord, csn: Csn, *, full: bool) -> None:
    """An acknowledgement that came late moves nothing; one of what was never handed out is refused."""
    if now.full and csn >= now.position and not (full and csn == now.position):
        raise errors.UsageError(
            f"Subscriber '{now.name}' has not acknowledged the rows at csn {now.position}, which come before changes.",
            hint=f"When they are stored: rollview subscriber ack {now.name} {now.position} --full",
            subscriber=now.name,
            position=now.position,
        )
    if csn > max(now.position, now.offered or 0):
        raise errors.UsageError(
            f"Csn {csn} was not handed out to subscriber '{now.name}': it has "
            f"{'pulled' if now.offered else 'acknowledged'} changes up to {max(now.position, now.offered or 0)}.",
            hint=f"Pull first: rollview subscriber pull {now.name}",
            subscriber=now.name,
            position=now.position,
        )


def _subscriber(row: sa.Row[Any]) -> SubscriberRecord:
    return SubscriberRecord(
        id=row.id,
        name=row.name,
        view=row.view,
        warehouse=row.warehouse,
        folder=row.folder,
        schema=Schema.from_json(row.columns),
        token=row.token,
        position=row.position,
        full=row.full,
        offered=row.offered,
        sink=row.sink,
        added=row.added,
        moved=row.moved,
        problem=row.problem,
    )
