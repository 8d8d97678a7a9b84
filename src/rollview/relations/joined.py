"""What a propagation step joined with what: in its profile, for whoever draws it.

Law: the queries of a view's steps, counted by their signs, cover each combination of rows up to its mark once (Salem et
al., *How To Roll a Join*, figures 6 to 9). A query that was not executed because nothing had changed there counts as +.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollview.core.interval import Csn, Interval

JOINED = "joined"
"""In the profile of a step."""
_MOST = 100
"""So many queries of one step are told; what is compensated may be far more."""

JoinedPart = Interval | Csn
"""The changes of a table, or its rows as they were at a csn."""


@dataclass(frozen=True, slots=True)
class JoinedQuery:
    """``parts``: of each table. ``executed``: whether anything had changed."""

    sign: int
    parts: tuple[JoinedPart, ...]
    executed: bool = True

    def told(self, tables: Sequence[str]) -> str:
        parts = (
            f"{table} {part}" if isinstance(part, Interval) else f"{table} at {part}"
            for table, part in zip(tables, self.parts, strict=True)
        )
        return f"{'+' if self.sign > 0 else '−'} {' ⋈ '.join(parts)}{'' if self.executed else ': no changes'}"


@dataclass(frozen=True, slots=True)
class JoinedQueries:
    """``tables``: one for each part of a query. ``more``: how many queries are not told."""

    tables: tuple[str, ...]
    queries: tuple[JoinedQuery, ...]
    more: int = 0

    def to_json(self) -> dict[str, Any]:
        told = [[one.sign, one.executed, [_part_json(part) for part in one.parts]] for one in self.queries[:_MOST]]
        return {"tables": list(self.tables), "queries": told, "more": self.more + len(self.queries) - len(told)}


def joined_in(profile: Mapping[str, Any]) -> JoinedQueries | None:
    """None of a step that does not say."""
    told = profile.get(JOINED)
    if told is None:
        return None
    queries = (
        JoinedQuery(int(sign), tuple(map(_part, parts)), bool(executed)) for sign, executed, parts in told["queries"]
    )
    return JoinedQueries(tuple(told["tables"]), tuple(queries), int(told["more"]))


def _part_json(part: JoinedPart) -> object:
    return [part.after, part.through] if isinstance(part, Interval) else part


def _part(told: Any) -> JoinedPart:
    return Interval(*map(int, told)) if isinstance(told, list) else int(told)
