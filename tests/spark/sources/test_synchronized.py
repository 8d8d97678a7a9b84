"""Views over captured tables that lose a column at a live database go on by what is declared, from that csn on."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

from rollview.catalog import Part
from rollview.core.interval import Interval
from rollview.core.states import Extent
from rollview.core.substitutes import Substitute
from rollview.relations.reader import Reader
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VIEWS = {
    "without": "TBLPROPERTIES ('rollview.dispensable' = 'column owner') AS SELECT id, owner, balance FROM account",
    "above": "AS SELECT id, SUM(balance) AS s FROM without GROUP BY id",
    "named": "AS SELECT id, owner FROM account WHERE balance > 15",
    "asking": "TBLPROPERTIES ('rollview.on_schema_change' = 'ask', 'rollview.dispensable' = 'columns') "
    "AS SELECT id, owner FROM account",
}
NAMES = Substitute("account", "account", {"owner": "nick"}, Extent.EQUAL, "substitutes.0")


CASES = [
    pytest.param("sqlite", (), id="sqlite"),
    pytest.param("postgres", (), marks=pytest.mark.postgres, id="postgres"),
    pytest.param("postgres", (NAMES,), marks=pytest.mark.postgres, id="postgres, with a substitute"),
]


@pytest.fixture
def bank(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> Iterator[Any]:
    on_disk = kind == "sqlite"
    made = SqliteHarness(tmp_path) if on_disk else PostgresHarness(request.getfixturevalue("postgres_server"))
    with closing(made) as bank:
        yield bank


def execute(bank: Any, text: str) -> None:
    bank.connection.execute(text if bank.kind == "sqlite" else text.encode())


def _drop_owner(bank: Any, warehouse: Warehouse) -> None:
    """SQLite drops no column that a trigger names: there it goes with the triggers, and the table is copied again."""
    if bank.kind == "postgres":
        execute(bank, "ALTER TABLE account DROP COLUMN owner")
        execute(bank, "INSERT INTO account VALUES (5, 50, 'e')")
        (captured,) = warehouse.capture().sources
        assert captured.problem is None
        return
    _without_triggers(bank.connection)
    execute(bank, "ALTER TABLE account DROP COLUMN owner")
    execute(bank, "INSERT INTO account VALUES (5, 50, 'e')")
    warehouse.resnapshot("bank")


def _without_triggers(connection: sqlite3.Connection) -> None:
    for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f'DROP TRIGGER "{name}"')


@pytest.mark.parametrize(("kind", "declared"), CASES)
def test_views_go_on_from_the_csn_at_which_a_column_went(
    spark: SparkSession, tmp_path: Path, bank: Any, declared: tuple[Substitute, ...]
) -> None:
    execute(bank, "ALTER TABLE account ADD COLUMN nick VARCHAR(20)")
    execute(bank, "UPDATE account SET nick = owner")
    Warehouse.create(tmp_path / "w").close()
    with Warehouse.open(tmp_path / "w", spark=spark, substitutes=declared) as warehouse:
        warehouse.add_source("bank", bank.settings())
        for name, text in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {text}")
        execute(bank, "DELETE FROM account WHERE id = 1")
        execute(bank, "INSERT INTO account VALUES (4, 'dan', 40, 'd')")
        warehouse.capture()
        before = warehouse.snapshot().moment.csn
        assert warehouse.snapshot().get("without").pins[Part.DELTA].through < before, "its views are behind"
        _drop_owner(bank, warehouse)
        warehouse.refresh()
        _check_waiting(warehouse, before)
        _check_decided(warehouse, before)
        followed = ["without", "above", *(["named"] if declared else [])]
        assert {view.name for view in warehouse.status().views if view.state == "ok"} == {*followed, "asking"}
        for name in followed:
            assert warehouse.verify(name).equal
        for name in set(followed) - {"above"}:
            _check_followed(warehouse, name, before)
        assert warehouse.read("without").columns == (["id", "owner", "balance"] if declared else ["id", "balance"]), (
            "a substitute comes before leaving something out"
        )


def _check_waiting(warehouse: Warehouse, before: int) -> None:
    """It asks, or has nothing declared: it waits at the csn before, to which it was brought."""
    asking = warehouse.snapshot().get("asking")
    assert asking.state == "schema_changed"
    assert asking.pins[Part.DELTA].through == before
    assert warehouse.view_changes("asking").proposals


def _check_decided(warehouse: Warehouse, before: int) -> None:
    """However late, a decision counts from the csn of the change on."""
    assert warehouse.decide_view("asking", 1).csn == before + 1
    warehouse.refresh()
    _check_followed(warehouse, "asking", before)
    assert warehouse.verify("asking").equal


def _check_followed(warehouse: Warehouse, name: str, before: int) -> None:
    view = warehouse.snapshot().get(name)
    assert [version.csn for version in view.versions][1:] == [before + 1]
    owners = {row.owner for row in warehouse.read(name, as_of=before).collect()}
    assert {"dan"} <= owners, "below it, the view is what it was"
    assert _rolled(warehouse, name, before) == _rows(warehouse, name)


def _rows(warehouse: Warehouse, name: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in warehouse.read(name).collect()}


def _rolled(warehouse: Warehouse, name: str, after: int) -> set[tuple[Any, ...]]:
    """The rows at a csn, in the columns that are left, with the changes since."""
    snapshot = warehouse.snapshot()
    reader = Reader(warehouse.spark, warehouse.root / "data", snapshot)
    names = snapshot.get(name).schema.names
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in warehouse.read(name, as_of=after).collect():
        counts[tuple(row[one] for one in names)] += 1
    for row in reader.changes(name, Interval(after, snapshot.moment.csn)).collect():
        *values, count, _ = row
        counts[tuple(values)] += count
    return {row for row, count in counts.items() if count}
