"""Closed choices that the catalog stores and users see: the state of a source, the state and the mode of a view.

Law: each is stored, printed and compared as its text; a text that is none of them is refused where it is read.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from rollview.errors import Corrupt

Closed = TypeVar("Closed", bound=StrEnum)


class SourceState(StrEnum):
    """What a source is doing, or the code of the error that stopped it."""

    COPYING = "copying"
    """Its first copy is not finished."""
    ACTIVE = "active"
    RETRYING = "retrying"
    """It did not answer and is tried again."""
    WIDENING = "widening"
    """A larger part of its tables is copied."""
    REMOVING = "removing"
    LOST_POSITION = "lost_position"
    SCHEMA_CHANGED = "schema_changed"
    BAD_VALUE = "bad_value"
    OUTSIDE_FOLDER = "outside_folder"
    NOT_A_FILE = "not_a_file"
    SPOOL_FULL = "spool_full"
    UNREADABLE = "unreadable"


class ViewState(StrEnum):
    OK = "ok"
    STOPPED = "stopped"
    """Its ``problem`` says why."""
    SCHEMA_CHANGED = "schema_changed"
    """Columns that it reads are gone at a source."""
    DEGRADED = "degraded"
    """Rows that it reads are in quarantine."""


class ViewMode(StrEnum):
    """How a view is refreshed: by its deltas, or recomputed whole."""

    INCREMENTAL = "incremental"
    WHOLE = "whole"


class OnSchemaChange(StrEnum):
    """What becomes of a view when columns that it names change."""

    FOLLOW = "follow"
    ASK = "ask"
    STOP = "stop"


class Extent(StrEnum):
    """How rows that stand for others relate to them, in the columns that both have. The better come first."""

    EQUAL = "equal"
    SUBSET = "subset"
    SUPERSET = "superset"
    ANY = "any"

    def allows(self, found: Extent) -> bool:
        return found in (Extent.EQUAL, self) or self is Extent.ANY


class Policy(StrEnum):
    """When a view is propagated and applied (Beyer et al., section 1.1)."""

    SNAPSHOT = "snapshot"
    """Recomputed when somebody asks for it."""
    IMMEDIATE = "immediate"
    """Propagated and applied in the commit of what it reads."""
    IPDA = "ipda"
    """Propagated in the commit, applied later."""
    DPDA = "dpda"
    """Propagated and applied later."""

    @property
    def in_commits(self) -> bool:
        return self in (Policy.IMMEDIATE, Policy.IPDA)


def one_of(choices: type[Closed], text: str, what: str) -> Closed:
    """The choice that a stored text stands for; ``what`` it is said of, for the error."""
    try:
        return choices(text)
    except ValueError:
        raise Corrupt(
            f"The catalog says {text!r} for {what}, and this rollview does not know that.",
            hint="Another program or a newer rollview wrote it. Use that one, or restore the catalog from a backup.",
            found=text,
            known=[choice.value for choice in choices],
        ) from None


class Rewrite(StrEnum):
    """Whether a query may be answered from views that it does not name."""

    AUTO = "auto"
    OFF = "off"
    REQUIRE = "require"
