"""Where every table and view stands, from the catalog alone."""

from __future__ import annotations

from datetime import UTC, datetime

from rollview.catalog import Catalog, Part, Relation, Snapshot, Source, Step
from rollview.core.interval import Interval
from rollview.results import SourceStatus, Status, TableLayout, TableStatus, ViewStatus


def status(catalog: Catalog) -> Status:
    snapshot = catalog.snapshot()
    steps = catalog.last_steps()
    return Status(
        snapshot.moment.csn,
        snapshot.moment.time,
        tuple(_table(snapshot, table) for table in snapshot.tables()),
        tuple(_view(catalog, snapshot, view, steps.get(view.name)) for view in snapshot.views()),
        sources(catalog),
    )


def sources(catalog: Catalog) -> tuple[SourceStatus, ...]:
    snapshot = catalog.snapshot()
    return tuple(_source(snapshot, source) for source in catalog.sources())


def _source(snapshot: Snapshot, source: Source) -> SourceStatus:
    health, now = source.health, datetime.now(UTC)
    return SourceStatus(
        name=source.name,
        kind=source.kind,
        address=source.settings["address"],
        state=source.state,
        position=source.position,
        read=source.read,
        tables=tuple(table.relation for table in source.tables),
        problem=source.problem,
        layouts=tuple(layout for table in source.tables for layout in _layouts(snapshot.find(table.relation))),
        staleness_seconds=max(0.0, (now - source.read).total_seconds()) if source.read else None,
        behind_bytes=health.get("behind_bytes"),
        kept_bytes=health.get("kept_bytes"),
        slot=health.get("slot"),
        alarm=health.get("alarm"),
        retry_at=datetime.fromisoformat(health["retry_at"]) if "retry_at" in health else None,
    )


def _layouts(table: Relation | None) -> tuple[TableLayout, ...]:
    if table is None:
        return ()
    return tuple(
        TableLayout(table.name, one.csn, one.position, tuple(f"{c.name} {c.type}" for c in one.schema), one.reason)
        for one in table.layouts
    )


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
        state=view.state or ("ok" if view.problem is None else "stopped"),
    )


def _policy(view: Relation) -> str:
    return view.definition.properties.get("rollview.policy", "dpda") if view.definition is not None else "dpda"


def _missed_commits(catalog: Catalog, snapshot: Snapshot, view: Relation, interval: Interval) -> dict[int, datetime]:
    """Commits to the base tables below the view that its extent does not show yet, with their times."""
    if not interval:
        return {}
    tables = snapshot.tables_below(view)
    entries = catalog.ledger(interval)
    return {e.csn: e.ledger_time for e in entries if any(change.relation in tables for change in e.changes)}
