"""A refresh reads the catalog as often as it must, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from tests.spark.oracle.warehouses import fresh

from rollview.catalog import reading
from rollview.catalog import tables as t
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLES = ("r", "s", "t")
MOST_SNAPSHOTS = 7
"""Of the whole catalog: before the refresh, for each view, before its extent is written, and afterwards."""


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path / "w") as made:
        made.sql(*(f"CREATE TABLE {name} (k INT, {name}v INT)" for name in TABLES))
        made.create_view("CREATE MATERIALIZED VIEW v AS SELECT rv, sv, tv FROM r JOIN s USING (k) JOIN t USING (k)")
        made.sql(*(f"INSERT INTO {name} VALUES (1, 2)" for name in TABLES))
        yield made


def test_a_refresh_asks_once_for_what_moved_of_each_table(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    snapshots: list[object] = []
    read = reading.read_snapshot

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(" ".join(statement.split()))

    def noting(connection: sa.Connection) -> object:
        snapshots.append(connection)
        return read(connection)

    monkeypatch.setattr(reading, "read_snapshot", noting)
    engine = warehouse.catalog._database.engine
    sa.event.listen(engine, "before_cursor_execute", note)
    warehouse.refresh()
    sa.event.remove(engine, "before_cursor_execute", note)
    assert len(snapshots) <= MOST_SNAPSHOTS
    asked = [one for one in statements if f"FROM {t.change.name}" in one]
    assert len(asked) == len(TABLES)
    alone = [one for one in statements if one.startswith(f"SELECT {t.relation.name}.id FROM {t.relation.name} WHERE")]
    assert not alone, "which relation it is, is asked in the same statement"
