"""What a view could become that is stopped, or whose table is gone, and the decision for one of that.

Law: a decision takes effect at the csn of the change, however late it is made: nothing beyond the csn before was
published. Nothing is recorded of proposals; they are found anew from the catalog and from what is declared by then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from rollview.algebra.used import columns_used
from rollview.catalog import CatalogWriter, Part, Relation, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.core.schema import Schema
from rollview.core.states import Extent, OnSchemaChange, ViewState
from rollview.errors import NotFound, UsageError
from rollview.evolve.candidates import Candidates, candidates
from rollview.evolve.views import Redefinition, on_schema_change
from rollview.propagate.derive import AdaptMode, derivation_of
from rollview.publish.workplace import Workplace
from rollview.relations.former import former_names, schema_going_on, seen_as, seen_tables
from rollview.relations.plans import plan_of
from rollview.results import ViewChanges, ViewDecided, ViewProposal
from rollview.sources.protocol import GONE
from rollview.sql.synchronize import Planned, Synchronizer, with_definition

_AS_IT_IS = "as it is"


@dataclass(frozen=True, slots=True)
class _Question:
    """A stopped view. ``now``: the catalog where it stopped; ``after``: what it reads, from csn ``at`` on. ``waits``: a
    view below it that is stopped too."""

    view: Relation
    at: Csn
    now: Snapshot
    after: Snapshot
    found: Candidates
    waits: str | None

    @property
    def goes_on(self) -> bool:
        """Whether nothing that it names is gone, so that it may go on as it is."""
        return not self.found.lost and self.waits is None

    @property
    def is_wider(self) -> bool:
        """Whether it may go on, but a column that it names has another type from then on."""
        if not self.goes_on:
            return False
        used, seen = columns_used(plan_of(self.now, self.view).outline.resolved), seen_tables(self.now, self.view)
        for table in (table for name in self.view.depends_on if (table := self.now.get(name)).layouts):
            names = used.get(table.name.lower(), frozenset())
            known = seen.get(table.name, table).schema
            if _is_wider(table, self.at, {column.stored for column in known if column.name.lower() in names}):
                return True
        return False


def _is_wider(table: Relation, at: Csn, used: Collection[str]) -> bool:
    """``used``: columns by their names in files, for the view may know them by others than they had at the csn."""
    present = {column.stored: column.type for column in table.schema}
    then = (column for column in table.schema_at(at - 1) if column.stored in used)
    return any(present.get(column.stored, column.type) != column.type for column in then)


def view_changes(place: Workplace, name: str) -> ViewChanges:
    snapshot = place.snapshot()
    view = snapshot.view(name)
    lost = _lost_tables(place, snapshot)
    if not _is_held(snapshot, view, lost):
        return ViewChanges(view.name, None, (), (), ())
    question = _question(place, snapshot, view, lost)
    if question.waits is not None:
        said = f"It reads view '{question.waits}', which is stopped: decide that one first."
        return ViewChanges(view.name, question.at, (), (), (said,))
    planned, refused = _planned(place, question)
    proposals = tuple(_proposal(place, question, number, one) for number, one in enumerate(planned, 1))
    return ViewChanges(view.name, question.at, question.found.lost, proposals, refused)


def decide_view(place: Workplace, name: str, number: int) -> ViewDecided:
    place.recover()
    view = place.snapshot().view(name)
    uppers = [upper.name for upper in place.snapshot().above(view.name)]
    leases = sorted(f"relation:{one}" for one in (view.name, *uppers))
    with place.catalog.lease("definitions", *leases) as lease:
        snapshot = place.snapshot()
        view = snapshot.view(name)
        lost = _lost_tables(place, snapshot)
        question = _question(place, snapshot, _held(snapshot, view, lost), lost)
        planned, _ = _planned(place, question)
        if not 1 <= number <= len(planned):
            raise NotFound(
                f"proposal for view '{view.name}' with the number",
                str(number),
                hint=f"See: rollview view changes {view.name}",
            )
        chosen = planned[number - 1]
        above = _above(place, snapshot, question, chosen)
        with place.catalog.write(lease) as writer:
            _write(writer, view.name, question.at, chosen.redefinition if chosen is not None else None)
            for upper, redefinition in above.items():
                _write(writer, upper, question.at, redefinition)
            for upper in (one for one in uppers if one not in above and _waits(snapshot, snapshot.get(one))):
                why = (
                    f"View '{upper}' reads view '{view.name}', which has another definition from csn {question.at} on."
                )
                writer.set_state(upper, ViewState.SCHEMA_CHANGED, why)
    for one in (view.name, *above):
        policy = place.policies.of(place.snapshot(), place.snapshot().get(one))
        if policy.in_commits:
            place.following.catch_up(one, policy)
    steps = (chosen.candidate.steps if chosen is not None else ()) or (_AS_IT_IS,)
    return ViewDecided(view.name, question.at, number, steps, tuple(above))


def resume_stopped(place: Workplace, names: Collection[str]) -> None:
    """Of views that a change at a source has stopped, those that follow: each takes the best that is declared and
    acceptable, or its own text with a column's wider type, from the csn of the change on. The others stay stopped, for
    somebody to decide; those whose table is gone wait for it."""
    for name in [view.name for view in place.snapshot().views() if view.name in names]:
        snapshot = place.snapshot()
        view, lost = snapshot.view(name), _lost_tables(place, snapshot)
        if not _is_held(snapshot, view, lost) or on_schema_change(view) is not OnSchemaChange.FOLLOW:
            continue
        question = _question(place, snapshot, view, lost)
        if (question.found.lost or question.is_wider) and _planned(place, question)[0]:
            decide_view(place, name, 1)


def _lost_tables(place: Workplace, snapshot: Snapshot) -> frozenset[str]:
    """Captured tables that wait because their source has none of their name."""
    waiting = [table for table in snapshot.tables() if table.waits_at is not None and table.source is not None]
    records = {name: place.catalog.source(name) for name in {table.source for table in waiting if table.source}}
    lost = {
        one.relation
        for record in records.values()
        for one in record.tables
        if one.remote in record.memory.get(GONE, ())
    }
    return frozenset(table.name for table in waiting if table.name in lost)


def _is_held(snapshot: Snapshot, view: Relation, lost: Collection[str]) -> bool:
    """Whether it is stopped, or waits where a table was that is gone."""
    table = snapshot.waits_for(view)
    at_it = table is not None and table.name in lost and view.pins[Part.DELTA].through == table.waits_at
    return _is_stopped(view) or (at_it and view.pending is None)


def _waits(snapshot: Snapshot, view: Relation) -> bool:
    return not _is_stopped(view) and snapshot.waits_for(view) is not None


def _held(snapshot: Snapshot, view: Relation, lost: Collection[str]) -> Relation:
    if not _is_held(snapshot, view, lost):
        raise UsageError(f"View '{view.name}' is not stopped: there is nothing to decide.", view=view.name)
    return view


def _write(writer: CatalogWriter, name: str, at: Csn, new: Redefinition | None) -> None:
    writer.set_state(name, None)
    if new is not None:
        writer.redefine_from(name, at, new.definition, new.schema, new.depends_on, new.why)


def _question(place: Workplace, snapshot: Snapshot, view: Relation, lost: Collection[str]) -> _Question:
    mark = view.pins[Part.DELTA].through
    now, after = snapshot.at(mark), without_tables(from_change(snapshot, mark + 1), lost)
    below = (snapshot.get(one) for one in view.depends_on if snapshot.get(one).kind is RelationKind.VIEW)
    waits = next((one.name for one in below if _is_held(snapshot, one, lost)), None)
    then = now.get(view.name)
    found = Candidates() if waits else candidates(now, then, after, place.substitutes)
    return _Question(then, mark + 1, now, after, found, waits)


def _is_stopped(relation: Relation) -> bool:
    return relation.state is ViewState.SCHEMA_CHANGED


def from_change(snapshot: Snapshot, csn: Csn) -> Snapshot:
    """What there is from a csn up to now: tables in the columns that they had then and have still, by the names of
    then; views as they are defined then, also those that have no rows of it yet."""
    then = snapshot.at(csn)
    relations = {one.name: _from_change(one, csn) for one in then.relations.values()}
    found = replace(then, relations=relations, moment=replace(then.moment, csn=csn))
    for view in then.views():
        pending = view.pending
        if pending is not None and pending.csn <= csn:
            new = Redefinition(pending.definition, pending.schema, pending.depends_on, pending.why)
            found = with_definition(found, view, new, pending.csn)
    return found


def without_tables(snapshot: Snapshot, lost: Collection[str]) -> Snapshot:
    """These are not there, as if they had no columns."""
    gone = {name: replace(snapshot.get(name), schema=Schema(())) for name in lost}
    return replace(snapshot, relations={**snapshot.relations, **gone})


def _from_change(one: Relation, csn: Csn) -> Relation:
    if one.kind is RelationKind.VIEW or not one.layouts:
        return one
    return seen_as(one, schema_going_on(one, csn))


def _planned(place: Workplace, question: _Question) -> tuple[tuple[Planned | None, ...], tuple[str, ...]]:
    """What can be decided for, in its order; None: go on as it is. And what cannot."""
    if question.goes_on and not question.is_wider:
        return (None,), ()
    synchronizer = Synchronizer(lambda: place.spark, place.substitutes, place.policies)
    tried = [
        synchronizer.planned(question.after, question.view, one, question.found.lost) for one in question.found.found
    ]
    refused = (*question.found.refused, *(one for one in tried if isinstance(one, str)))
    return tuple(one for one in tried if isinstance(one, Planned)), refused


def _proposal(place: Workplace, question: _Question, number: int, one: Planned | None) -> ViewProposal:
    view = question.view
    assert view.definition is not None
    if one is None:
        names = former_names(place.snapshot(), place.snapshot().get(view.name))
        steps = (_AS_IT_IS, *names)
        about = (view.definition.query, view.schema.names, AdaptMode.RENAMED.value)
        return ViewProposal(number, steps, Extent.EQUAL, *about, "it knows what it reads by its former names", {})
    found = derivation_of(question.now, view, (one.new.plan, one.new.schema))
    reads: tuple[str, ...] = (view.name,)
    if found.mode is AdaptMode.RECOMPUTED:
        reads = (*one.new.depends_on, view.name)
    sizes = {name: _rows(question.after.get(name)) for name in reads if found.mode is not AdaptMode.RENAMED}
    substituted = one.candidate.substitutes and found.mode is AdaptMode.RECOMPUTED
    why = "another table is read; the difference is stored" if substituted else found.why
    about = (one.candidate.text.strip(), one.new.schema.names, found.mode.value)
    return ViewProposal(number, one.candidate.steps or (_AS_IT_IS,), one.candidate.extent, *about, why, sizes)


def _rows(relation: Relation) -> int:
    return sum(pin.rows for part, pin in relation.pins.items() if part is not Part.BRIDGE)


def _above(
    place: Workplace, snapshot: Snapshot, question: _Question, chosen: Planned | None
) -> Mapping[str, Redefinition | None]:
    """Views that were stopped with this one and go on with it, bottom-up."""
    above = {upper.name for upper in snapshot.above(question.view.name)}
    held = [view for view in snapshot.views() if _is_stopped(view) or _waits(snapshot, view)]
    same_csn = [view.name for view in held if view.name in above and view.pins[Part.DELTA].through + 1 == question.at]
    still = {view.name for view in held} - {*same_csn, question.view.name}
    synchronizer = Synchronizer(lambda: place.spark, place.substitutes, place.policies)
    return synchronizer.follow(question.now, question.after, (question.view, chosen), same_csn, still)
