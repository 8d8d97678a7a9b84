"""What harnesses over SQL databases share: writes as statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.sources.harness import Bag, Row, Write

COLUMNS = {"account": ("id", "owner", "balance"), "note": ("text",)}


def statements(write: Write, mark: str, row_number: str) -> Iterator[tuple[str, Row]]:
    """Of several equal rows, one is changed."""
    columns = COLUMNS[write.table]
    if write.before is None:
        assert write.after is not None
        yield f"INSERT INTO {write.table} VALUES ({', '.join([mark] * len(columns))})", write.after
        return
    which, values = _one(write.table, write.before, mark, row_number)
    if write.after is None:
        yield f"DELETE FROM {write.table} WHERE {which}", values
    else:
        assigned = ", ".join(f"{name} = {mark}" for name in columns)
        yield f"UPDATE {write.table} SET {assigned} WHERE {which}", (*write.after, *values)


def _one(table: str, row: Row, mark: str, row_number: str) -> tuple[str, Row]:
    if table == "account":
        return f"id = {mark}", row[:1]
    if not row_number:
        return f"text = {mark} LIMIT 1", row
    return f"{row_number} = (SELECT {row_number} FROM {table} WHERE text = {mark} LIMIT 1)", row


def bag(rows: list[Any]) -> Bag:
    return Counter(tuple(row) for row in rows)
