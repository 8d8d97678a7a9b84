"""Rows of a view that is weakly consistent, with each table at a csn of its own. The law is in ``weak``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rollview.catalog import Part, Relation
from rollview.relations.reader import Reader
from rollview.relations.weak import vector_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rows_at_vector(reader: Reader, view: Relation) -> DataFrame:
    """The extent and all that is in the delta."""
    end = max(vector_of(reader.snapshot, view).values())
    delta = view.pins[Part.DELTA]
    widened = replace(view, pins={**view.pins, Part.DELTA: replace(delta, through=max(end, delta.through))})
    known = replace(reader.snapshot, relations={**reader.snapshot.relations, view.name: widened})
    return Reader(reader.spark, reader.root, known, reader.meter).rows(view.name, end)


def recomputed_at_vector(reader: Reader, view: Relation) -> DataFrame:
    """The view's definition over each table at its own csn."""
    at = vector_of(reader.snapshot, view)
    seen = reader.seen_by(view.name)
    return reader.evaluate(view.name, lambda table: seen.rows(table, at[table]))
