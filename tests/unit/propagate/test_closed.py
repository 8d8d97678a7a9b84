"""Pairs of a child and its parent whose keys are all in the parent's delta."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.propagate.world import Change, World

from rollview.algebra.script import Motion
from rollview.catalog import ChangeCount
from rollview.core.interval import Interval
from rollview.core.schema import Column, Constraints, ForeignKey, Schema
from rollview.propagate import closed
from rollview.propagate.closed import closed_references
from rollview.propagate.plan import plan_propagate

KEYED = Constraints(primary_key=("k",))
TO_PARENT = Constraints(foreign_keys=(ForeignKey(("x",), "P", ("k",)),))
PAIR = frozenset({("c", "p")})


def found(world: World, *, after: int = 0, through: int = 9, **rows: int) -> frozenset[tuple[str, str]]:
    relations = list(world.relations.values())
    motion = {relation.name: Motion(changed=rows.get(relation.name, 1) > 0) for relation in relations}
    counted = {relation.name: rows.get(relation.name, 1) for relation in relations}
    return closed_references(relations, motion, counted, world.root, Interval(after, through))


def family(root: Path, parent: list[Change], child: list[Change], constraints: Constraints = TO_PARENT) -> World:
    world = World(root, 9)
    world.table("p", *parent, constraints=KEYED)
    world.table("c", *child, constraints=constraints)
    return world


def test_new_parents_that_come_with_their_children_are_closed(tmp_path: Path) -> None:
    assert found(family(tmp_path, [(1, 0, 1, 2), (2, 0, -1, 3)], [(7, 1, 1, 2), (8, 2, -1, 3)])) == PAIR


def test_a_child_of_an_untouched_parent_is_not(tmp_path: Path) -> None:
    assert found(family(tmp_path, [(1, 0, 1, 2)], [(7, 1, 1, 2), (8, 2, 1, 2)])) == frozenset()


def test_a_child_without_a_parent_asks_for_none(tmp_path: Path) -> None:
    assert found(family(tmp_path, [(1, 0, 1, 2)], [(7, None, 1, 2)])) == PAIR


def test_only_the_interval_counts(tmp_path: Path) -> None:
    world = family(tmp_path, [(1, 0, 1, 2), (2, 0, 1, 5)], [(7, 1, 1, 5), (8, 2, 1, 5)])
    assert found(world, after=2) == frozenset()
    assert found(world, after=1) == PAIR


def test_what_did_not_change_is_not_looked_at(tmp_path: Path) -> None:
    world = family(tmp_path, [(1, 0, 1, 2)], [(7, 1, 1, 2)])
    assert found(world, c=0) == found(world, p=0) == frozenset()


def test_large_deltas_are_not_looked_at(tmp_path: Path) -> None:
    world = family(tmp_path, [(1, 0, 1, 2)], [(7, 1, 1, 2)])
    assert found(world, c=closed.BOUND, p=closed.BOUND) == PAIR
    assert found(world, c=closed.BOUND + 1) == frozenset()


def test_two_references_to_one_parent_are_left_alone(tmp_path: Path) -> None:
    both = Constraints(foreign_keys=(ForeignKey(("x",), "p", ("k",)), ForeignKey(("k",), "p", ("k",))))
    assert found(family(tmp_path, [(1, 0, 1, 2)], [(1, 1, 1, 2)], both)) == frozenset()


def test_a_reference_by_two_columns_is_left_alone(tmp_path: Path) -> None:
    both = Constraints(foreign_keys=(ForeignKey(("x", "k"), "p", ("k", "x")),))
    assert found(family(tmp_path, [(1, 1, 1, 2)], [(1, 1, 1, 2)], both)) == frozenset()


def test_a_reference_to_another_table_says_nothing_of_this_one(tmp_path: Path) -> None:
    elsewhere = Constraints(foreign_keys=(ForeignKey(("x",), "other", ("k",)),))
    assert found(family(tmp_path, [(1, 0, 1, 2)], [(7, 1, 1, 2)], elsewhere)) == frozenset()


def test_keys_of_two_types_are_not_compared(tmp_path: Path) -> None:
    world = World(tmp_path, 9)
    world.table("p", ("1", 0, 1, 2), constraints=KEYED, schema=Schema((Column("k", "string"), Column("x", "bigint"))))
    world.table("c", (7, 1, 1, 2), constraints=TO_PARENT)
    assert found(world) == frozenset()


def test_a_view_is_no_parent(tmp_path: Path) -> None:
    world = World(tmp_path, 9)
    world.table("t")
    world.view("p", "SELECT k, x FROM t", (1, 0, 1, 2), mark=9)
    world.table("c", (7, 1, 1, 2), constraints=TO_PARENT)
    assert found(world) == frozenset()


def test_each_reference_is_to_its_own_parent(tmp_path: Path) -> None:
    two = Constraints(foreign_keys=(ForeignKey(("x",), "p", ("k",)), ForeignKey(("k",), "q", ("k",))))
    world = family(tmp_path, [(1, 0, 1, 2)], [(7, 1, 1, 2)], two)
    world.table("q", (1, 0, 1, 2), constraints=KEYED)
    assert found(world) == PAIR


@pytest.mark.parametrize("order", [1, -1])
def test_the_order_of_the_relations_does_not_matter(tmp_path: Path, order: int) -> None:
    world = family(tmp_path, [(1, 0, 1, 2)], [(7, 1, 1, 2)])
    world.relations = dict(list(world.relations.items())[::order])
    assert found(world) == PAIR


def test_a_plan_reads_no_rows_and_the_step_looks_them_up(tmp_path: Path) -> None:
    world = family(tmp_path, [(1, 0, 1, 2)], [(7, 1, 1, 2)])
    world.counts = [ChangeCount("p", 2, 1, 0, None), ChangeCount("c", 2, 1, 0, None)]
    world.view("v", "SELECT c.k, p.x FROM c JOIN p ON c.x = p.k", reads=("c", "p"))
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    for path in files:
        path.unlink()
    step = plan_propagate(world.snapshot, world.root, "v", 9, world.changes_of, tuple)
    assert step is not None
    assert step.rows == {"c": 1, "p": 1}
    for path, content in files.items():
        path.write_bytes(content)
    relations = list(map(world.snapshot.get, step.motion))
    closed = closed_references(relations, step.motion, step.rows, world.root, step.interval)
    assert step.circumstances(ahead=False, closed=closed).closed == PAIR
