"""A change of a layout is a value, and so is what is to be done about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.propagate.world import KX, World

from rollview.catalog import CapturedTable, Layout, SourceRecord
from rollview.core.schema import Column, Constraints, Schema
from rollview.evolve.plan import change_from, plan_change, plan_widening
from rollview.sources.protocol import LayoutChange, SourceTable
from rollview.sources.settings import SourceSettings, TableSettings

NEW = Column("k", "int", fill="7")
GONE = LayoutChange("bank", "remote_t", "column x is gone", gone=("X",))


def record(rows: str = "") -> SourceRecord:
    settings = SourceSettings("sqlite", "bank.db", (TableSettings("t", "remote_t", rows=rows),))
    tables = (CapturedTable("t", "remote_t"),)
    return SourceRecord(1, "bank", "sqlite", settings.to_json(), "active", "7", {}, None, None, tables)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, 5)
    world.table("t", constraints=Constraints(primary_key=("k",), unique=(("x",),), not_null=("k", "x")))
    return world


def test_a_column_that_is_gone_is_left_out_with_what_was_promised_of_it(world: World) -> None:
    plan = plan_change(world.snapshot, record(), GONE)
    assert plan is not None
    assert plan.schema == Schema((Column("k", "bigint"),))
    assert plan.constraints == Constraints(primary_key=("k",), not_null=("k",))
    assert (plan.relation, plan.position, plan.at, plan.lost) == ("t", "7", 6, ("x",))
    assert str(plan) == "table 't': column x is gone; left out here: x; no view is affected"


def test_views_that_name_it_stop_and_those_above_them(world: World) -> None:
    world.view("names_it", "SELECT k, x FROM t")
    world.view("does_not", "SELECT k, k AS x FROM t")
    world.view("above", "SELECT k, x FROM names_it", reads=("names_it",))
    plan = plan_change(world.snapshot, record(), GONE)
    assert plan is not None
    assert plan.stopped == ("above", "names_it")


def test_what_is_only_unsure_is_no_longer_promised(world: World) -> None:
    plan = plan_change(world.snapshot, record(), LayoutChange("bank", "remote_t", "no key", unsure=("k",)))
    assert plan is not None
    assert plan.schema == KX
    assert plan.constraints == Constraints(unique=(("x",),), not_null=("x",))


@pytest.mark.parametrize(
    "change",
    [
        LayoutChange("bank", "remote_t", "it is gone"),
        LayoutChange("bank", "remote_t", "all columns are gone", gone=("k", "x")),
        LayoutChange("bank", "remote_t", "another column is gone", gone=("z",)),
    ],
)
def test_what_leaves_nothing_to_read_or_changes_nothing_has_no_plan(world: World, change: LayoutChange) -> None:
    assert plan_change(world.snapshot, record(), change) is None


def test_a_table_waits_without_a_column_that_tells_which_rows_are_captured(world: World) -> None:
    plan = plan_change(world.snapshot, record(rows="x > 3"), GONE)
    assert plan is not None
    assert "Table 'remote_t' of source 'bank' has lost column 'x', by which its rows are chosen: x > 3." in plan.waits
    assert f"it waits: {plan.waits}" in str(plan)
    goes_on = plan_change(world.snapshot, record(rows="k > 3"), GONE)
    assert goes_on is not None
    assert not goes_on.waits


def test_a_copy_tells_what_it_lacks(world: World) -> None:
    relation = world.relations["t"]
    same = SourceTable("remote_t", relation.schema, relation.constraints)
    other = SourceTable("remote_t", Schema((Column("k", "int"), *KX.columns[1:])), Constraints(not_null=("k",)))
    assert change_from(record(), relation, same) is None
    found = change_from(record(), relation, other)
    assert found is not None
    assert (found.gone, found.unsure) == (("k",), ("k", "x"))


def test_new_columns_come_after_those_that_are_there(world: World) -> None:
    table = SourceTable("remote_t", Schema((Column("new", "string"), *KX.columns)))
    plan = plan_widening(world.snapshot, "t", table, "9")
    assert plan is not None
    new = Column("new", "string", place="new", late=True)
    assert plan.schema == Schema((*KX.columns, new))
    assert (plan.new, plan.at, plan.position) == ((new,), 6, "9")
    assert plan_widening(world.snapshot, "t", SourceTable("remote_t", KX), "9") is None


def test_a_column_that_comes_back_is_another(world: World) -> None:
    once = Layout(1, "3", Schema((*KX.columns, Column("lost", "string"))), "")
    world.relations["t"] = replace(world.relations["t"], layouts=(once,))
    table = SourceTable("remote_t", Schema((*KX.columns, Column("lost", "string"))))
    plan = plan_widening(world.snapshot, "t", table, "9")
    assert plan is not None
    assert [column.stored for column in plan.new] == ["lost%_4"]


def test_names_types_and_new_columns_are_followed(world: World) -> None:
    world.view("renamed", "SELECT k FROM t")
    world.view("retyped", "SELECT k, x FROM t")
    change = LayoutChange(
        "bank", "remote_t", "", renamed=(("k", "x"), ("x", "y")), widened=(("x", "decimal(20,0)"),), added=(NEW,)
    )
    plan = plan_change(world.snapshot, record(), change)
    assert plan is not None
    assert plan.schema.columns == (
        Column("x", "bigint", place="k"),
        Column("y", "decimal(20,0)", place="x", late=True),
        replace(NEW, place="k%_3", late=True),
    )
    assert plan.constraints == Constraints(primary_key=("x",), not_null=("x",))
    assert (plan.wider, plan.stopped) == ((plan.schema.columns[1],), ("retyped",))


@pytest.mark.parametrize("name", ["_count", "_rv_x", "K"])
def test_a_name_that_cannot_be_here_is_left_out(world: World, name: str) -> None:
    renamed = plan_change(world.snapshot, record(), LayoutChange("bank", "remote_t", "", renamed=(("x", name),)))
    added = plan_change(world.snapshot, record(), LayoutChange("bank", "remote_t", "", added=(Column(name, "int"),)))
    assert renamed is not None
    assert added is not None
    assert (renamed.schema.names, renamed.lost) == (("k",), ("x",))
    assert (added.schema, added.new) == (KX, ())
