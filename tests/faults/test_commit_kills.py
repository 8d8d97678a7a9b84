"""Killed on the way of a commit that takes views along: all of it is there, or nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.faults import tasks
from tests.faults.crew import Crew, Place
from tests.faults.shop import VIEWS, Shop, check_newest_is_pinned, check_stored, folders, pinned_folders
from tests.sizes import FULL

from rollview.catalog import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLICIES = {"sales": "ipda", "by_state": "immediate", "visitors": "immediate"}
STEPS = (
    "commit.logged",
    "propagate.begun",
    "propagate.computed",
    "propagate.logged",
    "propagate.computed:2",
    "propagate.logged:3",
    "apply.begun",
    "apply.computed",
    "apply.first_logged",
    "apply.logged",
    "apply.logged:2",
    "commit.published",
)
KILLS = STEPS * 5 if FULL else ("propagate.computed", "propagate.logged:3", "apply.logged:2", "commit.published")
"""Five times all of them are 60 kills."""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop.founded(Place(tmp_path_factory.mktemp("kills") / "shop"), spark)
    with shop.opened() as warehouse:
        for view, policy in POLICIES.items():
            warehouse.set_view(view, {"rollview.policy": policy})
    return shop


@pytest.mark.parametrize("number", range(len(KILLS)), ids=lambda number: f"{number}-{KILLS[number]}")
def test_killed_in_a_commit_that_views_follow(shop: Shop, crew: Crew, number: int) -> None:
    step, before = KILLS[number], folders(shop.place.root)
    ended = crew.run(shop.place, tasks.commit, shop.next(), fault=step)
    assert ended.killed, ended
    if step == "commit.published":
        shop.committed(shop.count)
    check_all_or_nothing(shop)
    with shop.opened() as warehouse:
        if step != "commit.published":
            shop.commit(warehouse, shop.count)
        before |= pinned_folders(shop.place.root, warehouse.snapshot())
        check_all_or_nothing(shop)
        assert warehouse.catalog.steps(status="running") == ()
        check_newest_is_pinned(shop, warehouse.snapshot())
        new = folders(shop.place.root) - before - pinned_folders(shop.place.root, warehouse.snapshot())
        assert new == set()


def check_all_or_nothing(shop: Shop) -> None:
    with shop.place.open(None) as warehouse:
        snapshot = warehouse.snapshot()
        assert snapshot.moment.csn == shop.csn
        for view, policy in POLICIES.items():
            pins = snapshot.get(view).pins
            assert pins[Part.DELTA].through == shop.csn
            assert policy == "ipda" or pins[Part.EXTENT].through == shop.csn
        check_stored(shop, snapshot)


def test_at_the_end_every_view_is_right(shop: Shop) -> None:
    with shop.opened() as warehouse:
        warehouse.refresh()
        check_stored(shop, warehouse.snapshot())
        assert all(warehouse.verify(view).equal for view in VIEWS)
