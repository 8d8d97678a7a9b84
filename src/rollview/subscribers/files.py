"""Batches as Parquet files in a folder.

Law: a file is named by its interval, and it is there whole or not at all: written beside, synced, renamed into place.
What is begun anew is in a folder of its own; the one whose name sorts last is the newest.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

from rollview.catalog import SubscriberRecord
from rollview.core import durable
from rollview.core.interval import Csn
from rollview.subscribers.batch import ChangeBatch

_CHANGES = re.compile(r"(\d{20})-(\d{20})\.parquet")


class FileSink:
    """``root/TOKEN/rows-CSN.parquet`` and ``root/TOKEN/AFTER-THROUGH.parquet``."""

    def __init__(self, name: str, root: Path) -> None:
        self._name = name
        self._root = root

    def held(self, subscriber: SubscriberRecord) -> Csn | None:
        home = self._root / subscriber.token
        at = subscriber.position
        if subscriber.full and not (home / f"rows-{at:020d}.parquet").exists():
            return None
        ends = dict(_intervals(home))
        while at in ends:
            at = ends[at]
        return at if subscriber.full or at > subscriber.position else None

    def put(self, batch: ChangeBatch) -> None:
        home = self._root / batch.token
        place, fresh = home / f"{batch.name}.parquet", home / f".{batch.name}.new"
        with durable.disk(self._root):
            _make(home)
            pq.write_table(batch.rows.replace_schema_metadata(_about(batch)), fresh, compression="zstd")
            durable.sync([fresh])
            fresh.replace(place)
            durable.sync([home])

    def close(self) -> None:
        """Nothing is held open."""


def _intervals(home: Path) -> list[tuple[Csn, Csn]]:
    names: list[str] = []
    with suppress(FileNotFoundError), durable.disk(home):
        names = [place.name for place in home.iterdir()] if home.is_dir() else []
    found = (_CHANGES.fullmatch(name) for name in names)
    return [(int(one[1]), int(one[2])) for one in found if one is not None]


def _make(home: Path) -> None:
    if not home.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        durable.sync([home.parent, *(above for above in [home.parent.parent] if above != home.parent)])


def _about(batch: ChangeBatch) -> dict[str, str]:
    """Told in the file as well, for who has nothing but the file."""
    told = {"subscriber": batch.subscriber, "view": batch.view, "after": batch.after, "through": batch.through}
    return {f"rollview.{name}": str(value) for name, value in {**told, "full": batch.full}.items()}
