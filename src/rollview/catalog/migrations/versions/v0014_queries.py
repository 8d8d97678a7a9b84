"""Queries of views that are propagated table by table over tables that are asked for, until they are compensated."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("rollview_place", sa.Column("queries", sa.JSON))
