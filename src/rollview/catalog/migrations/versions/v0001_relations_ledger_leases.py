"""Relations, their pins, the clock and the ledger, steps, leases."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_clock()
    _create_relations()
    _create_ledger()
    _create_steps()
    _create_leases()


def _create_clock() -> None:
    clock = op.create_table(
        "rollview_clock",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("csn", sa.BigInteger, nullable=False),
        sa.Column("time", sa.BigInteger, nullable=False),
        sa.CheckConstraint("id = 1", name="one_row"),
    )
    op.bulk_insert(clock, [{"id": 1, "csn": 0, "time": time.time_ns() // 1000}])


def _create_relations() -> None:
    op.create_table(
        "rollview_relation",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, unique=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("columns", sa.JSON, nullable=False),
        sa.Column("constraints", sa.JSON, nullable=False),
        sa.Column("definition", sa.JSON),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("created", sa.BigInteger, nullable=False),
        sa.Column("dropped", sa.BigInteger),
        sa.Column("coarse", sa.JSON, nullable=False),
        sa.Column("problem", sa.Text),
    )
    op.create_table(
        "rollview_dependency",
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("reads_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), nullable=False),
    )
    op.create_table(
        "rollview_pin",
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), primary_key=True),
        sa.Column("part", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("after", sa.BigInteger, nullable=False),
        sa.Column("through", sa.BigInteger, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
    )


def _create_ledger() -> None:
    op.create_table(
        "rollview_ledger",
        sa.Column("csn", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("position", sa.Text, nullable=False),
        sa.Column("transaction", sa.Text, nullable=False),
        sa.Column("source_time", sa.BigInteger, nullable=False),
        sa.Column("ledger_time", sa.BigInteger, nullable=False, unique=True),
    )
    op.create_table(
        "rollview_change",
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id"), primary_key=True),
        sa.Column("csn", sa.BigInteger, sa.ForeignKey("rollview_ledger.csn"), primary_key=True),
        sa.Column("inserted", sa.BigInteger, nullable=False),
        sa.Column("deleted", sa.BigInteger, nullable=False),
        sa.Column("updated", sa.BigInteger),
    )
    op.create_index(op.f("ix_rollview_change_csn"), "rollview_change", ["csn"])


def _create_steps() -> None:
    op.create_table(
        "rollview_step",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("relation_id", sa.Integer, sa.ForeignKey("rollview_relation.id")),
        sa.Column("relation", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("after", sa.BigInteger, nullable=False),
        sa.Column("through", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("started", sa.BigInteger, nullable=False),
        sa.Column("finished", sa.BigInteger),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("folders", sa.JSON, nullable=False),
        sa.Column("profile", sa.JSON, nullable=False),
    )
    for column in ("relation_id", "folded", "status"):
        op.create_index(op.f(f"ix_rollview_step_{column}"), "rollview_step", [column])


def _create_leases() -> None:
    op.create_table(
        "rollview_lease",
        sa.Column("thing", sa.Text, primary_key=True),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("pid_started", sa.Text, nullable=False),
        sa.Column("acquired", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False),
    )
