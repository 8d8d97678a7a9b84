"""The commit of a local transaction.

Law: under the lease ``commit`` the clock stands still, so the csn that the files were stamped with is the csn that the
ledger gives. The Delta logs are written first and count for nothing; one catalog transaction then pins them all and
writes the ledger, and publishes the views that have to follow. Writers whose rows meet in such a view wait for each
other; they never conflict because of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from rollview.catalog import Catalog, ChangeCount, Lease, Moment, Part, Relation, Snapshot
from rollview.core.faults import reach
from rollview.core.interval import Csn
from rollview.errors import Busy, Conflict, ConstraintViolated, EnvironmentFault, Retryable
from rollview.publish.following import Followers, Following, Taken, Upcoming, as_published, followers
from rollview.publish.places import Places
from rollview.publish.step import Along, LoggedVersion, NewVersion, Publishing, Shown, publish_transaction
from rollview.tables.conflicts import check_conflict
from rollview.tables.constraints import Outcome, Written, find_violation
from rollview.tables.in_transaction import TableInTransaction
from rollview.tables.staging import Staged, effect, settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTEMPTS = 5
_PATIENCE = 5.0
"""Seconds that a transaction waits for views that may as well follow later."""
_LONG = 300.0
"""Seconds that it waits for views that have to follow, which all writers below them hold one after another."""


@dataclass(frozen=True, slots=True)
class Committed:
    """``changes`` is empty, and ``csn`` the one the transaction began at, if it changed nothing. ``followed``: views
    that were published with it."""

    csn: Csn
    time: datetime
    changes: tuple[ChangeCount, ...]
    followed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A transaction as it comes to its commit. ``staged``: the statements' files by table. ``following``: who brings
    views along."""

    spark: SparkSession
    root: Path
    catalog: Catalog
    began: Snapshot
    places: Places
    staged: Mapping[str, Sequence[Staged]]
    following: Following


@dataclass(frozen=True, slots=True)
class _LoggedCommit:
    """A transaction that is logged at a csn, with the views that it takes along."""

    csn: Csn
    written: tuple[Written, ...]
    logged: tuple[LoggedVersion, ...]
    along: Along


class _OtherViews(Exception):
    """Others than those that were brought along have to follow by now."""


def run_commit(work: PendingCommit) -> Committed:
    for _ in range(_ATTEMPTS):
        try:
            return _commit(work)
        except _OtherViews:
            continue
    work.places.give_up()
    raise _other_views()


def _commit(work: PendingCommit) -> Committed:
    with ExitStack() as stack:
        try:
            taken = _take(work, stack)
            ready, lease = _prepare(work, taken, stack)
        except _OtherViews:
            raise
        except BaseException:
            work.places.give_up()
            raise
        return _finish(work, taken, lease, ready)


def _take(work: PendingCommit, stack: ExitStack) -> Taken:
    """Views that need not follow at once are not waited for long: they fall behind."""
    tables = tuple(work.staged)
    taken = Taken(tables, followers(work.following.policies, work.catalog.snapshot(), tables, strict=True))
    if not taken.followers.views:
        return taken
    if taken.followers.needed:
        return replace(taken, lease=stack.enter_context(work.catalog.lease(*taken.all, wait=_LONG)))
    try:
        return replace(taken, lease=stack.enter_context(work.catalog.lease(*taken.all, wait=_PATIENCE)))
    except Busy:
        return taken


def _check_followers(work: PendingCommit, taken: Taken, now: Snapshot) -> None:
    """Views that were not waited for are passed by, unless one has to follow by now."""
    present = followers(work.following.policies, now, taken.tables, strict=True)
    passes_by = taken.lease is None and bool(taken.followers.views) and not present.needed
    if not passes_by and present != taken.followers:
        raise _OtherViews


def _prepare(work: PendingCommit, taken: Taken, stack: ExitStack) -> tuple[_LoggedCommit, Lease]:
    """What views have to compute is done before the clock is held. Who changes what they read holds them, so all is as
    it was once the clock is held, unless somebody else got the csn: then it is done once more."""
    own, ready = taken.lease, None
    try:
        if own is not None:
            ready = _ready(work, own, taken.followers, work.catalog.snapshot())
        wait = {} if own is None else {"wait": _LONG}
        lease = stack.enter_context(work.catalog.lease(*taken.remaining, **wait))
        now = work.catalog.snapshot()
        _check_followers(work, taken, now)
        if ready is None or ready.csn != now.moment.csn + 1:
            left, ready = ready, None
            if left is not None:
                left.along.give_up()
            ready = _ready(work, own or lease, taken.followers if own is not None else Followers(), now)
    except BaseException:
        if ready is not None:
            ready.along.give_up()
        raise
    work.places.discard_all_but(tuple(one.staged.place for one in ready.written))
    return ready, lease


def _ready(work: PendingCommit, lease: Lease, followers: Followers, now: Snapshot) -> _LoggedCommit:
    written = _settled(work, now)
    reach("commit.computed")
    _check(work, now, written)
    reach("commit.checked")
    logged, csn = _log(work, written), now.moment.csn + 1
    along = work.following.along(_upcoming(now, csn, written, logged), followers, lease) if written else Along()
    return _LoggedCommit(csn, written, logged, along)


def _upcoming(now: Snapshot, csn: Csn, written: Sequence[Written], logged: Sequence[LoggedVersion]) -> Upcoming:
    changes = tuple(_counted(one, csn) for one in written)
    return Upcoming(as_published(now, csn, _shown(csn, written, logged)), changes)


def _shown(csn: Csn, written: Sequence[Written], logged: Sequence[LoggedVersion]) -> tuple[Shown, ...]:
    pins = (one.relation.pins[Part.DELTA] for one in written)
    return tuple(Shown(new, pin.after, csn) for pin, new in zip(pins, logged, strict=True))


def _finish(work: PendingCommit, taken: Taken, lease: Lease, ready: _LoggedCommit) -> Committed:
    if not ready.written:
        work.places.give_up()
        return Committed(work.began.moment.csn, work.began.moment.time, ())
    try:
        moment = _publish(work, taken, lease, ready)
    except BaseException:
        # Once publishing has begun its outcome may be unknown: the files stay, and recovery decides.
        work.places.let_go()
        ready.along.let_go()
        raise
    changes = tuple(_counted(one, moment.csn) for one in ready.written)
    return Committed(moment.csn, moment.time, changes, tuple({step.relation for step in ready.along.steps}))


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
    then = work.began.get(name)
    if present is None or present.id != then.id:
        raise Conflict(name, "it was dropped or renamed")
    if (present.schema, present.constraints) != (then.schema, then.constraints):
        raise Conflict(name, "it was altered")
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


def _publish(work: PendingCommit, taken: Taken, lease: Lease, ready: _LoggedCommit) -> Moment:
    written, csn = ready.written, ready.csn
    changes = [(w.relation.name, w.effect.inserted, w.effect.deleted, w.effect.updated) for w in written]
    unit = {"source": "local", "position": str(csn), "transaction": str(uuid4()), "source_time": datetime.now(UTC)}
    with publish_transaction(work.catalog, lease, work.places.steps, ready.along, taken.lease) as publishing:
        _check_still(work, taken, publishing)
        moment = publishing.writer.commit_unit(**unit, changes=changes, expect=csn)  # type: ignore[arg-type]
        for one in _shown(csn, written, ready.logged):
            publishing.show_pin(one.logged.relation, one.pin)
    return moment


def _check_still(work: PendingCommit, taken: Taken, publishing: Publishing) -> None:
    """A view may come, or get another policy, while the clock is held: here no more."""
    try:
        _check_followers(work, taken, publishing.writer.snapshot())
    except _OtherViews:
        raise _other_views() from None


def _other_views() -> Retryable:
    return Retryable("The views that have to follow the transaction changed meanwhile.", hint="Run it again.")


def _counted(one: Written, csn: Csn) -> ChangeCount:
    return ChangeCount(one.relation.name, csn, one.effect.inserted, one.effect.deleted, one.effect.updated)
