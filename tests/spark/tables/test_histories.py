"""Random transactions beside the same done to Python's own bags, at every csn."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from tests.spark.tables.local import NAN, Local

from rollview import errors
from rollview.store import timed
from rollview.tables import Transaction

Row = tuple[Any, ...]
Bag = Counter[Row]


class Model:
    """``bag (a INT, x DOUBLE)`` with copies, NULL and NaN; ``keyed (id INT PRIMARY KEY, v INT)``."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bag: Bag = Counter()
        self.keyed: dict[int, int | None] = {}

    def step(self) -> str:
        return self.random.choice([self.insert, self.insert, self.delete, self.update, self.merge, self.keyed_update])()

    def insert(self) -> str:
        rows = [(self.value(), self.random.choice([None, NAN, 0.0, 1.5])) for _ in range(3)]
        rows *= self.random.choice([1, 2])
        self.bag.update(rows)
        return f"INSERT INTO bag VALUES {', '.join(f'({sql(a)}, {sql(x)})' for a, x in rows)}"

    def delete(self) -> str:
        a = self.random.randrange(4)
        self.bag = Counter({row: n for row, n in self.bag.items() if row[0] != a})
        return f"DELETE FROM bag WHERE a = {a}"

    def update(self) -> str:
        """NaN equals NaN; NULL + 1 is NULL."""
        self.bag = changed(self.bag, lambda r: (None if r[0] is None else r[0] + 1, r[1]) if r[1] in (NAN, None) else r)
        return "UPDATE bag SET a = a + 1 WHERE x = DOUBLE('NaN') OR x IS NULL"

    def merge(self) -> str:
        given = {key: self.value() for key in self.random.sample(range(6), 3)}
        for key, v in list(self.keyed.items()):
            if key not in given and v is None:
                del self.keyed[key]
        for key, v in given.items():
            if key in self.keyed and v is None:
                del self.keyed[key]
            else:
                self.keyed[key] = v
        rows = ", ".join(f"({key}, INT({sql(v)}))" for key, v in given.items())
        return f"""MERGE INTO keyed AS t USING (SELECT * FROM VALUES {rows} AS s(id, v)) AS s ON t.id = s.id
            WHEN MATCHED AND s.v IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT (v, id) VALUES (s.v, s.id)
            WHEN NOT MATCHED BY SOURCE AND t.v IS NULL THEN DELETE"""

    def keyed_update(self) -> str:
        """A shift of every key."""
        self.keyed = {key + 1: v for key, v in self.keyed.items()}
        return "UPDATE keyed SET id = id + 1"

    def value(self) -> int | None:
        return self.random.choice([None, 0, 1, 2, 3])


def changed(rows: Bag, function: Any) -> Bag:
    made: Bag = Counter()
    for row, copies in rows.items():
        made[function(row)] += copies
    return made


def sql(value: Any) -> str:
    return "NULL" if value is None else "DOUBLE('NaN')" if value == NAN else repr(value)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_transactions_do_what_sql_says_at_every_csn(
    local: Local, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed == 2:
        # as tables of any size are read
        monkeypatch.setattr(timed, "FEW_ROWS", -1)
    local.ddl("CREATE TABLE bag (a INT, x DOUBLE)", "CREATE TABLE keyed (id INT PRIMARY KEY, v INT)")
    model = Model(seed)
    states: dict[int, tuple[Bag, Bag]] = {0: (Counter(), Counter())}
    for _ in range(6):
        transaction = local.begin()
        statements = [model.step() for _ in range(model.random.choice([1, 2, 3]))]
        meanwhile = interfere(local) if model.random.random() < 0.3 else None
        transaction.sql(*statements)
        csn = transaction.commit().csn
        states[csn] = (Counter(model.bag), Counter(dict.fromkeys(model.keyed.items(), 1)))
        if meanwhile is not None and csn != meanwhile:
            states.pop(meanwhile, None)
    for csn, (bag, keyed) in states.items():
        assert local.rows("bag", csn) == bag, f"bag at {csn}"
        assert local.rows("keyed", csn) == keyed, f"keyed at {csn}"


def interfere(local: Local) -> int:
    """Another transaction commits first, in a table of its own, so that the csn that was guessed is taken."""
    if local.catalog.snapshot().find("other") is None:
        local.ddl("CREATE TABLE other (a INT)")
    return local.run("INSERT INTO other VALUES (1)").csn


def test_interleaved_transfers_keep_the_total(local: Local) -> None:
    local.ddl("CREATE TABLE account (id INT PRIMARY KEY, amount INT)")
    local.run("INSERT INTO account SELECT INT(id), 100 FROM range(4)")
    choose = random.Random(3)
    open_ones: list[Transaction] = []
    outcomes: Counter[str] = Counter()
    for _ in range(6):
        transaction = local.begin()
        source, target = choose.sample(range(4), 2)
        transaction.sql(
            f"UPDATE account SET amount = amount + CASE id WHEN {source} THEN -10 ELSE 10 END"
            f" WHERE id IN ({source}, {target})"
        )
        open_ones.append(transaction)
        if len(open_ones) > 1:
            first = open_ones.pop(choose.randrange(2))
            try:
                first.commit()
                outcomes["committed"] += 1
            except errors.Conflict:
                outcomes["conflict"] += 1
            assert local.query("SELECT sum(amount) FROM account") == {(400,): 1}
    assert outcomes["committed"]
    assert outcomes["conflict"]
