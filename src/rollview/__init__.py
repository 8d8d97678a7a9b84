"""Incremental materialized views for Apache Spark.

    import rollview

    wh = rollview.open("shop/.rollview")
    wh.sql("INSERT INTO orders VALUES (1, 7, 9.90)")
    wh.refresh()
    wh.read("revenue_by_state").show()
"""

from __future__ import annotations

from rollview.definitions import materialized_view
from rollview.errors import RollviewError
from rollview.warehouse import Warehouse

__all__ = ["RollviewError", "Warehouse", "materialized_view", "open"]

create = Warehouse.create
open = Warehouse.open  # noqa: A001 - the module's name makes it rollview.open
