"""What a user asks for that takes several stages: refresh, roll, maintain, capture, run.

Law: what is asked for together is published together; everything is checked before anything is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from rollview.capture import requests
from rollview.catalog import Part, Snapshot
from rollview.core.states import Policy
from rollview.errors import UsageError
from rollview.maintain import Keep, Maintenance, maintain
from rollview.propagate import RefreshMode, check_strict, mode_of, refresh_mode
from rollview.publish.fold import fold_if_it_pays, fold_if_often_read, is_large, leaves_behind
from rollview.publish.merge import merge_if_many
from rollview.publish.workplace import Workplace
from rollview.relations.cadence import Words
from rollview.relations.plans import plan_of
from rollview.relations.points import Point, recorded_by, resolve
from rollview.relations.rolling import check_even
from rollview.relations.weak import refuse_csn
from rollview.results import Delivered, Maintained, Progress, Refreshed, Rolled
from rollview.schedule.crew import Crew, DueTables, OwnPropagation, run_rounds
from rollview.schedule.daemon import Event, work
from rollview.schedule.refresh import refresh, roll
from rollview.schedule.selection import going_on, select_relations, select_views, views_below
from rollview.schedule.view_steps import Refresh
from rollview.subscribers import deliver

OnProgress = Callable[[Progress], None]
Setting = str | Mapping[str, str] | None


def _silent(progress: Progress) -> None:
    return None


def refresh_views(
    place: Workplace,
    select: Sequence[str] = (),
    to: Point | None = None,
    mode: str | None = None,
    on_progress: OnProgress | None = None,
    *,
    apply: bool = True,
    seconds: float | None = None,
    workers: int | None = None,
    due: Mapping[str, frozenset[str]] | None = None,
) -> Refreshed:
    """Without ``apply`` the view deltas only; the extents stay where they are. ``seconds``: as far as one comes in that
    time. ``workers``: how many threads work on it; as the project says by default. ``due``: of views that go table by
    table, the tables that have their turn; all of them by default."""
    wanted = refresh_mode(mode) if mode is not None else None
    place.recover()
    snapshot = place.snapshot()
    views = going_on(snapshot, select_views(snapshot, select), asked=bool(select))
    if to is not None and to != "latest":
        views = _rolled(place, snapshot, views, asked=bool(select))
    _refuse_whole(snapshot, views, wanted)
    target = None if to is None or to == "latest" else resolve(place.catalog, to, *views)
    work = replace(_work(place, on_progress, workers), due=due)
    done = refresh(work, views, target, mode=wanted, apply=apply, seconds=seconds)
    _merge_files(place, views)
    return done


def roll_views(place: Workplace, names: Sequence[str], to: Point, on_progress: OnProgress | None) -> Rolled:
    place.recover()
    if not names:
        raise UsageError("No view is named that is to be rolled.")
    snapshot = place.snapshot()
    views = select_views(snapshot, names)
    for name in views:
        refuse_csn(snapshot.get(name), "be rolled to a csn")
    views = _rolled(place, snapshot, views, asked=True)
    latest = min(snapshot.get(name).pins[Part.DELTA].through for name in views)
    target = latest if to == "latest" else resolve(place.catalog, to, *views)
    return roll(_work(place, on_progress), views, target)


def maintain_relations(
    place: Workplace,
    select: Sequence[str],
    *,
    explain: bool,
    retention: Setting,
    detail: Setting,
    prune_before: Point | None,
    compress_before: Point | None,
    overtake: Sequence[str],
    grace: timedelta,
    on_progress: OnProgress | None,
) -> Maintained:
    # It removes what the catalog does not know, so it has to be the right one, now.
    place.check()
    if not explain:
        place.recover()
    names = select_relations(place.snapshot(), select) if select else None
    prune, compress = (recorded_by(place.catalog, point) for point in (prune_before, compress_before))
    overtaken = frozenset(place.catalog.subscriber(name).name for name in overtake)
    tables = requests.needed(place.catalog), overtaken, requests.asked_tables(place.catalog)
    keep = Keep(retention, detail, prune, compress, *tables)

    def move_on(table: str) -> bool:
        return requests.move_on(place.catalog, place.data, table)

    todo = Maintenance(place.data, place.catalog, lambda: place.spark, keep, grace, on_progress or _silent, move_on)
    return maintain(todo, names, explain=explain)


def run_until(
    place: Workplace,
    interval: float,
    stop: threading.Event,
    rounds: int | None,
    schedule: Words,
    propagate: Words = None,
) -> Iterator[Event]:
    """Capture, refresh and deliver as everything asks until ``stop`` is set, or everything so many times."""
    place.recover()

    def refresh_some(names: Sequence[str], seconds: float | None, due: DueTables = None) -> Refreshed:
        return refresh_views(place, names, seconds=seconds, due=due)

    def fold(going: Collection[str]) -> None:
        _fold(place, going)

    def deliver_to(names: Sequence[str], seconds: float | None) -> Delivered:
        return deliver(place, names, seconds)

    def propagate_some(names: Sequence[str], seconds: float | None, due: DueTables = None) -> Refreshed:
        return refresh_views(place, names, apply=False, seconds=seconds, due=due)

    ahead = OwnPropagation(propagate_some, propagate, place.policies)
    about = (schedule, interval, place.following, ahead)
    crew = Crew(place.catalog, place.data, place.order, refresh_some, fold, deliver_to, *about)
    # Sources are read while it starts.
    place.start_spark_ahead(crew.has_views)
    return work(crew, stop, place.parallel) if rounds is None else run_rounds(crew, interval, stop, rounds)


def _rolled(place: Workplace, snapshot: Snapshot, views: Sequence[str], *, asked: bool) -> tuple[str, ...]:
    """Those that can be at another csn than the newest; to ask for one of the others is an error."""
    kept = [name for name in views if place.policies.of(snapshot, snapshot.get(name)) is Policy.IMMEDIATE]
    if kept and asked:
        raise UsageError(
            f"View '{kept[0]}' is immediate: it is always at the newest csn, and is not rolled.",
            hint=f"To see it as it was: rollview view read {kept[0]} --as-of POINT",
            view=kept[0],
        )
    return tuple(name for name in views if name not in kept)


def _work(place: Workplace, on_progress: OnProgress | None, workers: int | None = None) -> Refresh:
    about = (place.spark, place.data, place.catalog, on_progress or _silent)
    parallel, takes = workers or place.parallel, not place.order.by_time
    return Refresh(*about, policies=place.policies, takes=takes, parallel=parallel)


def _refuse_whole(snapshot: Snapshot, views: Sequence[str], mode: RefreshMode | None) -> None:
    """Before anything is done, where a view would have to be recomputed although it must not be."""
    for view in map(snapshot.get, views):
        check_strict(view.name, plan_of(snapshot, view), mode_of(view, mode))
        if mode is RefreshMode.RECOMPUTE:
            check_even(snapshot, view, "recomputed")


def _merge_files(place: Workplace, views: Sequence[str]) -> None:
    now = place.snapshot()
    touched = {*views}.union(*(views_below(now, now.get(name)) for name in views if now.find(name) is not None))
    merge_if_many(place.data, place.catalog, touched, now)


def _fold(place: Workplace, going: Collection[str]) -> None:
    """States move forward where that pays, also to the views that are going on. Of local tables a commit does so itself
    where their changes have outgrown them; capture starts no Spark."""
    snapshot = place.snapshot()
    for table in snapshot.tables():
        about = (place.spark, place.data, place.catalog, table.name)
        if leaves_behind(snapshot, table, going):
            continue
        if table.source is not None and fold_if_it_pays(*about):
            continue
        if is_large(table):
            fold_if_often_read(*about)
