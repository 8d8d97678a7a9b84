"""Tables as views knew them, and as they are in files."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rollview.catalog import Definition, DefinitionVersion, Layout, Relation, RelationKind
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import OutOfReach
from rollview.relations.cadence import PROPAGATE
from rollview.relations.former import TABLES, _check_there, as_in_files, seen_schema
from rollview.relations.rolling import turns_of

ID, KIND = Column("id", "int"), Column("kind", "string")


def table(*layouts: tuple[int, Schema], source: str | None = None) -> Relation:
    told = tuple(Layout(csn, "", schema, "") for csn, schema in layouts)
    about = (1, "t", RelationKind.TABLE, layouts[-1][1], Constraints(), None, (), "t-1", 0, {}, (), None)
    return Relation(*about, source=source, layouts=told)


def view(until: int | None) -> Relation:
    definition = Definition("SELECT id, kind FROM t", (), None, {}, {})
    now = datetime.now(UTC)
    schema = Schema((ID, KIND))
    versions = tuple(DefinitionVersion(csn, definition, schema, ("t",), "", now) for csn in (1, 9))
    about = (2, "v", RelationKind.VIEW, schema, Constraints(), definition, ("t",), "v-1", 1, {}, (), None)
    return Relation(*about, versions=versions, until=until)


def test_a_table_is_read_in_the_widest_types_that_its_files_may_have() -> None:
    wide = replace(ID, type="bigint", late=True)
    altered = table((0, Schema((ID, KIND))), (5, Schema((wide, replace(KIND, name="sort", place="kind")))))
    then = replace(altered, schema=altered.schema_at(3))
    assert as_in_files(then).schema == Schema((wide, replace(KIND, place="kind")))
    assert as_in_files(altered) is altered


def test_an_earlier_definition_knows_columns_that_a_captured_table_has_lost() -> None:
    lost = table((0, Schema((ID, KIND))), (12, Schema((ID,))), source="shop")
    assert seen_schema(view(until=9), lost).names == ("id", "kind")
    assert seen_schema(view(until=None), lost).names == ("id",)
    with pytest.raises(OutOfReach, match="lost its column 'kind'"):
        _check_there(view(until=9), lost, Schema((ID, KIND)))
    _check_there(view(until=9), lost, Schema((ID,)))


def test_a_table_that_is_called_otherwise_keeps_its_turn() -> None:
    properties = {PROPAGATE: "Orders every 5 seconds, customers every 1 hour"}
    definition = Definition("SELECT 1", (), None, properties, {TABLES: {"orders": "sales"}})
    turns = turns_of(replace(view(None), definition=definition))
    assert turns is not None
    assert set(turns) == {"sales", "customers"}
