"""What commands show beyond the warehouse's own results: lists, one relation, rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rollview.core.interval import Csn
from rollview.core.schema import Column
from rollview.results import Result, plain

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from rollview.catalog import LedgerEntry, Relation, Snapshot, SourcePosition
    from rollview.results import (
        HeldTransaction,
        SourceStatus,
        SubscriberStatus,
        TablePlace,
        ValidTime,
        Verification,
        ViewCreated,
    )
    from rollview.subscribers.batch import ChangeBatch

Kind = Literal["table", "view"]


@dataclass(frozen=True, slots=True)
class RowSet(Result):
    """Rows of a table or query. ``rows`` may be read once only; ``more`` tells that the limit cut some off.
    ``places``: how far each table is in them, of a view that is weakly consistent."""

    columns: tuple[Column, ...]
    rows: Iterable[tuple[Any, ...]]
    more: bool = False
    places: tuple[TablePlace, ...] = ()

    def to_json(self) -> dict[str, Any]:
        names = self.keys()
        rows = [dict(zip(names, plain(row), strict=True)) for row in self.rows]
        return {"columns": plain(self.columns), "rows": rows, "more": self.more} | self.label()

    def label(self) -> dict[str, Any]:
        return {"consistency": "weak", "places": plain(self.places)} if self.places else {}

    def keys(self) -> tuple[str, ...]:
        """The columns' names, made different where a query gave two the same."""
        seen: dict[str, int] = {}
        return tuple(_numbered(column.name, seen) for column in self.columns)


@dataclass(frozen=True, slots=True)
class LayoutDelta(Result):
    """A view's changes over an interval through which it has one definition."""

    after: Csn
    through: Csn
    changes: RowSet


@dataclass(frozen=True, slots=True)
class LayoutDeltas(Result):
    layouts: tuple[LayoutDelta, ...]


@dataclass(frozen=True, slots=True)
class StatementAnswer(Result):
    """One statement's effect, or its rows."""

    kind: str
    table: str | None
    inserted: int
    deleted: int
    updated: int | None
    csn: int | None
    rows: RowSet | None

    def to_json(self) -> dict[str, Any]:
        effect = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "rows"}
        return effect | (self.rows.to_json() if self.rows else {})


@dataclass(frozen=True, slots=True)
class StatementAnswers(Result):
    statements: tuple[StatementAnswer, ...]


@dataclass(frozen=True, slots=True)
class ViewsCreated(Result):
    views: tuple[ViewCreated, ...]


@dataclass(frozen=True, slots=True)
class Dropped(Result):
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class RenameSaid(Result):
    table: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SourceList(Result):
    sources: tuple[SourceStatus, ...]


@dataclass(frozen=True, slots=True)
class SubscriberList(Result):
    subscribers: tuple[SubscriberStatus, ...]


@dataclass(frozen=True, slots=True)
class Pulled(Result):
    """A batch: changes over ``(after, through]``, or with ``full`` all rows at ``through``; None if nothing changed."""

    subscriber: str
    view: str
    after: int
    through: int
    full: bool
    rows: RowSet | None

    def to_json(self) -> dict[str, Any]:
        told = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "rows"}
        return told | (self.rows.to_json() if self.rows else {"columns": [], "rows": []})


@dataclass(frozen=True, slots=True)
class Positions(Result):
    """The TxnID vector of a csn."""

    csn: int
    sources: tuple[SourcePosition, ...]


@dataclass(frozen=True, slots=True)
class HeldList(Result):
    held: tuple[HeldTransaction, ...]


@dataclass(frozen=True, slots=True)
class Ledger(Result):
    entries: tuple[LedgerEntry, ...]


@dataclass(frozen=True, slots=True)
class Verified(Result):
    views: tuple[Verification, ...]


@dataclass(frozen=True, slots=True)
class RelationLine(Result):
    name: str
    columns: int
    rows: int | None
    csn: int
    reads: tuple[str, ...]
    comment: str | None


@dataclass(frozen=True, slots=True)
class RelationList(Result):
    kind: Kind
    relations: tuple[RelationLine, ...]


@dataclass(frozen=True, slots=True)
class RelationDetail(Result):
    """All that is known of one table or view; ``folder`` holds its Delta tables, one per part. ``sees``: columns that a
    view knows by former names. ``places``: of a view that is propagated table by table."""

    relation: Relation
    read_by: tuple[str, ...]
    folder: str
    valid: ValidTime
    sees: tuple[str, ...] = ()
    places: tuple[TablePlace, ...] = ()

    def to_json(self) -> dict[str, Any]:
        own: dict[str, Any] = plain(self.relation)
        own["schema"] = own["schema"]["columns"]
        for inner in ("versions", "until", "present", "places"):
            del own[inner]
        told = {"read_by": plain(self.read_by), "folder": self.folder, "valid": plain(self.valid)}
        more = {name: plain(value) for name, value in (("sees", self.sees), ("places", self.places)) if value}
        return own | told | more


def list_relations(kind: Kind, relations: Iterable[Relation]) -> RelationList:
    return RelationList(kind, tuple(_line(relation) for relation in relations))


def describe(
    snapshot: Snapshot,
    relation: Relation,
    folder: str,
    valid: ValidTime,
    sees: tuple[str, ...],
    places: tuple[TablePlace, ...] = (),
) -> RelationDetail:
    readers = tuple(reader.name for reader in snapshot.readers(relation.name))
    return RelationDetail(relation, readers, folder, valid, sees, places)


def pulled(batch: ChangeBatch | None, status: SubscriberStatus) -> Pulled:
    if batch is None:
        return Pulled(status.name, status.view, status.position, status.position, False, None)
    # Only a batch has types of Arrow.
    from rollview.types.arrow import spark_type

    columns = tuple(Column(field.name, spark_type(field.type)) for field in batch.rows.schema)
    rows = list(zip(*(column.to_pylist() for column in batch.rows.columns), strict=True))
    return Pulled(batch.subscriber, batch.view, batch.after, batch.through, batch.full, RowSet(columns, rows))


def fetch(frame: DataFrame, limit: int | None) -> RowSet:
    """The frame's rows: at most ``limit`` at once, or all of them one partition at a time."""
    if limit is None:
        return RowSet(_columns(frame), (tuple(row) for row in frame.toLocalIterator(prefetchPartitions=True)))
    return fetched_rows(frame, frame.limit(limit + 1).toArrow(), limit)


def fetched_rows(frame: DataFrame, table: pa.Table, limit: int) -> RowSet:
    """``table``: the frame's first rows, one more than ``limit`` where there are more."""
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return RowSet(_columns(frame), rows[:limit], more=len(rows) > limit)


def _columns(frame: DataFrame) -> tuple[Column, ...]:
    return tuple(Column(field.name, field.dataType.simpleString()) for field in frame.schema.fields)


def _line(relation: Relation) -> RelationLine:
    pin = relation.shown if relation.pins else None
    comment = relation.definition.comment if relation.definition else None
    rows, csn = (pin.rows if pin.is_kept else None, pin.through) if pin else (0, relation.created)
    return RelationLine(relation.name, len(relation.schema), rows, csn, relation.depends_on, comment)


def _numbered(name: str, seen: dict[str, int]) -> str:
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name}:{seen[name]}"
