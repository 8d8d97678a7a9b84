"""The csns at which a table of which no rows were kept was copied anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("rollview_relation", sa.Column("replaced", sa.JSON))
