"""The table of operators refuses what is incomplete when it is made, not when a user meets it."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import pytest

from rollview.algebra import operators
from rollview.algebra.operator import Operator
from rollview.algebra.operator_table import OPERATORS, by_words, find_operator
from rollview.algebra.operators.distinct import Distinct
from rollview.algebra.operators.outer_join import OuterJoin

PARTS = (
    "words", "upkeep", "renames", "build", "inputs", "columns", "reads_states", "pruned", "kinds_of", "type_of",
    "origin", "note", "delta", "old", "timed",
)  # fmt: skip


def distinct_without(part: str) -> Any:
    kept = {name: value for name, value in vars(Distinct).items() if name in PARTS and name != part}
    return type("Partial", (), kept)


@pytest.mark.parametrize("part", PARTS)
def test_an_operator_that_lacks_a_part_is_refused_with_its_name(part: str) -> None:
    with pytest.raises(TypeError, match=rf"the operator Partial lacks {part}$"):
        by_words([distinct_without(part)])


def test_everything_that_an_operator_is_asked_for_is_checked() -> None:
    asked = {name for name in (*Operator.__annotations__, *vars(Operator)) if not name.startswith("_")}
    assert asked == set(PARTS)


def test_two_operators_with_the_same_words_are_refused() -> None:
    twin: Any = type("Twin", (Distinct,), {})
    with pytest.raises(TypeError, match="DISTINCT is read by two operators, Distinct and Twin"):
        by_words([Distinct, twin])


def test_an_operator_is_found_by_its_words() -> None:
    assert find_operator("FULL JOIN") is OuterJoin
    assert find_operator("ASOF JOIN") is None


def test_every_file_of_the_folder_is_one_operator_of_the_table() -> None:
    files = [f"{operators.__name__}.{module.name}" for module in pkgutil.iter_modules(operators.__path__)]
    assert sorted(files) == sorted(operator.__module__ for operator in OPERATORS)
    for operator in OPERATORS:
        assert getattr(import_module(operator.__module__), operator.__name__) is operator
