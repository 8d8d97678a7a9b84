"""What the catalog alone tells of a relation: its plan, how far it reaches, how far it is complete. No Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from rollview.algebra.definition import Declared
from rollview.algebra.replacing import called
from rollview.algebra.resolve import Known
from rollview.algebra.script import Motion
from rollview.algebra.states import states_read
from rollview.algebra.view import HIDDEN_KEYS, SETTLED, TOLD_APART_BY, Mode, Propagation, ViewPlan, outline, plan
from rollview.catalog import Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.schema import Schema
from rollview.core.states import Policy
from rollview.errors import OutOfReach
from rollview.relations.former import TABLES, seen_tables
from rollview.relations.marks import high_water_mark as high_water_mark
from rollview.relations.policies import POLICY
from rollview.relations.shared import coarse_of, told_over
from rollview.store.writing import BOUND
from rollview.types.spelling import widens

REFRESH_MODE, RECOMPUTE = "rollview.refresh_mode", "recompute"
"""A view's property, and what it says where no delta is wanted."""
DETAIL, EACH_COMMIT, EACH_REFRESH = "rollview.detail", "commit", "refresh"
"""A view's property that says which csns stay readable: of every commit, or only those that a refresh reached. A period
says how long the first is so."""


_TIES = "keys that left no ties in its order are gone"

ClosedReferences = frozenset[tuple[str, str]]
"""Pairs (child, parent): every key that the child's delta refers to is in the parent's delta."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of an interval before it is propagated over: all that the query's text depends on."""

    motion: frozenset[tuple[str, Motion]]
    small: bool
    sizes: frozenset[tuple[str, int]]
    closed: ClosedReferences
    ahead: bool
    absent: frozenset[str] = frozenset()
    many: bool = False
    moving: str | None = None


def plan_of(snapshot: Snapshot, relation: Relation) -> ViewPlan:
    """The view's plan, from its definition and the types that Spark told when it was created."""
    definition = relation.definition
    assert definition is not None
    seen = seen_tables(snapshot, relation)
    known = tuple(known_to(relation, seen.get(name) or snapshot.get(name)) for name in relation.depends_on)
    return _plan(
        relation.name, definition.query, definition.columns, known, json.dumps(definition.facts, sort_keys=True)
    )


@lru_cache(maxsize=1024)
def _plan(name: str, query: str, columns: tuple[str, ...], known: tuple[Known, ...], facts: str) -> ViewPlan:
    told = json.loads(facts)
    text = told.get(SETTLED, query)
    declared = Declared(name, columns, None, {}, called(text, told[TABLES]) if TABLES in told else text, False)
    by_name = {relation.name.lower(): relation for relation in known}
    made = outline(declared, by_name, keeps_keys=HIDDEN_KEYS in told)
    # The types that Spark told are those of the text as it was settled then.
    return plan(replace(made, rel=None, whole_because=_TIES) if made.settled.notes else made, told)


@lru_cache(maxsize=1024)
def propagation_of(plan: ViewPlan, circumstances: Circumstances) -> Propagation:
    """The propagation query for an interval of which this is known; the same object for the same circumstances."""
    written = plan.propagation(
        dict(circumstances.motion),
        small=circumstances.small,
        sizes=dict(circumstances.sizes),
        closed=circumstances.closed,
        ahead=circumstances.ahead,
        absent=circumstances.absent,
        many=circumstances.many,
        moving=circumstances.moving,
    )
    return replace(written, query=written.query.limit(BOUND + 1)) if circumstances.ahead else written


def recomputes(properties: Mapping[str, str]) -> bool:
    """Whether a view with these properties is computed from all rows of what it reads."""
    return properties.get(REFRESH_MODE) == RECOMPUTE or properties.get(POLICY, "").lower() == Policy.SNAPSHOT


def reads_rows_of(snapshot: Snapshot, view: Relation) -> frozenset[str]:
    """The relations of which a refresh of the view may ever read more than what changed."""
    definition = view.definition
    assert definition is not None
    if recomputes(definition.properties):
        return frozenset(view.depends_on)
    return states_read(plan_of(snapshot, view))


def keeps_refreshes_only(view: Relation) -> bool:
    """Whether its author gave up the csns between two refreshes."""
    return view.definition is not None and view.definition.properties.get(DETAIL) == EACH_REFRESH


def known_as(relation: Relation) -> Known:
    told = relation.definition.facts.get(TOLD_APART_BY, ()) if relation.definition is not None else ()
    return Known(relation.name, relation.schema, relation.constraints, tuple(tuple(key) for key in told))


def known_to(view: Relation, relation: Relation) -> Known:
    """A column that a view gained later is not there for the views above that were defined before."""
    if not relation.versions:
        return known_as(relation)
    then, known = relation.at(view.created).schema, known_as(relation)
    types = {column.name: column.type for column in then}
    there = (c for c in relation.schema if c.name in types and _goes_on(types[c.name], c.type))
    ordered = sorted(there, key=lambda column: then.names.index(column.name))
    return replace(known, schema=Schema(tuple(ordered)))


def _goes_on(old: str, new: str) -> bool:
    return old == new or widens(old, new)


def can_follow(snapshot: Snapshot, view: Relation, at: Csn) -> bool:
    """Whether the view's changes from its mark to a csn follow from those of what it reads, at any depth."""
    since = Interval(high_water_mark(snapshot, view), at)
    below = [snapshot.get(lower) for lower in view.depends_on]
    return plan_of(snapshot, view).mode is not Mode.WHOLE and all(
        lower.is_kept
        and lower.readable_from <= since.after
        and not any(csn in since for csn in lower.replaced)
        and (
            at <= high_water_mark(snapshot, lower)
            or (lower.kind is RelationKind.VIEW and can_follow(snapshot, lower, at))
        )
        for lower in below
    )


def covered(snapshot: Snapshot, relation: Relation) -> Interval:
    """From the oldest to the newest csn at which the relation can be read (the oldest included)."""
    if relation.kind is RelationKind.TABLE:
        pin = relation.pins.get(Part.DELTA)
        first = pin.after if pin is not None else relation.pins[Part.STATE].through
        return Interval(max(first, relation.readable_from), high_water_mark(snapshot, relation))
    return told_over(snapshot.newest, relation.newest)


def check_not_waiting(snapshot: Snapshot, relation: Relation, at: Csn, wish: str) -> None:
    """Refuse a csn after the one at which a table waits that the relation rests on."""
    table = snapshot.waits_for(relation)
    if table is None or table.waits_at is None or at <= table.waits_at:
        return
    raise OutOfReach(
        f"{wish}: {table.problem}",
        hint=f"The nearest csn in reach is {high_water_mark(snapshot, relation)}.",
        name=relation.name,
        table=table.name,
        csn=at,
        nearest=(high_water_mark(snapshot, relation),),
    )


def check_told(snapshot: Snapshot, names: Iterable[str], at: Csn, wish: str) -> None:
    """Refuse a csn at which a captured table that one of these rests on is not known, for whoever computes there."""
    for relation in map(snapshot.get, names):
        check_not_waiting(snapshot, relation, at, wish)
        for table in map(snapshot.get, snapshot.tables_of(relation)):
            _check_coarse(table, table.coarse, at, wish)


def check_reachable(snapshot: Snapshot, relation: Relation, at: Csn, *, rolling: bool = False) -> None:
    """Refuse a csn outside what is stored, or strictly inside a stretch whose changes are one."""
    reach = covered(snapshot, relation)
    what = f"{relation.kind.value} '{relation.name}'"
    wish = f"Cannot roll {what} to csn {at}" if rolling else f"Cannot read {what} at csn {at}"
    if at > reach.through:
        check_not_waiting(snapshot, relation, at, wish)
    if not reach.after <= at <= reach.through:
        raise OutOfReach(
            f"{wish}: its changes are stored from csn {reach.after} through {reach.through}.",
            hint="Refresh it to go further." if at > reach.through else f"The oldest csn in reach is {reach.after}.",
            name=relation.name,
            csn=at,
            oldest=reach.after,
            newest=reach.through,
        )
    _check_coarse(relation, coarse_of(snapshot.at(at), relation.at(at)), at, wish)


def _check_coarse(relation: Relation, stretches: Iterable[Interval], at: Csn, wish: str) -> None:
    for stretch in stretches:
        if stretch.strictly_inside(at):
            raise OutOfReach(
                f"{wish}: its changes over {stretch} are stored as one.",
                hint=f"The nearest csns in reach are {stretch.after} and {stretch.through}.",
                name=relation.name,
                csn=at,
                nearest=(stretch.after, stretch.through),
            )
