"""The Delta folders of a table's parts."""

from __future__ import annotations

from pathlib import Path

from rollview.catalog import Part, Relation
from rollview.core.schema import SIGNED, Schema
from rollview.store.folder import DeltaFolder


def delta_folder(root: Path, relation: Relation) -> DeltaFolder:
    return DeltaFolder(root / relation.folder / Part.DELTA, Schema(relation.schema.columns + SIGNED))


def state_folder(root: Path, relation: Relation) -> DeltaFolder:
    return DeltaFolder(root / relation.folder / Part.STATE, relation.schema)
