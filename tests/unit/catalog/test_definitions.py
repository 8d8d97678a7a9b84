from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.unit.catalog.samples import SCHEMA, add_table, add_view, commit, definition

from rollview import errors
from rollview.catalog import Catalog, Part, Pin
from rollview.core.schema import Schema


def view_with_two(catalog: Catalog) -> None:
    """A view of two definitions, the second from csn 3 on."""
    with catalog.write() as writer:
        add_table(writer, "t")
        add_table(writer, "u")
        add_view(writer, "v", "t")
        writer.pin("v", Pin(Part.DELTA, 0, 0, 1, 0))
    for _ in range(3):
        commit(catalog)
    with catalog.write() as writer:
        writer.define_from("v", 3, definition("SELECT 2"), SCHEMA, ("u",), "t is called u")


def test_a_view_has_each_definition_from_its_csn_on(catalog: Catalog) -> None:
    view_with_two(catalog)
    snapshot = catalog.snapshot()
    now, before = snapshot.get("v"), snapshot.at(2).get("v")
    assert now.definition is not None
    assert before.definition is not None
    assert (now.definition.query, now.depends_on, now.until) == ("SELECT 2", ("u",), None)
    assert (before.definition.query, before.depends_on, before.until) == ("SELECT 1", ("t",), 3)
    assert before.pins == now.pins
    assert before.at(3).definition == now.definition
    assert [(one.csn, one.why) for one in catalog.definitions("V")] == [(0, "created"), (3, "t is called u")]


def test_readers_find_a_view_at_an_earlier_definition_until_it_is_shown_where_it_is(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        add_view(writer, "v", "t")
        for part in (Part.EXTENT, Part.GROUPS, Part.DELTA):
            writer.pin("v", Pin(part, 0, 0, 2, 1))
    for _ in range(3):
        commit(catalog)
    old = catalog.snapshot().get("v").folder
    with catalog.write() as writer:
        writer.redefine_from("v", 3, definition("SELECT 2"), SCHEMA, ("t",), "replaced")
        writer.take_definition("v", 3, "v-new")
        writer.pin("v", Pin(Part.EXTENT, 5, 3, 3, 7))
    assert (catalog.snapshot().get("v").shown.through, catalog.snapshot().get("v").rolled) == (3, None)
    with catalog.write() as writer:
        writer.show_earlier("v", [Pin(Part.EXTENT, 8, 1, 1, 4), Pin(Part.GROUPS, 9, 1, 1, 6)])
    view = catalog.snapshot().get("v")
    assert view.rolled is not None
    assert (view.folder, view.pins[Part.EXTENT].through) == ("v-new", 3)
    assert (view.rolled.folder, view.shown) == (old, Pin(Part.EXTENT, 8, 1, 1, 4))
    assert [view.at(1).pins[part].version for part in (Part.EXTENT, Part.GROUPS, Part.DELTA)] == [8, 9, 0]
    with catalog.write() as writer:
        writer.show_present("v")
    view = catalog.snapshot().get("v")
    assert (view.shown.through, view.at(1).pins[Part.EXTENT].version) == (3, 8)


def test_what_an_earlier_definition_reads_cannot_be_dropped(catalog: Catalog) -> None:
    view_with_two(catalog)
    with pytest.raises(errors.UsageError, match="had before csn 3"), catalog.write() as writer:
        writer.drop_relation("t")


def test_a_definition_of_the_same_rows_has_the_same_columns_and_is_the_newest(catalog: Catalog) -> None:
    view_with_two(catalog)
    with pytest.raises(errors.UsageError, match="other columns"), catalog.write() as writer:
        writer.define_from("v", 4, definition(), Schema(SCHEMA.columns[:1]), ("t",), "why")
    with pytest.raises(errors.UsageError, match="from csn 3 on"), catalog.write() as writer:
        writer.define_from("v", 2, definition(), SCHEMA, ("t",), "why")
    with catalog.write() as writer:
        writer.define_from("v", 3, definition("SELECT 3"), SCHEMA, ("t",), "said again")
    assert [one.why for one in catalog.definitions("v")] == ["created", "said again"]


def test_views_that_were_there_before_have_their_definition(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    with Catalog.create(path) as catalog, catalog.write() as writer:
        add_table(writer, "t")
        add_view(writer, "v", "t")
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE rollview_definition")
        database.execute("DROP TABLE rollview_reader")
        database.execute("DROP TABLE rollview_place")
        database.execute("ALTER TABLE rollview_lease DROP COLUMN waiting")
        database.execute("UPDATE rollview_version SET version_num = '0009'")
    with Catalog.open(path) as catalog:
        (found,) = catalog.definitions("v")
        assert (found.definition, found.depends_on, found.csn) == (definition(), ("t",), 0)
