"""What maintenance and recovery answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rollview.core.interval import Csn, Interval
from rollview.results.answer import Result


@dataclass(frozen=True, slots=True)
class MaintenanceDone(Result):
    """One thing that maintenance does, with how many files and bytes fewer there are then.

    ``relation`` is None for folders whose table or view is gone, and for rows of the catalog; ``hold`` and ``wait``
    are what it leaves, and why.
    """

    relation: str | None
    part: str | None
    action: str
    reason: str
    interval: Interval | None
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Maintained(Result):
    """``explained``: it is what would be done, and nothing has changed."""

    csn: Csn
    explained: bool
    actions: tuple[MaintenanceDone, ...]


@dataclass(frozen=True, slots=True)
class CatalogRecovery(Result):
    """How the catalog and the data fit; ``accepted``: it was made so just now.

    ``steps``: how many were begun, by the catalog and by the data. ``unreadable``: tables and views of which the
    catalog names files that are gone. ``unknown_folders``: those of tables and views that the catalog does not know.
    ``accepted_time``: what the clock told when it was said to be right.
    """

    accepted: bool
    fits: bool
    csn: Csn
    time: datetime
    catalog_id: str
    data_id: str | None
    catalog_steps: int
    data_steps: int
    unreadable: tuple[str, ...] = ()
    unknown_folders: tuple[str, ...] = ()
    accepted_time: datetime | None = None
