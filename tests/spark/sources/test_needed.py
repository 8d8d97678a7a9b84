"""Only what views need is copied, and every view is what it would be over the whole table, at every csn."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sources.harness import ACCOUNTS, Bag, Write, account, capture, stored
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.mysql_harness import MysqlHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness
from tests.sources.test_rows import change

from rollview.capture.restrict import restriction
from rollview.core.schema import Column, Schema
from rollview.errors import OutOfReach, UsageError
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.spark

KINDS = ["sqlite", *(pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("postgres", "mariadb", "mysql"))]

BY_OWNER = """
    CREATE MATERIALIZED VIEW by_owner AS
    SELECT owner, COUNT(*) AS n FROM account WHERE balance >= 10 AND owner <> 'bob' GROUP BY owner
"""
POOR = "CREATE MATERIALIZED VIEW poor AS SELECT id, owner FROM account WHERE balance < 10 OR balance IS NULL"
ALL = "CREATE MATERIALIZED VIEW everything AS SELECT * FROM account"


@pytest.fixture(params=KINDS)
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "postgres":
        made: Any = PostgresHarness(request.getfixturevalue("postgres_server"))
    elif request.param == "mariadb":
        made = MariadbHarness(request.getfixturevalue("mariadb_server"))
    elif request.param == "mysql":
        made = MysqlHarness(request.getfixturevalue("mysql_server"))
    else:
        made = SqliteHarness(tmp_path)
    with closing(made):
        yield made


def needed(bank: Any) -> SourceSettings:
    whole: SourceSettings = bank.settings()
    return replace(whole, tables=tuple(replace(table, needed=True) for table in whole.tables))


def by_owner(rows: Bag) -> Bag:
    found: Bag = Counter()
    for (_, owner, balance), count in rows.items():
        if owner not in (None, "bob") and balance is not None and balance >= 10:
            found[owner] += count
    return Counter((owner, n) for owner, n in found.items())


def poor(rows: Bag) -> Bag:
    return Counter((row[0], row[1]) for row in rows if row[2] is None or row[2] < 10)


def read(warehouse: Warehouse, view: str, at: int) -> Bag:
    return Counter(tuple(row) for row in warehouse.read(view, at).collect())


def test_views_over_what_is_needed_are_exact_at_every_csn(spark: SparkSession, bank: Any, tmp_path: Path) -> None:
    chance = random.Random(3)
    with Warehouse.create(tmp_path / "w") as made, closing(Warehouse.open(made.root, spark=spark)) as warehouse:
        warehouse.add_source("bank", needed(bank), declared=[BY_OWNER])
        assert stored(warehouse, "note") == Counter()
        assert stored(warehouse, "account") == Counter(row for row in ACCOUNTS if row[0] == 1)
        assert warehouse.create_view(BY_OWNER).notes == ()
        owners: dict[int, Bag] = {}
        poors: dict[int, Bag] = {}

        def note(*answers: tuple[dict[int, Bag], Any]) -> None:
            csn = warehouse.snapshot().moment.csn
            for seen, answer in answers:
                seen[csn] = answer(bank.rows("account"))

        for _ in range(6):
            change(bank, chance)
            capture(warehouse)
            note((owners, by_owner))
        change(bank, chance)
        notes = warehouse.create_view(POOR).notes
        assert any("`balance` < 10" in note for note in notes)
        note((owners, by_owner), (poors, poor))
        for _ in range(6):
            change(bank, chance)
            capture(warehouse)
            note((owners, by_owner), (poors, poor))
        warehouse.refresh()
        assert {csn: read(warehouse, "by_owner", csn) for csn in owners} == owners
        assert {csn: read(warehouse, "poor", csn) for csn in poors} == poors
        warehouse.create_view(ALL)
        csn = warehouse.snapshot().moment.csn
        names = warehouse.snapshot().get("everything").schema.names
        places = [("id", "owner", "balance").index(name) for name in names]
        whole = Counter(tuple(row[place] for place in places) for row in bank.rows("account"))
        assert read(warehouse, "everything", csn) == whole
        change(bank, chance)
        capture(warehouse)
        warehouse.refresh()
        assert all(warehouse.verify(view).equal for view in ("by_owner", "poor", "everything"))


def test_what_is_not_needed_is_not_there_and_is_not_asked_in_vain(spark: SparkSession, tmp_path: Path) -> None:
    with (
        closing(SqliteHarness(tmp_path)) as bank,
        Warehouse.create(tmp_path / "w") as made,
        closing(Warehouse.open(made.root, spark=spark)) as warehouse,
    ):
        warehouse.add_source("bank", needed(bank))
        assert warehouse.snapshot().get("account").schema.names == ("id",)
        assert stored(warehouse, "account") == Counter()
        with pytest.raises(UsageError, match="only rows that views need are here: FALSE"):
            warehouse.sql("SELECT COUNT(*) FROM account")
        before = warehouse.snapshot().moment.csn
        with pytest.raises(UsageError, match="no column 'nobody'"):
            warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT nobody FROM account")
        assert warehouse.snapshot().moment.csn == before
        created = warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT owner FROM account WHERE id IN (1, 2)")
        assert created.notes[:2] == ("table 'account' has as well: owner", "rows of table 'account': `id` IN (1, 2)")
        assert warehouse.snapshot().get("account").schema.names == ("id", "owner")
        (answer,) = warehouse.sql("SELECT COUNT(*) FROM account WHERE id IN (1, 2) AND owner = 'bob'")
        assert answer.rows is not None
        assert answer.rows.collect()[0][0] == 1
        with pytest.raises(UsageError, match="only rows that views need"):
            warehouse.sql("SELECT owner FROM account")
        bank.write(Write("account", None, account(9, "eve", "1.00")))
        assert capture(warehouse).units == 0


def test_a_view_does_not_begin_before_what_it_needs_is_there(spark: SparkSession, tmp_path: Path) -> None:
    with (
        closing(SqliteHarness(tmp_path)) as bank,
        Warehouse.create(tmp_path / "w") as made,
        closing(Warehouse.open(made.root, spark=spark)) as warehouse,
    ):
        warehouse.add_source("bank", needed(bank))
        warehouse.create_view("CREATE MATERIALIZED VIEW notes AS SELECT text FROM note")
        late = "CREATE MATERIALIZED VIEW late AS SELECT a.id FROM account a JOIN notes n ON n.text <> a.owner"
        with pytest.raises(OutOfReach, match="table 'account' is what it is now since"):
            warehouse.create_view(late)
        warehouse.refresh()
        assert warehouse.create_view(late).rows == 6
        assert warehouse.verify("late").equal


def test_a_column_that_was_not_asked_for_is_told_with_the_command(spark: SparkSession, tmp_path: Path) -> None:
    with (
        closing(SqliteHarness(tmp_path)) as bank,
        Warehouse.create(tmp_path / "w") as made,
        closing(Warehouse.open(made.root, spark=spark)) as warehouse,
    ):
        tables = tuple(replace(table, columns=("id",)) for table in bank.settings().tables if table.remote == "account")
        warehouse.add_source("bank", replace(bank.settings(), tables=tables))
        with pytest.raises(UsageError, match="no column 'owner'") as refusal:
            warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT owner FROM account")
        assert "rollview source resnapshot bank --widen" in (refusal.value.hint or "")


VALUES = pa.table(
    {
        "i": pa.array([None, -1, 0, 1, 100], pa.int16()),
        "b": pa.array([None, -(1 << 63), 0, (1 << 63) - 1, 5], pa.int64()),
        "m": pa.array([None, *map(Decimal, ("-9.99", "0.00", "10.00", "10.01"))], pa.decimal128(30, 2)),
        "s": pa.array([None, "", "a", "A", "é\U0001f600"]),
        "d": pa.array([None, date(1, 1, 1), date(2026, 3, 29), date(2026, 3, 30), date(9999, 12, 31)]),
        "t": pa.array(
            [None, *(datetime(2026, 3, 29, hour, tzinfo=UTC) for hour in (0, 1, 2, 3))], pa.timestamp("us", "UTC")
        ),
        "n": pa.array([None, *(datetime(2026, 3, 29, hour) for hour in (0, 1, 2, 3))], pa.timestamp("us")),
        "f": pa.array([None, True, False, True, False]),
    }
)
TYPES = ("smallint", "bigint", "decimal(30,2)", "string", "date", "timestamp", "timestamp_ntz", "boolean")
CONDITIONS = [
    "i = 1",
    "NOT i <> 1",
    "1 < i",
    "i <= 100000",
    "i IN (1, -1)",
    "i NOT IN (0, 1)",
    "b >= 9223372036854775807",
    "b BETWEEN -5 AND 5",
    "NOT b BETWEEN -5 AND 5",
    "m = 10",
    "m > 10.001",
    "m <> -9.99",
    "s = 'a'",
    "s < 'a'",
    "s >= 'A' AND s <> 'a'",
    "s > '\U0001f600' OR s = ''",
    "d = DATE '2026-03-29'",
    "d > '2026-03-29'",
    "t >= TIMESTAMP '2026-03-29 01:00:00Z'",
    "t < TIMESTAMP '2026-03-29 04:00:00+02:00'",
    "n = TIMESTAMP_NTZ '2026-03-29 02:00:00'",
    "f",
    "NOT f",
    "f = FALSE OR s IS NULL",
    "i <=> 1",
    "NOT (i <=> 1)",
    "NOT (i = 1 AND s = 'b')",
    "i IS NOT NULL AND (s = 'a' OR d IS NULL)",
    "TRUE",
    "FALSE",
    "NOT FALSE AND f",
]


def test_a_condition_means_here_what_it_means_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """All pairs of values of two columns, so that every combination with NULL is there."""
    size = VALUES.num_rows
    left = VALUES.take(pa.array([place for place in range(size) for _ in range(size)]))
    turned = pa.array([(place + other) % size for place in range(size) for other in range(size)])
    rows = left.set_column(3, "s", VALUES["s"].take(turned)).set_column(4, "d", VALUES["d"].take(turned))
    rows = rows.append_column("at", pa.array(range(rows.num_rows)))
    pq.write_table(rows, tmp_path / "rows.parquet")
    data = spark.read.parquet(str(tmp_path / "rows.parquet"))
    schema = Schema(tuple(Column(name, type_) for name, type_ in zip(VALUES.column_names, TYPES, strict=True)))
    tuples = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    for text in CONDITIONS:
        keep = restriction(TableSettings("r", "r", rows=text), schema)
        assert keep is not None
        expected = {row.at for row in data.where(text).select("at").collect()}
        assert set(keep.table(rows)["at"].to_pylist()) == expected, text
        assert {row[-1] for row in keep.rows(tuples)} == expected, text
