"""Select-project-join views over bags, and their evaluation.

Law: a join multiplies counts, so evaluation is linear in every table: V(… R + Δ …) = V(… R …) + V(… Δ …).
Tables join where their columns have one name, as the papers write it. A ``Partial`` is what some of the view's tables
have been joined to; joining it with the others, in any order, gives the view.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from rollview.consistency.bags import Bag, Row, counted

COMPARES: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A table as the view reads it. ``name`` is its own in the view; ``table`` may occur twice."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    source: str
    table: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on one column: ``column sign value``."""

    column: str
    sign: str
    value: Any


@dataclass(frozen=True, slots=True)
class Partial:
    """The join of the occurrences ``have``; of none, it is one empty row."""

    have: frozenset[str]
    columns: tuple[str, ...]
    rows: Bag


NOTHING_YET = Partial(frozenset(), (), {(): 1})


@dataclass(frozen=True)
class JoinView:
    occurrences: tuple[Occurrence, ...]
    shown: tuple[str, ...]
    where: tuple[Comparison, ...] = ()

    @cached_property
    def named(self) -> Mapping[str, Occurrence]:
        return {one.name: one for one in self.occurrences}

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.source for one in self.occurrences))

    @cached_property
    def is_keyed(self) -> bool:
        """Whether every row shows the key of each row that it was joined from."""
        return all(one.key and set(one.key) <= set(self.shown) for one in self.occurrences)

    def of_table(self, table: str) -> tuple[Occurrence, ...]:
        return tuple(one for one in self.occurrences if one.table == table)

    def partial(self, name: str, rows: Bag) -> Partial:
        return Partial(frozenset((name,)), self.named[name].columns, rows)

    def finish(self, whole: Partial) -> Bag:
        """Select and project what all occurrences have been joined to."""
        at = _positions(whole.columns, self.shown)
        tests = [(whole.columns.index(one.column), COMPARES[one.sign], one.value) for one in self.where]
        kept = ((row, n) for row, n in whole.rows.items() if all(test(row[i], value) for i, test, value in tests))
        return counted((tuple(row[i] for i in at), n) for row, n in kept)

    def evaluate(self, tables: Mapping[str, Bag]) -> Bag:
        whole = NOTHING_YET
        for one in self.occurrences:
            whole = join(whole, self.partial(one.name, tables.get(one.table, {})))
        return self.finish(whole)

    def key_delete(self, rows: Bag, table: str, row: Row) -> Bag:
        """Shown rows without those that were joined from a row with this key."""
        return self.key_deletes(rows, [(table, row)])

    def key_deletes(self, rows: Bag, deleted: Collection[tuple[str, Row]]) -> Bag:
        """The same for many rows, each with its table, in one pass."""
        for one in self.occurrences:
            gone = [row for table, row in deleted if table == one.table]
            if gone:
                at, key = _positions(self.shown, one.key), _positions(one.columns, one.key)
                keys = {tuple(row[i] for i in key) for row in gone}
                rows = {shown: n for shown, n in rows.items() if tuple(shown[i] for i in at) not in keys}
        return rows

    def row_delete(self, whole: Partial, table: str, row: Row) -> Partial:
        """Joined rows without those that were joined from exactly this row: all of its columns are compared."""
        for one in self.of_table(table):
            at = _positions(whole.columns, one.columns)
            kept = {found: n for found, n in whole.rows.items() if tuple(found[i] for i in at) != row}
            whole = Partial(whole.have, whole.columns, kept)
        return whole


def join(left: Partial, right: Partial) -> Partial:
    """Natural join; columns of one name are equal in every row."""
    shared, rest = _shared(left.columns, right.columns)
    by_key: dict[Row, list[tuple[Row, int]]] = {}
    for row, n in right.rows.items():
        key = tuple(row[i] for _, i in shared)
        by_key.setdefault(key, []).append((tuple(row[i] for i in rest), n))
    found = (
        (row + more, n * m)
        for row, n in left.rows.items()
        for more, m in by_key.get(tuple(row[i] for i, _ in shared), ())
    )
    columns = left.columns + tuple(right.columns[i] for i in rest)
    return Partial(left.have | right.have, columns, counted(found))


def arranged(one: Partial, columns: tuple[str, ...]) -> Partial:
    """The same rows with their columns in this order; columns that are not named are dropped."""
    at = _positions(one.columns, columns)
    rows = counted((tuple(row[i] for i in at), n) for row, n in one.rows.items())
    return Partial(one.have, columns, rows)


def keys_of(one: Partial, columns: tuple[str, ...]) -> Partial:
    """The values of these columns, each once. Counts do not matter: a row that went and one that came share a key."""
    at = _positions(one.columns, columns)
    return Partial(frozenset(), columns, dict.fromkeys((tuple(row[i] for i in at) for row in one.rows), 1))


def natural(text: str, shown: str | None = None) -> JoinView:
    """A view in the papers' short form, ``r1(A*B)@x ⋈ r2(BC*)@y``: tables, a letter for each column, a star behind
    those of the key, and the table's source. All columns are shown, unless ``shown`` names some."""
    occurrences = tuple(_occurrence(part.strip()) for part in text.split("⋈"))
    every = dict.fromkeys(column for one in occurrences for column in one.columns)
    return JoinView(occurrences, tuple(shown) if shown is not None else tuple(every))


def _occurrence(text: str) -> Occurrence:
    name, _, rest = text.partition("(")
    letters, _, source = rest.partition(")@")
    columns = tuple(letter for letter in letters if letter != "*")
    key = tuple(letter for letter, after in zip(letters, letters[1:] + " ", strict=True) if after == "*")
    return Occurrence(name, columns, key, source, name)


@lru_cache(maxsize=4096)
def _positions(columns: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(columns.index(name) for name in wanted)


@lru_cache(maxsize=4096)
def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Where columns of one name are on both sides, and which of the right side are new."""
    both = tuple((left.index(name), i) for i, name in enumerate(right) if name in left)
    return both, tuple(i for i, name in enumerate(right) if name not in left)
