"""Tables of a source that are read where they are.

Law: the state of such a table is the source's own files at the position that belongs to its csn, under names of ours.
Nothing is copied but the changes. Its state moves on by naming the files of a later position: no answer changes, and
what the source has taken away meanwhile is let go.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from rollview.catalog import Catalog, Lease, Part, Relation, SourceRecord
from rollview.core.interval import Interval
from rollview.core.lent import UnlinkableError
from rollview.errors import RollviewError
from rollview.publish.fold import pays
from rollview.publish.rewrite import Rewriting, rewrite
from rollview.relations.folders import state_folder
from rollview.sources.protocol import Lender, Source
from rollview.store.datafile import DataFile
from rollview.store.folder import DeltaFolder
from rollview.store.links import kept_alone

_log = logging.getLogger(__name__)

COPIED = "copied"
"""What a source remembers: why tables are copied that could have been read where they are."""
READINGS = "readings"
"""What its health says: how each table is read."""

Reading = Mapping[str, Any]
"""How a table is read: ``bytes`` that were not copied, ``kept`` of them by us alone; or the ``reason`` of a copy."""


def reading_of(folder: DeltaFolder, files: Sequence[DataFile], reason: str | None) -> Reading:
    linked = sum(file.size for file in files if file.linked)
    if reason is None and (linked or not files):
        return {"bytes": linked, "kept": kept_alone(folder.root, files)}
    return {"reason": reason or "its state was written anew here"}


def move_on(catalog: Catalog, root: Path, source: Source, record: SourceRecord, name: str) -> bool:
    """The table's state by the source's files at the position that was captured last; False if that cannot be.

    Whoever asks holds the lease ``source:NAME``, so the position belongs to the newest csn.
    """
    remote = next(table.remote for table in record.tables if table.relation == name)
    if not isinstance(source, Lender) or is_widened(catalog.snapshot().get(name)):
        return False
    with catalog.lease(f"relation:{name}") as lease:
        snapshot, position = catalog.snapshot(), catalog.source(record.name).position
        try:
            _moved(catalog, root, lease, snapshot.get(name), source, (remote, position or ""), snapshot.moment.csn)
        except (UnlinkableError, RollviewError) as error:
            _log.info("table '%s' stays where it is: %s", name, error)
            return False
    return True


def _moved(
    catalog: Catalog,
    root: Path,
    lease: Lease,
    relation: Relation,
    source: Lender,
    place: tuple[str, str],
    at: int,
) -> None:
    lent, folder, pin = source.lent(*place), state_folder(root, relation), relation.pins[Part.STATE]
    old = folder.files(pin.version)
    work = Rewriting(relation, Part.STATE, "fold", Interval(pin.through, at), old, at, at)
    rewrite(catalog, lease, root, work, folder, lambda to, places: to.link(lent, places[0]))


def is_widened(relation: Relation) -> bool:
    """Whether it has gained columns here: those are NULL in what came before, and may not be in the source's files."""
    columns = [{column.stored for column in layout.schema} for layout in relation.layouts]
    return any(later - earlier for earlier, later in pairwise(columns))


def forward(catalog: Catalog, root: Path, source: Source, record: SourceRecord) -> Mapping[str, Reading]:
    """After capture: states that have fallen behind move on. How each table is read, if the source lends its files."""
    return dict(_forwarded(catalog, root, source, record)) if isinstance(source, Lender) else {}


def _forwarded(catalog: Catalog, root: Path, source: Source, record: SourceRecord) -> Iterator[tuple[str, Reading]]:
    copied = record.memory.get(COPIED, {})
    for table in record.tables:
        reading = _read(catalog, root, table.relation, copied.get(table.remote))
        moves = table.remote not in copied and _falls_behind(catalog, root, table.relation, reading)
        if moves and move_on(catalog, root, source, record, table.relation):
            reading = _read(catalog, root, table.relation, copied.get(table.remote))
        yield table.relation, reading


def _read(catalog: Catalog, root: Path, name: str, reason: str | None) -> Reading:
    relation = catalog.snapshot().get(name)
    folder = state_folder(root, relation)
    why = "it has gained columns here" if is_widened(relation) else reason
    return reading_of(folder, folder.files(relation.pins[Part.STATE].version), why)


def _falls_behind(catalog: Catalog, root: Path, name: str, reading: Reading) -> bool:
    snapshot = catalog.snapshot()
    return bool(reading.get("kept")) or pays(snapshot, root, snapshot.get(name))
