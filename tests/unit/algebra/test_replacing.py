"""Definitions written anew where something that they name is gone: the author's words stay."""

from __future__ import annotations

import pytest

from rollview.algebra.replacing import CannotRewrite, Replacement, RewrittenText, called, rewritten
from rollview.algebra.resolve import Known, resolve
from rollview.core.schema import Column, Constraints, Schema
from rollview.core.states import Extent
from rollview.errors import UsageError
from rollview.evolve.dispensable import dispensable, wanted_extent


def _known(name: str, *columns: str, key: tuple[str, ...] = ()) -> Known:
    return Known(name, Schema(tuple(Column(column, "int") for column in columns)), Constraints(primary_key=key))


KNOWN = {
    "customer": _known("customer", "id", "name", "phone", key=("id",)),
    "flight": _known("flight", "cid", "dest", "age"),
}
USER = Replacement("user_2", {"id": "`id`", "name": "`login`"})
RENAMED = Replacement("customer", {"id": "`id`", "name": "`first_last`", "phone": "`phone`"})
GONE = Replacement(None, {})
AFTER = {"user_2": _known("user_2", "id", "login", "dest"), "flight": KNOWN["flight"]}


def written(text: str, replacement: Replacement = USER, may: str = "", columns: tuple[str, ...] = ()) -> RewrittenText:
    made = rewritten(text, columns, KNOWN, {"customer": replacement}, dispensable({"rollview.dispensable": may}))
    after = {**AFTER, "customer": _known("customer", "id", "first_last", "phone", "new")}
    resolve(made.text, after, made.columns)
    return made


@pytest.mark.parametrize(
    ("text", "new"),
    [
        (
            "SELECT c.name, f.dest -- where\nFROM customer c JOIN flight f ON c.id = f.cid",
            "SELECT c.name, f.dest -- where\n"
            "FROM (SELECT id, login AS name FROM user_2) c JOIN flight f ON c.id = f.cid",
        ),
        # Another column 'dest' must not be meant by the author's word.
        (
            "SELECT dest FROM customer, flight WHERE id = cid",
            "SELECT dest FROM (SELECT id FROM user_2) AS customer, flight WHERE id = cid",
        ),
        ("SELECT c.id FROM customer AS c", "SELECT c.id FROM user_2 AS c"),
        ("SELECT customer.id FROM customer", "SELECT customer.id FROM user_2 AS customer"),
        (
            "WITH q AS (SELECT cid FROM flight) SELECT c.name FROM q JOIN customer c ON c.id = q.cid",
            "WITH q AS (SELECT cid FROM flight) SELECT c.name "
            "FROM q JOIN (SELECT id, login AS name FROM user_2) c ON c.id = q.cid",
        ),
        ("SELECT count(*) AS n FROM customer", "SELECT count(*) AS n FROM user_2 AS customer"),
        (
            "WITH customer AS (SELECT cid AS id FROM flight) SELECT id FROM customer",
            "WITH customer AS (SELECT cid AS id FROM flight) SELECT id FROM customer",
        ),
        (
            "SELECT a.id FROM customer a JOIN customer b ON a.name = b.id",
            "SELECT a.id FROM (SELECT id, login AS name FROM user_2) a "
            "JOIN (SELECT id, login AS name FROM user_2) b ON a.name = b.id",
        ),
    ],
)
def test_another_table_is_read_by_the_names_of_the_text(text: str, new: str) -> None:
    assert written(text).text == new


def test_a_star_over_a_subquery_names_no_more_of_the_table() -> None:
    """As a view is written that was rewritten before: what it never showed may go."""
    assert written("SELECT * FROM (SELECT id, name FROM customer) AS customer", RENAMED).text == (
        "SELECT * FROM (SELECT id, name FROM (SELECT id, first_last AS name FROM customer) AS customer) AS customer"
    )


def test_a_star_means_what_it_meant() -> None:
    assert written("SELECT * FROM customer", RENAMED).text == (
        "SELECT * FROM (SELECT id, first_last AS name, phone FROM customer) AS customer"
    )


@pytest.mark.parametrize(
    ("text", "may", "new", "extents"),
    [
        (
            "SELECT name, -- who\n phone, /* all */ id FROM customer",
            "column phone",
            "SELECT name -- who\n , /* all */ id FROM (SELECT id, login AS name FROM user_2) AS customer",
            [Extent.EQUAL],
        ),
        (
            "SELECT phone, name FROM customer",
            "columns",
            "SELECT  name FROM (SELECT login AS name FROM user_2) AS customer",
            [Extent.EQUAL],
        ),
        (
            "SELECT DISTINCT phone, name FROM customer",
            "columns",
            "SELECT DISTINCT  name FROM (SELECT login AS name FROM user_2) AS customer",
            [Extent.SUBSET],
        ),
        (
            "SELECT c.id FROM customer c WHERE c.phone BETWEEN 1 AND 2 AND c.id > 1",
            "condition on phone",
            "SELECT c.id FROM user_2 c WHERE   c.id > 1",
            [Extent.SUPERSET],
        ),
        (
            "SELECT count(*) AS n FROM customer c WHERE c.phone = 1",
            "conditions",
            "SELECT count(*) AS n FROM user_2 c  ",
            [Extent.ANY],
        ),
        (
            "SELECT c.id, max(c.name) AS m FROM customer c GROUP BY c.id HAVING max(c.phone) > 1 AND count(*) > 1",
            "conditions",
            "SELECT c.id, max(c.name) AS m FROM (SELECT id, login AS name FROM user_2) c "
            "GROUP BY c.id HAVING   count(*) > 1",
            [Extent.SUPERSET],
        ),
    ],
)
def test_what_is_dispensable_goes_and_its_extent_is_told(text: str, may: str, new: str, extents: list[Extent]) -> None:
    made = written(text, may=may)
    assert made.text == new
    assert [one.extent for one in made.left_out] == extents


@pytest.mark.parametrize(
    ("join", "extent"),
    [
        ("LEFT JOIN customer c ON c.id = f.cid", Extent.EQUAL),
        ("LEFT JOIN customer c ON c.name = f.cid", Extent.SUBSET),
        ("JOIN customer c ON c.id = f.cid", Extent.SUPERSET),
        ("JOIN customer c ON c.name = f.cid", Extent.ANY),
        ("JOIN customer c ON c.id = c.name", Extent.ANY),
        ("JOIN customer c ON c.id = 5", Extent.ANY),
        ("LEFT JOIN customer c ON c.id = 5", Extent.SUBSET),
        ("LEFT JOIN customer c ON c.id > f.cid", Extent.SUBSET),
        ("FULL JOIN customer c ON c.id = f.cid", Extent.ANY),
    ],
)
def test_a_join_is_left_out_with_what_it_gave(join: str, extent: Extent) -> None:
    made = written(f"SELECT f.dest, c.name FROM flight f {join}", GONE, "joins, column who", ("to", "who"))
    assert made.text == "SELECT f.dest  FROM flight f "
    assert made.columns == ("to",)
    assert made.left_out[0].extent is extent


def test_of_several_joins_the_extent_follows_from_the_one_that_is_left_out() -> None:
    joins = "LEFT JOIN flight g ON g.cid = f.cid LEFT JOIN customer c ON c.id = f.cid"
    made = written(f"SELECT f.dest, c.name FROM flight f {joins}", GONE, "joins, column who", ("to", "who"))
    assert made.text.rstrip() == "SELECT f.dest  FROM flight f LEFT JOIN flight g ON g.cid = f.cid"
    assert made.left_out[0].extent is Extent.EQUAL


@pytest.mark.parametrize(
    ("text", "replacement", "may"),
    [
        ("SELECT phone FROM customer", USER, ""),
        ("SELECT phone FROM customer", USER, "columns"),
        ("SELECT phone, count(*) AS n FROM customer GROUP BY phone", USER, "columns"),
        ("SELECT phone, name FROM customer GROUP BY 1, 2", USER, "columns"),
        ("SELECT name FROM customer ORDER BY phone LIMIT 1", USER, "columns, conditions"),
        ("SELECT name FROM customer WHERE phone = 1 OR id = 1", USER, "columns, joins"),
        ("SELECT name FROM customer UNION ALL SELECT phone FROM customer", USER, "columns"),
        ("SELECT * FROM customer NATURAL JOIN (SELECT 1 AS phone)", USER, "columns, joins, conditions"),
        ("SELECT x FROM (SELECT phone AS x FROM customer) AS s", USER, "columns, joins, conditions"),
        ("SELECT count(*) AS n FROM customer", GONE, "columns, joins, conditions"),
        ("SELECT f.dest, c.name FROM flight f LEFT JOIN customer c ON c.id = f.cid", GONE, "joins"),
        ("SELECT f.dest FROM (SELECT cid AS id, dest FROM flight) f JOIN customer USING (id)", GONE, "columns"),
        ("SELECT phone, name, count(*) AS n FROM customer GROUP BY ALL", USER, "columns"),
    ],
)
def test_what_cannot_do_without_is_refused(text: str, replacement: Replacement, may: str) -> None:
    with pytest.raises(CannotRewrite, match=r"it needs|it has no column left"):
        written(text, replacement, may)


def test_tables_that_are_called_otherwise_keep_their_name_in_the_text() -> None:
    text = "SELECT customer.id, c.name FROM customer JOIN customer AS c ON TRUE"
    assert called(text, {"customer": "people"}) == (
        "SELECT customer.id, c.name FROM `people` AS customer JOIN `people` AS c ON TRUE"
    )


def test_properties_that_cannot_be_understood_are_refused() -> None:
    with pytest.raises(UsageError, match="dispensable"):
        dispensable({"rollview.dispensable": "the phone"})
    with pytest.raises(UsageError, match="extent"):
        wanted_extent({"rollview.extent": "more"})
    both = dispensable({"rollview.dispensable": "column Phone, join `region`, condition on age"})
    assert (both.column("phone"), both.column("name"), both.join(["REGION"]), both.condition(["age"])) == (
        True,
        False,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("WITH c AS (SELECT id, phone FROM customer) SELECT id FROM c", "inside its CTE 'c'"),
        ("WITH c AS (SELECT id FROM customer WHERE phone > 1) SELECT id FROM c", "inside its CTE 'c'"),
        ("SELECT id FROM (SELECT id, phone FROM customer) s", "inside its subquery 's'"),
    ],
)
def test_a_part_of_a_cte_or_of_a_subquery_is_not_left_out_and_the_reason_says_so(text: str, where: str) -> None:
    with pytest.raises(CannotRewrite) as refused:
        written(text, may="columns, joins, conditions")
    assert f"it needs column 'phone' {where}: only columns, joins and conditions of the outermost" in str(refused.value)


def test_a_join_with_a_subquery_is_left_out_whole() -> None:
    text = "SELECT f.dest FROM flight f LEFT JOIN (SELECT id, phone FROM customer) s ON s.id = f.cid"
    made = written(text, may="joins")
    assert made.text.rstrip() == "SELECT f.dest FROM flight f"
