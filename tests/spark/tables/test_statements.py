from __future__ import annotations

from collections import Counter

import pytest
from tests.spark.tables.local import NAN, Local

from rollview import errors


@pytest.fixture
def shop(local: Local) -> Local:
    local.ddl(
        "CREATE TABLE bag (a INT, b STRING, x DOUBLE)",
        "CREATE TABLE stock (id BIGINT PRIMARY KEY, name VARCHAR(5), price DECIMAL(6,2))",
    )
    local.run(
        "INSERT INTO bag VALUES (1, 'x', 0.5), (1, 'x', 0.5), (NULL, NULL, DOUBLE('NaN')), (NULL, NULL, DOUBLE('NaN'))",
        "INSERT INTO stock (price, ID) VALUES (1.005, 1), (2, 2)",
    )
    return local


def test_rows_are_cast_to_their_columns_and_missing_ones_are_null(shop: Local) -> None:
    assert {tuple(map(str, row)) for row in shop.rows("stock")} == {("1", "None", "1.01"), ("2", "None", "2.00")}


def test_copies_are_updated_and_deleted_one_by_one(shop: Local) -> None:
    done = shop.run("UPDATE bag SET b = concat(b, '!'), x = x + 1 WHERE a = 1", "DELETE FROM bag AS y WHERE isnan(y.x)")
    assert shop.rows("bag") == {(1, "x!", 1.5): 2}
    assert (done.changes[0].inserted, done.changes[0].deleted, done.changes[0].updated) == (2, 4, None)
    assert shop.rows("bag", at=1) == {(1, "x", 0.5): 2, (None, None, NAN): 2}


def test_an_update_to_the_same_values_changes_nothing(shop: Local) -> None:
    before = shop.csn
    assert shop.run("UPDATE bag SET a = a, x = x + 0").changes == ()
    assert shop.csn == before


def test_an_update_may_change_the_sign_of_a_zero_alone(shop: Local) -> None:
    shop.run("INSERT INTO bag VALUES (7, 'z', 0.0)")
    shop.run("UPDATE bag SET x = -x WHERE a = 7")
    assert shop.query("SELECT CAST(x AS STRING) FROM bag WHERE a = 7") == {("-0.0",): 1}


def test_statements_see_earlier_ones_and_changes_are_netted(shop: Local) -> None:
    done = shop.run(
        "INSERT INTO bag SELECT a + 10, b, x FROM bag WHERE a = 1",
        "UPDATE bag SET b = (SELECT max(name) FROM stock) WHERE a > 10",
        "DELETE FROM bag WHERE a > 10 OR a IN (SELECT id FROM stock WHERE id = 2)",
        "UPDATE stock SET name = 'new' WHERE id = (SELECT count(DISTINCT a) FROM bag)",
    )
    assert [change.relation for change in done.changes] == ["stock"]
    assert done.changes[0].updated == 1


def test_each_copy_gets_its_own_random_value_and_it_is_drawn_once(shop: Local) -> None:
    transaction = shop.begin()
    transaction.sql("UPDATE bag SET b = uuid() WHERE a = 1")
    seen = {row["b"] for row in transaction.query("SELECT b FROM bag WHERE a = 1").collect()}
    transaction.sql("UPDATE bag SET a = 7 WHERE a = 1")
    transaction.commit()
    assert len(seen) == 2
    assert {row[1] for row in shop.query("SELECT * FROM bag WHERE a = 7")} == seen


def test_ctes_hide_tables_only_where_they_reach(shop: Local) -> None:
    shop.run("WITH stock AS (SELECT id FROM stock WHERE id = 1) INSERT INTO bag (a) SELECT id FROM stock")
    assert shop.query("SELECT count(*) FROM bag WHERE x IS NULL") == {(1,): 1}
    nested = "SELECT (WITH bag AS (SELECT 5 AS n) SELECT n FROM bag) AS n, count(*) FROM bag"
    assert shop.query(nested) == {(5, 5): 1}


def test_merge_does_what_the_first_clause_that_holds_says(shop: Local) -> None:
    done = shop.run(
        """
        MERGE INTO stock AS t
        USING (SELECT * FROM VALUES (1, 'a', 9), (3, 'c', 3), (4, 'd', 0), (NULL, 'n', 1) AS v(id, name, price)) AS s
        ON t.id = s.id
        WHEN MATCHED AND s.price > 5 THEN UPDATE SET t.price = s.price, name = upper(s.name)
        WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED AND s.price = 0 THEN INSERT (id, name) VALUES (s.id, 'free')
        WHEN NOT MATCHED AND s.id IS NOT NULL THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND 1 / (t.id - 1) > 5 THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET price = price * 2
        """
    )
    found = {tuple(map(str, row)) for row in shop.rows("stock")}
    assert found == {("1", "A", "9.00"), ("2", "None", "4.00"), ("3", "c", "3.00"), ("4", "free", "None")}
    assert (done.changes[0].inserted, done.changes[0].deleted, done.changes[0].updated) == (4, 2, 2)


def test_merge_treats_copies_of_a_target_row_alike_and_refuses_several_sources(shop: Local) -> None:
    shop.run("MERGE INTO bag USING stock AS s ON bag.a = s.id WHEN MATCHED THEN UPDATE SET b = 'm'")
    assert shop.rows("bag")[(1, "m", 0.5)] == 2
    twice = "(SELECT 1 AS id UNION ALL SELECT 1) AS s ON bag.a = s.id WHEN MATCHED"
    with pytest.raises(errors.ConstraintViolated, match="several rows of the source"):
        shop.run(f"MERGE INTO bag USING {twice} THEN UPDATE SET b = 'q'")
    shop.run(f"MERGE INTO bag USING {twice} THEN DELETE")
    assert shop.rows("bag") == {(None, None, NAN): 2}


def test_rows_come_and_go_as_dataframes(shop: Local) -> None:
    transaction = shop.begin()
    transaction.insert("bag", shop.spark.createDataFrame([("k", 3)], "b string, A bigint"))
    row = shop.spark.createDataFrame([(1, "x", 0.5)], "a int, b string, x double")
    transaction.delete("bag", row)
    transaction.commit()
    assert shop.rows("bag") == {(1, "x", 0.5): 1, (3, "k", None): 1, (None, None, NAN): 2}
    with pytest.raises(errors.ConstraintViolated, match="does not have"):
        shop.begin().delete("bag", row.unionAll(row))


REFUSED = [
    ("INSERT INTO stock VALUES ('1', 'a', 1)", errors.SqlError, "STRING cannot be stored"),
    ("INSERT INTO stock VALUES (1, 'a', 12345)", errors.SqlError, "OUT_OF_RANGE"),
    ("INSERT INTO stock VALUES (1, 'abcdef', 1)", errors.ConstraintViolated, "abcdef"),
    ("INSERT INTO stock VALUES (1, 'a')", errors.SqlError, "2 values for 3 columns"),
    ("INSERT INTO stock (id, Id) VALUES (1, 2)", errors.SqlError, "twice"),
    ("INSERT INTO stock (nope) VALUES (1)", errors.SqlError, "no column 'nope'"),
    ("INSERT OVERWRITE stock SELECT 1, 'a', 1", errors.Unsupported, "OVERWRITE"),
    ("INSERT INTO stock SELECT * FROM parquet.`/etc`", errors.Unsafe, "reads any file"),
    ("INSERT INTO nope VALUES (1)", errors.NotFound, "nope"),
    ("UPDATE stock SET price = id / 0", errors.SqlError, "DIVIDE_BY_ZERO"),
    ("UPDATE stock SET id = 1, ID = 2", errors.SqlError, "set twice"),
    ("DELETE FROM stock WHERE nope = 1", errors.SqlError, "UNRESOLVED_COLUMN"),
    ("SELECT 1", errors.Unsupported, "cannot be part"),
]


def test_what_is_wrong_is_told_and_changes_nothing(shop: Local) -> None:
    before = shop.csn
    for statement, error, says in REFUSED:
        with pytest.raises(error, match=says):
            shop.run(statement)
    assert shop.csn == before
    assert shop.catalog.steps(status="running") == ()


def test_truncate_deletes_every_copy(shop: Local) -> None:
    shop.run("TRUNCATE TABLE bag")
    assert shop.rows("bag") == Counter()
