"""A catalog that was put back to an older one goes on from there.

Laws: what the older catalog pins is what there is; what was written since is in no version that it names. The
warehouse gets a new id, so that the newer catalog, should it come back, is refused, and folders of relations that only
that one knew keep the old id and are never removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from rollview.catalog import Catalog, Identity, Relation, Snapshot
from rollview.core import durable, marks
from rollview.core.schema import Schema
from rollview.errors import Corrupt, WrongCatalog
from rollview.publish.belonging import homes_in, mark, may_belong
from rollview.publish.step import show_again
from rollview.results import CatalogRecovery
from rollview.store.folder import DeltaFolder


def look_at_catalog(catalog: Catalog, root: Path) -> CatalogRecovery:
    """How the catalog and the data fit. Changes nothing."""
    found, steps = marks.find_id(root), marks.find_steps(root)
    known, snapshot = catalog.identity(), catalog.snapshot()
    fits = may_belong(catalog, root, known, found) and steps <= known.begun
    homes = {relation.folder for relation in snapshot.relations.values()}
    return CatalogRecovery(
        accepted=False,
        fits=fits,
        csn=snapshot.moment.csn,
        time=snapshot.moment.time,
        catalog_id=known.warehouse,
        data_id=found,
        catalog_steps=known.begun,
        data_steps=steps,
        unreadable=tuple(_unreadable(snapshot, root)),
        unknown_folders=tuple(home.name for home in homes_in(root) if home.name not in homes),
    )


def accept_catalog(catalog: Catalog, root: Path) -> CatalogRecovery:
    """Go on from this catalog. It must be one of this warehouse; one that fits already is left as it is."""
    with catalog.lease("definitions", "commit", "maintain") as lease:
        seen = look_at_catalog(catalog, root)
        if seen.fits:
            return seen
        known = catalog.identity()
        if seen.data_id not in (None, known.warehouse, known.previous):
            raise WrongCatalog(catalog.address, known.warehouse, str(root), seen.data_id)
        new = Identity(uuid4().hex, seen.data_id, max(known.begun, seen.data_steps))
        with catalog.write(lease) as writer:
            writer.set_identity(new)
    # Notes of maintenance speak of versions that this catalog does not know.
    with durable.disk(root):
        (root / marks.UNUSED_FILE).unlink(missing_ok=True)
    _show_pinned(catalog, root)
    mark(catalog, root, new.warehouse)
    return replace(look_at_catalog(catalog, root), accepted=True)


def _unreadable(snapshot: Snapshot, root: Path) -> Iterator[str]:
    """Relations of which a pinned version cannot be read: its files were removed since."""
    for relation in snapshot.relations.values():
        if not _is_readable(relation, root):
            yield relation.name


def _is_readable(relation: Relation, root: Path) -> bool:
    try:
        return all(
            (folder.root / file.path).exists()
            for folder, version in _pinned(relation, root)
            for file in folder.files(version)
        )
    except Corrupt:
        return False


def _show_pinned(catalog: Catalog, root: Path) -> None:
    """Other programs read the newest version of a table: let that be the pinned one."""
    for relation in catalog.snapshot().relations.values():
        if _is_readable(relation, root):
            for folder, version in _pinned(relation, root):
                show_again(folder, version)


def _pinned(relation: Relation, root: Path) -> Iterator[tuple[DeltaFolder, int]]:
    for stored in relation.parts:
        for part, pin in stored.pins.items():
            if pin.is_kept:
                yield DeltaFolder(root / stored.folder / part, Schema(())), pin.version
