"""Where every table and view stands, from the catalog alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rollview.catalog import (
    NOTHING_MISSED,
    Catalog,
    HeldPart,
    Part,
    Quarantined,
    Relation,
    Snapshot,
    SourceRecord,
    Step,
)
from rollview.core.durations import duration
from rollview.core.interval import Interval
from rollview.core.states import Policy, ViewState
from rollview.query.pace import LATELY, pace
from rollview.query.places import published_as, table_places
from rollview.relations.policies import Policies
from rollview.relations.validity import Validity
from rollview.results import (
    AskedSoFar,
    CatalogRows,
    HeldTransaction,
    QuarantinedRow,
    SourceQuarantine,
    SourceStatus,
    Status,
    TableLayout,
    TableReading,
    TableStatus,
    ViewStatus,
)


def warehouse_status(catalog: Catalog, policies: Policies) -> Status:
    snapshot = catalog.snapshot()
    valid = {name: Validity(catalog, snapshot, relation).told() for name, relation in snapshot.relations.items()}
    steps = catalog.last_steps()
    lacking, read_from = missing(catalog.quarantine()), catalog.sources()
    return Status(
        snapshot.moment.csn,
        snapshot.moment.time,
        tuple(replace(_table(snapshot, table), valid=valid[table.name]) for table in snapshot.tables()),
        tuple(
            replace(
                _view(catalog, snapshot, view, policies.of(snapshot, view), steps.get(view.name), lacking, read_from),
                valid=valid[view.name],
            )
            for view in snapshot.views()
        ),
        sources(catalog),
        held(catalog),
        CatalogRows(*catalog.row_counts()),
    )


def sources(catalog: Catalog) -> tuple[SourceStatus, ...]:
    snapshot = catalog.snapshot()
    return tuple(_source(snapshot, source) for source in catalog.sources())


def _source(snapshot: Snapshot, source: SourceRecord) -> SourceStatus:
    health, now = source.health, datetime.now(UTC)
    since = datetime.fromisoformat(health["open_since"]) if health.get("open_since") else None
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
        layouts=tuple(layout for table in source.tables for layout in _layouts(snapshot.find(table.relation))),
        staleness_seconds=max(0.0, (now - source.read).total_seconds()) if source.read else None,
        behind_bytes=health.get("behind_bytes"),
        kept_bytes=health.get("kept_bytes"),
        slot=health.get("slot"),
        alarm=health.get("alarm"),
        oldest_open=health.get("oldest_open"),
        open_since=since,
        open_seconds=max(0.0, (now - since).total_seconds()) if since else None,
        retry_at=datetime.fromisoformat(health["retry_at"]) if "retry_at" in health else None,
        readings=readings(source),
        kept=dict(_kept(snapshot, source)),
        asked=_asked(health.get("asked")),
    )


def _asked(told: Mapping[str, Any] | None) -> AskedSoFar | None:
    return None if told is None else AskedSoFar(**{**told, "last": datetime.fromisoformat(told["last"])})


def _kept(snapshot: Snapshot, source: SourceRecord) -> Iterator[tuple[str, str]]:
    """What is here of each table, where that is not simply all."""
    for told in source.settings["tables"]:
        table = snapshot.find(told["relation"])
        if table is not None and table.waits_at is not None:
            yield table.name, f"waits at csn {table.waits_at}: {table.problem}"
        elif table is not None and not table.is_kept:
            views = ", ".join(view.name for view in snapshot.readers(table.name)) or "no view"
            asked = ", and rows are asked for" if told.get("asked") else ""
            yield table.name, f"no rows kept: only changes are read{asked}, by {views}"
        elif table is not None and (told.get("columns") or told.get("rows")):
            yield table.name, f"columns {', '.join(table.schema.names)}; rows: {told.get('rows') or 'all'}"


def readings(source: SourceRecord) -> Mapping[str, TableReading]:
    """How each table is read, of a source whose own files may be read."""
    return {name: TableReading(**told) for name, told in source.health.get("readings", {}).items()}


def _layouts(table: Relation | None) -> tuple[TableLayout, ...]:
    if table is None:
        return ()
    return tuple(
        TableLayout(table.name, one.csn, one.position, tuple(f"{c.name} {c.type}" for c in one.schema), one.reason)
        for one in table.layouts
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
        table.name,
        state.rows if state.is_kept else None,
        state.through,
        delta.through if delta is not None else snapshot.moment.csn,
        problem=table.problem,
    )


def _view(
    catalog: Catalog,
    snapshot: Snapshot,
    view: Relation,
    policy: Policy,
    step: Step | None,
    lacking: Mapping[str, int],
    read_from: Sequence[SourceRecord],
) -> ViewStatus:
    extent, delta = view.shown, view.pins[Part.DELTA]
    now, tables = datetime.now(UTC), snapshot.tables_below(view)
    lacks = Interval(extent.through, max(extent.through, snapshot.moment.csn))
    below = {snapshot.get(table).source for table in tables}
    until = seen_until([source for source in read_from if source.name in below], now)
    missed = catalog.missed(tables, lacks, until - LATELY, until) if lacks else NOTHING_MISSED
    how_fast = pace(missed, catalog.steps(view.name, 40), now) if missed.commits else None
    return ViewStatus(
        name=view.name,
        csn=extent.through,
        high_water_mark=delta.through,
        staleness_commits=missed.commits,
        staleness_seconds=max(0.0, (now - missed.oldest).total_seconds()) if missed.oldest else 0.0,
        policy=policy,
        rows=extent.rows,
        last_refresh=step.finished if step is not None else None,
        last_mode=str(step.profile.get("mode", "")) or None if step is not None else None,
        problem=view.problem or _lack(snapshot, view, lacking),
        state=_state(snapshot, view, lacking),
        commits_per_second_in=how_fast.came if how_fast else None,
        commits_per_second_done=how_fast.done if how_fast else None,
        catches_up_in_seconds=how_fast.catches_up_in if how_fast else None,
        places=table_places(snapshot, view),
        consistency=published_as(view),
    )


def seen_until(sources: Iterable[SourceRecord], now: datetime) -> datetime:
    """When the last minute ends of which all commits are known: now, unless a source is read with a delay. Of what it
    committed since nobody knows anything, so that is not a time without commits."""
    passed = (max(source.known, source.latest or source.known) for source in sources if source.known is not None)
    return min([now, *passed])


def _state(snapshot: Snapshot, view: Relation, lacking: Mapping[str, int]) -> ViewState:
    if view.state is not None or view.problem is not None:
        return view.state or ViewState.STOPPED
    if snapshot.waits_for(view) is not None:
        return ViewState.SCHEMA_CHANGED
    return ViewState.OK if _lack(snapshot, view, lacking) is None else ViewState.DEGRADED


def _lack(snapshot: Snapshot, view: Relation, lacking: Mapping[str, int]) -> str | None:
    waits = snapshot.waits_for(view)
    if waits is not None:
        return waits.problem
    found = [f"{lacking[table]} of '{table}'" for table in sorted(snapshot.tables_below(view)) if table in lacking]
    return f"rows in quarantine: {', '.join(found)}" if found else None


def quarantine(catalog: Catalog, name: str) -> SourceQuarantine:
    source = catalog.source(name).name
    kept = [one for one in catalog.quarantine() if one.source == source]
    rows = (QuarantinedRow(q.relation, q.position, q.column, q.reason, q.row, q.count, q.taken) for q in kept)
    return SourceQuarantine(source, sum(missing(kept).values()), tuple(rows))


def missing(kept: Iterable[Quarantined]) -> dict[str, int]:
    """How many rows each table lacks: what came and did not go again."""
    sums: Counter[tuple[str, str]] = Counter()
    for one in kept:
        sums[one.relation, one.row] += one.count
    lacking: Counter[str] = Counter()
    for (relation, _), count in sums.items():
        lacking[relation] += max(0, count)
    return dict(+lacking)
