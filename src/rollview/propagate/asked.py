"""Tables that are not copied: the rows that a step can need of them, asked for by keys.

Law: over an interval (a, b] a stand-in is a part of its table's state at a, with every row in it that can meet a
change of the interval in an inner join. The propagation query over stand-ins is then the one over whole states. In a
box each table has an interval of its own, and the same holds of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from rollview.algebra.natural_join import NaturalJoin
from rollview.algebra.routes import KeyHop, KeyRoute, NotAskableError, asked_columns, routes
from rollview.algebra.view import Mode, ViewPlan
from rollview.catalog import Relation, RelationKind, Snapshot
from rollview.core.faults import reach
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT
from rollview.core.phases import phase
from rollview.core.schema import SIGNED, Column, Schema
from rollview.core.states import Policy
from rollview.errors import Retryable, UsageError
from rollview.propagate.create import ViewToCreate
from rollview.propagate.plan import PropagateStep
from rollview.relations.algorithm import SWEEP, KeptView, algorithm_of, join_of, max_rows, publish_within
from rollview.relations.maintenance import asks_for
from rollview.relations.open_queries import find_join
from rollview.relations.plans import recomputes
from rollview.relations.reader import Reader, StandIn
from rollview.relations.rolling import turns_in
from rollview.store import timed
from rollview.store.folder import frame
from rollview.store.multiset import col
from rollview.types.arrow import arrow_schema, table_of
from rollview.types.keys import Key, has_keys, keys_in

_WIDE = dict.fromkeys(("int", "smallint", "tinyint"), "bigint")

Keys = frozenset[Key]


class Lookup(Protocol):
    """Whoever asks the sources."""

    def rows(self, relation: Relation, equal: tuple[str, ...], keys: Keys, at: Csn) -> pa.Table:
        """Rows at a csn whose ``equal`` columns have one of the keys, every copy by itself."""

    def stream(self, relation: Relation, at: Csn) -> StandIn:
        """All rows at a csn; the files are there until the lookup is closed."""


@phase("ask the sources")
def stand_ins(reader: Reader, step: PropagateStep, lookup: Lookup) -> Mapping[str, StandIn]:
    """What is read in place of the states that are not here."""
    check_names(reader, step.view)
    if step.mode is Mode.WHOLE:
        return whole_stand_ins(reader, step.asked, step.interval.through, lookup)
    found = {name: _Asked(reader.snapshot.get(name), step.interval_of(name).after, lookup) for name in step.asked}
    for route in routes(reader.plan(step.view), step.asked):
        if step.motion[route.relation].changed:
            _follow(reader, route, step, found)
    return {name: StandIn(one.at, one.together) for name, one in found.items()}


def check_names(reader: Reader, view: str) -> None:
    """A view that knows columns of a table by names of before cannot ask for them by those."""
    for known in reader.plan(view).reads:
        now = {(column.name, column.stored) for column in reader.snapshot.get(known.name).schema}
        gone = [column.name for column in known.schema if (column.name, column.stored) not in now]
        if gone:
            raise Retryable(
                f"Rows cannot be asked for: column '{gone[0]}' of table '{known.name}' is called otherwise now.",
                hint=f"Create view '{view}' anew with CREATE OR REPLACE MATERIALIZED VIEW.",
            )


def whole_stand_ins(reader: Reader, names: Iterable[str], at: Csn, lookup: Lookup) -> Mapping[str, StandIn]:
    """All rows of tables that are not here."""
    return {name: lookup.stream(reader.snapshot.get(name), at) for name in sorted(names)}


@dataclass(slots=True)
class _Asked:
    """What was asked of one table so far. No row is there twice, however many keys it has."""

    relation: Relation
    at: Csn
    lookup: Lookup
    known: dict[tuple[str, ...], Keys] = field(default_factory=dict)
    pieces: list[pa.Table] = field(default_factory=list)

    def rows(self, equal: tuple[str, ...], keys: Keys) -> pa.Table:
        missing = keys - self.known.get(equal, frozenset())
        if missing:
            found = self.lookup.rows(self.relation, equal, missing, self.at)
            reach("ask.answered")
            for other, there in self.known.items():
                if other != equal:
                    found = found.filter(pc.invert(has_keys(found, other, there)))
            self.pieces.append(found)
            self.known[equal] = self.known.get(equal, frozenset()) | missing
        everything = self.together
        return everything.filter(has_keys(everything, equal, keys))

    @property
    def together(self) -> pa.Table:
        return pa.concat_tables([_nothing(self.relation), *self.pieces])


def _nothing(relation: Relation) -> pa.Table:
    columns = arrow_schema(Schema((*relation.schema.columns, SIGNED[0])))
    return columns.empty_table().rename_columns([*relation.schema.names, COUNT])


def _follow(reader: Reader, route: KeyRoute, step: PropagateStep, asked: Mapping[str, _Asked]) -> None:
    """KeyHop by hop: the keys that are known of one place are those that are asked for at the next."""
    needed = {hop.known: _columns(route.hops, hop.known) for hop in route.hops}
    if route.place not in needed:
        return
    changed = _changed(reader, route.relation, needed[route.place], step.interval_of(route.relation))
    known = {route.place: changed}
    for hop in route.hops:
        keys = keys_in(known[hop.known], hop.columns)
        wanted = needed.get(hop.place, ())
        if hop.relation in asked:
            known[hop.place] = asked[hop.relation].rows(hop.equal, keys).select(list(wanted))
        else:
            known[hop.place] = _copied(reader, hop, keys, wanted, step.interval_of(hop.relation).after)


def _columns(hops: Sequence[KeyHop], place: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for hop in hops if hop.known == place for name in hop.columns))


def _changed(reader: Reader, name: str, columns: tuple[str, ...], interval: Interval) -> pa.Table:
    if reader.snapshot.get(name).kind is RelationKind.TABLE:
        return timed.loaded_changes(reader.stored(name), interval).select(list(columns))
    return _collected(reader.changes(name, interval), columns)


def _copied(reader: Reader, hop: KeyHop, keys: Keys, wanted: tuple[str, ...], at: Csn) -> pa.Table:
    """The columns that go on from rows of a relation that is here."""
    columns = reader.snapshot.get(hop.relation).schema.only(hop.equal)
    # A key may be too large for the column.
    own = Schema(tuple(Column(f"_rv_key_{n}", _WIDE.get(c.type, c.type)) for n, c in enumerate(columns)))
    rows, there = reader.signed(hop.relation, at), frame(reader.spark, table_of(keys, own), own)
    same = [col(ours) == col(theirs) for ours, theirs in zip(columns.names, own.names, strict=True)]
    return _collected(rows.join(there, same, "left_semi"), wanted)


def _collected(rows: Any, columns: tuple[str, ...]) -> pa.Table:
    found = rows.select(*map(col, columns)).distinct().collect()
    return pa.Table.from_pydict({name: [row[place] for row in found] for place, name in enumerate(columns)})


class ChecksKeys(Protocol):
    def check(self, relation: Relation, equal: tuple[str, ...]) -> None:
        """Refuse columns by which the source cannot be asked."""


@dataclass(frozen=True, slots=True)
class ViewToKeep:
    """A view as it is declared, and what it would be kept by."""

    name: str
    plan: ViewPlan
    properties: Mapping[str, str]
    policy: Policy


def missing(snapshot: Snapshot, view: ViewToCreate) -> frozenset[str]:
    """The tables whose rows are not here, where the view begins."""
    below = map(snapshot.get, view.depends_on)
    return frozenset(lower.name for lower in below if not lower.is_kept or lower.readable_from > view.at)


def check_asked(snapshot: Snapshot, view: ViewToKeep, tables: frozenset[str], sources: ChecksKeys) -> None:
    """Refuse a view that could not be kept by asking. ``tables``: those whose rows stay at their sources."""
    join = _join(snapshot, view)
    below = [snapshot.get(relation.name) for relation in view.plan.reads]
    captured = frozenset(lower.name for lower in below if lower.source is not None)
    wanted = asks_for(view.plan, view.properties, tables) & captured
    if not wanted:
        return
    try:
        found = _key_routes(view, wanted)
    except NotAskableError as refusal:
        raise UsageError(
            f"View '{view.name}' cannot be kept by asking for rows of {_listed(wanted)}: {refusal}.",
            hint="Let those tables be copied (copy: needed), or write the view as an inner join by equal keys.",
            view=view.name,
        ) from None
    asks = [*asked_columns(found, wanted)] if join is None else [*join.asks()]
    if join is None and turns_in(view.properties) is not None and len(wanted) == len(below):
        rolled = find_join(snapshot, view.plan)
        asks += [] if rolled is None else rolled.asks()
    for table, equal in dict.fromkeys(asks):
        sources.check(snapshot.get(table), equal)


def _join(snapshot: Snapshot, view: ViewToKeep) -> NaturalJoin | None:
    """What an algorithm of its own needs of a view; None for sweep."""
    publish_within(view.properties)
    max_rows(view.properties)
    if algorithm_of(view.properties) == SWEEP:
        return None
    return join_of(snapshot, KeptView(view.name, view.plan, view.properties))


def _key_routes(view: ViewToKeep, wanted: frozenset[str]) -> tuple[KeyRoute, ...]:
    if recomputes(view.properties):
        raise NotAskableError("its refresh mode or policy has it recomputed whole")
    if view.policy.in_commits:
        raise NotAskableError(f"its policy is {view.policy.value}, and a commit does not wait for other databases")
    return routes(view.plan, wanted)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))
