"""How a view is maintained, told from its definition alone: no Spark, no data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rollview import results
from rollview.algebra.routes import asked_columns, routes
from rollview.algebra.script import TermNote
from rollview.algebra.text import render
from rollview.algebra.view import SETTLED, Mode, ViewPlan
from rollview.catalog import Relation, RelationKind, Snapshot, SourceRecord
from rollview.compensate.sweep import SweepMaintainer
from rollview.errors import UsageError
from rollview.relations.maintenance import SWEEP, asks_for
from rollview.relations.plans import plan_of
from rollview.sources.kinds import ask_statement
from rollview.sources.protocol import SourceTable


def explain_view(snapshot: Snapshot, name: str, sources: Sequence[SourceRecord] = ()) -> results.Explanation:
    """``sources``: all that the warehouse has."""
    relation = snapshot.get(name)
    if relation.kind is not RelationKind.VIEW:
        raise UsageError(f"'{relation.name}' is a table; only views are maintained.")
    plan = plan_of(snapshot, relation)
    assert relation.definition is not None
    sql, terms = _propagation(plan, relation.definition.facts.get(SETTLED, relation.definition.query))
    told = results.Explanation(
        relation.name,
        plan.mode.shown,
        tuple(results.ExplainedOperator(note.operator, note.how, note.reason) for note in plan.operators),
        tuple(results.ExplainedTerm(term.relation, term.kept, term.reason) for term in terms),
        sql,
    )
    asks = tuple(_asks(snapshot, relation, plan, sources))
    if not asks:
        return told
    needs = tuple(sorted(need.value for need in SweepMaintainer.needs))
    return replace(told, asks=asks, algorithm=SWEEP, promises=SweepMaintainer.promises.name.lower(), needs=needs)


def _asks(
    snapshot: Snapshot, view: Relation, plan: ViewPlan, sources: Sequence[SourceRecord]
) -> Iterator[results.ExplainedAsk]:
    assert view.definition is not None
    of = {table.relation: (record, table.remote) for record in sources for table in record.tables}
    told = [table for record in sources for table in record.settings["tables"] if table.get("asked")]
    wanted = asks_for(plan, view.definition.properties, frozenset(table["relation"] for table in told)) & of.keys()
    if not wanted:
        return
    for name, equal in asked_columns(routes(plan, wanted), wanted):
        record, remote = of[name]
        table = snapshot.get(name)
        text = ask_statement(record.kind, SourceTable(remote, table.schema), equal)
        yield results.ExplainedAsk(name, record.name, equal, text, now=not table.is_kept)


def _propagation(plan: ViewPlan, written: str) -> tuple[str, tuple[TermNote, ...]]:
    """``written``: the author's query, which is what runs where there is no delta."""
    if plan.mode is Mode.WHOLE:
        return written, ()
    propagation = plan.propagation()
    return render(propagation.query, pretty=True), propagation.terms
