"""Killed at every named step, by the kernel. The next command finds everything as it was, or as it was to become.

One warehouse goes through all kills, while a reader in another process looks on. At the end every csn is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import tasks
from tests.faults.crew import Crew, Place
from tests.faults.shop import (
    VIEWS,
    Shop,
    check_every_csn,
    check_ledger,
    check_newest_is_pinned,
    check_stored,
    folders,
    pinned_folders,
    published,
)
from tests.sizes import FULL

from rollview.catalog import Part
from rollview.core.faults import STEPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rollview.warehouse import Warehouse

COMMITS = ("commit", "fold", "bulk update")
PUBLISHED = {"commit.published", *(f"fold.{step}" for step in ("computed", "first_logged", "logged", "published"))}
"""Steps after which the transaction is in the ledger."""


@dataclass(frozen=True, slots=True)
class Kill:
    """``step``, or ``step:k`` for the k-th time; in an operation that reaches it."""

    operation: str
    step: str

    def __str__(self) -> str:
        return f"{self.operation} at {self.step}"


def kills() -> Iterator[Kill]:
    for step in ("computed", "checked", "first_logged", "logged", "published"):
        yield Kill("commit", f"commit.{step}")
    for step in ("computed", "logged", "published"):
        yield Kill("fold", f"fold.{step}")
    for step in ("computed", "published"):
        yield Kill("create view", f"create.{step}")
    for step in ("logged", "published"):
        yield Kill("create table as", f"create.{step}")
    for step in ("first_logged", "logged"):
        yield Kill("create table", f"create.{step}")
    for step in ("redefine.committed", *(f"adapt.{step}" for step in ("begun", "computed", "first_logged", "logged"))):
        yield Kill("replace view", step)
    yield Kill("replace view", "adapt.published")
    for step in ("computed", "first_logged", "logged", "published"):
        yield Kill("bulk update", f"fold.{step}")
    for operation in ("drop view", "drop table"):
        yield Kill(operation, "drop.published")
    for step in ("begun", "computed", "logged:3", "published:2"):
        yield Kill("refresh", f"propagate.{step}")
    for step in ("begun", "computed:2", "first_logged", "logged"):
        yield Kill("refresh", f"apply.{step}")
    for step in ("begun", "pinned", "published"):
        yield Kill("refresh", f"publish.{step}")
    for step in ("apply.computed:3", "publish.pinned"):
        yield Kill("roll", step)


def again() -> Iterator[Kill]:
    """The same steps in the other operations that reach them, and once more or less of the work done before."""
    for operation, step in (("create view", "logged"), ("create table as", "computed"), ("create table", "published")):
        yield Kill(operation, f"create.{step}")
    for step in ("propagate.computed:2", "propagate.logged", "propagate.published", "apply.computed", "apply.logged:2"):
        yield Kill("refresh", step)


KILLS = (*kills(), *again()) if FULL else tuple(kills())
SEEDS = range(13) if FULL else range(1)
"""Which transactions there are; 13 seeds are 500 kills."""


@pytest.fixture(scope="module", params=SEEDS)
def shop(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.founded(Place(tmp_path_factory.mktemp("kills") / "shop"), spark, first=request.param)


@pytest.fixture(scope="module")
def sights(shop: Shop, crew: Crew) -> Callable[[], list[dict[str, tuple[int, Any]]]]:
    """A reader looks on from now until this is called."""
    reader = crew.start(shop.place, tasks.watch)

    def end() -> list[dict[str, tuple[int, Any]]]:
        reader.tell("enough")
        seen = reader.end().value
        assert isinstance(seen, list)
        return seen

    return end


def test_every_step_is_killed() -> None:
    # tests/sources, tests/spark/sources, tests/unit/subscribers, tests/audit, test_maintenance_kills, test_schema_kills
    # and test_algorithm_kills kill the others
    apart = ("recover.", "merge.", "compress.", "prune.", "sweep.", "source.", "copy.", "widen.", "capture.", "remove.")
    apart = (*apart, "release.", "spool.", "deliver.", "ask.", "follow.")
    elsewhere = {step for step in STEPS if step.startswith(apart)}
    assert {kill.step.partition(":")[0] for kill in KILLS} | elsewhere == set(STEPS)


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_killed(shop: Shop, crew: Crew, kill: Kill, sights: Callable[[], Any]) -> None:
    prepare(shop, kill)
    before = folders(shop.place.root)
    ended = crew.run(shop.place, *task(shop, kill), fault=kill.step)
    assert ended.killed, ended
    look_between(shop, kill)
    before |= go_on(shop, kill)
    check_nothing_is_left(shop, before)


def test_at_the_end_every_csn_is_right(shop: Shop, sights: Callable[[], list[dict[str, tuple[int, Any]]]]) -> None:
    with shop.opened() as warehouse:
        warehouse.refresh()
        check_ledger(shop, warehouse)
        assert check_every_csn(shop, warehouse, verify=6) >= 15
    seen = sights()
    assert len(seen) >= 10
    for sight in seen:
        assert len({csn for csn, _ in sight.values()}) == 1, "views that are published together are seen together"
        for name, (csn, rows) in sight.items():
            assert rows == shop.rows(name, csn), (name, csn)


def prepare(shop: Shop, kill: Kill) -> None:
    """Something to do for the operation."""
    if kill.operation in COMMITS:
        return
    with shop.opened() as warehouse:
        if kill.operation == "refresh":
            shop.commit(warehouse)
        if kill.operation in ("replace view", "drop view"):
            warehouse.create_view("CREATE MATERIALIZED VIEW made AS SELECT id FROM customer")
        if kill.operation == "drop table":
            warehouse.sql("CREATE TABLE made (id INT)")


def task(shop: Shop, kill: Kill) -> tuple[Any, ...]:
    if kill.operation == "commit":
        return tasks.commit, shop.next()
    if kill.operation == "fold":
        return tasks.commit_and_fold, shop.next()
    if kill.operation == "bulk update":
        return tasks.commit_and_keep_state, shop.next()
    if kill.operation == "refresh":
        return (tasks.refresh,)
    if kill.operation == "roll":
        return tasks.roll, tuple(VIEWS), shop.csn - 1
    return tasks.sql, {**CREATIONS, **DROPS}[kill.operation]


CREATIONS = {
    "create view": "CREATE MATERIALIZED VIEW made AS SELECT customer, COUNT(*) AS n FROM visit GROUP BY customer",
    "replace view": "CREATE OR REPLACE MATERIALIZED VIEW made AS SELECT page, COUNT(*) AS n FROM visit GROUP BY page",
    "create table": "CREATE TABLE made (id INT PRIMARY KEY)",
    "create table as": "CREATE TABLE made AS SELECT page FROM visit",
}
DROPS = {"drop view": "DROP MATERIALIZED VIEW made", "drop table": "DROP TABLE made"}


def look_between(shop: Shop, kill: Kill) -> None:
    """Before anything is repaired: status answers, and everything published is right."""
    step = kill.step.partition(":")[0]
    if step in PUBLISHED:
        shop.committed(shop.count)
    if kill.operation == "replace view" or kill == Kill("create table as", "create.published"):
        shop.states.append(shop.states[-1])
    with shop.place.open(None) as warehouse:
        status = warehouse.status()
        assert status.csn == shop.csn
        views = {view.name: view for view in status.views}
        assert all(views[name].problem is None for name in VIEWS)
        check_stored(shop, warehouse.snapshot())
        csns = {csn for csn, _ in published(shop.place.root, warehouse.snapshot()).values()}
        if kill.operation == "refresh":
            assert csns == ({shop.csn} if step == "publish.published" else {shop.csn - 1})
        running = warehouse.catalog.steps(status="running")
        assert bool(running) == (not step.endswith(("published", "redefine.committed")))


def go_on(shop: Shop, kill: Kill) -> set[str]:
    """The next command: what the user wanted, again where it has not happened; then all is as if nothing had been.

    Returns folders that were pinned on the way.
    """
    with shop.opened() as warehouse:
        if kill.operation in DROPS:
            assert warehouse.snapshot().find("made") is None
        elif kill.operation in CREATIONS:
            go_on_creating(shop, kill)
        elif kill.operation == "roll":
            warehouse.roll(tuple(VIEWS), shop.csn - 1)
            check_stored(shop, warehouse.snapshot())
        elif kill.operation in COMMITS and kill.step.partition(":")[0] not in PUBLISHED:
            shop.commit(warehouse, shop.count)
        pinned = pinned_folders(shop.place.root, warehouse.snapshot())
        if kill == Kill("bulk update", "fold.published"):
            # what its own commit wrote, until maintenance
            pinned |= pinned_folders(shop.place.root, warehouse.snapshot(), back=1)
        warehouse.refresh()
        check_stored(shop, warehouse.snapshot())
        check_ledger(shop, warehouse)
        at = {warehouse.snapshot().get(name).pins[Part.EXTENT].through for name in VIEWS}
        assert at == {shop.csn}
        return pinned


def go_on_creating(shop: Shop, kill: Kill) -> None:
    with shop.opened() as warehouse:
        made = warehouse.snapshot().find("made")
        if kill.operation == "replace view":
            check_redefinition(warehouse, kill)
        elif not kill.step.endswith("published"):
            assert made is None
            warehouse.sql(CREATIONS[kill.operation])
            shop.states += [shop.states[-1]] * (kill.operation == "create table as")
        assert warehouse.snapshot().get("made").schema.names == EXPECTED_COLUMNS[kill.operation]
        if "view" in kill.operation:
            assert warehouse.verify("made").equal
            warehouse.drop_view("made")
        else:
            warehouse.drop_table("made")


def check_redefinition(warehouse: Warehouse, kill: Kill) -> None:
    """Before its rows are there the view is as it was; whoever refreshes it brings it over the csn."""
    made = warehouse.snapshot().get("made")
    at = warehouse.snapshot().moment.csn
    assert made.schema.names == (("page", "n") if kill.step == "adapt.published" else ("id",))
    assert warehouse.verify("made", at=made.pins[Part.DELTA].through).equal
    warehouse.refresh(("made",))
    assert warehouse.verify("made", at=at).equal
    assert warehouse.verify("made", at=at - 1).equal
    assert len(warehouse.read("made", as_of=at - 1).columns) == 1


EXPECTED_COLUMNS = {
    "create view": ("customer", "n"),
    "replace view": ("page", "n"),
    "create table": ("id",),
    "create table as": ("page",),
}


def check_nothing_is_left(shop: Shop, before: set[str]) -> None:
    """No folder is new that no pinned version names, and no step runs."""
    with shop.place.open(None) as warehouse:
        assert warehouse.catalog.steps(status="running") == ()
        check_newest_is_pinned(shop, warehouse.snapshot())
        new = folders(shop.place.root) - before - pinned_folders(shop.place.root, warehouse.snapshot())
        assert {path for path in new if path.partition("/")[0] not in warehouse.catalog.dropped()} == set()
