"""A step of a view that is kept by a machine of ``compensate``: what it publishes becomes the view's delta.

Law: a machine hears units in the order of csns, and a publication counts only if what it reflects is all units up to a
csn and none after. So each is the view at that csn; between two of them the delta is one change, and the stretch is
coarse. Nothing else that the machine holds outlives the step: the next one begins at the last publication.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from rollview.algebra.natural_join import NaturalJoin
from rollview.compensate.courier import Courier
from rollview.compensate.maintainer import AskFor, Due, Heard, Publish, Reported, Requirement
from rollview.consistency.bags import EMPTY, Bag, Row, minus
from rollview.core.faults import reach
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.phases import phase
from rollview.core.schema import SIGNED, Column, Schema
from rollview.errors import Retryable
from rollview.propagate.asked import check_names
from rollview.propagate.messages import CapturedUnit, SourceMessages
from rollview.propagate.plan import PropagateStep
from rollview.relations.algorithm import KeptView, join_of, machine_of, waits_for_quiet
from rollview.relations.answers import Telling
from rollview.relations.reader import Reader
from rollview.store import timed
from rollview.store.folder import frame
from rollview.store.multiset import col
from rollview.types.arrow import arrow_schema
from rollview.types.keys import has_keys

_TRIES = 20
_PAUSE = 0.05
_IN_PROCESS = 200_000
"""Up to so many rows of the view are looked through here; of more Spark finds the ones that matter."""

Vector = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ToldDelta:
    """What a machine published: timed rows, the csn that it reached, and stretches inside of which nothing is told.
    ``problem``: why it went no further."""

    rows: pa.Table
    through: Csn
    coarse: tuple[Interval, ...] = ()
    problem: str | None = None


@phase("ask the sources")
def told_delta(reader: Reader, step: PropagateStep, lookup: Telling, *, due: bool) -> ToldDelta:
    """``due``: it has waited for quiet sources as long as it may. Retryable if nothing could be published."""
    view = reader.snapshot.get(step.view)
    assert view.definition is not None
    join = join_of(reader.snapshot, KeptView(view.name, reader.plan(view.name), view.definition.properties))
    check_names(reader, step.view)
    machine = machine_of(view.definition.properties, join)
    tables = {table.relation: reader.snapshot.get(table.relation) for table in join.tables.values()}
    atomic = Requirement.ONE_SOURCE in machine.needs
    messages = SourceMessages(join, lookup, tables, step.interval.after, atomic)
    messages.begin()
    wanted = [unit for unit in messages.captured if unit.csn <= step.interval.through]
    known = _known_rows(reader, step, join, wanted) if Requirement.KEYS in machine.needs else EMPTY
    talk = Conversation(machine, messages, tuple(wanted), quiet=waits_for_quiet(view), due=due)
    problem = talk.run(known)
    if problem is not None and not talk.published:
        raise problem
    return _told(view.schema, join, step.interval, talk, problem)


@dataclass(slots=True)
class Conversation:
    """One machine over the units that it has to publish. ``quiet``: it publishes when nothing is unanswered, so it must
    not hear of later units; ``due``: unless it has to be hurried over them."""

    machine: Courier
    messages: SourceMessages
    wanted: tuple[CapturedUnit, ...]
    quiet: bool
    due: bool
    published: dict[Csn, Bag] = field(default_factory=dict)
    """By csn, how the view's rows changed since the csn before it."""
    _shown: Bag = field(default_factory=dict)
    _state: Any = None
    _heard: dict[str, int] = field(default_factory=dict)
    _csns: dict[Vector, Csn] = field(default_factory=dict)
    _asks: list[AskFor] = field(default_factory=list)
    _tries: dict[int, int] = field(default_factory=dict)
    _later: list[Reported] = field(default_factory=list)
    """Units beyond the ledger that a machine which waits for quiet has not heard of."""

    @property
    def is_done(self) -> bool:
        return not self.wanted or self.wanted[-1].csn in self.published

    def run(self, known: Bag) -> Retryable | None:
        """Until all is published; else why not."""
        self._heard = dict.fromkeys(self.messages.join.view.sources, 0)
        self._shown, self._state = known, self.machine.begin(known, dict(self._heard))
        try:
            self._feed(self.wanted)
            if not self.quiet:
                self._feed(self.messages.captured[len(self.wanted) :])
            while not self.is_done:
                self._answer()
        except Retryable as problem:
            return problem
        return None

    def _feed(self, units: Iterable[CapturedUnit]) -> None:
        for unit in units:
            # Before the machine hears the last part it cannot publish the whole.
            vector = self._heard | {part.source: part.number for part in unit.parts}
            self._csns[frozenset(vector.items())] = unit.csn
            for part in unit.parts:
                self._hear(part)

    def _answer(self) -> None:
        """All that is asked of one source, at once."""
        source = self._asks[0].source
        asks = [ask for ask in self._asks if ask.source == source]
        self._asks = [ask for ask in self._asks if ask.source != source]
        for ask in asks:
            self._count(ask)
        units, answers = self.messages.answers(asks)
        reach("ask.answered")
        if not self.quiet:
            for unit in units:
                self._hear(unit)
            for answer in answers:
                self._hear(answer)
            return
        self._later += units
        if any(answer.seen.through > self._heard[source] for answer in answers):
            self._hurry()
            return
        for answer in answers:
            self._hear(answer)

    def _count(self, ask: AskFor) -> None:
        """An ask that is put again may meet a commit that is logged and cannot be seen yet."""
        tried = self._tries[ask.ask] = self._tries.get(ask.ask, 0) + 1
        if tried > _TRIES:
            raise Retryable(
                f"Source '{ask.source}' has not shown all that it has committed.", hint="The next refresh asks again."
            )
        if tried > 1:
            time.sleep(_PAUSE)

    def _hurry(self) -> None:
        """An answer saw units that the view is not to show yet."""
        if not self.due:
            raise Retryable(
                "The sources were not quiet: an answer shows commits that come after what is to be published.",
                hint="The next refresh asks again; 'rollview.publish_within' says how long it may wait.",
            )
        self.quiet = False
        self._feed(self.messages.captured[len(self.wanted) :])
        for unit in self._later:
            self._hear(unit)
        # What is unanswered is given up.
        self._asks = []
        self._hear(Due())

    def _hear(self, event: Heard) -> None:
        self._state, said = self.machine.on(self._state, event)
        if isinstance(event, Reported):
            self._heard[event.source] = event.number
        for one in said:
            if isinstance(one, AskFor):
                self._asks.append(one)
            else:
                self._take(one)

    def _take(self, told: Publish) -> None:
        """Versions that reflect a part of a unit, or units beyond the ledger, are nobody's business."""
        csn = None if told.through is None else self._csns.get(frozenset(told.through.items()))
        # What is told again of the same units is the middle of the next one.
        if csn is not None and csn not in self.published and self.wanted and csn <= self.wanted[-1].csn:
            self.published[csn] = minus(told.rows, self._shown)
            self._shown = told.rows


def _known_rows(reader: Reader, step: PropagateStep, join: NaturalJoin, units: Iterable[CapturedUnit]) -> Bag:
    """Of the rows that the view shows, those that a unit can take away: they have the key of a row that changes."""
    schema = reader.snapshot.get(step.view).schema
    updates = [update for unit in units for part in unit.parts for update in part.updates]
    wanted: list[tuple[Schema, frozenset[Row]]] = []
    for one in join.view.occurrences:
        at = [one.columns.index(name) for name in one.key]
        keys = frozenset(tuple(update.row[i] for i in at) for update in updates if update.table == one.name)
        wanted.append((schema.only([schema.names[join.outputs.index(name)] for name in one.key]), keys))
    rows = timed.few_rows(reader.stored(step.view), step.interval.after, _IN_PROCESS)
    if rows is None:
        rows = _found_by_spark(reader, step, wanted)
    else:
        has = [has_keys(rows, own.names, keys) for own, keys in wanted]
        rows = rows.filter(reduce(pc.or_, has))
    at = [join.outputs.index(name) for name in join.view.shown]
    return {tuple(told[i] for i in at): 1 for told in _tuples(rows.select(list(schema.names)))}


def _found_by_spark(reader: Reader, step: PropagateStep, wanted: Iterable[tuple[Schema, frozenset[Row]]]) -> pa.Table:
    shown = reader.rows(step.view, step.interval.after)
    found = []
    for own, keys in wanted:
        same = [col(name) == col(f"_rv_key_{name}") for name in own.names]
        found.append(shown.join(_frame(reader, own, keys), same, "left_semi"))
    return reduce(DataFrame.union, found).distinct().toArrow()


def _frame(reader: Reader, own: Schema, keys: frozenset[Row]) -> DataFrame:
    named = Schema(tuple(Column(f"_rv_key_{column.name}", column.type) for column in own))
    values = list(zip(*keys, strict=True)) or [()] * len(own.names)
    columns = [pa.array(list(some), type_) for some, type_ in zip(values, arrow_schema(named).types, strict=True)]
    return frame(reader.spark, pa.Table.from_arrays(columns, names=list(named.names)), named)


def _tuples(rows: pa.Table) -> Iterable[Row]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True) if rows.num_columns else ()


def _told(
    schema: Schema, join: NaturalJoin, interval: Interval, talk: Conversation, problem: Retryable | None
) -> ToldDelta:
    place = [join.view.shown.index(name) for name in join.outputs]
    changes: list[tuple[Any, ...]] = []
    after, coarse = interval.after, list[Interval]()
    csns = [unit.csn for unit in talk.wanted]
    for csn, changed in sorted(talk.published.items()):
        changes += [(*(row[i] for i in place), count, csn) for row, count in changed.items()]
        between = [one for one in csns if after < one <= csn]
        coarse += [Interval(between[0] - 1, csn)] if len(between) > 1 else []
        after = csn
    through = interval.through if talk.is_done else after
    return ToldDelta(
        typed_changes(schema, changes), through, tuple(coarse), None if problem is None else problem.message
    )


def typed_changes(schema: Schema, changes: list[tuple[Any, ...]]) -> pa.Table:
    whole = Schema((*schema.columns, *SIGNED))
    names, types = [*schema.names, COUNT, CSN], arrow_schema(whole).types
    columns = list(zip(*changes, strict=True)) or [()] * len(names)
    arrays = [pa.array(list(some), type_) for some, type_ in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=names)
