"""Files that no pinned version names and no running step writes.

Law: a folder is recorded in a running step before it is made, and stays there until what is in it is pinned or given
up. So a file that was there first, and is then in no running step and after that in no pinned version, is in nobody's
hands but those of readers who began before. A folder that carries the id of another warehouse is not looked into.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rollview.catalog import Catalog, Snapshot
from rollview.core import marks
from rollview.core.schema import Schema
from rollview.publish.belonging import homes_in
from rollview.store.folder import DeltaFolder

_PLACE = re.compile(r"s-[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Unused:
    """``files``: sizes by path below the data; an empty folder counts as a file. ``owner``: the relation whose folder
    it is, None if that is gone. ``dropped``: when that was, by its folder. ``foreign``: folders that are another
    warehouse's."""

    files: Mapping[str, int]
    owner: Mapping[str, str | None]
    settled: Mapping[str, datetime | None]
    dropped: Mapping[str, datetime]
    foreign: tuple[str, ...]
    snapshot: Snapshot

    def since(self, path: str) -> datetime | None:
        """No later than this it went out of use, as far as its relation's steps tell."""
        owner = self.owner[path]
        return self.settled.get(owner) if owner is not None else self.dropped.get(_home(path))


def find_unused(catalog: Catalog, root: Path, chosen: Iterable[str] | None) -> Unused:
    """``chosen``: only in these relations; None is everything, folders without a relation too. The order matters."""
    homes_there = homes_in(root)
    foreign = tuple(home.name for home in homes_there if marks.is_of_another(root, home))
    found = {path: size for home in homes_there if home.name not in foreign for path, size in _listed(root, home)}
    busy = {folder for step in catalog.steps(limit=None, status="running") for folder in step.folders}
    snapshot = catalog.snapshot()
    homes = {one.folder: relation.name for relation in snapshot.relations.values() for one in relation.parts}
    live = set(_live(snapshot, root))
    wanted = None if chosen is None else set(chosen)
    files = {
        path: size
        for path, size in found.items()
        if path not in live and not _is_busy(path, busy) and _is_wanted(homes.get(_home(path)), wanted)
    }
    owner = {path: homes.get(_home(path)) for path in files}
    # Read last: what was pinned meanwhile counts as pinned just now.
    settled = {name: catalog.settled(name) for name in {name for name in owner.values() if name is not None}}
    return Unused(files, owner, settled, catalog.dropped(), foreign, snapshot)


def remove(root: Path, path: str) -> None:
    """The file or empty folder, and the folders that it leaves empty, up to its relation's."""
    place = root / path
    if not place.is_dir():
        place.unlink(missing_ok=True)
    for folder in (place, *place.parents):
        if folder == root:
            return
        if folder.is_dir():
            if not _is_empty(folder):
                return
            folder.rmdir()


def _listed(root: Path, home: Path) -> Iterator[tuple[str, int]]:
    """Staged files, and everything of a relation's folder under its own name for when the relation is gone."""
    for folder, folders, names in os.walk(home):
        if not folders and not names:
            yield Path(folder).relative_to(root).as_posix(), 0
        for name in names:
            place = Path(folder, name)
            try:
                status = place.stat()
                # Another name of a file of somebody else's takes no space.
                yield place.relative_to(root).as_posix(), status.st_size if status.st_nlink == 1 else 0
            except FileNotFoundError:
                continue


def _live(snapshot: Snapshot, root: Path) -> Iterator[str]:
    for stored in (one for relation in snapshot.relations.values() for one in relation.parts):
        for part, pin in ((part, pin) for part, pin in stored.pins.items() if pin.is_kept):
            for file in DeltaFolder(root / stored.folder / part, Schema(())).files(pin.version):
                yield f"{stored.folder}/{part}/{file.path}"


def _is_wanted(owner: str | None, wanted: set[str] | None) -> bool:
    return wanted is None or owner in wanted


def _is_busy(path: str, busy: set[str]) -> bool:
    parts = path.split("/")
    return any("/".join(parts[:depth]) in busy for depth in (1, 3))


def _home(path: str) -> str:
    return path.partition("/")[0]


def is_staged(path: str) -> bool:
    """Whether it lies in a staging folder of a part, as all data do; the rest of a living relation is its logs."""
    parts = path.split("/")
    return len(parts) > 2 and bool(_PLACE.fullmatch(parts[2]))


def _is_empty(folder: Path) -> bool:
    try:
        return not any(folder.iterdir())
    except FileNotFoundError:
        return False
