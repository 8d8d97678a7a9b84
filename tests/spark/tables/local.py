"""A warehouse of local tables only, and its rows as Python counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollview.algebra.text import parse_one
from rollview.catalog import Catalog, Part
from rollview.relations.reader import Reader
from rollview.results import StatementResult
from rollview.tables import Committed, Transaction, run_ddl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = "NaN"


class Local:
    def __init__(self, spark: SparkSession, folder: Path, **options: Any) -> None:
        self.spark = spark
        self.data = folder / "data"
        self.data.mkdir(parents=True)
        self.catalog = Catalog.create(folder / "catalog.db", **options)

    def ddl(self, *texts: str) -> StatementResult:
        return [run_ddl(self.spark, self.data, self.catalog, parse_one(text), self.begin().query) for text in texts][-1]

    def begin(self) -> Transaction:
        return Transaction(self.spark, self.data, self.catalog)

    def run(self, *texts: str) -> Committed:
        transaction = self.begin()
        try:
            transaction.sql(*texts)
        except BaseException:
            transaction.rollback()
            raise
        return transaction.commit()

    def query(self, text: str) -> Counter[tuple[Any, ...]]:
        return bag(self.begin().query(text).collect())

    def rows(self, table: str, at: int | None = None) -> Counter[tuple[Any, ...]]:
        snapshot = self.catalog.snapshot()
        csn = snapshot.moment.csn if at is None else at
        return bag(Reader(self.spark, self.data, snapshot).rows(table, csn).collect())

    @property
    def csn(self) -> int:
        return self.catalog.snapshot().moment.csn

    def staging(self, table: str) -> set[str]:
        """Staging folders of the table's delta on disk."""
        relation = self.catalog.snapshot().get(table)
        return {path.name for path in (self.data / relation.folder / Part.DELTA).glob("s-*")}


def bag(rows: Iterable[Any]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(_plain, row)) for row in rows)


def _plain(value: Any) -> Any:
    return NAN if isinstance(value, float) and math.isnan(value) else value
