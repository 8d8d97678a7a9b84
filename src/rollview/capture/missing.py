"""Rows that a caller wants deleted must be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from rollview.catalog import Relation
from rollview.core.names import COUNT, CSN
from rollview.errors import ConstraintViolated
from rollview.store.multiset import col, net, signed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def refuse_missing(relation: Relation, present: DataFrame, gone: DataFrame) -> None:
    """``gone``: signed rows with ``_count`` -1."""
    both = signed(present).unionAll(gone.drop(CSN))
    short = net(both, relation.schema).where(sf.col(COUNT) < 0)
    first = short.select(sf.to_json(sf.struct(*map(col, relation.schema.names))).alias("row")).head()
    if first is not None:
        raise ConstraintViolated(relation.name, "that only rows it has are deleted", f"it does not have {first['row']}")
