"""The net effect of signed rows in Arrow: counts added per row, zeroes gone.

Law: the rows that are left add up to the same bag, and none of them both comes and goes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.core.names import COUNT


def net_rows(rows: pa.Table) -> pa.Table:
    """Rows with ``_count`` +1 or -1, which is the last column, that add up to the same, none of them both."""
    if pc.min_max(rows[COUNT]).as_py() in ({"min": 1, "max": 1}, {"min": -1, "max": -1}):
        return rows
    last = rows.num_columns - 1
    keys = [f"k{place}" for place in range(last)]
    grouped = comparable(rows.rename_columns([*keys, COUNT])).append_column("at", pa.array(np.arange(rows.num_rows)))
    summed = grouped.group_by(keys).aggregate([(COUNT, "sum"), ("at", "min")])
    summed = summed.filter(pc.not_equal(summed[f"{COUNT}_sum"], 0))
    counts = summed[f"{COUNT}_sum"].to_numpy()
    places = np.repeat(summed["at_min"].to_numpy(), np.abs(counts))
    signs = np.repeat(np.sign(counts), np.abs(counts)).astype(np.int64)
    return rows.take(pa.array(places)).set_column(last, COUNT, pa.array(signs))


def comparable(rows: pa.Table) -> pa.Table:
    """Floats by their bits: NaN is itself."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            bits = pa.int32() if field.type == pa.float32() else pa.int64()
            rows = rows.set_column(place, field.name, rows.column(place).combine_chunks().view(bits))
    return rows
