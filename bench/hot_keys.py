"""How the cost of an operator grows with the commits to a few hot keys: ``python -m bench.hot_keys``.

200 accounts of 7 owners, one commit per change of an account, and the propagation query of each view over all of the
commits at once, analysed and planned before, as in a refresh that is not the first of its kind. Milliseconds per commit
fall or stay level where an operator costs its rows and commits, and grow where it costs their product. ``sum`` is
linear: the view beside which the others are read. ``--one-by-one`` measures the queries that look at all rows of a key
at each of its commits, as they are written for few commits.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench.goals import Figures
from rollview.algebra.definition import Declared
from rollview.algebra.expressions import identifier
from rollview.algebra.resolve import Known
from rollview.algebra.script import FEW_ROWS
from rollview.algebra.stages import stages
from rollview.algebra.summary import GROUPS
from rollview.algebra.text import render
from rollview.algebra.view import Propagation, ViewPlan, outline, plan
from rollview.core.schema import Column, Schema
from rollview.engine import session
from rollview.engine.analysed import Analysed

ACCOUNTS, OWNERS = 200, 7
COMMITS = (1_000, 4_000, 16_000, 64_000)
QUICK = (1_000, 4_000)
ROUNDS = 3
VIEWS = {
    "sum": "SELECT owner, SUM(amount) AS s FROM account GROUP BY owner",
    "max": "SELECT owner, MAX(amount) AS m, COUNT(*) AS n FROM account GROUP BY owner",
    "distinct": "SELECT o.name FROM (SELECT DISTINCT owner FROM account) AS d JOIN owner AS o ON o.id = d.owner",
    "left join": "SELECT o.name, a.amount FROM owner AS o LEFT JOIN account AS a ON a.owner = o.id AND a.amount > 950",
    "full join": "SELECT o.name, a.id FROM owner AS o FULL JOIN account AS a ON a.owner = o.id AND a.amount > 950",
    "semi join": "SELECT o.name FROM owner AS o LEFT SEMI JOIN account AS a ON a.owner = o.id AND a.amount > 990",
    "count distinct": "SELECT owner, COUNT(DISTINCT amount) AS n FROM account GROUP BY owner",
    "max and avg": "SELECT owner, MAX(amount) AS m, AVG(amount) AS a, SUM(id) AS s FROM account GROUP BY owner",
    "exists": "SELECT o.name FROM owner AS o WHERE EXISTS (SELECT 1 FROM account AS a WHERE a.owner = o.id)",
    "except": "SELECT id AS i FROM owner EXCEPT SELECT owner FROM account WHERE amount > 900",
    "anti join": "SELECT a.id, a.amount FROM account AS a LEFT ANTI JOIN owner AS o ON o.id = a.owner",
}
KNOWN = {
    "account": Known("account", Schema((Column("id", "int"), Column("owner", "int"), Column("amount", "int")))),
    "owner": Known("owner", Schema((Column("id", "int"), Column("name", "string")))),
}

SIZES = {"account": FEW_ROWS, "owner": FEW_ROWS, GROUPS: FEW_ROWS}

console = Console()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one-by-one", action="store_true", help="as queries are written for few commits")
    parser.add_argument("--only", action="append", choices=sorted(VIEWS), help="a view by name")
    parser.add_argument("commits", nargs="*", type=int, default=COMMITS)
    options = parser.parse_args()
    found = measure(session.start(), options.commits, options.only or tuple(VIEWS), many=not options.one_by_one)
    show(found, console)


def measure(
    spark: SparkSession, commits: Sequence[int], views: Sequence[str] = tuple(VIEWS), *, many: bool = True
) -> Figures:
    """Seconds by view and commits: the quickest of some rounds, in each of which all views take their turn."""
    spark = session.for_small_work(spark)
    seconds: Figures = {name: {} for name in views}
    for number in commits:
        with tempfile.TemporaryDirectory() as folder:
            write(spark, Path(folder), number)
            queries = {name: Query(spark, VIEWS[name], many=many) for name in views}
            for _ in range(ROUNDS):
                for name, found in seconds.items():
                    took = queries[name].run()
                    found[str(number)] = min(took, found.get(str(number), took))
        console.print(f"{number:,} commits: " + ", ".join(f"{n} {f[str(number)]:.2f}" for n, f in seconds.items()))
    return seconds


def show(seconds: Figures, console: Console) -> None:
    sizes = [int(number) for number in next(iter(seconds.values()))]
    shown = Table("view", *(f"{number:,} commits" for number in sizes), "ms per commit", title="Commits to 7 hot keys")
    for name, found in seconds.items():
        each = ", ".join(f"{1000 * found[str(number)] / number:.2f}" for number in sizes)
        shown.add_row(name, *(f"{found[str(number)]:.2f} s" for number in sizes), each)
    console.print(shown)


def write(spark: SparkSession, folder: Path, commits: int) -> None:
    """The tables before the commits, and their changes, under the names that propagation queries read."""
    random = Random(commits)
    accounts = {i: (i, i % OWNERS, random.randint(1, 1000)) for i in range(ACCOUNTS)}
    owners = {i: (i, f"owner {i}") for i in range(OWNERS + 1)}
    old = {"account": list(accounts.values()), "owner": list(owners.values())}
    delta: dict[str, list[tuple[Any, ...]]] = {"account": [], "owner": []}
    for csn in range(1, commits + 1):
        account = accounts[random.randrange(ACCOUNTS)]
        accounts[account[0]] = (*account[:2], random.randint(1, 1000))
        delta["account"] += [(*account, -1, csn), (*accounts[account[0]], 1, csn)]
        if csn % 50 == 0:
            owner = owners[random.randrange(OWNERS)]
            owners[owner[0]] = (owner[0], f"owner {csn}")
            delta["owner"] += [(*owner, -1, csn), (*owners[owner[0]], 1, csn)]
    for name, known in KNOWN.items():
        columns = [*known.schema.names, "_count", "_csn"]
        stored(spark, folder, f"{name}@old", columns[:-1], [(*row, 1) for row in old[name]])
        stored(spark, folder, f"{name}@delta", columns, delta[name])


def stored(spark: SparkSession, folder: Path, name: str, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    types = {"name": pa.string(), "_count": pa.int64(), "_csn": pa.int64()}
    values = zip(*rows, strict=True)
    arrays = {
        column: pa.array(found, types.get(column, pa.int32())) for column, found in zip(columns, values, strict=True)
    }
    pq.write_table(pa.table(arrays), folder / f"{name}.parquet")
    spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(identifier(name).sql("spark"))


class Query:
    """The propagation of a view over all of the commits."""

    def __init__(self, spark: SparkSession, query: str, *, many: bool) -> None:
        made = compiled(spark, query)
        if made.summary is not None:
            first = spark.sql(render(made.first_groups().query))
            first.createOrReplaceTempView(identifier(GROUPS).sql("spark"))
        (only,) = stages(made.propagation(many=many, sizes=SIZES).query)
        self.analysed = Analysed(spark.sql(render(only.query)), keeps_plan=True)
        self.analysed.again()

    def run(self) -> float:
        """Seconds that it took."""
        began = time.perf_counter()
        self.analysed.again().write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began


def compiled(spark: SparkSession, query: str) -> ViewPlan:
    made = outline(Declared("v", (), None, {}, query, False), KNOWN)
    facts = dict(zip(("input", "results"), (types(spark, probe) for probe in made.probes or ()), strict=False))
    return plan(made, facts)


def types(spark: SparkSession, probe: Propagation) -> dict[str, str]:
    return dict(spark.sql(render(probe.query)).dtypes)


if __name__ == "__main__":
    main()
