"""The oracle: a view's rows at a csn beside its definition evaluated from the base tables at that csn.

Law: the two are equal as multisets. DOUBLE and FLOAT columns may differ in their last digits, because the order in
which Spark adds them up is not fixed; everything else is compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from rollview.core.interval import Csn
from rollview.core.names import COUNT
from rollview.core.schema import Schema
from rollview.engine.failures import spark_failures
from rollview.query.places import table_places
from rollview.relations.marks import high_water_mark
from rollview.relations.reader import Reader
from rollview.relations.vector import recomputed_at_vector, rows_at_vector
from rollview.results import Verification
from rollview.store.multiset import net, signed
from rollview.store.writing import as_stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

SHOWN = 20
_PAIRED = 20_000
_TOLERANCE = 1e-9


def verify(reader: Reader, name: str, at: Csn) -> Verification:
    schema = reader.snapshot.get(name).at(at).schema
    return _compare(reader.snapshot.get(name).name, at, schema, reader.rows(name, at), reader.recompute(name, at))


def verify_vector(reader: Reader, name: str) -> Verification:
    """The same of a view that is weakly consistent, with each table at its own csn."""
    view = reader.snapshot.view(name)
    rows, at = rows_at_vector(reader, view), high_water_mark(reader.snapshot, view)
    found = _compare(view.name, at, view.schema, rows, recomputed_at_vector(reader, view))
    return replace(found, places=table_places(reader.snapshot, view))


def _compare(name: str, at: Csn, schema: Schema, stored: DataFrame, recomputed: DataFrame) -> Verification:
    expected = as_stored(recomputed, schema)
    with spark_failures(f"recompute '{name}' at csn {at}"):
        rows = stored.count()
        difference = net(signed(expected).unionAll(signed(stored).withColumn(COUNT, -sf.col(COUNT))), schema)
        missing, surplus = _split(difference, schema)
    return Verification(
        name,
        at,
        equal=not missing and not surplus,
        rows=rows,
        missing=tuple(row.asDict() for row in missing[:SHOWN]),
        surplus=tuple(row.asDict() for row in surplus[:SHOWN]),
        missing_count=len(missing),
        surplus_count=len(surplus),
    )


def _split(difference: DataFrame, schema: Schema) -> tuple[list[Row], list[Row]]:
    found = difference.limit(_PAIRED).collect()
    missing = [row for row in found for _ in range(max(row[-1], 0))]
    surplus = [row for row in found for _ in range(max(-row[-1], 0))]
    floats = [i for i, column in enumerate(schema) if column.type in ("double", "float")]
    return _pair_off(missing, surplus, floats) if floats else (missing, surplus)


def _pair_off(missing: list[Row], surplus: list[Row], floats: Sequence[int]) -> tuple[list[Row], list[Row]]:
    """Rows that differ only in the last digits of their floats are the same row."""
    waiting: dict[tuple[Any, ...], list[Row]] = {}
    for row in surplus:
        waiting.setdefault(_exact_part(row, floats), []).append(row)
    left = []
    for row in missing:
        candidates = waiting.get(_exact_part(row, floats), [])
        partner = next((other for other in candidates if _close(row, other, floats)), None)
        if partner is None:
            left.append(row)
        else:
            candidates.remove(partner)
    return left, [row for rows in waiting.values() for row in rows]


def _exact_part(row: Row, floats: Sequence[int]) -> tuple[Any, ...]:
    return tuple(repr(value) for i, value in enumerate(row[:-1]) if i not in floats)


def _close(left: Row, right: Row, floats: Sequence[int]) -> bool:
    return all(_close_values(left[i], right[i]) for i in floats)


def _close_values(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
