"""What a planned step joins with what. See ``relations.joined``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rollview.algebra.view import Mode
from rollview.compensate.rolling import one_for_each
from rollview.core.interval import Csn, Interval
from rollview.propagate.plan import PropagateStep
from rollview.relations.joined import JoinedPart, JoinedQueries, JoinedQuery


def joined_by(step: PropagateStep, reads: Sequence[str]) -> JoinedQueries:
    """``reads``: what the view reads."""
    if step.left:
        return JoinedQueries(tuple(step.left), tuple(_box(step, step.left)))
    tables, begin, end = tuple(reads), step.interval.after, step.interval.through
    if step.mode is Mode.WHOLE:
        whole, before = ((at,) * len(tables) for at in (end, begin))
        return JoinedQueries(tables, (JoinedQuery(1, whole), JoinedQuery(-1, before)))
    return JoinedQueries(tables, tuple(_one_for_each(step, tables)))


def _one_for_each(step: PropagateStep, tables: Sequence[str]) -> Iterator[JoinedQuery]:
    for (query, seen), table in zip(one_for_each(len(tables), step.interval), tables, strict=True):
        parts = (at if part is None else part for part, at in zip(query.parts, seen, strict=True))
        yield JoinedQuery(1, tuple(parts), table in step.motion and step.motion[table].changed)


def _box(step: PropagateStep, left: Mapping[str, Csn]) -> Iterator[JoinedQuery]:
    """Tables that did not change go on one after the other; then the one whose changes are taken."""
    at = dict(left)
    for table, through in step.places.items():
        is_moving = step.box is not None and table == step.box.table
        yield from _moved(at, table, step.interval_of(table).after if is_moving else through, executed=False)
    if step.box is not None:
        yield from _moved(at, step.box.table, step.places[step.box.table], executed=True)


def _moved(at: dict[str, Csn], table: str, through: Csn, *, executed: bool) -> Iterator[JoinedQuery]:
    if at[table] < through:
        parts: dict[str, JoinedPart] = {**at, table: Interval(at[table], through)}
        at[table] = through
        yield JoinedQuery(1, tuple(parts.values()), executed)
