"""Random histories of schema changes and rows, with views that follow, ask, do without and take substitutes.

The product decides by its own code over snapshots of the catalog, without Spark; every definition is evaluated by an
in-process engine at every csn, beside the view's first definition over columns that are named by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
from sqlglot import exp

from rollview.algebra.replacing import called
from rollview.algebra.resolve import Resolved, resolve
from rollview.algebra.text import parse_one
from rollview.algebra.used import columns_used
from rollview.algebra.view import MISREAD
from rollview.catalog import Definition, DefinitionVersion, Moment, Part, Pin, Relation, RelationKind, Snapshot
from rollview.catalog.definitions import TABLES
from rollview.core.names import physical
from rollview.core.schema import Column, Constraints, Schema
from rollview.core.states import Extent, ViewState
from rollview.core.substitutes import Substitute
from rollview.errors import UsageError
from rollview.evolve.candidates import Candidate, candidates
from rollview.evolve.dispensable import wanted_extent
from rollview.evolve.views import AffectedViews, Redefinition, ViewOutcome, views_affected
from rollview.relations.former import seen_tables
from rollview.relations.plans import known_as
from rollview.relations.policies import Policies
from rollview.relations.versions import GOES_ON_FROM
from rollview.sql.decide import from_change
from rollview.sql.synchronize import Planned, Synchronizer, _going_on, with_definition
from rollview.tables.alter import _after
from rollview.tables.alter_plan import Draft, Meanings, plan_alter
from rollview.tables.altering import DropTable, declare_alter
from tests.property.carried import Reading, State, Table, changes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_TYPES = {MISREAD: "types are not told here"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Rows = list[dict[str, Any]]
"""Of one table, values by the columns' names in files, which are their ids."""

VIEWS = (
    ("plain", "SELECT a, b FROM t WHERE c > 1 -- of t"),
    ("star", "SELECT * FROM t"),
    ("joined", "SELECT x.a, y.d, y.e FROM t AS x JOIN u AS y ON x.k = y.k"),
    ("groups", "SELECT k, count(*) AS n, sum(c) AS s, max(b) AS m FROM t GROUP BY k"),
    ("both", "WITH w AS (SELECT k, a AS first FROM t) SELECT w.first, d FROM w JOIN u USING (k) WHERE e < 9"),
    ("nested", "SELECT d, (SELECT max(t.c) FROM t WHERE t.k = u.k) AS most FROM u WHERE EXISTS (SELECT 1 FROM t)"),
    ("union", "SELECT a AS one FROM t UNION ALL SELECT d FROM u"),
    ("distinct", "SELECT DISTINCT a, c FROM t"),
)
SUBSTITUTES = (
    Substitute("t", "t2", {"k": "k", "a": "aa", "b": "b", "c": "cc"}, Extent.EQUAL, "first"),
    Substitute("t", "t3", {"k": "k", "a": "a"}, Extent.EQUAL, "second"),
    Substitute("u", "u2", {"k": "kk", "d": "dd", "e": "ee"}, Extent.EQUAL, "third"),
    Substitute("t", "t", {"b": "bb"}, Extent.EQUAL, "fourth"),
)
_TABLES = {
    "t": ("k", "a", "b", "c", "bb"),
    "u": ("k", "d", "e"),
    "t2": ("k", "aa", "b", "cc"),
    "t3": ("a", "k"),
    "u2": ("ee", "dd", "kk"),
}
_PIECES = {
    "rollview.on_schema_change": ("follow", "follow", "follow", "ask", "stop"),
    "rollview.dispensable": ("", "columns"),
}


@dataclass(frozen=True, slots=True)
class Binding:
    """What a view's first text reads: by its own name of a relation, the table's id, and the columns by id."""

    tables: Mapping[str, tuple[int, Mapping[str, str]]]
    left_out: frozenset[str] = frozenset()


class WithoutSpark(Synchronizer):
    """Spark only tells types, and all are alike here."""

    def planned(self, after: Snapshot, view: Relation, one: Candidate, lost: Iterable[str]) -> Planned | str:
        told = view.definition
        assert told is not None
        if not wanted_extent(told.properties).allows(one.extent):
            return "extent"
        known = {name.lower(): known_as(relation) for name, relation in after.relations.items() if len(relation.schema)}
        resolved = resolve(one.text, known, one.columns)
        schema = Schema(tuple(Column(name, "int") for name in resolved.outputs))
        facts = {**NO_TYPES, GOES_ON_FROM: _going_on(view.schema, schema)}
        definition = Definition(one.text, one.columns, None, told.properties, facts)
        reads = tuple(relation.name for relation in resolved.reads)
        return Planned(one, None, Redefinition(definition, schema, reads, "synchronized"))  # type: ignore[arg-type]


class Side:
    """An in-process engine with the tables as one side of the comparison sees them; the same question is asked once."""

    def __init__(self) -> None:
        self._duck = duckdb.connect(config={"threads": 1})
        self._shown: dict[str, str] = {}
        self._answers: dict[tuple[str, ...], Counter[tuple[Any, ...]]] = {}

    def show(self, name: str, columns: Mapping[str, str | None], rows: Rows) -> None:
        listed = ", ".join(f'CAST(NULL AS INT) AS "{column}"' for column in columns)
        values = [
            ", ".join(
                "NULL" if stored is None or row.get(stored) is None else str(row[stored]) for stored in columns.values()
            )
            for row in rows
        ]
        more = f" UNION ALL VALUES ({'), ('.join(values)})" if values else ""
        text = f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT {listed} WHERE FALSE{more}'
        if self._shown.get(name) != text:
            self._duck.execute(text)
            self._shown[name] = text

    def rows(self, text: str, tables: Iterable[str]) -> Counter[tuple[Any, ...]]:
        key = (text, *(self._shown[table] for table in tables))
        if key not in self._answers:
            self._answers[key] = Counter(self._duck.execute(text).fetchall())
        return self._answers[key]


@dataclass
class History:
    random: Random
    snapshot: Snapshot = field(init=False)
    rows: dict[int, Rows] = field(init=False)
    bindings: dict[str, Binding] = field(init=False)
    first: dict[str, str] = field(init=False)
    stopped: dict[str, tuple[int, Binding]] = field(default_factory=dict)
    by_id: Side = field(default_factory=Side)
    by_name: Side = field(default_factory=Side)
    names: int = 0
    checked: int = 0
    intervals: int = 0
    states: list[State] = field(default_factory=list)
    readings: dict[str, list[Reading]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables = [_table(place, name, columns) for place, (name, columns) in enumerate(_TABLES.items(), 1)]
        self.snapshot = Snapshot(Moment(0, NOW), {table.name: table for table in tables})
        self.rows = {table.id: [] for table in tables}
        self.bindings, self.first = {}, {}
        for place, (name, text) in enumerate(self.random.sample(VIEWS, 5), 10):
            chosen = {key: value for key, ways in _PIECES.items() if (value := self.random.choice(ways))}
            self._add(place, name, text, chosen)
        self._note()

    def _add(self, place: int, name: str, text: str, properties: dict[str, str]) -> None:
        known = {one.name: known_as(one) for one in self.snapshot.tables()}
        resolved = resolve(text, known)
        reads = tuple(relation.name for relation in resolved.reads)
        schema = Schema(tuple(Column(output, "int") for output in resolved.outputs))
        definition = Definition(text, (), None, properties, NO_TYPES)
        pins = {part: Pin(part, 0, 0, 0, 0) for part in (Part.EXTENT, Part.DELTA)}
        about = (schema, Constraints(), definition, reads, f"v{place}", 0, pins, (), None)
        view = Relation(place, name, RelationKind.VIEW, *about)
        self.snapshot = replace(self.snapshot, relations={**self.snapshot.relations, name: view})
        tables = {read: self.snapshot.get(read) for read in reads}
        bound = {read: (one.id, {column.name: column.stored for column in one.schema}) for read, one in tables.items()}
        self.bindings[name], self.first[name] = Binding(bound), text

    def run(self, commits: int, changes: int) -> None:
        when = set(self.random.sample(range(2, commits + 1), changes))
        for csn in range(1, commits + 1):
            if csn in when:
                self._change_schema()
            else:
                self._change_rows()
            self._move(csn)
            self._decide()
            self._note()
            self.check()
        self._check_changes()

    def _note(self) -> None:
        """How views read at a csn; for one that was decided for late, at those as well at which it had waited."""
        self.states.append({number: [dict(row) for row in rows] for number, rows in self.rows.items()})
        for view in self.snapshot.views():
            if view.state is not ViewState.SCHEMA_CHANGED:
                noted = self.readings.setdefault(view.name, [])
                noted += [self._reading(view)] * (len(self.states) - len(noted))

    def _reading(self, view: Relation) -> Reading:
        assert view.definition is not None
        seen = seen_tables(self.snapshot, view)
        tables = [(name, seen.get(name) or self.snapshot.get(name)) for name in view.depends_on]
        shown = tuple(Table(name, one.id, tuple((c.name, c.stored) for c in one.schema)) for name, one in tables)
        origin = view.definition.facts.get(GOES_ON_FROM, {})
        version = tuple(one.csn for one in view.versions)
        return Reading(version, _text(view), shown, view.schema.names, tuple(origin.items()))

    def _check_changes(self) -> None:
        """Of one view, over random intervals."""
        name = self.random.choice(list(self.readings))
        readings = self.readings[name]
        rows = []
        for reading, state in zip(readings, self.states, strict=False):
            for table in reading.tables:
                self.by_name.show(table.name, dict(table.columns), list(map(dict, state.get(table.id, ()))))
            names = [table.name for table in reading.tables]
            rows.append(self.by_name.rows(reading.text.replace("`", '"'), names))
        told = changes(self.random, readings, rows, self.states)
        for _ in range(8):
            after = self.random.randrange(len(readings))
            told.check(after, self.random.randint(after, len(readings) - 1))
            self.intervals += 1

    def _move(self, csn: int) -> None:
        relations = {}
        for name, one in self.snapshot.relations.items():
            is_behind = one.kind is RelationKind.TABLE or one.state is ViewState.SCHEMA_CHANGED
            relations[name] = one if is_behind else replace(one, pins=_at(csn))
        self.snapshot = Snapshot(Moment(csn, NOW), relations)

    def _change_rows(self) -> None:
        table = self.random.choice(self.snapshot.tables())
        rows = self.rows[table.id]
        if rows and self.random.random() < 0.3:
            rows.remove(self.random.choice(rows))
        for _ in range(self.random.randint(1, 3)):
            rows.append({column.stored: self.random.randint(0, 4) for column in table.schema})

    def _change_schema(self) -> None:
        table = self.random.choice(self.snapshot.tables())
        draft = self._draft(table)
        gone = [column.stored for column in draft.dropped]
        renamed = [column.stored for column in table.schema if column.name in draft.renamed]
        if draft.name != table.name:
            renamed = [column.stored for column in table.schema]
        try:
            affected = views_affected(self.snapshot, table, gone, renamed, ())
        except UsageError as refused:
            self._check_forbidden(refused)
            return
        after = _after(draft, "changed")
        outcomes = self._outcomes(after, affected)
        if outcomes is None:
            return
        now = self.snapshot
        self.snapshot = _renamed(after, table, draft.name)
        for column in draft.added:
            for row in self.rows[table.id]:
                row[column.stored] = None
        for one in outcomes:
            self._take(now, after, one)

    def _check_forbidden(self, refused: UsageError) -> None:
        """A change is refused only where a view says so."""
        (name,) = refused.facts["views"]
        definition = self.snapshot.get(name).definition
        assert definition is not None
        assert definition.properties["rollview.on_schema_change"] == "stop"

    def _outcomes(self, after: Snapshot, affected: AffectedViews) -> tuple[ViewOutcome, ...] | None:
        """None where the change is refused, because what is to stand for the table has lost a column by now."""
        broken = [one for one in SUBSTITUTES if not _is_whole(after, one)]
        synchronizer = WithoutSpark(_no_spark, SUBSTITUTES, Policies())
        try:
            return synchronizer.plan(self.snapshot, after, affected)
        except UsageError:
            if not broken:
                raise
            return None

    def _draft(self, table: Relation) -> Draft:
        self.names += 1
        column = self.random.choice(table.schema.columns)
        ways = [
            f"RENAME COLUMN {column.name} TO n{self.names}",
            f"RENAME COLUMN {column.name} TO n{self.names}",
            f"ADD COLUMN n{self.names} INT",
            f"RENAME TO r{self.names}",
            *([f"DROP COLUMN {column.name}"] * 3 if len(table.schema) > 1 else []),
        ]
        meanings = Meanings(lambda name, type_: Column(name, "int"), lambda column, given: None, frozenset())
        if self.random.random() < 0.15:
            return plan_alter(self.snapshot, table, (DropTable(),), meanings)
        parsed = parse_one(f"ALTER TABLE {table.name} {self.random.choice(ways)}")
        assert isinstance(parsed, exp.Alter)
        return plan_alter(self.snapshot, table, declare_alter(parsed).alterations, meanings)

    def _take(self, now: Snapshot, after: Snapshot, one: ViewOutcome) -> None:
        view, csn = self.snapshot.get(one.view), self.snapshot.moment.csn
        if one.redefined is None:
            stopped = replace(view, state=ViewState.SCHEMA_CHANGED)
            self.snapshot = replace(self.snapshot, relations={**self.snapshot.relations, view.name: stopped})
            return
        self._bind(now.get(view.name), one.redefined, now, after)
        self.snapshot = with_definition(self.snapshot, view, one.redefined, csn)

    def _decide(self) -> None:
        """Late, as somebody would: of stopped views one is decided for, now and then."""
        stopped = [view for view in self.snapshot.views() if view.state is ViewState.SCHEMA_CHANGED]
        if not stopped or self.random.random() < 0.5:
            return
        view = self.random.choice(stopped)
        mark = view.pins[Part.DELTA].through
        after = from_change(self.snapshot, mark + 1)
        found = candidates(self.snapshot, view, after, SUBSTITUTES)
        synchronizer = WithoutSpark(_no_spark, SUBSTITUTES, Policies())
        if not found.lost:
            going = replace(view, state=None, pins=_at(self.snapshot.moment.csn))
            self.snapshot = replace(self.snapshot, relations={**self.snapshot.relations, view.name: going})
            return
        planned, _ = synchronizer.first(after, view, found)
        if planned is not None:
            self._bind(view, planned.redefinition, self.snapshot, after)
            self.snapshot = with_definition(self.snapshot, view, planned.redefinition, mark + 1)
            self._move(self.snapshot.moment.csn)

    def _bind(self, view: Relation, new: Redefinition, now: Snapshot, after: Snapshot) -> None:
        """What the oracle reads from now on: told from the declared substitutes, never from the new text."""
        before = self.bindings[view.name]
        ids = {one.id: one for one in after.relations.values()}
        tables = dict(before.tables)
        for name, (table_id, columns) in before.tables.items():
            present = ids.get(table_id)
            there = {column.stored for column in present.schema} if present is not None else set()
            if _used(self.first[view.name], name) <= {name for name, stored in columns.items() if stored in there}:
                continue
            chosen = next((one for one in SUBSTITUTES if one.of == name and _reads(after, new, one, table_id)), None)
            if chosen is not None:
                tables[name] = _standing(after, chosen, columns, there, table_id)
            else:
                tables[name] = (table_id, {own: stored for own, stored in columns.items() if stored in there})
        left = frozenset(_resolved(self.first[view.name]).outputs) - {column.name for column in new.schema}
        self.bindings[view.name] = Binding(tables, left)

    def check(self) -> None:
        for name, text in self.first.items():
            view = self.snapshot.get(name)
            if view.state is ViewState.SCHEMA_CHANGED:
                continue
            assert view.definition is not None
            outputs = _resolved(text).outputs
            left = [place for place, output in enumerate(outputs) if output not in self.bindings[name].left_out]
            expected: Counter[tuple[Any, ...]] = Counter()
            for row, count in self._first(name, text).items():
                expected[tuple(row[place] for place in left)] += count
            found = self._present(view)
            assert list(view.schema.names) == [outputs[place] for place in left]
            if "DISTINCT" in text and len(left) < len(outputs):
                found, expected = Counter(set(found)), Counter(set(expected))
            assert found == expected, (name, view.definition.query, self.snapshot.moment.csn, found, expected)
            self.checked += 1

    def _first(self, name: str, text: str) -> Counter[tuple[Any, ...]]:
        tables = self.bindings[name].tables
        for table, (table_id, columns) in tables.items():
            shown = {own: columns.get(own) for own in _TABLES[table]}
            self.by_id.show(table, shown, self.rows[table_id])
        return self.by_id.rows(text, tables)

    def _present(self, view: Relation) -> Counter[tuple[Any, ...]]:
        assert view.definition is not None
        seen = seen_tables(self.snapshot, view)
        for name in view.depends_on:
            table = seen.get(name) or self.snapshot.get(name)
            self.by_name.show(name, {column.name: column.stored for column in table.schema}, self.rows[table.id])
        return self.by_name.rows(_text(view).replace("`", '"'), view.depends_on)


def _text(view: Relation) -> str:
    assert view.definition is not None
    names = view.definition.facts.get(TABLES, {})
    return called(view.definition.query, names) if names else view.definition.query


@cache
def _resolved(text: str) -> Resolved:
    """A first definition, over the tables as they were at the beginning."""
    return resolve(text, {name: known_as(_table(0, name, columns)) for name, columns in _TABLES.items()})


@cache
def _used(text: str, table: str) -> frozenset[str]:
    return frozenset(columns_used(_resolved(text))[table])


def _no_spark() -> SparkSession:
    raise AssertionError("nothing here needs Spark")


def _is_whole(after: Snapshot, one: Substitute) -> bool:
    by = after.find(one.by)
    return by is None or all(by.schema.find(column) is not None for column in one.columns.values())


def _table(place: int, name: str, columns: Iterable[str]) -> Relation:
    schema = Schema(tuple(Column(column, "int", place=physical(f"{name}_{column}")) for column in columns))
    pins = {part: Pin(part, 0, 0, 0, 0) for part in (Part.STATE, Part.DELTA)}
    return Relation(place, name, RelationKind.TABLE, schema, Constraints(), None, (), f"t{place}", 0, pins, (), None)


def _at(csn: int) -> dict[Part, Pin]:
    return {part: Pin(part, 0, 0, csn, 0) for part in (Part.EXTENT, Part.DELTA)}


def _renamed(after: Snapshot, table: Relation, new: str) -> Snapshot:
    """Definitions know a table by the name that their texts have, as the catalog keeps it."""
    if new == table.name:
        return after
    relations = {}
    for name, one in after.relations.items():
        if table.name in one.depends_ever and one.definition is not None:
            reads = tuple(new if read == table.name else read for read in one.depends_on)
            versions = tuple(_called(version, table.name, new) for version in one.versions)
            about = {"definition": _named(one.definition, table.name, new), "depends_on": reads, "versions": versions}
            one = replace(one, **about)  # type: ignore[arg-type]
        relations[name] = one
    return replace(after, relations=relations)


def _called(version: DefinitionVersion, old: str, new: str) -> DefinitionVersion:
    reads = tuple(new if read == old else read for read in version.depends_on)
    return replace(version, definition=_named(version.definition, old, new), depends_on=reads)


def _named(definition: Definition, old: str, new: str) -> Definition:
    known = definition.facts.get(TABLES, {})
    written = next((name for name, present in known.items() if present == old), old)
    return replace(definition, facts={**definition.facts, TABLES: {**known, written: new}})


def _reads(after: Snapshot, new: Redefinition, one: Substitute, table_id: int) -> bool:
    by = after.find(one.by)
    return by is not None and by.name in new.depends_on and (by.id != table_id or one.by == one.of)


def _standing(
    after: Snapshot, one: Substitute, columns: Mapping[str, str], there: set[str], table_id: int
) -> tuple[int, Mapping[str, str]]:
    by = after.get(one.by)
    found = {old: column.stored for old, new in one.columns.items() if (column := by.schema.find(new)) is not None}
    kept = {own: stored for own, stored in columns.items() if stored in there and own not in found}
    return by.id, {**(kept if by.id == table_id else {}), **found}
