"""The propagation of a view of a warehouse as rectangles, from what its recorded steps say that they joined.

The csns are those of the ledger. What was there when the view was created lies below the first of them, and came with
its first rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rollview.catalog import Catalog, Snapshot, Step
from rollview.core.interval import Csn, Interval
from rollview.errors import UsageError
from rollview.lab.rectangles import Rectangle, TimeFrame, draw_rectangles
from rollview.relations.joined import JoinedPart, JoinedQueries, JoinedQuery, joined_in
from rollview.relations.marks import high_water_mark

_MOST_STEPS = 60
"""So many of the last steps are shown."""
_WIDEST, _UNIT, _NAMED = 560.0, 56.0, 10
_LETTER = 6
"""How wide one is, at most."""


def draw_view(catalog: Catalog, snapshot: Snapshot, name: str) -> str:
    view = snapshot.view(name)
    if not view.depends_on:
        raise UsageError(f"View '{view.name}' reads no table, so there is nothing to draw.", view=view.name)
    steps = steps_of(catalog, view.name)
    left_out = max(0, len(steps) - _MOST_STEPS)
    joined = [joined_by(step, view.depends_on) for step in steps[left_out:]]
    axes = joined[-1].tables[:2] if joined else view.depends_on[:2]
    mark = high_water_mark(snapshot, view)
    begin = min((step.interval.after for step in steps[left_out:]), default=mark)
    frame = frame_of(begin, max([mark, *(end for one in joined for end in _ends(one))]))
    shown = [one for told in joined for one in rectangles_of(told, axes, frame)]
    title = f"{view.name}: how changes of {' and '.join(axes)} came to it"
    if left_out:
        title += f", the last {_MOST_STEPS} of {len(steps)} steps"
    margin = _LETTER * max([len(one.told) + 5 for one in shown], default=0)
    return draw_rectangles(title, axes, shown, mark, frame, max(260, margin))


def steps_of(catalog: Catalog, view: str) -> list[Step]:
    """Those since all rows of the view were last computed, that one first, the oldest first; as far as they are
    recorded."""
    found: list[Step] = []
    for step in catalog.steps(view, None, "done"):
        if step.kind == "propagate" or _is_first(step):
            found.append(step)
        if _is_first(step):
            break
    return found[::-1]


def joined_by(step: Step, reads: Sequence[str]) -> JoinedQueries:
    """A step that does not say what it joined has made the difference, however it did."""
    begin, end = ((at,) * len(reads) for at in (step.interval.after, step.interval.through))
    if _is_first(step):
        return JoinedQueries(tuple(reads), (JoinedQuery(1, end),))
    told = joined_in(step.profile)
    return told or JoinedQueries(tuple(reads), (JoinedQuery(1, end), JoinedQuery(-1, begin)))


def rectangles_of(joined: JoinedQueries, axes: Sequence[str], frame: TimeFrame) -> Iterator[Rectangle]:
    for query in joined.queries:
        parts = dict(zip(joined.tables, query.parts, strict=True))
        first, *second = (_span(parts, axis, frame) for axis in axes)
        spans = (first, second[0] if second else (frame.begin, frame.last))
        is_forward = query.sign > 0 and sum(isinstance(part, Interval) for part in query.parts) <= 1
        yield Rectangle(query.sign, spans, query.told(joined.tables), is_forward, query.executed)
    if joined.more:
        nowhere = (frame.begin, frame.begin)
        yield Rectangle(1, (nowhere, nowhere), f"and {joined.more} more", is_forward=True, executed=False)


def frame_of(begin: Csn, last: Csn) -> TimeFrame:
    """What was there before lies below ``begin``, an eighth of the whole."""
    below = begin - max(1, (last - begin) // 7)
    apart = next(one for one in _round_numbers() if (last - begin) // one <= _NAMED)
    return TimeFrame(below, last, min(_UNIT, _WIDEST / (last - below)), range(begin, last + 1, apart))


def _is_first(step: Step) -> bool:
    return step.kind in ("create", "adapt") or (step.kind == "apply" and step.profile.get("mode") == "whole")


def _ends(joined: JoinedQueries) -> Iterator[Csn]:
    for query in joined.queries:
        yield from (part.through if isinstance(part, Interval) else part for part in query.parts)


def _span(parts: Mapping[str, JoinedPart], axis: str, frame: TimeFrame) -> tuple[Csn, Csn]:
    """Nothing of a table that was not joined."""
    part = parts.get(axis, frame.begin)
    if isinstance(part, Interval):
        return max(part.after, frame.begin), part.through
    return frame.begin, part


def _round_numbers() -> Iterator[int]:
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10
