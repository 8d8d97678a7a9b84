"""What a refresh would find past a view's mark, in this process where it is little.

Law: groups@t = groups@mark + Δ(mark, t], and the view's rows are read off them. The very query is run that a refresh
would run to know them, prepared as a refresh prepares it; nothing is written.
"""

from __future__ import annotations

import pyarrow as pa

from rollview.core.interval import Interval
from rollview.engine.meter import Meter
from rollview.engine.session import for_few_rows, for_small_work
from rollview.propagate.plan import PropagateStep
from rollview.propagate.run import closed_in, collected_ahead, collected_changes
from rollview.relations.ahead import Ahead, ahead_of
from rollview.relations.reader import Reader
from rollview.store.writing import BOUND
from rollview.types.arrow import is_atomic

_many: dict[str, Interval] = {}
"""By a view's folder, the last interval whose changes were many, which few rows can make, or could not be computed."""


def few_groups(reader: Reader, step: PropagateStep) -> Ahead | None:
    """The groups and the rows at the end of the step; None where they are many, the step moves much, or a row cannot be
    computed: whoever fetches the rows is told so."""
    summary, schema = reader.plan(step.view).summary, reader.snapshot.get(step.view).schema
    if not step.ahead or not step.shuffles_little or summary is None:
        return None
    quick = _quick(reader, step)
    collected = collected_ahead(quick, step, closed_in(quick, step), Meter())
    if collected is None:
        return None
    found = ahead_of(summary, schema, collected, step.interval.through)
    return found if _are_plain(found.groups) and _are_plain(found.extent) else None


def few_changes(reader: Reader, step: PropagateStep) -> pa.Table | None:
    """What is stored of a delta; None where that may be many rows, or a row cannot be computed."""
    if not step.shuffles_little or step.work.delta_rows > BOUND // 2 or _were_many(reader, step):
        return None
    quick = _quick(reader, step)
    found = collected_changes(quick, step, closed_in(quick, step), Meter())
    if found is None:
        _many[_folder(reader, step)] = step.interval
    return found if found is not None and _are_plain(found) else None


def _were_many(reader: Reader, step: PropagateStep) -> bool:
    """So they are not computed only to be thrown away each time that somebody asks."""
    known = _many.get(_folder(reader, step))
    return known is not None and known.after == step.interval.after and known.through <= step.interval.through


def _folder(reader: Reader, step: PropagateStep) -> str:
    return str(reader.root / reader.snapshot.get(step.view).folder)


def _quick(reader: Reader, step: PropagateStep) -> Reader:
    session = for_few_rows(reader.spark) if step.at_once else for_small_work(reader.spark)
    return Reader(session, reader.root, reader.snapshot).seen_by(step.view)


def _are_plain(rows: pa.Table) -> bool:
    """What is nested goes from Spark to Spark."""
    return all(is_atomic(column.type) for column in rows.columns)
