"""A view's name must be free, or the view must be one that may be replaced. What it reads must be told from its csn on.

A view that is another one, column by column, needs no delta of its own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.propagate.world import FACTS, KX, SUMMED, World

from rollview.algebra.definition import Declared
from rollview.algebra.view import MISREAD, Mode, outline
from rollview.catalog import NOT_KEPT, Part
from rollview.core.schema import Column, Schema
from rollview.errors import AlreadyExists, Retryable
from rollview.propagate import create
from rollview.propagate.asked import missing
from rollview.propagate.copies import is_copy
from rollview.propagate.create import _check_name_is_free, _check_still_told
from rollview.relations.plans import DETAIL, REFRESH_MODE, known_as
from rollview.relations.shared import SHARES


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 9)
    world.table("t")
    world.view("below", "SELECT k, x FROM t")
    world.view("above", "SELECT k, x FROM below", reads=("below",))
    return world


def check(world: World, name: str, *, replace: bool) -> None:
    _check_name_is_free(Declared(name, (), None, {}, "SELECT k FROM t", replace), world.snapshot.find(name))


def test_a_new_name_and_a_view_that_is_there(world: World) -> None:
    check(world, "new", replace=False)
    check(world, "above", replace=True)
    check(world, "below", replace=True)


@pytest.mark.parametrize(("name", "replace"), [("t", True), ("above", False)])
def test_what_is_there_is_not_written_over(world: World, name: str, replace: bool) -> None:
    with pytest.raises(AlreadyExists):
        check(world, name, replace=replace)


def told_by_spark(
    monkeypatch: pytest.MonkeyPatch, misread: dict[str, str] | None = None, facts: Any = None
) -> list[str]:
    """What Spark would tell of a view over columns k and x; the names that it was asked for."""
    asked: list[str] = []

    def authors(spark: Any, declared: Declared, *_: Any) -> None:
        asked.append(declared.name)

    told = {"unseen": {}, "_schema": KX, "misread": misread, "_facts": facts or {}}
    for name, said in told.items():
        monkeypatch.setattr(create, name, lambda *_, said=said: said)
    monkeypatch.setattr(create, "_authors", authors)
    return asked


def planned(world: World, name: str, query: str, **how: Any) -> create.ViewToCreate:
    spark: Any = None
    columns, over_the_same = how.pop("columns", ()), how.pop("over_the_same", False)
    declared = Declared(name, columns, None, how, query, True)
    return create.plan_create(spark, world.snapshot, declared, over_the_same=over_the_same)


@pytest.mark.parametrize(("read_otherwise", "mode"), [(None, Mode.SUMMARY), ({MISREAD: "so"}, Mode.WHOLE)])
def test_a_text_that_spark_reads_otherwise_is_computed_as_it_stands_and_any_other_by_the_types_it_tells(
    world: World, monkeypatch: pytest.MonkeyPatch, read_otherwise: dict[str, str] | None, mode: Mode
) -> None:
    told_by_spark(monkeypatch, read_otherwise, FACTS)
    made = planned(world, "new", SUMMED)
    assert made.plan.mode is mode
    assert made.notes == (("View 'new': so.",) if read_otherwise else ())


def test_a_view_below_that_was_recomputed_meanwhile_tells_no_changes_from_there(world: World) -> None:
    def check(lower: str, at: int) -> None:
        view: Any = SimpleNamespace(declared=SimpleNamespace(name="new"), depends_on=(lower,), at=at)
        _check_still_told(world.snapshot, view)

    for name in ("t", "below"):
        world.pin(name, Part.DELTA, after=5, through=9)
        check(name, 5)
    with pytest.raises(Retryable, match="View 'below', which 'new' reads, was recomputed meanwhile"):
        check("below", 4)
    # a table is not pruned while a view is created
    check("t", 4)


@pytest.mark.parametrize(
    ("query", "copy"),
    [
        ("SELECT k, x FROM below", True),
        ("SELECT x, k FROM below", False),
        ("SELECT k, x FROM t", False),
        ("SELECT k, x FROM below WHERE x > 1", False),
        ("SELECT DISTINCT k, x FROM below", False),
        ("SELECT k, x FROM below UNION ALL SELECT k, x FROM below", False),
        ("SELECT below.k, below.x FROM below CROSS JOIN t", False),
        pytest.param("SELECT k, x FROM below ORDER BY k, x LIMIT 3", False, id="recomputed whole"),
    ],
)
def test_only_all_columns_of_one_view_and_nothing_else_are_a_copy(world: World, query: str, copy: bool) -> None:
    snapshot = world.snapshot
    known = {name: known_as(relation) for name, relation in snapshot.relations.items()}
    made = outline(Declared("new", (), None, {}, query, False), known)
    schema = snapshot.get("below").schema
    assert is_copy(made, schema, snapshot) is copy
    other = Schema((*schema.columns[:1], Column("y", "bigint")))
    assert not is_copy(made, other, snapshot), "who reads its delta reads by names"


COPY = "SELECT k, x FROM below"


def test_a_copy_shares_the_delta_of_what_it_copies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    told_by_spark(monkeypatch)
    assert planned(world, "new", COPY).facts == {SHARES: True}
    assert planned(world, "new", "SELECT k, x FROM below WHERE x > 1").facts == {}


@pytest.mark.parametrize("own", [{REFRESH_MODE: "recompute"}, {DETAIL: "refresh"}])
def test_a_copy_that_is_kept_in_another_way_has_a_delta_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch, own: dict[str, str]
) -> None:
    told_by_spark(monkeypatch)
    assert SHARES not in planned(world, "new", COPY, **own).facts


def test_neither_what_spark_reads_otherwise_nor_a_view_that_has_a_delta_shares_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_by_spark(monkeypatch)
    assert SHARES not in planned(world, "above", COPY).facts
    told_by_spark(monkeypatch, {MISREAD: "so"})
    assert SHARES not in planned(world, "new", COPY).facts


@pytest.mark.parametrize(
    ("how", "asks"),
    [
        pytest.param({"over_the_same": True}, False, id="only a name differs"),
        pytest.param({}, True, id="what it reads may be another table by now"),
        pytest.param({"over_the_same": True, "columns": ("a", "b")}, True, id="names beside the text"),
    ],
)
def test_spark_is_not_asked_again_for_other_names_over_the_same_tables(
    world: World, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], asks: bool
) -> None:
    asked = told_by_spark(monkeypatch)
    planned(world, "below", "SELECT k AS id, x FROM t", **how)
    assert asked == (["below"] if asks else [])


def test_a_view_begins_where_all_that_it_reads_has_come(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    told_by_spark(monkeypatch)
    world.pin("below", Part.DELTA, through=6)
    assert planned(world, "new", "SELECT t.k, below.x FROM t JOIN below ON t.k = below.k").at == 6


def test_rows_that_are_not_here_where_a_view_begins_are_missing(world: World) -> None:
    """Not copied, or copied anew after that."""
    for name in ("copied", "kept_nowhere", "copied_then", "copied_later"):
        world.table(name)
    world.pin("kept_nowhere", Part.STATE, version=NOT_KEPT)
    for name, csn in (("copied_then", 5), ("copied_later", 6)):
        world.relations[name] = replace(world.relations[name], replaced=(csn,))
    view: Any = SimpleNamespace(depends_on=("copied", "kept_nowhere", "copied_then", "copied_later"), at=5)
    assert missing(world.snapshot, view) == {"kept_nowhere", "copied_later"}
