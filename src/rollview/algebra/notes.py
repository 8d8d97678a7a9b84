"""How each operator of a view is maintained, told in the author's own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rollview.algebra.operator import Operator, OperatorNote
from rollview.algebra.operators.aggregate import AGAIN, Aggregate
from rollview.algebra.operators.distinct import Distinct
from rollview.algebra.operators.leaf import leaves
from rollview.algebra.spelling import spelled
from rollview.algebra.summary import Summary


def notes_of(
    rel: Operator, named: Sequence[str], not_linear: str | None, summary: Summary | None
) -> tuple[OperatorNote, ...]:
    """Top first. ``named``: relations in the text. ``not_linear``: why the topmost aggregate is not a summary."""
    found = list(_notes(rel))
    for i, (node, note) in enumerate(found):
        if isinstance(node, Aggregate | Distinct):
            if summary is not None:
                found[i] = (node, _kept_as_groups(node, note))
            elif not_linear is not None:
                found[i] = (node, OperatorNote(note.operator, "keyed", f"{AGAIN}: {not_linear}"))
            break
    read = {leaf.relation for leaf in leaves(rel)}
    left_out = [OperatorNote(f"join of {name}", "left out", _SUPERFLUOUS) for name in named if name not in read]
    return (*(note for _, note in found), *left_out)


_SUPERFLUOUS = "keys prove that it changes nothing"


def _kept_as_groups(node: Aggregate | Distinct, note: OperatorNote) -> OperatorNote:
    if isinstance(node, Distinct):
        return OperatorNote(note.operator, "linear", "rows with their counts")
    calls = ", ".join(spelled(output.expression, node.input.origin) for output in node.aggregates)
    return OperatorNote(note.operator, "linear", f"accumulators per group for {calls or 'the keys'}")


def _notes(node: Operator) -> Iterator[tuple[Operator, OperatorNote]]:
    note = node.note()
    if note is not None:
        yield node, note
    for child in node.inputs:
        yield from _notes(child)
