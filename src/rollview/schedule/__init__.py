"""Which views, in which order, to which csn; and everything of one refresh published together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.schedule.commands import (
        maintain_relations,
        refresh_views,
        roll_views,
        run_until,
    )
    from rollview.schedule.daemon import stopping
    from rollview.schedule.follow import ViewsInCommits

__all__ = ["ViewsInCommits", "maintain_relations", "refresh_views", "roll_views", "run_until", "stopping"]
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(__all__, "rollview.schedule.commands"),
        "ViewsInCommits": "rollview.schedule.follow",
        "stopping": "rollview.schedule.daemon",
    },
)
