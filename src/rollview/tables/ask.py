"""Which of the two probes answers a question about keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rollview.core.schema import Schema
from rollview.store.small import can_add_up
from rollview.tables.failures import statement_failures
from rollview.tables.probe import Key, Question
from rollview.tables.probe_arrow import ArrowProbe, TooLargeError
from rollview.tables.probe_spark import SparkProbe
from rollview.tables.staging import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ask(
    spark: SparkSession,
    touched: int,
    schema: Schema,
    columns: Sequence[str],
    question: Question,
    *,
    apart: bool = False,
) -> Key | None:
    """``touched``: at most so many keys are asked about, with the types of ``columns``. ``apart``: 0.0 is not -0.0."""
    if touched <= SMALL and can_add_up(schema.only(columns)):
        try:
            return question(ArrowProbe())
        except TooLargeError:
            pass
    with statement_failures("its keys"):
        return question(SparkProbe(spark, apart, touched))
