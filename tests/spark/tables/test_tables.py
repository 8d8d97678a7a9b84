from __future__ import annotations

import pytest
from tests.spark.tables.local import Local

from rollview import errors
from rollview.catalog import Part


def test_a_table_begins_empty_at_the_present_csn(local: Local) -> None:
    local.ddl("CREATE TABLE t (a INT)")
    local.run("INSERT INTO t VALUES (1)")
    made = local.ddl(
        "CREATE TABLE u (A INT NOT NULL, b TIMESTAMP, c ARRAY<STRUCT<x: DECIMAL(5,1)>>, d CHAR(3), UNIQUE (a))"
    )
    table = local.catalog.snapshot().get("u")
    assert made.csn == 1
    assert [c.type for c in table.schema] == ["int", "timestamp", "array<struct<x:decimal(5,1)>>", "char(3)"]
    assert (table.constraints.unique, table.constraints.not_null) == ((("A",),), ("A",))
    assert {(pin.part, pin.after, pin.through, pin.rows) for pin in table.pins.values()} == {
        (Part.STATE, 1, 1, 0),
        (Part.DELTA, 1, 1, 0),
    }
    local.run("INSERT INTO u VALUES (1, TIMESTAMP'2026-01-01 00:00:00', array(named_struct('x', 1)), 'z')")
    assert local.query("SELECT year(b), c[0].x, length(d) FROM u").keys() == {(2026, 1, 3)}


def test_a_table_from_a_query_has_its_rows_as_the_first_unit_of_work(local: Local) -> None:
    local.ddl("CREATE TABLE t (a INT)")
    local.run("INSERT INTO t VALUES (1), (1), (NULL)")
    made = local.ddl("CREATE TABLE u AS SELECT a, a * 1.5 AS `b c` FROM t")
    assert (made.csn, made.inserted) == (2, 3)
    assert local.rows("u", at=1) == {}
    assert sum(local.rows("u").values()) == 3
    assert local.catalog.ledger()[-1].changes[0].relation == "u"


def test_if_exists_and_if_not_exists(local: Local) -> None:
    local.ddl("CREATE TABLE t (a INT)", "CREATE TABLE IF NOT EXISTS T (b STRING)", "DROP TABLE IF EXISTS nope")
    with pytest.raises(errors.AlreadyExists):
        local.ddl("CREATE TABLE T (a INT)")
    with pytest.raises(errors.NotFound):
        local.ddl("DROP TABLE nope")


def test_what_others_refer_to_stays(local: Local) -> None:
    local.ddl("CREATE TABLE p (a INT PRIMARY KEY)", "CREATE TABLE c (a INT REFERENCES P (A))")
    with pytest.raises(errors.InUse, match="'c'"):
        local.ddl("DROP TABLE p")
    folder = local.data / local.catalog.snapshot().get("c").folder
    local.ddl("DROP TABLE c", "DROP TABLE p")
    assert folder.exists(), "somebody may be reading it; maintenance removes it"
    assert local.catalog.snapshot().relations == {}


REFUSED = [
    ("CREATE TABLE t (a VARIANT)", "VARIANT|variant"),
    ("CREATE TABLE t (a NOPE)", "NOPE|nope"),
    ("CREATE TABLE t (a INT, A INT)", "two columns"),
    ("CREATE TABLE t (_count INT)", "belong to rollview"),
    ("CREATE TABLE x.t (a INT)", "plain table name"),
    ("CREATE TABLE t (a INT) USING delta", "option"),
    ("CREATE TABLE t (a INT) PARTITIONED BY (a)", "option"),
    ("CREATE TEMPORARY TABLE t (a INT)", "option"),
    ("CREATE OR REPLACE TABLE t (a INT)", "REPLACE"),
    ("CREATE TABLE t (a INT DEFAULT 3)", "DEFAULT"),
    ("CREATE TABLE t (a INT, CHECK (a > 0))", "CHECK"),
    ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "one primary key"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "no column 'b'"),
    ("CREATE TABLE t (a ARRAY<INT> PRIMARY KEY)", "part of a key"),
    ("CREATE TABLE t (a INT REFERENCES nope)", "no table or view 'nope'"),
    ("CREATE TABLE t (a INT REFERENCES p (b))", "not a key"),
    ("CREATE TABLE t (a INT REFERENCES bare)", "not a key"),
    ("CREATE TABLE t (a BIGINT REFERENCES p)", "BIGINT"),
    ("CREATE TABLE t (a INT REFERENCES p ON DELETE CASCADE)", "action"),
    ("CREATE TABLE t AS SELECT 1 AS a, 2 AS a", "two columns"),
    ("CREATE TABLE t AS SELECT NULL AS a", "without a type"),
    ("CREATE TABLE t AS VALUES (1)", "takes a query"),
    ("CREATE TABLE t LIKE p", "option"),
    ("ALTER TABLE p ADD COLUMN z INT", "not supported"),
]


def test_what_cannot_be_created_is_refused(local: Local) -> None:
    local.ddl("CREATE TABLE p (a INT PRIMARY KEY, b INT)", "CREATE TABLE bare (a INT)")
    for text, says in REFUSED:
        with pytest.raises(errors.UsageError, match=says):
            local.ddl(text)
        assert local.catalog.snapshot().find("t") is None


NAMES = [
    "select", "a b", "a.b", "a`b", "a'b", 'a"b', "../up", "/abs", "näme", "日本", "a\nb", "a\tb", "{x}", "${y}", "%41",
    "a;DROP TABLE t", "--", "/*", "\\", "1",
    "*", "?", ":p", "null", "true", "a=b", "a/b", "🙂", "_", "a,b", "(a)",
    "[a]",
]  # fmt: skip


def test_hostile_names_of_tables_and_columns_round_trip(local: Local) -> None:
    def quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    columns = ", ".join(f"{quoted(name)} STRING" for name in NAMES)
    for table in NAMES[:6]:
        local.ddl(f"CREATE TABLE {quoted(table)} ({columns}, PRIMARY KEY ({quoted(NAMES[0])}, {quoted(NAMES[3])}))")
    values = ", ".join(f"'{place}'" for place in range(len(NAMES)))
    hostile = quoted(NAMES[3])
    local.run(
        f"INSERT INTO {hostile} VALUES ({values})",
        f"UPDATE {hostile} SET " + ", ".join(f"{quoted(n)} = concat({quoted(n)}, '!')" for n in NAMES),
        f"MERGE INTO {hostile} AS `t``t` USING (SELECT * FROM {hostile}) AS `s s` "
        f"ON `t``t`.{quoted(NAMES[2])} = `s s`.{quoted(NAMES[2])} WHEN MATCHED THEN UPDATE SET *",
    )
    relation = local.catalog.snapshot().get(NAMES[3])
    assert relation.schema.names == tuple(NAMES)
    assert local.rows(NAMES[3]) == {tuple(f"{place}!" for place in range(len(NAMES))): 1}
    assert all(path.parent == local.data for path in local.data.glob("t-*"))
