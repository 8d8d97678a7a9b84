"""Killed by the kernel at every step of adding, capturing and removing. The next command finishes what was begun."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rollview.core.faults import STEPS
from rollview.warehouse import Warehouse
from tests.sources.harness import ACCOUNTS, Harness, Write, account, capture, stored, stored_at_each
from tests.sources.killing import killed

COPY = ("source.recorded", *(step for step in STEPS if step.startswith("copy.")))
CAPTURE = tuple(step for step in STEPS if step.startswith("capture."))
REMOVE = ("remove.begun", "remove.dropped", "drop.published")


def check(warehouse: Warehouse, harness: Harness) -> None:
    for table in ("account", "note"):
        assert stored(warehouse, table) == harness.rows(table)
    data = warehouse.root / "data"
    kept = {relation.folder for relation in warehouse.snapshot().relations.values()}
    assert {path.name for path in data.iterdir() if path.is_dir()} == kept
    assert warehouse.catalog.steps(status="running") == ()


@pytest.mark.parametrize("step", COPY)
def test_killed_while_it_is_added(empty_warehouse: Warehouse, harness: Harness, step: str) -> None:
    killed("add", empty_warehouse.root, harness.settings(), step)
    harness.write(Write("account", ACCOUNTS[0], account(1, "ann", "12.34")))
    with Warehouse.open(empty_warehouse.root) as warehouse:
        if step == "copy.published":
            capture(warehouse)
        else:
            warehouse.add_source("bank", harness.settings())
        check(warehouse, harness)
        harness.write(Write("account", ACCOUNTS[1]))
        capture(warehouse)
        check(warehouse, harness)


def test_capture_finishes_a_copy(empty_warehouse: Warehouse, harness: Harness) -> None:
    killed("add", empty_warehouse.root, harness.settings(), "copy.logged")
    with Warehouse.open(empty_warehouse.root) as warehouse:
        assert capture(warehouse).units == 1
        check(warehouse, harness)


def test_killed_at_every_step_of_capture(warehouse: Warehouse, harness: Harness) -> None:
    before = account(1, "ann", "10.00")
    for number, step in enumerate((*CAPTURE, *CAPTURE), 100):
        after = account(1, "ann", f"{number}.00")
        new = account(number, "new", None)
        # Two tables change, so that there is a moment between their logs.
        harness.write(Write("account", before, after), Write("account", None, new), Write("note", None, (f"{number}",)))
        before = after
        killed("capture", warehouse.root, harness.settings(), step)
        if number % 2:
            with Warehouse.open(warehouse.root) as other:
                capture(other)
                check(other, harness)
    with Warehouse.open(warehouse.root) as other:
        capture(other)
        check(other, harness)
        for rows in stored_at_each(other, "account", range(1, other.snapshot().moment.csn + 1)):
            assert sum(row[0] == 1 for row in rows) == 1


@pytest.mark.parametrize("step", REMOVE)
def test_killed_while_it_is_removed(warehouse: Warehouse, harness: Harness, step: str) -> None:
    killed("remove", warehouse.root, harness.settings(), step)
    with Warehouse.open(warehouse.root) as other:
        if step != "drop.published":
            assert other.sources()[0].state == "removing"
            other.remove_source("bank")
        else:
            other.capture()
        assert other.sources() == ()
        assert harness.leftovers() == []
        other.maintain(grace=timedelta(0))
        assert [path for path in (other.root / "data").iterdir() if path.is_dir()] == []
