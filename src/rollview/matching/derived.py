"""The groups of a definition, from the groups that are stored by another, and from rows that those lack.

Law: accumulators are sums over rows. Where both definitions join the same tables, the rows of the new one are old rows,
whole groups of them, and others: new groups are the sums of old ones and of what the others add. A sum that no old
group tells is added up over the rows, beside those that are told. What is not proven so is not derived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rollview.algebra.accumulators import ROWS, Accumulator
from rollview.algebra.expressions import all_of, bag_union, big, cast, column, named, number, select, table
from rollview.algebra.script import InputForm, Script
from rollview.algebra.summary import Summary, first_groups, groups_over
from rollview.core.names import COUNT
from rollview.matching.branches import Branch, branches, change, is_union
from rollview.matching.express import StoredValues, kept_as_it_was
from rollview.matching.flat import Flat, NotFlat, NotStored, flatten
from rollview.matching.implied import implied
from rollview.matching.match import NoMatch
from rollview.matching.normal import Normal, parts_of
from rollview.matching.remainder import lacking_any
from rollview.matching.rewrite import over_rows, written

_ONLY_NEARLY_ADDED = ("float", "double")


@dataclass(frozen=True, slots=True)
class DerivedGroups:
    """``inputs``: what is read beside the stored groups, and in which form."""

    query: exp.Select
    why: str
    inputs: frozenset[tuple[str, InputForm]] = frozenset()


def derived_groups(old: Summary, new: Summary, groups: str) -> DerivedGroups:
    """The new groups over the old ones, which are in ``groups``. Raises ``NoMatch`` with the reason if they do not tell
    the new ones."""
    if not new.keys:
        raise NoMatch("a grand total is there without any group")
    if not old.keys:
        raise NoMatch("a grand total is a group without any row")
    if any(one.type in _ONLY_NEARLY_ADDED for one in _added(new)):
        raise NoMatch("floating numbers are not added up in another order")
    try:
        if is_union(old.input) or is_union(new.input):
            return _by_branches(old, new, groups)
        below, above = _over_the_same(flatten(old.input), flatten(new.input))
        return _by_rows(_Compared(old, new, below, above), groups)
    except NotFlat as operator:
        raise NoMatch(f"{operator} is not compared") from None


@dataclass(frozen=True, slots=True)
class _Compared:
    """Two summaries, and what they group, with the same tables under the same names."""

    old: Summary
    new: Summary
    below: Flat
    above: Flat

    @property
    def normal(self) -> Normal:
        return Normal(self.below)

    def told(self) -> dict[str, str]:
        """The stored sum that each of the wanted ones is, where there is one."""
        normal, found = self.normal, {}
        for wanted in _added(self.new):
            term = normal.of(_over_tables(wanted.term, self.above.outputs))
            for one in _added(self.old):
                if one.type == wanted.type and normal.of(_over_tables(one.term, self.below.outputs)) == term:
                    found[wanted.name] = one.name
        return found

    def conditions(self) -> tuple[list[exp.Expr], list[exp.Expr]]:
        """New conditions that not every old row has, and old ones that not every new row has."""
        new, old = parts_of(self.above.where), parts_of(self.below.where)
        leaf_of = {place.alias: place.leaf for place in self.below.places}
        below, above = self.normal, Normal(self.above)
        old_below, new_above = [below.of(part) for part in old], [above.of(part) for part in new]
        return (
            [part for part in new if not implied(below.of(part), old_below, leaf_of)],
            [part for part in old if not implied(above.of(part), new_above, leaf_of)],
        )


def _by_rows(both: _Compared, groups: str) -> DerivedGroups:
    narrower, wider = both.conditions()
    told = both.told()
    lacking = [one for one in _added(both.new) if one.name not in told]
    stored = _stored_groups(both, groups, narrower, told)
    if wider and lacking:
        raise NoMatch("its groups leave out rows that are asked for, and a sum")
    if wider:
        return _with_rows(both, stored, wider)
    if lacking:
        return _with_sums(both, stored, lacking)
    return DerivedGroups(_together(both.new, [stored]), "its groups tell the new ones")


def _stored_groups(both: _Compared, groups: str, narrower: Sequence[exp.Expr], told: Mapping[str, str]) -> exp.Select:
    """Old groups in the columns of the new ones, a sum that they do not tell as zero."""
    normal, below, above = both.normal, both.below, both.above
    leaf_of = {place.alias: place.leaf for place in below.places}
    held = [(below.outputs[key], column(None, key)) for key in both.old.keys]
    known = StoredValues.of([one for one in held if kept_as_it_was(one[0], leaf_of)], normal, frozenset())
    try:
        keys = [named(known.write(above.outputs[key]), key) for key in both.new.keys]
        rest = [known.write(part) for part in narrower]
    except NotStored as missing:
        raise NoMatch(f"its groups do not tell {missing.column.name}") from None
    sums = [
        named(column(None, told[one.name]) if one.name in told else _zero(one), one.name) for one in _added(both.new)
    ]
    query = select(*keys, column(None, ROWS), *sums).from_(table(groups))
    return query.where(all_of(rest), copy=False) if rest else query


def _with_rows(both: _Compared, stored: exp.Select, wider: Sequence[exp.Expr]) -> DerivedGroups:
    """The rows that the old conditions left out are grouped, and added."""
    rest = lacking_any(wider, {place.alias: place.leaf for place in both.below.places})
    if rest is None:
        raise NoMatch("its groups leave out rows that are asked for")
    more = replace(both.above, where=(*both.above.where, rest))
    parts = [stored, groups_over(both.new, _counted(more))]
    return DerivedGroups(_together(both.new, parts), "only rows that it left out are read", _inputs(more))


def _with_sums(both: _Compared, stored: exp.Select, lacking: Sequence[Accumulator]) -> DerivedGroups:
    """The rows are grouped for these sums alone."""
    alone = replace(both.new, accumulated=replace(both.new.accumulated, accumulators=tuple(lacking)))
    names = {one.name for one in lacking}
    sums = [column(None, one.name) if one.name in names else named(_zero(one), one.name) for one in _added(both.new)]
    keys = [column(None, key) for key in both.new.keys]
    added = groups_over(alone, _counted(both.above)).subquery("a")
    parts = [stored, select(*keys, named(big(0), ROWS), *sums).from_(added)]
    return DerivedGroups(_together(both.new, parts), "only sums that it lacks are computed", _inputs(both.above))


def _by_branches(old: Summary, new: Summary, groups: str) -> DerivedGroups:
    """Groups of sides that come are added, of those that go are taken away."""
    about = [(one.schema, one.types, one.input.columns, [sum_.term for sum_ in _added(one)]) for one in (old, new)]
    if about[0] != about[1]:
        raise NoMatch("sides of a UNION ALL are compared where groups and sums stay")
    if any(type_ in _ONLY_NEARLY_ADDED or "collate" in type_ for type_ in new.key_types):
        raise NoMatch("its keys are not told apart as rows are")
    found = change(branches(old.input), branches(new.input))
    script = Script()
    sums = [name for name, _ in new.sums]
    columns = [column(None, name) for name in (*new.keys, *sums)]
    parts: list[exp.Query] = [select(*columns).from_(table(groups))]
    for summary, side, sign in (*((new, one, 1) for one in found.added), *((old, one, -1) for one in found.removed)):
        parts.append(_side(summary, side, sign, script))
    return DerivedGroups(_together(new, parts), "only sides that come or go are computed", frozenset(script.inputs))


def _side(summary: Summary, side: Branch, sign: int, used: Script) -> exp.Query:
    script = Script()
    made = first_groups(replace(summary, input=side.alone), script)
    used.inputs |= script.inputs
    keys = [column(None, key) for key in summary.keys]
    sums = [_times(sign, name) for name, _ in summary.sums]
    return select(*keys, *sums).from_(made.subquery("s"))


def _times(sign: int, name: str) -> exp.Expr:
    return column(None, name) if sign > 0 else named(exp.Neg(this=column(None, name)), name)


def _together(new: Summary, parts: Sequence[exp.Query]) -> exp.Select:
    """The groups of all parts together."""
    keys = [column(None, key) for key in new.keys]
    sums = [named(cast(exp.Sum(this=column(None, name)), type_), name) for name, type_ in new.sums]
    query = select(*keys, *sums).from_(bag_union(parts).subquery("u")).group_by(*keys, copy=False)
    there = exp.NEQ(this=exp.Sum(this=column(None, ROWS)), expression=number(0))
    return query.having(there, copy=False)


def _counted(flat: Flat) -> exp.Select:
    return over_rows(written(flat).select(named(big(1), COUNT), copy=False))


def _inputs(flat: Flat) -> frozenset[tuple[str, InputForm]]:
    return frozenset((place.leaf.relation, "rows") for place in flat.places)


def _zero(one: Accumulator) -> exp.Expr:
    return cast(number(0), one.type)


def _over_the_same(old: Flat, new: Flat) -> tuple[Flat, Flat]:
    """Both, with the same tables under the same names."""
    if old.groups is not None or new.groups is not None:
        raise NoMatch("groups of groups are not compared")
    named_by = {place.leaf.relation: place.alias for place in old.places}
    reads = sorted(place.leaf.relation for place in new.places)
    if len(named_by) < len(old.places) or reads != sorted(named_by):
        raise NoMatch("it reads other tables")
    return old, new.renamed({place.alias: named_by[place.leaf.relation] for place in new.places})


def _added(summary: Summary) -> tuple[Accumulator, ...]:
    return tuple(summary.accumulated.accumulators)


def _over_tables(term: exp.Expr, outputs: Mapping[str, exp.Expr]) -> exp.Expr:
    def value(node: exp.Expr) -> exp.Expr:
        return exp.Paren(this=outputs[node.name].copy()) if isinstance(node, exp.Column) else node

    return term.copy().transform(value)
