"""Answers that somebody may still fetch, and what fetching the last ones took."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "rollview_reader",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("csn", sa.BigInteger, nullable=False),
        sa.Column("ways", sa.JSON, nullable=False),
        sa.Column("relations", sa.JSON, nullable=False),
        sa.Column("expected", sa.Float, nullable=False),
        sa.Column("taken", sa.Float),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("pid_started", sa.Text, nullable=False),
        sa.Column("begun", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.BigInteger),
    )
