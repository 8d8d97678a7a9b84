"""Views that lose something get other definitions: view synchronization.

Law: from the csn of the change on, a view has the best definition that is declared and acceptable to it, or it stops at
the csn before. Its columns keep their names and their order, and their types are at most wider. Views above come after
what they read, so each knows what became of that. (Lee, Nica and Rundensteiner; Chen, Liu and Rundensteiner, 6.2.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rollview.algebra.definition import Declared
from rollview.algebra.extents import carried, is_monotone, together
from rollview.algebra.replacing import CannotRewrite
from rollview.algebra.used import columns_used
from rollview.catalog import DefinitionVersion, Relation, RelationKind, Snapshot
from rollview.core.schema import Schema
from rollview.core.states import Extent, OnSchemaChange
from rollview.core.substitutes import Substitute
from rollview.errors import RollviewError, UsageError
from rollview.evolve.candidates import Candidate, Candidates, candidates, check_substitute
from rollview.evolve.dispensable import wanted_extent
from rollview.evolve.views import AffectedViews, Redefinition, ViewOutcome, on_schema_change
from rollview.propagate import ViewToCreate, plan_create
from rollview.propagate.adapt import redefined_as
from rollview.publish.merge import GetSpark
from rollview.relations.plans import check_told, plan_of
from rollview.relations.policies import Policies, check_reads
from rollview.relations.versions import GOES_ON_FROM
from rollview.sql.redefine import definition_of
from rollview.types.spelling import widens

if TYPE_CHECKING:
    pass

CHANGES = "rollview view changes"


@dataclass(frozen=True, slots=True)
class Planned:
    """A candidate that Spark understands, with what it makes of the view."""

    candidate: Candidate
    new: ViewToCreate
    redefinition: Redefinition


@dataclass(slots=True)
class _After:
    """The catalog from the change on, as far as views have been looked at. ``extents``: of their rows beside those that
    they would have had."""

    snapshot: Snapshot
    extents: dict[str, Extent] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)


class Synchronizer:
    def __init__(self, spark: GetSpark, substitutes: Sequence[Substitute], policies: Policies) -> None:
        self._spark, self._substitutes, self._policies = spark, substitutes, policies

    def plan(self, now: Snapshot, after: Snapshot, affected: AffectedViews) -> tuple[ViewOutcome, ...]:
        self._refuse_wrong(now, after)
        so_far, found = _After(after), []
        for name in affected.touched:
            outcome = self._outcome(now, now.get(name), so_far, affected)
            if outcome is not None:
                found.append(outcome)
        return tuple(found)

    def follow(
        self,
        now: Snapshot,
        after: Snapshot,
        decided: tuple[Relation, Planned | None],
        uppers: Sequence[str],
        stopped: Iterable[str],
    ) -> Mapping[str, Redefinition | None]:
        """Of views above one that was decided for: those that go on with it, as they are or by another definition."""
        view, chosen = decided
        so_far = _After(after, stopped=dict.fromkeys(stopped, ""))
        if chosen is not None:
            _take(so_far, view, chosen)
        found: dict[str, Redefinition | None] = {}
        for name in uppers:
            outcome = self._outcome(now, now.get(name), so_far, AffectedViews())
            if outcome is None or outcome.redefined is not None:
                found[name] = None if outcome is None else outcome.redefined
        return found

    def _refuse_wrong(self, now: Snapshot, after: Snapshot) -> None:
        """What is declared for a table that is changed here, and lacks what it says."""
        there = {one.id: one for one in after.relations.values()}
        changed = {name.lower() for name, one in now.relations.items() if there.get(one.id) is not one}
        for one in self._substitutes:
            if one.of.lower() in changed and after.find(one.by) is not None:
                try:
                    check_substitute(after, one)
                except CannotRewrite as reason:
                    raise UsageError(
                        f"What is to stand for table '{one.of}' is not right: {one.place}: {reason}.",
                        hint="Correct it in rollview.yaml, then alter the table.",
                        place=one.place,
                    ) from None

    def _outcome(self, now: Snapshot, view: Relation, after: _After, affected: AffectedViews) -> ViewOutcome | None:
        waits = next((lower for lower in view.depends_on if lower in after.stopped), None)
        if waits is not None:
            return _stop(after, view, f"View '{view.name}' reads view '{waits}', which is stopped.")
        if view.name in affected.asking:
            return _stop(after, view, f"{affected.causes[view.name]} See: {CHANGES} {view.name}")
        found = candidates(now, view, after.snapshot, self._substitutes, after.extents)
        if not found.lost and view.name not in affected.causes and self._goes_on(now, view, after):
            return None
        if found.lost and on_schema_change(view) is not OnSchemaChange.FOLLOW:
            return _stop(after, view, f"View '{view.name}' asks before it follows. See: {CHANGES} {view.name}")
        planned, refused = self.first(after.snapshot, view, found)
        if planned is None:
            why = f"View '{view.name}' names what is gone: {', '.join(found.lost)}." if found.lost else _EXTENT
            return _stop(after, view, " ".join((why, *(f"Not {reason}." for reason in refused))))
        return _take(after, view, planned)

    def first(self, after: Snapshot, view: Relation, found: Candidates) -> tuple[Planned | None, tuple[str, ...]]:
        """The best that is acceptable; else why none is."""
        refused = list(found.refused)
        for one in found.found:
            planned = self.planned(after, view, one, found.lost)
            if isinstance(planned, Planned):
                return planned, ()
            refused.append(planned)
        return None, tuple(refused)

    def planned(self, after: Snapshot, view: Relation, one: Candidate, lost: Iterable[str]) -> Planned | str:
        """The candidate as a definition, or why it is none."""
        told = view.definition
        assert told is not None
        what = ", ".join(one.steps) or "as it is"
        if not (wanted := wanted_extent(told.properties)).allows(one.extent):
            return f"{what}: its rows would be {_SAID[one.extent]}, and 'rollview.extent' is '{wanted}'"
        declared = Declared(view.name, one.columns, told.comment, told.properties, one.text, True)
        try:
            new = plan_create(self._spark(), after, declared)
            policy = self._policies.of_new(after, view.name, told.properties, new.depends_on)
            check_reads(after, self._policies, view.name, policy, new.depends_on)
            _check_columns(view.schema, new.schema)
            check_told(after, new.depends_on, after.moment.csn, "it cannot be computed")
        except RollviewError as error:
            return f"{what}: {error.message.rstrip('.')}"
        definition = definition_of(new, view)
        definition = replace(definition, facts={**definition.facts, GOES_ON_FROM: _going_on(view.schema, new.schema)})
        gone = f"{', '.join(lost)} gone: " if lost else ""
        why = f"{gone}{what} ({one.extent})"
        return Planned(one, new, Redefinition(definition, new.schema, new.depends_on, why))

    def _goes_on(self, now: Snapshot, view: Relation, after: _After) -> bool:
        """Whether a view above goes on over what its lower views have become, without a definition of its own."""
        plan, then = plan_of(now, view), plan_of(after.snapshot, view)
        query = plan.outline.resolved.query
        below = together(after.extents.get(name, Extent.EQUAL) for name in view.depends_on)
        extent = carried(below, monotone=is_monotone(query))
        if view.definition is None or not wanted_extent(view.definition.properties).allows(extent):
            return False
        same_types = all(_keeps_types(now, after.snapshot, view, lower) for lower in view.depends_on)
        if not same_types or (plan.mode, plan.hidden) != (then.mode, then.hidden):
            return False
        after.extents[view.name] = extent
        return True


_SAID = {
    Extent.EQUAL: "equal",
    Extent.SUBSET: "a part of those that it has",
    Extent.SUPERSET: "more than those that it has",
    Extent.ANY: "others",
}
_EXTENT = "What it reads has other rows from then on."


def _stop(after: _After, view: Relation, why: str) -> ViewOutcome:
    after.stopped[view.name] = why
    return ViewOutcome(view.name, stopped=why)


def _take(after: _After, view: Relation, planned: Planned) -> ViewOutcome:
    after.extents[view.name] = planned.candidate.extent
    after.snapshot = with_definition(after.snapshot, view, planned.redefinition, after.snapshot.moment.csn)
    return ViewOutcome(view.name, planned.redefinition)


def with_definition(snapshot: Snapshot, view: Relation, new: Redefinition, csn: int) -> Snapshot:
    """The catalog once the view has rows of its new definition."""
    now = datetime.now(UTC)
    assert view.definition is not None
    former = view.versions or (DefinitionVersion(0, view.definition, view.schema, view.depends_on, "", now),)
    version = DefinitionVersion(csn, new.definition, new.schema, new.depends_on, new.why, now, anew=True)
    versions = (*(one for one in former if not one.pending), version)
    later = replace(redefined_as(view, version), versions=versions, pins=view.pins, state=None, problem=None)
    return replace(snapshot, relations={**snapshot.relations, view.name: later})


def _check_columns(old: Schema, new: Schema) -> None:
    """Names and their order stay, types only widen."""
    names = [column.name for column in old]
    places = [names.index(column.name) if column.name in names else -1 for column in new]
    if -1 in places or places != sorted(places):
        raise UsageError("its columns would have other names, or another order")
    for column, place in zip(new, places, strict=True):
        before = old.columns[place].type
        if column.type != before and not widens(before, column.type):
            raise UsageError(
                f"its column '{column.name}' would be {column.type.upper()}, and is {before.upper()}",
            )


def _going_on(old: Schema, new: Schema) -> dict[str, str]:
    return {column.name: column.name for column in new if old.find(column.name) is not None}


def _keeps_types(now: Snapshot, after: Snapshot, view: Relation, lower: str) -> bool:
    """Of columns of a lower view that a view names."""
    before, then = now.get(lower), after.find(lower)
    if before.kind is RelationKind.TABLE or then is None:
        return True
    used = columns_used(plan_of(now, view).outline.resolved).get(lower.lower(), frozenset())
    wanted = [column for column in before.schema if column.name.lower() in used]
    found = [(column, then.schema.find(column.name)) for column in wanted]
    return all(other is not None and other.type == column.type for column, other in found)
