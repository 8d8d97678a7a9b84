"""What adding, checking and reading sources answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from rollview.core.interval import Csn
from rollview.core.states import SourceState
from rollview.results.answer import Result


@dataclass(frozen=True, slots=True)
class SourceFinding(Result):
    """What a source lacks, and the statement that repairs it; ``blocks`` if it cannot be captured so."""

    what: str
    repair: str | None
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
class AskedSoFar(Result):
    """How often a source was asked for rows, for how many keys, and what it gave. ``problem``: why it could not be
    asked the last time."""

    asks: int
    keys: int
    rows: int
    bytes: int
    last: datetime
    problem: str | None


@dataclass(frozen=True, slots=True)
class SourceStatus(Result):
    """``address`` as it was given: a reference where it holds a secret. ``read``: when it was last read; ``known``:
    everything that it committed by then, by its own clock, is here.

    ``behind_bytes``, ``kept_bytes``, ``slot``: how much of its log was not read and how much it keeps for us, as it was
    last seen; ``oldest_open``: the transaction that has been open for the longest, or what else it waits for, and for
    how long; ``alarm``: what somebody should look at; ``retry_at``: when it is tried again. ``kept``: what is here of
    each table of which not simply all is. ``asked``: how often it was asked for rows.
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
    asked: AskedSoFar | None = None
