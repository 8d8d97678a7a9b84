"""ALTER TABLE on Spark: every csn is read in its own columns, and views follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rollview
from rollview import errors
from rollview.core.states import ViewState
from rollview.publish.fold import fold
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def warehouse(tmp_path: Path, spark: SparkSession) -> Iterator[Warehouse]:
    Warehouse.create(tmp_path / "w").close()
    with rollview.open(tmp_path / "w", spark=spark) as opened:
        yield opened


def rows(warehouse: Warehouse, text: str, at: int | None = None) -> list[tuple[Any, ...]]:
    answer = warehouse.query(text, as_of=at)
    assert answer.rows is not None
    return sorted((tuple(row) for row in answer.rows.collect()), key=str)


def test_each_csn_is_read_in_the_names_columns_and_types_of_then(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE customer (id INT PRIMARY KEY, name STRING, phone STRING)",
        "INSERT INTO customer VALUES (1, 'Tom', '123'), (2, 'Bob', '146')",  # 1
        "ALTER TABLE customer RENAME COLUMN name TO first_last",  # 2
        "ALTER TABLE customer ADD COLUMN points INT DEFAULT 5",  # 3
        "UPDATE customer SET points = NULL WHERE id = 2",  # 4
        "ALTER TABLE customer ALTER COLUMN points TYPE BIGINT",  # 5
        "INSERT INTO customer (id, points) VALUES (3, 3000000000)",  # 6
        "ALTER TABLE customer DROP COLUMN phone",  # 7
        "DELETE FROM customer WHERE id = 1",  # 8
        "ALTER TABLE customer ADD COLUMN phone INT",  # 9
        "INSERT INTO customer VALUES (4, 'Sue', DEFAULT, 7)",  # 10
    )
    everything = "SELECT * FROM customer"
    first = [(1, "Tom", "123"), (2, "Bob", "146")]
    assert rows(warehouse, everything, 1) == first
    assert warehouse.query("SELECT name FROM customer", as_of=1).rows.columns == ["name"]  # type: ignore[union-attr]
    assert rows(warehouse, everything, 2) == first
    assert rows(warehouse, "SELECT first_last, points FROM customer", 3) == [("Bob", 5), ("Tom", 5)]
    assert rows(warehouse, "SELECT id FROM customer WHERE points = 5", 4) == [(1,)]
    assert rows(warehouse, "SELECT id FROM customer WHERE points IS NULL", 4) == [(2,)]
    assert warehouse.read("customer", 4).schema["points"].dataType.simpleString() == "int"
    assert warehouse.read("customer", 5).schema["points"].dataType.simpleString() == "bigint"
    sixth = [(1, "Tom", "123", 5), (2, "Bob", "146", None), (3, None, None, 3000000000)]
    assert rows(warehouse, everything, 6) == sixth
    assert rows(warehouse, everything, 8) == [(2, "Bob", None), (3, None, 3000000000)]
    assert rows(warehouse, everything) == [(2, "Bob", None, None), (3, None, 3000000000, None), (4, "Sue", 5, 7)]
    with pytest.raises(errors.SqlError, match="first_last"):
        rows(warehouse, "SELECT first_last FROM customer", 1)
    assert [column.column for column in warehouse.schema_at("customer", 6).columns] == [
        "id",
        "first_last",
        "phone",
        "points",
    ]
    # Rewriting files keeps what older csns had; a fold beyond the drop gives it up, and says so.
    warehouse.maintain()
    assert rows(warehouse, everything, 6) == sixth
    assert rows(warehouse, "SELECT id FROM customer WHERE points = 5", 4) == [(1,)]
    assert warehouse.read("customer", 4).schema["points"].dataType.simpleString() == "int"


def test_a_csn_below_a_widening_is_read_from_files_that_were_written_after_it(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE t (id INT, points INT)",
        "INSERT INTO t VALUES (1, 5), (2, 6)",
        "ALTER TABLE t ALTER COLUMN points TYPE BIGINT",
        "INSERT INTO t VALUES (3, 3000000000)",
    )
    assert fold(warehouse._place.spark, warehouse._place.data, warehouse.catalog, "t")
    assert rows(warehouse, "SELECT * FROM t", 1) == [(1, 5), (2, 6)]
    for then in (warehouse.read("t", 1), warehouse.delta("t", 0, 1)):
        assert then.schema["points"].dataType.simpleString() == "int"
        assert then.count() == 2


def test_views_follow_a_new_name_and_see_no_new_column(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE customer (id INT PRIMARY KEY, name STRING, town STRING)",
        "CREATE TABLE flight (customer INT, name STRING)",
        "INSERT INTO customer VALUES (1, 'Tom', 'MA'), (2, 'Bob', 'CA')",
        "INSERT INTO flight VALUES (1, 'A34')",
        "CREATE MATERIALIZED VIEW everyone AS SELECT * FROM customer",
        "CREATE MATERIALIZED VIEW towns AS SELECT town, count(*) AS n, max(name) AS name FROM customer GROUP BY town",
        "CREATE MATERIALIZED VIEW flying AS "
        "SELECT c.name, f.name AS flight FROM customer c JOIN flight f ON f.customer = c.id",
        "CREATE MATERIALIZED VIEW above AS SELECT name FROM everyone WHERE town = 'CA'",
    )
    views = ("everyone", "towns", "flying", "above")
    before = warehouse.snapshot()
    # The two names change places, so that nothing may be looked up by name.
    warehouse.sql(
        "ALTER TABLE customer RENAME COLUMN name TO spare",
        "ALTER TABLE customer RENAME COLUMN town TO name",
        "ALTER TABLE customer RENAME COLUMN spare TO town",
        "ALTER TABLE customer ADD COLUMN extra STRING DEFAULT 'x'",
    )
    after = warehouse.snapshot()
    assert all(after.get(view).pins == before.get(view).pins for view in views)
    warehouse.sql(
        "INSERT INTO customer (id, town, name) VALUES (3, 'Sue', 'CA')",
        "INSERT INTO flight VALUES (3, 'B1')",
        "UPDATE customer SET town = 'Robert' WHERE id = 2",
    )
    warehouse.refresh()
    assert all(warehouse.verify(view).equal for view in views)
    assert rows(warehouse, "SELECT * FROM everyone") == [(1, "Tom", "MA"), (2, "Robert", "CA"), (3, "Sue", "CA")]
    assert rows(warehouse, "SELECT * FROM towns") == [("CA", 2, "Sue"), ("MA", 1, "Tom")]
    assert rows(warehouse, "SELECT * FROM flying") == [("Sue", "B1"), ("Tom", "A34")]
    assert rows(warehouse, "SELECT name, count(*) FROM customer GROUP BY name") == [("CA", 2), ("MA", 1)]
    # The same words mean other columns by now, so the view is computed anew.
    warehouse.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW flying AS "
        "SELECT c.name, f.name AS flight FROM customer c JOIN flight f ON f.customer = c.id"
    )
    assert rows(warehouse, "SELECT * FROM flying") == [("CA", "B1"), ("MA", "A34")]
    assert sorted(map(tuple, warehouse.read("flying", warehouse.snapshot().moment.csn - 1).collect())) == [
        ("Sue", "B1"),
        ("Tom", "A34"),
    ]
    warehouse.sql("ALTER TABLE customer RENAME COLUMN name TO place", "DELETE FROM flight WHERE customer = 1")
    warehouse.refresh()
    assert warehouse.verify("flying").equal
    assert rows(warehouse, "SELECT * FROM flying") == [("CA", "B1")]
    warehouse.sql("INSERT INTO customer (id, town, place) VALUES (4, 'Zoe', 'NY')")
    # Behind its table, a view is read with what it lacks.
    assert rows(warehouse, "SELECT name FROM towns WHERE town = 'NY'") == [("Zoe",)]


def test_what_a_view_names_and_loses_stops_it_at_the_csn_before(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE t (id INT, a STRING, b STRING)",
        "INSERT INTO t VALUES (1, 'x', 'y')",
        "CREATE MATERIALIZED VIEW loses AS SELECT id, a FROM t",
        "CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM loses",
        "CREATE MATERIALIZED VIEW goes_on AS SELECT id, b FROM t",
        "CREATE MATERIALIZED VIEW asks TBLPROPERTIES ('rollview.on_schema_change' = 'ask') AS SELECT b FROM t",
        "INSERT INTO t VALUES (2, 'u', 'v')",
        "ALTER TABLE t DROP COLUMN a",
        "ALTER TABLE t RENAME COLUMN b TO c",
        "INSERT INTO t VALUES (3, 'w')",
    )
    warehouse.refresh()
    snapshot = warehouse.snapshot()
    for view, at in (("loses", 2), ("above", 2), ("asks", 3)):
        assert snapshot.get(view).state is ViewState.SCHEMA_CHANGED
        assert snapshot.get(view).shown.through == at  # type: ignore[union-attr]
    assert rows(warehouse, "SELECT * FROM goes_on") == [(1, "y"), (2, "v"), (3, "w")]
    assert sorted(map(tuple, warehouse.read("loses").collect())) == [(1, "x"), (2, "u")]
    assert all(warehouse.verify(view).equal for view in ("loses", "above", "goes_on", "asks"))
    warehouse.sql(
        "CREATE MATERIALIZED VIEW strict TBLPROPERTIES ('rollview.on_schema_change' = 'stop') AS SELECT c FROM t"
    )
    for change in ("DROP COLUMN c", "RENAME COLUMN c TO d"):
        with pytest.raises(errors.UsageError, match="'strict' names column 'c'"):
            warehouse.sql(f"ALTER TABLE t {change}")


REFUSED = [
    ("ADD COLUMN A INT", "column of table 't' named 'a'"),
    ("ADD COLUMN d INT NOT NULL", "has rows"),
    ("ADD COLUMN d INT DEFAULT 'x'", "STRING cannot be stored"),
    ("ADD COLUMN d INT DEFAULT rand()", "not a constant"),
    ("ADD COLUMN d INT FIRST", "behind the others"),
    ("ADD COLUMN _count INT", "belong to rollview"),
    ("DROP COLUMN nope", "no column 'nope'"),
    ("DROP COLUMN id", r"part of its primary key \(id\)"),
    ("DROP COLUMN a", r"part of its UNIQUE \(a\)"),
    ("RENAME COLUMN a TO B", "named 'b'"),
    ("ALTER COLUMN id TYPE BIGINT", "part of its primary key"),
    ("ALTER COLUMN b TYPE SMALLINT", "cannot become SMALLINT"),
    ("ALTER COLUMN b TYPE BIGINT USING b + 1", "not supported"),
    ("ALTER COLUMN b SET NOT NULL", "a row has no b"),
    ("ALTER COLUMN id DROP NOT NULL", "primary key"),
    ("ADD CONSTRAINT u UNIQUE (c)", "c = 1 is there more than once"),
    ("ADD PRIMARY KEY (a)", "primary key already"),
    ("ADD CONSTRAINT f FOREIGN KEY (c) REFERENCES p (id)", "leads to no row of 'p'"),
    ("ADD CONSTRAINT k CHECK (a > 1)", "CHECK"),
    ("DROP CONSTRAINT nope", "no constraint 'nope'"),
    ("DROP CONSTRAINT primary_key", "views may rest on it: v"),
    ("RENAME TO p", "table 'p' already"),
    ("ALTER COLUMN a TYPE BIGINT", "UNIQUE"),
]


def test_what_cannot_be_altered_is_refused_and_changes_nothing(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE t (id INT PRIMARY KEY, a INT UNIQUE, b INT, c INT)",
        "INSERT INTO t VALUES (1, 1, NULL, 1), (2, 2, 1, 1)",
        "CREATE MATERIALIZED VIEW v AS SELECT id, b FROM t",
    )
    before = warehouse.snapshot()
    for change, says in REFUSED:
        with pytest.raises(errors.RollviewError, match=says):
            warehouse.sql(f"ALTER TABLE t {change}")
    with pytest.raises(errors.InUse, match="'v'"):
        warehouse.sql("ALTER TABLE t ALTER COLUMN b TYPE BIGINT")
    with pytest.raises(errors.UsageError, match="is a view"):
        warehouse.sql("ALTER TABLE v ADD COLUMN x INT")
    with pytest.raises(errors.NotFound):
        warehouse.sql("ALTER TABLE nope ADD COLUMN x INT")
    assert warehouse.snapshot() == before


def test_what_an_earlier_definition_reads_stays_as_it_is(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE t (k INT, c INT, d INT)",
        "INSERT INTO t VALUES (1, 2, 3)",
        "CREATE MATERIALIZED VIEW v AS SELECT k, c FROM t",
        "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, d FROM t",
        "ALTER TABLE t ADD COLUMN f FLOAT DEFAULT 0.1",
    )
    csn = warehouse.snapshot().moment.csn
    with pytest.raises(errors.Unsupported, match="FLOAT with a DEFAULT"):
        warehouse.sql("ALTER TABLE t ALTER COLUMN f TYPE DOUBLE")
    assert warehouse.snapshot().moment.csn == csn
    warehouse.sql("ALTER TABLE t DROP COLUMN c", "ALTER TABLE t RENAME TO u", "INSERT INTO u (k, d) VALUES (4, 5)")
    warehouse.refresh()
    assert [tuple(row) for row in warehouse.read("v", 1).collect()] == [(1, 2)]
    assert sorted(map(tuple, warehouse.read("v").collect())) == [(1, 3), (4, 5)]
    assert all(warehouse.verify("v", at).equal for at in (1, 2, csn, csn + 1, csn + 2, csn + 3))


def test_rules_that_are_added_are_kept_from_then_on_and_dropped_by_name(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE t (a INT, b INT)",
        "INSERT INTO p VALUES (1)",
        "INSERT INTO t VALUES (1, 1), (2, NULL)",
        "ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a)",
        "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (b) REFERENCES p",
        "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 1, ADD COLUMN d STRING",
        "ALTER TABLE t ADD CONSTRAINT u UNIQUE (b)",
        "ALTER TABLE p RENAME COLUMN id TO key",
        "ALTER TABLE p RENAME TO parent",
        "ALTER TABLE t ALTER COLUMN c SET DEFAULT 2",
        "INSERT INTO t (a) VALUES (3)",
    )
    for statement, says in (
        ("INSERT INTO t VALUES (1, NULL, 1, NULL)", "primary key"),
        ("INSERT INTO t VALUES (4, 1, 1, NULL)", "UNIQUE"),
        ("INSERT INTO t VALUES (4, 7, 1, NULL)", "'parent' has no row with key = 7"),
        ("INSERT INTO t VALUES (4, NULL, NULL, NULL)", "NOT NULL"),
        ("DELETE FROM parent", "still refer to 'parent'"),
    ):
        with pytest.raises(errors.ConstraintViolated, match=says):
            warehouse.sql(statement)
    warehouse.sql(
        "ALTER TABLE t DROP CONSTRAINT k",
        "ALTER TABLE t DROP CONSTRAINT f",
        "ALTER TABLE t DROP CONSTRAINT u",
        "ALTER TABLE t ALTER COLUMN c DROP NOT NULL",
        "ALTER TABLE t ALTER COLUMN c DROP DEFAULT",
        "INSERT INTO t (a, b) VALUES (1, 7), (1, 7)",
    )
    assert rows(warehouse, "SELECT a, b, c FROM t WHERE a = 1") == [(1, 1, 1), (1, 7, None), (1, 7, None)]
    assert rows(warehouse, "SELECT c FROM t WHERE a = 3") == [(2,)]


def test_a_transaction_that_began_before_is_refused(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE t (a INT)")

    def insert_while_it_is_altered() -> None:
        with warehouse.transaction() as begun:
            begun.sql("INSERT INTO t VALUES (1)")
            warehouse.sql("ALTER TABLE t ADD COLUMN b INT")

    with pytest.raises(errors.Conflict, match="it was altered"):
        insert_while_it_is_altered()
