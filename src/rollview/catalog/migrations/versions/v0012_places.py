"""How far each table's changes are in the delta of a view that is propagated table by table."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "rollview_place",
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), primary_key=True),
        sa.Column("reads_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), primary_key=True),
        sa.Column("csn", sa.BigInteger, nullable=False),
        sa.Column("moved", sa.BigInteger, nullable=False),
    )
