"""How a view is maintained, told from its definition alone: no Spark, no data."""

from __future__ import annotations

from rollview import results
from rollview.algebra.script import TermNote
from rollview.algebra.text import render
from rollview.algebra.view import SETTLED, Mode, ViewPlan
from rollview.catalog import RelationKind, Snapshot
from rollview.errors import UsageError
from rollview.relations.plans import plan_of


def explain_view(snapshot: Snapshot, name: str) -> results.Explanation:
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
    )


def _propagation(plan: ViewPlan, written: str) -> tuple[str, tuple[TermNote, ...]]:
    """``written``: the author's query, which is what runs where there is no delta."""
    if plan.mode is Mode.WHOLE:
        return written, ()
    propagation = plan.propagation()
    return render(propagation.query, pretty=True), propagation.terms
