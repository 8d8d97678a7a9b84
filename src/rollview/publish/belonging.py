"""A catalog and the data that it describes.

Laws: both carry the warehouse's id, and a catalog is never used with data that carry another. The catalog counts the
steps it begins, and the count is noted beside the data after the catalog has it and before the step's first file. So
the data are never ahead of their catalog, wherever a process dies, unless the catalog was put back to an older one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rollview.catalog import Catalog, Identity
from rollview.core import durable, marks
from rollview.errors import OldCatalog, WrongCatalog

HOME = re.compile(r"[a-z]-[0-9a-f]{32}")
"""The name of a relation's folder in the data."""


def check_belongs(catalog: Catalog, root: Path) -> None:
    """Refuse a catalog of another warehouse, and one that is older than the data. Data without an id get its."""
    # Read before the catalog: what is noted beside the data has been in the catalog first.
    found, steps = marks.find_id(root), marks.find_steps(root)
    known = catalog.identity()
    if not may_belong(catalog, root, known, found):
        raise WrongCatalog(catalog.address, known.warehouse, str(root), found)
    if steps > known.begun:
        raise OldCatalog(catalog.address, known.begun, str(root), steps)
    if found != known.warehouse:
        mark(catalog, root, known.warehouse)


def may_belong(catalog: Catalog, root: Path, known: Identity, found: str | None) -> bool:
    """``found``: the id that the data carry."""
    if found is None:
        return _describes(catalog, root)
    # An id that was being changed when the process died.
    return found in (known.warehouse, known.previous)


def mark(catalog: Catalog, root: Path, warehouse: str) -> None:
    """The data carry this id, and so does every relation's folder. The data themselves last, so that it is begun again
    where it was cut off."""
    for home in _homes(catalog):
        if (root / home).is_dir():
            marks.write_id(root / home, warehouse)
    marks.write_id(root, warehouse)


def prepare(root: Path, begun: int, folders: Iterable[str]) -> None:
    """Before a step writes its first file: note that it has begun, and make the new relations' folders."""
    marks.note_steps(root, begun)
    warehouse = marks.find_id(root)
    homes = [root / folder for folder in folders if HOME.fullmatch(folder)]
    for home in homes:
        with durable.disk(root):
            home.mkdir(exist_ok=True)
        if warehouse is not None:
            marks.write_id(home, warehouse)
    if homes:
        with durable.disk(root):
            durable.sync([root])


def homes_in(root: Path) -> list[Path]:
    """The folders of relations, known or not."""
    with durable.disk(root):
        return sorted(place for place in root.iterdir() if HOME.fullmatch(place.name) and place.is_dir())


def _homes(catalog: Catalog) -> set[str]:
    return {one.folder for relation in catalog.snapshot().relations.values() for one in relation.parts}


def _describes(catalog: Catalog, root: Path) -> bool:
    """Whether data without an id, as older versions made them, are those that the catalog describes."""
    homes = _homes(catalog)
    if homes:
        return all((root / home).is_dir() for home in homes)
    written = {folder.partition("/")[0] for step in catalog.steps(limit=None) for folder in step.folders}
    return all(home.name in written for home in homes_in(root))
