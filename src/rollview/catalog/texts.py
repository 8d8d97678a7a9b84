"""Texts of the catalog that are read again and again and seldom change: what one text says is one value, made once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from rollview.catalog.values import Definition
from rollview.core.schema import Constraints, Schema

_AS_TEXT = ("columns", "constraints", "definition")


def as_text(table: sa.Table) -> Iterator[sa.ColumnElement[Any]]:
    """Its columns, to be selected; those of this room as texts."""
    return (sa.cast(one, sa.Text).label(one.name) if one.name in _AS_TEXT else one for one in table.c)


@lru_cache(maxsize=4096)
def schema_in(text: str) -> Schema:
    return Schema.from_json(json.loads(text))


@lru_cache(maxsize=4096)
def constraints_in(text: str) -> Constraints:
    return Constraints.from_json(json.loads(text))


@lru_cache(maxsize=4096)
def definition_in(text: str) -> Definition:
    said = json.loads(text)
    return Definition(**{**said, "columns": tuple(said["columns"])})
