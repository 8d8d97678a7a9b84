"""What a commit is handed to publish with itself: views that are propagated in commits.

Law: the ledger's row, the base deltas, the view deltas and the extents become visible in one catalog transaction, or
none of them does. Whoever commits knows neither how views are propagated nor which: it is told which relations to
hold, and shows what will be there; it is given steps that are logged, and publishes them with its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from rollview.catalog import ChangeCount, Lease, Moment, Part, RelationKind, Snapshot
from rollview.core.interval import Csn, Interval, merge_overlapping
from rollview.core.states import Policy
from rollview.publish.step import Along, Shown
from rollview.relations.policies import Policies, check_reads, is_stopped


@dataclass(frozen=True, slots=True)
class Followers:
    """The views that a commit takes along, each after what it reads; among them what they read and is not touched.
    ``needed``: those without which a local transaction does not commit."""

    views: tuple[str, ...] = ()
    needed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Taken:
    """The tables of a commit, what follows it, and the lease on both; None if nothing follows it now."""

    tables: tuple[str, ...]
    followers: Followers = Followers()
    lease: Lease | None = None

    @property
    def remaining(self) -> tuple[str, ...]:
        """What is still to be leased when the clock is to be held."""
        return ("commit",) if self.lease is not None else ("commit", *_leases(self.tables))

    @property
    def all(self) -> tuple[str, ...]:
        """What is to be leased before the views compute anything."""
        return (*_leases(self.tables), *_leases(self.followers.views))


def _leases(relations: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"relation:{name}" for name in relations)


@dataclass(frozen=True, slots=True)
class Upcoming:
    """A commit that is logged and not visible. ``snapshot``: the catalog as it will be without the views;
    ``changes``: what its units of work change."""

    snapshot: Snapshot
    changes: tuple[ChangeCount, ...]


class Following(Protocol):
    @property
    def policies(self) -> Policies | None:
        """None where no view is propagated in commits."""
        ...

    def along(self, upcoming: Upcoming, followers: Followers, lease: Lease) -> Along:
        """The views brought up to the commit. ``lease``: on them, and on the tables that it changes."""
        ...

    def catch_up(self, name: str, policy: Policy) -> None:
        """A view that follows commits in this way from now on comes up to the newest csn."""
        ...

    def synchronize(self, names: Collection[str]) -> None:
        """Views that a change at a source has stopped go on by what is declared for them, where that is acceptable."""
        ...


class NobodyFollows:
    """Where no view is propagated in commits."""

    policies = None

    def along(self, upcoming: Upcoming, followers: Followers, lease: Lease) -> Along:
        return Along()

    def catch_up(self, name: str, policy: Policy) -> None:
        return None

    def synchronize(self, names: Collection[str]) -> None:
        return None


def followers(policies: Policies | None, snapshot: Snapshot, tables: Collection[str], *, strict: bool) -> Followers:
    """Of a commit that changes the tables: the catalog alone tells.

    ``strict``: views may be needed, and then the commit does not pass them by, also those that are stopped.
    """
    if policies is None:
        return Followers()
    touched = {upper.name for table in tables for upper in snapshot.above(table)}
    chosen = {view.name for view in snapshot.views() if view.name in touched and policies.of(snapshot, view).in_commits}
    for view in map(snapshot.get, sorted(chosen)):
        check_reads(snapshot, policies, view.name, policies.of(snapshot, view), view.depends_on)
    immediate = {name for name in chosen if policies.of(snapshot, snapshot.get(name)) is Policy.IMMEDIATE}
    needed = immediate.union(*(_views_below(snapshot, name) for name in immediate)) if strict else set()
    going = {name for name in chosen if name in needed or not is_stopped(snapshot, name)}
    all_ = going.union(*(_views_below(snapshot, name) for name in going))
    ordered = tuple(view.name for view in snapshot.views() if view.name in all_)
    return Followers(ordered, frozenset(needed))


def _views_below(snapshot: Snapshot, name: str) -> set[str]:
    return {lower.name for lower in snapshot.below(name) if lower.kind is RelationKind.VIEW}


def as_published(
    snapshot: Snapshot, csn: Csn, shown: Iterable[Shown], coarse: Iterable[tuple[str, Interval]] = ()
) -> Snapshot:
    """The catalog as it will be once these versions are visible, and ``csn`` is the newest."""
    relations = dict(snapshot.relations)
    for one in shown:
        relation = relations[snapshot.get(one.logged.relation).name]
        changed = replace(relation, pins={**relation.pins, one.logged.part: one.pin})
        if one.logged.part is Part.STATE:
            changed = replace(changed, replaced=(*relation.replaced, one.through))
        relations[relation.name] = changed
    for name, stretch in coarse:
        relation = relations[name]
        relations[name] = replace(relation, coarse=merge_overlapping((*relation.coarse, stretch)))
    return Snapshot(Moment(csn, snapshot.moment.time), relations)
