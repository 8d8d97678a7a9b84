"""Random texts in which a reader of SQL can go wrong: operators in a row, joins by name, names that are shadowed.

Law: nothing is written to be easy to read. What Spark does not take is no text.
"""

from __future__ import annotations

from random import Random
from typing import TypeVar

from rollview.algebra.resolve import Known
from rollview.core.schema import Column, Schema

T = TypeVar("T")
_COLUMNS = {"a": "k g x f w", "b": "k g y f", "c": "k G z"}
_TYPES = {"f": "boolean", "w": "string"}

TABLES = tuple(
    Known(name, Schema(tuple(Column(column, _TYPES.get(column, "int")) for column in columns.split())))
    for name, columns in _COLUMNS.items()
)
ROWS = {
    "a": [
        (1, 2, 4, True, "a"),
        (2, None, 1, False, "ab"),
        (None, 1, 3, None, None),
        (1, 2, 4, True, "a"),
        (3, 5, 0, True, ""),
    ],
    "b": [(1, 2, 6, True), (1, 5, 2, False), (2, 1, None, None), (4, 2, 1, True)],
    "c": [(1, 2, 5), (2, 5, 3), (None, 1, 7), (4, 2, 2)],
}

_INTS = ("|", "^", "&", "<<", ">>", ">>>", "+", "-", "*", "%", "DIV")
_COMPARES = ("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "!<", "!>")


class Texts:
    def __init__(self, random: Random) -> None:
        self.random = random

    def text(self) -> str:
        make = self.random.choice((self._plain, self._plain, self._grouped, self._grouped, self._starred, self._nested))
        return make()

    def _plain(self) -> str:
        from_, columns = self._from()
        first, *names = self._names()
        items = [f"{self._value(columns)} AS {self._spelled(name)}" for name in names]
        if self.random.random() < 0.2:
            items += [f"{self._ints(columns)} AS {first}", f"{first} {self._pick(_INTS[:7])} 1 AS later"]
        distinct = self._pick(("", "", "", "DISTINCT "))
        return f"SELECT {distinct}{', '.join(items)} FROM {from_}{self._where(columns)}"

    def _grouped(self) -> str:
        from_, columns = self._from()
        keys = [self._value(columns) for _ in range(self._pick((1, 1, 2)))]
        names = self._names()[: len(keys)]
        calls = [self._pick((f"SUM({self._ints(columns)})", "COUNT(*)", f"MAX({self._ints(columns)})", "COUNT(*) + 1"))]
        items = [f"{key} AS {self._spelled(name)}" for key, name in zip(keys, names, strict=False)]
        items += [f"{call} AS n" for call in calls]
        form = self._pick(("text", "text", "alias", "number", "all"))
        group = {
            "text": ", ".join(keys),
            "alias": ", ".join(names[: len(keys)]),
            "number": ", ".join(str(i + 1) for i in range(len(keys))),
            "all": "ALL",
        }[form]
        having = self._pick(("", "", " HAVING n > 1", " HAVING COUNT(*) | 1 > 2", f" HAVING {names[0]} IS NOT NULL"))
        return f"SELECT {', '.join(items)} FROM {from_}{self._where(columns)} GROUP BY {group}{having}"

    def _starred(self) -> str:
        from_, columns = self._from()
        return f"SELECT * FROM {from_}{self._where(columns)}"

    def _nested(self) -> str:
        name = self._pick(("q", "a", "B"))
        inner = self._pick((self._plain, self._grouped))()
        outer = self._pick(
            (f"SELECT * FROM {name}", f"SELECT {name}.* FROM {name}", f"SELECT COUNT(*) AS n FROM {name}")
        )
        return (
            f"WITH {name} AS ({inner}) {outer}"
            if self.random.random() < 0.6
            else outer.replace(f"FROM {name}", f"FROM ({inner}) AS {name}")
        )

    def _from(self) -> tuple[str, list[tuple[str, str]]]:
        """FROM, and what may be named behind it: some of it may be ambiguous."""
        count = self._pick((1, 2, 2, 3, 3))
        tables = [self._pick(tuple(_COLUMNS)) for _ in range(count)]
        aliases = [
            self._pick((table, f"t{i}")) if tables.count(table) == 1 else f"t{i}" for i, table in enumerate(tables)
        ]
        text = self._named(tables[0], aliases[0])
        for table, alias in zip(tables[1:], aliases[1:], strict=True):
            right = self._named(table, alias)
            side = self._pick(("", "", "", "LEFT ", "RIGHT ", "FULL "))
            how = self._pick(("using", "using", "natural", "on", "comma"))
            if how == "using":
                met = self._pick(("k", "k", "g", "k, g", "K"))
                text = f"{text} {side}JOIN {right} USING ({met})"
            elif how == "natural":
                text = f"{text} NATURAL {side}JOIN {right}"
            elif how == "on":
                condition = (
                    f"{aliases[0]}.k = {alias}.k {self._pick(('', f'AND {aliases[0]}.g & 1 << 1 = {alias}.g & 2'))}"
                )
                text = f"{text} {side}JOIN {right} ON {condition}"
            else:
                text = f"{text}, {right}"
        columns = [
            (prefix + name, _TYPES.get(name.lower(), "int"))
            for table, alias in zip(tables, aliases, strict=True)
            for name in _COLUMNS[table].split()
            for prefix in ("", f"{alias}.")
        ]
        return text, columns

    def _named(self, table: str, alias: str) -> str:
        spelled = self._pick((table, table, table.upper(), f"`{table}`"))
        if table == alias:
            return spelled
        return f"{spelled} {self._pick(('', 'AS '))}{alias}"

    def _where(self, columns: list[tuple[str, str]]) -> str:
        return f" WHERE {self._condition(columns)}" if self.random.random() < 0.5 else ""

    def _value(self, columns: list[tuple[str, str]]) -> str:
        make = self._pick((self._ints, self._ints, self._condition, self._words, self._column))
        return make(columns)

    def _column(self, columns: list[tuple[str, str]]) -> str:
        return self._pick(tuple(columns))[0]

    def _ints(self, columns: list[tuple[str, str]]) -> str:
        parts = [self._int(columns)]
        for _ in range(self._pick((0, 1, 2, 2, 3))):
            sign = self._pick(_INTS)
            # A shift by few places, a divisor that is not zero, factors that stay small.
            by = str(self.random.randint(1, 3)) if sign in ("<<", ">>", ">>>", "%", "DIV", "*") else self._int(columns)
            parts += [sign, by]
        return " ".join(parts)

    def _int(self, columns: list[tuple[str, str]]) -> str:
        names = [name for name, kind in columns if kind == "int"]
        plain = self._pick((self._pick(tuple(names)), self._pick(tuple(names)), str(self.random.randint(0, 5))))
        return self._pick(("", "", "", "-", "~", "+", "- -")) + plain

    def _condition(self, columns: list[tuple[str, str]]) -> str:
        parts = [self._test(columns)]
        for _ in range(self._pick((0, 0, 1, 2))):
            parts += [self._pick(("AND", "OR")), self._pick(("", "", "NOT ", "! ")) + self._test(columns)]
        return " ".join(parts)

    def _test(self, columns: list[tuple[str, str]]) -> str:
        flags = tuple(name for name, kind in columns if kind == "boolean") or ("TRUE",)
        chain = f"{self._ints(columns)} {self._pick(_COMPARES)} {self._ints(columns)}"
        longer = f"{chain} {self._pick(_COMPARES)} {self._pick(flags)}"
        forms = (
            chain,
            chain,
            longer,
            longer,
            f"{chain} IS {self._pick(('', 'NOT '))}{self._pick(('NULL', 'TRUE', 'FALSE', 'UNKNOWN'))}",
            f"{self._ints(columns)} {self._pick(('', 'NOT ', '! '))}IN ({self._ints(columns)}, 2, NULL)",
            f"{self._ints(columns)} {self._pick(('', 'NOT '))}BETWEEN {self._ints(columns)} AND {self._ints(columns)}",
            f"{self._pick(flags)} {self._pick(_COMPARES)} {self._pick(flags)}",
            f"{chain} IS DISTINCT FROM {self._pick(flags)}",
            f"{self._words(columns)} LIKE {self._words(columns)} || '%'",
        )
        return self._pick(forms)

    def _words(self, columns: list[tuple[str, str]]) -> str:
        names = (*(name for name, kind in columns if kind == "string"), "'a'")
        parts = [self._pick(names)]
        for _ in range(self._pick((0, 1, 1))):
            parts += ["||", self._pick((*names, *(name for name, kind in columns if kind == "int")))]
        return " ".join(parts)

    def _names(self) -> list[str]:
        """Of outputs: new ones, and such that a table has too."""
        return self.random.sample(["o", "p", "k", "g", "x", "G2"], 3)

    def _spelled(self, name: str) -> str:
        return self._pick((name, name, name.upper(), f"`{name}`"))

    def _pick(self, among: tuple[T, ...]) -> T:
        return self.random.choice(among)
