"""A step of a view that is kept by a machine of ``compensate``: what it publishes becomes the view's delta.

Law: each publication is the view at its csn (``conversation``); between two of them the delta is one change, and the
stretch is coarse. Nothing else that the machine holds outlives the step: the next one begins at the last publication.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from rollview.algebra.natural_join import NaturalJoin
from rollview.compensate.maintainer import Requirement
from rollview.consistency.bags import Bag, Row
from rollview.consistency.history import Update
from rollview.core.interval import Csn, Interval
from rollview.core.phases import phase
from rollview.core.schema import SIGNED, Column, Schema
from rollview.errors import Retryable
from rollview.propagate.asked import check_names
from rollview.propagate.conversation import Conversation, ShownRows, no_rows
from rollview.propagate.messages import SourceMessages
from rollview.propagate.plan import PropagateStep
from rollview.relations.algorithm import KeptView, join_of, machine_of, waits_for_quiet
from rollview.relations.answers import Telling
from rollview.relations.reader import Reader
from rollview.store import timed
from rollview.store.folder import frame
from rollview.store.multiset import col
from rollview.types.arrow import table_of
from rollview.types.keys import has_keys

_IN_PROCESS = 200_000
"""Up to so many rows of the view are looked through here; of more Spark finds the ones that matter."""


@dataclass(frozen=True, slots=True)
class ToldDelta:
    """What a machine published: timed rows, the csn that it reached, and stretches inside of which nothing is told.
    ``problem``: why it went no further."""

    rows: pa.Table
    through: Csn
    coarse: tuple[Interval, ...] = ()
    problem: str | None = None


@phase("ask the sources")
def told_delta(reader: Reader, step: PropagateStep, lookup: Telling, *, due: bool, goes_on: bool) -> ToldDelta:
    """``due``: it has waited for quiet sources as long as it may. ``goes_on``: it may come to a later csn than the
    step's, where sources commit while it waits. Retryable if nothing could be published."""
    view = reader.snapshot.get(step.view)
    assert view.definition is not None
    join = join_of(reader.snapshot, KeptView(view.name, reader.plan(view.name), view.definition.properties))
    check_names(reader, step.view)
    machine = machine_of(view.definition.properties, join)
    tables = {table.relation: reader.snapshot.get(table.relation) for table in join.tables.values()}
    atomic = Requirement.ONE_SOURCE in machine.needs
    messages = SourceMessages(join, lookup, tables, step.interval.after, atomic)
    messages.begin()
    wanted = tuple(unit for unit in messages.captured if unit.csn <= step.interval.through)
    shown: ShownRows = partial(_known_rows, reader, step, join) if Requirement.KEYS in machine.needs else no_rows
    # ECA tells of every row that goes, also of those that it does not know.
    further = no_rows if atomic else shown
    quiet = waits_for_quiet(view)
    talk = Conversation(machine, messages, wanted, quiet=quiet, due=due, goes_on=goes_on, shown=further)
    problem = talk.run(shown([update for unit in wanted for part in unit.parts for update in part.updates]))
    if problem is not None and not talk.published:
        raise problem
    return _told(view.schema, join, step.interval, talk, problem)


def _known_rows(reader: Reader, step: PropagateStep, join: NaturalJoin, updates: Sequence[Update]) -> Bag:
    """Of the rows that the view shows, those that a unit can take away: they have the key of a row that changes."""
    schema = reader.snapshot.get(step.view).schema
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
    return frame(reader.spark, table_of(keys, named), named)


def _tuples(rows: pa.Table) -> Iterable[Row]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True) if rows.num_columns else ()


def _told(
    schema: Schema, join: NaturalJoin, interval: Interval, talk: Conversation, problem: Retryable | None
) -> ToldDelta:
    place = [join.view.shown.index(name) for name in join.outputs]
    changes: list[tuple[Any, ...]] = []
    after, coarse = interval.after, list[Interval]()
    for csn, changed in sorted(talk.published.items()):
        changes += [(*(row[i] for i in place), count, csn) for row, count in changed.items()]
        between = [one for one in talk.csns if after < one <= csn]
        coarse += [Interval(between[0] - 1, csn)] if len(between) > 1 else []
        after = csn
    through = max(after, interval.through) if problem is None else after
    return ToldDelta(
        typed_changes(schema, changes), through, tuple(coarse), None if problem is None else problem.message
    )


def typed_changes(schema: Schema, changes: list[tuple[Any, ...]]) -> pa.Table:
    return table_of(changes, Schema((*schema.columns, *SIGNED)))
