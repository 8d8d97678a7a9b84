"""Where requests work: the data folder, the catalog and the Spark session of one warehouse.

Law: Spark starts when a request first needs it. Before the first change, what dead processes left is taken away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from rollview import engine, publish, relations
from rollview.catalog import Catalog, Snapshot
from rollview.core import references
from rollview.core.order import Order
from rollview.core.substitutes import Substitute
from rollview.relations.policies import Policies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rollview.publish.following import Following
    from rollview.relations.reader import Reader

RECOVER_SECONDS = 60.0
"""How often a process that goes on looks for what others left."""


class Workplace:
    """``given`` is the user's own session; without it one is started with ``conf``. ``order``: that of commits of
    several sources. ``policies``: of views that name none. ``follow_by``: who brings views along with commits.
    ``parallel``: how many threads refresh views. ``substitutes``: tables that may stand for others."""

    def __init__(
        self,
        data: Path,
        catalog: Catalog,
        given: SparkSession | None,
        conf: Mapping[str, str],
        order: Order,
        policies: Policies,
        follow_by: Callable[[Workplace], Following],
        parallel: int = 1,
        substitutes: Sequence[Substitute] = (),
    ) -> None:
        self.data = data
        self.catalog = catalog
        self.order = order
        self.policies = policies
        self.parallel = parallel
        self.substitutes = tuple(substitutes)
        self._follow_by = follow_by
        self.given = given
        self._conf = conf
        self._session: SparkSession | None = None
        self._starting = Lock()
        self._recovered: float | None = None

    @property
    def spark(self) -> SparkSession:
        with self._starting:
            if self._session is None:
                for source in self.catalog.sources():
                    references.note_variables(source.settings["address"], *source.settings["options"].values())
                references.note_variables(*(one.sink for one in self.catalog.subscribers() if one.sink is not None))
                start = engine.session
                self._session = start.adopt(self.given) if self.given is not None else start.start(self._conf)
            return self._session

    def start_spark_ahead(self, is_needed: Callable[[], bool]) -> None:
        """In a thread of its own, while other work goes on. What fails is tried again by whoever needs it, and told
        there."""

        def begin() -> None:
            with suppress(Exception):
                if is_needed():
                    self.spark  # noqa: B018

        Thread(target=begin, name="rollview-spark", daemon=True).start()

    @property
    def following(self) -> Following:
        """Made when a commit asks: it knows all that is needed to propagate."""
        return self._follow_by(self)

    def snapshot(self) -> Snapshot:
        return self.catalog.snapshot()

    def reader(self) -> Reader:
        return relations.Reader(self.spark, self.data, self.snapshot())

    def check(self) -> None:
        """Refuse a catalog that does not belong to the data."""
        publish.check_belongs(self.catalog, self.data)

    def recover(self) -> None:
        """Before the first change, from time to time, and after one that ended badly: take away what was begun and will
        not go on."""
        now = time.monotonic()
        if self._recovered is None or now - self._recovered > RECOVER_SECONDS or publish.has_let_go(self.data):
            publish.discard_abandoned(self.catalog, self.data)
            self._recovered = now
