"""Queries, answered at one csn from whatever is stored: tables, views, and what came since.

Law: everything that an answer reads is read at the csn that it names, and its rows are those of the author's own text
over the tables at that csn. How it was found changes what it costs, never what it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.routing.answers import ask, explain
    from rollview.routing.freshness import Staleness, staleness

__all__ = ["Staleness", "ask", "explain", "staleness"]
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("ask", "explain"), "rollview.routing.answers"),
        **dict.fromkeys(("Staleness", "staleness"), "rollview.routing.freshness"),
    },
)
