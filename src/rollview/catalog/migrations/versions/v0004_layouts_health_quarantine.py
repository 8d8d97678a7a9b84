"""The layouts of captured tables by position, how sources fare, what they could not give, and why a view is stopped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("rollview_relation", sa.Column("state", sa.Text))
    op.add_column("rollview_source", sa.Column("health", sa.JSON))
    op.create_table(
        "rollview_layout",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), nullable=False),
        sa.Column("csn", sa.BigInteger, nullable=False),
        sa.Column("position", sa.Text, nullable=False),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_index(op.f("ix_rollview_layout_relation_id"), "rollview_layout", ["relation_id"])
    op.create_table(
        "rollview_quarantine",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("position", sa.Text, nullable=False),
        sa.Column("column", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("row", sa.Text, nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("taken", sa.BigInteger, nullable=False),
    )
    op.create_index(op.f("ix_rollview_quarantine_relation_id"), "rollview_quarantine", ["relation_id"])
