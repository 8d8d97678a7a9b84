"""Views as the Strobe papers write them; or why a view has no such form."""

from __future__ import annotations

import pytest

from rollview.algebra.definition import Declared
from rollview.algebra.natural_join import NaturalJoin, natural_join
from rollview.algebra.resolve import Known
from rollview.algebra.routes import NotAskableError
from rollview.algebra.text import render
from rollview.algebra.view import ViewPlan, outline, plan
from rollview.consistency.bags import bag
from rollview.core.schema import Column, Constraints, Schema

KNOWN = {
    name: Known(name, Schema(tuple(Column(*one.split(" ")) for one in columns.split(", "))), Constraints(("id",)))
    for name, columns in {
        "a": "id int, b int, word string, price double",
        "b": "id bigint, c int, word string",
        "c": "id int, word string",
    }.items()
}
CHAIN = "SELECT a.id, b.id AS bid, c.id AS cid, b.word FROM a JOIN b ON a.b = b.id JOIN c ON b.c = c.id"


def joined(query: str) -> NaturalJoin:
    made = plan(outline(Declared("v", (), None, {}, query, False), KNOWN), {})
    return natural_join(made, {"a": "x", "b": "y", "c": "y"})


def test_columns_that_are_compared_are_one_column() -> None:
    found = joined(CHAIN)
    assert {one.name: one.columns for one in found.view.occurrences} == {
        "a": ("a.id", "a.b"),
        "b": ("a.b", "b.c", "b.word"),
        "c": ("b.c",),
    }
    assert found.view.is_keyed
    assert found.view.sources == ("x", "y")
    assert found.outputs == ("a.id", "a.b", "b.c", "b.word")
    tables = {"a": bag([(1, 10), (2, 10)]), "b": bag([(10, 7, "w")]), "c": bag([(7,)])}
    assert found.view.evaluate(tables) == bag([(1, 10, 7, "w"), (2, 10, 7, "w")])


def test_every_way_to_ask_is_told() -> None:
    assert set(joined(CHAIN).asks()) == {
        ("a", ("b",)),
        ("b", ("id",)),
        ("b", ("c",)),
        ("b", ("id", "c")),
        ("c", ("id",)),
    }


@pytest.mark.parametrize(
    ("condition", "row", "selected"),
    [
        ("a.word > 'm'", {"word": "n"}, True),
        ("a.word > 'm'", {"word": "m"}, False),
        ("'m' > a.word", {"word": "n"}, False),
        ("'m' > a.word", {"word": "l"}, True),
        ("a.word <= 'm'", {"word": None}, False),
        ("a.id <> -3", {"id": -3}, False),
        ("a.id <> -3", {"id": 3}, True),
        ("a.id = 3", {"id": 3}, True),
        ("a.id = 3", {"id": 4}, False),
        ("a.id >= 3", {"id": 3}, True),
        ("a.id < 3", {"id": 3}, False),
        ("a.word IS NULL", {"word": None}, True),
        ("a.word IS NULL", {"word": "n"}, False),
        ("a.word IS NOT NULL", {"word": None}, False),
        ("a.word IS NOT NULL", {"word": "n"}, True),
        ("a.id = 1", {"b": None}, False),
    ],
)
def test_rows_are_selected_before_they_are_joined(condition: str, row: dict[str, object], selected: bool) -> None:
    """The last one: NULL joins with nothing."""
    table = joined(f"{CHAIN} WHERE {condition}").tables["a"]
    assert table.selects({"id": 1, "b": 10, "word": "w", **row}) is selected
    assert table.columns == ("id", "b")


def test_a_table_that_is_read_twice_is_two_that_change_together() -> None:
    found = joined("SELECT x.id AS i, y.id AS j FROM a x JOIN a y ON x.b = y.b WHERE y.word = 'w'")
    assert [(one.name, one.table) for one in found.view.occurrences] == [("x", "x"), ("y", "y")]
    assert {name: table.relation for name, table in found.tables.items()} == {"x": "a", "y": "a"}
    assert not found.tables["x"].tests
    assert found.tables["y"].tests


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT a.id + 1 AS i FROM a JOIN b ON a.b = b.id", "it shows .*, which is no column"),
        ("SELECT a.id FROM a JOIN b ON a.b = b.id AND a.id < b.c", "neither an equality"),
        ("SELECT a.id FROM a JOIN b ON a.b = b.id WHERE a.id = a.b", "neither an equality"),
        ("SELECT a.id FROM a JOIN b ON a.b = b.id WHERE a.id > 1.5", "neither an equality"),
        ("SELECT a.id FROM a JOIN b ON a.b = b.id WHERE a.id > '1'", "neither an equality"),
        ("SELECT a.id FROM a JOIN b ON a.b = b.id WHERE a.price > 1", "neither an equality"),
        ("SELECT a.id, a.price FROM a JOIN b ON a.b = b.id", "compare loosely"),
        ("SELECT a.id FROM a JOIN b ON a.b = b.id AND a.id = b.id", "two columns of 'a'"),
        ("SELECT a.id, x.c FROM a JOIN (SELECT id, c FROM b WHERE c > 3) x ON a.b = x.id", "made on the way"),
        ("SELECT a.id FROM a UNION ALL SELECT b.id FROM b", "more than SELECT"),
    ],
)
def test_what_the_papers_do_not_cover_has_no_such_form(query: str, reason: str) -> None:
    with pytest.raises(NotAskableError, match=reason):
        joined(query)


def test_a_table_of_no_source_cannot_be_asked() -> None:
    made = plan(outline(Declared("v", (), None, {}, CHAIN, False), KNOWN), {})
    with pytest.raises(NotAskableError, match="'c', which is no table of a source"):
        natural_join(made, {"a": "x", "b": "y"})


def keeping_keys(query: str) -> ViewPlan:
    return plan(outline(Declared("v", (), None, {}, query, False), KNOWN, keeps_keys=True), {})


def test_keys_that_are_not_shown_are_stored_beside_what_is() -> None:
    made = keeping_keys("SELECT b.word FROM a JOIN b ON a.b = b.id JOIN c ON b.c = c.id")
    assert made.keeps_keys
    assert made.hidden is not None
    # The key of b is what a compares with it, and is stored once; that of c likewise.
    assert made.hidden.names == ("word", "_rv_key0_0", "_rv_key1_0", "_rv_key2_0", "_rv_rows")
    assert [column.type for column in made.hidden] == ["string", "int", "bigint", "int", "bigint"]
    found = natural_join(made, {"a": "x", "b": "y", "c": "y"})
    assert found.view.is_keyed
    assert found.outputs == ("b.word", "a.id", "a.b", "b.c")
    assert render(made.visible("stored")) == "SELECT `word` AS `word` FROM `stored`"
    assert made.moved_by == {"a", "b", "c"}
    assert "not shown: a.id, b.id, c.id" in [note.reason for note in made.operators]


@pytest.mark.parametrize(
    "query",
    [
        CHAIN,
        "SELECT a.id, a.b FROM a JOIN b ON a.b = b.id",
        "SELECT word, COUNT(*) AS n FROM a GROUP BY word",
        "SELECT a.id + 1 AS next FROM a JOIN b ON a.b = b.id",
    ],
)
def test_nothing_is_hidden_where_all_is_shown_or_rows_are_no_plain_join(query: str) -> None:
    made = outline(Declared("v", (), None, {}, query, False), KNOWN, keeps_keys=True)
    assert made.keyed is None
    assert "hidden_keys" not in made.facts
