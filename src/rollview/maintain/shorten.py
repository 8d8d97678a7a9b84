"""A delta made shorter: behind a csn, or to its net effect over an interval.

Laws: after pruning to p, state(t) for t ≥ p is as before, and nothing before p can be asked for. After compressing
(a, c], Δ(a, c] has the same net effect, all of it at csn c; state(t) is as before for t ≤ a and for t ≥ c, and nothing
strictly inside can be asked for. Rows outside the interval keep their csns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.catalog import Catalog, Lease, Part, Relation, RelationKind
from rollview.core.interval import Interval
from rollview.core.lazy import lazy_module
from rollview.core.names import CSN
from rollview.core.schema import Schema
from rollview.maintain.plan import Task
from rollview.publish.merge import GetSpark
from rollview.publish.rewrite import Files, Rewriting, Rewritten, copied, rewrite
from rollview.store.folder import DeltaFolder
from rollview.store.small import can_add_up
from rollview.store.timed import Stored
from rollview.store.writing import BOUND
from rollview.types.signed_rows import net_counts, separate_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sf

    from rollview.store import multiset
else:
    sf = lazy_module("pyspark.sql.functions")
    multiset = lazy_module("rollview.store.multiset")

ByArrow = Callable[[pa.Table], pa.Table]
BySpark = Callable[["DataFrame"], "DataFrame"]

_ONE_FILE_ROWS = 2_000_000


def run_prune(
    catalog: Catalog, lease: Lease, root: Path, relation: Relation, held: Stored, task: Task, spark: GetSpark
) -> Rewritten:
    pin, to = relation.pins[Part.DELTA], task.interval.through
    across = tuple(file for file in task.files if (file.bounds(CSN) or (0, 0))[1] > to)
    work = Rewriting(relation, Part.DELTA, "prune", task.interval, task.files, to, max(to, pin.through))

    def write(folder: DeltaFolder, places: Sequence[str]) -> Files:
        return _written(
            folder,
            across,
            places[0],
            spark,
            lambda rows: rows.filter(pc.greater(rows[CSN], to)),
            lambda rows: rows.where(f"{CSN} > {to}"),
        )

    return rewrite(catalog, lease, root, work, copied(relation, held).folder(Part.DELTA), write)


def run_compress(
    catalog: Catalog, lease: Lease, root: Path, relation: Relation, held: Stored, task: Task, spark: GetSpark
) -> Rewritten:
    pin, interval = relation.pins[Part.DELTA], task.interval
    work = Rewriting(relation, Part.DELTA, "compress", interval, task.files, pin.after, pin.through, coarse=interval)
    # A table's changes are one row for each copy; a view's have any count.
    copies = relation.kind is RelationKind.TABLE

    def write(folder: DeltaFolder, places: Sequence[str]) -> Files:
        exact = can_add_up(held.columns)
        return _written(
            folder,
            task.files,
            places[0],
            spark,
            (lambda rows: netted_table(rows, interval, copies=copies)) if exact else None,
            lambda rows: _netted_frame(rows, held.columns, interval, copies=copies),
        )

    return rewrite(catalog, lease, root, work, held.folder(Part.DELTA), write)


def netted_table(rows: pa.Table, interval: Interval, *, copies: bool) -> pa.Table:
    """The rows of the interval by net effect at its end, the others as they are."""
    inside = pc.and_(pc.greater(rows[CSN], interval.after), pc.less_equal(rows[CSN], interval.through))
    net = net_counts(rows.filter(inside).drop_columns([CSN]))
    whole = separate_rows(net) if copies else net
    stamped = whole.append_column(CSN, pa.array(np.full(whole.num_rows, interval.through, np.int64)))
    return pa.concat_tables([stamped, rows.filter(pc.invert(inside))])


def _netted_frame(data: DataFrame, schema: Schema, interval: Interval, *, copies: bool) -> DataFrame:
    inside = (sf.col(CSN) > interval.after) & (sf.col(CSN) <= interval.through)
    netted = multiset.net(data.where(inside).drop(CSN), schema, apart=copies)
    whole = multiset.separate(netted, schema) if copies else netted
    end = sf.lit(interval.through).cast("bigint")
    return whole.withColumn(CSN, end).unionAll(data.where(~inside))


def _written(
    folder: DeltaFolder, files: Files, place: str, spark: GetSpark, by_arrow: ByArrow | None, by_spark: BySpark
) -> Files:
    rows = sum(file.rows for file in files)
    if not files:
        return ()
    if by_arrow is not None and rows <= BOUND:
        return folder.stage(by_arrow(folder.load(files)), place, sort=(CSN,))
    data = by_spark(folder.read(spark(), files))
    return folder.stage(data.coalesce(1) if rows <= _ONE_FILE_ROWS else data, place, sort=(CSN,))
