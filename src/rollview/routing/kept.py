"""Answers from views that were asked for before, while nothing has moved since.

Law: how a query is answered, and its rows, follow from its text and one snapshot of the catalog. So what was found and
planned for a text is used again for the same text at an equal snapshot, and for no other. Only what views answer is
kept: such a text asks for no clock and no chance. What is kept may hold the rows by which a view was brought up, so it
is kept only where these are few.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from rollview.catalog import Snapshot
from rollview.core.states import Rewrite
from rollview.costs.reading import WayToRead
from rollview.engine.abilities import is_connect
from rollview.engine.analysed import Analysed
from rollview.publish.workplace import Workplace
from rollview.routing.route import Route

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_KEPT = 32
_MOST_ROWS = 20_000
"""Of a view that was brought up for an answer."""

AnswerKey = tuple[str, Rewrite]


@dataclass(slots=True)
class PlannedRows:
    """Rows as they are fetched; Spark keeps what it planned with them."""

    rows: DataFrame | None = None


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """``snapshot``: at which it was found and read."""

    found: Route
    snapshot: Snapshot
    rows: Analysed
    planned: PlannedRows = field(default_factory=PlannedRows)


_kept: WeakKeyDictionary[Workplace, OrderedDict[AnswerKey, KeptAnswer]] = WeakKeyDictionary()
_lock = Lock()


def find_kept(place: Workplace, key: AnswerKey) -> KeptAnswer | None:
    with _lock:
        return _of(place).get(key)


def forget(place: Workplace, key: AnswerKey) -> None:
    with _lock:
        _of(place).pop(key, None)


def keep(place: Workplace, key: AnswerKey, found: Route, snapshot: Snapshot, rows: DataFrame) -> KeptAnswer | None:
    """None where it cannot be kept: something moved while it was found, no view answers it, it may hold many rows, or
    Spark is elsewhere."""
    holds_many = any(one.way is WayToRead.WITH_RESIDUAL and one.rows > _MOST_ROWS for one in found.readings)
    if found.rewritten is None or holds_many or snapshot != found.snapshot or is_connect(rows.sparkSession):
        return None
    made = KeptAnswer(found, snapshot, Analysed(rows))
    with _lock:
        _of(place)[key] = made
        if len(_of(place)) > _MOST_KEPT:
            _of(place).popitem(last=False)
    return made


def _of(place: Workplace) -> OrderedDict[AnswerKey, KeptAnswer]:
    return _kept.setdefault(place, OrderedDict())
