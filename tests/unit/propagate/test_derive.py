"""A view gets the rows of its next definition from what is stored, from that and a part of its tables, or from these.

All ways give the same rows (see ``tests/property/test_derived.py``): here it is the way that is told.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.property.duck import Duck
from tests.unit.propagate.world import KX, World, facts_of

from rollview.algebra.definition import Declared
from rollview.algebra.resolve import Known
from rollview.algebra.view import ViewPlan, outline, plan
from rollview.catalog import Layout, Part
from rollview.core.schema import Column, Schema
from rollview.propagate.derive import AdaptMode, Derivation, derivation_of, plan_derivation
from rollview.store.buckets import REWRITE_ROWS

RENAMED, STORED, PARTLY, RECOMPUTED = AdaptMode
PLAIN = "SELECT k, x FROM t"
TOTALS = "SELECT k, SUM(x) AS s FROM t GROUP BY k"
BOTH = "SELECT k, x FROM t UNION ALL SELECT k, x FROM u"


@cache
def engine() -> Duck:
    return Duck((Known("t", KX), Known("u", KX)))


def compiled(query: str) -> ViewPlan:
    return engine().compile("v", query)


def columns(query: str, types: str = "bigint") -> Schema:
    rel = compiled(query).outline.rel
    names = ("k", "x") if rel is None else rel.columns
    return Schema(tuple(Column(name, types) for name in names))


def derived(
    before: str, after: str, *, keeps_order: bool = False, types: tuple[str, str] = ("bigint",) * 2
) -> Derivation:
    old, new = ((compiled(query), columns(query, type_)) for query, type_ in zip((before, after), types, strict=True))
    return plan_derivation(old, new, keeps_order=keeps_order)


@pytest.mark.parametrize(
    ("before", "after", "keeps_order", "mode"),
    [
        (PLAIN, "SELECT k AS a, x FROM t", True, RENAMED),
        (PLAIN, "SELECT x AS a, k AS b FROM t", False, RENAMED),
        (PLAIN, "SELECT x AS a, k AS b FROM t", True, STORED),
        (TOTALS, "SELECT k AS a, SUM(x) AS s FROM t GROUP BY k", True, RENAMED),
        (TOTALS, "SELECT SUM(x) AS s, k FROM t GROUP BY k", False, RENAMED),
        (TOTALS, "SELECT SUM(x) AS s, k FROM t GROUP BY k", True, STORED),
    ],
)
def test_other_names_need_no_rows_and_another_order_only_where_rows_lie_by_it(
    before: str, after: str, keeps_order: bool, mode: AdaptMode
) -> None:
    assert derived(before, after, keeps_order=keeps_order).mode is mode


@pytest.mark.parametrize(
    ("key", "mode"),
    [("k", STORED), ("k + 1", STORED), ("SUBSTR(CAST(k AS STRING), 1, 1)", STORED), ("SQRT(k)", RECOMPUTED)],
)
def test_groups_by_a_computed_key_tell_another_sum_where_the_key_never_floats(key: str, mode: AdaptMode) -> None:
    before = f"SELECT {key} AS a, SUM(x) AS s FROM t GROUP BY {key}"
    assert derived(before, before.replace("SUM(x) AS s", "SUM(x) AS s, AVG(x) AS m")).mode is mode


@pytest.mark.parametrize(
    "after",
    [
        "SELECT k FROM t",
        "SELECT k, k AS again FROM t",
        "SELECT k, x, x AS again FROM t",
        "SELECT k, x + 1 AS more FROM t",
        "SELECT k, -x AS less FROM t",
        "SELECT k, x FROM t WHERE x > 1",
        pytest.param("SELECT x AS k, k AS x FROM t", id="names that others have now"),
        pytest.param("SELECT k AS x, x AS y FROM t", id="a name that another has now"),
    ],
)
def test_it_is_only_renamed_where_each_column_is_there_once_and_who_reads_a_name_reads_the_same(after: str) -> None:
    assert derived(PLAIN, after).mode is STORED


def test_a_column_that_was_there_twice_cannot_be_told_apart() -> None:
    assert derived("SELECT k, k AS again FROM t", "SELECT k AS a, k AS b FROM t").mode is STORED


def test_a_column_of_another_type_is_not_only_renamed() -> None:
    assert derived(PLAIN, "SELECT k AS a, x AS b FROM t", types=("bigint", "int")).mode is STORED
    wide, narrow = (Schema((Column("a", "bigint"), Column("b", type_))) for type_ in ("bigint", "int"))
    plan = compiled("SELECT k AS a, x AS b FROM t")
    assert plan_derivation((plan, wide), (plan, wide)).mode is RENAMED
    assert plan_derivation((plan, wide), (plan, narrow)).mode is STORED


@pytest.mark.parametrize(
    ("before", "after", "mode"),
    [
        pytest.param("SELECT k, SUM(x) AS s FROM t GROUP BY k, x", TOTALS, STORED, id="other keys"),
        (TOTALS, f"{TOTALS} HAVING SUM(x) > 3", STORED),
        (TOTALS, "SELECT k, SUM(x) + 1 AS s FROM t GROUP BY k", STORED),
        (
            "SELECT k, SUM(x) AS s FROM t WHERE x > 5 GROUP BY k",
            "SELECT k, SUM(x) AS s FROM t WHERE x > 3 GROUP BY k",
            PARTLY,
        ),
    ],
)
def test_groups_of_other_rows_or_values_are_not_only_renamed(before: str, after: str, mode: AdaptMode) -> None:
    assert derived(before, after).mode is mode


@pytest.mark.parametrize(("before", "after"), [(PLAIN, TOTALS), (TOTALS, PLAIN)])
def test_rows_and_groups_are_not_compared(before: str, after: str) -> None:
    assert derived(before, after) == Derivation(RECOMPUTED, "one is kept in groups and the other is not")


LIMITED = "SELECT k, x FROM t ORDER BY k, x LIMIT 3"


@pytest.mark.parametrize(("before", "after"), [(PLAIN, LIMITED), (LIMITED, PLAIN)])
def test_what_is_computed_whole_is_not_compared(before: str, after: str) -> None:
    assert derived(before, after) == Derivation(RECOMPUTED, "it is computed whole from its text")


@pytest.mark.parametrize(
    ("before", "after", "mode", "reads"),
    [
        (PLAIN, BOTH, PARTLY, ("u",)),
        (BOTH, PLAIN, PARTLY, ("u",)),
        (BOTH, "SELECT k, x FROM u UNION ALL SELECT k, x FROM t", STORED, ()),
        (BOTH, f"{BOTH} UNION ALL SELECT x, k FROM t", PARTLY, ("t",)),
    ],
)
def test_of_a_union_all_only_sides_that_come_or_go_are_read(
    before: str, after: str, mode: AdaptMode, reads: tuple[str, ...]
) -> None:
    found = derived(before, after)
    assert (found.mode, found.reads) == (mode, reads)


@pytest.mark.parametrize("type_", ["map<string,int>", "string collate UTF8_LCASE"])
def test_rows_that_equal_columns_do_not_tell_apart_are_not_taken_away(type_: str) -> None:
    both, one = (compiled(query) for query in (BOTH, PLAIN))
    for place in (0, 1):
        types = ["bigint", "bigint"]
        types[place] = type_
        schema = Schema(tuple(Column(name, of) for name, of in zip("kx", types, strict=True)))
        found = plan_derivation((both, schema), (one, schema))
        assert found == Derivation(RECOMPUTED, "rows are not told apart by their columns alone")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t")
    world.table("u")
    return world


def derived_here(world: World, before: str, after: str) -> Derivation:
    """Of a view over t and u that is there, with a thousand rows."""
    summed = "GROUP BY" in before
    world.view("v", before, reads=("t", "u"), schema=columns(before), facts=facts_of(before) if summed else None)
    world.pin("v", Part.EXTENT, rows=1000)
    if summed:
        world.pin("v", Part.GROUPS, rows=1000)
    return derivation_of(world.snapshot, world.relations["v"], (compiled(after), columns(after)))


def test_rows_are_added_to_those_that_are_there_where_that_reads_less(world: World) -> None:
    world.pin("t", Part.STATE, rows=2000)
    world.pin("u", Part.STATE, rows=7)
    assert derived_here(world, PLAIN, BOTH).mode is PARTLY


def test_rows_that_go_are_looked_for_among_all_others_which_may_be_more_work_than_all_anew(world: World) -> None:
    world.pin("t", Part.STATE, rows=2000)
    world.pin("u", Part.STATE, rows=7)
    found = derived_here(world, BOTH, PLAIN)
    assert (found.mode, found.why) == (RECOMPUTED, "that takes about 3000 rows, and a part of them 5007")
    world.pin("t", Part.STATE, rows=4007)
    assert derived_here(world, BOTH, PLAIN).mode is PARTLY


def test_sums_that_are_not_there_are_computed_beside_those_that_are(world: World) -> None:
    world.pin("t", Part.STATE, rows=2000)
    found = derived_here(world, TOTALS, "SELECT k, SUM(x) AS s, SUM(x + k) AS more FROM t GROUP BY k")
    assert (found.mode, found.reads) == (PARTLY, ("t",))


def test_a_large_extent_lies_by_the_order_of_its_columns(world: World) -> None:
    other = "SELECT x AS a, k AS b FROM t"
    assert derived_here(world, PLAIN, other).mode is RENAMED
    for rows, mode in ((REWRITE_ROWS, RENAMED), (REWRITE_ROWS + 1, STORED)):
        world.pin("v", Part.EXTENT, rows=rows)
        assert derivation_of(world.snapshot, world.relations["v"], (compiled(other), columns(other))).mode is mode


def test_columns_that_have_other_names_by_now_are_not_compared(world: World) -> None:
    now = Schema((Column("k", "bigint"), Column("y", "bigint", place="x")))
    layouts = (Layout(0, "", KX, ""), Layout(5, "", now, ""))
    world.view("v", PLAIN)
    world.relations["t"] = replace(world.relations["t"], schema=now, layouts=layouts)
    known = {"t": Known("t", now)}
    new = plan(outline(Declared("v", (), None, {}, "SELECT k, y AS x FROM t", True), known), {})
    found = derivation_of(world.snapshot, world.relations["v"], (new, KX))
    assert found == Derivation(RECOMPUTED, "columns that it reads have other names by now")
