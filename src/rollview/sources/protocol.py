"""What a source is: it checks itself, tells its tables, copies them once, and yields units of work.

Law: ``read(after)`` gives whole committed transactions only, in the source's commit order, each at a position beyond
``after``; asked again with the same position it gives the same ones. What was acknowledged is never asked for again,
so a source may forget it. Nothing is acknowledged before it is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from rollview.core.bad_row import BadRow
from rollview.core.lent import Lent
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import NotFound, SchemaChanged
from rollview.sources.sections import Section
from rollview.sources.settings import SourceSettings, TableSettings
from rollview.sources.space import Space

Row = tuple[Any, ...]
"""Values in the order of the table's columns: None, bool, int, float, Decimal, str, bytes, date or datetime."""

Rows: TypeAlias = Sequence[Row] | pa.Table | Section
"""What is in Arrow is in exactly the types of its table."""


class Capability(StrEnum):
    """What a kind of source can do beyond the protocol's law."""

    TRANSACTIONS = "each transaction is a unit of work of its own"
    ACROSS_TABLES = "a transaction over several tables is one unit of work"
    BEFORE_IMAGES = "rows that go are told whole"
    COMMIT_TIMES = "the source's own commit time is known"
    TRUNCATE = "a table that is emptied at once is seen"
    SCHEMA_MESSAGES = "the layout of each row is told with it"
    KEYS = "what is unique stays unique, because the source or capture makes sure"
    ONLINE_COPY = "the first copy blocks no writer"


@dataclass(frozen=True, slots=True)
class SourceTable:
    """One table as the source tells it; ``name`` is the source's own."""

    name: str
    schema: Schema
    constraints: Constraints = field(default_factory=Constraints)


def projected(table: SourceTable, settings: TableSettings) -> SourceTable:
    """Only the columns that are captured, and what is promised of those alone."""
    for name in settings.columns:
        if table.schema.find(name) is None:
            raise NotFound(f"column of table '{table.name}'", name)
    names = {column.name for column in table.schema if settings.takes(column.name)}
    promised = table.constraints
    key = promised.primary_key if names.issuperset(promised.primary_key) else ()
    unique = tuple(one for one in promised.unique if names.issuperset(one))
    constraints = Constraints(key, unique, tuple(name for name in promised.not_null if name in names))
    return SourceTable(table.name, Schema(tuple(c for c in table.schema if c.name in names)), constraints)


class Spooled(Protocol):
    """Rows that are too many for memory, as pieces with ``_count`` +1 or -1 that are their net effect."""

    def pieces(self) -> Iterator[pa.Table]: ...
    def add_counted(self, table: pa.Table) -> None:
        """More rows, with ``_count``."""

    def empty_copy(self) -> Spooled:
        """Another one for rows of the same table, with none in it yet."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows of one table that go and come. ``replaces``: everything that was there before the unit goes as well.
    ``spools``: more rows, on disk."""

    before: Rows = ()
    after: Rows = ()
    replaces: bool = False
    spools: tuple[Spooled, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """One committed transaction. ``changes`` by the source's own names of its tables. ``global_id``: what the parts
    of one transaction at several sources have in common. ``quarantined``: rows of it that have no representation, where
    that does not stop the source."""

    position: str
    transaction: str
    time: datetime
    changes: Mapping[str, Changes]
    global_id: str | None = None
    quarantined: tuple[BadRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything up to ``position`` was read. ``complete``: there was nothing more when it was read.

    ``memory``: what the kind has to know at that position; None if it is what it was. ``known``: everything that was
    committed by then, by the source's own clock if it has one, is at or before the position; only if complete.
    """

    units: tuple[UnitOfWork, ...]
    position: str
    complete: bool = True
    memory: Mapping[str, Any] | None = None
    known: datetime | None = None


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """A table of a source, by the source's own name, is not what it was after the position that was read last.

    ``gone``: columns without which the table can still be read; ``unsure``: columns that may be NULL or repeat now;
    ``renamed``: old and new names of columns that are proven to be the same; ``widened``: new types, by the old names;
    ``added``: new columns, with the constant that older rows have in them. ``called``: the table's new name there.
    ``copy``: the log does not tell what rows are now, so the source has to be copied again. ``replaced``: the table
    that was captured is gone; with ``copy`` another one has its name, else none has. With none of them the table cannot
    be read at all.
    ``with_rows``: rows of the same transaction may follow, so the change has no csn of its own. ``position``: it is a
    transaction of its own, and this is the position after it. ``memory``: what the kind has to know from then on, None:
    as before.
    """

    source: str
    table: str
    reason: str
    gone: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    widened: tuple[tuple[str, str], ...] = ()
    added: tuple[Column, ...] = ()
    called: str | None = None
    copy: bool = False
    replaced: bool = False
    with_rows: bool = False
    position: str | None = None
    memory: Mapping[str, Any] | None = None

    @property
    def keeps_all(self) -> bool:
        """Whether it changes the columns of the table without a loss."""
        return bool(self.renamed or self.widened or self.added or self.called)

    def raised(self) -> TableChanged:
        """For a driver that finds it deep inside a reading."""
        return TableChanged(self)

    def refused(self) -> SchemaChanged:
        """As the error that stops the source, if nobody can follow the change."""
        return SchemaChanged(self.source, self.table, self.reason)


def words_of(
    gone: Iterable[str],
    renamed: Mapping[str, str],
    widened: Mapping[str, str],
    added: Iterable[Column],
    called: str | None = None,
) -> str:
    """What is another in a table, for who reads it."""
    return "; ".join(
        [
            *([f"it is called {called} now"] if called else []),
            *(f"{old} is {new} now" for old, new in renamed.items()),
            *(f"{name} is {type_} now" for name, type_ in widened.items()),
            *(f"{column.name} is new" for column in added),
            *([f"columns that are gone or were replaced: {', '.join(gone)}"] if gone else []),
        ]
    )


class TableChanged(SchemaChanged):
    """A change of a layout on its way out of a driver."""

    def __init__(self, change: LayoutChange) -> None:
        super().__init__(change.source, change.table, change.reason)
        self.change = change


def layout_change(error: SchemaChanged) -> LayoutChange:
    """One that says nothing of columns is of a table that cannot be read."""
    if isinstance(error, TableChanged):
        return error.change
    return LayoutChange(error.facts["source"], error.table, error.reason)


@dataclass(frozen=True, slots=True)
class FirstCopy:
    """The tables as they were at one position and time; ``rows`` yields those of a table in pieces, and puts aside into
    ``quarantined`` what has no representation, where that does not stop the source."""

    position: str
    time: datetime
    tables: tuple[SourceTable, ...]
    rows: Callable[[str], Iterator[Rows]]
    memory: Mapping[str, Any]
    quarantined: list[BadRow] = field(default_factory=list)
    at_once: int = 1
    """So many tables may be read at the same time."""
    changes: Mapping[str, LayoutChange] = field(default_factory=dict)
    """What is another now in tables that were captured before, where the kind knows columns not only by names."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as capture needs it, and the statement that repairs it. Some only deserve a warning."""

    what: str
    repair: str | None = None
    blocks: bool = True


SAID = "said_renames"
"""In a source's memory, by tables: old and new names of columns that a user says are the same."""

GONE = "gone"
"""In a source's memory: tables that were captured and are not there any more."""

ATTEMPT = "attempt"
"""What a source remembers of the copy that it goes on from: under which name it left something there."""


def _nobody_else() -> None:
    """A source that the catalog does not know is nobody's."""


def _nowhere(_memory: Mapping[str, Any]) -> None:
    """A source that the catalog does not know has no memory there."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What a kind is opened with. ``address`` may hold a secret. ``known``: the tables as they were recorded.

    ``attempt``: whatever a copy puts into the source is named by it, so that two copies never meet. ``fence``: raises
    LostLease unless whoever opened the source still holds it; asked before anything of others is taken away. ``keep``:
    what the kind has to know the next time although nothing could be copied. ``as_it_is``: a user has asked for the
    source as it is now, so what looks lost in it is gone.
    """

    name: str
    settings: SourceSettings
    address: str = field(repr=False)
    memory: Mapping[str, Any]
    known: Mapping[str, SourceTable]
    attempt: str = ""
    fence: Callable[[], None] = _nobody_else
    space: Space | None = field(default=None, repr=False)
    """Where rows are put that are too many for memory; None: in the system's temporary folder."""
    keep: Callable[[Mapping[str, Any]], None] = _nowhere
    as_it_is: bool = False

    @property
    def room(self) -> Space:
        return self.space or Space.temporary(self.name)

    @property
    def gone(self) -> frozenset[str]:
        """Tables that are known to be gone: nothing is read of them until there is one of their name."""
        return frozenset(self.memory.get(GONE, ()))

    def lost_table(self, remote: str) -> LayoutChange:
        """The change that a captured table is gone and none has its name."""
        memory = {**self.memory, GONE: sorted({*self.gone, remote})}
        return LayoutChange(self.name, remote, "it is gone", replaced=True, memory=memory)

    def new_table(self, remote: str, reason: str = "it was made anew") -> LayoutChange:
        """The change that another table has the name of a captured one."""
        return LayoutChange(self.name, remote, reason, copy=True, replaced=True)

    def memory_without(self, missing: Iterable[str]) -> Mapping[str, Any]:
        """The memory once all tables were copied but these."""
        kept = {key: value for key, value in self.memory.items() if key != GONE}
        gone = sorted(missing)
        return {**kept, GONE: gone} if gone else kept


@dataclass(frozen=True, slots=True)
class Health:
    """How well a source is: bytes of its log that were not read yet, bytes that it keeps for us, and what the server
    says of that; ``alarm``: what somebody should look at. ``oldest_open``: the transaction that has been open for the
    longest, or what else the source waits for before it can be read on; ``open_since``: since when, if it can tell."""

    behind_bytes: int | None = None
    kept_bytes: int | None = None
    slot: str | None = None
    alarm: str | None = None
    oldest_open: str | None = None
    open_since: datetime | None = None


@runtime_checkable
class Watched(Protocol):
    """A source that keeps something for us, and can tell how much."""

    def health(self) -> Health: ...


@runtime_checkable
class Alterable(Protocol):
    """A source in which what capture put there would block some statements."""

    def alter(self, statement: str) -> None:
        """Run one ALTER TABLE; what is read tells it in order with the rows. UsageError: the source refuses it, and
        nothing was changed."""


@runtime_checkable
class Lender(Protocol):
    """A source that keeps the files of each position, so that they can be read where they are."""

    def lent(self, remote: str, position: str) -> tuple[Lent, ...]:
        """All files of a table at a position; UnlinkableError with the reason if they are not to be read there."""


class Source(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def capabilities(self) -> frozenset[Capability]: ...

    def check(self) -> tuple[Finding, ...]:
        """What is missing, before anything is changed."""

    def tables(self) -> tuple[SourceTable, ...]:
        """The chosen tables as they are now."""

    def first_copy(self) -> AbstractContextManager[FirstCopy]:
        """From here on the source keeps its changes for this attempt, beside what it keeps for the one that the memory
        names. What other attempts left is taken away first."""

    def read(self, after: str, limit: int) -> Batch | LayoutChange:
        """The units of work after a position, about ``limit`` rows of them; or that a table is not what it was, if
        nothing comes before that. A driver raises SchemaChanged from wherever it finds that; whoever opens a source
        gets the value (``boundary``)."""

    def acknowledge(self, position: str) -> None:
        """Everything up to here is durable. Idempotent."""

    def order(self, position: str) -> int:
        """Grows along the source's log."""

    def withdraw(self, memory: Mapping[str, Any]) -> None:
        """Take away what the copy of this opening put there, and nothing else, unless it is the copy of the memory,
        which is what the catalog holds."""

    def tidy(self, memory: Mapping[str, Any]) -> None:
        """Take away what all attempts left but the one of the memory."""

    def remove(self) -> None:
        """Take away all that was put into the source. Idempotent."""

    def close(self) -> None: ...


class LeavesNothing:
    """A kind that puts nothing into its source."""

    def withdraw(self, memory: Mapping[str, Any]) -> None:
        """Nothing was put there."""

    def tidy(self, memory: Mapping[str, Any]) -> None:
        """Nothing was left there."""

    def remove(self) -> None:
        """Nothing is there."""
