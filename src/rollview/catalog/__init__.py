"""Definitions, ledger, pins, steps and leases, in SQLite or PostgreSQL.

Law: what is not in the catalog does not exist; one catalog transaction makes things that belong together visible.
"""

from rollview.catalog.catalog import Catalog
from rollview.catalog.leases import Lease
from rollview.catalog.process import Process, this_process
from rollview.catalog.schemas import ColumnVersion
from rollview.catalog.values import (
    NOT_KEPT,
    NOTHING_MISSED,
    CapturedTable,
    Change,
    ChangeCount,
    Choice,
    Definition,
    HeldPart,
    Identity,
    Layout,
    LeaseInfo,
    LedgerEntry,
    MissedCommits,
    Moment,
    NewUnit,
    Part,
    Pin,
    Quarantined,
    Relation,
    RelationKind,
    Snapshot,
    SourcePosition,
    SourceRecord,
    Step,
    StepKind,
    StepStatus,
    SubscriberRecord,
    UnitPart,
)
from rollview.catalog.writer import CatalogWriter

__all__ = [
    "NOTHING_MISSED",
    "NOT_KEPT",
    "CapturedTable",
    "Catalog",
    "CatalogWriter",
    "Change",
    "ChangeCount",
    "Choice",
    "ColumnVersion",
    "Definition",
    "HeldPart",
    "Identity",
    "Layout",
    "Lease",
    "LeaseInfo",
    "LedgerEntry",
    "MissedCommits",
    "Moment",
    "NewUnit",
    "Part",
    "Pin",
    "Process",
    "Quarantined",
    "Relation",
    "RelationKind",
    "Snapshot",
    "SourcePosition",
    "SourceRecord",
    "Step",
    "StepKind",
    "StepStatus",
    "SubscriberRecord",
    "UnitPart",
    "this_process",
]
