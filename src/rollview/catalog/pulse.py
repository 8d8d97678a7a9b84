"""Signs of life of the steps that this process runs, and of what it reads.

Law: a step that runs is renewed long before it counts as abandoned. A process that cannot renew it, because it is
stopped or the catalog is away, may find it taken over; then it cannot finish it any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta

import sqlalchemy as sa

from rollview import errors
from rollview.catalog import tables as t
from rollview.catalog.database import Database

LIFE = timedelta(minutes=10)
"""A step without a sign of life for so long is abandoned, as far as a process elsewhere can tell."""

_log = logging.getLogger(__name__)

_PATIENCE = 30.0


class Pulse:
    """Safe to share between threads. Steps that end soon, as most do, cost nothing."""

    def __init__(
        self,
        database: Database,
        every: float = LIFE.total_seconds() / 10,
        table: sa.Table = t.step,
        first: Callable[[], object] = bool,
    ) -> None:
        """``table``: whose rows are renewed. ``first``: done before each time."""
        self._database = database
        self._table = table
        self._first = first
        self._every = every
        self._steps: set[int] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def begun(self, steps: Iterable[int]) -> None:
        with self._changed:
            self._steps.update(steps)
            # A thread does not come along into a forked process.
            if self._steps and not (self._thread is not None and self._thread.is_alive()):
                self._thread = threading.Thread(target=self._keep, name="rollview-steps", daemon=True)
                self._thread.start()

    def ended(self, steps: Iterable[int]) -> None:
        with self._changed:
            self._steps.difference_update(steps)
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing of it uses the database any more afterwards."""
        with self._changed:
            self._steps.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE)

    def _keep(self) -> None:
        while self._waited():
            try:
                self._renew()
            except errors.RollviewError as error:
                _log.warning("steps not renewed: %s", error.message)

    def _waited(self) -> bool:
        """False when there is nothing left to renew: then the thread ends."""
        with self._changed:
            self._changed.wait_for(lambda: not self._steps, self._every)
            if not self._steps:
                self._thread = None
            return bool(self._steps)

    def _renew(self) -> None:
        self._first()
        with self._database.write() as connection:
            table = self._table
            goes_on = t.step.c.status == "running" if table is t.step else t.reader.c.ended.is_(None)
            mine = table.c.id.in_(tuple(self._steps)) & goes_on
            connection.execute(table.update().where(mine).values(expires=self._database.now(connection) + LIFE))
