"""What a user asks of sources, answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rollview.algebra.definition import declare, is_view_declaration
from rollview.algebra.text import parse_statements
from rollview.capture import requests
from rollview.capture.plan import plan_capture
from rollview.capture.run import run_capture, stopped_views
from rollview.core.states import Policy
from rollview.errors import RollviewError
from rollview.evolve.dispensable import dispenses
from rollview.publish.following import followers
from rollview.publish.workplace import Workplace
from rollview.results import (
    Captured,
    CopiedTable,
    Decided,
    Progress,
    SourceAdded,
    SourceCaptured,
    SourceChecked,
    SourceFinding,
    TableReading,
)
from rollview.sources.settings import SourceSettings

_log = logging.getLogger(__name__)


def check_source(place: Workplace, name: str, settings: SourceSettings | None) -> SourceChecked:
    """Without settings: a source that is known."""
    settings = settings and settings.anchored(Path.cwd())
    found = requests.check(name, settings) if settings else requests.check_recorded(place.catalog, name)
    findings = tuple(SourceFinding(one.what, one.repair, one.blocks) for one in found)
    return SourceChecked(name, not any(one.blocks for one in findings), findings)


def add_source(
    place: Workplace,
    name: str,
    settings: SourceSettings,
    on_progress: Callable[[Progress], None] | None,
    declared: Sequence[str],
) -> SourceAdded:
    """``declared``: SQL of views that are to come, for tables of which only what views need is copied."""
    place.recover()
    trees = (tree for text in declared for tree in parse_statements(text))
    views = [declare(tree) for tree in trees if is_view_declaration(tree)]
    rows = requests.add(place.catalog, place.data, name, settings.anchored(Path.cwd()), on_progress, views)
    record = place.catalog.source(name)
    read = {table: TableReading(**told) for table, told in record.health.get("readings", {}).items()}
    tables = tuple(CopiedTable(table, count, read.get(table)) for table, count in rows.items())
    return SourceAdded(record.name, record.kind, place.snapshot().moment.csn, record.position or "", tables)


def capture_sources(place: Workplace, names: Sequence[str]) -> Captured:
    """All sources without names. One that fails stops no other."""
    place.recover()
    records = place.catalog.sources()
    wanted = [place.catalog.source(name).name for name in names] or [record.name for record in records]
    plan = plan_capture(records, tuple(dict.fromkeys(wanted)), place.order)
    done = run_capture(place.catalog, place.data, plan, place.following)
    return Captured(place.snapshot().moment.csn, done)


def alter_source(place: Workplace, name: str, statement: str) -> SourceCaptured:
    """What was committed before the statement is captured before it."""
    (captured,) = capture_sources(place, [name]).sources
    if captured.problem is not None:
        return captured
    requests.alter(place.catalog, name, statement)
    (followed,) = capture_sources(place, [name]).sources
    units, rows = captured.units + followed.units, captured.rows + followed.rows
    return replace(followed, units=units, rows=rows, notes=(*captured.notes, *followed.notes))


def say_rename(place: Workplace, table: str, old: str, new: str) -> None:
    requests.say_rename(place.catalog, table, old, new)


def resnapshot(place: Workplace, name: str, *, widen: bool, settings: SourceSettings | None) -> SourceCaptured:
    place.recover()
    ready = _views_with_a_way_out(place, name)
    for view in ready:
        _try_to_follow(place, view, Policy.IPDA, name)
    before = stopped_views(place.catalog)
    progress = requests.resnapshot(place.catalog, place.data, name, widen=widen, settings=settings)
    place.following.synchronize({*ready, *(stopped_views(place.catalog) - before)})
    _take_views_along(place, name)
    return SourceCaptured(name, progress.units, progress.rows, progress.position, notes=progress.notes)


def _take_views_along(place: Workplace, source: str) -> None:
    """Views that follow commits come up to the new copy. One that cannot says so in its state, and holds up nothing."""
    following, snapshot, own = place.following, place.snapshot(), place.catalog.source(source).name
    tables = [table.name for table in snapshot.tables() if table.source == own]
    for view in followers(following.policies, snapshot, tables, strict=False).views:
        _try_to_follow(place, view, place.policies.of(snapshot, snapshot.get(view)), source)


def _views_with_a_way_out(place: Workplace, source: str) -> tuple[str, ...]:
    """Views that have something declared for when the copy lacks what they name, and views above them: they are to be
    at the csn before it."""
    snapshot, own = place.snapshot(), place.catalog.source(source).name
    tables = [table.name for table in snapshot.tables() if table.source == own]
    replaced = {one.of.lower() for one in place.substitutes}
    found = {
        name
        for table in tables
        for view in snapshot.readers(table)
        if table.lower() in replaced or dispenses(view)
        for name in (view.name, *(upper.name for upper in snapshot.above(view.name)))
    }
    return tuple(view.name for view in snapshot.views() if view.name in found)


def _try_to_follow(place: Workplace, view: str, policy: Policy, source: str) -> None:
    try:
        place.following.catch_up(view, policy)
    except RollviewError as error:
        _log.warning("view '%s' does not follow the new copy of '%s': %s", view, source, error.message)


def remove_source(place: Workplace, name: str, *, forget: bool) -> None:
    place.recover()
    requests.remove(place.catalog, name, forget=forget)


def decide(place: Workplace, global_id: str, choice: Literal["wait", "release"]) -> Decided:
    part = requests.decide(place.catalog, global_id, choice)
    return Decided(global_id, choice, part.missing)
