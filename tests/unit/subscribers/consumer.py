"""A program outside that keeps a view's rows by the changes that it is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from tests.unit.maintain.small import Bag

from rollview.subscribers.batch import ADDED, CHANGE_TYPE, COMMIT_VERSION, ChangeBatch

SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}


def told(rows: pa.Table) -> list[tuple[Any, ...]]:
    """(type, csn, columns…) in the order in which they came."""
    names = [CHANGE_TYPE, COMMIT_VERSION, *(name for name in rows.column_names if name not in ADDED)]
    return list(zip(*(rows[name].to_pylist() for name in names), strict=True))


@dataclass
class Consumer:
    """``csn`` and ``rows`` are stored together. ``csns``: the positions that it has been at."""

    csn: int | None = None
    rows: Bag = field(default_factory=Counter)
    csns: list[int] = field(default_factory=list)

    def store(self, batch: ChangeBatch) -> None:
        self.take(told(batch.rows), batch.after, batch.through, full=batch.full)

    def take(self, changes: Iterable[tuple[Any, ...]], after: int, through: int, *, full: bool) -> None:
        """A batch that is stored already is left alone."""
        if not full and self.csn is not None and through <= self.csn:
            return
        assert full or after == self.csn, (after, self.csn)
        self.rows = Counter() if full else Counter(self.rows)
        for type_, csn, *row in changes:
            assert full or after < csn <= through
            self.rows[tuple(row)] += SIGNS[type_]  # type: ignore[index]
        assert all(count >= 0 for count in self.rows.values()), self.rows
        self.csn, self.rows = through, +self.rows
        self.csns.append(through)
