"""The types of columns, as far as the stored relations tell them, and when a comparison takes each value for itself.

Law: ``=`` casts sides of different types to a third, and that may take different values for one: 1 equals '1' and '01'.
So what holds of a key holds of what it is compared with only where both have one type, or both are integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from rollview.algebra.tree import Aggregate, Block, Distinct, Input, Leaf, OuterJoin, Rel, Union, walk

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TEXTS = ("char(", "varchar(")


def compared_one_to_one(sources: Iterable[Input], left: exp.Column, right: exp.Column) -> bool:
    """Whether ``left = right`` over the inputs holds for equal values only; when in doubt, no."""
    rels = {source.alias: source.rel for source in sources}
    ours, theirs = (type_of(rels[side.table], side.name) for side in (left, right))
    return ours is not None and (ours == theirs or (ours in _INTEGERS and theirs in _INTEGERS))


def grouped_by_maps(rel: Rel, top: Aggregate | None, types: Mapping[str, str]) -> str | None:
    """Why groups cannot be found again, if their keys hold maps. ``types``: those of the columns that ``top`` reads."""
    for node in (found for found in walk(rel) if isinstance(found, Aggregate)):
        for key in node.keys:
            if "map<" in ((types.get(key) if node is top else type_of(node.input, key)) or ""):
                return "GROUP BY: two maps cannot be compared, so a group with one in its key cannot be found again"
    return None


def type_of(rel: Rel, name: str) -> str | None:
    """The stored type of a column that comes up as it was stored; None of all others."""
    match rel:
        case Leaf():
            return _plain(rel.types.get(name))
        case Block():
            return _of_output(rel, name)
        case Union():
            at = rel.columns.index(name)
            found = {type_of(side, side.columns[at]) for side in rel.inputs}
            return found.pop() if len(found) == 1 else None
        case OuterJoin():
            return type_of(rel.left if name in rel.left.columns else rel.right, name)
        case Aggregate():
            return type_of(rel.input, name) if name in rel.keys else None
        case Distinct():
            return type_of(rel.input, name)


def _of_output(rel: Block, name: str) -> str | None:
    expression = next(output.expression for output in rel.outputs if output.name == name)
    if not isinstance(expression, exp.Column):
        return None
    source = next(source for source in rel.sources if source.alias == expression.table)
    return type_of(source.rel, expression.name)


def _plain(type_: str | None) -> str | None:
    """Text of limited length is compared as text."""
    return "string" if type_ is not None and type_.startswith(_TEXTS) else type_
