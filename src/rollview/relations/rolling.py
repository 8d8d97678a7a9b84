"""Views that are propagated table by table, each table at a cadence of its own.

Law (Salem et al., *How To Roll a Join*, over tables whose versions are kept): f_i is the csn up to which changes of
table i are in the view's delta, each as the box R_i over (f_i, y] with every other R_j@f_j. Boxes never overlap, so
nothing is compensated; the csn of a row is the largest of what it is made of. So the delta is complete up to the mark
min f, and what lies beyond is read by nobody until the mark has passed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rollview.algebra.operator import Operator, Upkeep, walk
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.product import Product
from rollview.algebra.view import Mode, ViewPlan
from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.interval import Csn
from rollview.core.states import Policy
from rollview.errors import Retryable, UsageError
from rollview.relations.algorithm import SWEEP, algorithm_of
from rollview.relations.cadence import PROPAGATE, Cadence, parse_turns
from rollview.relations.former import TABLES
from rollview.relations.marks import high_water_mark
from rollview.relations.plans import DETAIL, EACH_REFRESH, plan_of, recomputes


def turns_of(view: Relation) -> Mapping[str, Cadence] | None:
    """When changes of each table have their turn, by folded name; None where all have it together, or where nobody
    understands what is said. A table that is called otherwise by now may be said by the name in the view's text."""
    try:
        turns = None if view.definition is None else turns_in(view.definition.properties)
    except UsageError:
        return None
    if turns is None or view.definition is None:
        return None
    called = {old.lower(): new.lower() for old, new in view.definition.facts.get(TABLES, {}).items()}
    return {called.get(name, name): cadence for name, cadence in turns.items()}


def turns_in(properties: Mapping[str, str]) -> Mapping[str, Cadence] | None:
    return parse_turns(properties[PROPAGATE]) if PROPAGATE in properties else None


def places_of(snapshot: Snapshot, view: Relation) -> dict[str, Csn]:
    """How far the changes of each table that moves the view are in its delta."""
    mark, moved_by = high_water_mark(snapshot, view), plan_of(snapshot, view).moved_by
    return {name: _place(view, name, mark) for name in view.depends_on if name in moved_by}


def is_uneven(snapshot: Snapshot, view: Relation) -> bool:
    """Whether changes of some table lie in its delta beyond the mark."""
    mark = high_water_mark(snapshot, view) if view.places else 0
    return any(_place(view, name, mark) > mark for name in view.depends_on if name in view.places)


def _place(view: Relation, table: str, mark: Csn) -> Csn:
    return max(mark, view.places[table].csn) if table in view.places else mark


def reachable(snapshot: Snapshot, view: Relation) -> Csn:
    """The newest csn to which a view comes by itself: no further than those that go table by table have come."""
    held = [one for one in (view, *snapshot.below(view.name)) if one.kind is RelationKind.VIEW and turns_of(one)]
    return min([snapshot.moment.csn, *(high_water_mark(snapshot, one) for one in held)])


def check_even(snapshot: Snapshot, view: Relation, wish: str) -> None:
    if is_uneven(snapshot, view):
        raise Retryable(
            f"View '{view.name}' cannot be {wish}: its tables have come to different csns.",
            hint=f"Run: rollview refresh --select {view.name}",
            view=view.name,
        )


def check_turns(
    snapshot: Snapshot,
    name: str,
    plan: ViewPlan,
    properties: Mapping[str, str],
    policy: Policy,
) -> None:
    """Refuse a view that cannot be propagated table by table, if its property wants it."""
    turns = turns_in(properties)
    if turns is None:
        return
    reason = next(_reasons(snapshot, plan, properties, policy), None) or _misnamed(plan, turns)
    if reason is not None:
        raise UsageError(
            f"View '{name}' cannot be propagated table by table: {reason}.",
            hint=f"Say one cadence for all, as in '{PROPAGATE}' = 'every 5 seconds', or leave it out.",
            view=name,
        )


def _reasons(snapshot: Snapshot, plan: ViewPlan, properties: Mapping[str, str], policy: Policy) -> Iterator[str]:
    yield from not_linear(plan)
    views = [known.name for known in plan.reads if snapshot.get(known.name).kind is RelationKind.VIEW]
    yield from (f"it reads view '{view}', which has a mark of its own" for view in views)
    if policy is not Policy.DPDA:
        yield f"its policy is {policy}"
    if (algorithm := algorithm_of(properties)) != SWEEP:
        yield f"it is kept by {algorithm}, which takes the changes of all tables as they come"
    if recomputes(properties):
        yield "it is to be recomputed"
    if properties.get(DETAIL) == EACH_REFRESH:
        yield f"its {DETAIL} is {EACH_REFRESH}, which makes the changes of all tables one"


def not_linear(plan: ViewPlan) -> Iterator[str]:
    """Why the view's delta is not the sum of boxes; nothing if it is."""
    rel = plan.outline.rel
    if plan.mode is Mode.WHOLE or rel is None:
        yield f"it has no incremental form ({plan.outline.whole_because})"
        return
    if plan.summary is not None:
        yield "its groups are kept by the changes of all tables together"
    yield from (f"{_named(node)} is not linear" for node in walk(rel) if node.upkeep is not Upkeep.LINEAR)
    blocks = (node for node in walk(rel) if isinstance(node, Product))
    if any(not isinstance(source.rel, Leaf) for block in blocks for source in block.sources):
        yield "it joins the result of a subquery, and not tables alone"


def _named(node: Operator) -> str:
    note = node.note()
    return node.words[0] if note is None else note.operator


def _misnamed(plan: ViewPlan, turns: Iterable[str]) -> str | None:
    read = {known.name.lower(): known.name for known in plan.reads}
    unknown, unnamed = sorted(set(turns) - read.keys()), sorted(read.keys() - set(turns))
    if unknown:
        return f"it does not read '{unknown[0]}'"
    return f"{PROPAGATE} says nothing of '{read[unnamed[0]]}'" if unnamed else None
