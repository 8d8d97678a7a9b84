"""Which data the catalog belongs to, signs of life of steps, and what the clocks said at the last commit."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_DAY = 24 * 60 * 60 * 1_000_000


def upgrade() -> None:
    identity = op.create_table(
        "rollview_identity",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("warehouse", sa.Text, nullable=False),
        sa.Column("previous", sa.Text),
        sa.Column("begun", sa.BigInteger, nullable=False),
        sa.CheckConstraint("id = 1", name="one_row"),
    )
    op.bulk_insert(identity, [{"id": 1, "warehouse": uuid4().hex, "previous": None, "begun": 0}])
    op.add_column("rollview_step", sa.Column("tokens", sa.JSON))
    op.add_column("rollview_step", sa.Column("expires", sa.BigInteger))
    # Nobody renews steps that were begun before; a day is longer than any of them takes.
    op.execute(f"UPDATE rollview_step SET expires = started + {_DAY} WHERE status = 'running'")
    for column in (
        sa.Column("boot", sa.Text),
        sa.Column("uptime", sa.BigInteger),
        sa.Column("wall", sa.BigInteger),
        sa.Column("accepted", sa.BigInteger),
    ):
        op.add_column("rollview_clock", column)
