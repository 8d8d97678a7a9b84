"""A view's text as it is read here, beside what Spark makes of it.

Law: a view is kept from deltas only where both are the same query. Where they are not, it is what its author wrote, and
is computed from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sqlglot import exp

from rollview.algebra.resolve import ROWS_SUFFIX, Known
from rollview.algebra.view import MISREAD, Outline, our_reading
from rollview.core.lazy import lazy_module
from rollview.core.schema import Schema
from rollview.engine.binding import run_query
from rollview.engine.meaning import mean_the_same
from rollview.store.folder import opaque

if TYPE_CHECKING:
    from pyspark import errors as spark_errors
    from pyspark.sql import DataFrame, SparkSession
else:
    spark_errors = lazy_module("pyspark.errors")

_MOST_KEPT = 256
_kept: WeakKeyDictionary[SparkSession, dict[tuple[str, Schema], DataFrame]] = WeakKeyDictionary()
"""Tables that nobody sees through, by name and columns: one that no text has changed is the same for the next text."""

READ_OTHERWISE = "Spark reads its text otherwise than rollview does, so it is computed from the text as it stands"


def misread(made: Outline, author: DataFrame, tables: Mapping[str, DataFrame]) -> Mapping[str, Any] | None:
    """What to remember of a text that is read otherwise here; ``author``: the text, analysed over ``tables``."""
    if made.rel is None or is_read_alike(author, our_reading(made.resolved), tables):
        return None
    return {MISREAD: READ_OTHERWISE}


def is_read_alike(author: DataFrame, ours: exp.Query, tables: Mapping[str, DataFrame]) -> bool:
    try:
        return mean_the_same(author, run_query(author.sparkSession, ours, tables))
    except spark_errors.AnalysisException:
        # Spark takes the author's text and does not take this: it is another one.
        return False


def unseen(spark: SparkSession, reads: Iterable[Known]) -> dict[str, DataFrame]:
    """A table for each relation, of which no more is known than its types."""
    return {relation.name + ROWS_SUFFIX: _unseen(spark, relation) for relation in reads}


def _unseen(spark: SparkSession, relation: Known) -> DataFrame:
    kept, key = _kept.setdefault(spark, {}), (relation.name, relation.schema)
    found = kept.get(key)
    if found is None:
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        found = kept[key] = opaque(spark, relation.schema, relation.name)
    return found
