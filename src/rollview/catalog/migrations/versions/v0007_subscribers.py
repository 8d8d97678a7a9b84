"""Subscribers to the changes of views, and how far each has them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "rollview_subscriber",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False, unique=True),
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), nullable=False, index=True),
        sa.Column("warehouse", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("full", sa.Boolean, nullable=False),
        sa.Column("offered", sa.BigInteger),
        sa.Column("sink", sa.Text),
        sa.Column("added", sa.BigInteger, nullable=False),
        sa.Column("moved", sa.BigInteger),
        sa.Column("problem", sa.Text),
    )
