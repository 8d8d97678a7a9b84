"""What ``status`` answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rollview.core.interval import Csn
from rollview.core.states import Policy, ViewState
from rollview.results.answer import Result

if TYPE_CHECKING:
    from rollview.results.sources import HeldTransaction, SourceStatus
    from rollview.results.statements import ValidTime


@dataclass(frozen=True, slots=True)
class TableStatus(Result):
    """``rows``: None where none are kept, only changes. ``problem``: why it goes no further."""

    name: str
    rows: int | None
    state_csn: Csn
    through: Csn
    valid: ValidTime | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class TablePlace(Result):
    """How far a table's changes are in the delta of a view that is propagated table by table, and when they have their
    turn."""

    table: str
    csn: Csn
    cadence: str


@dataclass(frozen=True, slots=True)
class ViewStatus(Result):
    """``staleness_commits`` counts the commits to what the view reads that its extent does not show yet.

    ``state``: ok, stopped (``problem`` says why), schema_changed, or degraded where something is in quarantine.
    Of a view that is behind: how many commits were made per second in the last minute that is known of the sources, how
    many it did per second, beside the other views if it was behind all of that minute, and when it will have caught up
    if both go on; None where nobody can say. ``places``: of a view that is propagated table by table. ``consistency``:
    weak, where it is published with each table at its own csn.
    """

    name: str
    csn: Csn
    high_water_mark: Csn
    staleness_commits: int
    staleness_seconds: float
    policy: Policy
    rows: int
    last_refresh: datetime | None
    last_mode: str | None
    problem: str | None
    state: ViewState = ViewState.OK
    commits_per_second_in: float | None = None
    commits_per_second_done: float | None = None
    catches_up_in_seconds: float | None = None
    valid: ValidTime | None = None
    places: tuple[TablePlace, ...] = ()
    consistency: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogRows(Result):
    """How many rows the catalog has of what grows with every commit and every step."""

    ledger: int
    changes: int
    steps: int


@dataclass(frozen=True, slots=True)
class Status(Result):
    csn: Csn
    time: datetime
    tables: tuple[TableStatus, ...]
    views: tuple[ViewStatus, ...]
    sources: tuple[SourceStatus, ...] = ()
    held: tuple[HeldTransaction, ...] = ()
    catalog: CatalogRows | None = None
