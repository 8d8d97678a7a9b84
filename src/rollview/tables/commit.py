"""The commit of a local transaction.

Law: under the lease ``commit`` the clock stands still, so the csn that the files were stamped with is the csn that the
ledger gives. The Delta logs are written first and count for nothing; one catalog transaction then pins them all and
writes the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from rollview.catalog import Catalog, ChangeCount, Lease, Moment, Part, Relation, Snapshot
from rollview.core.faults import reach
from rollview.core.interval import Csn
from rollview.errors import Conflict, ConstraintViolated, EnvironmentFault
from rollview.publish.places import Places
from rollview.publish.step import LoggedVersion, NewVersion, publish_transaction
from rollview.tables.conflicts import check_conflict
from rollview.tables.constraints import Outcome, Written, find_violation
from rollview.tables.in_transaction import TableInTransaction
from rollview.tables.staging import Staged, effect, settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Committed:
    """``changes`` is empty, and ``csn`` the one the transaction began at, if it changed nothing."""

    csn: Csn
    time: datetime
    changes: tuple[ChangeCount, ...]


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A transaction as it comes to its commit. ``staged``: the statements' files by table."""

    spark: SparkSession
    root: Path
    catalog: Catalog
    began: Snapshot
    places: Places
    staged: Mapping[str, Sequence[Staged]]


def run_commit(work: PendingCommit) -> Committed:
    things = ["commit", *(f"relation:{name}" for name in work.staged)]
    publishing = False
    try:
        with work.catalog.lease(*things) as lease:
            now = work.catalog.snapshot()
            written = _settled(work, now)
            reach("commit.computed")
            _check(work, now, written)
            reach("commit.checked")
            logged = _log(work, written)
            work.places.discard_all_but(tuple(one.staged.place for one in written))
            publishing = bool(written)
            moment = _publish(work, lease, written, logged) if written else work.began.moment
    except BaseException:
        # Once publishing has begun its outcome may be unknown: the files stay, and recovery decides.
        if publishing:
            work.places.let_go()
        else:
            work.places.give_up()
        raise
    if not written:
        work.places.give_up()
    return Committed(moment.csn, moment.time, tuple(_counted(one, moment.csn) for one in written))


def _settled(work: PendingCommit, now: Snapshot) -> tuple[Written, ...]:
    csn = now.moment.csn + 1
    found = []
    for name, staged in work.staged.items():
        relation = _still_there(work, now, name)
        folder = TableInTransaction.on(work.root, relation).folder(Part.DELTA)
        settled = settle(work.spark, folder, staged, work.places.reserve(relation), csn, relation)
        if settled.files:
            found.append(Written(relation, folder, settled, effect(work.spark, folder, settled.files, relation)))
    return tuple(found)


def _still_there(work: PendingCommit, now: Snapshot, name: str) -> Relation:
    present = now.find(name)
    if present is None or present.id != work.began.get(name).id:
        raise Conflict(name, "it was dropped")
    return present


def _check(work: PendingCommit, now: Snapshot, written: Sequence[Written]) -> None:
    for one in written:
        _check_files(one)
        check_conflict(work.spark, work.root, one, work.began, now)
    changes = {one.relation.name.lower(): one for one in written}
    found = find_violation(Outcome(work.spark, work.root, now, changes))
    if found is None:
        return
    if now.moment.csn > work.began.moment.csn and _is_theirs(work, changes):
        raise Conflict(found.table, f"{found.constraint} would be violated now, because {found.example}")
    raise ConstraintViolated(found.table, found.constraint, found.example)


def _is_theirs(work: PendingCommit, changes: Mapping[str, Written]) -> bool:
    """Whether the transaction would have been right at the csn at which it began."""
    return find_violation(Outcome(work.spark, work.root, work.began, changes)) is None


def _check_files(one: Written) -> None:
    lost = [file.path for file in one.staged.files if not (one.folder.root / file.path).exists()]
    if lost:
        raise EnvironmentFault(f"The file '{lost[0]}' of this transaction is gone.", hint="Run it again.")


def _log(work: PendingCommit, written: Sequence[Written]) -> tuple[LoggedVersion, ...]:
    if not written:
        return ()
    new = [
        NewVersion(one.relation.name, Part.DELTA, one.folder, one.relation.pins[Part.DELTA], one.staged.files)
        for one in written
    ]
    return work.places.steps[0].log(new, {"csn": str(written[0].staged.csn)})


def _publish(work: PendingCommit, lease: Lease, written: Sequence[Written], logged: Sequence[LoggedVersion]) -> Moment:
    csn = written[0].staged.csn
    changes = [(w.relation.name, w.effect.inserted, w.effect.deleted, w.effect.updated) for w in written]
    unit = {"source": "local", "position": str(csn), "transaction": str(uuid4()), "source_time": datetime.now(UTC)}
    with publish_transaction(work.catalog, lease, work.places.steps) as publishing:
        moment = publishing.writer.commit_unit(**unit, changes=changes, expect=csn)  # type: ignore[arg-type]
        for one, new in zip(written, logged, strict=True):
            publishing.show(new, one.relation.pins[Part.DELTA].after, csn)
    return moment


def _counted(one: Written, csn: Csn) -> ChangeCount:
    return ChangeCount(one.relation.name, csn, one.effect.inserted, one.effect.deleted, one.effect.updated)
