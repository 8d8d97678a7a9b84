"""Changes to the catalog, inside one open write transaction.

Laws: the clock's row is held from the first moment, so csn are given out one after another without a gap, and
ledger time grows with every csn even when the system's clock does not. Nothing here is visible before the
transaction ends, and everything is from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from rollview import errors
from rollview.catalog import forgotten, graph, reading, schemas
from rollview.catalog import tables as t
from rollview.catalog.database import Database
from rollview.catalog.definitions import DefinitionWriter
from rollview.catalog.pulse import LIFE
from rollview.catalog.sources import SourceWriter
from rollview.catalog.subscribers import SubscriberWriter
from rollview.catalog.values import (
    Change,
    Definition,
    Identity,
    Moment,
    NewUnit,
    OpenQueries,
    Part,
    Pin,
    Relation,
    RelationKind,
    Snapshot,
    StepKind,
    StepStatus,
    StoredParts,
    UnitPart,
    folded,
)
from rollview.core import names
from rollview.core.interval import ENDLESS, Csn, Interval, merge_overlapping
from rollview.core.schema import Constraints, Schema
from rollview.core.states import ViewState

_TICK = timedelta(microseconds=1)


class CatalogWriter:
    def __init__(
        self, connection: sa.Connection, database: Database, tokens: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """``tokens``: those of the leases under which the transaction writes."""
        self._connection = connection
        self._database = database
        self._tokens = tokens
        self.begun: set[int] = set()
        self.ended: set[int] = set()
        self._moment = reading.read_moment(connection, lock=True)
        self.sources = SourceWriter(connection, self._now)
        self.subscribers = SubscriberWriter(connection, self._now)
        self._definitions = DefinitionWriter(connection, self._now)

    def snapshot(self) -> Snapshot:
        """The catalog as this transaction sees it, its own changes included."""
        return reading.read_snapshot(self._connection)

    def commit_unit(
        self,
        *,
        source: str,
        position: str,
        transaction: str,
        source_time: datetime,
        changes: Iterable[tuple[str, int, int, int | None]],
        expect: Csn | None = None,
    ) -> Moment:
        """Give a unit of work of this warehouse the next csn and write it into the ledger."""
        part = UnitPart(source, position, transaction, source_time)
        return self.commit_units([NewUnit((part,), tuple(Change(*change) for change in changes))], expect)

    def commit_units(self, units: Sequence[NewUnit], expect: Csn | None = None) -> Moment:
        """Give units of work the next csns in their order; ``expect``: the csn of the first. The last one's moment."""
        moments = self._next_moments(len(units), expect)
        rows = [_ledger_row(unit, moment) for unit, moment in zip(units, moments, strict=True)]
        parts = [
            {"csn": moment.csn, "place": place, **_part_row(part)}
            for unit, moment in zip(units, moments, strict=True)
            for place, part in enumerate(unit.parts)
            if place
        ]
        self._connection.execute(t.ledger.insert(), rows)
        if parts:
            self._connection.execute(t.part.insert(), parts)
        self._insert_changes([(m.csn, c) for u, m in zip(units, moments, strict=True) for c in u.changes])
        self._moment = moments[-1]
        seen = self._clocks(self._now())
        self._connection.execute(t.clock.update().values(csn=self._moment.csn, time=self._moment.time, **seen))
        return self._moment

    def forget_before(self, csn: Csn) -> tuple[int, int, int]:
        """Rows of the ledger, of changes and of steps that nobody needs; how many went of each."""
        return forgotten.forget_before(self._connection, csn)

    def accept_clock(self) -> datetime:
        now = self._now()
        self._connection.execute(t.clock.update().values(accepted=now, **self._clocks(now)))
        return now

    def add_relation(
        self,
        name: str,
        kind: RelationKind,
        schema: Schema,
        constraints: Constraints,
        definition: Definition | None,
        depends_on: Sequence[str],
        folder: str,
        since: Csn | None = None,
    ) -> int:
        """A new table or view, there from the present csn on. ``since``: the first csn of a view's rows."""
        reads = self._check_new(name, kind, depends_on)
        described = {"columns": schema.to_json(), "constraints": constraints.to_json(), "coarse": []}
        row = {"name": name, "folded": folded(name), "kind": str(kind), "folder": folder, "created": self._moment.csn}
        insert = t.relation.insert().values(**row, **described, definition=_definition_json(definition))
        relation_id = int(self._connection.execute(insert.returning(t.relation.c.id)).scalar_one())
        self._insert_dependencies(relation_id, reads)
        if definition is not None:
            first = self._moment.csn if since is None else since
            self._definitions.put(relation_id, first, definition, schema, reads, "created", anew=True)
        schemas.record(self._connection, relation_id, name, schema, self._moment.csn)
        return relation_id

    def replace_definition(
        self,
        name: str,
        schema: Schema,
        definition: Definition,
        depends_on: Sequence[str],
        folder: str,
        constraints: Constraints | None = None,
    ) -> None:
        """Give a view another definition, as if it had always had it. In another folder it starts anew: no pins,
        nothing coarse, no problem."""
        snapshot = self.snapshot()
        view = snapshot.get(name)
        reads = graph.reads_of(snapshot, view.name, depends_on)
        values: dict[str, Any] = {"columns": schema.to_json(), "definition": _definition_json(definition)}
        if constraints is not None:
            values["constraints"] = constraints.to_json()
        if folder != view.folder:
            values |= {"folder": folder, "created": self._moment.csn, "coarse": [], "problem": None, "state": None}
            self._connection.execute(t.pin.delete().where(t.pin.c.relation_id == view.id))
            self._definitions.forget(view.id)
            self._definitions.put(view.id, self._moment.csn, definition, schema, reads, "replaced", anew=True)
        else:
            self._definitions.change(view.id, definition, schema)
        self._update(view, **values)
        self._connection.execute(t.dependency.delete().where(t.dependency.c.relation_id == view.id))
        self._insert_dependencies(view.id, reads)
        schemas.record(self._connection, view.id, view.name, schema, self._moment.csn, "defined anew")

    def alter_table(
        self, name: str, new_name: str, schema: Schema, constraints: Constraints, csn: Csn, reason: str
    ) -> None:
        """From csn ``csn`` on the table has this name, these columns and these constraints."""
        table = self.snapshot().get(name)
        if not table.layouts:
            self._insert_layout(table, table.schema, table.created, "created")
        self._insert_layout(table, schema, csn, reason)
        described = {"columns": schema.to_json(), "constraints": constraints.to_json()}
        self._update(table, name=new_name, folded=folded(new_name), **described)
        if new_name != table.name:
            self._definitions.call_otherwise(table.id, table.name, new_name)
        schemas.record(self._connection, table.id, new_name, schema, csn, reason)

    def set_constraints(self, name: str, constraints: Constraints) -> None:
        """The same rules in other words, because a name in them changed."""
        self._update(self.snapshot().get(name), constraints=constraints.to_json())

    def define_from(
        self, name: str, csn: Csn, definition: Definition, schema: Schema, depends_on: Sequence[str], why: str
    ) -> None:
        """From a csn on the view has this definition, and below it the one that it had: for a text that says the same
        of tables that look different from there on, or gives columns other names. The view's rows and changes go on as
        they are stored, so its columns must be those that it has, at most called otherwise. Idempotent."""
        snapshot = self.snapshot()
        view = snapshot.view(name)
        if _stored_columns(schema) != _stored_columns(view.schema):
            raise errors.UsageError(f"View '{view.name}' would get other columns at csn {csn} without new rows.")
        newest = max((version.csn for version in view.versions), default=0)
        if csn < newest:
            raise errors.UsageError(f"View '{view.name}' has another definition from csn {newest} on.")
        reads = graph.reads_of(snapshot, view.name, depends_on)
        waits = view.pending is not None
        self._definitions.put(view.id, csn, definition, schema, reads, why, pending=waits)
        if not waits:
            self._give(view, definition, schema, reads)
            schemas.record(self._connection, view.id, view.name, schema, csn, why)

    def redefine_from(
        self, name: str, csn: Csn, definition: Definition, schema: Schema, depends_on: Sequence[str], why: str
    ) -> None:
        """From a csn on the view is to have this definition. It has no rows of it until ``take_definition``, and cannot
        be read from there on; below, nothing changes. One that it was to have from that csn on is replaced."""
        snapshot = self.snapshot()
        view = snapshot.view(name)
        reads = graph.reads_of(snapshot, view.name, depends_on)
        self._definitions.put(view.id, csn, definition, schema, reads, why, anew=True, pending=True)

    def withdraw_definition(self, name: str) -> None:
        """The view is not to have the definition of which it has no rows."""
        self._definitions.withdraw(self.snapshot().view(name).id)

    def take_definition(self, name: str, csn: Csn, folder: str) -> None:
        """The view has its next definition, which begins at that csn, and new parts in another folder, to be pinned in
        this transaction. Where its rows are by the one before is remembered with that."""
        view = self.snapshot().view(name)
        self._definitions.take(view.id, csn, StoredParts(view.folder, view.pins, view.coarse))
        self._definitions.show(view.id, None)
        newest = [one for one in self.snapshot().get(name).versions if not one.pending][-1]
        self._connection.execute(t.pin.delete().where(t.pin.c.relation_id == view.id))
        self._give(view, newest.definition, newest.schema, self._read_ids(newest.depends_on))
        self._update(view, folder=folder, created=csn, coarse=[], problem=None, state=None)
        schemas.record(self._connection, view.id, view.name, newest.schema, csn, "defined anew")

    def show_earlier(self, name: str, pins: Sequence[Pin]) -> None:
        """Readers find the view at the csn of these parts, which are of an earlier definition."""
        view = self.snapshot().get(name)
        self._definitions.show(view.id, view.at(pins[0].through).folder, pins)

    def show_present(self, name: str) -> None:
        """Readers find the view where its present rows are."""
        self._definitions.show(self._id(name), None)

    def forget_definitions(self, name: str, after: Csn) -> None:
        """The view cannot be read before a csn any more: definitions that ended there go, with their parts."""
        view = self.snapshot().get(name)
        bridge = view.pins.get(Part.BRIDGE)
        if bridge is not None and bridge.through < after:
            self._definitions.forget(view.id, before=bridge.through)
            gone = (t.pin.c.relation_id == view.id) & (t.pin.c.part == str(Part.BRIDGE))
            self._connection.execute(t.pin.delete().where(gone))

    def _read_ids(self, names: Sequence[str]) -> tuple[int, ...]:
        ids = self._ids(names)
        return tuple(ids[folded(name)] for name in names)

    def _give(self, view: Relation, definition: Definition, schema: Schema, reads: tuple[int, ...]) -> None:
        self._update(view, columns=schema.to_json(), definition=_definition_json(definition))
        self._connection.execute(t.dependency.delete().where(t.dependency.c.relation_id == view.id))
        self._insert_dependencies(view.id, reads)

    def drop_relation(self, name: str) -> None:
        """Nothing may read it any more. Its changes stay in the ledger."""
        snapshot = self.snapshot()
        relation = snapshot.get(name)
        users = graph.users_of(snapshot, relation) + self.subscribers.of(relation)
        if users:
            raise errors.InUse(str(relation.kind), relation.name, users)
        graph.check_not_read_before(snapshot, relation)
        self._connection.execute(t.dependency.delete().where(t.dependency.c.relation_id == relation.id))
        self._connection.execute(t.pin.delete().where(t.pin.c.relation_id == relation.id))
        self._connection.execute(t.place.delete().where(t.place.c.relation_id == relation.id))
        for table in (t.source_table, t.layout, t.quarantine, t.definition):
            self._connection.execute(table.delete().where(table.c.relation_id == relation.id))
        self._update(relation, folded=None, dropped=self._moment.csn)
        schemas.record(self._connection, relation.id, relation.name, Schema(()), self._moment.csn, "dropped")

    def set_problem(self, name: str, text: str | None) -> None:
        self._update(self.snapshot().get(name), problem=text)

    def set_state(self, name: str, state: ViewState | None, problem: str | None = None) -> None:
        """``schema_changed`` stops a view for good; ``degraded`` only says what it lacks."""
        self._update(self.snapshot().get(name), state=state, problem=problem)

    def add_coarse(self, name: str, interval: Interval) -> None:
        relation = self.snapshot().get(name)
        merged = merge_overlapping((*relation.coarse, interval))
        self._update(relation, coarse=[[i.after, i.through] for i in merged])

    def begin_wait(self, name: str, problem: str) -> None:
        """What a captured table has after the newest csn cannot be told; one that waits already waits where it did."""
        relation = self.snapshot().get(name)
        if relation.waits_at is None:
            self.add_coarse(name, Interval(self._moment.csn, ENDLESS))
        self.set_problem(name, problem)

    def end_wait(self, name: str) -> None:
        """Its rows are known again at the newest csn, and not strictly between that and the one at which it waited."""
        relation = self.snapshot().get(name)
        ended = (replace(one, through=min(one.through, self._moment.csn)) for one in relation.coarse)
        kept = [[one.after, one.through] for one in ended if one.through - one.after > 1]
        self._update(relation, coarse=kept, problem=None)

    def forget_coarse(self, name: str, through: Csn) -> None:
        """Stretches that end there or before are out of reach, so nobody has to be told of them."""
        relation = self.snapshot().get(name)
        kept = [[i.after, i.through] for i in relation.coarse if i.through > through]
        if len(kept) < len(relation.coarse):
            self._update(relation, coarse=kept)

    def add_replaced(self, name: str, csn: Csn) -> None:
        relation = self.snapshot().get(name)
        self._update(relation, replaced=[*relation.replaced, csn])

    def pin(self, name: str, pin: Pin) -> None:
        """Make this version the one that exists for readers."""
        key = {"relation_id": self._id(name), "part": str(pin.part)}
        values = {"version": pin.version, "after": pin.after, "through": pin.through, "rows": pin.rows}
        update = t.pin.update().where(*(t.pin.c[column] == value for column, value in key.items()))
        if self._connection.execute(update.values(**values)).rowcount == 0:
            self._connection.execute(t.pin.insert().values(**key, **values))

    def ends_at(self, name: str, folder: str, csn: Csn) -> bool:
        """Whether a relation's parts are in that folder, and its delta is complete up to that csn and no further."""
        pins = t.pin.join(t.relation, t.relation.c.id == t.pin.c.relation_id)
        found = sa.select(t.relation.c.folder, t.pin.c.through).select_from(pins)
        found = found.where(t.relation.c.id == self._id(name), t.pin.c.part == str(Part.DELTA))
        row = self._connection.execute(found).first()
        return row is not None and tuple(row) == (folder, csn)

    def set_places(
        self, name: str, places: Mapping[str, Csn], queries: Mapping[str, OpenQueries] | None = None
    ) -> None:
        """How far tables are in the delta of a view now; of others nothing changes. One that stays keeps its time.
        ``queries``: that brought them there and may have to be compensated."""
        view, now = self.snapshot().view(name), self._now()
        for table, csn in places.items():
            before = view.places.get(table)
            values = {
                "csn": csn,
                "moved": before.moved if before is not None and before.csn == csn else now,
                "queries": None if queries is None else queries.get(table),
            }
            key = {"relation_id": view.id, "reads_id": self._id(table)}
            update = t.place.update().where(*(t.place.c[column] == value for column, value in key.items()))
            if self._connection.execute(update.values(**values)).rowcount == 0:
                self._connection.execute(t.place.insert().values(**key, **values))

    def begin_step(
        self, relation: str, kind: StepKind, interval: Interval, owner: str, folders: Sequence[str] = ()
    ) -> int:
        """Record a step before its first effect. Its relation need not exist yet."""
        about = {"relation": relation, "folded": folded(relation), "relation_id": self._find_id(relation)}
        bounds = {"after": interval.after, "through": interval.through}
        now = self._now()
        state = {"status": "running", "started": now, "expires": now + LIFE, "owner": owner}
        insert = t.step.insert().values(kind=kind, folders=list(folders), profile={}, **about, **bounds, **state)
        self._connection.execute(t.identity.update().values(begun=t.identity.c.begun + 1))
        insert = insert.values(tokens=dict(self._tokens))
        step_id = int(self._connection.execute(insert.returning(t.step.c.id)).scalar_one())
        self.begun.add(step_id)
        return step_id

    def identity(self) -> Identity:
        """As this transaction sees it: the steps that it begins are counted."""
        return reading.read_identity(self._connection)

    def set_identity(self, identity: Identity) -> None:
        values = {"warehouse": identity.warehouse, "previous": identity.previous, "begun": identity.begun}
        self._connection.execute(t.identity.update().values(**values))

    def finish_step(self, step_id: int, status: StepStatus, profile: Mapping[str, Any] | None = None) -> None:
        """LostLease if the step was taken for abandoned meanwhile: what it wrote may be gone."""
        values = {"status": status, "finished": self._now(), "profile": dict(profile or {})}
        one = t.step.c.id == step_id
        if self._connection.execute(t.step.update().where(one, t.step.c.status == "running").values(**values)).rowcount:
            self.ended.add(step_id)
            return
        if self._connection.execute(sa.select(t.step.c.id).where(one)).first() is None:
            raise errors.NotFound("step", str(step_id))
        raise errors.LostLease(f"step {step_id}")

    def abandon_steps(self, step_ids: Iterable[int]) -> None:
        """From here on nobody can finish them: what they wrote is about to go."""
        self._set_status(step_ids, "running", status="abandoned")

    def undo_steps(self, step_ids: Iterable[int]) -> None:
        """What abandoned steps wrote is gone; idempotent."""
        self._set_status(step_ids, "abandoned", status="undone", finished=self._now())

    def _set_status(self, step_ids: Iterable[int], before: StepStatus, **values: Any) -> None:
        chosen = t.step.c.id.in_(tuple(step_ids)) & (t.step.c.status == before)
        self._connection.execute(t.step.update().where(chosen).values(**values))

    def _next_moments(self, count: int, expect: Csn | None) -> list[Moment]:
        csn = self._moment.csn + 1
        if expect is not None and expect != csn:
            raise errors.Retryable(
                f"The next csn is {csn}, not {expect}: others committed in between.",
                hint="Nothing was changed. Run the transaction again.",
                expected=expect,
                next=csn,
            )
        now = self._now()
        self._database.check_time(now, reading.read_last_seen(self._connection))
        first = max(now, self._moment.time + _TICK)
        return [Moment(csn + place, first + place * _TICK) for place in range(count)]

    def _now(self) -> datetime:
        return self._database.now(self._connection)

    def _clocks(self, now: datetime) -> dict[str, Any]:
        """What the clocks say, by which the next commit is checked."""
        uptime = self._database.uptime()
        known = {"boot": None, "uptime": None} if uptime is None else {"boot": uptime.boot, "uptime": uptime.micros}
        return {"wall": now, **known}

    def _insert_changes(self, changes: Sequence[tuple[Csn, Change]]) -> None:
        ids = self._ids(relation for _, (relation, *_) in changes)
        rows = [
            {"relation_id": ids[folded(relation)], "csn": csn, "inserted": new, "deleted": old, "updated": updated}
            for csn, (relation, new, old, updated) in changes
        ]
        if rows:
            self._connection.execute(t.change.insert(), rows)

    def _check_new(self, name: str, kind: RelationKind, depends_on: Sequence[str]) -> tuple[int, ...]:
        fault = names.fault_in_name(name)
        if fault is not None:
            raise errors.InvalidName(str(kind), name, fault)
        snapshot = self.snapshot()
        present = snapshot.find(name)
        if present is not None:
            raise errors.AlreadyExists(str(present.kind), present.name)
        return graph.reads_of(snapshot, name, depends_on)

    def _insert_dependencies(self, relation_id: int, reads: tuple[int, ...]) -> None:
        rows = [{"relation_id": relation_id, "place": i, "reads_id": id_} for i, id_ in enumerate(reads)]
        if rows:
            self._connection.execute(t.dependency.insert(), rows)

    def _insert_layout(self, table: Relation, schema: Schema, csn: Csn, reason: str) -> None:
        row = {"relation_id": table.id, "csn": csn, "position": str(csn), "columns": schema.to_json()}
        self._connection.execute(t.layout.insert().values(**row, reason=reason))

    def _update(self, relation: Relation, **values: Any) -> None:
        self._connection.execute(t.relation.update().where(t.relation.c.id == relation.id).values(**values))

    def _ids(self, wanted: Iterable[str]) -> Mapping[str, int]:
        """Ids by folded name; all must exist."""
        by_name = {folded(name): name for name in wanted}
        query = sa.select(t.relation.c.folded, t.relation.c.id).where(t.relation.c.folded.in_(by_name))
        found = {row.folded: row.id for row in self._connection.execute(query)}
        for missing in by_name.keys() - found.keys():
            self.snapshot().get(by_name[missing])
        return found

    def _id(self, name: str) -> int:
        return self._ids((name,))[folded(name)]

    def _find_id(self, name: str) -> int | None:
        query = sa.select(t.relation.c.id).where(t.relation.c.folded == folded(name))
        return self._connection.execute(query).scalar()


def _stored_columns(schema: Schema) -> set[tuple[str, str]]:
    return {(column.stored, column.type) for column in schema}


def _ledger_row(unit: NewUnit, moment: Moment) -> dict[str, Any]:
    effective = unit.effective or moment.time
    own = {"ledger_time": moment.time, "effective": effective, "global_id": unit.global_id}
    return {"csn": moment.csn, **_part_row(unit.parts[0]), **own}


def _part_row(part: UnitPart) -> dict[str, Any]:
    return {name: getattr(part, name) for name in UnitPart.__slots__}


def _definition_json(definition: Definition | None) -> dict[str, Any] | None:
    return None if definition is None else asdict(definition)
