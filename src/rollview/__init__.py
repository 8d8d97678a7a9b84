"""Incremental materialized views for Apache Spark.

import rollview

wh = rollview.open("shop/.rollview")
wh.sql("INSERT INTO orders VALUES (1, 7, 9.90)")
wh.refresh()
wh.read("revenue_by_state").show()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollview.definitions import materialized_view
from rollview.errors import RollviewError

if TYPE_CHECKING:
    from rollview.warehouse import Warehouse

    create = Warehouse.create
    open = Warehouse.open

__all__ = ["RollviewError", "Warehouse", "create", "materialized_view", "open"]


def __getattr__(name: str) -> Any:
    """The warehouse is imported when it is first asked for, so that the command line answers quickly."""
    if name not in ("Warehouse", "create", "open"):
        raise AttributeError(f"module 'rollview' has no attribute {name!r}")
    from rollview.warehouse import Warehouse

    return Warehouse if name == "Warehouse" else getattr(Warehouse, name)
