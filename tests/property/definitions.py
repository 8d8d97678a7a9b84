"""Random view definitions in Spark SQL: every operator that has an incremental rule, nested at random."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from rollview.algebra.resolve import Known

NUMBERS = ("int", "decimal", "double", "bigint")


@dataclass(frozen=True, slots=True)
class Source:
    """Something with columns (name, kind) that FROM can name."""

    sql: str
    columns: tuple[tuple[str, str], ...]


def _kind(type_: str) -> str:
    return type_.split("(")[0]


class Definitions:
    def __init__(self, random: Random, tables: tuple[Known, ...]) -> None:
        self.random = random
        self.tables = tables
        self.aliases = 0

    def view(self) -> str:
        depth = self.random.choice([0, 0, 0, 1, 1, 2])
        if self.random.random() < 0.12:
            return self._union(depth)
        return self._select(depth).sql

    def _union(self, depth: int) -> str:
        left = self._select(depth, width=2, kinds=("int", "int"))
        right = self._select(depth, width=2, kinds=("int", "int"))
        return f"{left.sql} {self.random.choice(['UNION ALL', 'UNION ALL', 'UNION'])} {right.sql}"

    def _select(self, depth: int, width: int | None = None, kinds: tuple[str, ...] | None = None) -> Source:
        from_, columns = self._from(depth)
        where = f" WHERE {self._condition(columns)}" if self.random.random() < 0.4 else ""
        if kinds is None and self.random.random() < 0.55:
            return self._grouped(from_, columns, where)
        width = width or self.random.randint(1, 3)
        wanted = kinds or tuple(self.random.choice(["int", "any"]) for _ in range(width))
        outputs = [(f"o{i}", *self._expression(columns, kind)) for i, kind in enumerate(wanted)]
        items = ", ".join(f"{sql} AS {name}" for name, sql, _ in outputs)
        distinct = "DISTINCT " if self.random.random() < 0.15 else ""
        return Source(f"SELECT {distinct}{items} FROM {from_}{where}", tuple((n, k) for n, _, k in outputs))

    def _grouped(self, from_: str, columns: list[tuple[str, str]], where: str) -> Source:
        keys = [self._expression(columns, "int") for _ in range(self.random.choice([0, 1, 1, 1, 2]))]
        calls = [self._aggregate(columns) for _ in range(self.random.choice([1, 1, 2, 3]))]
        outputs = [(f"k{i}", sql, kind) for i, (sql, kind) in enumerate(keys)]
        outputs += [(f"v{i}", sql, kind) for i, (sql, kind) in enumerate(calls)]
        items = ", ".join(f"{sql} AS {name}" for name, sql, _ in outputs)
        group = f" GROUP BY {', '.join(dict.fromkeys(sql for sql, _ in keys))}" if keys else ""
        having = f" HAVING {self.random.choice(['COUNT(*) > 1', 'COUNT(*) >= 1', calls[0][0] + ' IS NOT NULL'])}"
        tail = having if self.random.random() < 0.25 else ""
        return Source(f"SELECT {items} FROM {from_}{where}{group}{tail}", tuple((n, k) for n, _, k in outputs))

    def _from(self, depth: int) -> tuple[str, list[tuple[str, str]]]:
        text, columns = self._named(depth)
        for _ in range(self.random.choice([0, 1, 1, 2]) if depth < 2 else self.random.choice([0, 1])):
            right, more = self._named(depth)
            kind = self.random.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
            on = "" if kind == "CROSS JOIN" else f" ON {self._join_condition(columns, more)}"
            text, columns = f"{text} {kind} {right}{on}", columns + more
        return text, columns

    def _named(self, depth: int) -> tuple[str, list[tuple[str, str]]]:
        self.aliases += 1
        alias = f"q{self.aliases}"
        if depth > 0 and self.random.random() < 0.6:
            inner = self._select(depth - 1)
            source = Source(f"({inner.sql})", inner.columns)
        else:
            table = self.random.choice(self.tables)
            source = Source(table.name, tuple((column.name, _kind(column.type)) for column in table.schema))
        return f"{source.sql} AS {alias}", [(f"{alias}.{name}", kind) for name, kind in source.columns]

    def _join_condition(self, left: list[tuple[str, str]], right: list[tuple[str, str]]) -> str:
        ours, theirs = self._of(left, "int"), self._of(right, "int")
        equal = f"{ours} {'<=>' if self.random.random() < 0.1 else '='} {theirs}"
        if self.random.random() < 0.15:
            equal = f"{ours} + 1 = {theirs}"
        return f"{equal} AND {self._condition(left + right)}" if self.random.random() < 0.2 else equal

    def _of(self, columns: list[tuple[str, str]], kind: str) -> str:
        """A column of that kind, preferring names that look like keys, or a constant if there is none."""
        fitting = [name for name, its in columns if its == kind]
        keys = [name for name in fitting if name.split(".")[1] in ("k", "id", "pid", "cid")]
        if keys and self.random.random() < 0.7:
            return self.random.choice(keys)
        return self.random.choice(fitting) if fitting else "1"

    def _expression(self, columns: list[tuple[str, str]], kind: str) -> tuple[str, str]:
        if kind == "any":
            return self.random.choice(columns)
        name = self._of(columns, "int")
        shape = self.random.choice(["{0}", "{0}", "{0}", "{0} + 1", "COALESCE({0}, 7)", "CASE WHEN {0} > 1 THEN 1 END"])
        return shape.format(name), "int"

    def _condition(self, columns: list[tuple[str, str]]) -> str:
        name, other = self._of(columns, "int"), self._of(columns, "int")
        shapes = ["{0} > 0", "{0} IS NULL", "{0} = {1}", "{0} < {1} + 1", "NOT ({0} = 2)", "{0} IS NOT NULL OR {1} = 1"]
        return self.random.choice(shapes).format(name, other)

    def _aggregate(self, columns: list[tuple[str, str]]) -> tuple[str, str]:
        numbers = [(name, kind) for name, kind in columns if kind in NUMBERS]
        name, kind = self.random.choice(numbers) if numbers else ("1", "int")
        shapes = [("COUNT(*)", "bigint"), (f"COUNT({name})", "bigint"), (f"SUM({name})", _sum_kind(kind))]
        shapes += [(f"AVG({name})", "double"), (f"MIN({name})", kind), (f"MAX({name})", kind)]
        shapes += [(f"COUNT(DISTINCT {name})", "bigint")]
        if kind != "double":
            shapes += [
                (f"SUM({name} + 1)", _sum_kind(kind)),
                (f"VAR_POP({name})", "double"),
                (f"STDDEV({name})", "double"),
            ]
        sql, result = self.random.choice(shapes[:3] if self.random.random() < 0.4 else shapes)
        if self.random.random() < 0.15:
            sql = f"{sql} FILTER (WHERE {self._condition(columns)})"
        return sql, result


def _sum_kind(kind: str) -> str:
    return "bigint" if kind == "int" else kind
