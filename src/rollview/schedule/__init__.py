"""Which views, in which order, to which csn; and everything of one refresh published together."""

from rollview.schedule.refresh import Refresh, refresh, roll
from rollview.schedule.selection import going_on, select_relations, select_views, views_below

__all__ = ["Refresh", "going_on", "refresh", "roll", "select_relations", "select_views", "views_below"]
