"""Bags: rows with signed counts. Law: a bag holds no row whose count is zero, so equal bags are equal values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Row = tuple[Any, ...]
Bag = Mapping[Row, int]
FrozenBag = frozenset[tuple[Row, int]]

EMPTY: Bag = {}


def bag(rows: Iterable[Row]) -> Bag:
    return counted((tuple(row), 1) for row in rows)


def counted(rows: Iterable[tuple[Row, int]]) -> Bag:
    """The net effect of rows with counts."""
    found: dict[Row, int] = {}
    for row, count in rows:
        found[row] = found.get(row, 0) + count
    return {row: count for row, count in found.items() if count}


def plus(*bags: Bag) -> Bag:
    return counted(item for one in bags for item in one.items())


def times(one: Bag, factor: int) -> Bag:
    return {row: count * factor for row, count in one.items()} if factor else {}


def minus(left: Bag, right: Bag) -> Bag:
    return plus(left, times(right, -1))


def once(one: Bag) -> Bag:
    """Every row that is there, without duplicates."""
    return {row: 1 for row, count in one.items() if count > 0}


def frozen(one: Bag) -> FrozenBag:
    return frozenset(one.items())


def distance(left: Bag, right: Bag) -> int:
    """How many rows are too many or missing."""
    return sum(abs(count) for count in minus(left, right).values())


def listed(one: Bag) -> list[Row]:
    """The rows in one fixed order, each as often as it is there; those below zero are left out."""
    return [row for row in sorted(one, key=_order) for _ in range(one[row])]


def shown(one: Bag) -> str:
    """As people write bags: {[1,2], [1,2]}; a count below zero as −[1,2]."""
    below = [f"−{_row(row)}" for row in sorted(one, key=_order) for _ in range(-one[row])]
    told = [_row(row) for row in listed(one)] + below
    return "{" + ", ".join(told) + "}" if told else "∅"


def _row(row: Row) -> str:
    return "[" + ",".join(map(str, row)) + "]"


def _order(row: Row) -> tuple[tuple[str, Any], ...]:
    """Values of one type by value, the types by name."""
    return tuple((type(value).__name__, value if isinstance(value, int | float | str) else str(value)) for value in row)
