"""``v``, ``+v`` (v and what it reads), ``v+`` (v and what reads it), ``+v+``."""

from __future__ import annotations

from collections.abc import Sequence

from rollview.catalog import Part, Relation, RelationKind, Snapshot
from rollview.core.states import ViewState
from rollview.errors import UsageError


def select_views(snapshot: Snapshot, patterns: Sequence[str]) -> tuple[str, ...]:
    """The chosen views in dependency order; all of them if nothing is chosen. One may be given as it is."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    ordered = [view.name for view in snapshot.views()]
    if not patterns:
        return tuple(ordered)
    chosen: set[str] = set()
    for pattern in patterns:
        chosen |= _matches(snapshot, pattern)
    return tuple(name for name in ordered if name in chosen)


def going_on(snapshot: Snapshot, names: Sequence[str], *, asked: bool) -> tuple[str, ...]:
    """Those that a change at a source has not stopped; to ask for one of the others is an error."""
    stopped = [name for name in names if snapshot.get(name).state is ViewState.SCHEMA_CHANGED]
    waiting = [name for name in names if name not in stopped and snapshot.waits_for(snapshot.get(name)) is not None]
    if waiting and asked:
        raise _waits(snapshot, waiting)
    if stopped and asked:
        view = snapshot.get(stopped[0])
        raise UsageError(
            f"View '{view.name}' is stopped at csn {view.pins[Part.EXTENT].through}: {view.problem}",
            hint="It can be read as it is. Create it again with CREATE OR REPLACE, without what is gone.",
            views=stopped,
        )
    return tuple(name for name in names if name not in (*stopped, *waiting))


def _waits(snapshot: Snapshot, names: Sequence[str]) -> UsageError:
    view = snapshot.get(names[0])
    table = snapshot.waits_for(view)
    assert table is not None
    return UsageError(
        f"View '{view.name}' goes no further than csn {table.waits_at}: {table.problem}",
        hint="It can be read as it is, and goes on when the table does.",
        views=list(names),
        table=table.name,
    )


def select_relations(snapshot: Snapshot, patterns: Sequence[str]) -> tuple[str, ...]:
    """The same for tables and views; what a view reads has tables in it."""
    chosen: set[str] = set()
    for pattern in patterns:
        exact = snapshot.find(pattern)
        start = exact or snapshot.get(pattern.removeprefix("+").removesuffix("+"))
        chosen.add(start.name)
        if exact is None and pattern.startswith("+"):
            chosen |= {lower.name for lower in snapshot.below(start.name)}
        if exact is None and pattern.endswith("+"):
            chosen |= {upper.name for upper in snapshot.above(start.name)}
    return tuple(name for name in snapshot.relations if name in chosen)


def _matches(snapshot: Snapshot, pattern: str) -> set[str]:
    exact = snapshot.find(pattern)
    if exact is not None:
        return {_view(exact).name}
    name = pattern.removeprefix("+").removesuffix("+")
    view = _view(snapshot.get(name))
    chosen = {view.name}
    if pattern.startswith("+"):
        chosen |= views_below(snapshot, view)
    if pattern.endswith("+"):
        chosen |= {upper.name for upper in snapshot.above(view.name)}
    return chosen


def _view(relation: Relation) -> Relation:
    if relation.kind is not RelationKind.VIEW:
        raise UsageError(f"'{relation.name}' is a table; only views can be selected.")
    return relation


def views_below(snapshot: Snapshot, view: Relation) -> set[str]:
    """The views that a view reads, at any depth."""
    return {lower.name for lower in snapshot.below(view.name) if lower.kind is RelationKind.VIEW}
