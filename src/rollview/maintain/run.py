"""Maintenance of a warehouse: relation by relation, then what is left behind.

Law: one maintenance at a time. Every task is planned again under the lease that it runs under, and a relation that
somebody else holds is left for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from rollview.catalog import Catalog, Lease, Part, RelationKind, Snapshot
from rollview.errors import Busy
from rollview.maintain.forget import explain_forget, run_forget
from rollview.maintain.forward import MoveOn, run_fold, run_fold_groups
from rollview.maintain.plan import Action, Task, plan_relation
from rollview.maintain.release import run_release
from rollview.maintain.settings import Keep, check_words
from rollview.maintain.shorten import run_compress, run_prune
from rollview.maintain.sweep import Sweep, plan_sweep, run_sweep
from rollview.publish.merge import GetSpark, merge
from rollview.publish.rewrite import Rewritten, stored
from rollview.publish.step import drop, published
from rollview.results import Maintained, MaintenanceDone, Progress

GRACE = timedelta(hours=1)
PATIENCE = 5.0
"""Seconds to wait for a relation that somebody else holds."""


def _silent(progress: Progress) -> None:
    return None


def _copied(relation: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Maintenance:
    """``grace``: how long after it went out of use a file may still be read by somebody. ``move_on``: the state of a
    table that is read at its source."""

    root: Path
    catalog: Catalog
    spark: GetSpark
    keep: Keep
    grace: timedelta = GRACE
    on_progress: Callable[[Progress], None] = _silent
    move_on: MoveOn = _copied
    done: list[MaintenanceDone] = field(default_factory=list)


def maintain(work: Maintenance, names: Sequence[str] | None, *, explain: bool = False) -> Maintained:
    """``names``: these relations only; None is everything."""
    for words in (work.keep.retention, work.keep.detail):
        check_words(words)
    if explain:
        return _explained(work, names)
    with work.catalog.lease("maintain", wait=PATIENCE):
        chosen = _chosen(work.catalog.snapshot(), names)
        work.done.extend(_swept(work, names))
        for place, name in enumerate(chosen):
            work.on_progress(Progress("maintain", name, place, len(chosen)))
            work.done.extend(_maintained(work, name))
        if names is None:
            work.done.extend(_dropped(work))
        work.done.extend(_swept(work, names))
        if names is None:
            work.done.extend(_forgotten(work))
    return Maintained(work.catalog.snapshot().moment.csn, False, tuple(work.done))


def _chosen(snapshot: Snapshot, names: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(snapshot.relations) if names is None else tuple(names)


def _explained(work: Maintenance, names: Sequence[str] | None) -> Maintained:
    snapshot = work.catalog.snapshot()
    tasks = [
        _told(task)
        for name in _chosen(snapshot, names)
        for task in plan_relation(snapshot, work.catalog, work.root, name, work.keep)
    ]
    sweep = _plan_sweep(work, names)
    forgotten = explain_forget(work.catalog, snapshot) if names is None else ()
    return Maintained(snapshot.moment.csn, True, (*tasks, *_told_sweep(sweep, work.grace, later=True), *forgotten))


def _maintained(work: Maintenance, name: str) -> Iterator[MaintenanceDone]:
    """One task after another, until nothing is left that pays."""
    seen: set[tuple[Part, Action, str]] = set()
    while True:
        try:
            task = next((task for task in _plan(work, name) if _once(task) not in seen), None)
            if task is None:
                return
            seen.add(_once(task))
            yield _run(work, task)
        except Busy as error:
            yield _left(name, error)
            return


def _dropped(work: Maintenance) -> Iterator[MaintenanceDone]:
    """Tables that were dropped, and stayed for views that read them at earlier csns: those that nobody reads now."""
    snapshot = work.catalog.snapshot()
    read = {name for relation in snapshot.relations.values() for name in relation.depends_ever}
    for table in snapshot.relations.values():
        if table.kind is RelationKind.VIEW or len(table.schema) or table.name in read:
            continue
        leased = work.catalog.lease("definitions", f"relation:{table.name}", wait=PATIENCE)
        with leased as lease, work.catalog.write(lease) as writer:
            drop(writer, table)
        yield MaintenanceDone(table.name, None, "remove", "it was dropped, and no csn of it is read", None, 0, 0)


def _forgotten(work: Maintenance) -> tuple[MaintenanceDone, ...]:
    try:
        return run_forget(work.catalog, PATIENCE)
    except Busy as error:
        return (_left(None, error),)


def _left(name: str | None, error: Busy) -> MaintenanceDone:
    return MaintenanceDone(name, None, "wait", f"{error.message} It is left for the next time.", None, 0, 0)


def _once(task: Task) -> tuple[Part, Action, str]:
    return task.part, task.action, task.why if task.action is Action.HOLD else ""


def _plan(work: Maintenance, name: str) -> tuple[Task, ...]:
    snapshot = work.catalog.snapshot()
    # It may have been dropped since it was chosen.
    return () if snapshot.find(name) is None else plan_relation(snapshot, work.catalog, work.root, name, work.keep)


def _run(work: Maintenance, task: Task) -> MaintenanceDone:
    if task.action is Action.HOLD:
        return _told(task)
    if task.action is Action.FOLD and task.part is Part.STATE:
        run_fold(work.root, work.catalog, task, work.spark, work.move_on)
        return _told(task)
    # A view that is being created chooses its csn before anybody can see that it needs it.
    others = ("definitions",) if task.action in (Action.PRUNE, Action.COMPRESS, Action.RELEASE) else ()
    with work.catalog.lease(*others, f"relation:{task.relation}", wait=PATIENCE) as lease:
        snapshot = work.catalog.snapshot()
        planned = plan_relation(snapshot, work.catalog, work.root, task.relation, work.keep)
        now = next((one for one in planned if (one.part, one.action) == (task.part, task.action)), None)
        return _told(task, Rewritten((), ())) if now is None else _told(now, _leased(work, lease, snapshot, now))


def _leased(work: Maintenance, lease: Lease, snapshot: Snapshot, task: Task) -> Rewritten:
    relation = snapshot.get(task.relation)
    if task.action is Action.RELEASE:
        return run_release(work.catalog, lease, work.root, relation, task.files)
    if task.action is Action.FOLD:
        return run_fold_groups(work.catalog, lease, work.root, snapshot, task, work.spark)
    if task.part is Part.BRIDGE:
        with published(work.catalog, lease) as publishing:
            publishing.writer.forget_definitions(relation.name, task.interval.through + 1)
        return Rewritten((), ())
    if task.action is Action.MERGE:
        return merge(work.root, work.catalog, lease, relation.name, task.part, work.spark) or Rewritten((), ())
    run = run_prune if task.action is Action.PRUNE else run_compress
    return run(work.catalog, lease, work.root, relation, stored(snapshot, work.root, relation), task, work.spark)


def _told(task: Task, done: Rewritten | None = None) -> MaintenanceDone:
    files, size = (task.saves_files, task.bytes) if done is None else (done.files_saved, done.bytes_saved)
    why = task.why if done is None else task.why.removesuffix("; at most so much")
    return MaintenanceDone(task.relation, task.part.value, task.action.value, why, task.interval, files, size)


def _plan_sweep(work: Maintenance, names: Sequence[str] | None) -> Sweep:
    chosen = None if names is None else tuple(names)
    return plan_sweep(work.catalog, work.root, chosen, work.catalog.now(), work.grace)


def _swept(work: Maintenance, names: Sequence[str] | None) -> Iterator[MaintenanceDone]:
    sweep = _plan_sweep(work, names)
    told = tuple(_told_sweep(sweep, work.grace, later=False))
    run_sweep(work.catalog, work.root, sweep)
    yield from told


def _told_sweep(sweep: Sweep, grace: timedelta, *, later: bool) -> Iterator[MaintenanceDone]:
    owners = dict.fromkeys(sweep.unused.owner.values())
    for owner in owners:
        due, waiting = sweep.of(sweep.due, owner), sweep.of(sweep.later, owner)
        what = "no view or table has them" if owner is None else "no pinned version names them"
        if due:
            yield MaintenanceDone(owner, None, "remove", what, None, len(due), sweep.bytes(due))
        if waiting and later:
            why = f"{what}; they go after {_hours(grace)} in which a reader may still hold them"
            yield MaintenanceDone(owner, None, "hold", why, None, len(waiting), sweep.bytes(waiting))
    if sweep.unused.foreign:
        why = f"folders that carry the id of another warehouse stay: {', '.join(sweep.unused.foreign)}"
        yield MaintenanceDone(None, None, "hold", why, None, 0, 0)
    for owner, trim in sweep.trims:
        why = f"its Delta log begins at version {trim.version}"
        yield MaintenanceDone(owner, trim.root.name, "trim", why, None, len(trim.paths), trim.bytes)


def _hours(grace: timedelta) -> str:
    return f"{grace.total_seconds() / 3600:g} h"
