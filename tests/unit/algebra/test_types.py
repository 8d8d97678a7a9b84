"""What is known of types: that of a sum of integers; that maps are grouped but not compared."""

from __future__ import annotations

import pytest
from tests.property.duck import declare_query

from rollview.algebra.resolve import Known
from rollview.algebra.text import parse_one
from rollview.algebra.types import type_of_call, type_of_expression
from rollview.algebra.view import Mode, outline, plan
from rollview.core.schema import Column, Schema

KNOWN = {"n": Known("n", Schema((Column("m", "map<string,int>"), Column("g", "int"))))}
GROUPED = "SELECT m, COUNT(*) AS c FROM n GROUP BY m"
RESULTS = {"v1": "bigint"}


def mode(query: str, key: str) -> Mode:
    return plan(outline(declare_query("v", query), KNOWN), {"input": {"k1": key}, "results": RESULTS}).mode


def test_groups_of_maps_are_recomputed() -> None:
    assert mode(GROUPED, "map<string,int>") is Mode.WHOLE
    assert mode(GROUPED, "array<map<string,int>>") is Mode.WHOLE
    assert mode(GROUPED.replace("m", "g"), "int") is Mode.SUMMARY


def test_groups_of_maps_below_others_are_recomputed() -> None:
    query = f"SELECT q.c, COUNT(*) AS n FROM ({GROUPED}) AS q GROUP BY q.c"
    assert mode(query, "bigint") is Mode.WHOLE


@pytest.mark.parametrize(
    ("call", "type_"),
    [
        *[("COUNT(w)", "bigint"), ("SUM(a)", "bigint"), ("SUM(a) FILTER (WHERE b > 1)", "bigint"), ("SUM(w)", None)],
        *[("MAX(w)", "string"), ("MIN(a)", "int"), ("AVG(a)", None), ("MAX(a + 1)", None), ("FIRST(a)", None)],
        *[("SUM(d)", "decimal(22,3)"), ("SUM(e)", "decimal(38,3)")],
    ],
)
def test_the_type_of_a_plain_aggregate_is_known(call: str, type_: str | None) -> None:
    types = {"a": "int", "w": "string", "d": "decimal(12,3)", "e": "decimal(30,3)"}
    assert type_of_call(parse_one(f"SELECT {call}").selects[0], types.__getitem__) == type_


@pytest.mark.parametrize(
    ("text", "type_"),
    [("a + b", "bigint"), ("b * a", "bigint"), ("a - 1", "int"), ("-(c + a)", "int"), ("a + w", None), ("a / b", None)],
)
def test_arithmetic_of_two_integers_has_the_larger_type(text: str, type_: str | None) -> None:
    types = {"a": "int", "b": "bigint", "c": "smallint", "w": "string"}
    assert type_of_expression(parse_one(f"SELECT {text}").selects[0], lambda one: types[one.name]) == type_
