"""Random changes of columns among random writes: every csn is a state that the source had, columns known by identity.

The oracle keeps the source's table after each of its transactions, with columns named by numbers that never change.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sizes import times
from tests.sources.harness import Row, new_warehouse, stored_at_each
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

SERVERS = {"postgres": PostgresHarness, "mariadb": MariadbHarness, "mysql": MysqlHarness}
KINDS = [*(pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in SERVERS), "sqlite"]
TRANSACTIONS = 14


@dataclass
class State:
    """The table after a transaction: the name of each column by its identity, and the rows."""

    names: dict[int, str]
    rows: Counter[Row] = field(default_factory=Counter)

    def seen(self, ids: list[int]) -> Counter[Row]:
        places = [list(self.names).index(one) for one in ids]
        seen: Counter[Row] = Counter()
        for row, count in self.rows.items():
            seen[tuple(row[place] for place in places)] += count
        return seen


class History:
    """A table ``wide`` at a database. No value is in two columns, but constants."""

    def __init__(self, harness: Any, chance: random.Random) -> None:
        self._harness, self._chance = harness, chance
        self._count = 0
        self.told: list[str] = []
        self.ddl: Callable[[str], object] = self.execute
        """What runs statements that capture would block."""
        self.settings = SourceSettings(
            harness.kind, harness.settings().address, (TableSettings("wide", "wide"), TableSettings("note", "note"))
        )
        self.names = dict(enumerate(("id", "a", "b", "c", "d")))
        self.types = dict.fromkeys(self.names, "INT") | {2: "NUMERIC(10,2)"}
        self.execute("CREATE TABLE wide (id INT PRIMARY KEY, a INT, b NUMERIC(10,2), c INT, d INT)")
        if harness.kind == "postgres":
            self.execute("ALTER TABLE wide REPLICA IDENTITY FULL")
        self.states: list[State] = []
        self.transaction(self.write)

    def execute(self, text: str) -> list[Row]:
        self.told.append(text)
        if isinstance(self._harness, MariadbHarness):
            return list(self._harness.execute(text))
        cursor = self._harness.connection.execute(text if self._harness.kind == "sqlite" else text.encode())
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def transaction(self, *works: Callable[[], None]) -> None:
        """At MariaDB every change of columns is one of its own; of SQLite a reading is."""
        alone = not isinstance(self._harness, PostgresHarness)
        for some in [[work] for work in works] if alone else [works]:
            self.execute("BEGIN")
            for work in some:
                work()
            self.execute("COMMIT")
            self._note()

    def _alter(self, text: str, names: dict[int, str]) -> None:
        if self._harness.kind == "sqlite" and text.startswith("DROP"):
            self.execute("COMMIT")
            self._note()
            self.told.append(text)
            self.ddl(f"ALTER TABLE wide {text}")
            self.names = names
            self._note()
            self.execute("BEGIN")
            return
        self.execute(f"ALTER TABLE wide {text}")
        self.names = names
        if isinstance(self._harness, MariadbHarness):
            self._note()

    def _note(self) -> None:
        columns = ", ".join(self.names.values())
        self.states.append(State(dict(self.names), Counter(self.execute(f"SELECT {columns} FROM wide"))))

    def write(self) -> None:
        others = [one for one in self.names if one]
        for _ in range(self._chance.randint(1, 2)):
            self._count += 1
            values = ", ".join(str(1000 * one + self._count) for one in others)
            columns = ", ".join(self.names[one] for one in others)
            self.execute(f"INSERT INTO wide (id, {columns}) VALUES ({self._count}, {values})")
        one = self._chance.choice(others)
        self.execute(f"UPDATE wide SET {self.names[one]} = {1000 * one + self._count} WHERE id % 3 = 1")
        self.execute(f"DELETE FROM wide WHERE id % 5 = {self._chance.randint(0, 12)}")

    def alter(self) -> None:
        choices = [self._rename, self._swap, self._add, self._add, self._drop, self._again, self._widen]
        self._chance.choice(choices)()

    def _some(self) -> int:
        return self._chance.choice([one for one in self.names if one])

    def _new(self, name: str, default: bool) -> None:
        number = max(self.types) + 1
        self.types[number] = "INT"
        self._alter(f"ADD COLUMN {name} INT{f' DEFAULT {number}' if default else ''}", {**self.names, number: name})

    def _rename(self) -> None:
        one, new = self._some(), f"r{len(self.told)}"
        self._alter(f"RENAME COLUMN {self.names[one]} TO {new}", {**self.names, one: new})

    def _swap(self) -> None:
        one, other = self._chance.sample([one for one in self.names if one], 2)
        a, b = self.names[one], self.names[other]
        for id_, old, new in ((one, a, "swapping"), (other, b, a), (one, "swapping", b)):
            self._alter(f"RENAME COLUMN {old} TO {new}", {**self.names, id_: new})

    def _add(self) -> None:
        self._new(f"n{len(self.told)}", self._chance.random() < 0.5)

    def _drop(self) -> None:
        if len(self.names) > 3:
            one = self._some()
            self._alter(f"DROP COLUMN {self.names[one]}", {k: v for k, v in self.names.items() if k != one})

    def _again(self) -> None:
        one = self._some()
        name = self.names[one]
        self._alter(f"DROP COLUMN {name}", {k: v for k, v in self.names.items() if k != one})
        self._new(name, True)

    def _widen(self) -> None:
        one = self._some()
        if self.types[one] not in ("INT", "NUMERIC(10,2)") or self._harness.kind == "sqlite":
            return
        self.types[one] = "BIGINT" if self.types[one] == "INT" else "NUMERIC(12,2)"
        name = self.names[one]
        how = f"MODIFY {name}" if isinstance(self._harness, MariadbHarness) else f"ALTER {name} TYPE"
        self._alter(f"{how} {self.types[one]}", dict(self.names))


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    open_: list[Any] = []

    def make() -> Any:
        kind = request.param
        open_.append(
            SERVERS[kind](request.getfixturevalue(f"{kind}_server")) if kind in SERVERS else SqliteHarness(tmp_path)
        )
        return open_[-1]

    yield make
    for harness in open_:
        harness.close()


@pytest.mark.parametrize("seed", range(times(4, 20)))
def test_every_csn_is_a_state_of_the_source(made: Callable[[], Any], tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    history = History(made(), chance)
    with new_warehouse(tmp_path / "w") as warehouse:
        warehouse.add_source("bank", history.settings)
        history.ddl = lambda text: warehouse.alter_source("bank", text)
        begun = len(history.states) - 1
        for _ in range(TRANSACTIONS):
            works = chance.choice(
                [
                    [history.write],
                    [history.alter],
                    [history.write, history.alter, history.write],
                    [history.alter, history.write],
                ]
            )
            history.transaction(*works)
            if chance.random() < 0.3:
                caught_up(warehouse, history)
        history.transaction(history.write)
        caught_up(warehouse, history)
        check(warehouse, history, begun)


def caught_up(warehouse: Warehouse, history: History) -> None:
    (done,) = warehouse.capture().sources
    assert done.problem is None, (done.problem, history.told)
    relation = warehouse.snapshot().get("wide")
    assert sorted(relation.schema.names) == sorted(history.names.values()), history.told


def check(warehouse: Warehouse, history: History, begun: int) -> None:
    snapshot = warehouse.snapshot()
    relation = snapshot.get("wide")
    ids = {name: one for one, name in history.names.items()}
    own = {column.stored: ids[column.name] for column in relation.schema}
    first = {column.stored for column in relation.layouts[0].schema}
    kept = [one for one in history.names if one < 5]
    assert {own[stored] for stored in own if stored in first} == set(kept), history.told
    csns = range(1, snapshot.moment.csn + 1)
    place, order = begun, [own[column.stored] for column in relation.schema]
    for csn, rows in zip(csns, stored_at_each(warehouse, "wide", csns), strict=True):
        then = {own[c.stored]: c.name for c in relation.schema_at(csn) if c.stored in own}
        places = [order.index(one) for one in then]
        seen: Counter[Row] = Counter()
        for row, count in rows.items():
            seen[tuple(row[p] for p in places)] += count
        while not is_at(history.states[place], then, seen):
            place += 1
            assert place < len(history.states), (csn, then, seen, history.told)
    assert place == len(history.states) - 1


def is_at(state: State, then: dict[int, str], rows: Counter[Row]) -> bool:
    return then.items() <= state.names.items() and state.seen(list(then)) == rows
