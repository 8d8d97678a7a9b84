"""How Alembic reaches the catalog: on the connection, and in the transaction, that the caller opened."""

from __future__ import annotations

from alembic import context

from rollview.catalog.tables import PREFIX, VERSION_TABLE, metadata


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "table" or (name or "").startswith(PREFIX)


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    include_name=_is_ours,
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
