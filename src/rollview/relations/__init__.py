"""Tables and views as of one catalog snapshot: their plans, their rows and their changes at any csn in reach.

Law: what a view shows is a projection and selection of what it stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.relations.points import resolve
    from rollview.relations.proven import valid_time
    from rollview.relations.reader import Reader

__all__ = ["Reader", "resolve", "valid_time"]
__getattr__ = lazy_names(
    __name__,
    {
        "Reader": "rollview.relations.reader",
        "resolve": "rollview.relations.points",
        "valid_time": "rollview.relations.proven",
    },
)
