"""Views over captured tables whose columns change at a live database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sources.harness import Write, account
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness

from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HARNESSES: dict[str, Callable[[Any], Any]] = {"postgres": PostgresHarness, "mariadb": MariadbHarness}

pytestmark = pytest.mark.spark


@pytest.fixture(params=[pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in HARNESSES])
def bank(request: pytest.FixtureRequest) -> Iterator[Any]:
    with closing(HARNESSES[request.param](request.getfixturevalue(f"{request.param}_server"))) as made:
        yield made


def execute(bank: Any, *texts: str) -> None:
    for text in texts:
        if isinstance(bank, MariadbHarness):
            bank.execute(text)
        else:
            bank.connection.execute(text.encode())


def test_views_go_on_over_new_names_and_new_columns(spark: SparkSession, tmp_path: Path, bank: Any) -> None:
    with Warehouse.create(tmp_path / "w") as made:
        warehouse = Warehouse.open(made.root, spark=spark)
        warehouse.add_source("bank", bank.settings())
        warehouse.create_view("CREATE MATERIALIZED VIEW whole AS SELECT * FROM account WHERE balance > 1")
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW owners AS SELECT owner, SUM(balance) AS s FROM account GROUP BY owner"
        )
        bank.write(Write("account", None, account(4, "dan", "40.00")))
        execute(
            bank,
            "ALTER TABLE account RENAME COLUMN owner TO holder",
            "ALTER TABLE account ADD COLUMN points INT DEFAULT 5",
            "UPDATE account SET balance = balance + 1 WHERE id < 3",
            "INSERT INTO account VALUES (5, 'eve', 7, 8)",
        )
        (captured,) = warehouse.capture().sources
        assert captured.problem is None
        warehouse.refresh()
        assert all(view.state == "ok" for view in warehouse.status().views)
        assert warehouse.read("account").columns == ["id", "holder", "balance", "points"]
        assert {(row.holder, row.points) for row in warehouse.read("account").collect()} == {
            *((name, 5) for name in ("ann", "bob", None, "dan")),
            ("eve", 8),
        }
        assert warehouse.read("whole").columns == ["id", "owner", "balance"]
        last = warehouse.snapshot().moment.csn
        for view in ("whole", "owners"):
            assert all(warehouse.verify(view, at=csn).equal for csn in range(1, last + 1))
        warehouse.create_view(
            "CREATE MATERIALIZED VIEW points AS SELECT points, COUNT(*) AS n FROM account GROUP BY points"
        )
        execute(bank, "ALTER TABLE account DROP COLUMN points", "DELETE FROM account WHERE id = 1")
        warehouse.capture()
        warehouse.refresh()
        states = {view.name: view.state for view in warehouse.status().views}
        assert states == {"whole": "ok", "owners": "ok", "points": "schema_changed"}
        assert {(row.points, row.n) for row in warehouse.read("points").collect()} == {(5, 4), (8, 1)}
        assert all(warehouse.verify(view).equal for view in ("whole", "owners"))
