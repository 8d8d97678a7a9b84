"""CREATE MATERIALIZED VIEW: what is read from it, and what is refused."""

from __future__ import annotations

import pytest
from sqlglot import exp

from rollview.algebra.definition import PROPERTIES, AlteredView, altered, declare, relation_name
from rollview.algebra.text import parse_one
from rollview.algebra.ties import TIES
from rollview.errors import InvalidName, RollviewError, SqlError, Unsupported
from rollview.evolve import dispensable
from rollview.evolve.views import ON_SCHEMA_CHANGE
from rollview.maintain import settings
from rollview.relations import algorithm, cadence, maintenance, plans, policies
from rollview.schedule import crew


def test_the_name_the_query_and_nothing_else() -> None:
    made = declare("CREATE MATERIALIZED VIEW v AS SELECT k FROM r")
    assert (made.name, made.columns, made.comment, dict(made.properties), made.replace) == ("v", (), None, {}, False)
    assert made.query.split() == ["SELECT", "k", "FROM", "r"]


def test_the_query_is_behind_the_as_that_is_in_no_parentheses() -> None:
    made = declare("CREATE MATERIALIZED VIEW v TBLPROPERTIES ('p' = CAST(1 AS INT)) AS SELECT k FROM r")
    assert made.query.split() == ["SELECT", "k", "FROM", "r"]


@pytest.mark.parametrize("reference", ["FROM f(1)", "FROM a.b", "FROM a..b", "FROM a.b.c", "k"])
def test_only_a_plain_name_names_a_relation(reference: str) -> None:
    tree = parse_one(f"SELECT {'1 ' if ' ' in reference else ''}{reference}")
    with pytest.raises(Unsupported, match="not a plain table name"):
        relation_name(tree.find(exp.Table) or tree.expressions[0], "table")


def test_or_replace() -> None:
    assert declare("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k FROM r").replace


def test_a_column_list_renames() -> None:
    assert declare("CREATE MATERIALIZED VIEW v (a, `b c`) AS SELECT k, x FROM r").columns == ("a", "b c")
    assert declare("CREATE MATERIALIZED VIEW v (a COMMENT 'x', b) AS SELECT k, x FROM r").columns == ("a", "b")


def test_comment_and_properties() -> None:
    made = declare(
        "CREATE MATERIALIZED VIEW v COMMENT 'what it''s for' TBLPROPERTIES ('a.b' = '1', 'c' = 'x') AS SELECT k FROM r"
    )
    assert made.comment == "what it's for"
    assert dict(made.properties) == {"a.b": "1", "c": "x"}


@pytest.mark.parametrize(
    "name", ["a b", "x.y", "back`tick", "new\nline", "select", "Ünï", "it's", "../up", "a;b", '"q"']
)
def test_a_hostile_name_is_a_name(name: str) -> None:
    quoted = name.replace("`", "``")
    assert declare(f"CREATE MATERIALIZED VIEW `{quoted}` AS SELECT k FROM r").name == name


def test_the_query_keeps_its_strings_and_its_own_with() -> None:
    query = declare(
        "CREATE MATERIALIZED VIEW v AS "
        "SELECT 'it''s' AS a, q.k FROM (WITH r AS (SELECT k FROM s) SELECT k FROM r) AS q, r"
    ).query
    assert "'it''s'" in query
    assert query.index("FROM") < query.index("WITH")


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("CREATE VIEW v AS SELECT 1 AS a", SqlError, "Expected CREATE MATERIALIZED VIEW"),
        ("SELECT 1 AS a", SqlError, "Expected CREATE MATERIALIZED VIEW"),
        ("CREATE MATERIALIZED TABLE t AS SELECT 1 AS a", SqlError, "Expected CREATE MATERIALIZED VIEW"),
        ("CREATE MATERIALIZED VIEW a.b AS SELECT 1 AS a", Unsupported, "not a plain view name"),
        ("CREATE MATERIALIZED VIEW a..b AS SELECT 1 AS a", Unsupported, "not a plain view name"),
        ("CREATE MATERIALIZED VIEW v (a INT) AS SELECT k FROM r", SqlError, "cannot declare a type"),
        ("CREATE MATERIALIZED VIEW _csn AS SELECT k FROM r", InvalidName, "belong to rollview"),
        ("CREATE MATERIALIZED VIEW v (_rv_a) AS SELECT k FROM r", InvalidName, "belong to rollview"),
        ("CREATE MATERIALIZED VIEW ` ` AS SELECT k FROM r", InvalidName, "it is empty"),
        ("CREATE MATERIALIZED VIEW v", SqlError, "has no query"),
        ("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT k FROM r", Unsupported, "IF NOT EXISTS is not supported"),
        ("CREATE MATERIALIZED VIEW v PARTITIONED BY (k) AS SELECT k FROM r", Unsupported, "option 'PARTITIONED BY"),
        (
            "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('rollview.refesh_mode' = 'auto') AS SELECT k FROM r",
            Unsupported,
            "no property 'rollview.refesh_mode'",
        ),
        ("CREATE MATERIALIZED VIEW v AS SELECT k FROM r; SELECT 1", SqlError, "Expected one statement, found 2"),
        ("CREATE MATERIALIZED VIEW v AS SELECT k FROM r WHERE (", SqlError, "The SQL is not right"),
    ],
)
def test_what_is_not_a_view_is_refused(text: str, kind: type[RollviewError], said: str) -> None:
    with pytest.raises(kind, match=said):
        declare(text)


@pytest.mark.parametrize(
    "change",
    [
        *("SET LOCATION 'x'", "SET SERDE 'x'", "SET TAGS ('a' = 'b')", "SET (a = 1)"),
        "SET SERDEPROPERTIES ('a' = 'b')",
        *("SET TBLPROPERTIES ('a' = 'b'), SET LOCATION 'x'", "SET TBLPROPERTIES ('a' = 'b') LOCATION 'x'"),
    ],
)
def test_a_change_of_more_than_properties_is_refused_whole(change: str) -> None:
    with pytest.raises(Unsupported, match="only SET TBLPROPERTIES is supported"):
        altered(parse_one(f"ALTER MATERIALIZED VIEW v {change}"))


def test_properties_are_changed() -> None:
    assert altered(parse_one("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES ('a' = 'b', c = 1)")) == AlteredView(
        "v", {"a": "b", "c": "1"}
    )


def test_a_known_property_is_taken() -> None:
    made = declare("CREATE MATERIALIZED VIEW v TBLPROPERTIES ('rollview.retention' = '1 day') AS SELECT k FROM r")
    assert dict(made.properties) == {"rollview.retention": "1 day"}


def test_every_property_that_is_read_is_known() -> None:
    read = (settings.RETENTION, settings.DETAIL, plans.REFRESH_MODE, cadence.PROPERTY, crew.GROUP, TIES)
    read += (policies.POLICY, cadence.PROPAGATE, ON_SCHEMA_CHANGE, maintenance.MAINTENANCE, algorithm.ALGORITHM)
    read += (algorithm.PUBLISH_WITHIN, algorithm.MAX_ROWS, cadence.CONSISTENCY)
    read += (dispensable.DISPENSABLE, dispensable.EXTENT)
    assert sorted(read) == sorted(f"rollview.{name}" for name in PROPERTIES)
