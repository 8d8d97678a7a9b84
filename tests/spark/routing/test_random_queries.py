"""Random queries near random views on Spark: routed, they have the rows of their text over the tables."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.property.asked import Asked, Pairs
from tests.sizes import times
from tests.spark.oracle.bags import bag
from tests.spark.oracle.warehouses import fresh

from rollview.errors import RollviewError, UsageError
from rollview.results import Answer
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES, OF_EACH = times(6, full=60), 6
"""So many queries in all, and of each warehouse."""
TABLES = (
    "CREATE TABLE p (id INT PRIMARY KEY, g INT, w STRING)",
    "CREATE TABLE c (id INT PRIMARY KEY, pid INT REFERENCES p (id), x INT)",
    "CREATE TABLE d (cid INT REFERENCES c (id), y DECIMAL(8,2))",
    "CREATE TABLE o (a INT, b INT, x INT, PRIMARY KEY (a, b))",
)


def value(random: Random, most: int) -> str:
    return "NULL" if random.random() < 0.25 else str(random.randint(0, most))


def commit(warehouse: Warehouse, random: Random, number: int) -> None:
    """Rows of all tables come, and some go."""
    ids = range(10 * number, 10 * number + 4)
    rows = {
        "p": [f"({i}, {value(random, 3)}, '{random.choice('abA')}')" for i in ids],
        "c": [f"({i}, {random.choice((*map(str, ids), 'NULL'))}, {value(random, 3)})" for i in ids],
        "d": [f"({random.choice(ids)}, {value(random, 3)}.25)".replace("NULL.25", "NULL") for _ in range(5)],
        "o": [f"({i % 4}, {i}, {value(random, 3)})" for i in ids],
    }
    changes = [f"INSERT INTO {table} VALUES {', '.join(values)}" for table, values in rows.items()]
    changes += [f"DELETE FROM o WHERE b = {10 * number + 1}", f"UPDATE c SET x = 1 WHERE id = {10 * number}"]
    warehouse.sql(*changes)


def make_views(warehouse: Warehouse, pairs: Pairs) -> list[Asked]:
    """All over the same tables, so that some of them may answer what is asked near another."""
    made: list[Asked] = []
    tables = pairs.view().tables
    while len(made) < 3:
        asked = next(view for _ in itertools.count() if (view := pairs.view()).tables == tables)
        try:
            warehouse.create_view(f"CREATE MATERIALIZED VIEW v{len(made)} AS {asked.text}")
            made.append(asked)
        except UsageError:
            continue
    return made


def answered(warehouse: Warehouse, query: str) -> Answer:
    """From views, where they can answer: which is cheaper says little where there are few rows."""
    try:
        return warehouse.query(query, max_staleness="2 commits", rewrite="require")
    except UsageError:
        return warehouse.query(query, max_staleness="2 commits")


def routed(warehouse: Warehouse, query: str) -> bool:
    """Whether views answered the query, which is what its text answers at the csn that the answer names."""
    answer = answered(warehouse, query)
    plain = warehouse.query(query, as_of=answer.csn, rewrite="off")
    assert answer.rows is not None
    assert plain.rows is not None
    assert answer.rows.dtypes == plain.rows.dtypes, query
    assert bag(answer.rows.collect()) == bag(plain.rows.collect()), query
    return any(one.relation.startswith("v") for one in answer.used)


def queries_near(warehouse: Warehouse, pairs: Pairs, views: list[Asked]) -> list[str]:
    """Those that Spark accepts."""
    found: list[str] = []
    for view in itertools.cycle(views):
        text = pairs.query(view).text
        try:
            warehouse.query(text, rewrite="off")
        except RollviewError:
            continue
        found.append(text)
        if len(found) == OF_EACH:
            break
    return found


def test_routed_equals_unrouted_at_the_csn_named(spark: SparkSession, tmp_path: Path) -> None:
    used: list[bool] = []
    for seed in range(1, 1 + QUERIES // OF_EACH):
        random = Random(seed)
        pairs = Pairs(random)
        with fresh(spark, tmp_path / f"w{seed}") as warehouse:
            warehouse.sql(*TABLES)
            commit(warehouse, random, 0)
            views = make_views(warehouse, pairs)
            commit(warehouse, random, 1)
            warehouse.refresh(["v0"])
            commit(warehouse, random, 2)
            used += [routed(warehouse, query) for query in queries_near(warehouse, pairs, views)]
    assert 2 * sum(used) >= len(used), used
