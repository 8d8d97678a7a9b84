"""What a user asks of sources: add, check, copy again, remove.

Law: each request may be made again after it was cut off anywhere, and then finishes what was begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rollview.algebra.definition import Declared
from rollview.capture.copies import Copied, copy, copy_again, widening
from rollview.capture.first_copy import OnProgress, check_tables
from rollview.capture.health import is_copying, refuse_removing
from rollview.capture.in_place import READINGS
from rollview.capture.in_place import move_on as move_on_state
from rollview.capture.plan import lease_name
from rollview.capture.recorded_source import open_recorded
from rollview.capture.sequencer import CaptureProgress
from rollview.catalog import Catalog, Choice, HeldPart, Lease, Part, SourceRecord, this_process
from rollview.core.faults import reach
from rollview.core.schema import Schema
from rollview.core.states import SourceState
from rollview.errors import AlreadyExists, InUse, NotFound, UsageError
from rollview.evolve.needs import explain_missing_columns, grown, has_rows, reads_needed, whole
from rollview.evolve.plan import restricts_by
from rollview.publish.step import drop, dropped
from rollview.sources.kinds import new_memory, open_new
from rollview.sources.protocol import SAID, Alterable, Finding
from rollview.sources.settings import NEW_COLUMNS, NewColumns, SourceSettings

_NAMED = {"files": NewColumns.STOP, "delta": NewColumns.TAKE, "debezium": NewColumns.IGNORE}
"""Kinds that may know columns by their names alone, and what becomes of new ones where no option says it."""


def check(name: str, settings: SourceSettings) -> tuple[Finding, ...]:
    """What is missing for a source that is not there yet. Changes nothing."""
    with closing(open_new(name, settings)) as source:
        return source.check()


def check_recorded(catalog: Catalog, name: str) -> tuple[Finding, ...]:
    with closing(open_recorded(catalog, catalog.source(name))) as source:
        return source.check()


def add(
    catalog: Catalog,
    root: Path,
    name: str,
    settings: SourceSettings,
    on_progress: OnProgress | None = None,
    declared: Sequence[Declared] = (),
) -> Copied:
    """A new source, its tables copied. What a cut-off attempt with the same settings began is finished. One that is
    there takes options that say only how it is captured; nothing is copied then.

    ``declared``: views that are to come, for tables of which only what views need is copied.
    """
    with catalog.lease("definitions", lease_name(name)):
        present = next((record for record in catalog.sources() if record.name.lower() == name.lower()), None)
        if present is None:
            _record(catalog, name, settings, declared)
        elif _takes_options(present, settings):
            with catalog.write() as writer:
                writer.sources.set_settings(present.name, {**present.settings, "options": dict(settings.options)})
            return {}
        elif not is_copying(present) or whole(SourceSettings.from_json(present.settings)) != whole(settings):
            raise AlreadyExists("source", present.name, hint="Remove it first, or give the new one another name.")
    reach("source.recorded")
    return finish_copy(catalog, root, name, on_progress)


def _takes_options(present: SourceRecord, settings: SourceSettings) -> bool:
    before = SourceSettings.from_json(present.settings)
    is_same = whole(replace(before, options=settings.options)) == whole(settings)
    return _is_copied(present) and is_same and settings.changes_options(before)


def finish_copy(catalog: Catalog, root: Path, name: str, on_progress: OnProgress | None = None) -> Copied:
    """Whoever captures may have made the copy since the source was recorded: then it is done."""
    with catalog.lease(lease_name(name)) as lease:
        record = catalog.source(name)
        refuse_removing(record)
        if not is_copying(record):
            return _copied_rows(catalog, record)
        return copy(catalog, root, record, lease, on_progress)


def _copied_rows(catalog: Catalog, record: SourceRecord) -> Copied:
    snapshot = catalog.snapshot()
    return {table.relation: snapshot.get(table.relation).pins[Part.STATE].rows for table in record.tables}


def _is_copied(record: SourceRecord) -> bool:
    """Whether it can be read on from its first copy."""
    return not is_copying(record) and record.state is not SourceState.REMOVING


def resnapshot(
    catalog: Catalog, root: Path, name: str, *, widen: bool = False, settings: SourceSettings | None = None
) -> CaptureProgress:
    """Copy the source again; the difference from what is held becomes one unit of work.

    ``widen``: take columns as well that are at the source and not here, those of ``settings`` if it names any, and the
    rows that they say. Without it the source is taken as it is: folders that look emptied are.
    """
    with catalog.lease(lease_name(name)) as lease:
        record = catalog.source(name)
        if not _is_copied(record):
            state = record.state if record.state is SourceState.REMOVING else SourceState.COPYING
            raise UsageError(f"Source '{record.name}' is {state}.", hint="Finish that first: rollview capture.")
        if widen:
            record = widening(catalog, record, settings)
        return copy_again(catalog, root, record, lease, widen=record.state is SourceState.WIDENING, as_it_is=not widen)


def alter(catalog: Catalog, name: str, statement: str) -> None:
    """Run an ALTER TABLE at a source that capture would block there; whoever captures next follows it."""
    with catalog.lease(lease_name(name)) as lease:
        record = catalog.source(name)
        refuse_removing(record)
        with closing(open_recorded(catalog, record, lease)) as source:
            if not isinstance(source, Alterable):
                raise UsageError(
                    f"Source '{record.name}' is of kind '{record.kind}', where capture blocks no statement.",
                    hint="Run the statement there; capture follows it.",
                )
            if not _is_copied(record) or record.state is SourceState.WIDENING:
                raise UsageError(f"Source '{record.name}' is {record.state}.", hint="First run: rollview capture.")
            source.alter(statement)


def say_rename(catalog: Catalog, table: str, old: str, new: str) -> None:
    """A column that its source will show under another name is the same column; said before the source is read so."""
    relation = catalog.snapshot().get(table)
    if relation.source is None:
        raise UsageError(
            f"Table '{relation.name}' is not captured.", hint=f"Write: ALTER TABLE {table} RENAME COLUMN {old} TO {new}"
        )
    with catalog.lease(lease_name(relation.source)) as lease:
        record = catalog.source(relation.source)
        remote = next(one.remote for one in record.tables if one.relation == relation.name)
        settings = SourceSettings.from_json(record.settings)
        _check_said(record, settings, remote, catalog.snapshot().get(table).schema, old, new)
        said = record.memory.get(SAID, {})
        with catalog.write(lease) as writer:
            memory = {**record.memory, SAID: {**said, remote: {**said.get(remote, {}), old: new}}}
            writer.sources.set_memory(record.name, memory)


def _check_said(
    record: SourceRecord, settings: SourceSettings, remote: str, schema: Schema, old: str, new: str
) -> None:
    if record.kind not in _NAMED:
        raise UsageError(
            f"Of a source of kind '{record.kind}' only what it proves itself is a new name.",
            hint="A rename can be said of tables of files, of Delta tables and of Debezium's events.",
        )
    if settings.options.get(NEW_COLUMNS, _NAMED[record.kind]) == NewColumns.STOP:
        raise UsageError(
            f"Source '{record.name}' stops where columns are not those of its table.",
            hint=f"Give it the option {NEW_COLUMNS}: take or ignore first.",
        )
    if old not in schema.names:
        raise NotFound(f"column of table '{remote}'", old)
    if schema.find(new) is not None:
        raise AlreadyExists("column", new)
    if restricts_by(record, remote, (old,)):
        raise UsageError(f"Which rows of '{remote}' are captured is said by column '{old}'.")


def cover(catalog: Catalog, root: Path, view: Declared) -> tuple[str, ...]:
    """What the view needs of tables of which only that is copied is here afterwards; what was taken as well."""
    notes: list[str] = []
    for record in catalog.sources():
        settings = SourceSettings.from_json(record.settings)
        explain_missing_columns(record.name, settings, view, catalog.snapshot())
        if reads_needed(settings, view) and _is_copied(record):
            with catalog.lease(lease_name(record.name)) as lease:
                notes += _covered(catalog, root, catalog.source(record.name), view, lease)
    return tuple(notes)


def _covered(catalog: Catalog, root: Path, record: SourceRecord, view: Declared, lease: Lease) -> tuple[str, ...]:
    before = SourceSettings.from_json(record.settings)
    with closing(open_recorded(catalog, replace(record, settings=whole(before).to_json()))) as source:
        after = grown(before, source.tables(), [view], catalog.snapshot(), is_there=True)
    if after == before and record.state is not SourceState.WIDENING and has_rows(after, view, catalog.snapshot()):
        return ()
    return copy_again(catalog, root, widening(catalog, record, after), lease, widen=True).notes


def needed(catalog: Catalog) -> frozenset[str]:
    """The tables of which only what views need has to be here; those that are read at their source are not copied."""
    copied = [record for record in catalog.sources() if READINGS not in record.health]
    settings = (SourceSettings.from_json(record.settings) for record in copied)
    return frozenset(table.relation for one in settings for table in one.tables if table.needed)


def asked_tables(catalog: Catalog) -> frozenset[str]:
    """The tables whose rows stay at their sources."""
    settings = (SourceSettings.from_json(record.settings) for record in catalog.sources())
    return frozenset(table.relation for one in settings for table in one.tables if table.asked)


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
    with catalog.lease(lease_name(record.name)), closing(open_recorded(catalog, record)) as source:
        # What is held of a source that is widening is not what its settings say.
        is_held = catalog.source(record.name).state is not SourceState.WIDENING
        return is_held and move_on_state(catalog, root, source, record, name)


def remove(catalog: Catalog, name: str, *, forget: bool = False) -> None:
    """Out of the catalog with its tables, and out of the source. ``forget``: leave the source as it is."""
    with catalog.lease("definitions", lease_name(name)) as lease:
        record = catalog.source(name)
        _refuse_readers(catalog, record)
        with catalog.write(lease) as writer:
            writer.sources.set_state(record.name, SourceState.REMOVING)
        reach("remove.begun")
        if not forget:
            with closing(open_recorded(catalog, record, lease)) as source:
                source.remove()
        reach("remove.dropped")
        names = [f"relation:{table.relation}" for table in record.tables]
        with catalog.lease("commit", *names) as both, catalog.write(both, lease) as writer:
            for table in record.tables:
                drop(writer, writer.snapshot().get(table.relation))
            writer.sources.drop(record.name)
    dropped()


def _record(catalog: Catalog, name: str, settings: SourceSettings, declared: Sequence[Declared]) -> None:
    if any(table.is_open for table in settings.tables):
        with closing(open_new(name, settings)) as source:
            settings = grown(settings, source.tables(), declared, catalog.snapshot())
    with closing(open_new(name, settings)) as source:
        findings = [finding for finding in source.check() if finding.blocks]
        if findings:
            raise _not_ready(name, findings)
        check_tables(catalog, settings, source.tables())
    with catalog.write() as writer:
        writer.sources.add(name, settings.kind, settings.to_json(), new_memory())


def _not_ready(name: str, findings: list[Finding]) -> UsageError:
    repairs = [finding.repair for finding in findings if finding.repair]
    return UsageError(
        f"Source '{name}' cannot be captured yet: {'; '.join(finding.what for finding in findings)}.",
        hint=f"At the source run: {' '.join(repairs)}" if repairs else "Repair that first; nothing was changed.",
        source=name,
        repair=repairs,
    )


def _refuse_readers(catalog: Catalog, record: SourceRecord) -> None:
    snapshot = catalog.snapshot()
    for table in record.tables:
        readers = tuple(reader.name for reader in snapshot.readers(table.relation))
        if readers:
            raise InUse("table", table.relation, readers)
