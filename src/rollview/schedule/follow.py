"""Views that are propagated, and applied, in the commit of what they read.

Law: a commit at csn t brings every view of policy ``immediate`` or ``ipda`` above its tables to t: first what such a
view reads, then its own delta, then, for ``immediate``, its extent. Which views those are, the catalog alone tells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rollview.catalog import Lease
from rollview.core.lazy import lazy_module
from rollview.core.states import Policy
from rollview.publish.following import Followers, Upcoming
from rollview.publish.step import Along
from rollview.publish.workplace import Workplace
from rollview.relations.policies import Policies

if TYPE_CHECKING:
    from rollview.schedule import bring, commands
else:
    # A commit that no view follows computes nothing.
    bring = lazy_module("rollview.schedule.bring")
    commands = lazy_module("rollview.schedule.commands")


@dataclass(frozen=True, slots=True)
class ViewsInCommits:
    """``resume``: how stopped views take what is declared for them."""

    place: Workplace
    policies: Policies
    resume: Callable[[Workplace, Collection[str]], None]

    def catch_up(self, name: str, policy: Policy) -> None:
        commands.refresh_views(self.place, [name], apply=policy is Policy.IMMEDIATE)

    def synchronize(self, names: Collection[str]) -> None:
        self.resume(self.place, names)

    def along(self, upcoming: Upcoming, followers: Followers, lease: Lease) -> Along:
        bringing = bring.Bringing(self.place, upcoming, lease, upcoming.snapshot)
        try:
            for name in followers.views:
                bringing.bring(name, needed=name in followers.needed)
        except BaseException:
            bringing.along.give_up()
            raise
        return bringing.along
