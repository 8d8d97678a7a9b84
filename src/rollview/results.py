"""What the warehouse answers: frozen values, each of which can be written as JSON.

Law: ``to_json`` holds nothing but what JSON has; an interval is ``{"after", "through"}``, a time is ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from rollview.core.interval import Csn, Interval
from rollview.core.states import Policy, SourceState, ViewMode, ViewState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def plain(value: Any) -> Any:
    """The value in JSON's own types."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, Result):
        return value.to_json()
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(item) for item in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes | bytearray):
        return value.hex()
    return str(value)


class Result:
    """Base of all answers, each a frozen dataclass."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def to_json(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


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


@dataclass(frozen=True, slots=True)
class Refreshed(Result):
    csn: Csn
    views: tuple[ViewRefreshed, ...]


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
class Explanation(Result):
    """``asks``: of a view that need not have all its rows here. Then ``algorithm`` is what it is kept by, ``promises``
    the level of consistency, and ``needs`` what a source has to tell for it."""

    name: str
    mode: ViewMode
    operators: tuple[ExplainedOperator, ...]
    terms: tuple[ExplainedTerm, ...]
    sql: str
    asks: tuple[ExplainedAsk, ...] = ()
    algorithm: str | None = None
    promises: str | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification(Result):
    """The extent beside recomputation at the same csn; ``missing`` and ``surplus`` show the first differing rows."""

    name: str
    csn: Csn
    equal: bool
    rows: int
    missing: tuple[dict[str, Any], ...] = ()
    surplus: tuple[dict[str, Any], ...] = ()
    missing_count: int = 0
    surplus_count: int = 0


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

    @property
    def used(self) -> tuple[Considered, ...]:
        return tuple(one for one in self.considered if one.used)

    def to_json(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "rows"}


@dataclass(frozen=True, slots=True)
class TableStatus(Result):
    """``rows``: None where none are kept, only changes."""

    name: str
    rows: int | None
    state_csn: Csn
    through: Csn
    valid: ValidTime | None = None


@dataclass(frozen=True, slots=True)
class ViewStatus(Result):
    """``staleness_commits`` counts the commits to what the view reads that its extent does not show yet.

    ``state``: ok, stopped (``problem`` says why), schema_changed, or degraded where something is in quarantine.
    Of a view that is behind: how many commits came per second in the last minute, how many its last steps did per
    second of work, and when it will have caught up if both go on; None where nobody can say.
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


@dataclass(frozen=True, slots=True)
class SourceFinding(Result):
    """What a source lacks, and the statement that repairs it; ``blocks`` if it cannot be captured so."""

    what: str
    mend: str | None
    blocks: bool


@dataclass(frozen=True, slots=True)
class SourceChecked(Result):
    name: str
    ready: bool
    findings: tuple[SourceFinding, ...]


@dataclass(frozen=True, slots=True)
class TableReading(Result):
    """How a table is read whose source keeps files of its own: so many ``bytes`` in place, not copied, ``kept`` of them
    by the warehouse alone because the source has given them up; or as a copy, with the ``reason``."""

    bytes: int = 0
    kept: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CopiedTable(Result):
    name: str
    rows: int
    reading: TableReading | None = None


@dataclass(frozen=True, slots=True)
class SourceAdded(Result):
    name: str
    kind: str
    csn: Csn
    position: str
    tables: tuple[CopiedTable, ...]


@dataclass(frozen=True, slots=True)
class SourceCaptured(Result):
    """Units of work and signed rows that came, or the problem that kept them away; ``notes``: what else happened."""

    name: str
    units: int
    rows: int
    position: str | None
    problem: str | None = None
    retryable: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Captured(Result):
    csn: Csn
    sources: tuple[SourceCaptured, ...]


@dataclass(frozen=True, slots=True)
class QuarantinedRow(Result):
    """A row that came (``count`` +1) or went (-1) at a position, and has a value that cannot be represented."""

    table: str
    position: str
    column: str
    reason: str
    row: str
    count: int
    taken: datetime


@dataclass(frozen=True, slots=True)
class SourceQuarantine(Result):
    """``missing``: how many rows of the source the warehouse does not have now."""

    name: str
    missing: int
    rows: tuple[QuarantinedRow, ...]


@dataclass(frozen=True, slots=True)
class TableLayout(Result):
    """The columns, as ``name type``, by which a table's commits are read after ``position``, and why."""

    table: str
    csn: Csn
    position: str
    columns: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class HeldTransaction(Result):
    """A part of a global transaction that keeps its source waiting for those of ``missing``: names, or how many.

    ``overdue``: it waits for longer than it may, and nobody has decided since what to do.
    """

    global_id: str
    source: str
    missing: tuple[str, ...]
    since: datetime
    seconds: float
    overdue: bool
    decision: str | None


@dataclass(frozen=True, slots=True)
class Decided(Result):
    global_id: str
    choice: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceStatus(Result):
    """``address`` as it was given: a reference where it holds a secret. ``read``: when it was last read; ``known``:
    everything that it committed by then, by its own clock, is here.

    ``behind_bytes``, ``kept_bytes``, ``slot``: how much of its log was not read and how much it keeps for us, as it was
    last seen; ``oldest_open``: the transaction that has been open for the longest, or what else it waits for, and for
    how long; ``alarm``: what somebody should look at; ``retry_at``: when it is tried again. ``kept``: what is here of
    each table of which not simply all is.
    """

    name: str
    kind: str
    address: str
    state: SourceState
    position: str | None
    read: datetime | None
    tables: tuple[str, ...]
    problem: str | None
    layouts: tuple[TableLayout, ...] = ()
    staleness_seconds: float | None = None
    behind_bytes: int | None = None
    kept_bytes: int | None = None
    slot: str | None = None
    alarm: str | None = None
    oldest_open: str | None = None
    open_since: datetime | None = None
    open_seconds: float | None = None
    retry_at: datetime | None = None
    known: datetime | None = None
    readings: Mapping[str, TableReading] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class MaintenanceDone(Result):
    """One thing that maintenance does, with how many files and bytes fewer there are then.

    ``relation`` is None for folders whose table or view is gone, and for rows of the catalog; ``hold`` and ``wait``
    are what it leaves, and why.
    """

    relation: str | None
    part: str | None
    action: str
    reason: str
    interval: Interval | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Maintained(Result):
    """``explained``: it is what would be done, and nothing has changed."""

    csn: Csn
    explained: bool
    actions: tuple[MaintenanceDone, ...]


@dataclass(frozen=True, slots=True)
class CatalogRecovery(Result):
    """How the catalog and the data fit; ``accepted``: it was made so just now.

    ``steps``: how many were begun, by the catalog and by the data. ``unreadable``: tables and views of which the
    catalog names files that are gone. ``unknown_folders``: those of tables and views that the catalog does not know.
    ``accepted_time``: what the clock told when it was said to be right.
    """

    accepted: bool
    fits: bool
    csn: Csn
    time: datetime
    catalog_id: str
    data_id: str | None
    catalog_steps: int
    data_steps: int
    unreadable: tuple[str, ...] = ()
    unknown_folders: tuple[str, ...] = ()
    accepted_time: datetime | None = None


class SubscriberState(StrEnum):
    OK = "ok"
    ROWS_FIRST = "rows_first"
    """All rows at its position come next."""
    FAILING = "failing"
    """What it is delivered to refused or did not answer."""
    OUT_OF_REACH = "out_of_reach"
    """It cannot go on from its position: it has to begin anew."""


@dataclass(frozen=True, slots=True)
class SubscriberStatus(Result):
    """``behind``: csns from its position to the view's high-water mark. ``to``: where changes are delivered; None for
    who pulls. ``problem`` says why it fails or is out of reach."""

    name: str
    view: str
    position: Csn
    high_water_mark: Csn
    behind: int
    to: str | None
    state: SubscriberState
    problem: str | None
    added: datetime
    moved: datetime | None


@dataclass(frozen=True, slots=True)
class Acknowledged(Result):
    """``moved``: whether the position is another than before."""

    name: str
    position: Csn
    moved: bool


@dataclass(frozen=True, slots=True)
class SubscriberDelivered(Result):
    """Batches and rows that were delivered, or the problem that kept them."""

    name: str
    position: Csn
    batches: int
    rows: int
    problem: str | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Delivered(Result):
    subscribers: tuple[SubscriberDelivered, ...]


@dataclass(frozen=True, slots=True)
class ExperimentLine(Result):
    """An experiment of the lab, and where it is from."""

    name: str
    title: str
    paper: str


@dataclass(frozen=True, slots=True)
class ExperimentList(Result):
    experiments: tuple[ExperimentLine, ...]


@dataclass(frozen=True, slots=True)
class JudgedVersion(Result):
    """``reflects``: the units of each source, or the csn, whose view it is; None if there is none."""

    version: int
    rows: str
    reflects: str | None


@dataclass(frozen=True, slots=True)
class HistoryJudged(Result):
    """How consistent a view was. ``so_far``: it has not come to rest. ``undecided``: there were too many states to try,
    so it may be better. ``breaks`` is the lowest level that it does not reach, ``reason`` why, with the rows that the
    state nearest to the version has more and less."""

    name: str
    level: str
    so_far: bool
    undecided: bool
    versions: tuple[JudgedVersion, ...]
    breaks: str | None = None
    reason: str | None = None
    missing: str | None = None
    surplus: str | None = None


@dataclass(frozen=True, slots=True)
class ExperimentRun(Result):
    """What happened, line by line; ``judged`` where a view was published."""

    name: str
    title: str
    paper: str
    lines: tuple[str, ...]
    judged: HistoryJudged | None


@dataclass(frozen=True, slots=True)
class FilesWritten(Result):
    folder: str
    files: tuple[str, ...]
