"""Few rows, read and added up in this process rather than by a Spark job.

Law: the same multiset as Spark would give. So only columns take part whose values are equal in Arrow exactly where
Spark's GROUP BY takes them for equal: no floating numbers (NaN, -0.0) and nothing nested.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from rollview.core.names import COUNT
from rollview.core.schema import Schema
from rollview.store.multiset import deleted_too_often
from rollview.types.arrow import arrow_type, is_atomic
from rollview.types.signed_rows import net_counts, net_rows, separate_rows


def can_add_up(schema: Schema) -> bool:
    types = [arrow_type(column.type, column.name) for column in schema]
    return all(is_atomic(type_) and not pa.types.is_floating(type_) for type_ in types)


def add_up(state: pa.Table, changes: pa.Table, schema: Schema) -> pa.Table:
    """Plain rows and signed changes with ``_count``: the plain rows after them."""
    names = list(schema.names)
    netted = net_counts(pa.concat_tables([_counted(state.select(names), 1), changes.select([*names, COUNT])]))
    wrong = netted.filter(pc.less(netted[COUNT], 0)).slice(0, 1).to_pylist()
    if wrong:
        row = {name: wrong[0][name] for name in names}
        raise deleted_too_often(json.dumps(row, default=str, separators=(",", ":"), ensure_ascii=False))
    return separate_rows(netted).select(names)


def net_if_told_apart(rows: pa.Table) -> pa.Table:
    """The net effect of signed rows, ``_count`` as the last column; nested rows, which Arrow cannot group, as given."""
    return net_rows(rows) if all(is_atomic(field.type) for field in rows.schema) else rows


def difference(now: pa.Table, before: pa.Table, schema: Schema) -> pa.Table:
    """What has to be added to the rows before, with ``_count``, to have the rows now."""
    names = list(schema.names)
    signed = [_counted(rows.select(names), count) for rows, count in ((now, 1), (before, -1))]
    return net_counts(pa.concat_tables([signed[0], signed[1].cast(signed[0].schema)]))


def _counted(rows: pa.Table, count: int) -> pa.Table:
    return rows.append_column(COUNT, pa.repeat(pa.scalar(count, pa.int64()), rows.num_rows))


def in_order(rows: pa.Table) -> pa.Table:
    """By their values, so that the order tells nothing of the names of files or of threads."""
    # Arrow reads a name with a dot in it as a path.
    plain = pa.table({f"k{place}": rows[place] for place in range(rows.num_columns) if is_atomic(rows[place].type)})
    return rows.take(pc.sort_indices(plain, [(key, "ascending") for key in plain.column_names])) if plain else rows
