"""What creating, refreshing, rolling, explaining and verifying views answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rollview.core.interval import Csn, Interval
from rollview.core.states import Extent, Policy, ViewMode
from rollview.results.answer import Result

if TYPE_CHECKING:
    from rollview.results.status import TablePlace


@dataclass(frozen=True, slots=True)
class ViewCreated(Result):
    name: str
    csn: Csn
    rows: int
    mode: ViewMode
    replaced: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ViewSet(Result):
    """A view's properties from now on, and the policy that follows from them and from the project."""

    name: str
    properties: Mapping[str, str]
    policy: Policy


@dataclass(frozen=True, slots=True)
class ViewDefinition(Result):
    """A definition that a view has from csn ``csn`` on. ``pending``: the view has no rows of it yet."""

    csn: Csn
    recorded: datetime
    why: str
    query: str
    columns: tuple[str, ...]
    pending: bool


@dataclass(frozen=True, slots=True)
class ViewLog(Result):
    """The definitions of a view, the oldest first."""

    name: str
    definitions: tuple[ViewDefinition, ...]


@dataclass(frozen=True, slots=True)
class ViewProposal(Result):
    """What a stopped view could be from csn on. ``extent``: its rows beside those that it would have had. ``how`` it
    would get them, ``why`` so, and the rows that are read for that, by relation."""

    number: int
    steps: tuple[str, ...]
    extent: Extent
    query: str
    columns: tuple[str, ...]
    how: str
    why: str
    reads: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ViewChanges(Result):
    """What can be decided for a view that a schema change stopped. ``csn``: of the change; None: it is not stopped.
    ``lost``: what it names and is gone. ``refused``: what else is declared, and why it does not do."""

    name: str
    csn: Csn | None
    lost: tuple[str, ...]
    proposals: tuple[ViewProposal, ...]
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ViewDecided(Result):
    """``csn``: from which the decision counts. ``above``: views that go on with it."""

    name: str
    csn: Csn
    number: int
    steps: tuple[str, ...]
    above: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress(Result):
    """A sign of life during long work: ``done`` of ``total`` relations are finished, this one is in ``stage``."""

    stage: str
    relation: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ExplainedTerm(Result):
    """Whether the term that starts at this relation's delta is needed, and why."""

    relation: str
    kept: bool
    reason: str


@dataclass(frozen=True, slots=True)
class ViewRefreshed(Result):
    """``mode`` is incremental or whole, with the reason; ``rows`` is the extent's size afterwards."""

    name: str
    interval: Interval
    mode: ViewMode
    reason: str
    delta_rows: int
    rows: int
    actions: int
    seconds: float
    files_written: int
    bytes_written: int
    files_read: int
    bytes_read: int
    phases: Mapping[str, float]
    """Seconds by what they were spent on."""
    terms: tuple[ExplainedTerm, ...]
    """The terms of the delta that were computed, and those that were left out."""
    expected_seconds: float | None = None
    """What ``seconds`` should have been; None where nothing was to be done."""


@dataclass(frozen=True, slots=True)
class Refreshed(Result):
    """``lagging``: views, chosen or below those, that went no further because a source could not be asked."""

    csn: Csn
    views: tuple[ViewRefreshed, ...]
    lagging: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile(Refreshed):
    """A refresh, shown with where its time went."""


@dataclass(frozen=True, slots=True)
class ViewRolled(Result):
    name: str
    before: Csn
    after: Csn
    rows: int


@dataclass(frozen=True, slots=True)
class Rolled(Result):
    csn: Csn
    views: tuple[ViewRolled, ...]


@dataclass(frozen=True, slots=True)
class ReplacementPlan(Result):
    """What giving a view another definition would do. ``how``: ``unchanged``, ``renamed``, ``stored rows``, ``in part``
    or ``recomputed``, and why; ``reads``: the relations that would be read, with their rows."""

    name: str
    how: str
    why: str
    reads: Mapping[str, int]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExplainedOperator(Result):
    """How one operator of a definition is maintained: linear, keyed or whole."""

    operator: str
    how: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExplainedAsk(Result):
    """What a refresh may ask a source for. ``sql``: the statement, with places for the keys. ``now``: rows of the table
    are not here, so it does."""

    table: str
    source: str
    by: tuple[str, ...]
    sql: str
    now: bool


@dataclass(frozen=True, slots=True)
class ExpectedWay(Result):
    """A way to have a view at a csn, and the seconds that it should take. The last two are of the last time that it was
    done: what was expected then, and what it took; None where nothing is recorded."""

    way: str
    csn: Csn
    expected_seconds: float
    last_expected_seconds: float | None = None
    last_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Explanation(Result):
    """``asks``: of a view that need not have all its rows here. Then ``algorithm`` is what it is kept by, ``promises``
    the level of consistency, and ``needs`` what a source has to tell for it. ``places``: of a view that is propagated
    table by table."""

    name: str
    mode: ViewMode
    operators: tuple[ExplainedOperator, ...]
    terms: tuple[ExplainedTerm, ...]
    sql: str
    asks: tuple[ExplainedAsk, ...] = ()
    algorithm: str | None = None
    promises: str | None = None
    needs: tuple[str, ...] = ()
    ways: tuple[ExpectedWay, ...] = ()
    places: tuple[TablePlace, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification(Result):
    """The extent beside recomputation at the same csn; ``missing`` and ``surplus`` show the first differing rows.
    ``places``: of a view that is weakly consistent, compared with each table at its own csn."""

    name: str
    csn: Csn
    equal: bool
    rows: int
    missing: tuple[dict[str, Any], ...] = ()
    surplus: tuple[dict[str, Any], ...] = ()
    missing_count: int = 0
    surplus_count: int = 0
    places: tuple[TablePlace, ...] = ()
