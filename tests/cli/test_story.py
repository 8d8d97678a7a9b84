"""What a user types, from an empty folder to a view rolled back in time, and what they see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

VIEW = """
CREATE MATERIALIZED VIEW revenue_by_state COMMENT 'per state' AS
SELECT c.state, SUM(o.amount) AS revenue, COUNT(*) AS orders
FROM orders o JOIN customers c ON o.customer = c.id
GROUP BY c.state;
"""

PYTHON_VIEW = """
import rollview

@rollview.materialized_view(comment="large states only")
def large_states() -> str:
    return "SELECT state, revenue FROM revenue_by_state WHERE revenue > 15"
"""


def test_the_first_hour(cli: Any, shop: Path) -> None:
    created = cli(
        "sql",
        "CREATE TABLE customers (id BIGINT PRIMARY KEY, state STRING)",
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2))",
    )
    assert created.code == 0, created
    (shop / "views" / "revenue.sql").write_text(VIEW)
    (shop / "views" / "large.py").write_text(PYTHON_VIEW)
    assert cli("view", "create", "views/revenue.sql", "views/large.py").code == 0

    first = cli(
        "sql",
        "INSERT INTO customers VALUES (1, 'CA'), (2, 'NY')",
        "INSERT INTO orders VALUES (1, 1, 10.00), (2, 1, 5.50), (3, 2, 20.00)",
        "-o",
        "json",
    ).json["statements"]
    assert [(s["table"], s["inserted"]) for s in first] == [("customers", 2), ("orders", 3)]
    before = first[0]["csn"]
    assert first[1]["csn"] == before

    status = cli("status", "-o", "json").json
    assert [v["staleness_commits"] > 0 for v in status["views"]] == [True, True]
    refreshed = cli("refresh", "-o", "json").json
    assert [v["name"] for v in refreshed["views"]] == ["revenue_by_state", "large_states"]

    rows = cli("view", "read", "revenue_by_state", "-o", "json").json["rows"]
    assert sorted((r["state"], r["revenue"], r["orders"]) for r in rows) == [("CA", "15.50", 2), ("NY", "20.00", 1)]

    changed = cli("sql", "UPDATE orders SET amount = 1 WHERE id = 3", "DELETE FROM orders WHERE id = 2", "-o", "json")
    after = changed.json["statements"][0]["csn"]
    assert cli("refresh", "--select", "+large_states").code == 0
    assert cli("view", "read", "large_states", "-o", "json").json["rows"] == []

    delta = cli("view", "delta", "large_states", "--after", str(before), "--through", str(after), "-o", "json").json
    assert sorted((r["state"], r["_count"], r["_csn"]) for r in delta["rows"]) == [("CA", -1, after), ("NY", -1, after)]

    past = cli("view", "read", "revenue_by_state", "--as-of", str(before), "-o", "json").json["rows"]
    assert sorted(r["state"] for r in past if r["revenue"] == "20.00") == ["NY"]

    rolled = cli("view", "roll", "revenue_by_state", "large_states", "--to", str(before), "-o", "json").json
    assert {v["after"] for v in rolled["views"]} == {before}
    verified = cli("view", "verify", "-o", "json")
    assert (verified.code, [v["equal"] for v in verified.json["views"]]) == (0, [True, True])
    assert cli("view", "roll", "revenue_by_state", "large_states", "--to", "latest").code == 0
    assert cli("view", "verify").code == 0

    shown = cli("table", "show", "orders")
    assert "primary key" in shown.out
    assert "revenue_by_state" in shown.out
    explained = cli("view", "explain", "revenue_by_state")
    assert "incrementally" in explained.out
    log = cli("log", "-o", "json").json["entries"]
    assert [entry["csn"] for entry in log][-2:] == [before, after]


def test_a_transaction_that_fails_leaves_nothing(cli: Any, shop: Path) -> None:
    cli("sql", "CREATE TABLE t (id BIGINT PRIMARY KEY)")
    failed = cli("sql", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2), (2)")
    assert failed.code == 1
    assert failed.out == ""
    assert "Traceback" not in failed.err
    assert cli("sql", "SELECT * FROM t", "-o", "json").json["statements"][0]["rows"] == []


def test_wrong_sql_names_the_place(cli: Any, shop: Path) -> None:
    cli("sql", "CREATE TABLE t (id BIGINT)")
    (shop / "v.sql").write_text("CREATE MATERIALIZED VIEW v AS SELECT nothing FROM t")
    ran = cli("view", "create", "v.sql")
    assert ran.code == 2
    assert "nothing" in ran.err
    assert "line 1" in ran.err


def test_a_failing_query_is_one_sentence(cli: Any, shop: Path) -> None:
    ran = cli("sql", "SELECT 1 / 0 AS x")
    assert ran.code in (1, 2)
    assert ran.out == ""
    assert "ivi" in ran.err
    assert len(ran.err.splitlines()) <= 3
