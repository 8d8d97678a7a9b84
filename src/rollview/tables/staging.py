"""A transaction's changes in files that nothing refers to yet.

Law: what a statement computed is computed once: from here on it is files. A table's changes are settled when every copy
of a row is there by itself with ``_count`` +1 or -1 and the csn of the commit, and what one statement inserted and
another deleted is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as sf

from rollview.catalog import Relation
from rollview.core.interval import Csn
from rollview.core.names import COUNT, CSN
from rollview.store import parquet, small
from rollview.store.datafile import DataFile, safe_places
from rollview.store.folder import DeltaFolder
from rollview.store.multiset import col, net, separate
from rollview.tables.failures import statement_failures
from rollview.types.arrow import arrow_schema
from rollview.types.signed_rows import net_counts, separate_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = 50_000


@dataclass(frozen=True, slots=True)
class Staged:
    """Changes of one table, stamped with a csn."""

    place: str
    files: tuple[DataFile, ...]
    csn: Csn

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class Effect:
    """How many rows go and come; ``updated`` counts keys that do both, None without a key."""

    inserted: int
    deleted: int
    updated: int | None = None


def stage_changes(
    folder: DeltaFolder, rows: DataFrame, place: str, csn: Csn, relation: Relation, at_most: int | None
) -> Staged:
    """Evaluate a statement. Few rows pass through this process, which saves Spark's way of writing files."""
    key = relation.constraints.primary_key
    with statement_failures(relation.name):
        if at_most is not None and at_most <= SMALL:
            return stage_table(folder, rows.toArrow(), place, csn, key)
        stamped = rows.withColumn(CSN, sf.lit(csn).cast("bigint"))
        return Staged(place, folder.stage(stamped, place, sort=key), csn)


def stage_table(folder: DeltaFolder, rows: pa.Table, place: str, csn: Csn, key: tuple[str, ...]) -> Staged:
    stamped = rows.append_column(CSN, pa.array(np.full(rows.num_rows, csn, dtype=np.int64)))
    return Staged(place, folder.stage(stamped, place, sort=key) if rows.num_rows else (), csn)


def settle(
    spark: SparkSession, folder: DeltaFolder, staged: Sequence[Staged], place: str, csn: Csn, relation: Relation
) -> Staged:
    """One set of files with the commit's csn; the statements' own if they will do."""
    written = [one for one in staged if one.files]
    if not written:
        return Staged(place, (), csn)
    if len(written) == 1 and written[0].csn == csn:
        return written[0]
    files = tuple(file for one in written for file in one.files)
    key, schema = relation.constraints.primary_key, relation.schema
    mixed = len(written) > 1 and not is_one_sided(files)
    exact = not mixed or small.can_add_up(schema)
    if sum(file.rows for file in files) <= SMALL and exact:
        rows = load(folder, files, (*schema.names, COUNT))
        return stage_table(folder, separate_rows(net_counts(rows)) if mixed else rows, place, csn, key)
    data = folder.read(spark, files).drop(CSN)
    settled = separate(net(data, schema, apart=True), schema) if mixed else data
    with statement_failures(relation.name):
        stamped = settled.withColumn(CSN, sf.lit(csn).cast("bigint"))
        return Staged(place, folder.stage(stamped, place, sort=key), csn)


def load(folder: DeltaFolder, files: Sequence[DataFile], columns: Sequence[str]) -> pa.Table:
    """The named columns of few rows, in this process."""
    physical = arrow_schema(folder.schema.only(columns))
    tables = [
        parquet.load(place, physical.names).select(physical.names).cast(physical)
        for place in safe_places(folder.root, tuple(files))
    ]
    whole = pa.concat_tables(tables) if tables else physical.empty_table()
    return whole.rename_columns(list(columns))


def effect(spark: SparkSession, folder: DeltaFolder, files: Sequence[DataFile], relation: Relation) -> Effect:
    rows = sum(file.rows for file in files)
    total = sum(_total(folder, file) for file in files)
    inserted, deleted = (rows + total) // 2, (rows - total) // 2
    key = relation.constraints.primary_key
    if not key:
        return Effect(inserted, deleted)
    return Effect(inserted, deleted, _updated(spark, folder, files, key) if inserted and deleted else 0)


def is_one_sided(files: Sequence[DataFile]) -> bool:
    """Whether nothing but insertions or nothing but deletions is in the files."""
    bounds = [file.bounds(COUNT) or (-1, 1) for file in files]
    return all(low > 0 for low, _ in bounds) or all(high < 0 for _, high in bounds)


def _total(folder: DeltaFolder, file: DataFile) -> int:
    """The sum of the counts, from the file's bounds or from the one column."""
    low, high = file.bounds(COUNT) or (-1, 1)
    if low == high:
        return int(low * file.rows)
    (place,) = safe_places(folder.root, (file,))
    with pq.ParquetFile(place) as opened:
        return sum(int(pc.sum(batch.column(0)).as_py()) for batch in opened.iter_batches(columns=[COUNT]))


def _updated(spark: SparkSession, folder: DeltaFolder, files: Sequence[DataFile], key: tuple[str, ...]) -> int:
    if sum(file.rows for file in files) <= SMALL and small.can_add_up(folder.schema.only(key)):
        keys = [f"k{place}" for place in range(len(key))]
        rows = load(folder, files, (*key, COUNT)).rename_columns([*keys, COUNT])
        counts = rows.group_by(keys).aggregate([(COUNT, "min"), (COUNT, "max")])
        both = pc.and_(pc.less(counts[f"{COUNT}_min"], 0), pc.greater(counts[f"{COUNT}_max"], 0))
        return int(pc.sum(both).as_py() or 0)
    by_key = folder.read(spark, files).groupBy(*map(col, key))
    both = (sf.min(COUNT) < 0) & (sf.max(COUNT) > 0)
    return by_key.agg(both.alias(COUNT)).where(sf.col(COUNT)).count()
