"""Where rows of a source are that do not fit into memory, while it is captured.

Law: below the warehouse's data, in a folder that a step records before it is made and that goes with the step. So a
process that dies leaves nothing: whoever recovers its steps takes the folder away.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from rollview.catalog import Catalog, SourceRecord
from rollview.core.interval import Interval
from rollview.errors import RollviewError
from rollview.publish.recover import discard, let_go
from rollview.publish.step import RunningStep, begin
from rollview.sources.settings import SourceSettings
from rollview.sources.space import Space


@contextmanager
def spool_space(catalog: Catalog, root: Path, record: SourceRecord) -> Iterator[Space]:
    """The room that the source may take while the block runs; nothing is made as long as it needs none."""
    folder = _Folder(catalog, root, record.name)
    try:
        yield Space(record.name, folder.make, SourceSettings.from_json(record.settings).spool_limit)
    finally:
        folder.take_away()


class _Folder:
    def __init__(self, catalog: Catalog, root: Path, source: str) -> None:
        self._catalog = catalog
        self._root = root
        self._source = source
        self._step: RunningStep | None = None
        self._name = f"x-{uuid4().hex}"

    def make(self) -> Path:
        at = self._catalog.snapshot().moment.csn
        folders = (self._name,)
        self._step = begin(self._catalog, None, self._root, self._source, "spool", Interval(at, at), folders)
        return self._root / self._name

    def take_away(self) -> None:
        if self._step is None:
            return
        discard(self._root, self._name)
        try:
            with self._step.publish(None):
                """Nothing is to be seen of it."""
        # What was captured matters more; the next recovery ends the step.
        except RollviewError:
            let_go(self._root, self._step.id)
