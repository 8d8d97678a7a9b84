"""The meta relation: columns by csn, with ids that outlive names (Chen et al., section 3.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from tests.sizes import times
from tests.unit.catalog.samples import commit_in

from rollview.catalog import Catalog, CatalogWriter, Change, ColumnVersion, NewUnit, RelationKind, UnitPart
from rollview.catalog.schemas import columns_at
from rollview.core.interval import Interval
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import NotFound
from rollview.query import schema_at, schema_log

CUSTOMER = Schema(tuple(Column(name, "string") for name in ("Name", "Add", "Phone")))
FLIGHT = Schema(
    (Column("Name", "string"), Column("Age", "int"), Column("FlightNo", "string"), Column("Dest", "string"))
)


@pytest.fixture
def book(tmp_path: Path) -> Catalog:
    return Catalog.create(tmp_path / "catalog.db")


def told(versions: Sequence[ColumnVersion]) -> set[tuple[object, ...]]:
    return {(v.relation, v.id, v.column.name, v.new_relation, v.new_name, v.since, v.until) for v in versions}


def test_the_updates_of_figure_4_have_the_txn_ids_and_meta_relations_of_figures_5_and_6(book: Catalog) -> None:
    with book.write() as writer:
        for source, relation, schema in (("ds1", "Customer", CUSTOMER), ("ds2", "FlightRes", FLIGHT)):
            writer.sources.add(source, "sqlite", {}, {})
            add_table(writer, relation, schema)
            writer.sources.attach(source, relation, relation)

    def commit(source: str, local_id: int, *changes: Change) -> int:
        with book.write() as writer:
            part = UnitPart(source, str(local_id), f"{source}-{local_id}", datetime.now(UTC))
            return writer.commit_units([NewUnit((part,), changes)]).csn

    def txn_id(csn: int) -> list[int]:
        return [int(one.position or 0) for one in book.positions(csn)]

    first = commit("ds1", 1, Change("Customer", 1, 0))
    second = commit("ds2", 1, Change("FlightRes", 1, 0))
    third = commit("ds1", 2)
    with book.write() as writer:
        renamed = Schema((replace(CUSTOMER.columns[0], name="First-Last", place="Name"), *CUSTOMER.columns[1:]))
        writer.sources.set_layout("Customer", renamed, Constraints(), "2", third, "RENAME Name TO First-Last")
    fourth = commit("ds2", 2, Change("FlightRes", 1, 0))

    assert [txn_id(csn) for csn in (first, second, third, fourth)] == [[1, 0], [1, 1], [2, 1], [2, 2]]
    customer, flight = (
        told([one for one in book.columns() if one.relation == name]) for name in ("Customer", "FlightRes")
    )
    assert customer == {
        ("Customer", 1, "Name", "Customer", "First-Last", 0, third),
        ("Customer", 2, "Add", None, None, 0, None),
        ("Customer", 3, "Phone", None, None, 0, None),
        ("Customer", 1, "First-Last", None, None, third, None),
    }
    assert flight == {("FlightRes", place + 1, c.name, None, None, 0, None) for place, c in enumerate(FLIGHT)}
    log = book.ledger(Interval(0, fourth))
    assert [entry.schema for entry in log] == [(), (), ("Customer: RENAME Name TO First-Last",), ()]


def test_a_name_that_returns_is_another_column_and_a_dropped_table_has_none(book: Catalog) -> None:
    old, other = Column("a", "int"), Column("b", "int")
    with book.write() as writer:
        add_table(writer, "t", Schema((old, other)))
    for schema in (Schema((other,)), Schema((other, Column("a", "int", "a%_3")))):
        with book.write() as writer:
            writer.alter_table("t", "t", schema, Constraints(), commit_in(writer).csn, "altered")
    with book.write() as writer:
        commit_in(writer)
        writer.drop_relation("t")
    assert [(one.id, one.column.name) for one in schema_columns(book, 0)] == [(1, "a"), (2, "b")]
    assert [(one.id, one.column.name) for one in schema_columns(book, 1)] == [(2, "b")]
    assert [(one.id, one.column.name) for one in schema_columns(book, 2)] == [(2, "b"), (3, "a")]
    assert schema_columns(book, 3) == ()
    with pytest.raises(NotFound, match="at csn 3 named 't'") as caught:
        schema_at(book, "t", 3)
    assert caught.value.hint == "It is known from csn 0 on and before 3."


def test_a_renamed_table_is_found_by_the_name_that_it_had(book: Catalog) -> None:
    with book.write() as writer:
        add_table(writer, "t", CUSTOMER)
    with book.write() as writer:
        writer.alter_table("t", "people", CUSTOMER, Constraints(), commit_in(writer).csn, "RENAME TO people")
    assert [one.new_relation for one in schema_log(book, "T").entries] == ["people"] * 3 + [None] * 3
    assert schema_at(book, "T", 0).name == "t"
    assert schema_at(book, "people", 1).columns[0].id == 1
    with pytest.raises(NotFound, match="named 'people'"):
        schema_at(book, "people", 0)
    with pytest.raises(NotFound, match="'nobody'"):
        schema_log(book, "nobody")


@pytest.mark.parametrize("seed", range(times(5, 200)))
def test_what_held_at_a_csn_is_told_by_ids_whatever_changed_since(tmp_path: Path, seed: int) -> None:
    """The oracle is the list of columns after each change, columns named by the places they were born with."""
    random, book = Random(seed), Catalog.create(tmp_path / "catalog.db")
    columns = [Column(f"c{place}", "int") for place in range(3)]
    with book.write() as writer:
        add_table(writer, "t", Schema(tuple(columns)))
    seen = [list(columns)]
    for born in range(12):
        match random.choice(("rename", "add", "drop", "widen")):
            case "rename":
                place = random.randrange(len(columns))
                one = columns[place]
                columns[place] = replace(one, name=f"n{random.randrange(99)}-{born}", place=one.stored)
            case "add":
                columns.append(Column(random.choice(["c0", "c1", "x"]) + f"_{born}", "int", f"born%_{born}"))
            case "drop" if len(columns) > 1:
                columns.remove(random.choice(columns))
            case _:
                place = random.randrange(len(columns))
                columns[place] = replace(columns[place], type="bigint", place=columns[place].stored)
        with book.write() as writer:
            writer.alter_table("t", "t", Schema(tuple(columns)), Constraints(), commit_in(writer).csn, f"change {born}")
        seen.append(list(columns))
    ids: dict[str, int] = {}
    for csn, expected in enumerate(seen):
        found = schema_columns(book, csn)
        assert [(one.column.name, one.column.type, one.column.stored) for one in found] == [
            (one.name, one.type, one.stored) for one in expected
        ]
        for entry in found:
            assert ids.setdefault(entry.column.stored, entry.id) == entry.id
    assert len(set(ids.values())) == len(ids)


def schema_columns(book: Catalog, csn: int) -> tuple[ColumnVersion, ...]:
    return columns_at(book.columns(), csn)


def add_table(writer: CatalogWriter, name: str, schema: Schema) -> None:
    writer.add_relation(name, RelationKind.TABLE, schema, Constraints(), None, (), f"f-{name}")
