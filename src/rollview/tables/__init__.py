"""Local tables: DDL, DML statements as signed rows, and transactions over several tables.

Law: what was not committed did not happen, and what was committed happened at one csn in all tables.
"""

from rollview.tables.alter import alter_table, drop_read_table, is_alter
from rollview.tables.commit import Committed
from rollview.tables.ddl import run_ddl, table_to_drop
from rollview.tables.transaction import Transaction, is_dml

__all__ = [
    "Committed",
    "Transaction",
    "alter_table",
    "drop_read_table",
    "is_alter",
    "is_dml",
    "run_ddl",
    "table_to_drop",
]
