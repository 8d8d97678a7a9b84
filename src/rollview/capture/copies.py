"""Tables copied from a source: the first time, and again.

Law: a copy is of one position, and what is captured goes on from exactly there. Copied again, the difference from what
is held is one unit of work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from rollview.capture.commit_stream import Inlet
from rollview.capture.first_copy import OnProgress, pieces, run_first_copy
from rollview.capture.health import COPYING, WIDENING, note, noting
from rollview.capture.in_place import READINGS, forward
from rollview.capture.recorded_source import open_recorded
from rollview.capture.restrict import restriction
from rollview.capture.sequencer import Progress, Sequencer
from rollview.catalog import Catalog
from rollview.catalog import Source as Record
from rollview.core.faults import reach
from rollview.errors import RollviewError, SchemaChanged
from rollview.evolve.follow import follow, unkept
from rollview.evolve.follow import widen as widen_table
from rollview.sources.protocol import Changes, FirstCopy, Source, UnitOfWork
from rollview.sources.settings import SourceSettings

Copied = Mapping[str, int]


def copy(catalog: Catalog, root: Path, record: Record, on_progress: OnProgress | None = None) -> Copied:
    try:
        with closing(open_recorded(catalog, record)) as source, _withdrawing(source):
            return run_first_copy(catalog, root, source, record, on_progress)
    except RollviewError as error:
        note(catalog, record, error)
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


def captured_copy(catalog: Catalog, root: Path, record: Record) -> Progress:
    rows = copy(catalog, root, record)
    position = catalog.source(record.name).position or ""
    return Progress(1, sum(rows.values()), position, catalog.snapshot().moment.csn)


def copy_again(catalog: Catalog, root: Path, record: Record, *, widen: bool) -> Progress:
    with (
        noting(catalog, record),
        closing(open_recorded(catalog, record)) as source,
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


def widening(catalog: Catalog, record: Record, settings: SourceSettings | None) -> Record:
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
