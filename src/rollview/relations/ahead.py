"""One collected result that tells a summary view's delta and its state at the end of the interval.

Law: with every group of the view in it, at each csn of (a, b] that touched it, the groups' timed delta, the groups at
b and the view's rows at b are selections of the same table. So a refresh computes once what propagating and applying
would compute twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rollview.algebra.accumulators import ROWS
from rollview.algebra.expressions import AT, UNTIL
from rollview.algebra.summary import SHOWN, Summary, seen_columns
from rollview.core.interval import Csn
from rollview.core.names import COUNT, CSN
from rollview.core.schema import Schema


@dataclass(frozen=True, slots=True)
class Ahead:
    """A summary view at ``csn``: all its groups and all its rows."""

    csn: Csn
    groups: pa.Table
    extent: pa.Table


def delta_of(summary: Summary, collected: pa.Table) -> pa.Table:
    """The groups' timed delta: a group comes at a csn, and goes where its next one begins."""
    there = _there(summary, collected)
    comes = there.filter(pc.greater(there[AT], 0))
    goes = there.filter(pc.is_valid(there[UNTIL]))
    return pa.concat_tables([_signed(summary, comes, 1, AT), _signed(summary, goes, -1, UNTIL)])


def ahead_of(summary: Summary, schema: Schema, collected: pa.Table, csn: Csn) -> Ahead:
    there = _there(summary, collected)
    groups = there.filter(pc.is_null(there[UNTIL])).select(list(summary.schema.names))
    shown = collected.filter(collected[SHOWN]).select(list(seen_columns(summary)))
    return Ahead(csn, groups, shown.rename_columns(list(schema.names)))


def _there(summary: Summary, collected: pa.Table) -> pa.Table:
    return collected.filter(pc.not_equal(collected[ROWS], 0)) if summary.keys else collected


def _signed(summary: Summary, rows: pa.Table, count: int, csn: str) -> pa.Table:
    counts = pa.repeat(pa.scalar(count, pa.int64()), rows.num_rows)
    return rows.select(list(summary.schema.names)).append_column(COUNT, counts).append_column(CSN, rows[csn])
