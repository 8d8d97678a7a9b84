"""What tables must hold at every csn, kept in Python, and what Spark makes of a definition over those rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType
from tests.property.histories import Row, Transaction
from tests.spark.oracle.bags import Bag, bag
from tests.spark.oracle.warehouses import PLAIN

from rollview.algebra.resolve import Known
from rollview.engine import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

State = dict[str, Counter[Row]]


def ddl(table: Known) -> str:
    return ", ".join(f"`{column.name}` {column.type}" for column in table.schema)


def frame(spark: SparkSession, table: Known, rows: Iterable[Row]) -> DataFrame:
    schema = StructType.fromDDL(ddl(table))
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [
        pa.array(values, to_arrow_type(f.dataType, timezone="UTC")) for values, f in zip(columns, schema, strict=True)
    ]
    return spark.createDataFrame(pa.table(arrays, names=schema.names), schema)


class Model:
    """Base tables by csn, views by definition. ``session``: a session that knows nothing of the warehouse."""

    def __init__(self, spark: SparkSession, tables: tuple[Known, ...]) -> None:
        self.session = session.adopt(spark)
        for key, value in PLAIN.items():
            self.session.conf.set(key, value)
        self.tables = tables
        self.states: list[State] = [{table.name: Counter() for table in tables}]
        self.views: dict[str, str] = {}
        self._frames: dict[tuple[str, int], DataFrame] = {}

    @property
    def csn(self) -> int:
        return len(self.states) - 1

    def commit(self, transaction: Transaction) -> None:
        after = {name: Counter(rows) for name, rows in self.states[-1].items()}
        for name, changes in transaction.items():
            for row, count in changes:
                after[name][row] += count
        self.become(after)

    def become(self, after: State) -> None:
        """The next csn, if anything is different there."""
        kept = {name: +rows for name, rows in after.items()}
        if kept != self.states[-1]:
            self.states.append(kept)

    def rows(self, view: str, csns: Iterable[int]) -> tuple[StructType, dict[int, Bag]]:
        """The view's types, and its rows at each csn, in one Spark job."""
        wanted = tuple(csns)
        found = [self._view_at(view, csn) for csn in wanted]
        return found[0].schema, by_csn(dict(zip(wanted, found, strict=True)))

    def _view_at(self, view: str, csn: int) -> DataFrame:
        for table in self.tables:
            self._table_at(table, csn).createOrReplaceTempView(table.name)
        for name, query in self.views.items():
            data = self.session.sql(query)
            if name == view:
                return data
            data.createOrReplaceTempView(name)
        raise LookupError(view)

    def _table_at(self, table: Known, csn: int) -> DataFrame:
        while csn > 0 and self.states[csn][table.name] == self.states[csn - 1][table.name]:
            csn -= 1
        key = (table.name, csn)
        if key not in self._frames:
            self._frames[key] = frame(self.session, table, self.states[csn][table.name].elements())
        return self._frames[key]


def by_csn(frames: Mapping[int, DataFrame]) -> dict[int, Bag]:
    """Several states of one relation, collected together."""
    marked = [data.select(sf.lit(csn).alias("_at"), *_columns(data)) for csn, data in frames.items()]
    collected: dict[int, list[Any]] = {csn: [] for csn in frames}
    for row in reduce(lambda left, right: left.unionAll(right), marked).collect():
        collected[row[0]].append(tuple(row)[1:])
    return {csn: bag(rows) for csn, rows in collected.items()}


def _columns(data: DataFrame) -> list[Any]:
    return [sf.col("`" + name.replace("`", "``") + "`") for name in data.columns]
