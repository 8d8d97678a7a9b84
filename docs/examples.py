"""Queries that show how each part of SQL is kept; the reference says what the algebra says of each."""

from __future__ import annotations

from dataclasses import dataclass

TYPES = {
    "customers": (("id", "bigint"), ("name", "string"), ("state", "string")),
    "orders": (("id", "bigint"), ("customer", "bigint"), ("day", "date"), ("amount", "decimal(12,2)")),
    "returns": (("id", "bigint"), ("customer", "bigint"), ("day", "date"), ("amount", "decimal(12,2)")),
}


@dataclass(frozen=True, slots=True)
class Example:
    """``how`` is what we expect; ``type`` stands for the types of its aggregates' arguments."""

    how: str
    title: str
    query: str
    type: str = "decimal(12,2)"


_JOIN = "FROM orders o JOIN customers c ON o.customer = c.id"

_LATEST = "SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY day DESC) AS n FROM orders"

EXAMPLES = (
    Example("linear", "projection, expressions", "SELECT id, UPPER(name) AS name FROM customers"),
    Example("linear", "WHERE", "SELECT id FROM orders WHERE amount > 10"),
    Example("linear", "inner join", f"SELECT o.id, c.state {_JOIN}"),
    Example("linear", "cross join", "SELECT o.id, c.name FROM orders o CROSS JOIN customers c"),
    Example("linear", "join on any condition", "SELECT a.id FROM orders a JOIN returns b ON a.amount < b.amount"),
    Example("linear", "USING, NATURAL", "SELECT id, o.day FROM orders o JOIN returns r USING (id)"),
    Example("linear", "self-join", "SELECT a.id FROM orders a JOIN orders b ON a.customer = b.customer"),
    Example("linear", "FROM-subquery", "SELECT id FROM (SELECT id FROM orders WHERE amount > 10) large"),
    Example("linear", "CTE", "WITH large AS (SELECT id FROM orders WHERE amount > 10) SELECT id FROM large"),
    Example("linear", "UNION ALL", "SELECT id FROM orders UNION ALL SELECT id FROM returns"),
    Example("linear", "GROUP BY, COUNT", "SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer"),
    Example("linear", "SUM, AVG", "SELECT customer, SUM(amount) AS s, AVG(amount) AS a FROM orders GROUP BY customer"),
    Example("linear", "VARIANCE, STDDEV", "SELECT STDDEV(amount) AS s, VAR_POP(amount) AS v FROM orders"),
    Example("linear", "FILTER", "SELECT COUNT(*) FILTER (WHERE amount > 10) AS n FROM orders"),
    Example("linear", "HAVING", "SELECT customer FROM orders GROUP BY customer HAVING SUM(amount) > 100"),
    Example("linear", "grand total", "SELECT SUM(amount) AS total FROM orders"),
    Example("linear", "DISTINCT at the top", "SELECT DISTINCT state FROM customers"),
    Example("linear", "UNION", "SELECT id FROM orders UNION SELECT id FROM returns"),
    Example("keyed", "MIN, MAX", "SELECT customer, MAX(amount) AS m FROM orders GROUP BY customer"),
    Example("keyed", "COUNT(DISTINCT)", "SELECT COUNT(DISTINCT customer) AS n FROM orders"),
    Example("keyed", "other aggregates", "SELECT customer, MEDIAN(amount) AS m FROM orders GROUP BY customer"),
    Example(
        "keyed", "LEFT, RIGHT, FULL JOIN", "SELECT c.id, o.day FROM customers c LEFT JOIN orders o ON o.customer = c.id"
    ),
    Example(
        "keyed",
        "EXISTS, NOT EXISTS",
        "SELECT id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
    ),
    Example("keyed", "IN", "SELECT id FROM customers WHERE id IN (SELECT customer FROM orders WHERE amount > 10)"),
    Example("keyed", "EXCEPT, INTERSECT", "SELECT id FROM customers EXCEPT SELECT customer FROM orders"),
    Example("keyed", "SEMI, ANTI JOIN", "SELECT c.id FROM customers c LEFT ANTI JOIN orders o ON o.customer = c.id"),
    Example(
        "keyed",
        "aggregate below a join",
        "SELECT c.name, t.s FROM customers c JOIN (SELECT customer, SUM(amount) AS s FROM orders GROUP BY customer) t "
        "ON t.customer = c.id",
    ),
    Example(
        "keyed",
        "aggregate of an aggregate",
        "SELECT MAX(s) AS m FROM (SELECT customer, SUM(amount) AS s FROM orders GROUP BY customer) t",
    ),
    Example(
        "keyed",
        "DISTINCT below",
        "SELECT d.state FROM (SELECT DISTINCT state FROM customers) d JOIN orders o ON o.id > 0",
    ),
    Example("whole", "variance of DOUBLE", "SELECT STDDEV(CAST(amount AS DOUBLE)) AS s FROM orders", "double"),
    Example("whole", "window function", "SELECT id, RANK() OVER (ORDER BY amount) AS r FROM orders"),
    Example(
        "whole", "subquery in an expression", "SELECT id FROM orders WHERE amount > (SELECT AVG(amount) FROM orders)"
    ),
    Example(
        "whole",
        "NOT IN, where NULL is possible",
        "SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders)",
    ),
    Example("whole", "cube, rollup, grouping sets", "SELECT day, SUM(amount) AS s FROM orders GROUP BY ROLLUP (day)"),
    Example("whole", "generator", "SELECT id, EXPLODE(SPLIT(name, ' ')) AS word FROM customers"),
    Example("whole", "top-k", "SELECT id, amount FROM orders ORDER BY amount, id LIMIT 10"),
    Example("settled", "latest row per key", _LATEST),
    Example("settled", "top-k", "SELECT id, amount FROM orders ORDER BY amount LIMIT 10"),
    Example("settled", "some rows", "SELECT id, day FROM orders LIMIT 10"),
    Example("settled", "FIRST", "SELECT customer, FIRST(amount) AS a FROM orders GROUP BY customer"),
    Example("settled", "MAX_BY", "SELECT customer, MAX_BY(amount, day) AS a FROM orders GROUP BY customer"),
    Example("settled", "COLLECT_LIST", "SELECT customer, COLLECT_LIST(amount) AS a FROM orders GROUP BY customer"),
    Example(
        "whole", "outer join without equality", "SELECT c.id, o.day FROM customers c LEFT JOIN orders o ON o.id > c.id"
    ),
    Example("whole", "no FROM", "SELECT 1 AS one"),
    Example("refused", "a random value", "SELECT id, RAND() AS r FROM orders"),
    Example("refused", "the clock", "SELECT id FROM orders WHERE day < CURRENT_DATE()"),
    Example("refused", "the order of arrival", "SELECT APPROX_PERCENTILE(amount, 0.5) AS a FROM orders"),
    Example("refused", "TABLESAMPLE", "SELECT id FROM orders TABLESAMPLE (10 PERCENT)"),
    Example("refused", "a function of your own", "SELECT my_function(id) AS x FROM orders"),
    Example("refused", "an expression without a name", "SELECT id, amount * 2 FROM orders"),
    Example("refused", "two columns of one name", "SELECT id, amount AS id FROM orders"),
    Example("refused", "data outside the warehouse", "SELECT id FROM other.orders"),
    Example("refused", "time travel", "SELECT id FROM orders VERSION AS OF 3"),
    Example("refused", "parameters", "SELECT id FROM orders WHERE amount > :least"),
)
