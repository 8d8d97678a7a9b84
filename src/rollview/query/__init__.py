"""Answers: rows and changes, where everything stands, how a view is maintained, and the proof that it is right.

Law: asking never changes anything, and everything in one answer is read at one csn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.query.definitions import view_log
    from rollview.query.explain import explain_view
    from rollview.query.history import HistoryWish, check_history
    from rollview.query.reading import delta, layouts_over, read, verify_view
    from rollview.query.schemas import schema_at, schema_log
    from rollview.query.status import held, quarantine, readings, sources, warehouse_status

__all__ = [
    "HistoryWish",
    "check_history",
    "delta",
    "explain_view",
    "held",
    "layouts_over",
    "quarantine",
    "read",
    "readings",
    "schema_at",
    "schema_log",
    "sources",
    "verify_view",
    "view_log",
    "warehouse_status",
]
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("HistoryWish", "check_history"), "rollview.query.history"),
        "explain_view": "rollview.query.explain",
        "view_log": "rollview.query.definitions",
        **dict.fromkeys(("delta", "layouts_over", "read", "verify_view"), "rollview.query.reading"),
        **dict.fromkeys(("schema_at", "schema_log"), "rollview.query.schemas"),
        **dict.fromkeys(("held", "quarantine", "readings", "sources", "warehouse_status"), "rollview.query.status"),
    },
)
