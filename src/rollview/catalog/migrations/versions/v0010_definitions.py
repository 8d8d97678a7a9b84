"""The definitions that views have had, each from a csn on. Of views that are there, the present one."""

from __future__ import annotations

from collections import defaultdict

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    table = op.create_table(
        "rollview_definition",
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), primary_key=True),
        sa.Column("csn", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("definition", sa.JSON, nullable=False),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.Column("reads", sa.JSON, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("recorded", sa.BigInteger, nullable=False),
        sa.Column("anew", sa.Boolean, nullable=False),
        sa.Column("pending", sa.Boolean, nullable=False),
        sa.Column("stored", sa.JSON(none_as_null=True)),
    )
    rows = _present(op.get_bind())
    if rows:
        op.bulk_insert(table, rows)


def _present(connection: sa.Connection) -> list[dict[str, object]]:
    relation = sa.table(
        "rollview_relation",
        sa.column("id", sa.Integer),
        sa.column("folded", sa.Text),
        sa.column("kind", sa.Text),
        sa.column("columns", sa.JSON),
        sa.column("definition", sa.JSON),
        sa.column("created", sa.BigInteger),
    )
    dependency = sa.table(
        "rollview_dependency", *(sa.column(name, sa.Integer) for name in ("relation_id", "place", "reads_id"))
    )
    clock = sa.table("rollview_clock", sa.column("time", sa.BigInteger))
    reads: dict[int, list[int]] = defaultdict(list)
    for row in connection.execute(sa.select(dependency).order_by(dependency.c.relation_id, dependency.c.place)):
        reads[row.relation_id].append(row.reads_id)
    recorded = connection.execute(sa.select(clock.c.time)).scalar() or 0
    views = sa.select(relation).where(relation.c.kind == "view", relation.c.folded.is_not(None))
    return [
        {
            "relation_id": row.id,
            "csn": row.created,
            "definition": row.definition,
            "columns": row.columns,
            "reads": reads[row.id],
            "why": "created",
            "recorded": recorded,
            "anew": True,
            "pending": False,
            "stored": None,
        }
        for row in connection.execute(views)
    ]
