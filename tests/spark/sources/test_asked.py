"""Views over tables that are not copied are exact at every csn, and what cannot be is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.servers.postgres import PostgresServer
from tests.sizes import FULL, times
from tests.spark.sources.shop_at_sources import (
    GROUPED,
    JOINED,
    PAIRED,
    TABLES,
    VIEWS,
    Database,
    Truth,
    grouped,
    mariadb_shop,
    postgres_shop,
    sqlite_shop,
    transaction,
    writers,
)

from rollview.catalog import Part
from rollview.compensate.timed import PropagationQuery
from rollview.errors import OutOfReach, UsageError
from rollview.propagate.queries import QueryRun
from rollview.schedule.commands import refresh_views
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.spark

ALL = tuple(TABLES)


KINDS = [
    *(["sqlite"] if FULL else []),
    *(pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("postgres", "mariadb")),
]
"""The last is SQLite with MariaDB."""


@pytest.fixture(params=KINDS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Database, ...]]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield (stack.enter_context(sqlite_shop(tmp_path, ALL)),)
            return
        if request.param == "postgres":
            yield (stack.enter_context(postgres_shop(request.getfixturevalue("postgres_server"), ALL)),)
            return
        first = stack.enter_context(sqlite_shop(tmp_path, ("orders", "visits")))
        server = request.getfixturevalue("mariadb_server")
        yield first, stack.enter_context(mariadb_shop(server, ("customers", "regions")))


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.create(tmp_path / "w") as made, closing(Warehouse.open(made.root, spark=spark)) as opened:
        yield opened


@pytest.mark.parametrize("seed", range(times(1, 20)))
def test_views_that_ask_are_exact_at_every_csn(shop: tuple[Database, ...], warehouse: Warehouse, seed: int) -> None:
    """While four write, the view lags, capture and refresh go on by turns, and what is asked sees commits that are not
    captured yet."""
    chance = Random(seed)
    asked = frozenset(ALL if seed == 0 else chance.sample(ALL, chance.randint(1, 3)))
    for _ in range(20):
        transaction(chance.choice(shop), chance)
    for number, database in enumerate(shop):
        warehouse.add_source(f"s{number}", database.settings(asked), declared=[text for text, _ in VIEWS.values()])
    truth = Truth(warehouse, shop, ALL)
    assert {name for name in ALL if not warehouse.snapshot().get(name).is_kept} == asked
    warehouse.create_view(JOINED)
    for place in range(times(3, 12)):
        with writers(shop, seed + place, times(6, 30)):
            if place == 0:
                warehouse.create_view(GROUPED)
            truth.capture()
            warehouse.refresh(["joined"] if place == 1 else ())
            if place == 2:
                warehouse.create_view(PAIRED)
                truth.note()
                warehouse.maintain()
    truth.capture()
    transaction(chance.choice(shop), chance)
    warehouse.refresh()
    assert truth.check(*VIEWS) >= 3
    assert {name for name in ALL if not warehouse.snapshot().get(name).is_kept} == asked


def test_a_view_that_asks_keeps_no_rows_and_waits_for_its_source(
    spark: SparkSession, tmp_path: Path, warehouse: Warehouse
) -> None:
    chance = Random(5)
    with sqlite_shop(tmp_path, ALL) as database:
        for _ in range(20):
            transaction(database, chance)
        needed = tuple(replace(table, needed=True) for table in database.settings(frozenset()).tables)
        settings = replace(database.settings(frozenset()), tables=needed)
        warehouse.add_source("shop", settings, declared=[JOINED])
        truth = Truth(warehouse, (database,), ALL[:3])
        property_ = "CREATE MATERIALIZED VIEW joined TBLPROPERTIES ('rollview.maintenance' = 'source-queries')"
        warehouse.create_view(JOINED.replace("CREATE MATERIALIZED VIEW joined", property_))
        assert warehouse.snapshot().get("orders").is_kept
        warehouse.maintain()
        assert not any(warehouse.snapshot().get(name).is_kept for name in ALL[:3])
        for _ in range(6):
            transaction(database, chance)
        truth.capture()
        path, away = Path(database.address), tmp_path / "away.db"
        path.rename(away)
        done = warehouse.refresh()
        assert "there is no file" in done.views[0].reason
        assert done.lagging == ("joined",)
        mark = warehouse.snapshot().get("joined").pins[Part.DELTA].through
        assert mark == truth.began
        away.rename(path)
        assert warehouse.refresh().lagging == ()
        assert truth.check("joined") == 1
        with pytest.raises(UsageError, match="are not here"):
            warehouse.check_history("joined")
        told = warehouse.check_history("joined", ask_sources=True)
        assert (told.level, told.so_far, len(told.versions)) == ("complete", False, 2)
        assert any(one.rows != "0 rows" for one in told.versions)


@pytest.mark.postgres
def test_a_table_that_is_emptied_at_once_is_one_coarse_change(
    postgres_server: PostgresServer, warehouse: Warehouse
) -> None:
    chance = Random(7)
    with postgres_shop(postgres_server, ALL) as database:
        for _ in range(30):
            transaction(database, chance)
        warehouse.add_source("shop", database.settings(frozenset(ALL)), declared=[GROUPED])
        warehouse.create_view(GROUPED)

        def check() -> None:
            warehouse.capture()
            warehouse.refresh()
            rows = {table: database.rows(table) for table in ALL}
            assert Counter(tuple(row) for row in warehouse.read("grouped").collect()) == grouped(rows)

        began = warehouse.snapshot().moment.csn
        database.execute("UPDATE orders SET amount = amount + 1")
        database.execute("TRUNCATE customers")
        # The source no longer has what the view would have to ask for, and nobody has captured that yet.
        warehouse.capture()
        database.execute("TRUNCATE regions")
        (refreshed,) = warehouse.refresh().views
        assert "came anew" in refreshed.reason
        check()
        with pytest.raises(OutOfReach, match="stored as one"):
            warehouse.read("grouped", began + 1)
        warehouse.maintain()
        assert not any(warehouse.snapshot().get(name).is_kept for name in ALL)
        for _ in range(10):
            transaction(database, chance)
        check()


@pytest.mark.parametrize("asked", [ALL[1:3], ALL[:3]], ids=["by boxes", "by queries"])
def test_tables_that_are_asked_for_may_move_one_by_one(
    tmp_path: Path, warehouse: Warehouse, asked: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all of them are asked for, by queries that see too much and others that compensate for it."""
    queries: list[PropagationQuery] = []
    execute = QueryRun.execute

    def counted(run: QueryRun, query: PropagationQuery) -> int:
        queries.append(query)
        return execute(run, query)

    monkeypatch.setattr(QueryRun, "execute", counted)
    chance = Random(11)
    with sqlite_shop(tmp_path, ALL) as database:
        for _ in range(20):
            transaction(database, chance)
        warehouse.add_source("shop", database.settings(frozenset(asked)), declared=[JOINED])
        truth = Truth(warehouse, (database,), ALL[:3])
        turns = ", ".join(f"{table} manual" for table in ALL[:3])
        said = f"CREATE MATERIALIZED VIEW joined TBLPROPERTIES ('rollview.propagate' = '{turns}')"
        warehouse.create_view(JOINED.replace("CREATE MATERIALIZED VIEW joined", said))
        for table in (*ALL[:3], *chance.sample(ALL[:3], 2)):
            for _ in range(3):
                transaction(database, chance)
            truth.capture()
            transaction(database, chance)
            refresh_views(warehouse._place, ["joined"], apply=False, due={"joined": frozenset({table})})
        open_ = [place.queries for place in warehouse.snapshot().get("joined").places.values() if place.queries]
        assert bool(open_) == (len(asked) == 3)
        truth.capture()
        assert warehouse.refresh().lagging == ()
        assert truth.check("joined") >= 5
        assert any(not one.is_forward for one in queries) == (len(asked) == 3)
        assert {name for name in ALL if not warehouse.snapshot().get(name).is_kept} == set(asked)
        assert warehouse.check_history("joined", ask_sources=True).level == "complete"
        assert warehouse.explain("joined").algorithm == ("rolling" if len(asked) == 3 else "sweep")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("o.id FROM orders o JOIN customers c ON o.customer < c.id", "by equal columns of one type"),
        ("o.id FROM orders o JOIN customers c ON o.customer = c.name", "by equal columns of one type"),
        ("o.id FROM orders o LEFT JOIN customers c ON o.customer = c.region", "looks at rows of a key again"),
        ("id, ROW_NUMBER() OVER (ORDER BY id) AS n FROM customers", "recomputed whole"),
    ],
)
def test_what_cannot_be_kept_by_asking_is_refused(
    tmp_path: Path, warehouse: Warehouse, query: str, reason: str
) -> None:
    with sqlite_shop(tmp_path, ALL) as database:
        warehouse.add_source("shop", database.settings(frozenset({"customers"})))
        with pytest.raises(UsageError, match=reason):
            warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS SELECT {query}")
        assert warehouse.snapshot().find("v") is None


def test_a_view_of_one_table_needs_no_rows_and_so_asks_for_none(tmp_path: Path, warehouse: Warehouse) -> None:
    with sqlite_shop(tmp_path, ALL) as database:
        database.execute("INSERT INTO orders VALUES (1, 1, 5)")
        large = "CREATE MATERIALIZED VIEW large AS SELECT id FROM orders WHERE amount > 3"
        warehouse.add_source("shop", database.settings(frozenset({"orders"})), declared=[large])
        warehouse.create_view(large)
        database.execute("INSERT INTO orders VALUES (2, 1, 6)")
        warehouse.capture()
        warehouse.refresh()
        assert sorted(warehouse.read("large").collect()) == [(1,), (2,)]
        with pytest.raises(OutOfReach, match="No rows of table 'orders' are kept here"):
            warehouse.read("orders").collect()


@pytest.mark.parametrize("kind", ["files", "debezium", "mysql", "delta"])
def test_kinds_that_cannot_be_asked_are_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=r"all columns are captured|cannot be asked for rows"):
        SourceSettings(kind, "x", (TableSettings("t", "t", needed=True, asked=True),))


def test_a_hundred_times_larger_table_is_asked_for_the_same(tmp_path: Path, warehouse: Warehouse) -> None:
    with ExitStack() as stack:
        shops = {n: stack.enter_context(sqlite_shop(tmp_path, ("orders", "customers"))) for n in (100, 10_000)}
        for size, database in shops.items():
            database.execute(f"INSERT INTO customers {_numbers(size)}")
            database.execute("INSERT INTO orders VALUES (1, 1, 1)")
            tables = (TableSettings(f"{t}{size}", t, needed=True, asked=True) for t in database.tables)
            view = f"""CREATE MATERIALIZED VIEW v{size} AS SELECT o.id, c.name
                FROM orders{size} o JOIN customers{size} c ON o.customer = c.id"""
            settings = SourceSettings("sqlite", database.address, tuple(tables))
            warehouse.add_source(f"s{size}", settings, declared=[view])
            warehouse.create_view(view)

        def asked() -> list[tuple[int, int, int]]:
            told = [source.asked for source in warehouse.sources()]
            return [(one.asks, one.keys, one.bytes) for one in told if one is not None]

        before = asked()
        for database in shops.values():
            database.execute("INSERT INTO orders VALUES (2, 50, 1), (3, 51, 1), (4, 50, 1)")
            database.execute("UPDATE customers SET name = 'x' WHERE id = 1")
        warehouse.capture()
        warehouse.refresh()
        small, large = (
            tuple(now - then for now, then in zip(*pair, strict=True)) for pair in zip(asked(), before, strict=True)
        )
        assert small[:2] == large[:2] == (2, 3)
        assert 0 < large[2] <= 1.2 * small[2]
        for size, database in shops.items():
            assert warehouse.verify(f"v{size}", ask_sources=True).equal
            assert sorted(warehouse.read(f"v{size}").collect()) == [(1, "x"), (2, "n50"), (3, "n51"), (4, "n50")]
            rows = len(database.rows("customers"))
            assert rows == size


def _numbers(size: int) -> str:
    series = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {size})"
    return f"{series} SELECT i, 1, 'n' || i FROM n"
