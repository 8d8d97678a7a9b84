"""Tables copied from a source: the first time, and again.

Law: a copy is of one position, and what is captured goes on from exactly there. Copied again, the difference from what
is held is one unit of work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from rollview.capture.commit_stream import CommitStream
from rollview.capture.first_copy import OnProgress, pieces, run_first_copy
from rollview.capture.health import note, noting
from rollview.capture.in_place import READINGS, forward
from rollview.capture.recorded_source import open_recorded
from rollview.capture.restrict import restriction
from rollview.capture.sequencer import CaptureProgress, Sequencer
from rollview.capture.spooling import spool_space
from rollview.catalog import Catalog, Lease, Relation, SourceRecord
from rollview.core.faults import reach
from rollview.core.interval import Csn
from rollview.core.states import SourceState
from rollview.errors import NotFound, RollviewError
from rollview.evolve.plan import change_from, named_in_rows
from rollview.evolve.run import activate_layouts, commit_layouts, note_rows, run_change, run_widening
from rollview.sources import spool as spools
from rollview.sources.protocol import Changes, FirstCopy, LayoutChange, Source, SourceTable, UnitOfWork
from rollview.sources.settings import SourceSettings
from rollview.sources.space import Space
from rollview.sources.spool import Spool

Copied = Mapping[str, int]
COPIED_AGAIN = "copied again"
"""The transaction of the unit of work that a second copy is."""


def copy(
    catalog: Catalog, root: Path, record: SourceRecord, lease: Lease, on_progress: OnProgress | None = None
) -> Copied:
    """``lease``: on the source, as everywhere here."""
    try:
        with closing(open_recorded(catalog, record, lease)) as source, _withdrawing(catalog, record, source):
            return run_first_copy(catalog, root, source, record, lease, on_progress)
    except RollviewError as error:
        note(catalog, record, error, lease)
        raise


@contextmanager
def _withdrawing(catalog: Catalog, record: SourceRecord, source: Source) -> Iterator[None]:
    """A source must not keep its changes for a copy that failed: nobody may come for them. What the copy itself put
    there is taken away, and nothing else: whoever holds the source by now may have a copy of its own."""
    try:
        yield
    except BaseException:
        with suppress(RollviewError):
            source.withdraw(_memory(catalog, record))
        raise


def _memory(catalog: Catalog, record: SourceRecord) -> Mapping[str, Any]:
    """What the catalog holds of the source now: a copy that was published is not withdrawn, whatever failed then."""
    try:
        return catalog.source(record.name).memory
    except NotFound:
        return record.memory


def captured_copy(catalog: Catalog, root: Path, record: SourceRecord, lease: Lease) -> CaptureProgress:
    rows = copy(catalog, root, record, lease)
    position = catalog.source(record.name).position or ""
    return CaptureProgress(1, sum(rows.values()), position, catalog.snapshot().moment.csn)


def copy_again(
    catalog: Catalog, root: Path, record: SourceRecord, lease: Lease, *, widen: bool, as_it_is: bool = False
) -> CaptureProgress:
    """``as_it_is``: a user has asked for nothing but that, so what looks lost at the source is gone."""
    with (
        noting(catalog, record, lease),
        spool_space(catalog, root, record) as space,
        closing(open_recorded(catalog, record, lease, space, as_it_is=as_it_is)) as source,
        _withdrawing(catalog, record, source),
        source.first_copy() as copy,
    ):
        reach("widen.opened")
        catalog.verify(lease)
        followed = _follow_copy(catalog, root, record, copy)
        # What is said of columns may be said under other names now.
        record = replace(record, settings=catalog.source(record.name).settings)
        notes = _widen_copy(catalog, root, record, copy) if widen else ()
        reach("widen.declared")
        done = _replace(catalog, root, source, record, copy, space, lease)
        # What cannot be taken away now is found by whoever captures next.
        with suppress(RollviewError):
            source.tidy(copy.memory)
        readings = forward(catalog, root, source, catalog.source(record.name))
        if readings:
            with catalog.write() as writer:
                writer.sources.set_health(record.name, {**record.health, READINGS: dict(readings)})
        if not done.units and (followed or _loses(catalog, record, done.csn)):
            commit_layouts(catalog, catalog.source(record.name))
        elif notes and not done.units:
            with catalog.write() as writer:
                activate_layouts(writer, done.csn)
        _end_waits(catalog, record, copy, lease)
        return replace(done, notes=(*notes, *(_note_rows(catalog, record, copy.position) if widen else ())))


def _loses(catalog: Catalog, record: SourceRecord, csn: Csn) -> bool:
    """Whether a table has less than at the csn by a layout that waits for the next one."""
    relations = [catalog.snapshot().get(table.relation) for table in record.tables]
    return any(not set(one.schema_at(csn)) <= set(one.schema) for one in relations)


def _replace(
    catalog: Catalog,
    root: Path,
    source: Source,
    record: SourceRecord,
    copy: FirstCopy,
    space: Space,
    lease: Lease,
) -> CaptureProgress:
    settings, snapshot = SourceSettings.from_json(record.settings), catalog.snapshot()
    relations = {table.remote: snapshot.get(table.relation) for table in record.tables}
    waiting = _still_waiting(catalog, record, copy)
    changes = {
        table.name: _all_of(relations[table.name], pieces(record.name, settings, table, copy), space)
        for table in copy.tables
        if table.name not in waiting
    }
    unit = UnitOfWork(copy.position, COPIED_AGAIN, copy.time, changes, quarantined=tuple(copy.quarantined))
    streams = [CommitStream(source, record, snapshot, waiting)]
    return Sequencer(catalog, root, streams, lease).replace(unit, copy.memory)


def _still_waiting(catalog: Catalog, record: SourceRecord, copy: FirstCopy) -> frozenset[str]:
    """Tables that the copy does not tell: those that are not there, and those that lack a column by which their rows
    are chosen."""
    settings, snapshot = SourceSettings.from_json(record.settings), catalog.snapshot()
    copied = {table.name for table in copy.tables}
    waiting = [(table.remote, snapshot.get(table.relation)) for table in record.tables]
    return frozenset(
        remote
        for remote, relation in waiting
        if relation.waits_at is not None
        and (
            remote not in copied or any(relation.schema.find(name) is None for name in named_in_rows(settings, remote))
        )
    )


def _end_waits(catalog: Catalog, record: SourceRecord, copy: FirstCopy, lease: Lease) -> None:
    """Of the tables that the copy has told. A process that dies before that leaves the source to be copied again."""
    still, snapshot = _still_waiting(catalog, record, copy), catalog.snapshot()
    told = [table.relation for table in record.tables if table.remote not in still]
    ended = [name for name in told if snapshot.get(name).waits_at is not None]
    if ended:
        with catalog.write(lease) as writer:
            for name in ended:
                writer.end_wait(name)


def _all_of(relation: Relation, found: Iterator[pa.Table], space: Space) -> Changes:
    """All rows of a table, on disk if they are many."""
    few: list[pa.Table] = []
    spool: Spool | None = None
    for rows in found:
        few.append(rows.select(list(relation.schema.names)))
        if sum(piece.nbytes for piece in few) > spools.IN_MEMORY:
            spool = spool or Spool(SourceTable(relation.name, relation.schema, relation.constraints), space)
            while few:
                spool.add(few.pop(0), +1)
    after = pa.concat_tables(few) if few else ()
    return Changes((), after, replaces=True, spools=() if spool is None else (spool,))


def _follow_copy(catalog: Catalog, root: Path, record: SourceRecord, copy: FirstCopy) -> bool:
    """Columns that the copy does not have, or not as they were, are left out from here on. Whether some are only called
    otherwise or have a wider type."""
    snapshot = catalog.snapshot()
    relations = {table.remote: snapshot.get(table.relation) for table in record.tables}
    followed = False
    for table in copy.tables:
        change = copy.changes.get(table.name)
        if change is None:
            change = change_from(record, relations[table.name], table)
        else:
            change = _without_missing(change, relations[table.name], table)
        if change is not None and not (change.keeps_all or change.gone or change.unsure):
            continue
        # Each may change what the source's settings say.
        if change is not None and run_change(catalog, root, catalog.source(record.name), change) is None:
            raise change.refused()
        followed = followed or (change is not None and change.keeps_all)
    return followed


def _without_missing(change: LayoutChange, relation: Relation, table: SourceTable) -> LayoutChange:
    """Columns that the settings do not take any more are gone as well."""
    called, gone = dict(change.renamed), set(change.gone)
    names = (name for name in relation.schema.names if name not in gone)
    missing = tuple(name for name in names if called.get(name, name) not in table.schema.names)
    if not missing:
        return change
    renamed = tuple((old, new) for old, new in change.renamed if old not in missing)
    reason = f"{change.reason}; not captured any more: {', '.join(missing)}"
    return replace(change, gone=(*change.gone, *missing), renamed=renamed, reason=reason)


def _widen_copy(catalog: Catalog, root: Path, record: SourceRecord, copy: FirstCopy) -> tuple[str, ...]:
    plans = {table.name: run_widening(catalog, root, record, table, copy.position) for table in copy.tables}
    columns = {name: [column.name for column in plan.new] for name, plan in plans.items() if plan is not None}
    return tuple(f"table '{name}' has as well: {', '.join(new)}" for name, new in columns.items())


def _note_rows(catalog: Catalog, record: SourceRecord, position: str) -> tuple[str, ...]:
    """Of tables of which not simply all is here: which rows, from the newest csn on at least."""
    settings = SourceSettings.from_json(record.settings)
    chosen = [table for table in settings.tables if table.rows or table.needed]
    with catalog.write() as writer:
        note_rows(writer, position, ((table.relation, table.rows) for table in chosen))
    return tuple(f"rows of table '{table.remote}': {table.rows or 'all'}" for table in chosen)


def widening(catalog: Catalog, record: SourceRecord, settings: SourceSettings | None) -> SourceRecord:
    """The same source with other columns and rows; nothing else of it may change.

    From here on until it is copied again its log says nothing of what is held: whoever captures it copies it first.
    """
    before = SourceSettings.from_json(record.settings)
    after = before if settings is None else _resettled(before, settings)
    if after != before:
        with closing(open_recorded(catalog, replace(record, settings=after.to_json()))) as source:
            for table in source.tables():
                restriction(after.table(table.name), table.schema)
    with catalog.write() as writer:
        writer.sources.set_settings(record.name, after.to_json())
        writer.sources.set_state(record.name, SourceState.WIDENING)
    return catalog.source(record.name)


def _resettled(before: SourceSettings, settings: SourceSettings) -> SourceSettings:
    """A table of which only what views need is asked for keeps what it has."""
    tables = []
    for table in before.tables:
        said = settings.table(table.remote)
        given = replace(table, columns=said.columns, rows=said.rows, needed=said.needed, asked=said.asked)
        tables.append(table if said.is_open else given)
    return replace(before, tables=tuple(tables))
