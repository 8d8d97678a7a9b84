"""Random maintenance between random commits, propagations and rolls: no answer changes at any csn that is in reach.

Half of the seeds do everything through Spark that few rows need not.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.oracle.bags import assert_same, bag
from tests.spark.oracle.model import by_csn
from tests.spark.oracle.test_histories import History, close

from rollview.catalog import Part
from rollview.errors import OutOfReach
from rollview.results import Maintained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES = int(os.environ.get("ROLLVIEW_SPARK_MAINTENANCES", "4"))
BOUNDS = ("rollview.store.merge.BOUND", "rollview.maintain.shorten.BOUND", "rollview.maintain.forward.BOUND")


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
    for _ in range(3):
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
