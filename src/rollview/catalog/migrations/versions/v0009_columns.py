"""The columns that each relation had, by csn."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_RELATION = sa.table(
    "rollview_relation", *map(sa.column, ("id", "name", "created", "dropped")), sa.column("columns", sa.JSON)
)
_LAYOUT = sa.table(
    "rollview_layout", *map(sa.column, ("id", "relation_id", "csn", "reason")), sa.column("columns", sa.JSON)
)


def upgrade() -> None:
    column = op.create_table(
        "rollview_column",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), nullable=False),
        sa.Column("relation", sa.Text, nullable=False),
        sa.Column("column_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("described", sa.JSON, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("until", sa.BigInteger),
        sa.Column("new_relation", sa.Text),
        sa.Column("new_name", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("ended", sa.Text),
    )
    op.create_index(op.f("ix_rollview_column_relation_id"), "rollview_column", ["relation_id"])
    connection = op.get_bind()
    rows: list[dict[str, Any]] = []
    for relation in connection.execute(sa.select(_RELATION).order_by(_RELATION.c.id)).all():
        layouts = sa.select(_LAYOUT).where(_LAYOUT.c.relation_id == relation.id).order_by(_LAYOUT.c.id)
        rows += _entries(relation, [(one.csn, one.columns, one.reason) for one in connection.execute(layouts)])
    if rows:
        op.bulk_insert(column, rows)


def _entries(relation: sa.Row[Any], layouts: list[tuple[int, list[list[str]], str]]) -> list[dict[str, Any]]:
    """A column that a later layout lacks ended there; one that it has as well began there."""
    entries: list[dict[str, Any]] = []
    for csn, columns, reason in layouts or [(relation.created, relation.columns, "created")]:
        now = dict(columns)
        for one in entries:
            if one["until"] is None and one["name"] not in now:
                one |= {"until": csn, "ended": reason}
        there = {one["name"] for one in entries if one["until"] is None}
        entries += [
            _entry(relation, len(entries) + place, name, now[name], csn)
            for place, name in enumerate(name for name in now if name not in there)
        ]
    if relation.dropped is not None:
        for one in entries:
            one |= {"until": relation.dropped, "ended": "dropped"} if one["until"] is None else {}
    return entries


def _entry(relation: sa.Row[Any], place: int, name: str, type_: str, csn: int) -> dict[str, Any]:
    about = {"relation_id": relation.id, "relation": relation.name, "column_id": place + 1, "position": place}
    described = {"name": name, "type": type_, "described": [name, type_]}
    ended = {"until": None, "new_relation": None, "new_name": None, "reason": None, "ended": None}
    return {**about, **described, "since": csn, **ended}
