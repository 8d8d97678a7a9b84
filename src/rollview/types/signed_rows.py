"""The net effect of signed rows in Arrow: counts added per row, zeroes gone.

Law: the rows that are left add up to the same bag, and none of them both comes and goes. Floating numbers are the same
if their bits are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.core.names import COUNT

_PLACE = "at"


def net_counts(rows: pa.Table) -> pa.Table:
    """``rows``: columns, and ``_count`` as the last. The first of each different row with its counts added, in the
    order of those."""
    last = rows.num_columns - 1
    # Arrow reads a name with a dot in it as a path.
    keys = [f"k{place}" for place in range(last)]
    placed = comparable(rows.rename_columns([*keys, COUNT])).append_column(_PLACE, pa.array(np.arange(rows.num_rows)))
    summed = placed.group_by(keys).aggregate([(COUNT, "sum"), (_PLACE, "min")])
    summed = summed.filter(pc.not_equal(summed[f"{COUNT}_sum"], 0)).sort_by(f"{_PLACE}_min")
    return rows.take(summed[f"{_PLACE}_min"]).set_column(last, rows.field(last), summed[f"{COUNT}_sum"])


def net_rows(rows: pa.Table) -> pa.Table:
    """The same with every copy a row of its own: ``_count`` is +1 or -1."""
    if pc.min_max(rows[COUNT]).as_py() in ({"min": 1, "max": 1}, {"min": -1, "max": -1}):
        return rows
    return separate_rows(net_counts(rows))


def separate_rows(rows: pa.Table) -> pa.Table:
    """Every copy a row of its own: ``_count`` is +1 or -1."""
    counts = rows[COUNT].to_numpy()
    if (np.abs(counts) == 1).all():
        return rows
    taken = rows.take(pa.array(np.repeat(np.arange(len(counts)), np.abs(counts))))
    signs = pa.array(np.repeat(np.sign(counts), np.abs(counts)).astype(np.int64))
    return taken.set_column(taken.num_columns - 1, COUNT, signs).cast(rows.schema)


def comparable(rows: pa.Table) -> pa.Table:
    """Floats by their bits: NaN is itself."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            bits = pa.int32() if field.type == pa.float32() else pa.int64()
            rows = rows.set_column(place, field.name, rows.column(place).combine_chunks().view(bits))
    return rows
