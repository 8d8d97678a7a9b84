"""How a view is maintained, told from its definition, and what that should cost, from sizes and history: no Spark, no
rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from rollview import results
from rollview.algebra.script import TermNote
from rollview.algebra.text import render
from rollview.algebra.view import SETTLED, Mode, ViewPlan
from rollview.catalog import Part, Relation, RelationKind, Snapshot, Step
from rollview.costs.steps import costs_of
from rollview.errors import OutOfReach, UsageError
from rollview.publish.workplace import Workplace
from rollview.relations.plans import high_water_mark, plan_of


def explain_view(place: Workplace, name: str) -> results.Explanation:
    snapshot = place.snapshot()
    relation = snapshot.get(name)
    if relation.kind is not RelationKind.VIEW:
        raise UsageError(f"'{relation.name}' is a table; only views are maintained.")
    plan = plan_of(snapshot, relation)
    assert relation.definition is not None
    sql, terms = _propagation(plan, relation.definition.facts.get(SETTLED, relation.definition.query))
    return results.Explanation(
        relation.name,
        plan.mode.shown,
        tuple(results.ExplainedOperator(note.operator, note.how, note.reason) for note in plan.operators),
        tuple(results.ExplainedTerm(term.relation, term.kept, term.reason) for term in terms),
        sql,
        tuple(_ways(place, snapshot, relation)),
    )


def _ways(place: Workplace, snapshot: Snapshot, view: Relation) -> Iterator[results.ExpectedWay]:
    """What is stored, how the newest csn is read without a refresh, and what a refresh takes."""
    costs, extent, newest = costs_of(place.catalog, place.data, snapshot), view.pins[Part.EXTENT], snapshot.moment.csn
    for csn in dict.fromkeys((extent.through, newest)):
        # Where rows of tables are not kept, a view cannot be read beyond its mark.
        with suppress(OutOfReach):
            yield from (results.ExpectedWay(one.way, csn, one.seconds) for one in costs.ways(view.name, csn))
    mark = high_water_mark(snapshot, view)
    if mark < newest:
        last = place.catalog.last_step(view.name, "propagate")
        yield results.ExpectedWay("propagate", newest, costs.refreshing(view.name, newest).by_deltas, *_told(last))
    if mark != extent.through:
        last = place.catalog.last_step(view.name, "apply")
        yield results.ExpectedWay("roll", mark, costs.rolling(view.name, mark), *_told(last))


def _told(step: Step | None) -> tuple[float | None, float | None]:
    profile = {} if step is None else step.profile
    return profile.get("expected_seconds"), profile.get("seconds")


def _propagation(plan: ViewPlan, written: str) -> tuple[str, tuple[TermNote, ...]]:
    """``written``: the author's query, which is what runs where there is no delta."""
    if plan.mode is Mode.WHOLE:
        return written, ()
    propagation = plan.propagation()
    return render(propagation.query, pretty=True), propagation.terms
