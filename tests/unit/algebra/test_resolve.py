"""Names become what they mean, or the error says which, where and what there is."""

from __future__ import annotations

import pytest

from rollview.algebra.resolve import Known, resolve
from rollview.algebra.text import render
from rollview.core.schema import Column, Schema
from rollview.errors import InvalidName, NotFound, RollviewError, SqlError, Unsupported


def table(name: str, **columns: str) -> Known:
    return Known(name, Schema(tuple(Column(column, type_) for column, type_ in columns.items())))


KNOWN = {
    "orders": table("Orders", Id="int", customer="int", total="decimal(10,2)"),
    "customers": table("customers", id="int", Name="string", place="struct<city:string>"),
    "odd": table("odd", id="bigint", code="string"),
}


def resolved(text: str, columns: tuple[str, ...] = ()) -> str:
    return render(resolve(text, KNOWN, columns).query)


@pytest.mark.parametrize(
    ("text", "kind", "said", "hint", "place"),
    [
        ("SELECT id FROM\n  ordres", NotFound, "'ordres'", "Close names: Orders", (2, 3)),
        ("SELECT id FROM nothing_like_it", NotFound, "'nothing_like_it'", "Create it first", (1, 16)),
        ("SELECT\n id,\n  nam FROM customers", SqlError, "no column 'nam'", "Columns here: Name, id, place", (3, 3)),
        ("SELECT c.nam FROM customers c", SqlError, "no column 'nam'", "Name", (1, 8)),
        ("SELECT id FROM orders, customers", SqlError, "ambiguous: it is in 'Orders' and 'customers'", "alias", (1, 8)),
        ("SELECT x.id FROM orders o", SqlError, "no table or alias 'x'", "FROM has: o", (1, 8)),
        ("SELECT o.id, x.id FROM orders o", SqlError, "no table or alias 'x'", "FROM has: o", (1, 14)),
        ("SELECT nam FROM orders, customers", SqlError, "no column 'nam'", "Name", (1, 8)),
        (
            "SELECT total FROM customers WHERE id IN (SELECT id FROM orders)",
            SqlError,
            "no column 'total'",
            None,
            (1, 8),
        ),
        ("SELECT o.total FROM orders o, customers o", SqlError, "does not resolve: Alias already used", None, None),
        ("SELECT x.* FROM orders o", SqlError, "no table or alias 'x'", "FROM has: o", (1, 8)),
        ("SELECT id, total * 2 FROM orders", SqlError, r"total \* 2 has no name", "AS name", (1, 12)),
        ("SELECT COUNT(*) FROM orders", SqlError, r"COUNT\(\*\) has no name", "AS name", (1, 8)),
        (
            "SELECT id, STACK(2, id, total) AS (v) FROM orders",
            Unsupported,
            r"STACK\(2, id, total\) gives several columns",
            "LATERAL VIEW STACK(2, id, total) AS v",
            None,
        ),
        ("SELECT id AS a, total AS A FROM orders", SqlError, "two columns named 'A'", "AS", None),
        ("SELECT * FROM orders, customers", SqlError, "two columns named", "AS", None),
        ("SELECT id AS _csn FROM orders", InvalidName, "_csn", None, None),
        ("SELECT id AS `_RV_x` FROM orders", InvalidName, "_RV_x", None, None),
        ("SELECT id FROM a.orders", Unsupported, "not a table or view of this warehouse", "plain names", (1, 16)),
        ("SELECT id FROM a..orders", Unsupported, "not a table or view", "plain names", (1, 16)),
        ("WITH orders AS (SELECT 1 AS id) SELECT id FROM a.orders", Unsupported, "not a table or view", None, (1, 48)),
        ("SELECT id FROM parquet.`/x`", Unsupported, "not a table or view", "files", (1, 16)),
        ("SELECT id FROM range(3)", Unsupported, "not a table or view", None, (1, 16)),
        ("SELECT id FROM orders VERSION AS OF 1", Unsupported, "newest state", None, (1, 16)),
        ("SELECT id FROM orders BEFORE (VERSION => 1)", Unsupported, "newest state", None, (1, 16)),
        ("SELECT place.* FROM customers", Unsupported, "stands for are not known", "one by one", None),
        ("SELECT id FROM orders JOIN odd USING (id)", Unsupported, "different types .bigint and int", "ON", (1, 28)),
        (
            "SELECT id FROM orders o RIGHT JOIN orders p USING (id) JOIN orders q USING (id)",
            Unsupported,
            "RIGHT",
            "ON",
            None,
        ),
        (
            "SELECT id FROM orders o FULL JOIN orders p USING (id) NATURAL JOIN orders q",
            Unsupported,
            "FULL",
            "ON",
            None,
        ),
        (
            "SELECT id FROM orders o RIGHT JOIN orders p USING (id) JOIN customers c ON c.id = p.id "
            "JOIN orders q USING (id)",
            Unsupported,
            "RIGHT",
            "ON",
            None,
        ),
        ("SELECT Id FROM orders NATURAL JOIN odd", Unsupported, "NATURAL JOIN over columns", "ON", (1, 36)),
    ],
)
def test_a_name_that_means_nothing(
    text: str, kind: type[RollviewError], said: str, hint: str | None, place: tuple[int, int] | None
) -> None:
    with pytest.raises(kind, match=said) as caught:
        resolve(text, KNOWN)
    assert hint is None or hint in str(caught.value.hint)
    assert place is None or (caught.value.facts["line"], caught.value.facts["column"]) == place


def test_columns_are_spelled_as_their_table_declares_them() -> None:
    assert resolved("SELECT ID AS a FROM ORDERS AS o") == "SELECT `o`.`Id` AS `a` FROM `orders` AS `o`"


def test_outputs_are_spelled_as_the_author_wrote_them() -> None:
    assert resolve("SELECT id AS OrderId, TOTAL FROM orders", KNOWN).outputs == ("OrderId", "TOTAL")


def test_a_star_spells_columns_as_their_table_declares_them() -> None:
    assert resolve("SELECT * FROM ORDERS", KNOWN).outputs == ("Id", "customer", "total")
    assert resolve("SELECT c.*, total AS Total FROM customers c, orders", KNOWN).outputs == (
        "id",
        "Name",
        "place",
        "Total",
    )


def test_a_column_list_renames_by_place() -> None:
    assert resolve("SELECT id, total FROM orders", KNOWN, ("a b", "c")).outputs == ("a b", "c")
    with pytest.raises(SqlError, match="names 1 columns, but its query has 2"):
        resolve("SELECT id, total FROM orders", KNOWN, ("a",))


@pytest.mark.parametrize("named", ["odd", "(SELECT * FROM odd)", "c"])
def test_from_renames_columns_by_place(named: str) -> None:
    text = resolved(f"WITH c AS (SELECT * FROM odd) SELECT q.id, q.code FROM {named} AS q (code, id)")
    assert ".`id` AS `code`," in text
    assert ".`code` AS `id` FROM" in text


def test_advice_to_an_engine_is_no_part_of_a_query() -> None:
    assert "*/" not in resolved("SELECT /*+ BROADCAST(o) */ o.id FROM odd JOIN orders o ON o.id = odd.id")


def test_a_field_of_a_struct_is_reached_through_its_column() -> None:
    assert "`customers`.`place`.`city` AS `city`" in resolved("SELECT place.city FROM customers")
    assert "`c`.`place`.`city` AS `x`" in resolved("SELECT c.place.city AS x FROM customers c")


def test_a_struct_keeps_the_names_of_its_fields() -> None:
    assert "STRUCT(`o`.`Id` AS `id`, `o`.`total` AS `total`)" in resolved(
        "SELECT struct(id, o.total) AS s FROM orders o"
    )


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        ("to_json(struct(id AS orderId))", "STRUCT(`orders`.`Id` AS `orderId`)"),
        ("to_json(struct(ID))", "STRUCT(`orders`.`Id` AS `ID`)"),
        ("to_json(CAST(named_struct('a', id) AS STRUCT<orderId: INT>))", "STRUCT<`orderId`: INT>"),
        ("to_json(struct(*))", "STRUCT(*)"),
    ],
)
def test_a_field_keeps_the_spelling_of_its_name(item: str, kept: str) -> None:
    assert kept in resolved(f"SELECT {item} AS Told FROM orders")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT to_json(struct(*)) AS j FROM (SELECT id AS orderId FROM orders) q",
        "SELECT to_json(struct(q.*)) AS j FROM orders AS q (orderId, c, t)",
        "SELECT arrays_zip(Ids, Ids) AS j FROM (SELECT array(id) AS Ids FROM orders) q",
        "SELECT name, v FROM odd UNPIVOT (v FOR name IN (Id))",
    ],
)
def test_a_field_named_after_a_column_whose_spelling_is_gone(query: str) -> None:
    with pytest.raises(Unsupported, match="whose spelling is not kept"):
        resolve(query, KNOWN)


def test_a_lambda_variable_is_no_column() -> None:
    assert "`id` -> `id` + `orders`.`total`" in resolved(
        "SELECT transform(array(1), id -> id + total) AS a FROM orders"
    )


def test_ctes_have_names_of_their_own() -> None:
    text = resolved(
        "WITH orders AS (SELECT id FROM orders) SELECT a.id, b.id AS b FROM orders a "
        "JOIN (WITH orders AS (SELECT id FROM customers) SELECT id FROM orders) b ON a.id = b.id"
    )
    assert "`orders_2`" in text
    assert "`orders_3`" in text


def test_a_cte_cannot_take_the_place_of_a_tables_rows() -> None:
    text = resolved("WITH `orders@rows` AS (SELECT id FROM customers) SELECT o.id FROM orders o, `orders@rows` x")
    assert "WITH `orders@rows_2`" in text


@pytest.mark.parametrize(
    "joined",
    [
        "orders o JOIN orders p USING (id) LEFT JOIN orders q USING (id)",
        "orders o RIGHT JOIN odd p ON o.id = p.id JOIN orders q USING (total)",
        "orders o RIGHT JOIN orders p USING (id) JOIN customers c ON c.id = p.id",
    ],
)
def test_joins_by_name_are_written_with_conditions(joined: str) -> None:
    text = resolved(f"SELECT 1 AS one FROM {joined}")
    assert "USING" not in text
    assert text.count(" ON ") == 2


def test_an_order_is_kept_only_where_it_decides_which_rows_there_are() -> None:
    assert "ORDER BY" in resolved("SELECT id FROM orders ORDER BY id LIMIT 2")
    assert "ORDER BY" not in resolved("SELECT id FROM orders ORDER BY id")


def test_reads_name_each_relation_once() -> None:
    found = resolve("SELECT a.id FROM orders a JOIN ORDERS b ON a.id = b.id JOIN customers c ON c.id = a.id", KNOWN)
    assert {known.name for known in found.reads} == {"Orders", "customers"}
