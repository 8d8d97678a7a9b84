"""Signed rows and plain rows of few rows, in this process; the same laws as ``multiset``.

Only for columns whose equality Arrow and Spark agree on: ``is_exact`` says which.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.core.names import COUNT
from rollview.core.schema import Schema
from rollview.errors import Corrupt
from rollview.store.types import arrow_type

_SUM = f"{COUNT}_sum"


def is_exact(schema: Schema) -> bool:
    """Whether rows that Arrow takes to be the same are the same for Spark."""
    types = [arrow_type(column.type, column.name) for column in schema]
    return not any(pa.types.is_nested(type_) or pa.types.is_floating(type_) for type_ in types)


def net_table(rows: pa.Table) -> pa.Table:
    """``rows``: columns and ``_count``. One row for each different row, its counts added, none with zero."""
    # Arrow reads a name with a dot in it as a path.
    keys = [f"k{place}" for place in range(rows.num_columns - 1)]
    grouped = rows.rename_columns([*keys, COUNT]).group_by(keys).aggregate([(COUNT, "sum")])
    kept = grouped.filter(pc.not_equal(grouped[_SUM], 0))
    return pa.table([*(kept[key] for key in keys), kept[_SUM]], names=rows.column_names).cast(rows.schema)


def copied_table(rows: pa.Table) -> pa.Table:
    """Every copy a row of its own: ``_count`` is +1 or -1."""
    counts = rows[COUNT].to_numpy()
    taken = rows.take(pa.array(np.repeat(np.arange(len(counts)), np.abs(counts))))
    signs = pa.array(np.repeat(np.sign(counts), np.abs(counts)).astype(np.int64))
    return taken.set_column(taken.num_columns - 1, COUNT, signs).cast(rows.schema)


def plain_table(rows: pa.Table) -> pa.Table:
    """Every row as often as its ``_count`` says; refused if that is less than zero."""
    copies = copied_table(net_table(rows))
    missing = copies.filter(pc.less(copies[COUNT], 0))
    if missing.num_rows:
        raise Corrupt(f"A row was deleted more often than it was there: {missing.slice(0, 1).to_pylist()[0]}")
    return copies.drop_columns([COUNT])


def signed_table(rows: pa.Table, count: int = 1) -> pa.Table:
    return rows.append_column(COUNT, pa.array(np.full(rows.num_rows, count, np.int64)))
