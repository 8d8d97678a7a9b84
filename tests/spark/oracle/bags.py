"""Rows as bags of plain values, and the one comparison that shows a readable difference.

Law: values are spelled alike exactly if Spark's GROUP BY puts them together. DOUBLE and FLOAT keep nine digits, because
the order in which they are added up is not fixed; everything else is exact, a decimal's digits after the point too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

Bag = Counter[tuple[Any, ...]]


def canonical(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}") + 0.0
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, dict):
        return tuple(sorted((str(key), canonical(item)) for key, item in value.items()))
    if isinstance(value, tuple | list):
        return tuple(map(canonical, value))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def bag(rows: Iterable[Any]) -> Bag:
    return Counter(canonical(tuple(row)) for row in rows)


def assert_same(found: Bag, expected: Bag, about: str) -> None:
    if found == expected:
        return
    lines = [f"{about}: {found.total()} rows, expected {expected.total()}"]
    lines += [f"  missing {count} × {row}" for row, count in (expected - found).items()]
    lines += [f"  surplus {count} × {row}" for row, count in (found - expected).items()]
    raise AssertionError("\n".join(lines))
