"""What a user asks of sources: add, check, capture, copy again, remove.

Law: each request may be made again after it was cut off anywhere, and then finishes what was begun. A source that
fails hurts nobody else: its state says why, its tables stay at their last good csn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from rollview.algebra.definition import Declared
from rollview.catalog import Catalog, Choice, HeldPart, this_process
from rollview.catalog import Source as Record
from rollview.core.backoff import delay
from rollview.core.faults import reach
from rollview.core.order import Order
from rollview.errors import AlreadyExists, InUse, NotFound, RollviewError, SchemaChanged, SourceStopped, UsageError
from rollview.sources.first_copy import OnProgress, check_tables, pieces, run_first_copy
from rollview.sources.follow import follow, unkept
from rollview.sources.follow import widen as widen_table
from rollview.sources.in_place import READINGS, forward
from rollview.sources.in_place import move_on as move_on_state
from rollview.sources.inlet import Inlet
from rollview.sources.kinds import new_memory, open_new, open_recorded
from rollview.sources.needs import grown, reads_needed, tell_missing, whole
from rollview.sources.protocol import Changes, Finding, FirstCopy, Source, UnitOfWork, Watched
from rollview.sources.restrict import restriction
from rollview.sources.sequencer import Progress, Sequencer
from rollview.sources.settings import SourceSettings
from rollview.store.steps import drop, take_away

Copied = Mapping[str, int]
Captured = Progress | RollviewError

COPYING, WIDENING, REMOVING = "copying", "widening", "removing"

_SIGN_OF_LIFE = timedelta(seconds=5)


def lease_name(source: str) -> str:
    return f"source:{source}"


def check(name: str, settings: SourceSettings) -> tuple[Finding, ...]:
    """What is missing for a source that is not there yet. Changes nothing."""
    with _closing(open_new(name, settings)) as source:
        return source.check()


def check_recorded(catalog: Catalog, name: str) -> tuple[Finding, ...]:
    with _closing(open_recorded(catalog, catalog.source(name))) as source:
        return source.check()


def add(
    catalog: Catalog,
    root: Path,
    name: str,
    settings: SourceSettings,
    on_progress: OnProgress | None = None,
    declared: Sequence[Declared] = (),
) -> Copied:
    """A new source, its tables copied. What a cut-off attempt with the same settings began is finished.

    ``declared``: views that are to come, for tables of which only what views need is copied.
    """
    with catalog.lease("definitions", lease_name(name)):
        present = next((record for record in catalog.sources() if record.name.lower() == name.lower()), None)
        if present is None:
            _record(catalog, name, settings, declared)
        elif present.state != COPYING or whole(SourceSettings.from_json(present.settings)) != whole(settings):
            raise AlreadyExists("source", present.name, hint="Remove it first, or give the new one another name.")
    reach("source.recorded")
    return finish_copy(catalog, root, name, on_progress)


def finish_copy(catalog: Catalog, root: Path, name: str, on_progress: OnProgress | None = None) -> Copied:
    with catalog.lease(lease_name(name)):
        return _copy(catalog, root, catalog.source(name), on_progress)


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
            except RollviewError as error:
                _note(catalog, record, error)
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
        return _captured_copy(catalog, root, record)
    if record.state == WIDENING:
        return _copy_again(catalog, root, record, widen=True)
    source = stack.enter_context(_closing(open_recorded(catalog, record)))
    return Inlet(source, record, catalog.snapshot())


def _captured(catalog: Catalog, root: Path, inlets: Sequence[Inlet], order: Order) -> Mapping[str, _Done]:
    if not inlets:
        return {}
    records = {inlet.name: catalog.source(inlet.name) for inlet in inlets}
    sequencer = Sequencer(catalog, root, inlets, order)
    try:
        found: Mapping[str, Captured] = sequencer.run()
    except RollviewError as error:
        found = dict.fromkeys(records, error)
    found = {**found, **sequencer.failed}
    return {inlet.name: _noted(catalog, root, records[inlet.name], inlet, found[inlet.name]) for inlet in inlets}


def _noted(catalog: Catalog, root: Path, record: Record, inlet: Inlet, outcome: Captured) -> _Done:
    if isinstance(outcome, RollviewError):
        _note(catalog, record, outcome)
        return _Done(outcome, inlet.units, inlet.rows)
    notes: tuple[str, ...] = ()
    # It has just answered; if it does not tell how it fares, it is asked again the next time.
    with suppress(RollviewError):
        notes = _note_health(catalog, record, inlet.source, _readings(catalog, root, record, inlet))
    _note(catalog, record, None)
    return _Done(replace(outcome, notes=notes), inlet.units, inlet.rows, notes)


def resnapshot(
    catalog: Catalog, root: Path, name: str, *, widen: bool = False, settings: SourceSettings | None = None
) -> Progress:
    """Copy the source again; the difference from what is held becomes one unit of work.

    ``widen``: take columns as well that are at the source and not here, those of ``settings`` if it names any, and the
    rows that they say.
    """
    with catalog.lease(lease_name(name)):
        record = catalog.source(name)
        if record.state in (COPYING, REMOVING):
            raise UsageError(f"Source '{record.name}' is {record.state}.", hint="Finish that first: rollview capture.")
        if widen:
            record = _widening(catalog, record, settings)
        return _copy_again(catalog, root, record, widen=record.state == WIDENING)


def cover(catalog: Catalog, root: Path, view: Declared) -> tuple[str, ...]:
    """What the view needs of tables of which only that is copied is here afterwards; what was taken as well."""
    notes: list[str] = []
    for record in catalog.sources():
        settings = SourceSettings.from_json(record.settings)
        tell_missing(record.name, settings, view, catalog.snapshot())
        if reads_needed(settings, view) and record.state not in (COPYING, REMOVING):
            with catalog.lease(lease_name(record.name)):
                notes += _covered(catalog, root, catalog.source(record.name), view)
    return tuple(notes)


def _covered(catalog: Catalog, root: Path, record: Record, view: Declared) -> tuple[str, ...]:
    before = SourceSettings.from_json(record.settings)
    with _closing(open_recorded(catalog, replace(record, settings=whole(before).to_json()))) as source:
        after = grown(before, source.tables(), [view], catalog.snapshot(), is_there=True)
    if after == before and record.state != WIDENING:
        return ()
    return _copy_again(catalog, root, _widening(catalog, record, after), widen=True).notes


def _copy_again(catalog: Catalog, root: Path, record: Record, *, widen: bool) -> Progress:
    with (
        _noting(catalog, record),
        _closing(open_recorded(catalog, record)) as source,
        _withdrawing(source),
        source.first_copy() as copy,
    ):
        _follow_copy(catalog, record, copy)
        notes = _widen_copy(catalog, root, record, copy) if widen else ()
        reach("widen.declared")
        done = _replace(catalog, root, source, record, copy)
        readings = forward(catalog, root, source, catalog.source(record.name))
        if readings:
            with catalog.write() as writer:
                writer.sources.set_health(record.name, {**record.health, READINGS: dict(readings)})
        if notes and not done.units:
            with catalog.write() as writer:
                writer.sources.hasten_layouts(done.csn)
        return replace(done, notes=(*notes, *(_note_rows(catalog, record, copy.position) if widen else ())))


def decide(catalog: Catalog, global_id: str, choice: Choice) -> HeldPart:
    """What is done about a global transaction that is held; recorded with who decided."""
    part = next((part for part in catalog.held() if part.global_id == global_id), None)
    if part is None:
        raise NotFound("global transaction that waits", global_id, hint="See 'rollview source global list'.")
    with catalog.write() as writer:
        writer.sources.decide(global_id, choice, this_process().owner)
    return part


def move_on(catalog: Catalog, root: Path, name: str) -> bool:
    """The state of a captured table to the newest csn, by its source's own files; False if it is not read there."""
    record = next((r for r in catalog.sources() if name in [table.relation for table in r.tables]), None)
    if record is None or READINGS not in record.health or record.health[READINGS].get(name, {}).get("reason"):
        return False
    with catalog.lease(lease_name(record.name)), _closing(open_recorded(catalog, record)) as source:
        # What is held of a source that is widening is not what its settings say.
        is_held = catalog.source(record.name).state != WIDENING
        return is_held and move_on_state(catalog, root, source, record, name)


def remove(catalog: Catalog, root: Path, name: str, *, forget: bool = False) -> None:
    """Out of the catalog with its tables, and out of the source. ``forget``: leave the source as it is."""
    with catalog.lease("definitions", lease_name(name)) as lease:
        record = catalog.source(name)
        _refuse_readers(catalog, record)
        with catalog.write(lease) as writer:
            writer.sources.set_state(record.name, REMOVING)
        reach("remove.begun")
        if not forget:
            with _closing(open_recorded(catalog, record)) as source:
                source.remove()
        reach("remove.dropped")
        names = [f"relation:{table.relation}" for table in record.tables]
        with catalog.lease("commit", *names) as both, catalog.write(both) as writer:
            relations = [writer.snapshot().get(table.relation) for table in record.tables]
            steps = [drop(writer, relation) for relation in relations]
            writer.sources.drop(record.name)
    for relation, step in zip(relations, steps, strict=True):
        take_away(catalog, root, relation, step)


def _record(catalog: Catalog, name: str, settings: SourceSettings, declared: Sequence[Declared]) -> None:
    if any(table.is_open for table in settings.tables):
        with _closing(open_new(name, settings)) as source:
            settings = grown(settings, source.tables(), declared, catalog.snapshot())
    with _closing(open_new(name, settings)) as source:
        findings = [finding for finding in source.check() if finding.blocks]
        if findings:
            raise _not_ready(name, findings)
        check_tables(catalog, settings, source.tables())
    with catalog.write() as writer:
        writer.sources.add(name, settings.kind, settings.to_json(), new_memory())


def _not_ready(name: str, findings: list[Finding]) -> UsageError:
    mends = [finding.mend for finding in findings if finding.mend]
    return UsageError(
        f"Source '{name}' cannot be captured yet: {'; '.join(finding.what for finding in findings)}.",
        hint=f"At the source run: {' '.join(mends)}" if mends else "Mend that first; nothing was changed.",
        source=name,
        mend=mends,
    )


def _copy(catalog: Catalog, root: Path, record: Record, on_progress: OnProgress | None = None) -> Copied:
    try:
        with _closing(open_recorded(catalog, record)) as source, _withdrawing(source):
            return run_first_copy(catalog, root, source, record, on_progress)
    except RollviewError as error:
        _note(catalog, record, error)
        with catalog.write() as writer:
            writer.sources.set_state(record.name, COPYING, error.message)
        raise


@contextmanager
def _withdrawing(source: Source) -> Iterator[None]:
    """A source must not keep its changes for a copy that failed: nobody may come for them."""
    try:
        yield
    except BaseException:
        with suppress(RollviewError):
            source.remove()
        raise


def _captured_copy(catalog: Catalog, root: Path, record: Record) -> Progress:
    rows = _copy(catalog, root, record)
    position = catalog.source(record.name).position or ""
    return Progress(1, sum(rows.values()), position, catalog.snapshot().moment.csn)


def _replace(catalog: Catalog, root: Path, source: Source, record: Record, copy: FirstCopy) -> Progress:
    settings = SourceSettings.from_json(record.settings)
    changes = {}
    for table in copy.tables:
        found = list(pieces(record.name, settings, table, copy))
        changes[table.name] = Changes(after=pa.concat_tables(found) if found else (), replaces=True)
    unit = UnitOfWork(copy.position, "copied again", copy.time, changes, quarantined=tuple(copy.quarantined))
    return Sequencer(catalog, root, [Inlet(source, record, catalog.snapshot())]).replace(unit, copy.memory)


def _follow_copy(catalog: Catalog, record: Record, copy: FirstCopy) -> None:
    """Columns that the copy does not have, or not as they were, are left out from here on."""
    snapshot = catalog.snapshot()
    relations = {table.remote: snapshot.get(table.relation) for table in record.tables}
    for table in copy.tables:
        relation = relations[table.name]
        gone = tuple(c.name for c in relation.schema if table.schema.find(c.name) != c)
        unsure = unkept(relation.constraints, table.constraints)
        if gone or unsure:
            what = f"columns that are gone or promise less: {', '.join((*gone, *unsure))}"
            follow(catalog, record, SchemaChanged(record.name, table.name, what, gone=gone, unsure=unsure))


def _widen_copy(catalog: Catalog, root: Path, record: Record, copy: FirstCopy) -> tuple[str, ...]:
    found = {table.name: widen_table(catalog, root, record, table, copy.position) for table in copy.tables}
    return tuple(f"table '{name}' has as well: {', '.join(columns)}" for name, columns in found.items() if columns)


def _note_rows(catalog: Catalog, record: Record, position: str) -> tuple[str, ...]:
    """Of tables of which not simply all is here: which rows, from the newest csn on at least."""
    settings = SourceSettings.from_json(record.settings)
    chosen = [table for table in settings.tables if table.rows or table.needed]
    with catalog.write() as writer:
        snapshot = writer.snapshot()
        for relation, rows in ((snapshot.get(table.relation), table.rows) for table in chosen):
            about = (relation.schema, relation.constraints, position, snapshot.moment.csn, f"rows: {rows or 'all'}")
            writer.sources.set_layout(relation.name, *about)
    return tuple(f"rows of table '{table.remote}': {table.rows or 'all'}" for table in chosen)


def _widening(catalog: Catalog, record: Record, settings: SourceSettings | None) -> Record:
    """The same source with other columns and rows; nothing else of it may change.

    From here on until it is copied again its log says nothing of what is held: whoever captures it copies it first.
    """
    before = SourceSettings.from_json(record.settings)
    after = before if settings is None else _resettled(before, settings)
    if after != before:
        with _closing(open_recorded(catalog, replace(record, settings=after.to_json()))) as source:
            for table in source.tables():
                restriction(after.table(table.name), table.schema)
    with catalog.write() as writer:
        writer.sources.set_settings(record.name, after.to_json())
        writer.sources.set_state(record.name, WIDENING)
    return catalog.source(record.name)


def _resettled(before: SourceSettings, settings: SourceSettings) -> SourceSettings:
    """A table of which only what views need is asked for keeps what it has."""
    tables = []
    for table in before.tables:
        said = settings.table(table.remote)
        given = replace(table, columns=said.columns, rows=said.rows, needed=said.needed)
        tables.append(table if said.is_open else given)
    return replace(before, tables=tuple(tables))


def _refuse_readers(catalog: Catalog, record: Record) -> None:
    snapshot = catalog.snapshot()
    for table in record.tables:
        readers = tuple(reader.name for reader in snapshot.readers(table.relation))
        if readers:
            raise InUse("table", table.relation, readers)


@contextmanager
def _noting(catalog: Catalog, record: Record) -> Iterator[None]:
    """Whether the source is well is in the catalog when the block ends."""
    try:
        yield
    except RollviewError as error:
        _note(catalog, record, error)
        raise
    _note(catalog, record, None)


def _note(catalog: Catalog, record: Record, error: RollviewError | None) -> None:
    """A source that must be tried again waits longer each time, so that it costs nobody anything."""
    if error is not None:
        failures = int(record.health.get("failures", 0)) + 1
        retry_at = datetime.now(UTC) + delay(failures)
        with catalog.write() as writer:
            writer.sources.set_state(record.name, _state(record, error), error.message)
            health = {**record.health, "failures": failures, "retry_at": retry_at.isoformat()}
            writer.sources.set_health(record.name, health)
    elif record.state != "active" or record.problem is not None:
        with catalog.write() as writer:
            writer.sources.set_state(record.name, "active")


def _state(record: Record, error: RollviewError) -> str:
    if isinstance(error, SourceStopped) and record.state != WIDENING:
        return error.code
    return "retrying" if error.retryable and record.state == "active" else record.state


def _readings(catalog: Catalog, root: Path, record: Record, inlet: Inlet) -> Mapping[str, object]:
    """How tables are read that may be read where they are; the states of those move on with what was captured."""
    if inlet.position == record.position:
        return {READINGS: record.health[READINGS]} if READINGS in record.health else {}
    readings = forward(catalog, root, inlet.source, record)
    return {READINGS: dict(readings)} if readings else {}


def _note_health(catalog: Catalog, record: Record, source: Source, readings: Mapping[str, object]) -> tuple[str, ...]:
    """Written when it says something new, and from time to time as a sign of life. An alarm that is new is told."""
    seen = {**(asdict(source.health()) if isinstance(source, Watched) else {}), **readings}
    if seen != dict(record.health) or record.read is None or datetime.now(UTC) - record.read > _SIGN_OF_LIFE:
        with catalog.write() as writer:
            writer.sources.set_health(record.name, seen, read=True)
    alarm = seen.get("alarm")
    return (alarm,) if alarm and not record.health.get("alarm") else ()


@contextmanager
def _closing(source: Source) -> Iterator[Source]:
    try:
        yield source
    finally:
        source.close()
