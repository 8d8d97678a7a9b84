from __future__ import annotations

import pytest
from tests.spark.tables.local import Local

from rollview import errors
from rollview.tables import ask


@pytest.fixture(params=["arrow", "spark"])
def shop(request: pytest.FixtureRequest, local: Local, monkeypatch: pytest.MonkeyPatch) -> Local:
    if request.param == "spark":
        monkeypatch.setattr(ask, "SMALL", -1)
    local.ddl(
        "CREATE TABLE customer (id BIGINT PRIMARY KEY, mail STRING UNIQUE, name STRING NOT NULL)",
        "CREATE TABLE item (a INT, b STRING, PRIMARY KEY (a, b), boss_a INT, boss_b STRING,"
        " owner BIGINT REFERENCES customer, FOREIGN KEY (boss_a, boss_b) REFERENCES item (A, B))",
    )
    local.run(
        "INSERT INTO customer VALUES (1, 'a@x', 'Ann'), (2, NULL, 'Bob'), (3, NULL, 'Cy')",
        "INSERT INTO item VALUES (1, 'x', NULL, NULL, 1), (1, 'y', 1, 'x', NULL), (2, 'x', 9, NULL, 2)",
    )
    return local


def test_constraints_hold_and_say_which_key_breaks_them(shop: Local) -> None:
    broken = {
        "INSERT INTO customer VALUES (1, NULL, 'X')": "primary key .id.: id = 1",
        "INSERT INTO customer VALUES (NULL, NULL, 'X')": "NOT NULL of column 'id'",
        "INSERT INTO customer VALUES (7, 'a@x', 'X')": "UNIQUE .mail.: mail = a@x",
        "UPDATE customer SET name = NULL WHERE id = 1": "NOT NULL of column 'name'",
        "INSERT INTO item (a, b) VALUES (5, 'z'), (5, 'z')": "a = 5, b = z",
        "INSERT INTO item (a, b, owner) VALUES (6, 'z', 77)": "foreign key .owner.: 'customer' has no row with id = 77",
        "DELETE FROM customer WHERE id = 1": "rows with owner = 1 still refer to 'customer'",
        "UPDATE customer SET id = 20 WHERE id = 2": "owner = 2",
        "DELETE FROM item WHERE a = 1 AND b = 'x'": "boss_a = 1, boss_b = x",
        "INSERT INTO item VALUES (8, 'a', 8, 'b', NULL)": "foreign key .boss_a, boss_b.",
    }
    for statement, says in broken.items():
        with pytest.raises(errors.ConstraintViolated, match=says):
            shop.run(statement)
    assert shop.csn == 1


def test_constraints_are_about_the_whole_transaction(shop: Local) -> None:
    shop.run("UPDATE customer SET id = id + 1", "UPDATE item SET owner = owner + 1")
    shop.run(
        "INSERT INTO item VALUES (8, 'a', 8, 'b', 99)",
        "INSERT INTO item VALUES (8, 'b', 8, 'a', NULL)",
        "INSERT INTO customer VALUES (99, NULL, 'New')",
        "DELETE FROM item WHERE a = 1",
    )
    assert shop.query("SELECT count(*), sum(id) FROM customer") == {(4, 108): 1}


def test_what_another_commit_broke_can_be_tried_again(shop: Local) -> None:
    inserts, deletes, mails = shop.begin(), shop.begin(), shop.begin()
    inserts.sql("INSERT INTO item (a, b, owner) VALUES (7, 'q', 3)")
    deletes.sql("DELETE FROM customer WHERE id = 3")
    mails.sql("INSERT INTO customer VALUES (50, 'b@x', 'New')")
    deletes.commit()
    with pytest.raises(errors.Conflict, match="foreign key"):
        inserts.commit()
    shop.run("UPDATE customer SET mail = 'b@x' WHERE id = 2")
    with pytest.raises(errors.Conflict, match="UNIQUE"):
        mails.commit()


def test_floating_keys_are_equal_as_spark_says(local: Local) -> None:
    local.ddl("CREATE TABLE f (x DOUBLE PRIMARY KEY)")
    local.run("INSERT INTO f VALUES (0.0D), (DOUBLE('NaN'))")
    for value in ("-0.0D", "DOUBLE('NaN')"):
        with pytest.raises(errors.ConstraintViolated, match="primary key"):
            local.run(f"INSERT INTO f VALUES ({value})")
