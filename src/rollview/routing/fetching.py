"""Rows of an answer, fetched, and what became of it meanwhile.

Law: files that an answer reads stay while it may be fetched: its row in the catalog keeps maintenance off them. If they
went all the same, and the catalog does not name them any more, the query is answered once more, at a new csn; an answer
is given whole, at one csn, or not at all.
"""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from rollview.catalog import Catalog, Snapshot
from rollview.engine.analysed import run_in
from rollview.engine.failures import as_users_error, in_full, is_sparks
from rollview.engine.session import for_small_work
from rollview.errors import InDoubt, RollviewError
from rollview.propagate.plan import SMALL_DELTA_ROWS
from rollview.publish.workplace import Workplace
from rollview.results import Answer, FetchedAnswer
from rollview.routing.kept import PlannedRows
from rollview.routing.route import Route

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger(__name__)


def hold(catalog: Catalog, found: Route) -> int | None:
    """Keeps maintenance off all that the route reads from now on; the row's number, or None where the catalog takes no
    row now: the grace period still counts."""
    named = {one.relation for one in found.readings}
    below = {lower.name for name in named for lower in found.snapshot.below(name)}
    ways = {one.relation: one.way.value for one in found.readings}
    try:
        return catalog.readers.begin(named | below, found.csn, ways, found.seconds)
    except RollviewError as error:
        _log.warning("an answer is read without a row in the catalog: %s", error.message)
        return None


def leave(catalog: Catalog, number: int | None) -> None:
    if number is not None:
        catalog.readers.leave(number, os.getpid())


def release_with(rows: DataFrame, catalog: Catalog, number: int | None) -> None:
    """The row ends when nobody has the rows any more."""
    if number is not None:
        weakref.finalize(rows, catalog.readers.leave, number, os.getpid()).atexit = False


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """``read``: the snapshot that the rows are read by; ``number``: of the row that keeps their files; ``again``:
    answers the query anew, None where that was done before; ``planned``: where rows that may be asked for again are
    kept as they were planned."""

    place: Workplace
    found: Route
    read: Snapshot
    number: int | None
    again: Callable[[], Answer] | None
    planned: PlannedRows | None = None

    def of(self, answer: Answer) -> Answer:
        """The answer with the way to fetch it."""
        return replace(answer, fetch=partial(self._fetch, answer))

    def _fetch(self, answer: Answer, limit: int | None = None) -> FetchedAnswer:
        try:
            return self._fetched(answer, limit)
        except RollviewError as error:
            if not (_is_of_files(error) and _moved(self.place.snapshot(), self.read, self.found)):
                raise
            if self.again is None:
                raise InDoubt(self.found.csn) from error
        second = self.again()
        assert second.fetch is not None
        return second.fetch(limit)

    def _fetched(self, answer: Answer, limit: int | None) -> FetchedAnswer:
        place, found, began = self.place, self.found, time.perf_counter()
        table = _table(self._wanted(answer, limit))
        seconds = time.perf_counter() - began
        if self.number is not None:
            place.catalog.readers.end(self.number, seconds)
        # Columns and names that were altered are no changes of rows; the answer says itself how long it was valid.
        valid = answer.valid.through >= found.newest and is_still_valid(place, found)
        return FetchedAnswer(answer, table, valid, seconds)

    def _wanted(self, answer: Answer, limit: int | None) -> DataFrame:
        assert answer.rows is not None
        small = self.found.rows <= SMALL_DELTA_ROWS
        if self.planned is None or limit is not None:
            wanted = answer.rows if limit is None else answer.rows.limit(limit)
            return _with_few_rows(wanted) if small else wanted
        if self.planned.rows is None:
            # A frame of its own: the answer's rows go when nobody has them any more.
            self.planned.rows = _with_few_rows(answer.rows) if small else run_in(answer.rows.sparkSession, answer.rows)
        return self.planned.rows


def _is_of_files(error: RollviewError) -> bool:
    cause = error.__cause__
    return cause is not None and any(word in in_full(cause) for word in ("FILE_NOT_EXIST", "FileNotFound"))


def _table(wanted: DataFrame) -> pa.Table:
    try:
        return wanted.toArrow()
    except Exception as error:
        if not is_sparks(error):
            raise
        raise as_users_error(error) from error


def _with_few_rows(rows: DataFrame) -> DataFrame:
    """Planned for few rows. Whoever goes on with the rows himself may join them with many, so that is done here."""
    session = for_small_work(rows.sparkSession)
    return rows if session is rows.sparkSession else run_in(session, rows)


def is_still_valid(place: Workplace, found: Route) -> bool:
    """Whether the tables below say now what they said at the answer's csn."""
    snapshot = place.snapshot()
    there = [snapshot.find(name) for name in found.read_tables]
    return None not in there and not place.catalog.next_changes(found.read_tables, found.csn)


def _moved(now: Snapshot, read: Snapshot, found: Route) -> bool:
    """Whether a relation that was read is pinned otherwise than it was read."""
    names = {one.relation for one in found.readings}
    names |= {lower.name for name in names for lower in read.below(name)}
    now = now.at(found.csn)
    return any((relation := now.find(name)) is None or relation.pins != read.get(name).pins for name in names)
