"""Text that a source takes for equal and rollview does not.

Law: text is compared byte by byte here. Rows of a source are known by all their values, so none is lost where it takes
'a', 'A' and 'a ' for one key; but a view that joins or groups by such a column sees three.
"""

from __future__ import annotations

from typing import Any

from rollview.sources.protocol import Finding

_LOOSE = """
    SELECT column_name, collation_name FROM information_schema.columns
    WHERE table_schema = %s AND table_name = %s AND collation_name IS NOT NULL
      AND collation_name NOT LIKE '%%\\_bin' AND collation_name NOT LIKE '%%\\_nopad\\_bin' AND column_key <> ''
    ORDER BY ordinal_position"""


def collation_findings(connection: Any, database: str, remote: str) -> list[Finding]:
    """Key columns in which different texts are equal."""
    with connection.cursor() as cursor:
        cursor.execute(_LOOSE, (database, remote))
        return [_warning(remote, *row) for row in cursor.fetchall()]


def _warning(remote: str, column: str, collation: str) -> Finding:
    what = f"key column '{column}' of table '{remote}' has the collation {collation}, in which 'a' and 'A' may be equal"
    return Finding(f"{what}; here text is compared byte by byte", blocks=False)
