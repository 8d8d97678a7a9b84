"""Everything that sources have committed by now, captured.

Law: sources that wait for each other are captured together, in one ledger order; one that fails stops no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rollview.capture.commit_stream import CommitStream, Reached
from rollview.capture.copies import captured_copy, copy_again
from rollview.capture.health import is_copying, note, note_health, readings, refuse_removing
from rollview.capture.plan import CapturePlan, Group, lease_name
from rollview.capture.recorded_source import open_recorded
from rollview.capture.sequencer import CaptureProgress, Sequencer
from rollview.capture.spooling import spool_space
from rollview.catalog import Catalog, Lease, SourceRecord
from rollview.core import durable
from rollview.core.order import Order
from rollview.core.raised import unexpected_error
from rollview.core.states import Policy, SourceState, ViewState
from rollview.errors import RollviewError
from rollview.evolve.plan import LayoutPlan, plan_change
from rollview.evolve.run import run_change
from rollview.publish.following import Following
from rollview.results import SourceCaptured
from rollview.sources.boundary import as_error, named
from rollview.sources.protocol import LayoutChange, Source

_log = logging.getLogger(__name__)

Captured = CaptureProgress | RollviewError

_PATIENCE = 30.0


def run_capture(
    catalog: Catalog, root: Path, plan: CapturePlan, following: Following | None = None
) -> tuple[SourceCaptured, ...]:
    """What each source gave, or why it gave nothing. A group that fails keeps no other from its turn. ``following``:
    who brings views along."""
    done: list[SourceCaptured] = []
    for group in plan.groups:
        try:
            done += run_group(catalog, root, group, plan.order, _PATIENCE, following)
        except Exception as error:
            done += [_told(catalog, name, unexpected_error(error)) for name in group]
    return tuple(done)


def run_group(
    catalog: Catalog, root: Path, names: Group, order: Order, wait: float, following: Following | None = None
) -> tuple[SourceCaptured, ...]:
    """Sources that wait for each other. Busy if another process is at one of them for longer than ``wait``."""
    done = capture(catalog, root, names, order, wait, following)
    return tuple(_told(catalog, name, done[name]) for name in names)


def _told(catalog: Catalog, name: str, done: Captured) -> SourceCaptured:
    if isinstance(done, RollviewError):
        return SourceCaptured(name, 0, 0, catalog.source(name).position, done.message, done.retryable)
    return SourceCaptured(name, done.units, done.rows, done.position, notes=done.notes)


def capture(
    catalog: Catalog,
    root: Path,
    names: Sequence[str],
    order: Order,
    wait: float = _PATIENCE,
    following: Following | None = None,
) -> Mapping[str, Captured]:
    """Everything that these sources have committed by now, one ledger order for all. One that fails stops no other.

    Busy if another process is at one of them for longer than ``wait``.
    """
    with catalog.lease(*map(lease_name, names), wait=wait) as lease:
        before = stopped_views(catalog)
        done = _capture(catalog, root, names, order, lease, following)
        found: Mapping[str, _Done] = {}
        # Each reading goes beyond the change that the one before it found; one that does not has failed.
        while followed := _follow_changes(
            catalog, root, {name: done[name] for name in _beyond(found, done)}, following
        ):
            found, again = done, _capture(catalog, root, names, order, lease, following)
            done = {name: _added(done[name], again[name], followed.get(name)) for name in again}
        stopped = (stopped_views(catalog) - before) | waiting_views(catalog)
        if following is not None and stopped:
            # A copy has stopped them, which knows nobody who brings views along; or a table of theirs is gone.
            _tried("views", partial(following.synchronize, stopped))
        return {name: _final(catalog, name, one.outcome, lease) for name, one in done.items()}


@dataclass(frozen=True, slots=True)
class _Done:
    """What came of one source, and what was published of it whether or not it failed then."""

    outcome: Captured | LayoutChange
    units: int = 0
    rows: int = 0
    notes: tuple[str, ...] = ()


def _added(before: _Done, then: _Done, followed: LayoutPlan | None) -> _Done:
    units, rows = before.units + then.units, before.rows + then.rows
    notes = (*before.notes, *([str(followed)] if followed else []), *then.notes)
    outcome = then.outcome
    if isinstance(outcome, CaptureProgress):
        outcome = replace(outcome, units=units, rows=rows, notes=notes)
    return _Done(outcome, units, rows, notes)


def _beyond(before: Mapping[str, _Done], now: Mapping[str, _Done]) -> Mapping[str, _Done]:
    """The sources that did not come to the same as before."""
    return {name: one for name, one in now.items() if name not in before or before[name].outcome != one.outcome}


def _follow_changes(
    catalog: Catalog, root: Path, done: Mapping[str, _Done], following: Following | None
) -> Mapping[str, LayoutPlan]:
    """Of each source whose table can be read on without what is gone, what was done for that."""
    changes = {name: one.outcome for name, one in done.items() if isinstance(one.outcome, LayoutChange)}
    plans = {name: _followed(catalog, root, catalog.source(name), one, following) for name, one in changes.items()}
    return {name: plan for name, plan in plans.items() if plan is not None}


def _followed(
    catalog: Catalog, root: Path, record: SourceRecord, change: LayoutChange, following: Following | None
) -> LayoutPlan | None:
    """Views that are to stop come up to the csn before the change first, as long as what they name can be read; then
    those that have something declared for it go on from the change's own csn."""
    found = plan_change(catalog.snapshot(), record, change)
    held = () if found is None else _held(catalog, found)
    if following is None or not held:
        return run_change(catalog, root, record, change)
    for view in held:
        _tried(view, partial(following.catch_up, view, Policy.IPDA))
    plan = run_change(catalog, root, record, change)
    if plan is not None and plan.stopped:
        _tried(plan.relation, partial(following.synchronize, plan.stopped))
    return plan


def _held(catalog: Catalog, plan: LayoutPlan) -> Sequence[str]:
    """The views that go no further than the csn before the change: of a table that waits, all that read it."""
    snapshot = catalog.snapshot()
    above = {view.name for view in snapshot.above(plan.relation)} if plan.waits else set()
    return [view.name for view in snapshot.views() if view.name in {*plan.stopped, *above}]


def _tried(name: str, act: Callable[[], None]) -> None:
    """What views cannot do holds up no source: they stay where they are, and can be decided for."""
    try:
        act()
    except RollviewError as error:
        _log.warning("'%s' at a change of columns: %s", name, error.message)


def stopped_views(catalog: Catalog) -> frozenset[str]:
    """Those that a change of columns has stopped."""
    views = catalog.snapshot().views()
    return frozenset(view.name for view in views if view.state is ViewState.SCHEMA_CHANGED)


def waiting_views(catalog: Catalog) -> frozenset[str]:
    """Those over a table that waits."""
    snapshot = catalog.snapshot()
    tables = [table.name for table in snapshot.tables() if table.waits_at is not None]
    return frozenset(view.name for table in tables for view in snapshot.above(table))


def _final(catalog: Catalog, name: str, outcome: Captured | LayoutChange, lease: Lease) -> Captured:
    """A change of a layout that nobody could follow stops its source."""
    if not isinstance(outcome, LayoutChange):
        return outcome
    error = outcome.refused()
    note(catalog, catalog.source(name), error, lease)
    return error


def _capture(
    catalog: Catalog, root: Path, names: Sequence[str], order: Order, lease: Lease, following: Following | None
) -> Mapping[str, _Done]:
    with ExitStack() as stack:
        done: dict[str, _Done] = {}
        streams: list[CommitStream] = []
        for record in map(catalog.source, names):
            try:
                stream = _opened(catalog, root, record, stack, lease)
            except Exception as caught:
                error = as_error(record.name, caught, record.position)
                note(catalog, record, error, lease)
                done[record.name] = _Done(error)
            else:
                if isinstance(stream, CommitStream):
                    streams.append(stream)
                else:
                    done[record.name] = _Done(stream, stream.units, stream.rows)
        return {**done, **_captured(catalog, root, streams, order, lease, following)}


def _opened(
    catalog: Catalog, root: Path, record: SourceRecord, stack: ExitStack, lease: Lease
) -> CommitStream | CaptureProgress:
    refuse_removing(record)
    if is_copying(record):
        return captured_copy(catalog, root, record, lease)
    if record.state is SourceState.WIDENING:
        return copy_again(catalog, root, record, lease, widen=True)
    space = stack.enter_context(spool_space(catalog, root, record))
    source = stack.enter_context(closing(open_recorded(catalog, record, lease, space)))
    snapshot = catalog.snapshot()
    waiting = [table.remote for table in record.tables if snapshot.get(table.relation).waits_at is not None]
    return CommitStream(source, record, snapshot, waiting)


def _captured(
    catalog: Catalog,
    root: Path,
    streams: Sequence[CommitStream],
    order: Order,
    lease: Lease,
    following: Following | None,
) -> Mapping[str, _Done]:
    if not streams:
        return {}
    records = {stream.name: catalog.source(stream.name) for stream in streams}
    sequencer = Sequencer(catalog, root, streams, lease, order, following)
    try:
        # What a source fails with has its name by now: an error of the system is of the warehouse's own disk.
        with durable.disk(root):
            found: Mapping[str, Captured | LayoutChange] = sequencer.run()
    except Exception as caught:
        found = dict.fromkeys(records, unexpected_error(caught))
    found = {**found, **sequencer.stopped}
    return {
        stream.name: _noted(
            catalog,
            root,
            records[stream.name],
            stream.source,
            sequencer.reached[stream.name],
            found[stream.name],
            lease,
        )
        for stream in streams
    }


def _noted(
    catalog: Catalog,
    root: Path,
    record: SourceRecord,
    source: Source,
    reached: Reached,
    outcome: Captured | LayoutChange,
    lease: Lease,
) -> _Done:
    if isinstance(outcome, LayoutChange):
        return _Done(outcome, reached.units, reached.rows)
    if isinstance(outcome, RollviewError):
        note(catalog, record, outcome, lease)
        return _Done(outcome, reached.units, reached.rows)
    notes: tuple[str, ...] = ()
    # It has just answered; if it does not tell its health, it is asked again the next time.
    with suppress(RollviewError), named(record.name, reached.position):
        notes = note_health(catalog, record, source, readings(catalog, root, record, source, reached.position))
        source.tidy(record.memory)
    note(catalog, record, None, lease)
    return _Done(replace(outcome, notes=notes), reached.units, reached.rows, notes)
