"""Random definitions × random histories × random propagation intervals × random rolls, on Spark and Delta.

A seed that failed once goes into ``KEPT``.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.property.definitions import Definitions
from tests.property.schemas import BAGS, KEYED
from tests.sizes import times
from tests.spark.oracle.checks import check_refusals, check_view, reachable
from tests.spark.oracle.model import Model
from tests.spark.oracle.warehouses import fresh
from tests.spark.oracle.writers import create_tables, write_transaction

from rollview.algebra.resolve import Known
from rollview.catalog import Part
from rollview.store import timed
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORIES = int(os.environ.get("ROLLVIEW_SPARK_HISTORIES", times(6, full=40)))
KEPT: tuple[int, ...] = ()


class History:
    def __init__(self, spark: SparkSession, root: Path, seed: int) -> None:
        self.random = Random(seed)
        self.tables = KEYED if seed % 3 == 0 else BAGS
        self.warehouse = fresh(spark, root, plain=seed % 4 != 0)
        self.model = Model(spark, self.tables)
        create_tables(self.warehouse, self.tables)

    def write(self, transactions: int) -> None:
        """As many units of work; a transaction that changed nothing is none."""
        target = self.model.csn + transactions
        while self.model.csn < target:
            write_transaction(self.random, self.warehouse, self.model)

    def add_view(self, name: str) -> None:
        """Over base tables and, half of the time where there are some, over earlier views."""
        above = tuple(self._known(view) for view in self.model.views)
        sources = above + self.tables if above and self.random.random() < 0.5 else self.tables
        query = self.model.views[name] = self._definition(sources)
        self.warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def propagate(self) -> None:
        """One view or all, a random part of the way; now and then by recomputing."""
        names = list(self.model.views)
        chosen = self.random.choice([[name] for name in names] + [names])
        first, last = self._marks(chosen)
        if self.random.random() < 0.2:
            self.warehouse.refresh(chosen, to=self.random.randint(last, self.model.csn), mode="recompute")
        else:
            self.warehouse.propagate(chosen, to=self.random.randint(first, self.model.csn))

    def roll(self) -> None:
        """Some views together, forwards or back, to a csn that all of them reach."""
        snapshot = self.warehouse.snapshot()
        names = self.random.choice([list(self.model.views), [self.random.choice(list(self.model.views))]])
        common = set.intersection(*(set(reachable(snapshot.get(name))) for name in names))
        if common:
            target = self.random.choice(sorted(common))
            rolled = self.warehouse.roll(names, target)
            assert {view.after for view in rolled.views} == {target}

    def check(self, about: str) -> None:
        for name in self.model.views:
            check_view(self.warehouse, self.model, name, about)
            check_refusals(self.warehouse, name)

    def _definition(self, sources: tuple[Known, ...]) -> str:
        """HAVING cannot name a column that USING or NATURAL merged."""
        while True:
            query = Definitions(self.random, sources).view()
            if not (" HAVING " in query and (" USING " in query or "NATURAL" in query)):
                return query

    def _known(self, name: str) -> Known:
        relation = self.warehouse.snapshot().get(name)
        return Known(relation.name, relation.schema, relation.constraints)

    def _marks(self, names: list[str]) -> tuple[int, int]:
        """The lowest and the highest csn up to which one of them is propagated."""
        snapshot = self.warehouse.snapshot()
        marks = [snapshot.get(name).pins[Part.DELTA].through for name in names]
        return min(marks), max(marks)


def play(spark: SparkSession, root: Path, seed: int) -> None:
    history = History(spark, root, seed)
    history.write(history.random.randint(0, 2))
    history.add_view("v0")
    history.write(history.random.randint(1, 2))
    history.add_view("v1")
    history.propagate()
    history.write(history.random.randint(1, 2))
    history.propagate()
    history.roll()
    history.warehouse.propagate()
    history.roll()
    history.check(f"seed {seed},")
    close(history.warehouse)


def close(warehouse: Warehouse) -> None:
    assert warehouse.catalog.steps(status="running") == ()
    assert warehouse.catalog.leases() == ()
    warehouse.close()


@pytest.mark.parametrize("seed", [*KEPT, *range(HISTORIES)])
def test_every_csn_in_reach_is_the_definition_there(
    spark: SparkSession, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        # as tables of any size are read
        monkeypatch.setattr(timed, "FEW_ROWS", -1)
    play(spark, tmp_path / "warehouse", seed)
