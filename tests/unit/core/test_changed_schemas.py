"""Columns and constraints that changed since they were born."""

from __future__ import annotations

import pytest

from rollview.core.schema import AddedRule, Column, Constraints, ForeignKey, RuleKind, Schema
from rollview.errors import UsageError
from rollview.evolve.views import parse_choice
from rollview.types.arrow import arrow_schema
from rollview.types.spelling import widens

RULES = Constraints(
    ("id",),
    (("a", "b"),),
    ("id",),
    (ForeignKey(("a",), "p", ("x",)),),
    (
        AddedRule("u", RuleKind.UNIQUE, ("b",)),
        AddedRule("n", RuleKind.NOT_NULL, ("a",)),
        AddedRule("f", RuleKind.FOREIGN_KEY, ("b",), "p", ("x",)),
    ),
)


def test_what_changed_of_a_column_is_kept_and_what_did_not_takes_no_room() -> None:
    plain, changed = Column("a", "int"), Column("b", "bigint", "a%_3", late=True, fill="", default="7")
    assert plain.to_json() == ["a", "int"]
    schema = Schema((plain, changed))
    assert Schema.from_json(schema.to_json()) == schema
    assert arrow_schema(schema).names == ["a", "a%_3"]
    assert (schema.stored("B"), schema.stored("none such")) == ("a%_3", "none%20such")


def test_writers_keep_what_was_added_and_readers_rely_on_what_always_held() -> None:
    assert Constraints.from_json(RULES.to_json()) == RULES
    assert RULES.keys == (("id",), ("a", "b"))
    assert RULES.checked == Constraints(
        ("id",),
        (("a", "b"), ("b",)),
        ("id", "a"),
        (ForeignKey(("a",), "p", ("x",)), ForeignKey(("b",), "p", ("x",))),
    )


def test_names_in_constraints_follow_all_at_once() -> None:
    swapped = RULES.renamed({"a": "b", "b": "a"})
    assert swapped.unique == (("b", "a"),)
    assert [rule.columns for rule in swapped.added] == [("a",), ("b",), ("a",)]
    assert swapped.renamed({"a": "b", "b": "a"}) == RULES
    moved = RULES.referring("P", "parent", {"x": "y"})
    assert {(key.table, key.referenced) for key in moved.checked.foreign_keys} == {("parent", ("y",))}
    assert RULES.referring("other", "parent", {"x": "y"}) == RULES


WIDER = [("tinyint", "bigint"), ("float", "double"), ("decimal(5,2)", "decimal(7,3)"), ("varchar(3)", "varchar(4)")]
NOT_WIDER = [
    *(pair[::-1] for pair in WIDER),
    ("int", "int"),
    ("bigint", "double"),
    ("decimal(5,2)", "decimal(6,4)"),
    ("string", "varchar(9)"),
    ("char(3)", "string"),
    ("date", "timestamp_ntz"),
]


@pytest.mark.parametrize(("old", "new"), [*WIDER, ("varchar(3)", "string")])
def test_a_type_is_wider_where_every_value_stays(old: str, new: str) -> None:
    assert widens(old, new)


@pytest.mark.parametrize(("old", "new"), NOT_WIDER)
def test_a_type_is_not_wider_where_a_value_could_change(old: str, new: str) -> None:
    assert not widens(old, new)


def test_a_view_chooses_one_of_three() -> None:
    assert parse_choice(" Ask ") == "ask"
    with pytest.raises(UsageError, match="cannot be 'maybe'"):
        parse_choice("maybe")
