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
from pyspark.sql import DataFrame

from rollview.algebra.natural_join import NaturalJoin
from rollview.compensate.maintainer import Requirement
from rollview.consistency.bags import Bag, Row
from rollview.consistency.history import Update
from rollview.consistency.join_view import Occurrence
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
from rollview.relations.joined import JoinedQueries
from rollview.relations.reader import Reader
from rollview.store import timed
from rollview.store.folder import frame
from rollview.store.multiset import col
from rollview.types.arrow import table_of
from rollview.types.keys import has_keys

_IN_PROCESS = 200_000
"""Up to so many rows of the view are looked through here; of more Spark finds the ones that matter."""
_WANTED = "_rv_wanted_"


@dataclass(frozen=True, slots=True)
class ToldDelta:
    """What a machine published: timed rows, the csn that it reached, and stretches inside of which nothing is told.
    ``problem``: why it went no further. ``joined``: the propagation queries that gave it, if it was such."""

    rows: pa.Table
    through: Csn
    coarse: tuple[Interval, ...] = ()
    problem: str | None = None
    joined: JoinedQueries | None = None


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
    return _told(reader.stored(view.name).columns, join, step.interval, talk, problem)


@dataclass(frozen=True, slots=True)
class _RowsWanted:
    """Of the view's rows those in which ``columns`` have one of the keys, or one of them for each key."""

    columns: Schema
    keys: frozenset[Row]
    one_each: bool = False

    def among(self, rows: pa.Table) -> pa.Table:
        found = rows.filter(has_keys(rows, self.columns.names, self.keys))
        if not self.one_each:
            return found
        keys = zip(*(found[name].to_pylist() for name in self.columns.names), strict=True)
        return found.take(pa.array({key: place for place, key in enumerate(keys)}.values(), pa.int64()))


def _known_rows(reader: Reader, step: PropagateStep, join: NaturalJoin, updates: Sequence[Update]) -> Bag:
    """Of the rows that the view stores, those that a unit can take away, which have the key of a row that changes, and
    of those that show what a new row points at one each."""
    stored = reader.stored(step.view)
    wanted = [*_rows_wanted(stored.columns, join, updates)]
    rows = timed.few_rows(stored, step.interval.after, _IN_PROCESS)
    if rows is None:
        rows = _found_by_spark(reader, step, wanted)
    else:
        rows = pa.concat_tables([one.among(rows) for one in wanted])
    at = [join.outputs.index(name) for name in join.view.shown]
    names = list(stored.columns.names[: len(join.outputs)])
    return {tuple(told[i] for i in at): 1 for told in _tuples(rows.select(names))}


def _rows_wanted(schema: Schema, join: NaturalJoin, updates: Sequence[Update]) -> Iterable[_RowsWanted]:
    for one in join.view.occurrences:
        columns = schema.only([schema.names[join.outputs.index(name)] for name in one.key])
        changed = frozenset(_values(one, one.key, updates))
        yield _RowsWanted(columns, changed)
        if set(one.columns) <= set(join.view.shown):
            new = [update for update in updates if not update.is_delete]
            having = (other for other in join.view.occurrences if set(one.key) <= {*other.columns})
            pointed = frozenset(key for other in having for key in _values(other, one.key, new))
            yield _RowsWanted(columns, pointed - changed, one_each=True)


def _values(one: Occurrence, names: Sequence[str], updates: Iterable[Update]) -> Iterable[Row]:
    at = [one.columns.index(name) for name in names]
    return (tuple(update.row[i] for i in at) for update in updates if update.table == one.name)


def _found_by_spark(reader: Reader, step: PropagateStep, wanted: Iterable[_RowsWanted]) -> pa.Table:
    kept = reader.groups if reader.plan(step.view).keeps_keys else reader.rows
    shown = kept(step.view, step.interval.after)
    found = []
    for one in wanted:
        same = [col(name) == col(f"{_WANTED}{name}") for name in one.columns.names]
        rows = shown.join(_frame(reader, one.columns, one.keys), same, "left_semi")
        found.append(rows.dropDuplicates(list(one.columns.names)) if one.one_each else rows)
    return reduce(DataFrame.union, found).distinct().toArrow()


def _frame(reader: Reader, own: Schema, keys: frozenset[Row]) -> DataFrame:
    named = Schema(tuple(Column(f"{_WANTED}{column.name}", column.type) for column in own))
    return frame(reader.spark, table_of(keys, named), named)


def _tuples(rows: pa.Table) -> Iterable[Row]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True) if rows.num_columns else ()


def _told(
    schema: Schema, join: NaturalJoin, interval: Interval, talk: Conversation, problem: Retryable | None
) -> ToldDelta:
    """``schema``: of what is stored. Behind its columns a view that keeps hidden keys counts the rows of each: one."""
    place = [join.view.shown.index(name) for name in join.outputs]
    copies = (1,) * (len(schema.names) - len(join.outputs))
    changes: list[tuple[Any, ...]] = []
    after, coarse = interval.after, list[Interval]()
    for csn, changed in sorted(talk.published.items()):
        changes += [(*(row[i] for i in place), *copies, count, csn) for row, count in changed.items()]
        between = [heard for heard in talk.csns if after < heard <= csn]
        coarse += [Interval(between[0] - 1, csn)] if len(between) > 1 else []
        after = csn
    through = max(after, interval.through) if problem is None else after
    return ToldDelta(
        typed_changes(schema, changes), through, tuple(coarse), None if problem is None else problem.message
    )


def typed_changes(schema: Schema, changes: list[tuple[Any, ...]]) -> pa.Table:
    return table_of(changes, Schema((*schema.columns, *SIGNED)))
