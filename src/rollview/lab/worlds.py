"""Random views, tables and transactions, for each of the transaction scenarios of *The Strobe Algorithms*."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from rollview.consistency.bags import Bag, Row, bag
from rollview.consistency.history import HistoryUnit, Update
from rollview.consistency.join_view import JoinView, Occurrence
from rollview.lab.simulator import GlobalUnit

KEYS = 3
VALUES = 2


class Scenario(StrEnum):
    CENTRALIZED = "centralized"
    ONE_SOURCE = "single source"
    SINGLE = "single updates"
    LOCAL = "source-local"
    GLOBAL = "global"

    @property
    def has_one_source(self) -> bool:
        return self in (Scenario.CENTRALIZED, Scenario.ONE_SOURCE)


@dataclass(frozen=True, slots=True)
class World:
    view: JoinView
    initial: Mapping[str, Bag]
    transactions: tuple[GlobalUnit, ...]


def chain_view(tables: int, scenario: Scenario) -> JoinView:
    """r1 ⋈ r2 ⋈ …: each row has a key, and a value on either side that it joins by. Keys are shown, values not all."""
    one = "x" if scenario.has_one_source else ""
    occurrences = tuple(
        Occurrence(f"r{i}", (f"k{i}", f"v{i}", f"v{i + 1}"), (f"k{i}",), one or f"x{i}", f"r{i}")
        for i in range(1, tables + 1)
    )
    return JoinView(occurrences, (*(f"k{i}" for i in range(1, tables + 1)), "v1"))


def make_world(random: Random, scenario: Scenario, tables: int = 3, transactions: int = 4) -> World:
    view = chain_view(tables, scenario)
    rows = {
        one.table: {key: _row(random, key) for key in range(KEYS) if random.random() < 0.7} for one in view.occurrences
    }
    initial = {table: bag(found.values()) for table, found in rows.items()}
    made = tuple(_transaction(random, scenario, view, rows, number) for number in range(1, transactions + 1))
    return World(view, initial, made)


def _transaction(
    random: Random, scenario: Scenario, view: JoinView, rows: dict[str, dict[int, Row]], number: int
) -> GlobalUnit:
    if scenario in (Scenario.CENTRALIZED, Scenario.ONE_SOURCE, Scenario.SINGLE):
        one = random.choice(view.occurrences)
        return (HistoryUnit(one.source, (_update(random, one.table, rows[one.table]),)),)
    if scenario is Scenario.LOCAL or random.random() < 0.4:
        one = random.choice(view.occurrences)
        return (HistoryUnit(one.source, _updates(random, one.table, rows[one.table])),)
    some = random.sample(view.occurrences, 2)
    return tuple(HistoryUnit(one.source, _updates(random, one.table, rows[one.table]), f"T{number}") for one in some)


def _updates(random: Random, table: str, rows: dict[int, Row]) -> tuple[Update, ...]:
    return tuple(_update(random, table, rows) for _ in range(random.randint(1, 3)))


def _update(random: Random, table: str, rows: dict[int, Row]) -> Update:
    key = random.randrange(KEYS)
    if key in rows:
        return Update(table, rows.pop(key), -1)
    rows[key] = _row(random, key)
    return Update(table, rows[key], 1)


def _row(random: Random, key: int) -> Row:
    return (key, random.randrange(VALUES), random.randrange(VALUES))
