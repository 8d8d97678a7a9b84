"""CREATE OR REPLACE of a view that is there.

Law: another definition is a unit of work of its own, at csn s. Below s the view has the one before and every csn; from
s on the new one. The csn is committed first, with the definition and without rows, so that whoever refreshes the view
brings it to s - 1 and over s, whatever became of the process that asked. Views above go on: what they read stays.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from rollview.algebra.definition import Declared
from rollview.algebra.used import columns_used
from rollview.catalog import Definition, DefinitionVersion, Lease, NewUnit, Part, Relation, Snapshot, UnitPart
from rollview.catalog.definitions import TABLES
from rollview.core.faults import reach
from rollview.core.interval import Csn
from rollview.core.names import RESERVED_PREFIX
from rollview.core.states import Policy, ViewState
from rollview.errors import Corrupt, EngineFailed, InUse, Retryable, RollviewError, UsageError
from rollview.propagate import ViewToCreate, plan_create
from rollview.propagate.adapt import redefined_as
from rollview.propagate.derive import AdaptMode, Derivation, derivation_of, renamed_schema
from rollview.publish.workplace import Workplace
from rollview.relations.algorithm import max_rows, publish_within
from rollview.relations.former import sees_former_names
from rollview.relations.marks import high_water_mark
from rollview.relations.plans import check_not_waiting, plan_of
from rollview.relations.policies import check_reads
from rollview.relations.rolling import check_turns
from rollview.relations.shared import SHARES
from rollview.relations.versions import GOES_ON_FROM, columns_going_on
from rollview.relations.weak import check_reads_no_weak, check_weak
from rollview.results import ReplacementPlan, ViewCreated


def redefine(place: Workplace, declared: Declared, notes: tuple[str, ...]) -> ViewCreated | None:
    """None where the view must begin anew, because what it is cannot be carried on."""
    with place.catalog.lease("definitions", f"relation:{declared.name}") as lease:
        snapshot = place.snapshot()
        old = snapshot.view(declared.name)
        if old.state is ViewState.SCHEMA_CHANGED or old.problem is not None:
            return None
        new = plan_create(place.spark, snapshot, declared, over_the_same=True)
        policy = place.policies.of_new(snapshot, old.name, declared.properties, new.depends_on)
        check_reads(snapshot, place.policies, old.name, policy, new.depends_on)
        publish_within(declared.properties)
        max_rows(declared.properties)
        check_turns(snapshot, old.name, new.plan, declared.properties, policy)
        check_weak(snapshot, old.name, declared.properties, subscribed=is_subscribed(place, old.name))
        check_reads_no_weak(snapshot, old.name, new.depends_on)
        if new.plan.keeps_keys or plan_of(snapshot, old).keeps_keys:
            return None
        definition = definition_of(new, old)
        told = (*notes, *new.notes)
        derivation = derivation_of(snapshot, old, (new.plan, new.schema))
        is_same = _is_same(snapshot, old, definition, new)
        if is_same:
            _set(place, lease, old, definition)
        else:
            _check_none_waits(snapshot, old, new)
            if snapshot.waits_for(old) is not None:
                return None
            check_readers(snapshot, old, new, definition)
            csn = _commit(place, lease, old, new, definition, derivation)
    if is_same:
        return _unchanged(place, new, policy, told)
    reach("redefine.committed")
    if place.snapshot().get(old.name).pending is None:
        return replace(_unchanged(place, new, policy, told), csn=csn)
    if not _carried_on(place, old, csn):
        return None
    extent = place.snapshot().get(old.name).pins[Part.EXTENT]
    return ViewCreated(old.name, csn, extent.rows, new.plan.mode.shown, True, told)


def is_subscribed(place: Workplace, view: str) -> bool:
    return any(one.view.lower() == view.lower() for one in place.catalog.subscribers())


def explain_redefinition(place: Workplace, declared: Declared) -> ReplacementPlan:
    """What CREATE OR REPLACE would do; refuses what it refuses, and changes nothing."""
    snapshot = place.snapshot()
    old = snapshot.view(declared.name)
    new = plan_create(place.spark, snapshot, replace(declared, replace=True))
    definition = definition_of(new, old)
    check_readers(snapshot, old, new, definition)
    if _is_same(snapshot, old, definition, new):
        return ReplacementPlan(old.name, "unchanged", "only its comment or its properties differ", {}, new.schema.names)
    _check_none_waits(snapshot, old, new)
    if (table := snapshot.waits_for(old)) is not None:
        why = f"table '{table.name}' waits, so the view begins anew, without the csns that it has"
        sizes = {name: _rows(snapshot.get(name)) for name in new.depends_on}
        return ReplacementPlan(old.name, AdaptMode.RECOMPUTED.value, why, sizes, new.schema.names)
    found = derivation_of(snapshot, old, (new.plan, new.schema))
    reads = {
        AdaptMode.RENAMED: (),
        AdaptMode.STORED: (old.name,),
        AdaptMode.PARTLY: (old.name, *found.reads),
        AdaptMode.RECOMPUTED: (*new.depends_on, old.name),
    }
    sizes = {name: _rows(snapshot.get(name)) for name in reads[found.mode]}
    return ReplacementPlan(old.name, found.mode.value, _in_own_names(old, found.why), sizes, new.schema.names)


def _in_own_names(view: Relation, said: str) -> str:
    """Tables that were dropped by the names that the view's text has for them."""
    known = {} if view.definition is None else view.definition.facts.get(TABLES, {})
    for written, present in known.items():
        said = said.replace(present, written) if present.startswith(RESERVED_PREFIX) else said
    return said


def _rows(relation: Relation) -> int:
    return sum(pin.rows for part, pin in relation.pins.items() if part is not Part.BRIDGE)


def definition_of(new: ViewToCreate, old: Relation | None = None) -> Definition:
    facts = dict(new.facts)
    if old is not None:
        facts[GOES_ON_FROM] = columns_going_on(old.schema, new.schema)
    about = (new.declared.columns, new.declared.comment, dict(new.declared.properties), facts)
    return Definition(new.declared.query.strip(), *about)


def _is_same(snapshot: Snapshot, old: Relation, definition: Definition, new: ViewToCreate) -> bool:
    """Whether only the comment or the properties are others."""
    present = old.definition
    assert present is not None
    if old.pending is not None or not old.schema.looks_like(new.schema) or sees_former_names(snapshot, old):
        return False
    told = [
        {key: value for key, value in one.facts.items() if key not in (GOES_ON_FROM, SHARES)}
        for one in (present, definition)
    ]
    texts = (present.query, present.columns) == (definition.query, definition.columns)
    return texts and told[0] == told[1] and set(old.depends_on) == set(new.depends_on)


def _set(place: Workplace, lease: Lease, old: Relation, definition: Definition) -> None:
    assert old.definition is not None
    kept = replace(old.definition, comment=definition.comment, properties=definition.properties)
    with place.catalog.write(lease) as writer:
        writer.replace_definition(old.name, old.schema, kept, old.depends_on, old.folder)


def _unchanged(place: Workplace, new: ViewToCreate, policy: Policy, notes: tuple[str, ...]) -> ViewCreated:
    """The view has its rows already."""
    if policy.in_commits:
        place.following.catch_up(new.declared.name, policy)
    view = place.snapshot().get(new.declared.name)
    extent = view.pins[Part.EXTENT]
    return ViewCreated(view.name, extent.through, extent.rows, new.plan.mode.shown, True, notes)


def _commit(
    place: Workplace,
    lease: Lease,
    old: Relation,
    new: ViewToCreate,
    definition: Definition,
    derivation: Derivation,
) -> Csn:
    """The csn from which the definition holds: the next, for it is written in the names that columns have now. One that
    never got its rows is withdrawn."""
    assert old.definition is not None
    about = (new.depends_on, "replaced")
    with place.catalog.lease("commit") as clock, place.catalog.write(lease, clock) as writer:
        writer.withdraw_definition(old.name)
        position = str(writer.snapshot().moment.csn + 1)
        unit = UnitPart("local", position, str(uuid4()), datetime.now(UTC))
        csn = writer.commit_units([NewUnit((unit,), ())]).csn
        if derivation.mode is AdaptMode.RENAMED and not old.definition.facts.get(SHARES):
            schema = renamed_schema(old.schema, new.schema, derivation.columns)
            renamed = _going_on_through(old.definition, definition, derivation)
            writer.define_from(old.name, csn, renamed, schema, *about)
        else:
            writer.redefine_from(old.name, csn, definition, new.schema, *about)
    return csn


def _going_on_through(old: Definition, new: Definition, derivation: Derivation) -> Definition:
    """The new definition, of the old one's rows: its columns go on from those that the old one's go on from."""
    origin = old.facts.get(GOES_ON_FROM, {})
    through = {name: origin[was] for name, was in derivation.columns.items() if was in origin}
    return replace(new, facts={**new.facts, GOES_ON_FROM: through})


def _carried_on(place: Workplace, old: Relation, csn: Csn) -> bool:
    """The view brought over the csn. False if what is stored of it by its old definition cannot be read: then it begins
    anew. A failure that may pass costs no csn."""
    try:
        place.following.catch_up(old.name, Policy.IMMEDIATE)
    except (EngineFailed, Corrupt) as error:
        with place.catalog.lease("definitions", f"relation:{old.name}") as lease:
            snapshot = place.snapshot()
            view = snapshot.get(old.name)
            if view.pending is None:
                raise
            with place.catalog.write(lease) as writer:
                writer.withdraw_definition(old.name)
                writer.set_problem(old.name, None)
            if isinstance(error, EngineFailed):
                raise _kept(error, old.name, high_water_mark(snapshot, view) < csn - 1) from error
            if snapshot.readers(old.name):
                raise _kept(error, old.name, False) from error
            return False
    if place.snapshot().get(old.name).pending is not None:
        raise Retryable(
            f"View '{old.name}' has another definition from csn {csn} on, and no rows of it yet.",
            hint=f"Run: rollview refresh --select {old.name}",
            view=old.name,
        )
    return True


def _kept(error: RollviewError, name: str, is_of_the_old: bool) -> RollviewError:
    again = (
        f"Run: rollview refresh --select {name}. While that fails, CREATE OR REPLACE makes the view anew, from then on."
    )
    hint = again if is_of_the_old else error.hint
    return EngineFailed(f"View '{name}' keeps the definition that it has. {error.message}", hint=hint, view=name)


def _check_none_waits(snapshot: Snapshot, old: Relation, new: ViewToCreate) -> None:
    """Refuse where the next csn of what it is to read cannot be told."""
    for one in map(snapshot.get, new.depends_on):
        check_not_waiting(snapshot, one, snapshot.moment.csn + 1, f"View '{old.name}' cannot be replaced")


def check_readers(snapshot: Snapshot, old: Relation, new: ViewToCreate, definition: Definition) -> None:
    """Refuse what a view above cannot go on with."""
    after = _with_definition(snapshot, old, new, definition)
    for reader in snapshot.readers(old.name):
        if reader.state is ViewState.SCHEMA_CHANGED:
            continue
        lost = _lost(snapshot, reader, old, new)
        if lost:
            raise UsageError(
                f"View '{old.name}' cannot be replaced: view '{reader.name}' reads its column '{lost[0]}', "
                f"which is {'gone' if new.schema.find(lost[0]) is None else 'of another type'} then.",
                hint=f"Keep the column, or replace or drop '{reader.name}' first.",
                view=reader.name,
                columns=lost,
            )
        if reader.pending is not None or not _goes_on(snapshot, after, reader, old, new):
            raise UsageError(
                f"View '{old.name}' cannot be replaced: view '{reader.name}' cannot go on from what it has stored.",
                hint=f"Drop '{reader.name}' first, and create it again afterwards.",
                view=reader.name,
            )


def _lost(snapshot: Snapshot, reader: Relation, old: Relation, new: ViewToCreate) -> list[str]:
    used = columns_used(plan_of(snapshot, reader).outline.resolved).get(old.name.lower(), frozenset())
    kept = columns_going_on(old.schema, new.schema)
    return [column.name for column in old.schema if column.name.lower() in used and column.name not in kept]


def _goes_on(snapshot: Snapshot, after: Snapshot, reader: Relation, old: Relation, new: ViewToCreate) -> bool:
    assert reader.definition is not None
    if reader.definition.facts.get(SHARES):
        return old.schema.looks_like(new.schema)
    before, then = plan_of(snapshot, reader), plan_of(after, reader)
    return (before.mode, before.hidden) == (then.mode, then.hidden)


def _with_definition(snapshot: Snapshot, old: Relation, new: ViewToCreate, definition: Definition) -> Snapshot:
    """The catalog as it is once the view has its new definition."""
    csn, now = snapshot.moment.csn + 1, datetime.now(UTC)
    assert old.definition is not None
    former = old.versions or (DefinitionVersion(0, old.definition, old.schema, old.depends_on, "", now),)
    version = DefinitionVersion(csn, definition, new.schema, new.depends_on, "", now, anew=True)
    view = replace(redefined_as(old, version), versions=(*(one for one in former if not one.pending), version))
    return replace(snapshot, relations={**snapshot.relations, view.name: view})


def check_unread(snapshot: Snapshot, view: Relation) -> None:
    """A view that begins anew loses the csns from which others would go on."""
    readers = tuple(reader.name for reader in snapshot.readers(view.name))
    if readers:
        raise InUse("view", view.name, readers)
