"""What a dead process left behind, found by its steps.

Law: a step is recorded before its first file is written and finished in the transaction that publishes it. So a running
step of a dead process was never published, and what it wrote is garbage, except what a pinned version names. A process
that may live is left alone, except with a step that it could not give up itself: it says so. A step whose lease
another process took over, or of which a process elsewhere has given no sign of life for long, is abandoned: that is
written first, so that its process, should it live, cannot publish it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock

from rollview.catalog import NOT_KEPT, Catalog, Process, Snapshot, Step, StoredParts, this_process
from rollview.catalog.process import is_dead
from rollview.core import marks
from rollview.core.faults import reach
from rollview.core.schema import Schema
from rollview.store.folder import DeltaFolder

_FOLDER = re.compile(r"(?P<home>[a-z]-[0-9a-f]{32})(?:/(?P<part>[a-z]+)/(?P<place>s-[0-9a-f]{32}))?")
_OWNER = re.compile(r".*@(?P<host>\S+) pid (?P<pid>\d+)(?: \((?P<machine>[0-9a-f]{8}) (?P<started>\d*)\))?")


_let_go: dict[tuple[Path, int], datetime] = {}
"""Steps of this process that failed, and could not be given up then: the disk was full, or the catalog away. When that
was tells them from steps of a warehouse that was made anew in the same place."""
_letting_go = Lock()
"""Several threads let go, and recover. It is held for the dictionary alone: whoever lets go waits for no recovery."""


def this_owner() -> str:
    """This process, told so that another can see whether it still lives, even when its number was given out again."""
    me = this_process()
    return f"{me.owner} ({_short(me.machine)} {me.started})"


def let_go(root: Path, *step_ids: int) -> None:
    """This process has done with steps that go on in the catalog; its next recovery takes them for abandoned."""
    with _letting_go:
        _let_go.update(((root, step_id), datetime.now(UTC)) for step_id in step_ids)


def has_let_go(root: Path) -> bool:
    return bool(_let_go_in(root))


def discard_abandoned(catalog: Catalog, root: Path) -> tuple[Step, ...]:
    """Take away what dead processes left, or this one let go, and return their steps."""
    known = _let_go_in(root)
    if not _abandoned(catalog, known):
        _forget(root, known)
        return ()
    # A publication whose outcome is unknown holds the clock: in here it has happened, or it never will. Afterwards a
    # process that only seemed dead cannot publish: its step is not its own any more.
    with catalog.write() as writer:
        steps = _abandoned(catalog, known)
        writer.abandon_steps(step.id for step in steps)
    # Read after the steps: what was published before its process died is pinned here.
    snapshot = catalog.snapshot()
    reach("recover.found")
    for step in steps:
        discard_unpinned(snapshot, root, step.folders)
    with catalog.write() as writer:
        writer.undo_steps(step.id for step in steps)
    _forget(root, known)
    reach("recover.published")
    return steps


def _abandoned(catalog: Catalog, known: Mapping[int, datetime]) -> tuple[Step, ...]:
    running = catalog.steps(limit=None, status="running")
    found = [step for step in running if _was_let_go(known, step) or _is_of_the_dead(step)]
    return tuple({step.id: step for step in (*found, *catalog.abandoned(_is_elsewhere))}.values())


def _let_go_in(root: Path) -> dict[int, datetime]:
    with _letting_go:
        return {step_id: when for (place, step_id), when in _let_go.items() if place == root}


def _forget(root: Path, known: Mapping[int, datetime]) -> None:
    """Those that a recovery knew when it began, and no others: none of them goes on any more."""
    with _letting_go:
        for step_id in known:
            _let_go.pop((root, step_id), None)


def _was_let_go(known: Mapping[int, datetime], step: Step) -> bool:
    when = known.get(step.id)
    return when is not None and step.started <= when


def discard_unpinned(snapshot: Snapshot, root: Path, paths: Iterable[str]) -> None:
    """Take these away, except what a pinned version names. A newest version that names one is first withdrawn."""
    for path in paths:
        if not _is_pinned(snapshot, root, path):
            for part, pin in _parts(snapshot, path):
                DeltaFolder(root / part, Schema(())).withdraw(path.rpartition("/")[2], pin)
            discard(root, path)
            reach("recover.discarded")


def discard(root: Path, path: str) -> None:
    """Take away a relation's folder or a staging folder in one of its parts, named from the warehouse's root; never in
    a folder that carries the id of another warehouse."""
    found = _FOLDER.fullmatch(path)
    if found is not None and not marks.is_of_another(root, root / found["home"]):
        shutil.rmtree(root / path, ignore_errors=True)


def _is_of_the_dead(step: Step) -> bool:
    owner = _OWNER.fullmatch(step.owner)
    if owner is None or not _is_here(owner):
        return False
    return is_dead(Process(step.owner, this_process().machine, int(owner["pid"]), owner["started"] or ""))


def _is_elsewhere(step: Step) -> bool:
    """Whether its process cannot be seen from here: on another machine, or in another container of this one."""
    owner = _OWNER.fullmatch(step.owner)
    return owner is None or not _is_here(owner)


def _is_here(owner: re.Match[str]) -> bool:
    me = this_process()
    if owner["machine"] is not None:
        return owner["machine"] == _short(me.machine)
    mine = _OWNER.fullmatch(me.owner)
    return mine is not None and owner["host"] == mine["host"]


def _is_pinned(snapshot: Snapshot, root: Path, path: str) -> bool:
    found = _FOLDER.fullmatch(path)
    if found is None:
        return True
    if found["place"] is None:
        return any(stored.folder == found["home"] for stored in _stored(snapshot))
    return any(found["place"] in _places(root / part, version) for part, version in _parts(snapshot, path))


def _parts(snapshot: Snapshot, path: str) -> Iterator[tuple[str, int]]:
    """The part that a staging folder is in, with its pinned version; nothing if there is none."""
    home, _, place = path.partition("/")
    for stored in _stored(snapshot):
        for part, pin in stored.pins.items() if stored.folder == home else ():
            if place.partition("/")[0] == part.value:
                yield f"{home}/{part.value}", pin.version


def _stored(snapshot: Snapshot) -> Iterator[StoredParts]:
    return (one for relation in snapshot.relations.values() for one in relation.parts)


def _places(folder: Path, version: int) -> set[str]:
    if version == NOT_KEPT:
        return set()
    return {file.path.partition("/")[0] for file in DeltaFolder(folder, Schema(())).files(version)}


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]
