"""Incremental materialized views for Apache Spark.

import rollview

wh = rollview.open("shop/.rollview")
wh.sql("INSERT INTO orders VALUES (1, 7, 9.90)")
wh.refresh()
wh.read("revenue_by_state").show()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollview.core.lazy import lazy_names
from rollview.definitions import materialized_view
from rollview.errors import RollviewError

if TYPE_CHECKING:
    from rollview import results
    from rollview.core.order import Order
    from rollview.sources.settings import GlobalSettings, SourceSettings, TableSettings
    from rollview.subscribers.batch import ChangeBatch
    from rollview.tables.transaction import Transaction
    from rollview.warehouse import Warehouse

    create = Warehouse.create
    open = Warehouse.open

__all__ = [
    "ChangeBatch",
    "GlobalSettings",
    "Order",
    "RollviewError",
    "SourceSettings",
    "TableSettings",
    "Transaction",
    "Warehouse",
    "create",
    "materialized_view",
    "open",
    "results",
]

_lazy = lazy_names(
    __name__,
    {
        "ChangeBatch": "rollview.subscribers.batch",
        "GlobalSettings": "rollview.sources.settings",
        "Order": "rollview.core.order",
        "SourceSettings": "rollview.sources.settings",
        "TableSettings": "rollview.sources.settings",
        "Transaction": "rollview.tables.transaction",
        "Warehouse": "rollview.warehouse",
        "results": "rollview.results",
    },
)


def __getattr__(name: str) -> Any:
    """Imported when first asked for, so that the command line answers quickly."""
    return getattr(_lazy("Warehouse"), name) if name in ("create", "open") else _lazy(name)
