"""Folders that a transaction writes to, recorded before the first file is written.

Law: every folder is named in a running step of this process before it exists, so whoever finds this process dead knows
what to discard.
"""

from __future__ import annotations

import logging
from pathlib import Path

from rollview.catalog import Catalog, Part, Relation
from rollview.core.interval import Csn, Interval
from rollview.errors import RollviewError
from rollview.publish.recover import discard, discard_unpinned, let_go
from rollview.publish.step import RunningStep, begin
from rollview.store.folder import DeltaFolder

_log = logging.getLogger(__name__)

_AT_ONCE = 2
"""Most transactions write a table once, and may have to write it again at commit."""


class Places:
    def __init__(self, catalog: Catalog, root: Path, csn: Csn) -> None:
        self._catalog = catalog
        self._root = root
        self._between = Interval(csn, csn + 1)
        self._free: dict[str, list[str]] = {}
        self._taken: dict[str, str] = {}
        self.steps: list[RunningStep] = []

    def reserve(self, relation: Relation) -> str:
        """A new staging folder of the table's delta."""
        free = self._free.setdefault(relation.name, [])
        if not free:
            new = [DeltaFolder.new_folder() for _ in range(_AT_ONCE)]
            paths = [f"{relation.folder}/{Part.DELTA}/{place}" for place in new]
            self.steps.append(begin(self._catalog, None, self._root, relation.name, "commit", self._between, paths))
            free += new
        place = free.pop(0)
        self._taken[place] = f"{relation.folder}/{Part.DELTA}/{place}"
        return place

    def give_up(self) -> None:
        """Nothing was published: take everything away. What cannot be now is found by its step later."""
        try:
            if self._taken:
                discard_unpinned(self._catalog.snapshot(), self._root, self._taken.values())
            with self._catalog.write() as writer:
                for step in self.steps:
                    writer.finish_step(step.id, "undone")
        except RollviewError as error:
            self.let_go()
            _log.warning("transaction not taken away: %s", error.message)

    def let_go(self) -> None:
        """Whether it was published is not known: recovery will see."""
        steps = [step.id for step in self.steps]
        self._catalog.let_go(*steps)
        let_go(self._root, *steps)

    def discard_all_but(self, kept: tuple[str, ...]) -> None:
        for place, path in self._taken.items():
            if place not in kept:
                discard(self._root, path)
