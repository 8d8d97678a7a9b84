"""Views that name their algorithm: exact at every csn that they publish, coarse between, refused with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.drawings import check_drawing
from tests.spark.sources.shop_at_sources import (
    TABLES,
    Database,
    Rows,
    Truth,
    changes,
    sqlite_shop,
    states,
    transaction,
)

from rollview.catalog import Part
from rollview.errors import OutOfReach, UsageError
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

READ = ("orders", "customers", "regions")
PAIR = "FROM orders o JOIN customers c ON o.customer = c.id"


def keyed(rows: Mapping[str, Rows]) -> Rows:
    found: Rows = Counter()
    for (order, customer, amount), n in rows["orders"].items():
        for (key, region, name), m in rows["customers"].items():
            for (place, title), k in rows["regions"].items():
                if customer == key and region == place and amount > 2:
                    found[order, customer, region, amount, name, title] += n * m * k
    return found


def declared(algorithm: str) -> str:
    return f"""CREATE MATERIALIZED VIEW {algorithm.replace("-", "_")}
        TBLPROPERTIES ('rollview.algorithm' = '{algorithm}') AS
        SELECT o.id, c.id AS customer, r.id AS region, o.amount, c.name, r.title
        {PAIR} JOIN regions r ON c.region = r.id WHERE o.amount > 2"""


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.create(tmp_path / "w") as made, closing(Warehouse.open(made.root, spark=spark)) as opened:
        yield opened


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Database]:
    with sqlite_shop(tmp_path, tuple(TABLES)) as made:
        yield made


def check(warehouse: Warehouse, truth: Truth, name: str, *, read: bool = True) -> list[int]:
    """Right wherever it can be read; the csns at which it cannot."""
    truth.note()
    told = {t: states(truth.first[t], truth.deltas[t], truth.began, truth.known) for t in truth.tables}
    view = warehouse.snapshot().get(name)
    start, mark = view.created, view.pins[Part.DELTA].through
    shown = states(keyed({t: told[t][start] for t in truth.tables}), changes(warehouse, name, start, mark), start, mark)
    inside = [csn for csn in shown if any(stretch.strictly_inside(csn) for stretch in view.coarse)]
    for csn, found in shown.items():
        if csn not in inside:
            expected = +keyed({table: told[table][csn] for table in truth.tables})
            assert found == expected, (name, csn, found - expected, expected - found)
    assert not read or Counter(tuple(row) for row in warehouse.read(name).collect()) == shown[mark]
    return inside


def test_a_view_is_published_when_its_sources_are_quiet_or_it_is_due(shop: Database, warehouse: Warehouse) -> None:
    chance, views = Random(3), ("strobe", "c-tstrobe", "eca", "rolling")
    for _ in range(20):
        transaction(shop, chance)
    warehouse.add_source("s", shop.settings(frozenset(READ)), declared=[declared(name) for name in views])
    for name in views:
        warehouse.create_view(declared(name))
    truth = Truth(warehouse, (shop,), READ)
    for _ in range(6):
        transaction(shop, chance)
        truth.capture()
    assert warehouse.refresh().lagging == ()
    (coarse, *_) = check(warehouse, truth, "strobe")
    assert check(warehouse, truth, "c_tstrobe") == []
    assert check(warehouse, truth, "rolling") == []
    assert check(warehouse, truth, "eca") == check(warehouse, truth, "strobe")
    with pytest.raises(OutOfReach, match="stored as one"):
        warehouse.read("strobe", coarse)
    with pytest.raises(UsageError, match="are not here"):
        warehouse.check_history("strobe")
    judged = {name: warehouse.check_history(name, ask_sources=True) for name in ("strobe", "c_tstrobe")}
    assert {name: (one.level, one.breaks) for name, one in judged.items()} == {
        "strobe": ("strong", "complete"),
        "c_tstrobe": ("complete", None),
    }
    assert len(judged["c_tstrobe"].versions) > len(judged["strobe"].versions)
    for name in ("strobe", "c_tstrobe", "eca"):
        check_drawing(warehouse, name)
    assert "−" in warehouse.draw("rolling")

    # Answers show what is not captured yet.
    for _ in range(4):
        transaction(shop, chance)
        truth.capture()
    mark = warehouse.snapshot().get("strobe").pins[Part.DELTA].through
    shop.execute("UPDATE customers SET name = 'later'")
    shop.execute("UPDATE orders SET amount = 9")
    newest = warehouse.snapshot().moment.csn
    done = warehouse.refresh(to=newest)
    assert set(done.lagging) == {"strobe", "eca"}
    assert "not quiet" in next(view.reason for view in done.views if view.name == "strobe")
    reached = warehouse.snapshot().get("strobe").pins[Part.DELTA].through
    assert mark <= reached < newest == warehouse.snapshot().moment.csn
    assert {csn for csn in check(warehouse, truth, "strobe", read=False) if csn > mark} <= set(range(mark, reached))
    assert check(warehouse, truth, "c_tstrobe") == []

    # Who waits for quiet goes on to where they were, unless told where to stop.
    done = warehouse.refresh()
    assert done.lagging == ()
    for name in ("strobe", "eca"):
        assert warehouse.snapshot().get(name).shown.through > done.csn == newest
        check(warehouse, truth, name)
    assert warehouse.snapshot().get("c_tstrobe").shown.through == newest
    for _ in range(4):
        transaction(shop, chance)
        truth.capture()
    mark = warehouse.snapshot().get("strobe").pins[Part.DELTA].through
    shop.execute("UPDATE customers SET name = 'last'")
    warehouse.set_view("strobe", {"rollview.publish_within": "0 seconds"})
    assert warehouse.refresh(["strobe"]).lagging == ()
    assert {csn for csn in check(warehouse, truth, "strobe") if csn > mark} == set()
    truth.capture()
    assert warehouse.refresh().lagging == ()
    for name in ("strobe", "c_tstrobe", "eca", "rolling"):
        check(warehouse, truth, name)


def test_what_an_algorithm_needs_is_checked_and_told(shop: Database, warehouse: Warehouse) -> None:
    warehouse.add_source("s", shop.settings(frozenset(TABLES)))

    def create(algorithm: str, query: str) -> None:
        properties = f"TBLPROPERTIES ('rollview.algorithm' = '{algorithm}')"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v {properties} AS SELECT {query}")

    refused = {
        ("conventional", f"o.id, c.id AS cid {PAIR}"): "no algorithm 'conventional'",
        ("c-strobe", "c.id, v.page FROM customers c JOIN visits v ON v.customer = c.id"): "'visits' has no key",
        ("rolling", f"c.name, SUM(o.amount) AS total {PAIR} GROUP BY c.name"): "more than SELECT",
        ("t-strobe", f"c.name, SUM(o.amount) AS total {PAIR} GROUP BY c.name"): "more than SELECT",
    }
    for (algorithm, query), reason in refused.items():
        with pytest.raises(UsageError, match=reason):
            create(algorithm, query)
        assert warehouse.snapshot().find("v") is None
    create("eca", f"c.name {PAIR}")
    told = warehouse.explain("v")
    assert (told.algorithm, told.promises) == ("eca", "strong")
    assert "whole old rows of what was deleted" in told.needs
    assert {(ask.table, ask.by) for ask in told.asks} == {("orders", ("customer",)), ("customers", ("id",))}
    with pytest.raises(UsageError, match="is not stored with its rows"):
        warehouse.set_view("v", {"rollview.algorithm": "g-strobe"})


def test_keys_that_a_view_does_not_show_are_stored_and_stay_hidden(shop: Database, warehouse: Warehouse) -> None:
    """Names are not unique, so without keys nobody could tell which row has gone."""
    chance, views = Random(8), {"strobe": "strobe", "c_tstrobe": "c-tstrobe"}
    for _ in range(20):
        transaction(shop, chance)
    said = {view: f"TBLPROPERTIES ('rollview.algorithm' = '{name}')" for view, name in views.items()}
    texts = [f"CREATE MATERIALIZED VIEW {view} {said[view]} AS SELECT c.name {PAIR}" for view in views]
    warehouse.add_source("s", shop.settings(frozenset(READ)), declared=texts)
    for text in texts:
        warehouse.create_view(text)
    warehouse.add_subscriber("s", "c_tstrobe")
    began, expected = warehouse.snapshot().moment.csn, dict[int, Rows]()
    for turn in range(16):
        for _ in range(3):
            transaction(shop, chance)
        warehouse.capture()
        there = shop.execute(f"SELECT c.name {PAIR}").fetchall()
        expected[warehouse.snapshot().moment.csn] = Counter(map(tuple, there))
        if turn in (4, 5, 10, 15):
            assert warehouse.refresh().lagging == ()
        if turn == 10:
            warehouse.maintain()
    assert len({tuple(sorted(map(str, one.elements()))) for one in expected.values()}) > 4, "it changes all the time"
    assert max(max(one.values(), default=0) for one in expected.values()) > 1, "and shows names twice"

    def read(view: str, csn: int | None = None) -> Rows:
        rows = warehouse.read(view, csn)
        assert rows.columns == ["name"]
        return Counter(tuple(row) for row in rows.collect())

    assert {csn: read("c_tstrobe", csn) for csn in expected} == expected
    last = max(expected)
    for view in views:
        assert read(view) == read(view, last) == expected[last]
        assert warehouse.verify(view, ask_sources=True).equal
        assert "not shown: c.id, o.id" in str(warehouse.explain(view).operators)
    assert warehouse.check_history("c_tstrobe", ask_sources=True).level == "complete"
    assert warehouse.check_history("strobe", ask_sources=True).level == "strong"
    assert warehouse.delta("c_tstrobe", began).columns == ["name", "_count", "_csn"]
    batches = list(warehouse.batches("s"))
    assert {name for batch in batches for name in batch.rows.column_names if name.startswith("_rv")} == set()
    assert any(batch.rows.num_rows for batch in batches)
    warehouse.roll(["c_tstrobe"], to=min(expected))
    assert read("c_tstrobe") == expected[min(expected)]
