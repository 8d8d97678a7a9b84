"""Sources, their positions, and which tables come from them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "rollview_source",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("position", sa.Text),
        sa.Column("memory", sa.JSON, nullable=False),
        sa.Column("problem", sa.Text),
        sa.Column("read", sa.BigInteger),
    )
    op.create_table(
        "rollview_source_table",
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), primary_key=True),
        sa.Column("source_id", sa.Integer, sa.ForeignKey("rollview_source.id"), nullable=False),
        sa.Column("remote", sa.Text, nullable=False),
    )
    op.create_index(op.f("ix_rollview_source_table_source_id"), "rollview_source_table", ["source_id"])
