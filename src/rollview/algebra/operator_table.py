"""The table of operators.

Law: every operator is complete, and no two read the same words of SQL. Whoever breaks that cannot import this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rollview.algebra.operator import Operator, check_complete
from rollview.algebra.operators.aggregate import Aggregate
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.distinct import Distinct
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.operators.outer_join import OuterJoin
from rollview.algebra.operators.semi_join import SemiJoin
from rollview.algebra.operators.set_operation import SetOperation
from rollview.algebra.operators.union import Union

OPERATORS: tuple[type[Operator], ...] = (
    Leaf,
    Block,
    Union,
    SetOperation,
    Distinct,
    Aggregate,
    OuterJoin,
    SemiJoin,
)


def by_words(operators: Iterable[type[Operator]]) -> Mapping[str, type[Operator]]:
    found: dict[str, type[Operator]] = {}
    for operator in operators:
        for words in check_complete(operator).words:
            if found.setdefault(words, operator) is not operator:
                raise TypeError(f"{words} is read by two operators, {found[words].__name__} and {operator.__name__}")
    return found


_BY_WORDS = by_words(OPERATORS)


def find_operator(words: str) -> type[Operator] | None:
    """The operator that is written by these words."""
    return _BY_WORDS.get(words)
