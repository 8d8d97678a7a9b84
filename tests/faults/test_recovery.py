"""Killed again before, during and after the recovery from the kill before, up to four deep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.faults import tasks
from tests.faults.crew import Crew, Place
from tests.faults.shop import (
    Shop,
    check_every_csn,
    check_ledger,
    check_newest_is_pinned,
    check_stored,
    folders,
    pinned_folders,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWICE = (
    ("propagate.logged", "apply.logged"),
    ("apply.logged:2", "apply.begun", "publish.begun"),
    ("publish.pinned", "apply.computed:3", "publish.pinned"),
    ("propagate.published:2", "publish.begun", "publish.published"),
)
RECOVERING = (
    ("apply.logged:3", "recover.found", "recover.discarded", "recover.published"),
    ("propagate.computed:2", "recover.discarded", "recover.discarded", "apply.logged"),
    ("publish.begun", "recover.discarded:2", "recover.found", "publish.pinned"),
)


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.founded(Place(tmp_path_factory.mktemp("recovery") / "shop"), spark)


@pytest.mark.parametrize("steps", [*TWICE, *RECOVERING], ids=" then ".join)
def test_a_refresh_killed_again_and_again(shop: Shop, crew: Crew, steps: tuple[str, ...]) -> None:
    with shop.opened() as warehouse:
        shop.commit(warehouse)
    before = folders(shop.place.root)
    for step in steps:
        assert crew.run(shop.place, tasks.refresh, fault=step).killed, step
        with shop.place.open(None) as warehouse:
            assert warehouse.status().csn == shop.csn
            check_stored(shop, warehouse.snapshot())
    assert crew.run(shop.place, tasks.refresh).value == shop.csn
    check_all(shop, before)


@pytest.mark.parametrize("steps", [("commit.first_logged", "recover.discarded", "commit.logged", "recover.found")])
def test_a_commit_killed_again_and_again(shop: Shop, crew: Crew, steps: tuple[str, ...]) -> None:
    before, n = folders(shop.place.root), shop.next()
    for step in steps:
        assert crew.run(shop.place, tasks.commit, n, fault=step).killed, step
        with shop.place.open(None) as warehouse:
            check_stored(shop, warehouse.snapshot())
    assert crew.run(shop.place, tasks.commit, n).error is None
    shop.committed(n)
    check_all(shop, before)


def test_at_the_end_every_csn_is_right(shop: Shop) -> None:
    with shop.opened() as warehouse:
        warehouse.refresh()
        check_every_csn(shop, warehouse)


def check_all(shop: Shop, before: set[str]) -> None:
    with shop.place.open(None) as warehouse:
        snapshot = warehouse.snapshot()
        check_stored(shop, snapshot)
        check_ledger(shop, warehouse)
        check_newest_is_pinned(shop, snapshot)
        assert warehouse.catalog.steps(status="running") == ()
        assert folders(shop.place.root) - before - pinned_folders(shop.place.root, snapshot) == set()
