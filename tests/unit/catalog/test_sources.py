"""Sources in the catalog: positions move with the ledger, from where they are believed to be."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
import sqlalchemy as sa
from tests.unit.catalog.samples import HOSTILE_NAMES, add_table, commit_in

from rollview import errors
from rollview.catalog import CapturedTable, Catalog, Change, Part, Pin, address, migrate, tables
from rollview.catalog.database import Database
from rollview.catalog.tables import HEAD
from rollview.core.states import SourceState


def add_source(catalog: Catalog, name: str = "bank") -> None:
    with catalog.write() as writer:
        writer.sources.add(name, "sqlite", {"address": "env:BANK"}, {"tag": "x"})


def capture(catalog: Catalog, before: str | None) -> None:
    with catalog.write() as writer:
        commit_in(writer, [Change("t", 1, 0)])
        writer.sources.advance("bank", before, "p1")


def test_a_new_source_has_no_position(catalog: Catalog) -> None:
    add_source(catalog)
    source = catalog.source("BANK")
    assert (source.name, source.state, source.position, source.tables) == ("bank", "copying", None, ())
    assert (source.settings, source.memory) == ({"address": "env:BANK"}, {"tag": "x"})
    assert catalog.sources() == (source,)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_source_may_have_any_name(catalog: Catalog, name: str) -> None:
    add_source(catalog, name)
    with catalog.write() as writer:
        add_table(writer, name)
        writer.sources.attach(name, name, f"remote {name}")
    assert catalog.source(name).tables == (CapturedTable(name, f"remote {name}"),)
    assert catalog.snapshot().get(name).source == name


def test_names_are_taken_once(catalog: Catalog) -> None:
    add_source(catalog)
    with pytest.raises(errors.AlreadyExists, match="source 'Bank'"):
        add_source(catalog, "Bank")
    with pytest.raises(errors.InvalidName):
        add_source(catalog, " ")
    with pytest.raises(errors.NotFound, match="no source 'other'"):
        catalog.source("other")


def test_the_position_moves_only_from_where_it_is(catalog: Catalog) -> None:
    add_source(catalog)
    with catalog.write() as writer:
        writer.sources.advance("bank", None, "p1", {"tag": "x", "more": 1})
    assert catalog.source("bank").position == "p1"
    assert catalog.source("bank").memory == {"tag": "x", "more": 1}
    for believed in (None, "p0"):
        with pytest.raises(errors.Retryable, match="another process read it"), catalog.write() as writer:
            writer.sources.advance("bank", believed, "p2")
    with catalog.write() as writer:
        writer.sources.advance("bank", "p1", "p2")
    assert catalog.source("bank").memory == {"tag": "x", "more": 1}
    assert catalog.source("bank").read is not None


def test_ledger_and_position_move_together_or_not_at_all(catalog: Catalog) -> None:
    add_source(catalog)
    with catalog.write() as writer:
        add_table(writer, "t")
        writer.sources.attach("bank", "t", "public.t")
    with pytest.raises(errors.Retryable):
        capture(catalog, "elsewhere")
    assert (catalog.source("bank").position, catalog.snapshot().moment.csn) == (None, 0)
    capture(catalog, None)
    assert (catalog.source("bank").position, catalog.snapshot().moment.csn) == ("p1", 1)


def test_a_state_tells_why(catalog: Catalog) -> None:
    add_source(catalog)
    with catalog.write() as writer:
        writer.sources.set_state("bank", "lost_position", "half a \ud800 pair")
    assert catalog.source("bank").state == "lost_position"
    assert catalog.source("bank").problem == "half a \\ud800 pair"


@pytest.mark.parametrize(
    ("column", "text", "said_of"),
    [
        (tables.source.c.state, "resting", "the state of source 'bank'"),
        (tables.relation.c.state, "resting", "the state of view 't'"),
        (tables.relation.c.kind, "index", "the kind of 't'"),
        (tables.pin.c.part, "shadow", "a part of a table or view"),
    ],
)
def test_a_text_that_is_none_of_a_closed_choice_is_refused(
    url: str, catalog: Catalog, column: sa.Column[str], text: str, said_of: str
) -> None:
    add_source(catalog)
    with catalog.write() as writer:
        add_table(writer, "t")
        writer.pin("t", Pin(Part.STATE, 0, 0, 0, 0))
    with closing(Database(address.parse(url))) as database, database.write() as connection:
        connection.execute(column.table.update().values({column: text}))
    with pytest.raises(errors.Corrupt, match=f"'{text}' for {re.escape(said_of)}") as refused:
        (catalog.snapshot(), catalog.sources())
    assert refused.value.facts["found"] == text
    assert refused.value.hint is not None


def test_every_error_that_stops_a_source_is_a_state_of_it() -> None:
    stopping = errors.SourceStopped.__subclasses__()
    working = {"copying", "active", "retrying", "widening", "removing"}
    assert set(SourceState) - working == {error.code for error in stopping}


def test_a_dropped_source_leaves_the_ledger(catalog: Catalog) -> None:
    add_source(catalog)
    with catalog.write() as writer:
        add_table(writer, "t")
        writer.sources.attach("bank", "t", "t")
        commit_in(writer, [Change("t", 1, 0)])
    with catalog.write() as writer:
        writer.drop_relation("t")
        writer.sources.drop("bank")
    assert catalog.sources() == ()
    assert len(catalog.ledger()) == 1


def test_an_old_catalog_is_brought_up_to_date(url: str) -> None:
    with closing(Database(address.parse(url))) as database:
        with database.write() as connection:
            migrate._upgrade(connection, "0001")
            for csn, source in enumerate(("local", "bank"), 1):
                connection.execute(
                    sa.text("INSERT INTO rollview_ledger VALUES (:csn, :source, 'p', 't', 5, :time)"),
                    {"csn": csn, "source": source, "time": 10 + csn},
                )
        migrate.bring_up_to_date(database)
        with database.read() as connection:
            assert migrate.find_version(connection) == HEAD
            assert connection.execute(sa.text("SELECT effective FROM rollview_ledger ORDER BY csn")).all() == [
                (11,),
                (5,),
            ]
    with Catalog.open(url) as catalog:
        assert (catalog.horizon().csn, catalog.subscribers()) == (0, ())
        add_source(catalog)
        assert [source.known for source in catalog.sources()] == [None]
