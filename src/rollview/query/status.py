"""Where every table and view stands, from the catalog alone."""

from __future__ import annotations

from datetime import UTC, datetime

from rollview.catalog import Catalog, HeldPart, Part, Relation, Snapshot, Source, Step
from rollview.core.durations import duration
from rollview.core.interval import Interval
from rollview.results import HeldTransaction, SourceStatus, Status, TableStatus, ViewStatus


def status(catalog: Catalog) -> Status:
    snapshot = catalog.snapshot()
    steps = catalog.last_steps()
    return Status(
        snapshot.moment.csn,
        snapshot.moment.time,
        tuple(_table(snapshot, table) for table in snapshot.tables()),
        tuple(_view(catalog, snapshot, view, steps.get(view.name)) for view in snapshot.views()),
        sources(catalog),
        held(catalog),
    )


def sources(catalog: Catalog) -> tuple[SourceStatus, ...]:
    return tuple(_source(source) for source in catalog.sources())


def _source(source: Source) -> SourceStatus:
    return SourceStatus(
        name=source.name,
        kind=source.kind,
        address=source.settings["address"],
        state=source.state,
        position=source.position,
        read=source.read,
        tables=tuple(table.relation for table in source.tables),
        problem=source.problem,
        known=source.known,
    )


def held(catalog: Catalog) -> tuple[HeldTransaction, ...]:
    """Global transactions that wait for parts, oldest first."""
    now = datetime.now(UTC)
    limits = {source.name: source.settings.get("global_transactions") or {} for source in catalog.sources()}
    return tuple(_held(part, limits[part.source].get("limit"), now) for part in catalog.held())


def _held(part: HeldPart, limit: str | None, now: datetime) -> HeldTransaction:
    begun = max(part.since, part.decided or part.since)
    overdue = limit is not None and now - begun > duration(limit)
    seconds = max(0.0, (now - part.since).total_seconds())
    return HeldTransaction(part.global_id, part.source, part.missing, part.since, seconds, overdue, part.decision)


def _table(snapshot: Snapshot, table: Relation) -> TableStatus:
    state, delta = table.pins[Part.STATE], table.pins.get(Part.DELTA)
    return TableStatus(
        table.name, state.rows, state.through, delta.through if delta is not None else snapshot.moment.csn
    )


def _view(catalog: Catalog, snapshot: Snapshot, view: Relation, step: Step | None) -> ViewStatus:
    extent, delta = view.pins[Part.EXTENT], view.pins[Part.DELTA]
    missed = _missed_commits(
        catalog, snapshot, view, Interval(extent.through, max(extent.through, snapshot.moment.csn))
    )
    return ViewStatus(
        name=view.name,
        csn=extent.through,
        high_water_mark=delta.through,
        staleness_commits=len(missed),
        staleness_seconds=max(0.0, (datetime.now(UTC) - min(missed.values())).total_seconds()) if missed else 0.0,
        policy=_policy(view),
        rows=extent.rows,
        last_refresh=step.finished if step is not None else None,
        last_mode=str(step.profile.get("mode", "")) or None if step is not None else None,
        problem=view.problem,
    )


def _policy(view: Relation) -> str:
    return view.definition.properties.get("rollview.policy", "dpda") if view.definition is not None else "dpda"


def _missed_commits(catalog: Catalog, snapshot: Snapshot, view: Relation, interval: Interval) -> dict[int, datetime]:
    """Commits to the base tables below the view that its extent does not show yet, with their times."""
    if not interval:
        return {}
    tables = _tables_below(snapshot, view)
    entries = catalog.ledger(interval)
    return {e.csn: e.ledger_time for e in entries if any(change.relation in tables for change in e.changes)}


def _tables_below(snapshot: Snapshot, view: Relation) -> set[str]:
    below: set[str] = set()
    for name in view.depends_on:
        relation = snapshot.get(name)
        below |= {relation.name} if relation.definition is None else _tables_below(snapshot, relation)
    return below
