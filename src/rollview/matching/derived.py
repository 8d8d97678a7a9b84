"""The groups of a definition, from the groups that are stored by another.

Law: accumulators are sums over rows. Where both definitions join the same tables, and the new one has the old one's
conditions and more that look at old keys alone, each new group is a union of old groups, and its accumulators are the
sums of theirs. What is not proven so is not derived.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from rollview.algebra.accumulators import ROWS, Accumulator
from rollview.algebra.expressions import all_of, cast, column, named, select, table
from rollview.algebra.summary import Summary
from rollview.matching.express import StoredValues, kept_as_it_was
from rollview.matching.flat import Flat, NotFlat, NotStored, flatten
from rollview.matching.match import NoMatch
from rollview.matching.normal import Normal, parts_of

_ONLY_NEARLY_ADDED = ("float", "double")


def derived_groups(old: Summary, new: Summary, groups: str) -> exp.Select:
    """The new groups over the old ones, which are in ``groups``. Raises ``NoMatch`` with the reason if they do not tell
    the new ones."""
    if not new.keys:
        raise NoMatch("a grand total is there without any group")
    if not old.keys:
        raise NoMatch("a grand total is a group without any row")
    try:
        below, above = _over_the_same(flatten(old.input), flatten(new.input))
    except NotFlat as operator:
        raise NoMatch(f"{operator} is not compared") from None
    normal = Normal(below)
    leaf_of = {place.alias: place.leaf for place in below.places}
    held = [(below.outputs[key], column(None, key)) for key in old.keys if kept_as_it_was(below.outputs[key], leaf_of)]
    stored = StoredValues.of(held, normal, frozenset())
    try:
        keys = [stored.write(above.outputs[key]) for key in new.keys]
        rest = [stored.write(part) for part in _rest(below, above, normal)]
    except NotStored as missing:
        raise NoMatch(f"its groups do not tell {missing.column.name}") from None
    if any(key.find(exp.Column) is None for key in keys):
        # A number there would be the place of a column.
        raise NoMatch("a constant is not grouped by")
    sums = [_summed(ROWS, "bigint", ROWS), *(_sum_of(one, old, below, above, normal) for one in _added(new))]
    query = select(*(named(key, name) for key, name in zip(keys, new.keys, strict=True)), *sums).from_(table(groups))
    query = query.where(all_of(rest), copy=False) if rest else query
    return query.group_by(*(key.copy() for key in keys), copy=False)


def _over_the_same(old: Flat, new: Flat) -> tuple[Flat, Flat]:
    """Both, with the same tables under the same names."""
    if old.groups is not None or new.groups is not None:
        raise NoMatch("groups of groups are not compared")
    named_by = {place.leaf.relation: place.alias for place in old.places}
    reads = sorted(place.leaf.relation for place in new.places)
    if len(named_by) < len(old.places) or reads != sorted(named_by):
        raise NoMatch("it reads other tables")
    return old, new.renamed({place.alias: named_by[place.leaf.relation] for place in new.places})


def _rest(old: Flat, new: Flat, normal: Normal) -> list[exp.Expr]:
    """The new conditions that the old groups do not see to."""
    seen_to, wanted = ({normal.of(part) for part in parts_of(flat.where)} for flat in (old, new))
    if not seen_to <= wanted:
        raise NoMatch("its groups leave out rows that are asked for")
    return [part for part in parts_of(new.where) if normal.of(part) not in seen_to]


def _added(summary: Summary) -> tuple[Accumulator, ...]:
    return tuple(summary.accumulated.accumulators)


def _sum_of(wanted: Accumulator, old: Summary, below: Flat, above: Flat, normal: Normal) -> exp.Expr:
    if wanted.type in _ONLY_NEARLY_ADDED:
        raise NoMatch("floating numbers are not added up in another order")
    term = normal.of(_over_tables(wanted.term, above.outputs))
    for one in _added(old):
        if one.type == wanted.type and normal.of(_over_tables(one.term, below.outputs)) == term:
            return _summed(one.name, wanted.type, wanted.name)
    raise NoMatch("its groups do not tell a sum that is asked for")


def _summed(name: str, type_: str, called: str) -> exp.Expr:
    return named(cast(exp.Sum(this=column(None, name)), type_), called)


def _over_tables(term: exp.Expr, outputs: Mapping[str, exp.Expr]) -> exp.Expr:
    def value(node: exp.Expr) -> exp.Expr:
        return exp.Paren(this=outputs[node.name].copy()) if isinstance(node, exp.Column) else node

    return term.copy().transform(value)
