"""The same propagation SQL on an in-process engine, and the oracle: recomputation at every csn."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import duckdb
from sqlglot import ErrorLevel, exp

from rollview.algebra.definition import Declared
from rollview.algebra.expressions import identifier
from rollview.algebra.levels import parenthesised
from rollview.algebra.resolve import Known
from rollview.algebra.script import AT_ONCE_ROWS, Motion
from rollview.algebra.states import states_read
from rollview.algebra.summary import GROUPS
from rollview.algebra.view import PROBED, Mode, Outline, Propagation, ViewPlan, outline, plan
from rollview.core.interval import Interval
from rollview.core.schema import Column, Schema
from tests.property.histories import Row, Transaction

_TYPES = {
    "INTEGER": "int",
    "BIGINT": "bigint",
    "HUGEINT": "bigint",
    "VARCHAR": "string",
    "DOUBLE": "double",
    "FLOAT": "float",
    "BOOLEAN": "boolean",
    "DATE": "date",
}
_AT_ONCE = 200


def declare_query(name: str, query: str, columns: tuple[str, ...] = ()) -> Declared:
    return Declared(name, columns, None, {}, query, False)


def quoted(name: str) -> str:
    return identifier(name).sql("duckdb")


def in_duckdb(query: exp.Query) -> str:
    """The text of a query that nobody else holds."""
    for series in list(query.find_all(exp.GenerateSeries)):
        series.replace(_either_way(series))
    return parenthesised(query, always=True).sql("duckdb", unsupported_level=ErrorLevel.IGNORE, copy=False)


def _either_way(series: exp.Expr) -> exp.Expr:
    """Spark's ``sequence`` goes down where its end is below its start; here that is another step."""
    first, last = series.args["start"], series.args["end"]
    down = series.copy()
    down.set("step", exp.Neg(this=exp.Literal.number(1)))
    upwards = exp.LTE(this=first.copy(), expression=last.copy())
    return exp.Case(ifs=[exp.If(this=upwards, true=series.copy())], default=down)


def canonical(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Equal values get equal spellings: 1.50 and 1.5, NaN and NaN, -0.0 and 0.0; doubles to nine digits."""

    def spell(value: Any) -> Any:
        if isinstance(value, Decimal):
            return value.normalize() + 0
        if isinstance(value, float):
            if math.isnan(value):
                return "NaN"
            return float(f"{value:.9g}") + 0.0
        return value

    return tuple(spell(value) for value in row)


class Duck:
    """Timed relations as tables ``name@changes``; the csn to read at is a variable."""

    def __init__(self, tables: tuple[Known, ...]) -> None:
        self.db = duckdb.connect(":memory:", config={"threads": 1})
        self.known: dict[str, Known] = {}
        self.numbers: dict[str, int] = {}
        self.set(a=0, b=0, t=0)
        for table in tables:
            self.add_relation(table)
        self.base = frozenset(self.known)
        self.transactions: dict[int, Transaction] = {}

    def reset(self) -> None:
        """As it was before anything was committed."""
        self.transactions.clear()
        for name in list(self.known):
            if name in self.base:
                self.db.execute(f"DELETE FROM {quoted(name + '@changes')}")
            else:
                self.db.execute(f"DROP TABLE {quoted(name + '@changes')}")
                del self.known[name]

    def add_relation(self, known: Known, stored: Schema | None = None) -> None:
        self.known[known.name] = known
        columns = ", ".join(f"{quoted(c.name)} {_duck_type(c.type)}" for c in known.schema)
        changes = quoted(known.name + "@changes")
        self.db.execute(f"CREATE OR REPLACE TABLE {changes} ({columns}, _count BIGINT, _csn BIGINT)")
        names = ", ".join(quoted(name) for name in known.schema.names)
        signed = "CASE WHEN _count < 0 THEN -1 ELSE 1 END AS _count"
        # A relation may have an interval of its own.
        number = self.numbers.setdefault(known.name, len(self.numbers))
        a, b = (f"COALESCE(getvariable('{end}_{number}'), getvariable('{end}'))" for end in "ab")
        one_each = f"(SELECT *, UNNEST(GENERATE_SERIES(1, ABS(_count))) AS _i FROM {changes})"
        self.db.execute(
            f"CREATE OR REPLACE VIEW {quoted(known.name + '@delta')} AS SELECT {names}, {signed}, _csn FROM {one_each} "
            f"WHERE _csn > {a} AND _csn <= {b}"
        )
        self.db.execute(
            f"CREATE OR REPLACE VIEW {quoted(known.name + '@old')} AS SELECT {names}, {signed} FROM {one_each} "
            f"WHERE _csn <= {a}"
        )
        self.db.execute(
            f"CREATE OR REPLACE VIEW {quoted(known.name + '@timed')} AS SELECT {names}, {signed}, "
            f"CASE WHEN _csn > {a} THEN _csn ELSE CAST(0 AS BIGINT) END AS _csn FROM {one_each} "
            f"WHERE _csn <= {b}"
        )
        self.db.execute(
            f"CREATE OR REPLACE VIEW {quoted(known.name + '@rows')} AS SELECT {names} FROM "
            f"(SELECT {names}, UNNEST(GENERATE_SERIES(1, _n)) FROM (SELECT {names}, CAST(SUM(_count) AS BIGINT) AS _n "
            f"FROM {changes} WHERE _csn <= getvariable('t') GROUP BY {names}) WHERE _n > 0)"
        )

    def commit(self, csn: int, transaction: Transaction) -> None:
        """Add to what is committed at that csn."""
        self.transactions[csn] = {**self.transactions.get(csn, {}), **transaction}
        for name, changes in transaction.items():
            self.append(name, [(*row, count, csn) for row, count in changes])

    def append(self, name: str, rows: list[Row]) -> None:
        self.insert(name + "@changes", rows)

    def insert(self, table: str, rows: list[Row]) -> None:
        """Many rows with one statement: a statement costs far more than a row."""
        for first in range(0, len(rows), _AT_ONCE):
            some = rows[first : first + _AT_ONCE]
            marks = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
            self.db.execute(f"INSERT INTO {quoted(table)} VALUES {marks}", [value for row in some for value in row])

    def read_over(self, intervals: Mapping[str, Interval]) -> None:
        """These relations over intervals of their own, until others are given; all others again over the common."""
        for number in self.numbers.values():
            for end in "ab":
                self.db.execute(f"RESET VARIABLE {end}_{number}")
        for name, interval in intervals.items():
            number = self.numbers[name]
            self.set(**{f"a_{number}": interval.after, f"b_{number}": interval.through})

    def set(self, **variables: int) -> None:
        self.db.execute("; ".join(f"SET VARIABLE {name} = {value}" for name, value in variables.items()))

    def run(self, text: str) -> list[Row]:
        try:
            return self.db.execute(text).fetchall()
        except duckdb.Error as error:
            if str(error) != "unordered_map::at":
                raise
            # The engine's optimiser fails on a few plans; without it they run.
            self.db.execute("PRAGMA disable_optimizer")
            rows = self.db.execute(text).fetchall()
            self.db.execute("PRAGMA enable_optimizer")
            return rows

    def facts(self, probes: tuple[Propagation, exp.Select] | None) -> dict[str, dict[str, str]]:
        """What would be found out of a view when it is created."""
        if probes is None:
            return {}
        inputs, results = probes[0].query, probes[1].with_(PROBED, as_=probes[0].query)
        return {"input": self._types(inputs), "results": self._types(results)}

    def _types(self, query: exp.Query) -> dict[str, str]:
        described = self.db.execute("DESCRIBE " + in_duckdb(query)).fetchall()
        return {name: _spark_type(type_) for name, type_, *_ in described}

    def compile(self, name: str, query: str, columns: tuple[str, ...] = ()) -> ViewPlan:
        known = {table.lower(): relation for table, relation in self.known.items()}
        made: Outline = outline(declare_query(name, query, columns), known)
        return plan(made, self.facts(made.probes))

    def motion(self, after: int, through: int) -> Mapping[str, Motion]:
        return {name: self._motion(name, after, through) for name in self.known}

    def _motion(self, name: str, after: int, through: int) -> Motion:
        if not any(name in t for t in self.transactions.values()):
            (n,) = self.db.execute(
                f"SELECT COUNT(*) FROM {quoted(name + '@changes')} WHERE _csn > {after} AND _csn <= {through}"
            ).fetchone() or (0,)
            return Motion(changed=n > 0)
        inside = [t.get(name, []) for csn, t in self.transactions.items() if after < csn <= through]
        deletes = any(count < 0 for changes in inside for _, count in changes)
        width = len(self.known[name].constraints.primary_key)
        updates = deletes and (not width or any(_updates(changes, width) for changes in inside))
        return Motion(any(inside), deletes, updates, one_csn=sum(map(bool, inside)) == 1)

    def closed(self, after: int, through: int) -> frozenset[tuple[str, str]]:
        """Pairs (child, parent) where every key that the child's delta refers to is in the parent's delta."""
        return frozenset(
            (child.name, foreign.table)
            for child in self.known.values()
            for foreign in child.constraints.foreign_keys
            if len(foreign.columns) == 1
            and self._values(child.name, foreign.columns[0], after, through) - {None}
            <= self._values(foreign.table, foreign.referenced[0], after, through)
        )

    def _values(self, name: str, column: str, after: int, through: int) -> set[object]:
        place = self.known[name].schema.names.index(column)
        inside = (t.get(name, []) for csn, t in self.transactions.items() if after < csn <= through)
        return {row[place] for changes in inside for row, _ in changes}


def _updates(changes: list[tuple[Row, int]], width: int) -> bool:
    deleted = {row[:width] for row, count in changes if count < 0}
    return any(row[:width] in deleted for row, count in changes if count > 0)


Texts = dict[object, tuple[str, bool]]
"""Propagation queries by what they were written for, and whether they tell the state at the end as well."""


class View:
    """A view kept by propagation alone: its first rows, and its timed delta."""

    def __init__(self, duck: Duck, name: str, plan: ViewPlan, at: int, texts: Texts | None = None) -> None:
        self.duck, self.name, self.plan = duck, name, plan
        self.recomputation = parenthesised(plan.recomputation().query, always=True).sql("duckdb")
        self.started = self.high_water_mark = at
        self.first = self.recompute(at)
        self.deltas: list[tuple[Row, int, int]] = []
        self.texts: Texts = {} if texts is None else texts
        self.groups: Counter[Row] = Counter()
        if self.plan.mode is Mode.SUMMARY:
            duck.set(a=at)
            self.groups = Counter(duck.run(in_duckdb(self.plan.first_groups().query)))
            columns = self.plan.hidden
            assert columns is not None
            spelled = ", ".join(f"{quoted(c.name)} {_duck_type(c.type)}" for c in columns)
            duck.db.execute(f"CREATE OR REPLACE TABLE {quoted(self._groups)} ({spelled})")

    @property
    def _groups(self) -> str:
        return f"{self.name} groups"

    def recompute(self, at: int) -> Counter[Row]:
        self.duck.set(t=at)
        return Counter(canonical(row) for row in self.duck.db.execute(self.recomputation).fetchall())

    def propagate(self, through: int, motion: Mapping[str, Motion] | None = None) -> None:
        """As much is told of the interval as can be known, or only the motion that is given."""
        after, self.high_water_mark = self.high_water_mark, through
        self.duck.set(a=after, b=through)
        closed: frozenset[tuple[str, str]] = frozenset()
        if motion is None:
            motion, closed = self.duck.motion(after, through), self.duck.closed(after, through)
        if not any(motion.get(known.name, Motion()).changed for known in self.plan.reads):
            return
        text, ahead = self._propagation(motion, closed)
        if ahead:
            self.deltas += self._visible(self._fold(self._told_ahead(text)))
        elif self.plan.mode is Mode.SUMMARY:
            self._hold()
            self.deltas += self._visible(self._fold(self.duck.run(text)))
        else:
            self.deltas += [(canonical(row[:-2]), row[-2], row[-1]) for row in self.duck.run(text)]

    def _propagation(self, motion: Mapping[str, Motion], closed: frozenset[tuple[str, str]]) -> tuple[str, bool]:
        """Written once for each way in which the relations moved; every other time groups are few, and told ahead."""
        read = [known.name for known in self.plan.reads]
        closed = frozenset(pair for pair in closed if set(pair) <= set(read))
        moved = (tuple(motion.get(name, Motion()) for name in read), closed)
        if moved not in self.texts:
            ahead = self.plan.mode is Mode.SUMMARY and len(self.texts) % 2 == 1
            sizes = {GROUPS: 1} if ahead else {}
            # Of four, two are written for small relations, and one for some that are small beside others that are not.
            few = (read, read[::2], [], read)[len(self.texts) % 4]
            sizes.update(dict.fromkeys(few, AT_ONCE_ROWS))
            # Two times of three only changes are there of what is said to be read by its changes alone.
            absent = frozenset(read) - states_read(self.plan) if len(self.texts) % 3 else frozenset[str]()
            # Two of three are written for an interval of many commits, whatever it is.
            many = len(self.texts) % 3 != 1
            made = self.plan.propagation(motion, closed=closed, sizes=sizes, ahead=ahead, absent=absent, many=many)
            assert not any(what != "delta" and name in absent for name, what in made.inputs)
            query = made.query
            self.texts[moved] = (in_duckdb(_bound(query, {GROUPS: self._groups})), ahead)
        return self.texts[moved]

    @property
    def schema(self) -> Schema:
        self.duck.set(t=0)
        return schema_of(self.duck, self.recomputation)

    def stored(self) -> Known:
        """Make the view a relation that other views can read: its first rows and its delta."""
        known = Known(self.name, self.schema)
        self.duck.add_relation(known)
        self.duck.append(self.name, [(*row, count, self.started) for row, count in self.first.items()])
        self.duck.append(self.name, [(*row, count, csn) for row, count, csn in self.deltas])
        return known

    def at(self, csn: int) -> Counter[Row]:
        state = Counter(self.first)
        for row, count, at in self.deltas:
            if at <= csn:
                state[row] += count
        assert all(count >= 0 for count in state.values()), f"negative count in {self.name} at {csn}"
        return +state

    def _hold(self) -> None:
        """The groups held so far as a table."""
        self.duck.db.execute(f"DELETE FROM {quoted(self._groups)}")
        self.duck.insert(self._groups, list(self.groups.elements()))

    def _told_ahead(self, text: str) -> list[Row]:
        """The groups' delta, read off a query that tells the view's rows at the end as well; those must be right."""
        summary = self.plan.summary
        assert summary is not None
        self._hold()
        rows, width = self.duck.run(text), len(summary.schema.names)
        shown = Counter(canonical(row[width + 3 :]) for row in rows if row[width + 2])
        assert shown == self.recompute(self.high_water_mark), f"{self.name} told ahead at {self.high_water_mark}"
        there = [row for row in rows if not summary.keys or row[len(summary.keys)] != 0]
        comes = [(*row[:width], 1, row[width]) for row in there if row[width] > 0]
        return comes + [(*row[:width], -1, row[width + 1]) for row in there if row[width + 1] is not None]

    def _fold(self, rows: list[Row]) -> list[Row]:
        """Take the groups' delta in."""
        for row in rows:
            self.groups[row[:-2]] += row[-2]
        assert all(count in (0, 1) for count in self.groups.values()), "a group must be there once"
        self.groups = +self.groups
        return rows

    def _visible(self, rows: list[Row]) -> list[tuple[Row, int, int]]:
        if not rows:
            return []
        table = f"{self.name} delta"
        columns = self.plan.hidden
        assert columns is not None
        spelled = ", ".join(f"{quoted(c.name)} {_duck_type(c.type)}" for c in columns)
        self.duck.db.execute(f"CREATE OR REPLACE TABLE {quoted(table)} ({spelled}, _count BIGINT, _csn BIGINT)")
        self.duck.insert(table, rows)
        seen = self.duck.run(in_duckdb(self.plan.visible(table, ("_count", "_csn"))))
        return [(canonical(row[:-2]), row[-2], row[-1]) for row in seen]


def _bound(query: exp.Query, rename: Mapping[str, str]) -> exp.Query:
    for table in query.find_all(exp.Table):
        if table.name in rename:
            table.set("this", identifier(rename[table.name]))
    return query


def _duck_type(spark: str) -> str:
    return {"string": "VARCHAR", "int": "INTEGER", "bigint": "HUGEINT"}.get(spark, spark.upper())


def _spark_type(duck: str) -> str:
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", duck)
    return f"decimal({found.group(1)},{found.group(2)})" if found else _TYPES[duck]


def schema_of(duck: Duck, text: str) -> Schema:
    described = duck.db.execute("DESCRIBE " + text).fetchall()
    return Schema(tuple(Column(name, _spark_type(type_)) for name, type_, *_ in described))
