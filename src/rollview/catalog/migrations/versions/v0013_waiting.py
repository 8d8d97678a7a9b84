"""Who waits for a lease, in the order in which they came."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("rollview_lease", sa.Column("waiting", sa.JSON))
