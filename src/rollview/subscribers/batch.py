"""What a subscriber gets at once: whole commits, or all rows at one csn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from rollview.core.interval import Csn, Interval

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
ADDED = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
"""What a row of a change has beside the view's columns, as Spark and Delta spell it."""


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes of a view over ``(after, through]``, or with ``full`` all of its rows at ``through``, which replace all
    that was there before.

    ``rows``: the view's columns, ``_change_type`` (insert, delete, update_preimage, update_postimage),
    ``_commit_version`` (the csn) and ``_commit_timestamp``. Store ``through`` together with the rows, then acknowledge.
    ``key``: columns that are proven to hold a key of the view; None where none is.
    """

    subscriber: str
    view: str
    after: Csn
    through: Csn
    full: bool
    rows: pa.Table
    key: tuple[str, ...] | None
    token: str
    acknowledge: Callable[[ChangeBatch], Csn] = field(repr=False, compare=False)

    @property
    def interval(self) -> Interval:
        return Interval(self.after, self.through)

    @property
    def name(self) -> str:
        """The same whenever the same batch comes again, and no other's: for files and keys."""
        return f"rows-{self.through:020d}" if self.full else f"{self.after:020d}-{self.through:020d}"

    @property
    def identity(self) -> str:
        """Its name among the batches of all subscribers."""
        return f"{self.token}-{self.name}"

    def ack(self) -> Csn:
        """It is stored, and never comes again. Idempotent; returns the subscriber's position."""
        return self.acknowledge(self)
