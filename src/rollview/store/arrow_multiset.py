"""Signed rows of few rows, in this process; the same laws as ``multiset``, for the columns that ``small`` takes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.core.names import COUNT

_SUM = f"{COUNT}_sum"


def net_table(rows: pa.Table) -> pa.Table:
    """``rows``: columns and ``_count``. One row for each different row, its counts added, none with zero."""
    # Arrow reads a name with a dot in it as a path, and its threads would give the rows in any order.
    keys = [f"k{place}" for place in range(rows.num_columns - 1)]
    grouped = rows.rename_columns([*keys, COUNT]).group_by(keys, use_threads=False).aggregate([(COUNT, "sum")])
    kept = grouped.filter(pc.not_equal(grouped[_SUM], 0))
    return pa.table([*(kept[key] for key in keys), kept[_SUM]], names=rows.column_names).cast(rows.schema)


def copied_table(rows: pa.Table) -> pa.Table:
    """Every copy a row of its own: ``_count`` is +1 or -1."""
    counts = rows[COUNT].to_numpy()
    taken = rows.take(pa.array(np.repeat(np.arange(len(counts)), np.abs(counts))))
    signs = pa.array(np.repeat(np.sign(counts), np.abs(counts)).astype(np.int64))
    return taken.set_column(taken.num_columns - 1, COUNT, signs).cast(rows.schema)
