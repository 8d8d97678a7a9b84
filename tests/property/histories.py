"""Random histories: transactions of signed rows, a third NULL, half duplicates, keys updated, groups emptied and
refilled.

Over keyed tables every transaction keeps the keys and foreign keys, as a database would.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

from rollview.algebra.resolve import Known

Row = tuple[Any, ...]
Change = tuple[Row, int]
Transaction = dict[str, list[Change]]

_WORDS = ["a", "b", "ab", "", "é", "A"]
_DOUBLES = [0.5, -0.0, 0.0, 1e16, 1.0, -2.25, math.inf, -math.inf, math.nan]


def random_value(random: Random, type_: str) -> Any:
    if random.random() < 0.3:
        return None
    if type_ == "int":
        return random.randint(0, 3)
    if type_ == "double":
        return random.choice(_DOUBLES if random.random() < 0.3 else [*_DOUBLES[:1], 1.5, 2.0, -3.0])
    if type_ == "string":
        return random.choice(_WORDS)
    if type_ == "boolean":
        return random.random() < 0.5
    if type_ == "date":
        return date(2024, random.choice([1, 2]), random.randint(1, 2))
    return Decimal(random.randint(-300, 300)) / 100


def random_history(random: Random, tables: tuple[Known, ...], length: int) -> list[Transaction]:
    states: dict[str, Counter[Row]] = {table.name: Counter() for table in tables}
    history = []
    for _ in range(length):
        transaction = random_transaction(random, tables, states)
        for name, changes in transaction.items():
            for row, count in changes:
                states[name][row] += count
            states[name] = +states[name]
        history.append(transaction)
    return history


def random_transaction(random: Random, tables: tuple[Known, ...], states: dict[str, Counter[Row]]) -> Transaction:
    make = _keyed_transaction if tables[0].constraints.primary_key else _bag_transaction
    return make(random, tables, states)


def _bag_transaction(random: Random, tables: tuple[Known, ...], states: dict[str, Counter[Row]]) -> Transaction:
    transaction: Transaction = {}
    for table in random.sample(tables, random.choice([1, 1, 2, len(tables)])):
        held = list(states[table.name].elements())
        deleted = held if random.random() < 0.06 else random.sample(held, min(len(held), random.randint(0, 3)))
        changes = [(row, -1) for row in deleted]
        for _ in range(random.randint(0, 4)):
            pool = held + deleted
            fresh = tuple(random_value(random, column.type) for column in table.schema)
            row = random.choice(pool) if pool and random.random() < 0.5 else fresh
            changes.append((row, 1))
        transaction[table.name] = net(changes)
    return {name: changes for name, changes in transaction.items() if changes}


def _keyed_transaction(random: Random, tables: tuple[Known, ...], states: dict[str, Counter[Row]]) -> Transaction:
    """Change some rows of every table, then take away what would dangle."""
    after: dict[str, list[Row]] = {name: list(rows.elements()) for name, rows in states.items()}
    for table in random.sample(tables, min(len(tables), random.choice([1, 2, 3]))):
        rows = after[table.name]
        for row in random.sample(rows, min(len(rows), random.choice([0, 1, 1, 2]))):
            rows.remove(row)
            if random.random() < 0.5:
                rows.append(_changed(random, table, row))
        for _ in range(random.randint(0, 3)):
            rows.append(tuple(random_value(random, column.type) for column in table.schema))
    _repair(tables, after)
    return {
        name: changes
        for name in after
        if (changes := net([(row, 1) for row in after[name]] + [(row, -1) for row in states[name].elements()]))
    }


def _changed(random: Random, table: Known, row: Row) -> Row:
    i = random.randrange(len(row))
    return (*row[:i], random_value(random, table.schema.columns[i].type), *row[i + 1 :])


def _repair(tables: tuple[Known, ...], after: dict[str, list[Row]]) -> None:
    for table in tables:
        rows = after[table.name]
        for key in table.constraints.keys:
            at = _places(table, key)
            rows = list({_part(row, at): row for row in rows if None not in _part(row, at)}.values())
        for foreign in table.constraints.foreign_keys:
            parent = next(other for other in tables if other.name == foreign.table)
            ours, theirs = _places(table, foreign.columns), _places(parent, foreign.referenced)
            parents = {_part(row, theirs) for row in after[parent.name]}
            rows = [row for row in rows if None in _part(row, ours) or _part(row, ours) in parents]
        after[table.name] = rows


def _places(table: Known, columns: tuple[str, ...]) -> list[int]:
    return [table.schema.names.index(name) for name in columns]


def _part(row: Row, places: list[int]) -> Row:
    return tuple(row[place] for place in places)


def net(changes: list[Change]) -> list[Change]:
    """Counts added, zeroes gone, one entry per copy."""
    total: dict[str, tuple[Row, int]] = {}
    for row, count in changes:
        known, sum_ = total.get(repr(row), (row, 0))
        total[repr(row)] = (known, sum_ + count)
    return [(row, 1 if count > 0 else -1) for row, count in total.values() for _ in range(abs(count))]
