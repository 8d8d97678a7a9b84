"""A join of three databases of different kinds is exact at every csn, against what each of them says it held."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.servers.mariadb import MariadbServer
from tests.servers.postgres import PostgresServer
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.mariadb]

Rows = list[tuple[int, ...]]
Answer = Counter[tuple[int, int, int]]

VIEW = """
    CREATE MATERIALIZED VIEW revenue AS
    SELECT c.region, SUM(o.amount * a.price) AS revenue, COUNT(*) AS lines
    FROM orders o JOIN articles a ON o.article = a.id JOIN customers c ON o.customer = c.id GROUP BY c.region
"""


class Sources:
    """What each source holds after each of its commits, told by itself."""

    def __init__(self, pg: PostgresHarness, my: MariadbHarness, lake: Path) -> None:
        self._pg, self._my, self._lake = pg, my, lake
        pg.connection.execute("CREATE TABLE orders (customer INT, article INT, amount INT)")
        pg.connection.execute(
            "ALTER TABLE orders REPLICA IDENTITY FULL; INSERT INTO orders VALUES (1, 1, 2), (2, 1, 1)"
        )
        my.execute(
            "CREATE TABLE articles (id INT PRIMARY KEY, price INT)", "INSERT INTO articles VALUES (1, 10), (2, 20)"
        )
        self._regions = {1: 1, 2: 2}
        self._save()
        self.history: dict[str, list[Rows]] = {name: [] for name in ("orders", "articles", "customers")}
        for table in self.history:
            self._note(table)

    def settings(self, table: str) -> SourceSettings:
        where = {
            "orders": ("postgres", self._pg.url),
            "articles": ("mariadb", self._my.url),
            "customers": ("delta", str(self._lake)),
        }
        return SourceSettings(*where[table], (TableSettings(table, table),))

    def write(self, chance: random.Random) -> None:
        one, two, number = chance.randint(1, 3), chance.randint(1, 3), chance.randint(1, 9)
        table = chance.choice(("orders", "articles", "customers"))
        if table == "orders":
            texts = (f"INSERT INTO orders VALUES ({one}, {two}, {number})", f"DELETE FROM orders WHERE amount < {one}")
            self._pg.connection.execute(";".join((*texts, "INSERT INTO orders VALUES (1, 1, 3)")).encode())
        elif table == "articles":
            self._my.execute(f"REPLACE INTO articles VALUES ({one}, {number + len(self.history[table]) * 100})")
        else:
            self._regions[one] = 10 + len(self.history[table])
            self._save()
        self._note(table)

    def _save(self) -> None:
        columns = list(zip(*self._regions.items(), strict=True))
        rows = pa.table(
            {name: pa.array(values, pa.int32()) for name, values in zip(("id", "region"), columns, strict=True)}
        )
        write_deltalake(self._lake / "customers", rows, mode="overwrite")

    def _note(self, table: str) -> None:
        if table == "orders":
            rows = self._pg.connection.execute("SELECT * FROM orders").fetchall()
        else:
            rows = list(self._regions.items()) if table == "customers" else self._my.execute("SELECT * FROM articles")  # type: ignore[assignment]
        self.history[table].append([tuple(row) for row in rows])

    def answer(self, numbers: dict[str, int]) -> Answer:
        orders, articles, customers = (self.history[name][number] for name, number in numbers.items())
        revenue: Counter[int] = Counter()
        lines: Counter[int] = Counter()
        for customer, article, amount in orders:
            for region in (region for number, region in customers if number == customer):
                for price in (price for number, price in articles if number == article):
                    revenue[region] += amount * price
                    lines[region] += 1
        return Counter((region, revenue[region], count) for region, count in lines.items())


@pytest.fixture
def sources(postgres_server: PostgresServer, mariadb_server: MariadbServer, tmp_path: Path) -> Iterator[Sources]:
    with closing(PostgresHarness(postgres_server)) as pg, closing(MariadbHarness(mariadb_server)) as my:
        yield Sources(pg, my, tmp_path / "lake")


def test_a_join_of_three_sources_is_exact_at_every_csn(spark: SparkSession, sources: Sources, tmp_path: Path) -> None:
    with Warehouse.create(tmp_path / "w") as made:
        warehouse = Warehouse.open(made.root, spark=spark)
        for table in sources.history:
            warehouse.add_source(f"of_{table}", sources.settings(table))
        warehouse.create_view(VIEW)
        chance = random.Random(4)
        for _ in range(5):
            for _ in range(3):
                sources.write(chance)
            assert [done.problem for done in warehouse.capture().sources] == [None] * 3
        warehouse.refresh()
        entries = warehouse.catalog.ledger()
        assert Counter(entry.source.removeprefix("of_") for entry in entries) == {
            table: len(states) for table, states in sources.history.items()
        }
        taken = dict.fromkeys(sources.history, -1)
        for entry in entries:
            taken[entry.source.removeprefix("of_")] += 1
            if entry.csn >= 3:
                rows = Counter(tuple(row) for row in warehouse.read("revenue", as_of=entry.csn).collect())
                assert rows == sources.answer(taken), entry
