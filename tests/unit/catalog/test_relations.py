from __future__ import annotations

import pytest
from tests.unit.catalog.samples import HOSTILE_NAMES, SCHEMA, add_table, add_view, commit, definition

from rollview import errors
from rollview.catalog import Catalog, Part, Pin, RelationKind
from rollview.core.interval import Interval
from rollview.core.schema import Column, Constraints, ForeignKey, Schema


def test_a_table_comes_back_as_it_was_added(catalog: Catalog) -> None:
    constraints = Constraints(("id",), (("amount", "id"),), ("id",), (ForeignKey(("amount",), "t", ("id",)),))
    commit(catalog)
    with catalog.write() as writer:
        relation_id = add_table(writer, "Orders", constraints)
    relation = catalog.snapshot().get("Orders")
    assert (relation.id, relation.name, relation.kind) == (relation_id, "Orders", RelationKind.TABLE)
    assert (relation.schema, relation.constraints) == (SCHEMA, constraints)
    assert (relation.definition, relation.depends_on, relation.folder) == (None, (), "f-Orders")
    assert (relation.created, relation.pins, relation.coarse, relation.problem) == (1, {}, (), None)


def test_a_view_comes_back_with_its_definition(catalog: Catalog) -> None:
    given = definition("SELECT 'ü\n' AS x", types=["bigint", None], nested={"a": [1, 2.5, True]})
    with catalog.write() as writer:
        add_table(writer, "orders")
        writer.add_relation("v", RelationKind.VIEW, SCHEMA, Constraints(), given, ("ORDERS",), "f")
    view = catalog.snapshot().get("v")
    assert view.definition == given
    assert view.depends_on == ("orders",)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_round_trip(catalog: Catalog, name: str) -> None:
    reader = f"v {name}"[:255]
    with catalog.write() as writer:
        add_table(writer, name)
        add_view(writer, reader, name)
        writer.pin(name, Pin(Part.STATE, 3, 0, 0, 7))
        writer.begin_step(name, "fold", Interval(0, 0), "me", (name,))
    snapshot = catalog.snapshot()
    assert snapshot.get(name).name == name
    assert snapshot.get(reader).depends_on == (name,)
    assert snapshot.get(name).pins[Part.STATE].version == 3
    assert catalog.steps(name)[0].folders == (name,)
    with catalog.lease(f"relation:{name}") as lease, catalog.write(lease) as writer:
        writer.drop_relation(reader)


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "x" * 256, "_rv_x", "_count", "\ud800"])
def test_impossible_names_are_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(errors.InvalidName), catalog.write() as writer:
        add_table(writer, name)


def test_names_are_found_without_regard_to_case(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "Größe")
    assert catalog.snapshot().get("GRÖßE").name == "Größe"
    with pytest.raises(errors.AlreadyExists, match="There is a table 'Größe' already"), catalog.write() as writer:
        add_view(writer, "gröSSe".replace("SS", "ß"))


def test_an_unknown_name_brings_close_ones_as_a_hint(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "Orders")
    with pytest.raises(errors.NotFound, match="no table or view 'ordesr'") as caught:
        catalog.snapshot().get("ordesr")
    assert caught.value.hint == "Did you mean 'Orders'?"
    assert catalog.snapshot().find("ordesr") is None


def test_views_come_in_dependency_order(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        add_view(writer, "c", "t")
        add_view(writer, "b", "c", "t")
        add_view(writer, "a", "b", "c")
        writer.replace_definition("c", SCHEMA, definition(), ("t",), "f-c")
    snapshot = catalog.snapshot()
    assert [view.name for view in snapshot.views()] == ["c", "b", "a"]
    assert [table.name for table in snapshot.tables()] == ["t"]
    assert [view.name for view in snapshot.readers("C")] == ["b", "a"]


def test_a_view_may_not_read_itself_through_others(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        add_view(writer, "a", "t")
        add_view(writer, "b", "a")
        add_view(writer, "c", "b")
    with pytest.raises(errors.UsageError, match="View 'a' would read itself: a → C → b → a"), catalog.write() as writer:
        writer.replace_definition("A", SCHEMA, definition(), ("t", "C"), "f2")
    assert catalog.snapshot().get("a").depends_on == ("t",)


def test_a_new_view_may_not_read_itself(catalog: Catalog) -> None:
    with pytest.raises(errors.UsageError, match="View 'V' would read itself: V → v"), catalog.write() as writer:
        add_view(writer, "V", "v")


def test_a_view_may_not_read_what_is_not_there(catalog: Catalog) -> None:
    with pytest.raises(errors.NotFound), catalog.write() as writer:
        add_view(writer, "v", "t")
    assert catalog.snapshot().relations == {}


def test_what_is_read_cannot_be_dropped(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        add_view(writer, "v", "t")
        add_table(writer, "u", Constraints(foreign_keys=(ForeignKey(("id",), "T", ("id",)),)))
    with pytest.raises(errors.InUse) as caught, catalog.write() as writer:
        writer.drop_relation("t")
    assert caught.value.facts["by"] == ("v", "u")


def test_a_table_that_refers_to_itself_can_be_dropped(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t", Constraints(foreign_keys=(ForeignKey(("id",), "t", ("id",)),)))
        writer.drop_relation("t")
    assert catalog.snapshot().relations == {}


def test_a_dropped_name_is_free_for_another(catalog: Catalog) -> None:
    with catalog.write() as writer:
        first = add_table(writer, "t")
        writer.pin("t", Pin(Part.STATE, 1, 0, 0, 0))
        writer.drop_relation("T")
        second = add_view(writer, "T")
    relation = catalog.snapshot().get("t")
    assert relation.id == second != first
    assert (relation.name, relation.pins) == ("T", {})


def test_a_pin_is_replaced_by_the_next(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        writer.pin("t", Pin(Part.STATE, 1, 0, 0, 10))
        writer.pin("t", Pin(Part.DELTA, 0, 0, 2, 5))
    with catalog.write() as writer:
        writer.pin("T", Pin(Part.DELTA, 1, 0, 3, 8))
    pins = catalog.snapshot().get("t").pins
    assert pins == {Part.STATE: Pin(Part.STATE, 1, 0, 0, 10), Part.DELTA: Pin(Part.DELTA, 1, 0, 3, 8)}


def test_pinning_an_unknown_relation_is_refused(catalog: Catalog) -> None:
    with pytest.raises(errors.NotFound), catalog.write() as writer:
        writer.pin("t", Pin(Part.STATE, 1, 0, 0, 10))


def test_a_new_definition_in_a_new_folder_starts_anew(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        view_id = add_view(writer, "v", "t")
        writer.pin("v", Pin(Part.EXTENT, 1, 0, 0, 10))
        writer.add_coarse("v", Interval(0, 2))
        writer.set_problem("v", "broken")
    commit(catalog)
    schema, changed = Schema((Column("x", "int"),)), definition("SELECT 2")
    with catalog.write() as writer:
        writer.replace_definition("V", schema, changed, (), "f2", Constraints(("x",)))
    view = catalog.snapshot().get("v")
    assert (view.id, view.schema, view.definition, view.folder) == (view_id, schema, changed, "f2")
    assert (view.constraints.primary_key, view.depends_on, view.created) == (("x",), (), 1)
    assert (view.pins, view.coarse, view.problem) == ({}, (), None)


def test_a_new_definition_in_the_same_folder_keeps_the_rows(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_view(writer, "v")
        writer.pin("v", Pin(Part.EXTENT, 1, 0, 0, 10))
        writer.replace_definition("v", SCHEMA, definition("SELECT 2"), (), "f-v")
    assert catalog.snapshot().get("v").pins[Part.EXTENT].rows == 10


def test_coarse_intervals_are_merged(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_view(writer, "v")
        for interval in (Interval(5, 9), Interval(1, 3), Interval(2, 4), Interval(9, 11)):
            writer.add_coarse("v", interval)
    assert catalog.snapshot().get("v").coarse == (Interval(1, 4), Interval(5, 9), Interval(9, 11))


@pytest.mark.parametrize("text", ["plain", "NUL \0 inside", "half \ud800 pair", "line\nline"])
def test_a_problem_is_kept_whatever_its_text(catalog: Catalog, text: str) -> None:
    with catalog.write() as writer:
        add_view(writer, "v")
        writer.set_problem("v", text)
    kept = catalog.snapshot().get("v").problem
    assert kept == text.replace("\0", "\\x00").replace("\ud800", "\\ud800")
    with catalog.write() as writer:
        writer.set_problem("v", None)
    assert catalog.snapshot().get("v").problem is None


def test_a_failed_transaction_leaves_nothing(catalog: Catalog) -> None:
    def add_and_fail() -> None:
        with catalog.write() as writer:
            add_table(writer, "t")
            assert writer.snapshot().get("t").name == "t"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        add_and_fail()
    assert catalog.snapshot().relations == {}


def test_what_is_not_json_is_refused_in_our_words(catalog: Catalog) -> None:
    with pytest.raises(errors.UsageError, match="cannot store"), catalog.write() as writer:
        writer.add_relation("v", RelationKind.VIEW, SCHEMA, Constraints(), definition(x=object()), (), "f")
    with pytest.raises(errors.UsageError, match="cannot store"), catalog.write() as writer:
        writer.add_relation("v", RelationKind.VIEW, SCHEMA, Constraints(), definition(x=float("nan")), (), "f")


def test_coarse_intervals_that_are_out_of_reach_are_forgotten(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_view(writer, "v")
        for interval in (Interval(0, 4), Interval(4, 9), Interval(11, 13)):
            writer.add_coarse("v", interval)
        writer.forget_coarse("v", 9)
    assert catalog.snapshot().get("v").coarse == (Interval(11, 13),)


def test_walks_find_each_relation_once_at_any_depth(catalog: Catalog) -> None:
    """Many ways lead from the last view to the table; nobody goes them all."""
    with catalog.write() as writer:
        add_table(writer, "t")
        below: tuple[str, ...] = ("t",)
        for floor in range(40):
            made = tuple(f"v{floor}_{side}" for side in range(2))
            for name in made:
                add_view(writer, name, *below)
            below = made
        snapshot = writer.snapshot()
    assert len(snapshot.below("v39_0")) == 2 * 39 + 1
    assert len(snapshot.above("t")) == 2 * 40
    assert snapshot.tables_below(snapshot.get("v39_1")) == {"t"}
    assert {view.name for view in snapshot.above("v38_1")} == {"v39_0", "v39_1"}


def test_a_view_remembers_how_far_each_table_is_and_since_when(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "orders")
        add_table(writer, "lines")
        add_view(writer, "v", "orders", "lines")
    assert catalog.snapshot().get("v").places == {}
    with catalog.write() as writer:
        writer.set_places("v", {"orders": 7})
    first = catalog.snapshot().get("v").places
    assert {table: place.csn for table, place in first.items()} == {"orders": 7}
    with catalog.write() as writer:
        writer.set_places("v", {"orders": 7, "lines": 9})
    second = catalog.snapshot().get("v").places
    assert {table: place.csn for table, place in second.items()} == {"orders": 7, "lines": 9}
    assert second["orders"] == first["orders"]
    with catalog.write() as writer:
        writer.drop_relation("v")
        add_view(writer, "v", "orders", "lines")
    assert catalog.snapshot().get("v").places == {}
