"""A query answered from views has the rows of its text over the tables, at the csn that the answer names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlglot import exp
from tests.spark.oracle.bags import bag
from tests.spark.oracle.warehouses import fresh, rows

from rollview.errors import RollviewError, UsageError
from rollview.propagate.reading import is_read_alike
from rollview.publish.workplace import Workplace
from rollview.routing import reading
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEWS = {
    "by_day": "SELECT c.state, o.day, SUM(o.amount) AS revenue, COUNT(*) AS n, AVG(o.amount) AS mean "
    "FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.state, o.day",
    "largest": "SELECT c.state, o.day, MAX(o.amount) AS most FROM orders o JOIN customers c ON o.customer = c.id "
    "GROUP BY c.state, o.day",
    "large": "SELECT o.id, o.day, o.amount, c.state FROM orders o JOIN customers c ON o.customer = c.id "
    "WHERE o.amount > 10",
    "with_customers": "SELECT c.id, c.state, o.id AS order_id, o.amount FROM customers c LEFT JOIN orders o "
    "ON o.customer = c.id",
    "days": "SELECT DISTINCT day FROM orders",
    "totals": "SELECT day, SUM(revenue) AS revenue FROM by_day GROUP BY day",
}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path_factory.mktemp("shop") / "w") as warehouse:
        _fill(warehouse)
        yield warehouse


def _fill(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE customers (id INT PRIMARY KEY, state STRING)",
        "CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL REFERENCES customers (id), day INT, "
        "amount DECIMAL(10,2))",
        "INSERT INTO customers VALUES (1, 'CA'), (2, 'NY'), (3, NULL)",
        "INSERT INTO orders VALUES (1, 1, 1, 5), (2, 1, 2, 20), (3, 2, 1, 30), (4, 3, 2, NULL)",
    )
    for name, text in VIEWS.items():
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {text}")
    warehouse.sql("INSERT INTO orders VALUES (5, 2, 3, 11)", "DELETE FROM orders WHERE id = 2")
    warehouse.sql("UPDATE customers SET state = 'WA' WHERE id = 1")


def check(warehouse: Warehouse, text: str, **wish: object) -> tuple[str, ...]:
    """The relations that answered, which is what the tables answer."""
    answer = warehouse.query(text, **wish)  # type: ignore[arg-type]
    plain = warehouse.query(text, as_of=answer.csn, rewrite="off")
    assert answer.rows is not None
    assert plain.rows is not None
    assert answer.rows.dtypes == plain.rows.dtypes
    assert bag(answer.rows.collect()) == bag(plain.rows.collect())
    return tuple(one.relation for one in answer.used)


JOIN = "FROM orders o JOIN customers c ON o.customer = c.id"


@pytest.mark.parametrize(
    ("text", "view"),
    [
        (f"SELECT c.state, SUM(o.amount) AS r {JOIN} GROUP BY c.state", "by_day"),
        (f"SELECT c.state, AVG(o.amount) {JOIN} WHERE o.day > 1 GROUP BY c.state HAVING COUNT(*) > 0", "by_day"),
        (f"SELECT COUNT(*), SUM(o.amount) {JOIN} WHERE o.day = 99", "by_day"),
        ("SELECT day, SUM(amount) AS r FROM orders GROUP BY day ORDER BY 2 DESC LIMIT 10", "by_day"),
        (f"SELECT MAX(o.amount) AS m {JOIN}", "largest"),
        (f"SELECT o.id, c.state {JOIN} WHERE o.amount > 15 AND o.day < 9", "large"),
        (f"SELECT o.id, o.customer {JOIN} WHERE o.amount > 10", "large"),
        (f"SELECT o.id, o.day {JOIN} WHERE o.amount >= 5", "large"),
        (f"SELECT c.state, COUNT(*), SUM(DISTINCT o.amount) AS r {JOIN} GROUP BY c.state", "large"),
    ],
)
def test_a_view_answers(shop: Warehouse, text: str, view: str) -> None:
    assert view in check(shop, text, rewrite="require")
    assert view in {one.relation for one in shop.query(text, rewrite="require", explain=True).used}


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT c.state, SUM(o.amount) AS r {JOIN} WHERE o.day > {{}} AND o.day < 9 GROUP BY c.state",
        f"SELECT c.state, AVG(o.amount) {JOIN} WHERE o.day = {{}} OR c.state = 'NY' GROUP BY c.state",
        f"SELECT o.id, 3 - o.day AS left {JOIN} WHERE o.amount > 1{{}} ORDER BY o.id LIMIT 5",
    ],
)
def test_texts_that_differ_in_values_are_compared_with_sparks_reading_once(
    shop: Warehouse, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    compared = []

    def noted(author: DataFrame, ours: exp.Query, tables: Mapping[str, DataFrame]) -> bool:
        compared.append(ours)
        return is_read_alike(author, ours, tables)

    monkeypatch.setattr(reading, "is_read_alike", noted)
    for value in (1, 2, 3):
        assert {"by_day", "large"} & set(check(shop, text.format(value), rewrite="require"))
    assert len(compared) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT o.id {JOIN} WHERE o.amount > 9",
        f"SELECT o.id {JOIN} WHERE o.amount >= 10",
        f"SELECT c.state, o.day, SUM(o.amount + 1) AS r {JOIN} GROUP BY c.state, o.day",
        "SELECT customer, SUM(amount) AS r FROM orders GROUP BY customer",
        f"SELECT c.state, SUM(DISTINCT o.amount) AS r {JOIN} GROUP BY c.state",
    ],
)
def test_what_only_looks_like_a_view_is_read_from_tables(shop: Warehouse, text: str) -> None:
    assert set(check(shop, text)) <= {"orders", "customers"}


def test_what_no_view_answers_is_refused_where_one_is_required(shop: Warehouse) -> None:
    with pytest.raises(UsageError, match="No view answers the query"):
        shop.query("SELECT id, state FROM customers", rewrite="require")


@pytest.mark.parametrize("wish", [{"explain": True}, {"rewrite": "require"}, {"rewrite": "require", "explain": True}])
def test_a_query_that_names_what_is_not_there_is_refused_however_it_is_asked(
    shop: Warehouse, wish: dict[str, Any]
) -> None:
    with pytest.raises(RollviewError, match="There is no table or view 'order'"):
        shop.query("SELECT id FROM order", **wish)


def test_why_the_query_itself_is_not_compared_is_told_once(shop: Warehouse) -> None:
    with pytest.raises(UsageError) as refused:
        shop.query("SELECT id FROM orders ORDER BY amount", rewrite="require")
    assert refused.value.message == "No view answers the query: it is ordered by what it does not show."


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_that_is_behind_is_brought_up_by_what_came_since(shop: Warehouse, view: str) -> None:
    before = shop.snapshot()
    files = sorted(str(path) for path in shop.root.rglob("*"))
    text = f"SELECT * FROM {view}"
    answer = shop.query(text)
    assert answer.csn == before.moment.csn
    assert answer.rows is not None
    definition = VIEWS[view]
    for name in ("by_day",) if view == "totals" else ():
        definition = definition.replace(f"FROM {name}", f"FROM ({VIEWS[name]})")
    expected = shop.query(definition, rewrite="off").rows
    assert expected is not None
    assert bag(answer.rows.collect()) == bag(expected.collect())
    assert sorted(str(path) for path in shop.root.rglob("*")) == files
    assert shop.snapshot().moment == before.moment


def test_an_answer_may_be_as_old_as_was_allowed(shop: Warehouse) -> None:
    text = f"SELECT c.state, SUM(o.amount) AS r {JOIN} GROUP BY c.state"
    newest = shop.snapshot().moment.csn
    assert shop.query(text).csn == newest
    old = shop.query(text, max_staleness="100 commits")
    assert old.csn < newest
    assert {one.relation for one in old.used} == {"by_day"}
    assert old.valid.through < newest


def test_one_csn_for_all(shop: Warehouse) -> None:
    text = "SELECT b.revenue, l.most FROM by_day b JOIN largest l ON b.state <=> l.state AND b.day = l.day"
    answer = shop.query(text, max_staleness="2 commits")
    assert {one.csn for one in answer.used} == {answer.csn}
    check(shop, text)


def test_a_transaction_sees_its_own_changes_in_views(spark: SparkSession, tmp_path: Path) -> None:
    with fresh(spark, tmp_path / "w") as warehouse:
        warehouse.sql(
            "CREATE TABLE orders (id INT PRIMARY KEY, amount INT)",
            "CREATE TABLE audit (total BIGINT)",
            "INSERT INTO orders VALUES (1, 10), (2, 20)",
            "CREATE MATERIALIZED VIEW large AS SELECT id, amount FROM orders WHERE amount > 5",
            "CREATE MATERIALIZED VIEW revenue AS SELECT SUM(amount) AS total FROM large",
        )
        warehouse.sql("DELETE FROM orders WHERE id = 2", "INSERT INTO audit SELECT total FROM revenue")
        assert rows(warehouse, "audit") == bag([(10,)])


def test_the_sign_of_a_zero_is_looked_up_in_the_table(spark: SparkSession, tmp_path: Path) -> None:
    with fresh(spark, tmp_path / "w") as warehouse:
        warehouse.sql(
            "CREATE TABLE z (id INT PRIMARY KEY, x DOUBLE)", "INSERT INTO z VALUES (1, CAST(0 AS DOUBLE)), (2, 5)"
        )
        warehouse.create_view("CREATE MATERIALIZED VIEW zs AS SELECT id, x FROM z WHERE id > 0")
        warehouse.sql("UPDATE z SET x = -x")
        assert check(warehouse, "SELECT id, x FROM z WHERE id > 0", rewrite="require") == ("zs",)
        text = "SELECT id, CAST(x AS STRING) AS s FROM z WHERE id > 0"
        assert set(check(warehouse, text, rewrite="require")) == {"zs", "z"}


def test_explaining_starts_no_spark(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(place: Workplace) -> None:
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr(Workplace, "spark", property(refused))
    answer = shop.query(f"SELECT o.id {JOIN} WHERE o.amount > 15", rewrite="require", explain=True)
    assert [(one.relation, one.used) for one in answer.considered][:1] == [("large", True)]
    assert answer.rows is None
    assert {one.relation for one in answer.considered if not one.used} >= {"by_day", "with_customers"}
