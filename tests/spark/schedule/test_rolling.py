"""Views that are propagated table by table: right at every csn up to the mark, whatever tables moved, and when."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.drawings import check_drawing
from tests.sizes import times
from tests.spark.oracle.checks import check_view
from tests.spark.oracle.test_histories import History
from tests.spark.oracle.warehouses import fresh

from rollview import errors
from rollview.catalog import Part
from rollview.propagate import run as running
from rollview.relations.rolling import places_of
from rollview.results import Refreshed
from rollview.schedule import commands, view_steps
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOINS = (
    ("SELECT c.id, c.x, p.g, p.w FROM c JOIN p ON c.pid = p.id", ("c", "p")),
    (
        "SELECT d.y, a.id, b.id AS other, p.g FROM d JOIN c a ON d.cid = a.id JOIN c b ON a.pid = b.pid "
        "JOIN p ON b.pid = p.id",
        ("d", "c", "p"),
    ),
    ("SELECT c.id, p.g FROM c JOIN p ON c.pid = p.id UNION ALL SELECT a, b FROM o", ("c", "p", "o")),
)


class Rolling(History):
    """A join whose tables are moved one by one."""

    def add_join(self) -> None:
        self.model.views["v"], self.reads = JOINS[self.random.randrange(len(JOINS))]
        said = ", ".join(f"{table} manual" for table in self.reads)
        properties = f"TBLPROPERTIES ('rollview.propagate' = '{said}')"
        self.warehouse.create_view(f"CREATE MATERIALIZED VIEW v {properties} AS {self.model.views['v']}")

    def move(self) -> None:
        """One table or some, part of the way; now and then it fails before it is published."""
        due = frozenset(self.random.sample(self.reads, self.random.randint(1, len(self.reads))))
        place, to = self.warehouse._place, self.random.randint(self.mark, self.model.csn)
        commands.refresh_views(place, ["v"], to=to, apply=False, due={"v": due})
        moved = {table: csn for table, csn in self.places.items() if table in due}
        assert all(csn >= to for csn in moved.values()), (to, moved)
        assert self.mark == min(self.places.values())

    @property
    def mark(self) -> int:
        return self.warehouse.snapshot().get("v").pins[Part.DELTA].through

    @property
    def places(self) -> dict[str, int]:
        snapshot = self.warehouse.snapshot()
        return places_of(snapshot, snapshot.get("v"))


@pytest.mark.parametrize("seed", [3 * seed for seed in range(times(2, full=40))])
def test_every_csn_up_to_the_mark_is_the_definition_there(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = Rolling(spark, tmp_path / "warehouse", seed)
    history.write(2)
    history.add_join()
    for turn in range(4):
        history.write(history.random.randint(1, 2))
        if turn == 2:
            with monkeypatch.context() as broken:
                broken.setattr(view_steps, "publish_propagate", _lost)
                _fails(history)
        history.move()
    check_view(history.warehouse, history.model, "v", f"seed {seed}, {history.places},")
    history.warehouse.roll(["v"], "latest")
    history.warehouse.refresh(["v"], to=history.random.randint(history.mark, history.model.csn))
    history.write(1)
    history.move()
    history.warehouse.refresh()
    assert set(history.places.values()) == {history.model.csn}
    check_view(history.warehouse, history.model, "v", f"seed {seed}, together,")
    check_drawing(history.warehouse, "v")
    history.warehouse.close()


def _lost(computed: running.Computed, *_: object) -> None:
    """A process that ends when its files are in the log and nothing is published."""
    running._log(computed, _[0])  # type: ignore[arg-type]
    raise KeyboardInterrupt


def _fails(history: Rolling) -> None:
    before = history.places
    try:
        history.move()
    except KeyboardInterrupt:
        assert history.places == before


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Warehouse:
    warehouse = fresh(spark, tmp_path / "w")
    warehouse.sql("CREATE TABLE orders (id INT, customer INT)", "CREATE TABLE customers (id INT, name STRING)")
    return warehouse


JOINED = "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id"


def test_a_daemon_obeys_each_table_and_a_view_above_follows_the_mark(shop: Warehouse) -> None:
    said = "orders continuous, customers every 1 hour"
    shop.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('rollview.propagate' = '{said}') AS {JOINED}")
    shop.create_view("CREATE MATERIALIZED VIEW n AS SELECT name, COUNT(*) AS n FROM v GROUP BY name")
    shop.sql("INSERT INTO customers VALUES (1, 'Ann')")
    shop.refresh()
    commands.refresh_views(shop._place, ["v"], apply=False, due={"v": frozenset({"customers"})})
    shop.sql("INSERT INTO orders VALUES (10, 1)")
    before = shop.sql("UPDATE customers SET name = 'Bea'")[-1].csn - 1
    newest = shop.sql("INSERT INTO orders VALUES (11, 1)")[-1].csn
    stop = threading.Event()
    for event in shop.run(3600, stop, schedule="continuous"):
        assert isinstance(event, Refreshed), event
        view, above = (shop.snapshot().get(name) for name in ("v", "n"))
        assert view.pins[Part.DELTA].through <= before, "customers have no turn for an hour"
        if {view.pins[Part.EXTENT].through, above.pins[Part.EXTENT].through} == {before}:
            stop.set()
    status = {one.name: one for one in shop.status().views}["v"]
    assert {one.table: one.csn for one in status.places} == {"orders": newest, "customers": before}
    assert [one.cadence for one in shop.explain("v").places] == ["continuous", "every 1 hour"]
    assert [tuple(row) for row in shop.read("v").collect()] == [(10, "Ann")]
    assert [tuple(row) for row in shop.read("n").collect()] == [("Ann", 1)]
    with pytest.raises(errors.OutOfReach):
        shop.roll(["v"], newest)
    with pytest.raises(errors.Retryable):
        shop.refresh(["v"], mode="recompute")
    shop.refresh()
    assert sorted(tuple(row) for row in shop.read("v").collect()) == [(10, "Bea"), (11, "Bea")]
    assert shop.status().views[0].places[0].csn == newest


def test_who_reads_changes_gets_the_net_effect_of_a_csn_that_came_in_two_boxes(shop: Warehouse) -> None:
    said = "orders manual, customers manual"
    shop.sql("INSERT INTO orders VALUES (10, 1)", "INSERT INTO customers VALUES (1, 'Ann')")
    shop.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('rollview.propagate' = '{said}') AS {JOINED}")
    after = shop.snapshot().moment.csn
    shop.add_subscriber("s", "v", from_=after)
    with shop.transaction() as together:
        together.sql("UPDATE orders SET id = 20")
        together.sql("UPDATE customers SET name = 'Bea'")
    for table in ("orders", "customers"):
        commands.refresh_views(shop._place, ["v"], apply=False, due={"v": frozenset({table})})
    changes = sorted((row.id, row.name, row._count) for row in shop.delta("v", after, after + 1).collect())
    assert changes == [(10, "Ann", -1), (20, "Bea", 1)]
    batch = shop.pull("s")
    assert batch is not None
    assert batch.rows.num_rows == 2


@pytest.mark.parametrize(
    ("query", "said", "reason"),
    [
        ("SELECT name, COUNT(*) AS n FROM customers GROUP BY name", "customers manual", "groups"),
        (
            "SELECT o.id FROM orders o LEFT JOIN customers c ON o.customer = c.id",
            "orders manual, customers manual",
            "is not linear",
        ),
        (JOINED, "orders manual", "says nothing of 'customers'"),
        (JOINED, "orders manual, customers manual, shops manual", "does not read 'shops'"),
        (JOINED, "orders manual, customers now and then", "does not say when"),
    ],
)
def test_what_cannot_go_table_by_table_is_refused_with_the_reason(
    shop: Warehouse, query: str, said: str, reason: str
) -> None:
    with pytest.raises(errors.UsageError, match=reason):
        shop.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ('rollview.propagate' = '{said}') AS {query}")
    shop.create_view(f"CREATE MATERIALIZED VIEW v AS {query}")
    with pytest.raises(errors.UsageError, match=reason):
        shop.set_view("v", {"rollview.propagate": said})


def test_rows_of_a_query_that_nobody_can_bound_are_refused_also_for_a_view_that_is_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A refresh of all views would fail at it."""
    query = "SELECT c.id, p.g FROM c JOIN p ON c.pid = p.id"
    with fresh(spark, tmp_path) as warehouse:
        warehouse.sql("CREATE TABLE c (id INT, pid INT)", "CREATE TABLE p (id INT, g INT)")
        by_table = "'rollview.propagate' = 'c manual, p manual'"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v TBLPROPERTIES ({by_table}) AS {query}")
        for wrong in ("'rollview.max_rows' = '500'", f"{by_table}, 'rollview.max_rows' = '0'"):
            with pytest.raises(errors.UsageError, match=r"max_rows"):
                warehouse.create_view(f"CREATE OR REPLACE MATERIALIZED VIEW v TBLPROPERTIES ({wrong}) AS {query}")
