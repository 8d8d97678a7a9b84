"""Views that are propagated, and applied, in the commit of what they read.

Law: a commit at csn t brings every view of policy ``immediate`` or ``ipda`` above its tables to t: first what such a
view reads, then its own delta, then, for ``immediate``, its extent. Which views those are, the catalog alone tells.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rollview.catalog import Lease, RelationKind, Snapshot
from rollview.core.lazy import lazy_module
from rollview.core.states import Policy
from rollview.publish.following import Followers, Upcoming
from rollview.publish.step import Along
from rollview.publish.workplace import Workplace
from rollview.relations.policies import check_reads, is_stopped

if TYPE_CHECKING:
    from rollview.schedule import bring, commands
else:
    # A commit that no view follows computes nothing.
    bring = lazy_module("rollview.schedule.bring")
    commands = lazy_module("rollview.schedule.commands")


@dataclass(frozen=True, slots=True)
class ViewsInCommits:
    place: Workplace

    def followers(self, snapshot: Snapshot, tables: Collection[str], *, strict: bool) -> Followers:
        """``strict``: also those that are stopped, because the commit must not pass them by."""
        policies = self.place.policies
        touched = {upper.name for table in tables for upper in snapshot.above(table)}
        chosen = {
            view.name for view in snapshot.views() if view.name in touched and policies.of(snapshot, view).in_commits
        }
        for view in map(snapshot.get, sorted(chosen)):
            check_reads(snapshot, policies, view.name, policies.of(snapshot, view), view.depends_on)
        immediate = {n for n in chosen if policies.of(snapshot, snapshot.get(n)) is Policy.IMMEDIATE}
        needed = immediate.union(*(_views_below(snapshot, name) for name in immediate)) if strict else set()
        going = {name for name in chosen if name in needed or not is_stopped(snapshot, name)}
        all_ = going.union(*(_views_below(snapshot, name) for name in going))
        ordered = tuple(view.name for view in snapshot.views() if view.name in all_)
        return Followers(ordered, frozenset(needed))

    def catch_up(self, name: str, policy: Policy) -> None:
        commands.refresh_views(self.place, [name], apply=policy is Policy.IMMEDIATE)

    def along(self, upcoming: Upcoming, followers: Followers, lease: Lease) -> Along:
        bringing = bring.Bringing(self.place, upcoming, lease, upcoming.snapshot)
        try:
            for name in followers.views:
                bringing.bring(name, needed=name in followers.needed)
        except BaseException:
            bringing.along.give_up()
            raise
        return bringing.along


def _views_below(snapshot: Snapshot, name: str) -> set[str]:
    return {lower.name for lower in snapshot.below(name) if lower.kind is RelationKind.VIEW}
