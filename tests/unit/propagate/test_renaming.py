"""Spark is asked again unless only names or the order of columns differ, and nothing else in the text means others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.propagate.world import KX, World, facts_of

from rollview.algebra.definition import Declared
from rollview.algebra.view import CHOICES, MISREAD, SETTLED, outline
from rollview.catalog import Layout
from rollview.catalog.values import DefinitionVersion
from rollview.core.schema import Column, Schema
from rollview.propagate.renaming import told_before
from rollview.relations.plans import known_as

PLAIN = "SELECT k, x AS b FROM t"
SORTED = "SELECT k AS a, x AS b FROM t ORDER BY 1 LIMIT 3"
NAMED = "SELECT k AS a, x AS b FROM t ORDER BY b, a LIMIT 3"


USED = "SELECT k AS a, x AS b FROM t ORDER BY b, k LIMIT 3"
TOTALS = "SELECT k, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY k"
OTHER = "SELECT k AS c, x AS b FROM t"
NOW = datetime.now(UTC)


def a_world(tmp_path: Path, before: str, columns: tuple[str, ...] = (), facts: dict[str, Any] | None = None) -> World:
    world = World(tmp_path, 9)
    world.table("t")
    world.view("below", "SELECT k, x FROM t")
    reads = ("below",) if "below" in before else ("t",)
    schema = Schema((*KX, Column("n", "bigint")))
    world.view("v", before, reads=reads, schema=schema, facts=facts_of(before) if "GROUP BY" in before else None)
    view = world.relations["v"]
    assert view.definition is not None
    told = replace(view.definition, columns=columns, facts={**view.definition.facts, **(facts or {})})
    world.relations["v"] = replace(view, definition=told, created=3)
    return world


def names_told(world: World, after: str) -> tuple[str, ...] | None:
    snapshot = world.snapshot
    known = {name: known_as(relation) for name, relation in snapshot.relations.items() if name != "v"}
    made = outline(Declared("v", (), None, {}, after, True), known)
    told = told_before(snapshot, snapshot.find("v"), made, after)
    return None if told is None else told[0].names


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (PLAIN, "SELECT k AS c, x AS b FROM t", ("c", "b")),
        (PLAIN, "SELECT x AS c, k FROM t", ("c", "k")),
        (SORTED, "SELECT k AS c, x AS b FROM t ORDER BY 1 LIMIT 3", ("c", "b")),
        (SORTED, "SELECT x AS b, k AS a FROM t ORDER BY 1 LIMIT 3", None),
        (NAMED, "SELECT k AS b, x AS a FROM t ORDER BY b, a LIMIT 3", None),
        (NAMED, "SELECT x AS b, k AS a FROM t ORDER BY b, a LIMIT 3", None),
        pytest.param(USED, "SELECT k AS c, x AS b FROM t ORDER BY b, k LIMIT 3", ("c", "b"), id="b stays"),
    ],
)
def test_spark_is_asked_where_a_place_or_a_name_means_another_column(
    tmp_path: Path, before: str, after: str, told: tuple[str, ...] | None
) -> None:
    assert names_told(a_world(tmp_path, before), after) == told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PLAIN, "SELECT k, k AS b FROM t"),
        (PLAIN, "SELECT k, x + 1 AS b FROM t"),
        (PLAIN, "SELECT k FROM t"),
        ("SELECT k FROM t", PLAIN),
        ("SELECT k, k AS b FROM t", "SELECT k AS a, k AS b FROM t"),
        (PLAIN, f"{PLAIN} WHERE x > 1"),
        ("SELECT * FROM t", "SELECT * FROM t"),
        (PLAIN, f"{PLAIN} UNION ALL {PLAIN}"),
        (f"{PLAIN} UNION ALL {PLAIN}", PLAIN),
        pytest.param(TOTALS, "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k", id="results are numbered"),
    ],
)
def test_spark_is_asked_for_other_values_or_rows(tmp_path: Path, before: str, after: str) -> None:
    assert names_told(a_world(tmp_path, before), after) is None


def test_what_was_told_of_groups_holds_for_the_same_ones_by_other_names(tmp_path: Path) -> None:
    other = "SELECT k AS a, SUM(x) AS b, COUNT(*) AS c FROM t GROUP BY k"
    assert names_told(a_world(tmp_path, TOTALS), other) == ("a", "b", "c")


@pytest.mark.parametrize("unsure", [MISREAD, SETTLED, CHOICES])
def test_spark_is_asked_where_it_does_not_read_the_text_as_it_stands(tmp_path: Path, unsure: str) -> None:
    assert names_told(a_world(tmp_path, PLAIN, facts={unsure: "so"}), OTHER) is None


def test_names_beside_the_text_are_not_looked_at(tmp_path: Path) -> None:
    assert names_told(a_world(tmp_path, PLAIN, columns=("a", "b")), OTHER) is None


def test_spark_is_asked_for_a_new_view_and_for_one_that_waits_for_its_definition(tmp_path: Path) -> None:
    world = a_world(tmp_path, PLAIN)
    view = world.relations["v"]
    assert view.definition is not None
    version = DefinitionVersion(5, view.definition, KX, ("t",), "", NOW, pending=True)
    world.relations["v"] = replace(view, versions=(version,))
    assert names_told(world, OTHER) is None
    del world.relations["v"]
    assert names_told(world, OTHER) is None


@pytest.mark.parametrize(("csn", "told"), [(3, ("c", "b")), (4, None)])
def test_spark_is_asked_where_a_table_has_other_columns_since(
    tmp_path: Path, csn: int, told: tuple[str, ...] | None
) -> None:
    world = a_world(tmp_path, PLAIN)
    more = Schema((*KX, Column("y", "bigint")))
    world.relations["t"] = replace(
        world.relations["t"], schema=more, layouts=(Layout(0, "", KX, ""), Layout(csn, "", more, ""))
    )
    assert names_told(world, OTHER) == told


@pytest.mark.parametrize(("csn", "told"), [(3, ("c", "b")), (4, None)])
def test_spark_is_asked_where_a_view_below_has_another_definition_since(
    tmp_path: Path, csn: int, told: tuple[str, ...] | None
) -> None:
    world = a_world(tmp_path, "SELECT k, x AS b FROM below")
    below = world.relations["below"]
    assert below.definition is not None
    versions = [DefinitionVersion(at, below.definition, KX, ("t",), "", NOW) for at in (0, csn)]
    world.relations["below"] = replace(below, versions=tuple(versions))
    assert names_told(world, "SELECT k AS c, x AS b FROM below") == told


def test_spark_is_asked_where_the_text_means_another_relation(tmp_path: Path) -> None:
    world = a_world(tmp_path, PLAIN)
    world.relations["v"] = replace(world.relations["v"], depends_on=("was_t",))
    assert names_told(world, OTHER) is None


@pytest.mark.parametrize(("defined", "told"), [(1, None), (2, ("c", "b"))])
def test_spark_is_asked_where_a_view_below_knows_a_column_by_a_former_name(
    tmp_path: Path, defined: int, told: tuple[str, ...] | None
) -> None:
    """``x`` became another column of the table at csn 2."""
    world = a_world(tmp_path, "SELECT k, x AS b FROM below")
    now = Schema((KX.columns[0], Column("y", "bigint", place="x"), Column("x", "bigint", place="x2")))
    layouts = (Layout(0, "", KX, ""), Layout(2, "", now, ""))
    world.relations["t"] = replace(world.relations["t"], schema=now, layouts=layouts)
    world.relations["below"] = replace(world.relations["below"], created=defined)
    assert names_told(world, "SELECT k AS c, x AS b FROM below") == told
