"""Writing one propagation query: each node's delta and old state become named subqueries, written once.

Law: over an interval (a, b], ``delta(rel)`` is the timed delta of ``rel``, ``old(rel)`` is its state at a as signed
rows, and ``timed(rel)`` is both. Inputs are the stored relations' ``name@delta``, rows of (a, b] with ``_count`` ±1
and ``_csn``, ``name@old``, the state at a with ``_count`` ±1, and of small relations ``name@timed``, both of them. A
row that was there at a carries csn 0 wherever a csn is needed, so the text does not depend on the interval.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from sqlglot import exp

from rollview.algebra.expressions import column, gathered, identifier, select, table
from rollview.core.names import COUNT, CSN

InputForm = Literal["delta", "old", "timed", "rows"]
"""In which form a query reads a relation: its changes over the interval, its signed state before it, both of them, its
plain rows."""

DELTA_SUFFIX = "@delta"
OLD_SUFFIX = "@old"
TIMED_SUFFIX = "@timed"
AT_ONCE_ROWS = 2_000
"""Up to here, changes included, a stored relation is joined whole: planning how not to costs more than its rows, and
so do the rows of a join of two by a column with few values."""
ONE_TASK_ROWS = 200_000
"""Up to here a stored relation is read by one task in less time than an exchange between tasks takes."""

FEW_ROWS = 10_000
"""Up to here all rows of a relation are looked at, which saves finding out first which are concerned."""


@dataclass(frozen=True, slots=True)
class Motion:
    """What is known of a relation's changes in the interval, before looking at them."""

    changed: bool = True
    deletes: bool = True
    updates: bool = True
    one_csn: bool = False
    """All its changes are of one unit of work."""


@dataclass(frozen=True, slots=True)
class TermNote:
    """One term of a join's delta: the relation whose delta starts it, and what became of it."""

    relation: str
    kept: bool
    reason: str


class ScriptNode(Protocol):
    """What a script asks of an operator."""

    @property
    def inputs(self) -> tuple[ScriptNode, ...]: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def delta(self, script: Script) -> exp.Query | exp.Table: ...

    def old(self, script: Script) -> exp.Query | exp.Table: ...

    def timed(self, script: Script) -> exp.Query | exp.Table: ...


@runtime_checkable
class StoredInput(Protocol):
    """A relation whose delta and state are inputs."""

    @property
    def relation(self) -> str: ...


@dataclass(slots=True)
class Script:
    """The subqueries written so far."""

    motion: Mapping[str, Motion] = field(default_factory=dict)
    small: bool = True
    """The deltas are few enough to be handled in one piece and to be sent to every executor."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Rows of a stored relation, where known."""
    closed: frozenset[tuple[str, str]] = frozenset()
    """(child, parent): every key that the child's delta refers to is touched in the parent's delta."""
    absent: frozenset[str] = frozenset()
    """Relations whose state is not there, not even to tell the types of its columns."""
    many: bool = False
    """The changes lie at many csns, so that keys may have been touched at many of them."""
    moving: str | None = None
    """The one relation whose changes are wanted. Every relation has an interval of its own then: what others changed is
    read as rows that are there, each with its csn."""
    counts_add_up: bool = False
    """Nobody above a join takes its rows for single copies: their counts are only multiplied and added."""
    subqueries: dict[str, exp.Query] = field(default_factory=dict)
    notes: list[TermNote] = field(default_factory=list)
    inputs: set[tuple[str, InputForm]] = field(default_factory=set)
    _written: dict[object, str] = field(default_factory=dict)

    def motion_of(self, relation: str) -> Motion:
        return self.motion.get(relation, Motion())

    def changed(self, rel: ScriptNode) -> bool:
        return any(self.motion_of(relation).changed for relation in _stored_below(rel))

    def starts(self, rel: ScriptNode) -> bool:
        """Whether its changes begin a term."""
        if self.moving is None:
            return self.changed(rel)
        return self.moving in _stored_below(rel) and self.motion_of(self.moving).changed

    def is_absent(self, rel: ScriptNode) -> bool:
        return any(relation in self.absent for relation in _stored_below(rel))

    def is_small(self, rel: ScriptNode) -> bool:
        """Whether all rows that it is made of are few, before and after the interval."""
        return not self.is_absent(rel) and all(
            self.sizes.get(relation, AT_ONCE_ROWS + 1) <= AT_ONCE_ROWS for relation in _stored_below(rel)
        )

    def delta(self, rel: ScriptNode) -> str:
        """Name of the timed delta: the node's columns, ``_count`` and ``_csn``."""
        return self.once((rel, "delta"), f"{_kind(rel)}_delta", lambda: rel.delta(self))

    def old(self, rel: ScriptNode) -> str:
        """Name of the state at the interval's start: the node's columns and ``_count``."""
        return self.once((rel, "old"), f"{_kind(rel)}_old", lambda: rel.old(self))

    def timed(self, rel: ScriptNode) -> str:
        """Name of the state at the interval's start, at csn 0, with the delta: as ``delta``."""
        return self.once((rel, "timed"), f"{_kind(rel)}_timed", lambda: rel.timed(self))

    def input(self, relation: str, what: InputForm) -> exp.Table:
        """A stored relation's ``delta``, ``old`` or ``timed``."""
        self.inputs.add((relation, what))
        return table(f"{relation}@{what}")

    def gathered_delta(self, rel: ScriptNode) -> str:
        """The same as ``delta``, brought into one piece if all that it reads is quick to read."""
        name = self.delta(rel)
        if not self._old_inputs or not self.reads_little:
            return name
        columns = [column(None, one) for one in (*rel.columns, COUNT, CSN)]
        return self.add("gathered", gathered(select(*columns).from_(table(name))))

    @property
    def reads_little(self) -> bool:
        """Whether one task may read all that was asked for so far."""
        return self.small and all(self.sizes.get(name, sys.maxsize) <= ONE_TASK_ROWS for name in self._old_inputs)

    def reads_few(self, rel: ScriptNode) -> bool:
        """Whether all rows of it are so few that to look for some of them would take longer."""
        return self.small and all(self.sizes.get(name, sys.maxsize) <= FEW_ROWS for name in _stored_below(rel))

    @property
    def _old_inputs(self) -> list[str]:
        return [relation for relation, what in self.inputs if what == "old"]

    def add(self, name: str, query: exp.Query) -> str:
        """Keep a subquery under a name no other has."""
        name = name.replace("@", "_")
        unique, n = name, 1
        while unique in self.subqueries:
            n += 1
            unique = f"{name}_{n}"
        self.subqueries[unique] = query
        return unique

    def finish(self, query: exp.Query) -> exp.Query:
        """The query with all subqueries in front."""
        for name, subquery in reversed(self.subqueries.items()):
            query = query.with_(identifier(name), as_=subquery, append=True, copy=False)
        with_ = query.args.get("with_")
        if with_ is not None:
            with_.set("expressions", list(reversed(with_.expressions)))
        return query

    def once(self, key: object, name: str, write: Callable[[], exp.Query | exp.Table]) -> str:
        """The name of what is written at the first call with this key: a subquery, or a table that is there anyway."""
        if key not in self._written:
            written = write()
            self._written[key] = written.name if isinstance(written, exp.Table) else self.add(name, written)
        return self._written[key]


def _stored_below(rel: ScriptNode) -> Iterator[str]:
    if isinstance(rel, StoredInput):
        yield rel.relation
    for child in rel.inputs:
        yield from _stored_below(child)


def _kind(rel: ScriptNode) -> str:
    return type(rel).__name__.lower()
