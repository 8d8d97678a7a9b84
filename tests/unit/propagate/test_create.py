"""A view's name must be free, or the view must be one that may be replaced. What it reads must be told from its csn on.

A view that is another one, column by column, needs no delta of its own.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.propagate.world import FACTS, KX, SUMMED, World

from rollview.algebra.definition import Declared
from rollview.algebra.view import MISREAD, Mode, outline
from rollview.catalog import Part
from rollview.errors import AlreadyExists, Retryable
from rollview.propagate import create
from rollview.propagate.copies import is_copy
from rollview.propagate.create import _check_name_is_free, _check_still_told
from rollview.relations.plans import known_as


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


@pytest.mark.parametrize(("read_otherwise", "mode"), [(None, Mode.SUMMARY), ({MISREAD: "so"}, Mode.WHOLE)])
def test_a_text_that_spark_reads_otherwise_is_computed_as_it_stands_and_any_other_by_the_types_it_tells(
    world: World, monkeypatch: pytest.MonkeyPatch, read_otherwise: dict[str, str] | None, mode: Mode
) -> None:
    told = {"unseen": {}, "_authors": None, "_schema": KX, "misread": read_otherwise, "_facts": FACTS}
    for name, said in told.items():
        monkeypatch.setattr(create, name, lambda *_, said=said: said)
    spark: Any = None
    made = create.plan_create(spark, world.snapshot, Declared("new", (), None, {}, SUMMED, False))
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
        pytest.param("SELECT k, x FROM below ORDER BY k, x LIMIT 3", False, id="recomputed whole"),
    ],
)
def test_only_all_columns_of_one_view_and_nothing_else_are_a_copy(world: World, query: str, copy: bool) -> None:
    snapshot = world.snapshot
    known = {name: known_as(relation) for name, relation in snapshot.relations.items()}
    made = outline(Declared("new", (), None, {}, query, False), known)
    assert is_copy(made, snapshot.get("below").schema, snapshot) is copy
