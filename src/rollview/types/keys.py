"""Rows of an Arrow table by keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Key = tuple[Any, ...]


def has_keys(rows: pa.Table, equal: Sequence[str], keys: Collection[Key]) -> Any:
    """Of each row, whether its columns have one of the keys; NULL is none."""
    if len(equal) == 1:
        column = rows[equal[0]]
        # A key may be too large for the column.
        wide = pa.int64() if pa.types.is_integer(column.type) else column.type
        return pc.is_in(column.cast(wide), pa.array([key[0] for key in keys], wide))
    there = zip(*(rows[name].to_pylist() for name in equal), strict=True)
    return pa.array([key in keys for key in there], pa.bool_())


def keys_in(rows: pa.Table, columns: Sequence[str]) -> frozenset[Key]:
    """The different values of columns, where none is NULL."""
    found = zip(*(rows[name].to_pylist() for name in columns), strict=True)
    return frozenset(key for key in found if None not in key)
