from __future__ import annotations

from rollview.catalog import Definition, Relation, RelationKind
from rollview.catalog.definitions import TABLES
from rollview.core.schema import Constraints, Schema
from rollview.sql.redefine import _in_own_names


def test_tables_that_were_dropped_are_told_by_the_names_in_the_text() -> None:
    definition = Definition("SELECT 1", (), None, {}, {TABLES: {"customer": "_rv_dropped_1", "a": "b"}})
    view = Relation(1, "v", RelationKind.VIEW, Schema(()), Constraints(), definition, (), "f", 0, {}, (), None)
    assert _in_own_names(view, "it reads _rv_dropped_1 and b") == "it reads customer and b"
