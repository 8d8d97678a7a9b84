"""What held sources tell of tables, as those who compensate by themselves hear it.

Law: rows of one snapshot, and which units of work it saw. Whoever runs a step hands in who asks, because stages do not
know sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from rollview.catalog import Relation
from rollview.core.interval import Csn
from rollview.types.keys import Key


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """Rows of a table whose ``equal`` columns have one of the keys."""

    relation: Relation
    equal: tuple[str, ...]
    keys: frozenset[Key]


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """``rows``: of each wish. ``missed``: csns that were not seen. ``beyond``: of each unit of work without a csn that
    is known by now, whether it was seen."""

    rows: tuple[pa.Table, ...]
    missed: frozenset[Csn]
    beyond: tuple[bool, ...]

    def saw_the_same(self, other: RawAnswer) -> bool:
        seen = [{place for place, saw in enumerate(one.beyond) if saw} for one in (self, other)]
        return self.missed == other.missed and seen[0] == seen[1]


class Telling(Protocol):
    """Sources that nobody captures meanwhile."""

    def hold(self, relations: Iterable[Relation]) -> Csn:
        """Before the first question, those of all these tables; the newest csn that is captured of all."""

    def captured(self, relation: Relation, after: Csn) -> pa.Table:
        """All changes of a table since a csn that have csns."""

    def answer(self, wishes: Sequence[KeyRequest], after: Csn) -> RawAnswer:
        """All of one source, in one snapshot. ``after``: what an answer missed up to there is told as well."""

    def beyond(self, relation: Relation, number: int) -> Iterator[pa.Table]:
        """What a unit of work without a csn changed of a table, every row with ``_count``."""

    def take(self, units: Mapping[str, int]) -> Csn:
        """By source, so many units of work without csns get them; the newest csn, which reflects these and none after.
        Retryable if they have to wait for something."""
