"""Linked files of a state become files of ours.

Law: no answer changes. A table that gains columns has NULL there in all that came before, but files of others may hold
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rollview.catalog import Catalog, Lease, Part, Relation
from rollview.core.interval import Interval
from rollview.publish.rewrite import Files, Rewriting, rewrite
from rollview.relations.folders import state_folder
from rollview.store.folder import DeltaFolder


def own_copy(catalog: Catalog, root: Path, lease: Lease, relation: Relation) -> None:
    folder, pin = state_folder(root, relation), relation.pins[Part.STATE]
    old = folder.files(pin.version) if pin.is_kept else ()
    if not any(file.linked for file in old):
        return

    def write(folder: DeltaFolder, places: Sequence[str]) -> Files:
        staged: Files = ()
        for file in old:
            # All that is in the place so far.
            staged = folder.stage(folder.load([file]), places[0])
        return staged

    work = Rewriting(relation, Part.STATE, "fold", Interval(pin.through, pin.through), old, pin.after, pin.through)
    rewrite(catalog, lease, root, work, folder, write)
