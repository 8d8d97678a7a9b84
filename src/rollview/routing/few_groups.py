"""Few groups of a summary view, brought to a csn past its mark in this process.

Law: groups@t = groups@mark + Δ(mark, t], by the very query that a refresh would run, prepared as a refresh prepares it.
Little is pending and little is stored, so both are added up here; nothing is written.
"""

from __future__ import annotations

import pyarrow as pa

from rollview.algebra.summary import FEW_GROUPS, GROUPS
from rollview.engine.meter import Meter
from rollview.engine.session import for_few_rows, for_small_work
from rollview.errors import EngineFailed
from rollview.propagate.plan import PropagateStep
from rollview.propagate.run import closed_in
from rollview.relations.plans import propagation_of
from rollview.relations.prepared_query import prepared_query
from rollview.relations.reader import Reader
from rollview.store import small, timed
from rollview.store.writing import BOUND, as_stored, collect
from rollview.types.arrow import arrow_schema


def few_groups(reader: Reader, step: PropagateStep) -> pa.Table | None:
    """The groups at the end of the step; None where they are many, or the step moves much."""
    if not step.shuffles_little:
        return None
    held = timed.few_rows(reader.stored(step.view), step.interval.after, FEW_GROUPS)
    if held is None:
        return None
    try:
        changes = _collected(reader, step)
    except EngineFailed:
        # Whoever fetches the rows is told so.
        return None
    return None if changes is None else small.add_up(held, changes, reader.stored(step.view).columns)


def _collected(reader: Reader, step: PropagateStep) -> pa.Table | None:
    session = for_few_rows(reader.spark) if step.at_once else for_small_work(reader.spark)
    quick = Reader(session, reader.root, reader.snapshot).seen_by(step.view)
    propagation = propagation_of(quick.plan(step.view), step.circumstances(ahead=False, closed=closed_in(quick, step)))
    schema = quick.stored(step.view).folder("delta").schema
    with prepared_query(quick, propagation, step.interval, step.view) as prepared:
        rows = prepared
        if rows is None:
            held = {GROUPS: quick.groups(step.view, step.interval.after)}
            rows = quick.run(propagation, step.interval, held, small=step.small)
        found = collect(as_stored(rows, schema).limit(BOUND + 1), Meter(), "propagate")
    types = zip(schema.names, arrow_schema(schema).types, strict=True)
    return None if found is None else found.cast(pa.schema(list(types)))
