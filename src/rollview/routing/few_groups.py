"""Few groups of a summary view, brought to a csn past its mark in this process.

Law: groups@t = groups@mark + Δ(mark, t], and the view's rows are read off them. The very query is run that a refresh
would run to know both, prepared as a refresh prepares it; nothing is written.
"""

from __future__ import annotations

import pyarrow as pa

from rollview.engine.meter import Meter
from rollview.engine.session import for_few_rows, for_small_work
from rollview.propagate.plan import PropagateStep
from rollview.propagate.run import closed_in, collected_ahead
from rollview.relations.ahead import Ahead, ahead_of
from rollview.relations.reader import Reader
from rollview.types.arrow import is_atomic


def few_groups(reader: Reader, step: PropagateStep) -> Ahead | None:
    """The groups and the rows at the end of the step; None where they are many, the step moves much, or a row cannot be
    computed: whoever fetches the rows is told so."""
    summary, schema = reader.plan(step.view).summary, reader.snapshot.get(step.view).schema
    if not step.ahead or not step.shuffles_little or summary is None:
        return None
    session = for_few_rows(reader.spark) if step.at_once else for_small_work(reader.spark)
    quick = Reader(session, reader.root, reader.snapshot).seen_by(step.view)
    collected = collected_ahead(quick, step, closed_in(quick, step), Meter())
    if collected is None:
        return None
    found = ahead_of(summary, schema, collected, step.interval.through)
    return found if _are_plain(found.groups) and _are_plain(found.extent) else None


def _are_plain(rows: pa.Table) -> bool:
    """What is nested goes from Spark to Spark."""
    return all(is_atomic(column.type) for column in rows.columns)
