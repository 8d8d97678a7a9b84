"""What the catalog knows, as plain values.

Law: a ``Snapshot`` is one moment of the whole catalog; two things read from it were true together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from rollview import errors
from rollview.core.interval import ENDLESS, Csn, Interval
from rollview.core.names import RESERVED_PREFIX
from rollview.core.schema import Column, Constraints, Schema
from rollview.core.states import SourceState, ViewState

StepKind = Literal[
    "propagate",
    "apply",
    "fold",
    "commit",
    "create",
    "adapt",
    "drop",
    "recompute",
    "merge",
    "compress",
    "prune",
    "sweep",
    "copy",
    "capture",
    "release",
    "spool",
]
StepStatus = Literal["running", "abandoned", "done", "undone", "failed"]


class RelationKind(StrEnum):
    TABLE = "table"
    VIEW = "view"


class Part(StrEnum):
    STATE = "state"
    EXTENT = "extent"
    DELTA = "delta"
    GROUPS = "groups"
    BRIDGE = "bridge"


NOT_KEPT = -1
"""The version of a table's state that is not here: nobody reads more of the table than its changes."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The one version of a part that exists for readers.

    A delta part is complete over ``(after, through]``; for every other part both are the csn of its rows.
    """

    part: Part
    version: int
    after: Csn
    through: Csn
    rows: int

    @property
    def is_kept(self) -> bool:
        return self.version != NOT_KEPT


OpenQueries = Mapping[str, Sequence[Sequence[Csn]]]


@dataclass(frozen=True, slots=True)
class PlaceInDelta:
    """How far a table's changes are in a view's delta, and when they came there. ``queries``: by where the view's text
    names it, the (after, through, seen) that may have to be compensated; None where no such queries were run."""

    csn: Csn
    moved: datetime
    queries: OpenQueries | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A view's text, and facts found when it was created that only the stages understand."""

    query: str
    columns: tuple[str, ...]
    comment: str | None
    properties: Mapping[str, str]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredParts:
    """Where rows and changes of a view are that later ones have not replaced. ``is_shown``: the view was rolled to a
    csn of these, and readers find it there."""

    folder: str
    pins: Mapping[Part, Pin]
    coarse: tuple[Interval, ...]
    is_shown: bool = False


@dataclass(frozen=True, slots=True)
class DefinitionVersion:
    """The definition that a view has from csn ``csn`` on, up to the next one, and why.

    ``anew``: its rows are not told by those of the version before. ``pending``: the view has no rows of it yet.
    ``stored``: where its rows are; None: where the view's present ones are.
    """

    csn: Csn
    definition: Definition
    schema: Schema
    depends_on: tuple[str, ...]
    why: str
    recorded: datetime
    anew: bool = False
    pending: bool = False
    stored: StoredParts | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that a captured table has here for what its source did after ``position``, and why these."""

    csn: Csn
    position: str
    schema: Schema
    reason: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A base table or a view. It cannot be read strictly inside a ``coarse`` interval; a ``problem`` stops it.

    ``source``: the name of the source that a table is captured from; None for a local one. ``layouts``: all that it has
    had, the oldest first. ``state``: what stops a view beyond a ``problem``. ``replaced``: csns at which a table of
    which no rows were kept got new ones: its delta does not tell what changed there, and its rows can be read from the
    last of them on. ``places``: tables whose changes have come further into a view's delta than its mark, or had once.
    ``versions``: the definitions of a view that has had several; what else is said here is of the
    newest with rows, and holds before csn ``until``.
    """

    id: int
    name: str
    kind: RelationKind
    schema: Schema
    constraints: Constraints
    definition: Definition | None
    depends_on: tuple[str, ...]
    folder: str
    created: Csn
    pins: Mapping[Part, Pin]
    coarse: tuple[Interval, ...]
    problem: str | None
    source: str | None = None
    state: ViewState | None = None
    layouts: tuple[Layout, ...] = ()
    replaced: tuple[Csn, ...] = ()
    versions: tuple[DefinitionVersion, ...] = ()
    until: Csn | None = None
    places: Mapping[str, PlaceInDelta] = field(default_factory=dict)
    present: StoredParts | None = None
    """Where the view's present rows are, if this is of an earlier definition."""

    @property
    def is_kept(self) -> bool:
        """Whether its rows are here, and not only its changes."""
        return Part.STATE not in self.pins or self.pins[Part.STATE].is_kept

    @property
    def waits_at(self) -> Csn | None:
        """Of a captured table whose rows cannot be told any more: the last csn at which they could. ``problem`` says
        why, and its last coarse stretch has no end yet."""
        return next((stretch.after for stretch in self.coarse if stretch.through == ENDLESS), None)

    @property
    def shown(self) -> Pin:
        """The pin of the rows that a reader sees: a table's state, a view's extent, be it of an earlier definition."""
        pins = self.pins if self.rolled is None else self.rolled.pins
        return pins[Part.STATE if self.kind is RelationKind.TABLE else Part.EXTENT]

    @property
    def rolled(self) -> StoredParts | None:
        """The parts of an earlier definition, if the view was rolled to a csn of that."""
        stored = (version.stored for version in self.versions)
        return next((one for one in stored if one is not None and one.is_shown), None)

    @property
    def readable_from(self) -> Csn:
        """The csn of the last full copy: rows before it cannot be read."""
        return max(self.replaced, default=0)

    @property
    def depends_next(self) -> tuple[str, ...]:
        """What it reads, and what the definition reads that it is to get."""
        pending = self.pending
        return self.depends_on if pending is None else tuple(dict.fromkeys((*self.depends_on, *pending.depends_on)))

    def depends_from(self, csn: Csn) -> tuple[str, ...]:
        """What it reads from a csn on."""
        pending = self.pending
        return self.depends_next if pending is None or pending.csn > csn else pending.depends_on

    @property
    def depends_ever(self) -> tuple[str, ...]:
        """What any of its definitions reads."""
        reads = (read for version in self.versions for read in version.depends_on)
        return tuple(dict.fromkeys((*self.depends_on, *reads)))

    @property
    def parts(self) -> tuple[StoredParts, ...]:
        """All that is stored of it, by folder: the present rows, and those of earlier definitions."""
        present = self.present or StoredParts(self.folder, self.pins, self.coarse)
        earlier = (version.stored for version in self.versions if version.stored is not None)
        return tuple({one.folder: one for one in (present, *earlier)}.values())

    @property
    def pending(self) -> DefinitionVersion | None:
        """The definition that the view is to get next, and has no rows of."""
        return next((version for version in self.versions if version.pending), None)

    def at(self, csn: Csn) -> Relation:
        """A view with the definition that it has at a csn, as far as it has rows: its columns, what it reads, its
        parts."""
        place = max((i for i, v in enumerate(self.versions) if v.csn <= csn and not v.pending), default=0)
        following = self.versions[place + 1 : place + 2]
        if not self.versions or self.until == (until := following[0].csn if following else None):
            return self
        version = self.versions[place]
        present = self.present or StoredParts(self.folder, self.pins, self.coarse)
        parts = version.stored or present
        return replace(
            self,
            schema=version.schema,
            definition=version.definition,
            depends_on=version.depends_on,
            folder=parts.folder,
            pins=parts.pins,
            coarse=parts.coarse,
            created=version.csn,
            until=until,
            present=present,
        )

    @property
    def newest(self) -> Relation:
        """With the newest definition of which it has rows."""
        return self.at(sys.maxsize)

    def schema_at(self, csn: Csn) -> Schema:
        """The columns that the relation had for whoever worked at that csn."""
        return next((layout.schema for layout in reversed(self.layouts) if layout.csn <= csn), self.schema)

    @property
    def former(self) -> tuple[tuple[Column, Csn], ...]:
        """Columns that it has no more, and the csns at which they were dropped. Their values are in its files, under
        names that no other column has; those of a captured table are not kept."""
        layouts = self.layouts if self.source is None else ()
        gone: dict[str, tuple[Column, Csn]] = {}
        for before, after in pairwise(layouts):
            left = {column.stored for column in after.schema}
            gone |= {column.stored: (column, after.csn) for column in before.schema if column.stored not in left}
        return tuple(gone.values())

    @property
    def copied(self) -> Schema:
        """All columns that its files may hold: who copies rows from file to file keeps them."""
        hidden = (replace(c, name=f"{RESERVED_PREFIX}{c.stored}", place=c.stored) for c, _ in self.former)
        return Schema((*self.schema.columns, *hidden))


@dataclass(frozen=True, slots=True)
class MissedCommits:
    """How many commits something lacks, and when the first of them came; how many were made lately, lacking or not."""

    commits: int
    oldest: datetime | None
    lately: int


NOTHING_MISSED = MissedCommits(0, None, 0)


@dataclass(frozen=True, slots=True)
class Moment:
    csn: Csn
    time: datetime


class Change(NamedTuple):
    """How many rows of one relation a unit of work changed, before it has a csn."""

    relation: str
    inserted: int
    deleted: int
    updated: int | None = None


@dataclass(frozen=True, slots=True)
class ChangeCount:
    """``updated`` counts keys both deleted and inserted; None where the relation has no key."""

    relation: str
    csn: Csn
    inserted: int
    deleted: int
    updated: int | None


@dataclass(frozen=True, slots=True)
class UnitPart:
    """What one source committed as its own part of a unit of work."""

    source: str
    position: str
    transaction: str
    source_time: datetime


@dataclass(frozen=True, slots=True)
class NewUnit:
    """A unit of work before it has a csn. ``effective``: when it counts as committed; None: when it gets its csn."""

    parts: tuple[UnitPart, ...]
    changes: tuple[Change, ...]
    effective: datetime | None = None
    global_id: str | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One committed unit of work. ``parts``: those of a global transaction beyond the first.

    ``effective``: when it counts as committed. A source's never goes back, whatever its own clock did.
    """

    csn: Csn
    source: str
    position: str
    transaction: str
    source_time: datetime
    ledger_time: datetime
    changes: tuple[ChangeCount, ...]
    effective: datetime | None = None
    global_id: str | None = None
    parts: tuple[UnitPart, ...] = ()
    schema: tuple[str, ...] = ()
    """Changes of columns that belong to it."""


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """How far a csn covers one source: its newest unit of work up to there. ``csn`` 0: none yet."""

    source: str
    csn: Csn
    position: str | None
    time: datetime | None


@dataclass(frozen=True, slots=True)
class CapturedTable:
    """A relation and what the source calls it."""

    relation: str
    remote: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A bad row where it is kept, under the relation's name and with the position at which it came or went."""

    source: str
    relation: str
    position: str
    column: str
    reason: str
    row: str
    count: int
    taken: datetime


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """An outside database. Every unit of work up to ``position`` is in the ledger, and none after it.

    ``problem`` says why it is in a ``state`` other than active.
    ``memory`` is what its kind has to know at that position; ``settings`` hold references to secrets, never secrets.
    ``health`` is what was last seen of it: how far behind it is, and when it is tried again.
    ``known``: everything that it committed by then is in the ledger; ``latest``: when its newest unit of work counts as
    committed.
    """

    id: int
    name: str
    kind: str
    settings: Mapping[str, Any]
    state: SourceState
    position: str | None
    memory: Mapping[str, Any]
    problem: str | None
    read: datetime | None
    tables: tuple[CapturedTable, ...]
    known: datetime | None = None
    latest: datetime | None = None
    health: Mapping[str, Any] = field(default_factory=dict)


Choice = Literal["wait", "release"]


@dataclass(frozen=True, slots=True)
class HeldPart:
    """A part of a global transaction that keeps its source waiting. ``missing``: the sources whose parts have not come,
    or how many. ``decision``: what somebody chose, and when."""

    source: str
    global_id: str
    position: str
    since: datetime
    missing: tuple[str, ...]
    decision: Choice | None = None
    decided: datetime | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of work of a stage, and the folders it writes to.

    ``tokens``: those of the leases it was begun under. ``expires``: while it runs, when it counts as abandoned
    unless its process gives a sign of life.
    """

    id: int
    relation: str
    kind: StepKind
    interval: Interval
    status: StepStatus
    started: datetime
    finished: datetime | None
    owner: str
    folders: tuple[str, ...]
    profile: Mapping[str, Any]
    tokens: Mapping[str, int] = field(default_factory=dict)
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReaderRecord:
    """An answer that reads files: since when, of which relations, by which ways; what it should take, and took."""

    id: int
    csn: Csn
    ways: Mapping[str, str]
    relations: frozenset[str]
    expected_seconds: float
    seconds: float | None
    owner: str
    begun: datetime
    ended: datetime | None


@dataclass(frozen=True, slots=True)
class Identity:
    """The warehouse whose data the catalog describes, and how many steps it has ever begun.

    ``previous``: the id that the data carried before, until they carry this one.
    """

    warehouse: str
    previous: str | None
    begun: int


@dataclass(frozen=True, slots=True)
class LeaseInfo:
    thing: str
    owner: str
    token: int
    acquired: datetime
    expires: datetime


@dataclass(frozen=True, slots=True)
class SubscriberRecord:
    """Somebody outside who has the changes of a view up to ``position``.

    ``full``: all rows at the position come first. ``offered``: where the batch ends that was handed out last.
    ``warehouse``, ``folder`` and ``schema`` tell the history to which the position belongs, and ``token`` how often it
    was begun anew. ``sink``: where changes are delivered to, a secret in it by reference; None for who pulls.
    """

    id: int
    name: str
    view: str
    warehouse: str
    folder: str
    schema: Schema
    token: str
    position: Csn
    full: bool
    offered: Csn | None
    sink: str | None
    added: datetime
    moved: datetime | None
    problem: str | None


def folded(name: str) -> str:
    """Names that differ only in case name the same relation, as in Spark."""
    return name.lower()


@dataclass(frozen=True, slots=True)
class Snapshot:
    moment: Moment
    relations: Mapping[str, Relation]

    def at(self, csn: Csn) -> Snapshot:
        """The same with views as they are defined at a csn."""
        changed = {name: then for name, now in self.relations.items() if (then := now.at(csn)) is not now}
        return replace(self, relations={**self.relations, **changed}) if changed else self

    @property
    def newest(self) -> Snapshot:
        return self.at(sys.maxsize)

    def find(self, name: str) -> Relation | None:
        exact = self.relations.get(name)
        if exact is not None:
            return exact
        wanted = folded(name)
        return next((r for r in self.relations.values() if folded(r.name) == wanted), None)

    def get(self, name: str) -> Relation:
        relation = self.find(name)
        if relation is None:
            raise errors.NotFound("table or view", name, hint=self._close_to(name))
        return relation

    def view(self, name: str) -> Relation:
        relation = self.get(name)
        if relation.kind is not RelationKind.VIEW:
            raise errors.UsageError(f"'{relation.name}' is a table, not a view.")
        return relation

    def tables(self) -> tuple[Relation, ...]:
        """All that are there; one that was dropped and is read at earlier csns has no columns."""
        return tuple(r for r in self.relations.values() if r.kind is RelationKind.TABLE and len(r.schema))

    def views(self) -> tuple[Relation, ...]:
        """All views, each after everything it reads."""
        sorter = TopologicalSorter({r.name: r.depends_ever for r in self.relations.values()})
        try:
            ordered = [self.relations[name] for name in sorter.static_order()]
        except CycleError as error:
            raise errors.Corrupt(
                f"The catalog holds views that read each other: {' → '.join(error.args[1])}."
            ) from None
        return tuple(r for r in ordered if r.kind is RelationKind.VIEW)

    def readers(self, name: str) -> tuple[Relation, ...]:
        """The views whose definitions name this relation."""
        own = self.get(name).name
        return tuple(r for r in self.relations.values() if own in r.depends_next)

    def below(self, name: str) -> tuple[Relation, ...]:
        """All that a relation reads, at any depth; each once."""
        return _reached(self.get(name), lambda relation: [self.get(read) for read in relation.depends_next])

    def above(self, name: str) -> tuple[Relation, ...]:
        """The views that read a relation, at any depth; each once."""
        return _reached(self.get(name), lambda relation: self.readers(relation.name))

    def tables_of(self, relation: Relation) -> frozenset[str]:
        """The tables that a relation rests on; a table rests on itself."""
        return frozenset((relation.name,)) if relation.kind is RelationKind.TABLE else self.tables_below(relation)

    def tables_below(self, view: Relation) -> frozenset[str]:
        """The base tables that a view rests on, at any depth."""
        return frozenset(lower.name for lower in self.below(view.name) if lower.kind is RelationKind.TABLE)

    def waits_for(self, relation: Relation) -> Relation | None:
        """The table that waits, of those that a relation rests on: it goes no further than that one. What it reads only
        by a definition that ends there does not hold it."""
        waiting = [(table, table.waits_at) for table in self.relations.values() if table.waits_at is not None]
        return next((table for table, at in waiting if self._rests_on(relation, table, at + 1)), None)

    def _rests_on(self, relation: Relation, table: Relation, csn: Csn) -> bool:
        """Whether it reads a table at that csn or later, at any depth; a table rests on itself."""
        reached = _reached(relation, lambda one: [self.get(read) for read in one.depends_from(csn)])
        return any(one.name == table.name for one in (relation, *reached))

    def _close_to(self, name: str) -> str | None:
        known = {folded(own): own for own in self.relations}
        close = get_close_matches(folded(name), known, n=3)
        return f"Did you mean {' or '.join(repr(known[c]) for c in close)}?" if close else None


def _reached(start: Relation, ahead: Callable[[Relation], Iterable[Relation]]) -> tuple[Relation, ...]:
    found: dict[str, Relation] = {}
    waiting = [start]
    while waiting:
        for relation in ahead(waiting.pop()):
            if relation.name not in found:
                found[relation.name] = relation
                waiting.append(relation)
    return tuple(found.values())
