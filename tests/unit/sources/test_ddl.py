"""Statements of MariaDB's log that are about columns."""

from __future__ import annotations

import pytest

from rollview.sources.binlog.ddl import UnclearError, altered

TABLES = {"t": {"id": "int(11)", "name": "varchar(20)", "price": "decimal(12,2)", "code": "char(3)"}}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("ALTER TABLE t ADD COLUMN extra INT", ["extra"]),
        ("ALTER TABLE t ADD extra DECIMAL(10,2) DEFAULT 1.5 AFTER name, DROP price", ["extra", "price"]),
        ("alter table `d`.`t` rename column `name` to other", ["name", "other"]),
        ("ALTER TABLE t CHANGE name title VARCHAR(20)", ["name", "title"]),
        ("ALTER TABLE t CHANGE name name VARCHAR(30) NOT NULL", []),
        ("ALTER TABLE t MODIFY name VARCHAR(19)", ["name"]),
        ("ALTER TABLE t MODIFY name VARCHAR(40) AFTER id", []),
        ("ALTER TABLE t MODIFY name TEXT", ["name"]),
        ("ALTER TABLE t MODIFY name VARCHAR(20) CHARACTER SET latin1", ["name"]),
        ("ALTER TABLE t MODIFY price DECIMAL(12, 2) NOT NULL", []),
        ("ALTER TABLE t MODIFY price DECIMAL(12,1)", ["price"]),
        ("ALTER TABLE t MODIFY price DECIMAL(14,2)", ["price"]),
        ("ALTER TABLE t MODIFY id BIGINT", ["id"]),
        ("ALTER TABLE t MODIFY id INT UNSIGNED", ["id"]),
        ("ALTER TABLE t MODIFY code CHAR(4)", ["code"]),
        ("/* by hand */ ALTER /* a */ TABLE t DROP COLUMN name -- gone", ["name"]),
        ("ALTER TABLE t ADD INDEX i (name, price), ENGINE=InnoDB, COMMENT 'DROP name'", []),
        ("ALTER TABLE t ADD CONSTRAINT c UNIQUE (name), ALTER name SET DEFAULT 'x'", []),
        ("ALTER TABLE t ADD key_figure INT", ["key_figure"]),
        ("ALTER TABLE t ADD COLUMN (a INT, b DECIMAL(9, 2), INDEX (a)), DROP code", ["a", "b", "code"]),
        ("ALTER TABLE t MODIFY id MEDIUMINT", ["id"]),
        ("ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (9))", []),
        ("ALTER /*!50100 ONLINE */ TABLE t DROP name", ["name"]),
        ("/*!40000 ALTER TABLE t DISABLE KEYS */", []),
    ],
)
def test_which_columns_are_touched(text: str, columns: list[str]) -> None:
    change = altered(text, "d", "d", TABLES)
    assert change is not None
    touched = (*(name for name, _ in change.added), *change.gone, *(name for pair in change.renamed for name in pair))
    assert [*touched, *(name for name, _ in change.retyped)] == columns


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE other DROP name",
        "ALTER TABLE e.t DROP name",
        "CREATE TABLE IF NOT EXISTS t (id INT)",
        "CREATE INDEX i ON t (name)",
        "DROP TABLE other",
        'ALTER TABLE "other" DROP name',
        "RENAME TABLE other NOWAIT TO another",
        "CREATE DATABASE x",
        "INSERT INTO t VALUES (1)",
        "/*!50100 DROP TABLE other */",
        "CREATE TABLE e.t (id INT)",
        "CREATE TABLE other (id INT COMMENT 'of t') /*!50100 PARTITION BY KEY (id) */",
    ],
)
def test_what_is_about_others_is_nothing(text: str) -> None:
    assert altered(text, "d", "d", TABLES) is None


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
        "ALTER TABLE t DROP PARTITION p1",
        "ALTER TABLE t RENAME TO u",
        "ALTER IGNORE TABLE t ADD UNIQUE (name)",
        "/*!50100 ALTER TABLE t DROP name */",
        "/*M!100100 ALTER TABLE t RENAME COLUMN name TO n */",
        "/*! DROP TABLE t */",
        "ALTER TABLE t /*!50100 DROP name, */ DROP price",
        "DROP TABLE IF EXISTS t",
        "RENAME TABLE x TO t",
        "RENAME TABLES t TO u",
        'ALTER TABLE "t" RENAME TO u',
        "SET STATEMENT max_statement_time = 1, x = 'a FOR b' FOR /* now */ DROP TABLE t",
        "RENAME TABLE t WAIT 5 TO u",
        "-- by hand\n# at night\nRENAME TABLE t TO u",
        "CREATE OR REPLACE TABLE t (id INT)",
    ],
)
def test_what_is_not_understood_is_told(text: str) -> None:
    with pytest.raises(UnclearError):
        altered(text, "d", "d", TABLES)


def test_a_key_that_is_dropped_and_null_that_comes_are_told() -> None:
    dropped = altered("ALTER TABLE t DROP PRIMARY KEY", "d", "d", TABLES)
    loosened = altered("ALTER TABLE t MODIFY id INT NULL", "d", "d", TABLES)
    assert dropped is not None
    assert loosened is not None
    assert (dropped.gone, set(dropped.unsure)) == ((), set(TABLES["t"]))
    assert (loosened.gone, loosened.unsure) == ((), ("id",))


@pytest.mark.parametrize(
    ("text", "gone", "renamed", "retyped", "added"),
    [
        ("CHANGE name title VARCHAR(20)", (), (("name", "title"),), {}, {}),
        ("CHANGE id number BIGINT NOT NULL", (), (("id", "number"),), {"id": "bigint"}, {}),
        ("CHANGE name title VARCHAR(10)", ("name",), (), {}, {}),
        ("RENAME COLUMN name TO code, RENAME COLUMN code TO name", (), (("name", "code"), ("code", "name")), {}, {}),
        ("MODIFY price DECIMAL(14,3)", (), (), {"price": "decimal(14,3)"}, {}),
        ("MODIFY price DECIMAL(14,4)", (), (), {"price": "decimal(14,4)"}, {}),
        ("MODIFY price DOUBLE", ("price",), (), {}, {}),
        ("MODIFY id INT UNSIGNED", ("id",), (), {}, {}),
        ("MODIFY id BIGINT(20) UNSIGNED", ("id",), (), {}, {}),
        ("ADD x INT", (), (), {}, {"x": (True, None)}),
        ("ADD x INT DEFAULT -5 AFTER id", (), (), {}, {"x": (True, "-5")}),
        ("ADD x INT NOT NULL", (), (), {}, {"x": (True, "0")}),
        ("ADD x VARCHAR(9) NOT NULL DEFAULT 'it''s' COMMENT 'c'", (), (), {}, {"x": (True, "it's")}),
        ("ADD x DECIMAL(5,2) DEFAULT 1.5", (), (), {}, {"x": (True, "1.5")}),
        ("ADD x DECIMAL(5,2) DEFAULT 1.555", (), (), {}, {"x": (False, None)}),
        ("ADD x DATETIME DEFAULT CURRENT_TIMESTAMP", (), (), {}, {"x": (False, None)}),
        ("ADD x INT DEFAULT 5 + 1", (), (), {}, {"x": (False, None)}),
        ("ADD x INT AUTO_INCREMENT", (), (), {}, {"x": (False, None)}),
        ("ADD COLUMN IF NOT EXISTS x INT", (), (), {}, {"x": (False, None)}),
        ("ADD x INT AS (id + 1) STORED", (), (), {}, {"x": (False, None)}),
        ("ADD x DATE NOT NULL", (), (), {}, {"x": (False, None)}),
    ],
)
def test_what_becomes_of_columns(
    text: str,
    gone: tuple[str, ...],
    renamed: tuple[tuple[str, str], ...],
    retyped: dict[str, str],
    added: dict[str, tuple[bool, str | None]],
) -> None:
    change = altered(f"ALTER TABLE t {text}", "d", "d", TABLES)
    assert change is not None
    assert (change.gone, change.renamed) == (gone, renamed)
    assert {name: told.type for name, told in change.retyped} == retyped
    assert {name: (told.is_constant, told.fill) for name, told in change.added} == added


def test_a_text_of_many_settings_is_read_at_once() -> None:
    assert altered("SET STATEMENT " + "a='1'," * 500 + " x", "d", "d", TABLES) is None
