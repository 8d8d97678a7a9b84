"""How a view is maintained, told from its definition, and what that should cost, from sizes and history: no Spark, no
rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from rollview import results
from rollview.algebra.routes import asked_columns, routes
from rollview.algebra.script import TermNote
from rollview.algebra.text import render
from rollview.algebra.view import SETTLED, Mode, ViewPlan
from rollview.catalog import Part, Relation, RelationKind, Snapshot, SourceRecord, Step
from rollview.compensate.courier import Courier
from rollview.compensate.pacing import PropagationQueries
from rollview.compensate.sweep import SweepMaintainer
from rollview.consistency.join_view import JoinView
from rollview.costs.steps import costs_of
from rollview.errors import OutOfReach, UsageError
from rollview.publish.workplace import Workplace
from rollview.query.places import table_places
from rollview.relations.algorithm import (
    ROLLING,
    KeptView,
    algorithm_of,
    is_by_queries,
    is_compensated,
    join_of,
    machine_of,
)
from rollview.relations.cadence import WEAK
from rollview.relations.maintenance import asks_for
from rollview.relations.open_queries import goes_by_queries
from rollview.relations.plans import high_water_mark, plan_of
from rollview.relations.weak import is_weak
from rollview.sources.kinds import ask_statement
from rollview.sources.protocol import SourceTable


def explain_view(place: Workplace, name: str) -> results.Explanation:
    snapshot = place.snapshot()
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
        ways=tuple(_ways(place, snapshot, relation)),
        places=table_places(snapshot, relation),
    )
    if is_weak(relation):
        told = replace(told, promises=WEAK)
    asks = tuple(_asks(snapshot, relation, plan, place.catalog.sources()))
    if not asks:
        return told
    maintainer = _maintainer(snapshot, relation, plan)
    algorithm = ROLLING if goes_by_queries(snapshot, relation) else algorithm_of(relation.definition.properties)
    needs = tuple(sorted(need.value for need in maintainer.needs))
    return replace(
        told, asks=asks, algorithm=algorithm, promises=told.promises or str(maintainer.promises), needs=needs
    )


def _maintainer(snapshot: Snapshot, view: Relation, plan: ViewPlan) -> SweepMaintainer | Courier | PropagationQueries:
    assert view.definition is not None
    if is_by_queries(view) or goes_by_queries(snapshot, view):
        return PropagationQueries()
    if not is_compensated(view):
        return SweepMaintainer(JoinView((), ()))
    join = join_of(snapshot, KeptView(view.name, plan, view.definition.properties))
    return machine_of(view.definition.properties, join)


def _asks(
    snapshot: Snapshot, view: Relation, plan: ViewPlan, sources: Sequence[SourceRecord]
) -> Iterator[results.ExplainedAsk]:
    assert view.definition is not None
    of = {table.relation: (record, table.remote) for record in sources for table in record.tables}
    told = [table for record in sources for table in record.settings["tables"] if table.get("asked")]
    wanted = asks_for(plan, view.definition.properties, frozenset(table["relation"] for table in told)) & of.keys()
    if not wanted:
        return
    if is_compensated(view):
        asks = join_of(snapshot, KeptView(view.name, plan, view.definition.properties)).asks()
    else:
        asks = asked_columns(routes(plan, wanted), wanted)
    for name, equal in asks:
        record, remote = of[name]
        table = snapshot.get(name)
        text = ask_statement(record.kind, SourceTable(remote, table.schema), equal)
        yield results.ExplainedAsk(name, record.name, equal, text, now=not table.is_kept)


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
