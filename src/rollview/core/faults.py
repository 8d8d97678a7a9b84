"""Named steps at which a test may stop the process dead.

Every stage calls ``reach`` between two effects. In normal life that is one dictionary look-up.
"""

from __future__ import annotations

import os
import signal

_VARIABLE = "ROLLVIEW_FAULT"

STEPS: dict[str, str] = {
    "commit.computed": "the transaction's rows are in files, nothing refers to them",
    "commit.checked": "constraints and conflicts are checked",
    "commit.first_logged": "the Delta log of the first changed table has the new version",
    "commit.logged": "the Delta logs of all changed tables have their new versions",
    "commit.published": "the ledger has the transaction",
    "propagate.begun": "the step is recorded",
    "ask.answered": "a source has answered, the algorithm has not heard of it",
    "propagate.computed": "the view delta is in files, nothing refers to them",
    "propagate.logged": "the Delta log of the view delta has the new version",
    "propagate.published": "the high-water mark has moved",
    "apply.begun": "the step is recorded",
    "apply.computed": "the new extent is in files, and new groups where they are due; nothing refers to them",
    "apply.first_logged": "the Delta log of the extent has the new version, that of the groups not yet",
    "apply.logged": "the Delta logs of the extent and the groups have their new versions",
    "publish.begun": "all extents of the set are written",
    "publish.pinned": "the set is pinned inside the open catalog transaction",
    "publish.published": "the set is visible",
    "fold.computed": "the new state is in files, nothing refers to them",
    "fold.first_logged": "where most rows changed: the Delta log of the changes has the new version, not the state's",
    "fold.logged": "the Delta log of the state has the new version",
    "fold.published": "the state is pinned at its new csn",
    "merge.computed": "the merged files are written, nothing refers to them",
    "merge.logged": "the Delta log has the merged files in place of the small ones",
    "merge.published": "the merged files are pinned, the small ones are still there",
    "compress.computed": "the net effect is in files, nothing refers to them",
    "compress.logged": "the Delta log of the delta has the net effect",
    "compress.published": "the net effect is pinned and its stretch is coarse",
    "prune.computed": "it is known which files stay",
    "prune.logged": "the Delta log of the delta is without what is pruned",
    "prune.published": "what is pruned is out of reach, its files are still there",
    "release.published": "no rows of a table are kept, their files are still there",
    "sweep.begun": "it is known which files nobody can be reading",
    "sweep.removed": "one of them is gone",
    "sweep.trimmed": "the commits before a checkpoint are gone from one Delta log",
    "sweep.noted": "what may go later is written down",
    "create.computed": "a new view's first extent is in files",
    "create.first_logged": "the first of a new relation's Delta tables exists",
    "create.logged": "a new relation's Delta tables exist",
    "create.published": "the catalog has the view",
    "redefine.committed": "a view is to have another definition from a csn on, and has no rows of it",
    "adapt.begun": "the step is recorded that gives a view the rows of its next definition",
    "adapt.computed": "the rows of a view's next definition are in files, nothing refers to them",
    "adapt.first_logged": "the Delta log of the next definition's extent exists",
    "adapt.logged": "the Delta logs of the next definition's parts exist",
    "adapt.published": "the view has its next definition",
    "follow.written": "a captured table has its next columns, or waits, and nothing that came after that is read",
    "source.recorded": "the catalog has a source whose first copy is still to be made",
    "copy.opened": "the source keeps its changes for us, and its rows are about to be read",
    "copy.computed": "the first copy is in files, nothing refers to them",
    "copy.first_logged": "the first Delta table of the first copy exists",
    "copy.logged": "the Delta tables of the first copy exist",
    "copy.published": "the source is active at the position of its first copy",
    "widen.opened": "the source keeps its changes for a copy that is made again, beside what it keeps already",
    "widen.declared": "a source that is copied again has its new columns, and not yet their values",
    "deliver.offered": "it is recorded where a subscriber's next batch ends",
    "deliver.put": "the sink has the batch, and the catalog does not know it",
    "deliver.acked": "the subscriber's position is past the batch",
    "capture.read": "units of work are read, nothing is written",
    "capture.computed": "their rows are in files, nothing refers to them",
    "capture.first_logged": "the Delta log of the first changed table has the new version",
    "capture.logged": "the Delta logs of all changed tables have their new versions",
    "capture.published": "the ledger has the units of work, the source does not know it yet",
    "capture.acknowledged": "the source knows up to where it was read",
    "remove.begun": "the source is marked as going, nothing is taken away",
    "remove.dropped": "the source no longer keeps changes for us",
    "drop.published": "the relation is out of the catalog, its files are still there",
    "spool.published": "what was on disk because memory was too small is gone, and its step is done",
    "recover.found": "steps of dead processes are known, nothing is taken away yet",
    "recover.discarded": "one of their folders is gone, the steps still run",
    "recover.published": "their steps are undone",
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def reach(step: str) -> None:
    """Die here if ``ROLLVIEW_FAULT`` names this step (``name`` or ``name:k`` for the k-th time it is reached)."""
    wanted = os.environ.get(_VARIABLE)
    if wanted is None:
        return
    if step not in STEPS:
        raise LookupError(f"no such step: {step}")
    name, _, nth = wanted.partition(":")
    if name != step:
        return
    left = int(nth or "1") - 1
    os.environ[_VARIABLE] = f"{name}:{left}"
    if left == 0:
        die()
