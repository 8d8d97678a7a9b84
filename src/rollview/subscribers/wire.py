"""A batch in JSON: what servers are sent.

Law: every row is an object with the view's columns and those that changes have; what JSON cannot hold is text, as it is
for ``--output json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rollview.results import plain
from rollview.subscribers.batch import ChangeBatch


def rows_of(batch: ChangeBatch) -> Iterator[dict[str, Any]]:
    names = batch.rows.column_names
    for row in zip(*(column.to_pylist() for column in batch.rows.columns), strict=True):
        yield dict(zip(names, plain(row), strict=True))


def about(batch: ChangeBatch) -> dict[str, Any]:
    """All but the rows."""
    told = {"subscriber": batch.subscriber, "view": batch.view, "batch": batch.identity}
    return {**told, "after": batch.after, "through": batch.through, "full": batch.full}


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")
