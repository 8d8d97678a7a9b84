"""What SQL statements and queries answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rollview.core.interval import Csn
from rollview.results.answer import Result, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class StatementResult(Result):
    """What one SQL statement did; ``rows`` is there for a query only, and ``updated`` where a key tells it."""

    kind: str
    sql: str
    table: str | None = None
    inserted: int = 0
    deleted: int = 0
    updated: int | None = None
    csn: Csn | None = None
    rows: DataFrame | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "rows"}


@dataclass(frozen=True, slots=True)
class Considered(Result):
    """A relation that was looked at for a query's sake. ``way``: how it is or would be read; ``why``: how it answers,
    or why it is not used."""

    relation: str
    used: bool
    csn: Csn | None = None
    way: str | None = None
    expected_seconds: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Answer(Result):
    """A query's rows at one csn, and how they were found.

    ``valid``: the csns and moments at which the rows are these. ``staleness_seconds``: for how long they may not have
    been; None where a source is not known to have passed any moment. ``rows`` are read when they are fetched, and are
    None where only an explanation was asked for.
    """

    csn: Csn
    valid: ValidTime
    staleness_seconds: float | None
    considered: tuple[Considered, ...]
    expected_seconds: float
    rows: DataFrame | None = None
    fetch: Callable[..., FetchedAnswer] | None = field(default=None, compare=False, repr=False)
    """Reads the rows, at most so many; None where ``rows`` is."""

    @property
    def used(self) -> tuple[Considered, ...]:
        return tuple(one for one in self.considered if one.used)

    def to_json(self) -> dict[str, Any]:
        hidden = ("rows", "fetch")
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name not in hidden}


@dataclass(frozen=True, slots=True)
class FetchedAnswer(Result):
    """``still_valid``: when the rows were there, nothing had changed since that they rest on. ``seconds``: that
    fetching took; ``answer.expected_seconds`` is what it should have taken. ``answer``: the second, where what the
    first reads went away meanwhile."""

    answer: Answer
    rows: pa.Table
    still_valid: bool
    seconds: float

    def to_json(self) -> dict[str, Any]:
        told = {"still_valid": self.still_valid, "seconds": self.seconds}
        return {**self.answer.to_json(), **told, "rows": plain(self.rows.to_pylist())}


@dataclass(frozen=True, slots=True)
class ValidTime(Result):
    """For how long the rows that are shown are what the relation is: at every csn from ``first`` to ``through``, and at
    every moment from ``since`` to before ``until``, told by commit times.

    ``until``: the next commit that may change them, else now, which for a captured table is what its source is known to
    have passed. ``since``: None where nothing was ever committed. Both are None if no moment is exactly these csns.
    """

    first: Csn
    through: Csn
    since: datetime | None
    until: datetime | None
