"""How each operator of a view is maintained, told in the author's own words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.summary import Summary
from rollview.algebra.tree import Aggregate, Block, Distinct, Leaf, OuterJoin, Rel, Union, leaves

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class OperatorNote:
    operator: str
    how: str
    reason: str


def notes_of(
    rel: Rel, named: Sequence[str], not_linear: str | None, summary: Summary | None
) -> tuple[OperatorNote, ...]:
    """Top first. ``named``: relations in the text. ``not_linear``: why the topmost aggregate is not a summary."""
    found = list(_notes(rel))
    for i, (node, note) in enumerate(found):
        if isinstance(node, Aggregate | Distinct):
            if summary is not None:
                found[i] = (node, _kept_as_groups(node, note))
            elif not_linear is not None:
                found[i] = (node, OperatorNote(note.operator, "keyed", f"{_AGAIN}: {not_linear}"))
            break
    read = {leaf.relation for leaf in leaves(rel)}
    left_out = [OperatorNote(f"join of {name}", "left out", _SUPERFLUOUS) for name in named if name not in read]
    return (*(note for _, note in found), *left_out)


_SUPERFLUOUS = "keys prove that it changes nothing"
_AGAIN = "each touched group is aggregated again"


def _kept_as_groups(node: Aggregate | Distinct, note: OperatorNote) -> OperatorNote:
    if isinstance(node, Distinct):
        return OperatorNote(note.operator, "linear", "rows with their counts")
    calls = ", ".join(spelled(node.input, output.expression) for output in node.aggregates)
    return OperatorNote(note.operator, "linear", f"accumulators per group for {calls or 'the keys'}")


def _notes(node: Rel) -> Iterator[tuple[Rel, OperatorNote]]:
    note = _note(node)
    if note is not None:
        yield node, note
    for child in node.inputs:
        yield from _notes(child)


def _note(node: Rel) -> OperatorNote | None:
    if isinstance(node, Block):
        return _block_note(node)
    if isinstance(node, Union):
        return OperatorNote("UNION ALL", "linear", "the deltas of both sides")
    if isinstance(node, Distinct):
        return OperatorNote("DISTINCT", "keyed", "each touched row is looked at again")
    if isinstance(node, OuterJoin):
        pairs = ", ".join(f"{_column(node.left, left)} = {_column(node.right, right)}" for left, right in node.keys)
        return OperatorNote(f"{node.kind} JOIN", "keyed", f"the rows of each touched key are joined again ({pairs})")
    if isinstance(node, Aggregate):
        keys = ", ".join(_column(node.input, key) for key in node.keys)
        what = f"GROUP BY {keys}" if keys else "grand total"
        return OperatorNote(what, "keyed", f"{_AGAIN}: below another operator, where no groups are stored")
    return None


def _block_note(node: Block) -> OperatorNote | None:
    if len(node.sources) > 1:
        names = ", ".join(source.alias for source in node.sources)
        return OperatorNote(f"join of {names}", "linear", f"{len(node.sources)} terms, one per input")
    plain = all(isinstance(output.expression, exp.Column) for output in node.outputs)
    if plain and not node.where:
        return None
    where = " and ".join(spelled(node, condition, bare=True) for condition in node.where)
    what = "HAVING" if isinstance(node.sources[0].rel, Aggregate) else "WHERE"
    return OperatorNote(f"{what} {where}" if where else "expressions", "linear", "row by row")


def _column(rel: Rel, name: str) -> str:
    return spelled(rel, exp.Column(this=exp.to_identifier(name)))


def spelled(rel: Rel, expression: exp.Expr, *, bare: bool = False) -> str:
    """An expression over the columns of ``rel`` (``bare``: over what a block reads), as its author would write it."""
    origin = expression.copy().transform(lambda node: _origin(rel, node, bare))
    for part in origin.find_all(exp.Identifier):
        part.set("quoted", not _PLAIN.fullmatch(part.name))
    return origin.sql("spark")


def _origin(rel: Rel, node: exp.Expr, bare: bool) -> exp.Expr:
    """Where a column comes from, followed down to a table's own."""
    if not isinstance(node, exp.Column):
        return node
    if isinstance(rel, OuterJoin):
        side = rel.left if node.name in rel.left.columns else rel.right
        return _origin(side, exp.Column(this=exp.to_identifier(node.name)), False)
    if isinstance(rel, Aggregate):
        call = next((output.expression for output in rel.aggregates if output.name == node.name), node)
        return call.copy().transform(lambda inner: _origin(rel.input, inner, False))
    if not isinstance(rel, Block):
        return node
    if not bare:
        expression = next((output.expression for output in rel.outputs if output.name == node.name), None)
        return node if expression is None else expression.copy().transform(lambda inner: _origin(rel, inner, True))
    below = next((source.rel for source in rel.sources if source.alias == node.table), None)
    return node if below is None or isinstance(below, Leaf | Union | Distinct) else _below(below, node)


def _below(rel: Rel, node: exp.Column) -> exp.Expr:
    """Inside joins and aggregates names are ours; those of a subquery are the author's."""
    if isinstance(rel, Block):
        return node
    return _origin(rel, exp.Column(this=exp.to_identifier(node.name)), False)
