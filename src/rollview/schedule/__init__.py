"""Which views, in which order, to which csn; and everything of one refresh published together."""

from rollview.schedule.refresh import Refresh, refresh, roll
from rollview.schedule.selection import select_relations, select_views, views_below

__all__ = ["Refresh", "refresh", "roll", "select_relations", "select_views", "views_below"]
