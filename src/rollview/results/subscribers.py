"""What subscribers and deliveries answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rollview.core.interval import Csn
from rollview.results.answer import Result


class SubscriberState(StrEnum):
    OK = "ok"
    ROWS_FIRST = "rows_first"
    """All rows at its position come next."""
    FAILING = "failing"
    """What it is delivered to refused or did not answer."""
    OUT_OF_REACH = "out_of_reach"
    """It cannot go on from its position: it has to begin anew."""


@dataclass(frozen=True, slots=True)
class SubscriberStatus(Result):
    """``behind``: csns from its position to the view's high-water mark. ``to``: where changes are delivered; None for
    who pulls. ``problem`` says why it fails or is out of reach."""

    name: str
    view: str
    position: Csn
    high_water_mark: Csn
    behind: int
    to: str | None
    state: SubscriberState
    problem: str | None
    added: datetime
    moved: datetime | None


@dataclass(frozen=True, slots=True)
class Acknowledged(Result):
    """``moved``: whether the position is another than before."""

    name: str
    position: Csn
    moved: bool


@dataclass(frozen=True, slots=True)
class SubscriberDelivered(Result):
    """Batches and rows that were delivered, or the problem that kept them."""

    name: str
    position: Csn
    batches: int
    rows: int
    problem: str | None = None
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Delivered(Result):
    subscribers: tuple[SubscriberDelivered, ...]
