"""Rows that a caller wants deleted must be there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollview.catalog import Relation
from rollview.core.interval import Csn
from rollview.errors import ConstraintViolated
from rollview.store.folder import DeltaFolder
from rollview.tables.ask import ask
from rollview.tables.constraints import told
from rollview.tables.probe import Count, Key, Probe, Test, own_rows, rows_at
from rollview.tables.staging import Staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse_missing(
    spark: SparkSession, root: Path, relation: Relation, at: Csn, folder: DeltaFolder, staged: Sequence[Staged]
) -> None:
    """``staged``: the transaction's changes of the table at ``at``, those in question last."""
    key = relation.constraints.primary_key
    columns = (*key, *(name for name in relation.schema.names if name.lower() not in {k.lower() for k in key}))
    own = own_rows(folder, [file for one in staged for file in one.files], Count.SIGNED)

    def question(probe: Probe[Any]) -> Key | None:
        gone = probe.touched(own_rows(folder, staged[-1].files, Count.DELETED), columns, with_null=True)
        return probe.first(probe.having(gone, (*rows_at(root, relation, at), own), columns, Test.MISSING))

    found = ask(spark, staged[-1].rows, relation.schema, columns, question, apart=True)
    if found is not None:
        missing = f"it does not have the row {told(columns, found[: len(columns)])}"
        raise ConstraintViolated(relation.name, "that only rows it has are deleted", missing)
