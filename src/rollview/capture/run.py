"""Everything that sources have committed by now, captured.

Law: sources that wait for each other are captured together, in one ledger order; one that fails stops no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rollview.capture.commit_stream import Inlet
from rollview.capture.copies import captured_copy, copy_again
from rollview.capture.health import COPYING, REMOVING, WIDENING, note, note_health, readings
from rollview.capture.recorded_source import open_recorded
from rollview.capture.sequencer import Progress, Sequencer
from rollview.catalog import Catalog
from rollview.catalog import Source as Record
from rollview.core.order import Order
from rollview.errors import RollviewError, SchemaChanged, UsageError
from rollview.evolve.follow import follow
from rollview.sources.boundary import as_error, named

Captured = Progress | RollviewError


def lease_name(source: str) -> str:
    return f"source:{source}"


def together(catalog: Catalog, names: Sequence[str], order: Order) -> list[tuple[str, ...]]:
    """The sources that have to be captured, those that wait for each other in one group."""
    records = catalog.sources()
    shared = [r.name for r in records if order.by_time or r.settings.get("global_transactions") is not None]
    groups: list[tuple[str, ...]] = [(name,) for name in names if name not in shared]
    return [*groups, tuple(shared)] if any(name in shared for name in names) else groups


def capture(
    catalog: Catalog, root: Path, names: Sequence[str], order: Order, wait: float = 30.0
) -> Mapping[str, Captured]:
    """Everything that these sources have committed by now, one ledger order for all. One that fails stops no other.

    Busy if another process is at one of them for longer than ``wait``.
    """
    with catalog.lease(*map(lease_name, names), wait=wait):
        done = _capture(catalog, root, names, order)
        # Each change of a layout that is followed leaves fewer columns, so there are not many.
        while followed := _follow_changes(catalog, done):
            again = _capture(catalog, root, names, order)
            done = {name: _added(done[name], again[name], followed.get(name)) for name in again}
        return {name: one.outcome for name, one in done.items()}


@dataclass(frozen=True, slots=True)
class _Done:
    """What came of one source, and what was published of it whether or not it failed then."""

    outcome: Captured
    units: int = 0
    rows: int = 0
    notes: tuple[str, ...] = ()


def _added(before: _Done, then: _Done, note: str | None) -> _Done:
    units, rows = before.units + then.units, before.rows + then.rows
    notes = (*before.notes, *([note] if note else []), *then.notes)
    outcome = then.outcome
    if isinstance(outcome, Progress):
        outcome = replace(outcome, units=units, rows=rows, notes=notes)
    return _Done(outcome, units, rows, notes)


def _follow_changes(catalog: Catalog, done: Mapping[str, _Done]) -> Mapping[str, str]:
    """What was said of each source whose table can be read on without what is gone."""
    told: dict[str, str] = {}
    for name, one in done.items():
        if isinstance(one.outcome, SchemaChanged) and (one.outcome.gone or one.outcome.unsure):
            with suppress(SchemaChanged):
                told[name] = follow(catalog, catalog.source(name), one.outcome)
    return told


def _capture(catalog: Catalog, root: Path, names: Sequence[str], order: Order) -> Mapping[str, _Done]:
    with ExitStack() as stack:
        done: dict[str, _Done] = {}
        inlets: list[Inlet] = []
        for record in map(catalog.source, names):
            try:
                inlet = _inlet(catalog, root, record, stack)
            except Exception as caught:
                error = as_error(record.name, caught, record.position)
                note(catalog, record, error)
                done[record.name] = _Done(error)
            else:
                if isinstance(inlet, Inlet):
                    inlets.append(inlet)
                else:
                    done[record.name] = _Done(inlet, inlet.units, inlet.rows)
        return {**done, **_captured(catalog, root, inlets, order)}


def _inlet(catalog: Catalog, root: Path, record: Record, stack: ExitStack) -> Inlet | Progress:
    if record.state == REMOVING:
        raise UsageError(f"Source '{record.name}' is being removed.", hint=f"rollview source remove {record.name}")
    if record.state == COPYING:
        return captured_copy(catalog, root, record)
    if record.state == WIDENING:
        return copy_again(catalog, root, record, widen=True)
    source = stack.enter_context(closing(open_recorded(catalog, record)))
    return Inlet(source, record, catalog.snapshot())


def _captured(catalog: Catalog, root: Path, inlets: Sequence[Inlet], order: Order) -> Mapping[str, _Done]:
    if not inlets:
        return {}
    records = {inlet.name: catalog.source(inlet.name) for inlet in inlets}
    sequencer = Sequencer(catalog, root, inlets, order)
    try:
        found: Mapping[str, Captured] = sequencer.run()
    except Exception as caught:
        found = {name: as_error(name, caught, record.position) for name, record in records.items()}
    found = {**found, **sequencer.failed}
    return {inlet.name: _noted(catalog, root, records[inlet.name], inlet, found[inlet.name]) for inlet in inlets}


def _noted(catalog: Catalog, root: Path, record: Record, inlet: Inlet, outcome: Captured) -> _Done:
    if isinstance(outcome, RollviewError):
        note(catalog, record, outcome)
        return _Done(outcome, inlet.units, inlet.rows)
    notes: tuple[str, ...] = ()
    # It has just answered; if it does not tell how it fares, it is asked again the next time.
    with suppress(RollviewError), named(record.name, inlet.position):
        notes = note_health(catalog, record, inlet.source, readings(catalog, root, record, inlet))
    note(catalog, record, None)
    return _Done(replace(outcome, notes=notes), inlet.units, inlet.rows, notes)
