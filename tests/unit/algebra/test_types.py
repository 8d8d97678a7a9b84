"""Spark groups by a map but cannot compare two, so such groups are never looked for."""

from __future__ import annotations

from tests.property.duck import declare_query

from rollview.algebra.resolve import Known
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
