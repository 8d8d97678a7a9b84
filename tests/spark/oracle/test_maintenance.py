"""Random maintenance between random commits, propagations and rolls: no answer changes at any csn that is in reach.

Half of the seeds do everything through Spark that few rows need not.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sizes import times
from tests.spark.oracle.bags import assert_same, bag
from tests.spark.oracle.model import by_csn
from tests.spark.oracle.test_histories import History, close
from tests.spark.oracle.warehouses import fresh

from rollview.catalog import Part
from rollview.errors import Conflict, OutOfReach
from rollview.results import Maintained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES = int(os.environ.get("ROLLVIEW_SPARK_MAINTENANCES", times(2, full=20)))
BOUNDS = ("rollview.publish.merge.BOUND", "rollview.maintain.shorten.BOUND", "rollview.maintain.forward.BOUND")


class Upkept(History):
    def maintain(self) -> Maintained:
        """Something or nothing is given up, for all or for one."""
        wishes: dict[str, Any] = {}
        if self.random.random() < 0.3:
            wishes["prune_before"] = self.random.randint(0, self.model.csn)
        if self.random.random() < 0.6:
            wishes["compress_before"] = self.random.randint(0, self.model.csn)
        if self.random.random() < 0.3:
            wishes["detail"] = f"{self.random.randint(0, 4)} commits"
        names = self.random.choice([(), (), (self.random.choice(list(self.model.views)),)])
        grace = self.random.choice([timedelta(0), timedelta(hours=1)])
        return self.warehouse.maintain(names, grace=grace, **wishes)

    def check_tables(self, about: str) -> None:
        for table in self.tables:
            relation = self.warehouse.snapshot().get(table.name)
            csns = range(relation.pins[Part.DELTA].after, self.model.csn + 1)
            legal = [csn for csn in csns if not any(stretch.strictly_inside(csn) for stretch in relation.coarse)]
            found = by_csn({csn: self.warehouse.read(table.name, as_of=csn) for csn in legal})
            for csn in legal:
                expected = bag(self.model.states[csn][table.name].elements())
                assert_same(found[csn], expected, f"{about} table {table.name} at csn {csn} of {legal}")
            for csn in set(range(self.model.csn + 1)) - set(legal):
                with pytest.raises(OutOfReach):
                    self.warehouse.read(table.name, as_of=csn)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_no_answer_changes(spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.maintain.plan.FEW", 2)
    monkeypatch.setattr("rollview.maintain.plan.LEAST_ROWS", 1)
    for bound in BOUNDS if seed % 2 else ():
        monkeypatch.setattr(bound, 0)
    history = Upkept(spark, tmp_path / "warehouse", seed)
    history.write(2)
    history.add_view("v0")
    history.add_view("v1")
    done = []
    for _ in range(times(2, full=3)):
        history.write(history.random.randint(1, 2))
        history.propagate()
        history.roll()
        done += history.maintain().actions
        history.write(1)
        history.warehouse.propagate()
        done += history.maintain().actions
        history.roll()
    history.check_tables(f"seed {seed},")
    history.check(f"seed {seed},")
    assert done
    close(history.warehouse)


def test_a_transaction_cannot_overlook_what_was_pruned_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = fresh(spark, tmp_path / "warehouse")
    warehouse.sql("CREATE TABLE t (id INT PRIMARY KEY, x INT)", "INSERT INTO t VALUES (1, 1)")
    with warehouse.transaction() as transaction:
        transaction.sql("UPDATE t SET x = 2 WHERE id = 1")
        warehouse.sql("UPDATE t SET x = 3 WHERE id = 1")
        warehouse.maintain(prune_before="latest", grace=timedelta(hours=1))
        with pytest.raises(Conflict, match="pruned or compressed"):
            transaction.commit()
    assert [tuple(row) for row in warehouse.read("t").collect()] == [(1, 3)]
    warehouse.close()


def test_who_reads_goes_on_reading(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that were asked for before maintenance are there after it, at csns that nobody else can ask for any more."""
    warehouse = fresh(spark, tmp_path / "warehouse")
    warehouse.sql("CREATE TABLE t (id INT, x DOUBLE)")
    for n in range(4):
        warehouse.sql(f"INSERT INTO t VALUES ({n}, 0.5)")
    asked = {csn: warehouse.read("t", as_of=csn) for csn in range(5)}
    warehouse.maintain(prune_before=4)
    assert {csn: rows.count() for csn, rows in asked.items()} == {csn: csn for csn in range(5)}
    with pytest.raises(OutOfReach, match="from csn 4"):
        warehouse.read("t", as_of=3)
    assert warehouse.read("t").count() == 4
    warehouse.close()
