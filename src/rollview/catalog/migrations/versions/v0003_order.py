"""When units of work count as committed, parts of global transactions, and those that are held."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("rollview_source", sa.Column("known", sa.BigInteger))
    op.add_column("rollview_source", sa.Column("latest", sa.BigInteger))
    op.add_column("rollview_ledger", sa.Column("effective", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("rollview_ledger", sa.Column("global_id", sa.Text))
    op.create_index(op.f("ix_rollview_ledger_effective"), "rollview_ledger", ["effective"])
    op.execute(
        "UPDATE rollview_ledger SET effective = CASE WHEN source = 'local' THEN ledger_time ELSE source_time END"
    )
    op.create_table(
        "rollview_part",
        sa.Column("csn", sa.BigInteger, sa.ForeignKey("rollview_ledger.csn"), primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("position", sa.Text, nullable=False),
        sa.Column("transaction", sa.Text, nullable=False),
        sa.Column("source_time", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "rollview_held",
        sa.Column("source_id", sa.Integer, sa.ForeignKey("rollview_source.id"), primary_key=True),
        sa.Column("global_id", sa.Text, nullable=False),
        sa.Column("position", sa.Text, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("missing", sa.JSON, nullable=False),
    )
    op.create_table(
        "rollview_decision",
        sa.Column("global_id", sa.Text, primary_key=True),
        sa.Column("choice", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("made", sa.BigInteger, nullable=False),
    )
