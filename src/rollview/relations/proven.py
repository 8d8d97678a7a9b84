"""The valid time of a table or view, with all that a view's own delta proves."""

from __future__ import annotations

from pathlib import Path

from rollview.catalog import Catalog, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.relations.plans import plan_of
from rollview.relations.reader import stored_as
from rollview.relations.shared import changes_from
from rollview.relations.validity import Validity
from rollview.results import ValidTime
from rollview.store.timed import csns_of, delta_files


def valid_time(catalog: Catalog, root: Path, snapshot: Snapshot, name: str) -> ValidTime:
    """Of the rows that readers see who name no csn."""
    relation = snapshot.get(name)

    def moves(interval: Interval) -> list[tuple[Csn, Csn]]:
        told_by = changes_from(snapshot, relation)
        stored = stored_as(root, told_by, plan_of(snapshot, told_by).hidden)
        return [csns_of(file) for file in delta_files(stored, interval)]

    return Validity(catalog, snapshot, relation, moves).told()
