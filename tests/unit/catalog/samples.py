"""Small things to put into a catalog."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rollview.catalog import Catalog, CatalogWriter, Change, Definition, Moment, RelationKind
from rollview.core.interval import Csn
from rollview.core.schema import Column, Constraints, Schema

SCHEMA = Schema((Column("id", "bigint"), Column("amount", "decimal(12,2)")))
THEN = datetime(2026, 5, 17, 12, 30, 15, 123456, tzinfo=UTC)

HOSTILE_NAMES = (
    "it's",
    'double "quotes"',
    "`ticks`",
    "semi; DROP TABLE rollview_relation; --",
    "two\nlines\r\n\tand a tab",
    "../../etc/passwd",
    "select",
    "ünïcödé 表 🦆",
    "percent %s %(name)s {0} :name",
    "back\\slash",
    " leading and trailing ",
    "a.b.c",
    "x" * 255,
)


def definition(query: str = "SELECT 1", **facts: object) -> Definition:
    return Definition(query, ("id", "amount"), "what it is for", {"key": "value"}, facts)


def add_table(writer: CatalogWriter, name: str, constraints: Constraints | None = None) -> int:
    return writer.add_relation(name, RelationKind.TABLE, SCHEMA, constraints or Constraints(), None, (), f"f-{name}")


def add_view(writer: CatalogWriter, name: str, *reads: str) -> int:
    return writer.add_relation(name, RelationKind.VIEW, SCHEMA, Constraints(), definition(), reads, f"f-{name}")


def commit(catalog: Catalog, changes: Iterable[Change] = (), expect: Csn | None = None) -> Moment:
    with catalog.write() as writer:
        return commit_in(writer, changes, expect)


def commit_in(writer: CatalogWriter, changes: Iterable[Change] = (), expect: Csn | None = None) -> Moment:
    return writer.commit_unit(
        source="local", position="p", transaction="t", source_time=THEN, changes=changes, expect=expect
    )
