"""Random view definitions in Spark SQL: every operator that has an incremental rule, nested at random."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from rollview.algebra.resolve import Known

NUMBERS = ("int", "decimal", "double", "bigint")
_KEYS = ("k", "id", "pid", "cid", "a", "b", "code")

_SEMI_JOINS = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
_JOINS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", *_SEMI_JOINS)

Columns = list[tuple[str, str]]
"""Name as it may be written, and kind."""


@dataclass(frozen=True, slots=True)
class Source:
    """Something with columns (name, kind) that FROM can name."""

    sql: str
    columns: tuple[tuple[str, str], ...]


def _kind(type_: str) -> str:
    return type_.split("(")[0]


def _table(table: Known) -> Source:
    return Source(table.name, tuple((column.name, _kind(column.type)) for column in table.schema))


class Definitions:
    def __init__(self, random: Random, tables: tuple[Known, ...]) -> None:
        self.random = random
        self.tables = tables
        self.aliases = 0
        self.ctes: list[Source] = []

    def view(self) -> str:
        depth = self.random.choice([0, 0, 0, 1, 1, 2])
        with_ = self._with() if self.random.random() < 0.15 else ""
        if self.random.random() < 0.12:
            return with_ + self._union(depth).sql
        return with_ + self._select(depth).sql

    def _with(self) -> str:
        """One or two CTEs, one of them perhaps named like a table; the later may read the earlier."""
        written = []
        for name in self.random.choice([("c1",), ("c1", "c2"), (self.tables[0].name,)]):
            query = self._select(0)
            written.append(f"{name} AS ({query.sql})")
            self.ctes.append(Source(name, query.columns))
        return f"WITH {', '.join(written)} "

    def _union(self, depth: int) -> Source:
        left = self._select(depth, width=2, kinds=("int", "int"))
        right = self._select(depth, width=2, kinds=("int", "int"))
        word = self.random.choice(
            ["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]
        )
        return Source(f"{left.sql} {word} {right.sql}", left.columns)

    def _select(self, depth: int, width: int | None = None, kinds: tuple[str, ...] | None = None) -> Source:
        from_, columns = self._by_name() if self.random.random() < 0.08 else self._from(depth)
        where = f" WHERE {self._condition(columns)}" if self.random.random() < 0.4 else ""
        if self.random.random() < 0.1:
            where += f" {'AND' if where else 'WHERE'} {self._membership(columns)}"
        if kinds is None and self.random.random() < 0.55:
            return self._grouped(from_, columns, where)
        width = width or self.random.randint(1, 3)
        wanted = kinds or tuple(self.random.choice(["int", "any"]) for _ in range(width))
        outputs = [(f"o{i}", *self._expression(columns, kind)) for i, kind in enumerate(wanted)]
        items = ", ".join(f"{sql} AS {name}" for name, sql, _ in outputs)
        distinct = "DISTINCT " if self.random.random() < 0.15 else ""
        return Source(f"SELECT {distinct}{items} FROM {from_}{where}", tuple((n, k) for n, _, k in outputs))

    def _grouped(self, from_: str, columns: Columns, where: str) -> Source:
        keys = [self._key(columns) for _ in range(self.random.choice([0, 1, 1, 1, 2]))]
        calls = [self._aggregate(columns) for _ in range(self.random.choice([1, 1, 2, 3]))]
        outputs = [(f"k{i}", sql, kind) for i, (sql, kind) in enumerate(keys)]
        outputs += [(f"v{i}", sql, kind) for i, (sql, kind) in enumerate(calls)]
        items = ", ".join(f"{sql} AS {name}" for name, sql, _ in outputs)
        group = f" GROUP BY {', '.join(dict.fromkeys(sql for sql, _ in keys))}" if keys else ""
        hidden = self._aggregate(columns)[0]
        having = self.random.choice(["COUNT(*) > 1", f"{calls[0][0]} IS NOT NULL", f"{hidden} IS NOT NULL"])
        tail = f" HAVING {having}" if self.random.random() < 0.25 else ""
        return Source(f"SELECT {items} FROM {from_}{where}{group}{tail}", tuple((n, k) for n, _, k in outputs))

    def _key(self, columns: Columns) -> tuple[str, str]:
        others = [(name, kind) for name, kind in columns if kind in ("boolean", "date", "string")]
        if not others or self.random.random() < 0.7:
            return self._expression(columns, "int")
        name, kind = self.random.choice(others)
        return (f"MONTH({name})", "int") if kind == "date" and self.random.random() < 0.5 else (name, kind)

    def _from(self, depth: int) -> tuple[str, Columns]:
        text, columns = self._named(depth)
        for _ in range(self.random.choice([0, 1, 1, 2]) if depth < 2 else self.random.choice([0, 1])):
            right, more = self._named(depth)
            kind = self.random.choice(_JOINS)
            on = "" if kind == "CROSS JOIN" else f" ON {self._join_condition(columns, more)}"
            text, columns = f"{text} {kind} {right}{on}", columns + ([] if kind in _SEMI_JOINS else more)
        return text, columns

    def _by_name(self) -> tuple[str, Columns]:
        """USING or NATURAL: what both sides have is written without a table."""
        left, right = self._stored(), self._stored()
        both = [(name, kind) for name, kind in left.columns if (name, kind) in right.columns]
        if not both or any(
            name == other and kind != its for name, kind in left.columns for other, its in right.columns
        ):
            return self._from(0)
        natural = self.random.random() < 0.4
        met = both if natural else both[:1]
        side = self.random.choice(["", "", "LEFT ", "RIGHT ", "FULL "])
        columns = met + [
            (f"m{i}.{n}", k) for i, s in enumerate((left, right)) for n, k in s.columns if (n, k) not in met
        ]
        names = ", ".join(name for name, _ in met)
        join = f"NATURAL {side}JOIN {right.sql} AS m1" if natural else f"{side}JOIN {right.sql} AS m1 USING ({names})"
        return f"{left.sql} AS m0 {join}", columns

    def _membership(self, columns: Columns) -> str:
        """(NOT) EXISTS with an equality, or IN."""
        self.aliases += 1
        alias, source, ours = f"n{self.aliases}", self._stored(), self._of(columns, "int")
        theirs = [(f"{alias}.{name}", kind) for name, kind in source.columns]
        inner, more = self._of(theirs, "int"), self._condition(theirs)
        if self.random.random() < 0.3:
            return f"{ours} IN (SELECT {inner} FROM {source.sql} AS {alias} WHERE {more})"
        word = self.random.choice(["EXISTS", "NOT EXISTS"])
        return f"{word} (SELECT 1 FROM {source.sql} AS {alias} WHERE {inner} = {ours} AND {more})"

    def _stored(self) -> Source:
        """A table that no CTE hides."""
        hidden = {cte.sql for cte in self.ctes}
        return _table(self.random.choice([table for table in self.tables if table.name not in hidden]))

    def _named(self, depth: int) -> tuple[str, Columns]:
        self.aliases += 1
        alias = f"q{self.aliases}"
        if self.ctes and self.random.random() < 0.4:
            source = self.random.choice(self.ctes)
        elif depth > 0 and self.random.random() < 0.6:
            inner = self._union(depth - 1) if self.random.random() < 0.15 else self._select(depth - 1)
            source = Source(f"({inner.sql})", inner.columns)
        else:
            source = self._stored()
        return f"{source.sql} AS {alias}", [(f"{alias}.{name}", kind) for name, kind in source.columns]

    def _join_condition(self, left: Columns, right: Columns) -> str:
        ours, theirs = self._of(left, "int"), self._of(right, "int")
        equal = f"{ours} {'<=>' if self.random.random() < 0.1 else '='} {theirs}"
        if self.random.random() < 0.15:
            equal = f"{ours} + 1 = {theirs}"
        pairs = [(n, m) for n, _ in left for m, _ in right if n.split(".")[1] == m.split(".")[1] in ("a", "b", "g")]
        if len(pairs) > 1 and self.random.random() < 0.6:
            equal = " AND ".join(f"{n} = {m}" for n, m in pairs[:2])
        return f"{equal} AND {self._condition(left + right)}" if self.random.random() < 0.2 else equal

    def _of(self, columns: Columns, kind: str) -> str:
        """A column of that kind, preferring names that look like keys, or a constant if there is none."""
        fitting = [name for name, its in columns if its == kind]
        keys = [name for name in fitting if name.split(".")[-1] in _KEYS]
        if keys and self.random.random() < 0.7:
            return self.random.choice(keys)
        return self.random.choice(fitting) if fitting else "1"

    def _expression(self, columns: Columns, kind: str) -> tuple[str, str]:
        if kind == "any":
            return self.random.choice(columns)
        name = self._of(columns, "int")
        shape = self.random.choice(["{0}", "{0}", "{0}", "{0} + 1", "COALESCE({0}, 7)", "CASE WHEN {0} > 1 THEN 1 END"])
        return shape.format(name), "int"

    def _condition(self, columns: Columns) -> str:
        others = [(name, kind) for name, kind in columns if kind in ("boolean", "date")]
        if others and self.random.random() < 0.3:
            name, kind = self.random.choice(others)
            shape = ["{0}", "NOT {0}"] if kind == "boolean" else ["{0} > DATE '2024-01-15'", "MONTH({0}) = 1"]
            return self.random.choice(shape).format(name)
        name, other = self._of(columns, "int"), self._of(columns, "int")
        shapes = ["{0} > 0", "{0} IS NULL", "{0} = {1}", "{0} < {1} + 1", "NOT ({0} = 2)", "{0} IS NOT NULL OR {1} = 1"]
        return self.random.choice(shapes).format(name, other)

    def _aggregate(self, columns: Columns) -> tuple[str, str]:
        ordered = [(name, kind) for name, kind in columns if kind in ("date", "string", "boolean")]
        if ordered and self.random.random() < 0.15:
            name, kind = self.random.choice(ordered)
            return self.random.choice([(f"MIN({name})", kind), (f"MAX({name})", kind), (f"COUNT({name})", "bigint")])
        numbers = [(name, kind) for name, kind in columns if kind in NUMBERS]
        name, kind = self.random.choice(numbers) if numbers else ("1", "int")
        shapes = [("COUNT(*)", "bigint"), (f"COUNT({name})", "bigint"), (f"SUM({name})", _sum_kind(kind))]
        shapes += [(f"AVG({name})", "double"), (f"MIN({name})", kind), (f"MAX({name})", kind)]
        shapes += [(f"COUNT(DISTINCT {name})", "bigint")]
        if kind != "double":
            shapes += [(f"SUM({name} + 1)", _sum_kind(kind)), (f"VAR_POP({name})", "double")]
            shapes += [(f"STDDEV({name})", "double")]
        sql, result = self.random.choice(shapes[:3] if self.random.random() < 0.4 else shapes)
        if self.random.random() < 0.15:
            sql = f"{sql} FILTER (WHERE {self._condition(columns)})"
        return sql, result


def _sum_kind(kind: str) -> str:
    return "bigint" if kind == "int" else kind
