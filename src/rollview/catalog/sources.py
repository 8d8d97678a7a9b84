"""What the catalog knows of sources.

Law: a source's position moves in the transaction that writes its units of work into the ledger, and only from the
position that its writer believes it to be at. So every unit of work is in the ledger once, whoever else is at work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from rollview import errors
from rollview.catalog import schemas
from rollview.catalog import tables as t
from rollview.catalog.database import WallClock
from rollview.catalog.values import CapturedTable, Choice, HeldPart, Quarantined, SourceRecord, folded
from rollview.core import names
from rollview.core.bad_row import BadRow
from rollview.core.interval import Csn
from rollview.core.schema import Constraints, Schema
from rollview.core.states import SourceState, one_of

_SOURCES = sa.select(t.source).order_by(t.source.c.id)
_TABLES = (
    sa.select(t.source_table.c.source_id, t.source_table.c.remote, t.relation.c.name)
    .join(t.relation, t.relation.c.id == t.source_table.c.relation_id)
    .order_by(t.relation.c.id)
)


def read_sources(connection: sa.Connection) -> tuple[SourceRecord, ...]:
    tables: dict[int, list[CapturedTable]] = defaultdict(list)
    for row in connection.execute(_TABLES):
        tables[row.source_id].append(CapturedTable(row.name, row.remote))
    return tuple(_source(row, tables[row.id]) for row in connection.execute(_SOURCES))


def get_source(connection: sa.Connection, name: str) -> SourceRecord:
    found = next((source for source in read_sources(connection) if folded(source.name) == folded(name)), None)
    if found is None:
        raise errors.NotFound("source", name, hint="See 'rollview source list'.")
    return found


def read_quarantine(connection: sa.Connection) -> tuple[Quarantined, ...]:
    """Of all sources, the oldest first."""
    kept = [t.quarantine.c[field.name] for field in fields(Quarantined) if field.name != "relation"]
    query = sa.select(t.relation.c.name.label("relation"), *kept).join(t.relation).order_by(t.quarantine.c.id)
    return tuple(Quarantined(**row._mapping) for row in connection.execute(query))


def read_held(connection: sa.Connection) -> tuple[HeldPart, ...]:
    query = (
        sa.select(t.held, t.source.c.name, t.decision.c.choice, t.decision.c.made)
        .join(t.source, t.source.c.id == t.held.c.source_id)
        .outerjoin(t.decision, t.decision.c.global_id == t.held.c.global_id)
        .order_by(t.held.c.since, t.source.c.id)
    )
    return tuple(
        HeldPart(row.name, row.global_id, row.position, row.since, tuple(row.missing), row.choice, row.made)
        for row in connection.execute(query)
    )


def read_released(connection: sa.Connection) -> frozenset[str]:
    query = sa.select(t.decision.c.global_id).where(t.decision.c.choice == "release")
    return frozenset(connection.execute(query).scalars())


class SourceWriter:
    """Part of one catalog transaction."""

    def __init__(self, connection: sa.Connection, wall_clock: WallClock) -> None:
        self._connection = connection
        self._wall_clock = wall_clock

    def get(self, name: str) -> SourceRecord:
        return get_source(self._connection, name)

    def add(self, name: str, kind: str, settings: Mapping[str, Any], memory: Mapping[str, Any]) -> None:
        """A source whose first copy is still to be made."""
        fault = names.fault_in_name(name)
        if fault is not None:
            raise errors.InvalidName("source", name, fault)
        if any(folded(source.name) == folded(name) for source in read_sources(self._connection)):
            raise errors.AlreadyExists("source", name)
        about = {"name": name, "folded": folded(name), "kind": kind, "settings": dict(settings)}
        self._connection.execute(t.source.insert().values(**about, state=SourceState.COPYING, memory=dict(memory)))

    def attach(self, name: str, relation: str, remote: str) -> None:
        """The relation's rows come from the source from now on."""
        row = {"relation_id": self._relation_id(relation), "source_id": self.get(name).id, "remote": remote}
        self._connection.execute(t.source_table.insert().values(**row))

    def call_table(self, name: str, remote: str, new: str) -> None:
        """A table has another name at the source; here it is called as before."""
        own = (t.source_table.c.source_id == self.get(name).id, t.source_table.c.remote == remote)
        self._connection.execute(t.source_table.update().where(*own).values(remote=new))

    def set_layout(
        self, relation: str, schema: Schema, constraints: Constraints, position: str, csn: Csn, reason: str
    ) -> None:
        """What the source did after ``position`` is read by this layout; nothing of it has a csn before ``csn``."""
        relation_id = self._relation_id(relation)
        described = {"columns": schema.to_json(), "constraints": constraints.to_json()}
        self._connection.execute(t.relation.update().where(t.relation.c.id == relation_id).values(**described))
        row = {"relation_id": relation_id, "csn": csn, "position": position, "columns": schema.to_json()}
        self._connection.execute(t.layout.insert().values(**row, reason=reason))
        schemas.record(self._connection, relation_id, relation, schema, csn, reason)

    def advance(
        self,
        name: str,
        before: str | None,
        position: str,
        memory: Mapping[str, Any] | None = None,
        *,
        known: datetime | None = None,
        latest: datetime | None = None,
    ) -> None:
        """From ``before`` to ``position``; Retryable if the source is somewhere else. None: as it was."""
        told = {"memory": None if memory is None else dict(memory), "known": known, "latest": latest}
        values: dict[str, Any] = {"position": position, "read": self._wall_clock()}
        values |= {column: value for column, value in told.items() if value is not None}
        at = t.source.c.position.is_(None) if before is None else t.source.c.position == before
        update = t.source.update().where(t.source.c.folded == folded(name), at).values(**values)
        if self._connection.execute(update).rowcount != 1:
            raise errors.Retryable(
                f"Source '{name}' is no longer at position {before}: another process read it.",
                hint="Nothing was changed. Run the command again.",
                source=name,
            )

    def set_state(self, name: str, state: SourceState, problem: str | None = None) -> None:
        self._update(name, state=state, problem=problem)

    def activate_layouts(self, csn: Csn) -> None:
        """Layouts of a csn that was not committed apply from ``csn`` on."""
        self._connection.execute(t.layout.update().where(t.layout.c.csn > csn).values(csn=csn))
        schemas.advance(self._connection, csn)

    def quarantine(self, source: str, relation: str, position: str, bad: BadRow) -> None:
        about = {"source": source, "position": position, "column": bad.column, "reason": bad.reason}
        found = {"row": bad.row, "count": bad.count, "taken": self._wall_clock()}
        insert = t.quarantine.insert().values(relation_id=self._relation_id(relation), **about, **found)
        self._connection.execute(insert)

    def clear_quarantine(self, relation: str) -> None:
        self._connection.execute(t.quarantine.delete().where(t.quarantine.c.relation_id == self._relation_id(relation)))

    def set_health(self, name: str, health: Mapping[str, Any], *, read: bool = False) -> None:
        """``read``: the source has just answered."""
        self._update(name, health=dict(health), **({"read": self._wall_clock()} if read else {}))

    def set_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        self._update(name, settings=dict(settings))

    def set_memory(self, name: str, memory: Mapping[str, Any]) -> None:
        self._update(name, memory=dict(memory))

    def hold(self, name: str, global_id: str, position: str, missing: Sequence[str]) -> None:
        """The source waits for the other parts of a global transaction, from now on or as before."""
        since = next((part.since for part in read_held(self._connection) if self._is(part, name, global_id)), None)
        self.unhold(name)
        about = {"global_id": global_id, "position": position, "missing": list(missing)}
        row = {"source_id": self.get(name).id, "since": since or self._wall_clock(), **about}
        self._connection.execute(t.held.insert().values(**row))

    def _is(self, part: HeldPart, name: str, global_id: str) -> bool:
        return folded(part.source) == folded(name) and part.global_id == global_id

    def unhold(self, name: str) -> None:
        self._connection.execute(t.held.delete().where(t.held.c.source_id == self.get(name).id))

    def decide(self, global_id: str, choice: Choice, owner: str) -> None:
        """What is done about a global transaction whose parts have not all come; the last decision counts."""
        self._connection.execute(t.decision.delete().where(t.decision.c.global_id == global_id))
        row = {"global_id": global_id, "choice": choice, "owner": owner, "made": self._wall_clock()}
        self._connection.execute(t.decision.insert().values(**row))

    def drop(self, name: str) -> None:
        """Its tables are gone already; what the ledger says of it stays."""
        self.unhold(name)
        self._connection.execute(t.source.delete().where(t.source.c.id == self.get(name).id))

    def _relation_id(self, name: str) -> int:
        query = sa.select(t.relation.c.id).where(t.relation.c.folded == folded(name))
        return int(self._connection.execute(query).scalar_one())

    def _update(self, name: str, **values: Any) -> None:
        self._connection.execute(t.source.update().where(t.source.c.id == self.get(name).id).values(**values))


def _source(row: sa.Row[Any], tables: list[CapturedTable]) -> SourceRecord:
    return SourceRecord(
        id=row.id,
        name=row.name,
        kind=row.kind,
        settings=row.settings,
        state=one_of(SourceState, row.state, f"the state of source '{row.name}'"),
        position=row.position,
        memory=row.memory,
        problem=row.problem,
        read=row.read,
        tables=tuple(tables),
        health=row.health or {},
        known=row.known,
        latest=row.latest,
    )
