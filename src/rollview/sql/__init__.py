"""Statements of a user, each sent to its room: tables, views or queries.

Law: statements run in order; neighbouring changes are one transaction; an error says what was done before it and stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.sql.decide import decide_view, resume_stopped, view_changes
    from rollview.sql.run import drop_table, run_statements, transaction
    from rollview.sql.views import create_view, drop_view, explain_replace, set_view

__all__ = [
    "create_view",
    "decide_view",
    "drop_table",
    "drop_view",
    "explain_replace",
    "resume_stopped",
    "run_statements",
    "set_view",
    "transaction",
    "view_changes",
]
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("drop_table", "run_statements", "transaction"), "rollview.sql.run"),
        **dict.fromkeys(("decide_view", "resume_stopped", "view_changes"), "rollview.sql.decide"),
        **dict.fromkeys(("create_view", "drop_view", "explain_replace", "set_view"), "rollview.sql.views"),
    },
)
