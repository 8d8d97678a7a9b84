"""Columns of PostgreSQL's announced layouts are known by their numbers, or not at all."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rollview.sources.postgres.identity import Facts, aligned, learned
from rollview.sources.postgres.messages import MessageColumn

INT, TEXT = 23, 25


class Catalog:
    """A table whose columns are altered as PostgreSQL does it."""

    def __init__(self, *names: str) -> None:
        self.last = self.version = 0
        self.columns: dict[int, list[Any]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str, type_: int = INT) -> None:
        self.last += 1
        self.version += 1
        self.columns[self.last] = [name, type_, str(self.version)]

    def rename(self, old: str, new: str) -> None:
        self.version += 1
        self.columns[self.number(old)] = [new, INT, str(self.version)]

    def drop(self, name: str) -> None:
        del self.columns[self.number(name)]

    def number(self, name: str) -> int:
        return next(number for number, column in self.columns.items() if column[0] == name)

    def facts(self) -> Facts:
        columns = {name: [type_, -1, number, version] for number, (name, type_, version) in self.columns.items()}
        return {"oid": 1, "file": 1, "columns": columns, "generated": [], "last": self.last}

    def message(self) -> tuple[MessageColumn, ...]:
        return tuple(MessageColumn(name, type_, -1) for _, (name, type_, _) in sorted(self.columns.items()))


def numbers(message: tuple[MessageColumn, ...], before: Facts, now: Facts) -> list[int | None]:
    return [one.number for one in aligned(message, before, now)]


def test_names_that_change_places_are_followed() -> None:
    table = Catalog("id", "a", "b")
    before = table.facts()
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        table.rename(old, new)
    assert numbers(table.message(), before, table.facts()) == [1, 2, 3]


def test_what_was_dropped_and_what_was_renamed_are_told_apart_by_what_is_there_now() -> None:
    table = Catalog("id", "a", "b")
    before = table.facts()
    table.drop("a")
    table.rename("b", "a")
    assert numbers(table.message(), before, table.facts()) == [1, 3]


def test_a_layout_of_which_a_column_is_gone_by_now_may_be_in_doubt() -> None:
    table = Catalog("id", "a", "b")
    before = table.facts()
    table.rename("a", "x")
    table.rename("b", "y")
    table.add("c")
    between = table.message()
    table.drop("x")
    assert numbers(between, before, table.facts()) == [1, 2, 3, 4]
    table.drop("y")
    table.add("d")
    # The last one may be the one that was added last, and then one of the two was gone.
    assert numbers(between, before, table.facts()) == [1, None, None, None]
    table = Catalog("id", "a", "b")
    before = table.facts()
    table.drop("a")
    table.rename("b", "a")
    between = table.message()
    table.drop("a")
    # One of the two was there, and nobody can tell which; the key was not described anew.
    assert [one.numbers for one in aligned(between, before, table.facts())] == [frozenset({1}), frozenset({2, 3})]


def test_a_name_proves_something_only_where_the_column_was_not_described_anew() -> None:
    table = Catalog("id", "a", "b")
    before = table.facts()
    table.drop("b")
    table.add("b")
    # Rows of this layout may come from before the drop.
    assert numbers(table.message(), before, table.facts()) == [1, 2, None]
    table.rename("id", "x")
    table.rename("a", "id")
    assert numbers(table.message(), before, table.facts()) == [1, 2, None]


def test_a_layout_that_cannot_be_is_no_column() -> None:
    table = Catalog("id", "a")
    assert numbers((MessageColumn("id", INT, -1),), table.facts(), table.facts()) == [None]


@pytest.mark.parametrize("seed", range(40))
def test_whoever_is_known_is_right(seed: int) -> None:
    chance, table = random.Random(seed), Catalog("id", "a", "b", "c", "d")
    recorded = table.facts()
    certain = 0
    for _ in range(20):
        met: list[tuple[tuple[MessageColumn, ...], list[int]]] = []
        for _ in range(chance.randint(1, 4)):
            for _ in range(chance.randint(0, 2)):
                _alter(table, chance)
            met.append((table.message(), sorted(table.columns)))
        now = table.facts()
        for message, true in met:
            layout = aligned(message, recorded, now)
            for one, number in zip(layout, true, strict=True):
                assert number in one.numbers
                certain += one.number is not None
            recorded = learned(recorded, layout)
        if chance.random() < 0.3:
            recorded = now
    assert certain > 50


def _alter(table: Catalog, chance: random.Random) -> None:
    names = [column[0] for column in table.columns.values()]
    how, new = chance.random(), f"n{table.version}"
    if how < 0.5:
        table.rename(chance.choice(names), new)
    elif how < 0.75 or len(names) < 3:
        table.add(chance.choice([name for name in (new, "x", "y", "z") if name not in names]))
    else:
        table.drop(chance.choice(names))
