"""Definitions, ledger, pins, steps and leases, in SQLite or PostgreSQL.

Law: what is not in the catalog does not exist; one catalog transaction makes things that belong together visible.
"""

from rollview.catalog.catalog import Catalog
from rollview.catalog.leases import Lease
from rollview.catalog.process import Process, this_process
from rollview.catalog.values import (
    DEGRADED,
    SCHEMA_CHANGED,
    BadRow,
    CapturedTable,
    Change,
    ChangeCount,
    Definition,
    Layout,
    LeaseInfo,
    LedgerEntry,
    Moment,
    Part,
    Pin,
    Quarantined,
    Relation,
    RelationKind,
    Snapshot,
    Source,
    Step,
    StepKind,
    StepStatus,
)
from rollview.catalog.writer import CatalogWriter

__all__ = [
    "DEGRADED",
    "SCHEMA_CHANGED",
    "BadRow",
    "CapturedTable",
    "Catalog",
    "CatalogWriter",
    "Change",
    "ChangeCount",
    "Definition",
    "Layout",
    "Lease",
    "LeaseInfo",
    "LedgerEntry",
    "Moment",
    "Part",
    "Pin",
    "Process",
    "Quarantined",
    "Relation",
    "RelationKind",
    "Snapshot",
    "Source",
    "Step",
    "StepKind",
    "StepStatus",
    "this_process",
]
