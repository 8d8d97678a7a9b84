"""Random pairs of a view and a query that it may answer: selections of joins, grouped or not, near one another."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

TABLES = {
    "p": {"id": "int", "g": "int", "w": "text"},
    "c": {"id": "int", "pid": "int", "x": "int"},
    "d": {"cid": "int", "y": "decimal"},
    "o": {"a": "int", "b": "int", "x": "int"},
}
_JOINS = (
    ("c",),
    ("c", "p"),
    ("d", "c"),
    ("d", "c", "p"),
    ("o",),
    ("c", "o"),
    ("c", "c"),
)
_ON = {
    ("c", "p"): "{0}.pid = {1}.id",
    ("d", "c"): "{0}.cid = {1}.id",
    ("c", "o"): "{0}.x = {1}.a",
    ("c", "c"): "{0}.pid = {1}.pid",
}
_CALLS = ("COUNT(*)", "SUM({n})", "AVG({n})", "MIN({n})", "MAX({n})", "COUNT({n})", "VAR_POP({i})")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query in parts, so that another can be made that is near it."""

    tables: tuple[str, ...]
    where: tuple[str, ...]
    keys: tuple[str, ...] | None
    outputs: tuple[str, ...]
    having: str | None = None

    @property
    def text(self) -> str:
        places = [f"{table} {alias(number)}" for number, table in enumerate(self.tables)]
        joins = [_on(self.tables, number) for number in range(1, len(self.tables))]
        listed = ", ".join(f"{output} AS o{place}" for place, output in enumerate(self.outputs))
        text = f"SELECT {listed} FROM {places[0]}"
        text += "".join(f" JOIN {place} ON {on}" for place, on in zip(places[1:], joins, strict=True))
        text += f" WHERE {' AND '.join(self.where)}" if self.where else ""
        text += f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return text + (f" HAVING {self.having}" if self.having else "")


def alias(number: int) -> str:
    return f"t{number}"


def _on(tables: tuple[str, ...], number: int) -> str:
    for before in range(number - 1, -1, -1):
        pair = (tables[before], tables[number])
        if pair in _ON:
            return _ON[pair].format(alias(before), alias(number))
    raise AssertionError(tables)


class Pairs:
    def __init__(self, random: Random) -> None:
        self.random = random

    def view(self) -> Asked:
        tables = self.random.choice(_JOINS)
        grouped = self.random.random() < 0.55
        where = tuple(self._condition(tables) for _ in range(self.random.choice((0, 0, 0, 1, 1, 2))))
        if not grouped:
            return Asked(tables, where, None, tuple(dict.fromkeys(self._row_outputs(tables))))
        keys = tuple(dict.fromkeys(self._key(tables) for _ in range(self.random.choice((0, 1, 2, 2, 3)))))
        calls = tuple(dict.fromkeys(self._call(tables) for _ in range(self.random.randint(1, 4))))
        having = "COUNT(*) > 1" if self.random.random() < 0.15 else None
        return Asked(tables, where, keys, (*keys, *calls), having)

    def query(self, view: Asked) -> Asked:
        """Mostly of the view's own parts."""
        tables = view.tables
        dice = self.random.random()
        if dice < 0.2 and len(tables) > 1 and tables[-1] == "p":
            tables = tables[:-1]
        elif dice < 0.3 and tables[-1] == "c" and len(tables) < 3:
            tables = (*tables, "p")
        known = [c for c in view.where if _within(c, tables)]
        where = [self._narrowed(condition) for condition in known if self.random.random() < 0.93]
        where += [self._condition(tables) for _ in range(self.random.choice((0, 0, 1)))]
        if view.keys is None and self.random.random() < 0.6:
            outputs = [one for one in view.outputs if _within(one, tables) and self.random.random() < 0.8]
            outputs += [self._row_outputs(tables)[0]] if self.random.random() < 0.15 or not outputs else []
            return Asked(tables, tuple(where), None, tuple(dict.fromkeys(outputs)))
        keys = [k for k in (view.keys or view.outputs[:2]) if _within(k, tables) and self.random.random() < 0.7]
        keys += [self._key(tables)] if self.random.random() < 0.1 else []
        calls = (
            [c for c in view.outputs if "(" in c and _within(c, tables) and self.random.random() < 0.8]
            if view.keys is not None
            else []
        )
        calls += [self._call(tables)] if not calls or self.random.random() < 0.15 else []
        having = view.having if self.random.random() < 0.5 else None
        return Asked(tables, tuple(where), tuple(dict.fromkeys(keys)), tuple(dict.fromkeys((*keys, *calls))), having)

    def _columns(self, tables: tuple[str, ...], kind: str) -> list[str]:
        return [
            f"{alias(number)}.{column}"
            for number, table in enumerate(tables)
            for column, type_ in TABLES[table].items()
            if type_ == kind
        ]

    def _row_outputs(self, tables: tuple[str, ...]) -> list[str]:
        columns = [c for kind in ("int", "decimal", "text") for c in self._columns(tables, kind)]
        chosen = self.random.sample(columns, self.random.randint(1, len(columns)))
        return [
            c if self.random.random() < 0.9 else f"{c} + 1" if not c.endswith(".w") else f"UPPER({c})" for c in chosen
        ]

    def _key(self, tables: tuple[str, ...]) -> str:
        column = self.random.choice(self._columns(tables, "int") + self._columns(tables, "text"))
        return column if self.random.random() < 0.9 or column.endswith(".w") else f"{column} % 3"

    def _call(self, tables: tuple[str, ...]) -> str:
        integers = self._columns(tables, "int")
        numbers = integers + self._columns(tables, "decimal")
        call = self.random.choice(_CALLS).format(n=self.random.choice(numbers), i=self.random.choice(integers))
        return f"{call} FILTER (WHERE {self._condition(tables)})" if self.random.random() < 0.05 else call

    def _condition(self, tables: tuple[str, ...]) -> str:
        column, value = self.random.choice(self._columns(tables, "int")), self.random.randint(0, 5)
        forms = (
            "{c} > {v}",
            "{c} >= {v}",
            "{c} < {v}",
            "{v} <= {c}",
            "{c} = {v}",
            "{c} IN ({v}, {w})",
            "{c} IS NOT NULL",
            "{c} <> {v}",
            "{c} BETWEEN {v} AND {w}",
        )
        return self.random.choice(forms).format(c=column, v=value, w=value + self.random.randint(0, 3))

    def _narrowed(self, condition: str) -> str:
        column, _, rest = condition.partition(" ")
        if self.random.random() < 0.6 or not column.startswith("t"):
            return condition
        if rest.startswith((">", "<")) and rest.split()[0] != "<>":
            sign, value = rest.split()
            return f"{column} {sign} {int(value) + self.random.choice((-1, 0, 1, 1 if sign[0] == '>' else -1))}"
        return (
            condition
            if rest == "IS NOT NULL" and self.random.random() < 0.5
            else f"{column} = {self.random.randint(0, 5)}"
        )


def _within(text: str, tables: tuple[str, ...]) -> bool:
    return all(f"t{number}." not in text for number in range(len(tables), 4))
