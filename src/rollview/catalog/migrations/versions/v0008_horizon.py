"""The csn behind which the ledger has been forgotten, and when the last commit up to it counts as committed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    horizon = op.create_table(
        "rollview_horizon",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("csn", sa.BigInteger, nullable=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.CheckConstraint("id = 1", name="one_row"),
    )
    op.bulk_insert(horizon, [{"id": 1, "csn": 0, "time": 0}])
