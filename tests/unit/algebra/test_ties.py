"""Where an order leaves ties, the text goes on with what tells rows apart; where it leaves none, it stays as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.property.duck import declare_query

from rollview.algebra.resolve import Known
from rollview.algebra.text import parse_one
from rollview.algebra.tied_rows import unsettled
from rollview.algebra.view import Outline, outline
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import NotDeterministic, Unsupported

Keys = tuple[tuple[str, ...], ...]


def table(name: str, columns: str, key: tuple[str, ...] = (), told: Keys = (), unique: Keys = ()) -> Known:
    pairs = (item.split(":") for item in columns.split())
    return Known(name, Schema(tuple(Column(*pair) for pair in pairs)), Constraints(key, unique), told)


TABLES = {
    one.name: one
    for one in (
        table("r", "k:int g:int x:int w:string d:double"),
        table("city", "id:int name:string pop:int tags:map<string,int>", ("id",)),
        table("orders", "id:int city:int amount:int", ("id",)),
        table("of_view", "a:int b:int", (), (("a",),)),
        table("code", "id:string name:string", ("id",)),
        table("pair", "a:int b:int", ("a", "b")),
        table("passport", "number:int holder:string ignore:int", unique=(("number",),)),
        table("sensor", "at:double what:string", ("at",)),
    )
}


def made(query: str, **properties: str) -> Outline:
    said = {f"rollview.{name}": value for name, value in properties.items()}
    return outline(replace(declare_query("v", query), properties=said), TABLES)


TOTAL = [
    "SELECT name, ROW_NUMBER() OVER (PARTITION BY pop ORDER BY id) AS n FROM city",
    "SELECT name, pop FROM city ORDER BY pop DESC, id LIMIT 3",
    "SELECT g, COUNT(*) AS n FROM r GROUP BY g ORDER BY g LIMIT 2",
    "SELECT g, k, SUM(x) AS s, ROW_NUMBER() OVER (PARTITION BY g ORDER BY k) AS n FROM r GROUP BY g, k",
    "SELECT DISTINCT g, x FROM r ORDER BY x, g LIMIT 1",
    "SELECT o.amount, c.name FROM orders AS o JOIN city AS c ON o.city = c.id ORDER BY o.id LIMIT 3",
    "SELECT o.amount, c.name FROM orders AS o LEFT JOIN city AS c ON o.city = c.id ORDER BY o.id LIMIT 3",
    "SELECT o.amount, o.city FROM orders AS o, city AS c WHERE o.city = c.id AND o.id = 3 LIMIT 3",
    "WITH q AS (SELECT g, SUM(x) AS s FROM r GROUP BY g) SELECT s, LAG(s) OVER (ORDER BY g) AS p FROM q",
    "SELECT n FROM (SELECT DISTINCT name AS n, pop FROM city) AS q ORDER BY n LIMIT 2",
    "SELECT a, b FROM of_view ORDER BY a LIMIT 2",
    "SELECT city, MAX_BY(amount, id) AS a FROM orders GROUP BY city",
    "SELECT id, FIRST(amount) AS a FROM orders GROUP BY id",
    "SELECT k, RANK() OVER (ORDER BY g) AS n FROM r",
    "SELECT k, SUM(x) OVER (ORDER BY g) AS n FROM r",
    "SELECT k FROM r WHERE EXISTS (SELECT 1 FROM city LIMIT 1)",
    "SELECT COUNT(*) AS n, SUM(x) AS s FROM r LIMIT 1",
    "SELECT k, SORT_ARRAY(COLLECT_LIST(x) OVER (PARTITION BY g ORDER BY k)) AS l FROM r",
    "SELECT k, RANK() OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n FROM r",
    "SELECT k, DENSE_RANK() OVER (ORDER BY g ROWS UNBOUNDED PRECEDING) AS n FROM r",
    "SELECT k, g FROM r ORDER BY ALL DESC LIMIT 3",
    "SELECT k, g FROM r UNION ALL SELECT id, pop FROM city ORDER BY ALL LIMIT 3",
    # all rows belong to the frame, in whatever order they come
    "SELECT k, SUM(x) OVER (ORDER BY g ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n FROM r",
    # one row for each key, whatever else is computed for it
    "SELECT id, RANK() OVER (ORDER BY pop) AS n FROM city ORDER BY id LIMIT 3",
    "SELECT DISTINCT id, RANK() OVER (ORDER BY pop) AS n FROM city ORDER BY id LIMIT 3",
    "SELECT id, MAX_BY(amount, city) OVER (PARTITION BY id) AS a FROM orders",
    "SELECT k, w FROM r WHERE w = 'a' ORDER BY k LIMIT 2",
    "SELECT ROW_NUMBER() OVER (PARTITION BY SUM(x)) AS n FROM r",
]


@pytest.mark.parametrize("query", TOTAL)
def test_an_order_that_is_total_stays_as_it_is(query: str) -> None:
    found = made(query)
    assert found.settled.text == query
    assert not found.settled.notes
    assert made(query, ties="refuse").settled.text == query


OPEN = {
    "SELECT k, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) AS n FROM r": (
        "SELECT k, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC, `r`.`k`) AS n FROM r"
    ),
    "SELECT q.* FROM (SELECT *, LEAD(w) OVER (PARTITION BY g ORDER BY d) AS n FROM r) AS q": (
        "SELECT q.* FROM (SELECT *, LEAD(w) OVER (PARTITION BY g ORDER BY d, `r`.`k`, `r`.`x`, `r`.`w`, "
        "CAST(`r`.`d` AS STRING)) AS n FROM r) AS q"
    ),
    "SELECT id, tags, NTILE(2) OVER (ORDER BY pop) AS n FROM city": (
        "SELECT id, tags, NTILE(2) OVER (ORDER BY pop, `city`.`id`) AS n FROM city"
    ),
    "SELECT k, RANK() OVER w1 AS l, LAG(x) OVER w1 AS f FROM r WINDOW w1 AS (PARTITION BY g ORDER BY k)": (
        "SELECT k, RANK() OVER w1 AS l, LAG(x) OVER (PARTITION BY g ORDER BY k, `r`.`x`) AS f FROM r "
        "WINDOW w1 AS (PARTITION BY g ORDER BY k)"
    ),
    "SELECT k, SUM(x) OVER (ORDER BY g ROWS 2 PRECEDING) AS s FROM r": (
        "SELECT k, SUM(x) OVER (ORDER BY g, `r`.`k`, `r`.`x` ROWS 2 PRECEDING) AS s FROM r"
    ),
    "SELECT k, FIRST_VALUE(x) OVER (PARTITION BY g) AS s FROM r": (
        "SELECT k, FIRST_VALUE(x) OVER (PARTITION BY g ORDER BY `r`.`k`, `r`.`x` "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM r"
    ),
    "SELECT k, FIRST_VALUE(x) OVER (PARTITION BY g ORDER BY w) AS s FROM r": (
        "SELECT k, FIRST_VALUE(x) OVER (PARTITION BY g ORDER BY w, `r`.`k`, `r`.`x`) AS s FROM r"
    ),
    "SELECT k, LAST_VALUE(x) OVER (PARTITION BY g ORDER BY w) AS s FROM r": (
        "SELECT k, (MAX(NAMED_STRUCT('c1', `r`.`k`, 'c2', `r`.`x`, 'v', `r`.`x`)) "
        "OVER (PARTITION BY `r`.`g`, `r`.`w`)).v AS s FROM r"
    ),
    "SELECT g, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS z FROM r GROUP BY g": (
        "SELECT g, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*), `r`.`g`) AS z FROM r GROUP BY g"
    ),
    "SELECT g, COUNT(*) AS n FROM r GROUP BY g ORDER BY n LIMIT 2": (
        "SELECT g, COUNT(*) AS n FROM r GROUP BY g ORDER BY n, `g` LIMIT 2"
    ),
    "SELECT k, d FROM r ORDER BY d LIMIT 2 OFFSET 1": (
        "SELECT k, d FROM r ORDER BY d, `k`, CAST(`d` AS STRING) LIMIT 2 OFFSET 1"
    ),
    "(SELECT k FROM r) LIMIT 3": "(SELECT k FROM r) ORDER BY `k` LIMIT 3",
    "SELECT k, g FROM r LIMIT 3": "SELECT k, g FROM r ORDER BY `k`, `g` LIMIT 3",
    "SELECT k FROM r UNION ALL SELECT id FROM city LIMIT 3": (
        "SELECT k FROM r UNION ALL SELECT id FROM city ORDER BY `k` LIMIT 3"
    ),
    "SELECT k, LAG(g) OVER (PARTITION BY w ORDER BY k) AS p FROM (SELECT * FROM r)": (
        "SELECT k, LAG(g) OVER (PARTITION BY w ORDER BY k, `g`) AS p FROM (SELECT * FROM r)"
    ),
    "SELECT k AS a, k AS b FROM r UNION ALL SELECT id, pop FROM city ORDER BY a LIMIT 3": (
        "SELECT k AS a, k AS b FROM r UNION ALL SELECT id, pop FROM city ORDER BY a, `b` LIMIT 3"
    ),
    "SELECT g, EXPLODE(ARRAY(1, 2)) AS n FROM r GROUP BY g ORDER BY g LIMIT 3": (
        "SELECT g, EXPLODE(ARRAY(1, 2)) AS n FROM r GROUP BY g ORDER BY g, `n` LIMIT 3"
    ),
    "SELECT g, k, SUM(x) AS s FROM r GROUP BY ROLLUP (g, k) ORDER BY s LIMIT 4": (
        "SELECT g, k, SUM(x) AS s FROM r GROUP BY ROLLUP (g, k) ORDER BY s, `g`, `k` LIMIT 4"
    ),
    "SELECT g, FIRST(x) AS f FROM r GROUP BY g": "SELECT g, MIN(`r`.`x`) AS f FROM r GROUP BY g",
    "SELECT g, LAST(x) IGNORE NULLS AS f, ANY_VALUE(w) FILTER (WHERE k > 1) AS a FROM r GROUP BY g": (
        "SELECT g, (MAX(IF(ISNULL(`r`.`x`), NULL, NAMED_STRUCT('c1', `r`.`k`, 'c2', `r`.`x`, 'c3', `r`.`w`, "
        "'v', `r`.`x`)))).v AS f, (MIN(NAMED_STRUCT('c1', `r`.`k`, 'c2', `r`.`x`, 'c3', `r`.`w`, 'v', `r`.`w`)) "
        "FILTER (WHERE k > 1)).v AS a FROM r GROUP BY g"
    ),
    "SELECT g, MAX_BY(x, k + 1) AS f FROM r GROUP BY g": (
        "SELECT g, (MAX(IF(ISNULL(`r`.`k` + 1), NULL, NAMED_STRUCT('c1', `r`.`k` + 1, 'c2', `r`.`k`, "
        "'c3', `r`.`x`, 'v', `r`.`x`)))).v AS f FROM r GROUP BY g"
    ),
    "SELECT g, COLLECT_LIST(x) AS f FROM r GROUP BY g": "SELECT g, SORT_ARRAY(COLLECT_LIST(x)) AS f FROM r GROUP BY g",
    "SELECT MAP_FROM_ARRAYS(COLLECT_LIST(x), ARRAY_AGG(w)) AS f FROM r": (
        "SELECT MAP_FROM_ARRAYS(SORT_ARRAY(COLLECT_LIST(IF(ISNULL(`r`.`x`), NULL, NAMED_STRUCT('c1', `r`.`x`, "
        "'c2', `r`.`w`, 'v', `r`.`x`)))).v, SORT_ARRAY(COLLECT_LIST(IF(ISNULL(`r`.`w`), NULL, NAMED_STRUCT("
        "'c1', `r`.`x`, 'c2', `r`.`w`, 'v', `r`.`w`)))).v) AS f FROM r"
    ),
    "SELECT g, MODE(w) AS m, LISTAGG(w, ',') WITHIN GROUP (ORDER BY k DESC) AS l FROM r GROUP BY g": (
        "SELECT g, MODE(`r`.`w`, TRUE) AS m, LISTAGG(w, ',') WITHIN GROUP (ORDER BY k DESC, `r`.`w`) AS l "
        "FROM r GROUP BY g"
    ),
    "SELECT k, (SELECT name FROM city ORDER BY pop LIMIT 1) AS n FROM r": (
        "SELECT k, (SELECT name FROM city ORDER BY pop, `name` LIMIT 1) AS n FROM r"
    ),
    "SELECT g, FIRST(w, TRUE) AS a, FIRST(w, FALSE) AS b, MAX(k) AS m FROM r GROUP BY g": (
        "SELECT g, (MIN(IF(ISNULL(`r`.`w`), NULL, NAMED_STRUCT('c1', `r`.`k`, 'c2', `r`.`w`, 'v', `r`.`w`)))).v AS a, "
        "(MIN(NAMED_STRUCT('c1', `r`.`k`, 'c2', `r`.`w`, 'v', `r`.`w`))).v AS b, MAX(k) AS m FROM r GROUP BY g"
    ),
    "SELECT g, FIRST(w) FILTER (WHERE k > 1) IGNORE /* none */ NULLS AS f FROM r GROUP BY g": (
        "SELECT g, (MIN(IF(ISNULL(`r`.`w`), NULL, NAMED_STRUCT('c1', `r`.`k`, 'c2', `r`.`w`, 'v', `r`.`w`))) "
        "FILTER (WHERE k > 1)).v AS f FROM r GROUP BY g"
    ),
    "SELECT FIRST(holder) FILTER (WHERE ignore > 1) AS f FROM passport": (
        "SELECT (MIN(NAMED_STRUCT('c1', `passport`.`holder`, 'c2', `passport`.`ignore`, 'v', `passport`.`holder`)) "
        "FILTER (WHERE ignore > 1)).v AS f FROM passport"
    ),
    "SELECT g, COLLECT_SET(x) AS f, MAX(k) AS m FROM r GROUP BY g": (
        "SELECT g, SORT_ARRAY(COLLECT_SET(x)) AS f, MAX(k) AS m FROM r GROUP BY g"
    ),
    "SELECT k, LAST(x) OVER (ORDER BY w RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM r": (
        "SELECT k, LAST(x) OVER (ORDER BY w, `r`.`k`, `r`.`x` "
        "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM r"
    ),
    # a column of the table is no output of the same name
    "SELECT g AS k, k AS g FROM r ORDER BY r.k LIMIT 2": "SELECT g AS k, k AS g FROM r ORDER BY r.k, `k` LIMIT 2",
    # '1' and '01' are both 1
    "SELECT k, w FROM r WHERE w = 1 ORDER BY k LIMIT 2": "SELECT k, w FROM r WHERE w = 1 ORDER BY k, `w` LIMIT 2",
    "SELECT o.id, c.name FROM orders AS o LEFT JOIN code AS c ON o.city = c.id ORDER BY o.id LIMIT 3": (
        "SELECT o.id, c.name FROM orders AS o LEFT JOIN code AS c ON o.city = c.id ORDER BY o.id, `name` LIMIT 3"
    ),
    "SELECT k, MAX_BY(x, w) OVER (PARTITION BY g ORDER BY k NULLS LAST) AS m FROM r": (
        "SELECT k, (MAX(IF(ISNULL(`r`.`w`), NULL, NAMED_STRUCT('c1', `r`.`w`, 'c2', `r`.`k`, 'c3', `r`.`x`, "
        "'v', `r`.`x`))) OVER (PARTITION BY g ORDER BY k NULLS LAST)).v AS m FROM r"
    ),
    # what an outer join compares is not equal in rows that met nothing
    "SELECT o.city, c.id FROM orders AS o LEFT JOIN city AS c ON o.city = c.id ORDER BY c.id LIMIT 3": (
        "SELECT o.city, c.id FROM orders AS o LEFT JOIN city AS c ON o.city = c.id ORDER BY c.id, `city` LIMIT 3"
    ),
    "SELECT r.k, r.g FROM r ANTI JOIN city AS c ON r.k = 1 AND r.g = c.id ORDER BY r.g LIMIT 3": (
        "SELECT r.k, r.g FROM r ANTI JOIN city AS c ON r.k = 1 AND r.g = c.id ORDER BY r.g, `k` LIMIT 3"
    ),
    "SELECT c.id, p.a, p.b FROM r RIGHT JOIN orders AS o ON o.id = r.k JOIN city AS c ON c.id = 3 "
    "RIGHT JOIN pair AS p ON p.a = o.id ORDER BY p.a, p.b LIMIT 3": (
        "SELECT c.id, p.a, p.b FROM r RIGHT JOIN orders AS o ON o.id = r.k JOIN city AS c ON c.id = 3 "
        "RIGHT JOIN pair AS p ON p.a = o.id ORDER BY p.a, p.b, `id` LIMIT 3"
    ),
    # NULL is there several times, and so is zero
    "SELECT holder FROM passport ORDER BY number LIMIT 2": (
        "SELECT holder FROM passport ORDER BY number, `holder` LIMIT 2"
    ),
    "SELECT what FROM sensor ORDER BY at LIMIT 2": "SELECT what FROM sensor ORDER BY at, `what` LIMIT 2",
}


@pytest.mark.parametrize("query", OPEN)
def test_an_order_that_leaves_ties_goes_on(query: str) -> None:
    found = made(query)
    assert found.settled.text == OPEN[query]
    assert found.settled.notes
    assert all("rows are taken by" in note for note in found.settled.notes)
    again = made(found.settled.text)
    assert not again.settled.notes, "what was made leaves no choice"
    with pytest.raises(NotDeterministic) as refused:
        made(query, ties="refuse")
    assert "Without 'rollview.ties' = 'refuse' rollview chooses" in str(refused.value.hint)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT name, tags, ROW_NUMBER() OVER (ORDER BY name) AS n FROM city", "`city`.`tags` has no order"),
        ("SELECT name, tags FROM city ORDER BY name LIMIT 1", "LIMIT"),
        ("SELECT k, d FROM r ORDER BY ALL LIMIT 1", "LIMIT"),
        ("SELECT pop, FIRST(tags) AS t FROM city GROUP BY pop", "`city`.`tags` has no order"),
        ("SELECT k, COLLECT_LIST(x) OVER (PARTITION BY g ORDER BY k) AS l FROM r", "belong to its frame together"),
        ("SELECT g, ROW_NUMBER() OVER (ORDER BY SUM(x)) AS n FROM r GROUP BY CUBE (g)", "row_number"),
        (
            "SELECT k, FIRST(x) OVER (ORDER BY w RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS l FROM r",
            "belong to its frame together",
        ),
        ("SELECT name, tags FROM city LIMIT 1", "LIMIT"),
        ("SELECT k FROM r SORT BY k LIMIT 1", "LIMIT"),
        ("SELECT k FROM r CLUSTER BY k LIMIT 1", "LIMIT"),
        ("SELECT k, APPROX_PERCENTILE(x, 0.5) AS n FROM r GROUP BY k", "approx_percentile"),
    ],
)
def test_what_no_order_settles_is_refused(query: str, said: str) -> None:
    with pytest.raises(NotDeterministic, match=said):
        made(query)


@pytest.mark.parametrize(
    ("call", "is_left"),
    [
        ("sort_array(collect_list(x))", False),
        ("array_sort(collect_list(x) FILTER (WHERE k > 1))", False),
        ("sort_array(collect_list(x)) OVER ()", False),
        ("array_sort(collect_list(x), (a, b) -> 0)", True),
        ("sort_array(first(xs))", True),
        ("reverse(collect_list(x))", True),
        ("collect_list(x)", True),
        ("SUM(x) OVER (ORDER BY k ROWS 1 PRECEDING)", True),
        ("SUM(x) OVER (ORDER BY k)", False),
    ],
)
def test_a_list_in_an_order_of_its_own_leaves_no_choice(call: str, is_left: bool) -> None:
    query = parse_one(f"SELECT {call} AS l FROM r")
    assert any(unsettled(node) is not None for node in query.walk()) is is_left


@pytest.mark.parametrize("call", ["FIRST(x)", "LAST(x)", "COLLECT_LIST(x)", "SUM(x)"])
@pytest.mark.parametrize("frame", ["UNBOUNDED PRECEDING AND CURRENT ROW", "CURRENT ROW AND UNBOUNDED FOLLOWING"])
def test_a_range_without_an_order_is_left_to_spark_which_refuses_it(call: str, frame: str) -> None:
    query = f"SELECT k, {call} OVER (PARTITION BY g RANGE BETWEEN {frame}) AS l FROM r"
    assert made(query).settled.text == query


def test_a_key_that_may_be_null_tells_nothing_apart_behind_an_outer_join() -> None:
    found = made(
        "SELECT o.id, q.s FROM orders AS o LEFT JOIN (SELECT g, MAX(x) AS s FROM r GROUP BY g) AS q ON q.s = o.amount "
        "ORDER BY o.id, q.g LIMIT 3"
    )
    assert "q.g, `s` LIMIT" in found.settled.text


def test_a_view_with_a_list_of_columns_orders_by_its_texts_own_names() -> None:
    declared = declare_query("v", "SELECT k AS a, g AS b FROM r LIMIT 1", ("one", "two"))
    assert outline(declared, TABLES).settled.text == "SELECT k AS a, g AS b FROM r ORDER BY `a`, `b` LIMIT 1"


def test_only_two_ways_to_meet_ties_are_known() -> None:
    with pytest.raises(Unsupported, match=r"'rollview\.ties' is 'guess'"):
        made("SELECT k FROM r", ties="guess")
    assert made("SELECT k FROM r LIMIT 1", ties="settle").settled.notes


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT g, COUNT(*) AS n FROM r GROUP BY g", [["g"]]),
        ("SELECT id AS i, name FROM city", [["i"]]),
        ("SELECT o.id, c.name FROM orders AS o JOIN city AS c ON o.city = c.id", [["id"]]),
        ("SELECT o.city, c.name FROM orders AS o JOIN city AS c ON o.city = c.id", None),
        ("SELECT DISTINCT g, k FROM r", [["g", "k"]]),
        ("SELECT k FROM r UNION SELECT id FROM city", [["k"]]),
        ("SELECT g, COUNT(*) AS n FROM r GROUP BY ALL", [["g"]]),
        ("SELECT a, b FROM pair", [["a", "b"]]),
        ("SELECT number, holder FROM passport", None),
        ("SELECT n, COUNT(*) AS c FROM r LATERAL VIEW EXPLODE(ARRAY(1, 2)) AS n GROUP BY n", [["n"]]),
        ("SELECT o.id, o.amount FROM orders AS o LEFT SEMI JOIN city AS c ON o.city = c.id", [["id"]]),
        ("SELECT o.id, o.amount FROM orders AS o LEFT ANTI JOIN city AS c ON o.city = c.id", [["id"]]),
        ("SELECT id, EXPLODE(ARRAY(1, 2)) AS n FROM city", None),
        ("SELECT g, EXPLODE(ARRAY(1, 2)) AS n FROM r GROUP BY g", None),
    ],
)
def test_a_view_knows_what_tells_its_rows_apart(query: str, keys: list[list[str]] | None) -> None:
    assert made(query).facts.get("told_apart_by") == keys
