"""A grouped view answers a query with the same groups, or with groups of its groups.

Law: where a query's keys are functions of the view's keys, each group of the query is a union of groups of the view.
What is kept as sums is added up; MIN and MAX of a union are those of the parts. A grand total of nothing is still a
row: its sums are zero, so that COUNT is 0 and SUM is NULL.
"""

from __future__ import annotations

from sqlglot import exp

from rollview.algebra.accumulators import value_over
from rollview.algebra.expressions import cast, column, number
from rollview.algebra.text import render
from rollview.matching.back import Held, with_fetched
from rollview.matching.express import StoredValues, kept_as_it_was
from rollview.matching.flat import Flat, Groups, Place
from rollview.matching.match import NoMatch, Overlap


def from_groups(overlap: Overlap, alias: str) -> Flat:
    """The query over the view's groups, called ``alias``. Raises ``NotStored`` or ``NoMatch``."""
    if overlap.query.groups is None:
        raise NoMatch("it is grouped, and the query is not")
    ours = overlap.flat.groups
    assert ours is not None
    if not ours.keys and (overlap.others or overlap.rest):
        raise NoMatch("it is one group, and the query asks for a part of it")
    if not ours.keys and overlap.query.groups.keys:
        # GROUP BY a constant has no group where there are no rows.
        raise NoMatch("it has a row of nothing, and the query's groups do not")
    held = _held_keys(overlap, alias)
    return with_fetched(overlap, lambda free: _over(overlap, alias, held, free), held)


def _held_keys(overlap: Overlap, alias: str) -> Held:
    view, groups = overlap.view, overlap.flat.groups
    assert groups is not None
    leaf_of = {place.alias: place.leaf for place in overlap.flat.places}
    keys = [key for key in groups.keys if kept_as_it_was(key, leaf_of)]
    if view.summary is not None:
        stored = zip(groups.keys, view.summary.keys, strict=True)
        return [(key, column(alias, name)) for key, name in stored if key in keys]
    plain, outputs = {key.unnest() for key in keys}, overlap.flat.outputs.items()
    return [(output, column(alias, view.columns[name])) for name, output in outputs if output.unnest() in plain]


def _over(overlap: Overlap, alias: str, held: Held, free: frozenset[str]) -> Flat:
    query, groups, ours = overlap.query, overlap.query.groups, overlap.flat.groups
    assert groups is not None
    assert ours is not None
    below, above = (StoredValues.of(held, normal, free) for normal in (overlap.own, overlap.final))
    same = not free and {overlap.final.of(key) for key in ours.keys} <= {overlap.final.of(key) for key in groups.keys}
    if overlap.view.summary is None and ours.having and not (same and _asks_as_much(overlap)):
        raise NoMatch("its HAVING leaves out groups that are asked for")
    calls = _CallsOverGroups(overlap, alias, above, same)

    def write(expression: exp.Expr) -> exp.Expr:
        return above.write(expression, groups.calls, calls.write)

    having = tuple(map(write, groups.having))
    where = tuple(map(below.write, overlap.rest))
    outputs = {name: write(output) for name, output in query.outputs.items()}
    place = Place(alias, overlap.view.leaf)
    further = tuple(map(above.write, groups.keys))
    if same:
        return Flat((place, *overlap.others), (*where, *having), outputs)
    # They count each row as often as it is there: another view may stand for the rest only where that stays so.
    written_calls = tuple(map(calls.write, groups.calls))
    return Flat((place, *overlap.others), where, outputs, Groups(further, written_calls, having))


def _asks_as_much(overlap: Overlap) -> bool:
    groups, ours = overlap.query.groups, overlap.flat.groups
    assert groups is not None
    assert ours is not None
    asked = {overlap.final.of(part) for part in groups.having}
    return all(overlap.final.of(part) in asked for part in ours.having)


def _argument(call: exp.Expr) -> exp.Expr:
    """What MIN or MAX is of; DISTINCT says nothing there."""
    of: exp.Expr = call.this
    return of.expressions[0] if isinstance(of, exp.Distinct) else of


class _CallsOverGroups:
    """Aggregate calls of the query, over what the view keeps of its groups. ``same``: its groups are the query's."""

    def __init__(self, overlap: Overlap, alias: str, keys: StoredValues, same: bool) -> None:
        self._overlap, self._alias, self._keys, self._same = overlap, alias, keys, same

    def write(self, call: exp.Expr) -> exp.Expr:
        found = self._kept_as_sums(call) if self._overlap.view.summary is not None else self._shown(call)
        if found is not None:
            return found
        if isinstance(call, exp.Min | exp.Max):
            # Of a key: how often it is there does not matter.
            value = self._keys.write(_argument(call))
            return value if self._same else type(call)(this=value)
        raise NoMatch(f"{render(call)} does not follow from what it keeps")

    def _place(self, call: exp.Expr) -> int | None:
        groups, wanted = self._overlap.flat.groups, self._overlap.final.of(call)
        assert groups is not None
        return next((i for i, one in enumerate(groups.calls) if self._overlap.final.of(one) == wanted), None)

    def _kept_as_sums(self, call: exp.Expr) -> exp.Expr | None:
        summary, place = self._overlap.view.summary, self._place(call)
        assert summary is not None
        if place is not None:
            value = list(summary.accumulated.values.values())[place]
        else:
            over_input = self._over_input(call)
            found = None if over_input is None else value_over(summary.accumulated, summary.types, over_input)
            if found is None:
                return None
            value = found
        types = dict(summary.sums)

        def total(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            kept = column(self._alias, node.name)
            if self._same:
                return kept
            zero = cast(number(0), types[node.name])
            return cast(exp.Coalesce(this=exp.Sum(this=kept), expressions=[zero]), types[node.name])

        return exp.Paren(this=value.copy().transform(total))

    def _over_input(self, call: exp.Expr) -> exp.Expr | None:
        """The call over the columns that the view groups; None if it does not group what the call is of."""
        groups, final = self._overlap.flat.groups, self._overlap.final
        assert groups is not None
        inputs = [(column(None, name), final.of(value)) for name, value in groups.inputs.items()]

        def seen(node: exp.Expr) -> exp.Expr:
            wanted = final.of(node)
            return next((name.copy() for name, value in inputs if value == wanted), node)

        written = call.copy().transform(seen)
        return None if any(one.table for one in written.find_all(exp.Column)) else written

    def _shown(self, call: exp.Expr) -> exp.Expr | None:
        place, groups = self._place(call), self._overlap.flat.groups
        assert groups is not None
        if place is None:
            return None
        wanted = groups.calls[place]
        name = next((name for name, output in self._overlap.flat.outputs.items() if output.unnest() == wanted), None)
        if name is None:
            return None
        stored = column(self._alias, self._overlap.view.columns[name])
        if self._same:
            return stored
        return type(call)(this=stored) if isinstance(call, exp.Min | exp.Max) else None
