"""Events that a view's maintainer hears, what it says, and what every one of them is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from rollview.consistency.bags import Bag
from rollview.consistency.history import Update
from rollview.consistency.join_view import Partial
from rollview.consistency.levels import Level

Through = Mapping[str, int]
"""How many units of each source are reflected."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Units of its source that an answer saw: those up to ``through``, without ``missing``."""

    through: int
    missing: frozenset[int] = frozenset()

    def saw(self, number: int) -> bool:
        return number <= self.through and number not in self.missing

    @property
    def is_prefix(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True)
class Reported:
    """A unit of work that a source committed: its ``number`` there, and of how many parts its global transaction is."""

    source: str
    number: int
    updates: tuple[Update, ...]
    transaction: str | None = None
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Answered:
    """What a source had for one ask, in one snapshot."""

    source: str
    ask: int
    partials: tuple[Partial, ...]
    seen: Seen


@dataclass(frozen=True, slots=True)
class Due:
    """The view has not been published for as long as it may be."""


@dataclass(frozen=True, slots=True)
class AskFor:
    """Join each partial with these occurrences, all of one source and in one snapshot of it."""

    ask: int
    source: str
    partials: tuple[Partial, ...]
    wanted: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Publish:
    """New rows for readers. ``through`` is None where the algorithm cannot tell what they reflect."""

    rows: Bag
    through: Through | None


Heard = Reported | Answered | Due
Said = AskFor | Publish


class Requirement(StrEnum):
    """What an algorithm needs of sources and view."""

    ONE_SOURCE = "all tables at one source that answers in one snapshot"
    WHOLE_OLD_ROWS = "whole old rows of what was deleted"
    KEYS = "the key of every table in the view"
    SINGLE_UPDATES = "units of work of one row"
    GLOBAL_IDS = "ids and part counts of global transactions"
    SEEN_SETS = "which units each answer saw"


class Maintainer(Protocol):
    """States are values of its own: nothing but ``on`` makes another of one."""

    @property
    def promises(self) -> Level: ...
    @property
    def needs(self) -> frozenset[Requirement]: ...
    def begin(self, rows: Bag, through: Through, ask: int = 1) -> Any:
        """The state of a view that shows these rows; ``ask`` numbers the first question."""

    def on(self, state: Any, event: Heard) -> tuple[Any, tuple[Said, ...]]: ...


def counted_in(through: Through, event: Reported) -> Through:
    return {**through, event.source: event.number}
