"""The types of columns, as far as the stored relations tell them, and when a comparison takes each value for itself.

Law: ``=`` casts sides of different types to a third, and that may take different values for one: 1 equals '1' and '01'.
So what holds of a key holds of what it is compared with only where both have one type, or both are integers.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from rollview.algebra.operator import Input

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TEXTS = ("char(", "varchar(")


def compared_one_to_one(sources: Iterable[Input], left: exp.Column, right: exp.Column) -> bool:
    """Whether ``left = right`` over the inputs holds for equal values only; when in doubt, no."""
    rels = {source.alias: source.rel for source in sources}
    ours, theirs = (rels[side.table].type_of(side.name) for side in (left, right))
    return ours is not None and (ours == theirs or (ours in _INTEGERS and theirs in _INTEGERS))


def compared_as(type_: str | None) -> str | None:
    """Text of limited length is compared as text."""
    return "string" if type_ is not None and type_.startswith(_TEXTS) else type_
