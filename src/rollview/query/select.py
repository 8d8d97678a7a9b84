"""A SELECT over tables and views.

Law: everything that one query names is read at one csn, the newest; a view that is not there yet is computed from its
definition at that csn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from rollview.engine.failures import users_query_failures
from rollview.publish.workplace import Workplace
from rollview.relations import references

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def select(place: Workplace, query: exp.Query, *, allow_unsafe: bool = False) -> DataFrame:
    """``allow_unsafe``: it may read what is outside the warehouse; whoever has its text has refused that otherwise."""
    reader = place.reader()
    with users_query_failures():
        return references.run(place.spark, query, reader.newest_rows, outside=allow_unsafe)
