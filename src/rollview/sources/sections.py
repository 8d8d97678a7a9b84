"""Rows of many units of work in one Arrow table.

Law: the table has exactly the types of the relation, so nothing that is in a section can be refused any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


class NotPlainError(Exception):
    """Something among the rows is not to be read column by column: they are read one by one, which tells what."""


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """The rows of a table from ``start`` up to ``stop``; cheaper than a slice."""

    whole: pa.Table
    start: int
    stop: int

    @classmethod
    def of(cls, rows: pa.Table) -> Section:
        return cls(rows, 0, rows.num_rows)

    def __len__(self) -> int:
        return self.stop - self.start

    def table(self) -> pa.Table:
        return self.whole.slice(self.start, len(self))

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Each row by itself."""
        return zip(*(column.to_pylist() for column in self.table().columns), strict=True)


def joined(sections: Sequence[Section]) -> Section:
    """All of them in their order; neighbours of one table are put together without touching their rows."""
    runs = [sections[0]]
    for section in sections[1:]:
        last = runs[-1]
        if section.whole is last.whole and section.start == last.stop:
            runs[-1] = Section(last.whole, last.start, section.stop)
        else:
            runs.append(section)
    return runs[0] if len(runs) == 1 else Section.of(pa.concat_tables([run.table() for run in runs]))
