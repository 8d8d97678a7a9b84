"""Rows that a foreign key changes.

Law: what the engine changes by a foreign key's own action is in the log only if the server says that it acts itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollview.core.names import quoted
from rollview.sources.protocol import Finding

_ACTING = """
    SELECT constraint_name, delete_rule, update_rule FROM information_schema.referential_constraints
    WHERE constraint_schema = %s AND table_name = %s ORDER BY constraint_name"""
_HARMLESS = ("RESTRICT", "NO ACTION")


def cascade_findings(connection: Any, facts: Mapping[str, str], database: str, remote: str) -> list[Finding]:
    if facts.get("innodb_native_foreign_keys") == "OFF":
        return []
    with connection.cursor() as cursor:
        cursor.execute(_ACTING, (database, remote))
        return [finding for row in cursor.fetchall() for finding in _acting(remote, *row)]


def _acting(remote: str, name: str, on_delete: str, on_update: str) -> list[Finding]:
    actions = {"ON DELETE": on_delete, "ON UPDATE": on_update}
    told = " and ".join(f"{when} {rule}" for when, rule in actions.items() if rule not in _HARMLESS)
    if not told:
        return []
    what = f"foreign key '{name}' of table '{remote}' changes rows by itself ({told}), which is not in the log"
    return [Finding(what, f"ALTER TABLE {quoted(remote)} DROP FOREIGN KEY {quoted(name)};")]
