"""What a dead process left behind, found by its steps.

Law: a step is recorded before its first file is written and finished in the transaction that publishes it. So a running
step of a dead process was never published, and what it wrote is garbage, except what a pinned version names. A process
that may live is left alone.
"""

from __future__ import annotations

import re
import shutil
from hashlib import sha256
from pathlib import Path

from rollview.catalog import Catalog, Process, Relation, Snapshot, Step, this_process
from rollview.catalog.process import is_dead
from rollview.core.schema import Schema
from rollview.store.folder import DeltaFolder

_FOLDER = re.compile(r"(?P<home>[a-z]-[0-9a-f]{32})(?:/(?P<part>[a-z]+)/(?P<place>s-[0-9a-f]{32}))?")
_OWNER = re.compile(r".*@(?P<host>\S+) pid (?P<pid>\d+)(?: \((?P<machine>[0-9a-f]{8}) (?P<started>\d*)\))?")


def this_owner() -> str:
    """This process, told so that another can see whether it still lives, even when its number was given out again."""
    me = this_process()
    return f"{me.owner} ({_short(me.machine)} {me.started})"


def discard_abandoned(catalog: Catalog, root: Path) -> tuple[Step, ...]:
    """Take away what dead processes left, and return their steps."""
    steps = tuple(step for step in catalog.steps(limit=None, status="running") if _is_abandoned(step))
    if not steps:
        return ()
    # Read after the steps: what was published before its process died is pinned here.
    snapshot = catalog.snapshot()
    for step in steps:
        for path in step.folders:
            if not _is_pinned(snapshot, root, path):
                discard(root, path)
    with catalog.write() as writer:
        for step in steps:
            writer.finish_step(step.id, "undone", step.profile)
    return steps


def discard(root: Path, path: str) -> None:
    """Take away a relation's folder or a staging folder in one of its parts, named from the warehouse's root."""
    if _FOLDER.fullmatch(path):
        shutil.rmtree(root / path, ignore_errors=True)


def _is_abandoned(step: Step) -> bool:
    owner = _OWNER.fullmatch(step.owner)
    if owner is None:
        return False
    me = this_process()
    mine = re.fullmatch(_OWNER, me.owner)
    if owner["machine"] is None:
        here = mine is not None and owner["host"] == mine["host"]
    else:
        here = owner["machine"] == _short(me.machine)
    return here and is_dead(Process(step.owner, me.machine, int(owner["pid"]), owner["started"] or ""))


def _is_pinned(snapshot: Snapshot, root: Path, path: str) -> bool:
    found = _FOLDER.fullmatch(path)
    if found is None:
        return True
    relation = next((r for r in snapshot.relations.values() if r.folder == found["home"]), None)
    if relation is None or found["place"] is None:
        return relation is not None
    return found["place"] in _pinned_places(relation, root, found["part"])


def _pinned_places(relation: Relation, root: Path, part: str) -> set[str]:
    pin = next((pin for own, pin in relation.pins.items() if own.value == part), None)
    if pin is None:
        return set()
    files = DeltaFolder(root / relation.folder / part, Schema(())).files(pin.version)
    return {file.path.partition("/")[0] for file in files}


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]
