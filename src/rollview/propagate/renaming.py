"""A definition that differs from the present one only in the names or the order of its columns.

Law: what Spark told of the present definition (types, and that it reads the text as rollview does) holds for such a one
too, so Spark need not be asked again. It is one only if both texts are the same once the outputs are left out, if
these are the same values, and if no other part of the text names one of them, by a name or by a place, that is another
one in the other text: then nothing in it can mean something else.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from rollview.algebra.text import parse_one, render
from rollview.algebra.view import CHOICES, MISREAD, SETTLED, Outline, Propagation
from rollview.catalog import Definition, Relation, Snapshot
from rollview.core.schema import Column, Schema
from rollview.relations.former import sees_former_names
from rollview.relations.plans import plan_of

_NOT_SURE = (MISREAD, SETTLED, CHOICES)
_TOLD = ("input", "results")


def told_before(
    snapshot: Snapshot, old: Relation | None, made: Outline, query: str
) -> tuple[Schema, dict[str, Any]] | None:
    """The columns of the new definition and Spark's facts of it, if the present one tells them. ``query``: its text."""
    if old is None or old.pending is not None or not _reads_the_same(snapshot, old, made):
        return None
    assert old.definition is not None
    order = _order(old.definition, query)
    if order is None or any(fact in old.definition.facts for fact in _NOT_SURE):
        return None
    before = plan_of(snapshot, old).outline
    if len(order) != len(made.resolved.outputs) or _texts(before.probes) != _texts(made.probes):
        return None
    named = zip(made.resolved.outputs, order, strict=True)
    columns = tuple(Column(name, old.schema.columns[place].type) for name, place in named)
    return Schema(columns), {fact: old.definition.facts[fact] for fact in _TOLD if fact in old.definition.facts}


def _reads_the_same(snapshot: Snapshot, old: Relation, made: Outline) -> bool:
    """Whether all that it reads is what it was when Spark told the types of the present definition."""
    reads = [snapshot.get(relation.name) for relation in made.resolved.reads]
    if {relation.name for relation in reads} != set(old.depends_on) or sees_former_names(snapshot, old):
        return False
    since = [layout.csn for one in reads for layout in one.layouts[1:]]
    defined = [version.csn for one in reads for version in one.versions[1:]]
    return max([0, *since, *defined]) <= old.created


def _texts(probes: tuple[Propagation, exp.Select] | None) -> list[str]:
    return [] if probes is None else [render(query) for query in (probes[0].query, probes[1])]


def _order(old: Definition, query: str) -> list[int] | None:
    """For each column of the new text, which of the old one it is; None unless only names or the order differ."""
    match parse_one(old.query), parse_one(query):
        case exp.Select() as before, exp.Select() as after if not old.columns:
            return _order_of_outputs(before, after)
    return None


def _order_of_outputs(before: exp.Select, after: exp.Select) -> list[int] | None:
    if before.is_star:
        return None
    values = [item.unalias() for item in before.expressions]
    if any(values.count(item.unalias()) != 1 for item in after.expressions):
        return None
    if _without_outputs(before) != _without_outputs(after):
        return None
    order = [values.index(item.unalias()) for item in after.expressions]
    places = list(range(len(values)))
    if sorted(order) != places or _is_named_elsewhere(before, after, order == places):
        return None
    return order


def _without_outputs(query: exp.Select) -> exp.Expr:
    bare = query.copy()
    bare.set("expressions", [])
    return bare


def _is_named_elsewhere(before: exp.Select, after: exp.Select, in_order: bool) -> bool:
    """Whether a name that only one of the texts gives to an output, or both give to others, is anything else in either;
    or one of an output that has another place, before which it may mean something else."""
    # But for the outputs both texts are the same.
    if not in_order and _has_places(before):
        return True
    old, new = _given(before), _given(after)
    names = {name for name in old.keys() | new.keys() if not in_order or old.get(name) != new.get(name)}
    return bool(names & (_others(before) | _others(after)))


def _has_places(query: exp.Select) -> bool:
    """Whether it may name outputs by their places."""
    clauses = (query.args.get("group"), query.args.get("order"))
    items = (item for clause in clauses if clause is not None for item in clause.expressions)
    return any((item.this if isinstance(item, exp.Ordered) else item).is_number for item in items)


def _given(query: exp.Select) -> dict[str, exp.Expr]:
    """By name; those without one are under '', which nothing else is called."""
    return {item.alias.lower(): item.unalias() for item in query.expressions}


def _others(query: exp.Select) -> set[str]:
    outputs = {id(item.args["alias"]) for item in query.expressions if isinstance(item, exp.Alias)}
    return {one.name.lower() for one in query.find_all(exp.Identifier) if id(one) not in outputs}
