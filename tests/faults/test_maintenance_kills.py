"""Maintenance killed at every named step. What is in reach stays right, and the next maintenance goes on.

One warehouse goes through all kills. It loses csns on the way, by their users' wish, and never another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.faults import tasks
from tests.faults.crew import Crew, Place
from tests.faults.shop import (
    VIEWS,
    Shop,
    check_ledger,
    check_newest_is_pinned,
    folders,
    pinned_folders,
    published,
    table_at_each,
)
from tests.sizes import FULL
from tests.spark.oracle.bags import assert_same
from tests.spark.oracle.model import by_csn

from rollview.catalog import Part, Relation, Snapshot
from rollview.core.faults import STEPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = (
    *("merge.computed", "merge.logged:3", "merge.published"),
    *("compress.computed", "compress.logged:2", "compress.published"),
    *("prune.computed", "prune.logged", "prune.published:4"),
    *("sweep.begun", "sweep.removed:3", "sweep.trimmed", "sweep.noted:2"),
)
FIRST_TIMES = tuple(kill.partition(":")[0] for kill in KILLS if ":" in kill)
"""The steps that are otherwise killed when some of the work is done already."""


SEEDS = range(4) if FULL else range(1)


@pytest.fixture(scope="module", params=SEEDS)
def shop(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.founded(Place(tmp_path_factory.mktemp("maintenance") / "shop"), spark, first=request.param)


def test_every_step_of_maintenance_is_killed() -> None:
    own = {step for step in STEPS if step.startswith(("merge.", "compress.", "prune.", "sweep."))}
    assert {kill.partition(":")[0] for kill in KILLS} == own


@pytest.mark.parametrize("kill", (*KILLS, *FIRST_TIMES) if FULL else KILLS)
def test_killed(shop: Shop, crew: Crew, kill: str) -> None:
    with shop.opened() as warehouse:
        for _ in range(3):
            shop.commit(warehouse)
        warehouse.refresh()
        if kill == "sweep.trimmed":
            checkpoint(shop, warehouse.snapshot())
    wishes = wanted(shop, kill)
    assert crew.run(shop.place, tasks.maintain, wishes, fault=kill).killed
    with shop.place.open(None) as warehouse:
        assert warehouse.status().csn == shop.csn
        check_reach(shop, warehouse.snapshot(), wishes)
    ended = crew.run(shop.place, tasks.maintain, wishes)
    assert ended.error is None, ended
    with shop.opened() as warehouse:
        snapshot = warehouse.snapshot()
        check_reach(shop, snapshot, wishes)
        check_newest_is_pinned(shop, snapshot)
        check_ledger(shop, warehouse)
        assert warehouse.catalog.steps(status="running") == ()
        assert folders(shop.place.root) == pinned_folders(shop.place.root, snapshot), "nothing is left"


def test_at_the_end_every_csn_in_reach_is_right(shop: Shop) -> None:
    with shop.opened() as warehouse:
        shop.commit(warehouse)
        warehouse.refresh()
        for name in VIEWS:
            csns = in_reach(warehouse.snapshot().get(name), shop.csn)
            assert 1 < len(csns) < shop.csn
            found = by_csn({csn: warehouse.read(name, as_of=csn) for csn in csns})
            for csn in csns:
                assert_same(found[csn], shop.rows(name, csn), f"{name} at {csn}")
            assert warehouse.verify(name).equal


def wanted(shop: Shop, kill: str) -> dict[str, int]:
    if kill.startswith("compress"):
        return {"compress_before": shop.csn - 1}
    return {"prune_before": shop.csn - 4} if kill.startswith("prune") else {}


def checkpoint(shop: Shop, snapshot: Snapshot) -> None:
    """Delta writes one by itself every so many commits."""
    relation = snapshot.get("orders")
    folder = shop.place.root / "data" / relation.folder / Part.DELTA
    DeltaTable(folder, version=relation.pins[Part.DELTA].version).create_checkpoint()


def in_reach(relation: Relation, newest: int) -> list[int]:
    csns = range(relation.pins[Part.DELTA].after, newest + 1)
    return [csn for csn in csns if not any(stretch.strictly_inside(csn) for stretch in relation.coarse)]


def check_reach(shop: Shop, snapshot: Snapshot, wishes: dict[str, int]) -> None:
    """Tables at every csn in reach and extents at theirs, as they lie on the disk; newer csns than asked for stay."""
    given_up = max(wishes.values(), default=0)
    for name in shop.states[0]:
        table = snapshot.get(name)
        reach = in_reach(table, shop.csn)
        assert set(range(max(given_up, shop.csn - 3), shop.csn + 1)) <= set(reach)
        for csn, rows in table_at_each(shop.place.root, table, reach):
            assert_same(rows, shop.rows(name, csn), f"{name} at {csn}")
    for name, (csn, rows) in published(shop.place.root, snapshot).items():
        assert_same(rows, shop.rows(name, csn), f"extent of {name} at {csn}")
