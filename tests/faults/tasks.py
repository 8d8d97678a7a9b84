"""What workers do. Every task takes a warehouse first, and runs in a process of its own."""

from __future__ import annotations

import time
from datetime import timedelta
from multiprocessing.connection import Connection
from typing import Any

from tests.faults.shop import VIEWS, published, statements

from rollview.capture import run as capturing
from rollview.errors import Retryable, RollviewError
from rollview.maintain import plan as planning
from rollview.maintain import trim as trimming
from rollview.publish import bulk
from rollview.publish import fold as folding
from rollview.warehouse import Warehouse


def commit(warehouse: Warehouse, n: int) -> None:
    warehouse.sql(*statements(n))


def commit_and_fold(warehouse: Warehouse, n: int) -> None:
    folding.LEAST, folding.SHARE = 0, 1_000_000
    warehouse.sql(*statements(n))


def commit_and_keep_state(warehouse: Warehouse, n: int) -> None:
    """An update of any rows is taken for one of most of them."""
    bulk.LEAST, bulk.SHARE = 1, 1_000_000
    warehouse.sql(*statements(n))


def refresh(warehouse: Warehouse) -> int:
    return warehouse.refresh().csn


def refresh_one(warehouse: Warehouse, name: str) -> int:
    return warehouse.refresh([name]).csn


def roll(warehouse: Warehouse, names: tuple[str, ...], csn: int) -> None:
    warehouse.roll(names, csn)


def sql(warehouse: Warehouse, *texts: str) -> None:
    warehouse.sql(*texts)


def capture(warehouse: Warehouse, name: str) -> None:
    """One source; what went wrong is raised."""
    done = capturing.capture(warehouse.catalog, warehouse.root / "data", [name], warehouse._place.order)[name]
    if isinstance(done, RollviewError):
        raise done


def capture_all(warehouse: Warehouse) -> None:
    """As a user does, with the views that follow."""
    warehouse.capture()


def decide(warehouse: Warehouse, view: str) -> None:
    """For the first that is proposed."""
    warehouse.decide_view(view, 1)


def commit_several(warehouse: Warehouse, numbers: tuple[int, ...], ears: Connection) -> list[int]:
    """One after another; returns their csns."""
    found = []
    for n in numbers:
        (*_, last) = warehouse.sql(*statements(n))
        found.append(last.csn)
    return found


def refresh_until_told(warehouse: Warehouse, ears: Connection) -> tuple[int, int]:
    """How often it refreshed, and how often it was told to wait."""
    done = refused = 0
    while not ears.poll():
        try:
            warehouse.refresh()
            done += 1
        except Retryable:
            refused += 1
    return done, refused


def watch(warehouse: Warehouse, ears: Connection) -> list[dict[str, tuple[int, Any]]]:
    """Everything that a plain reader sees published, whenever another version of something is, each sight once."""
    seen: list[dict[str, tuple[int, Any]]] = []
    read: object = None
    while not ears.poll():
        snapshot = warehouse.snapshot()
        pins = [snapshot.get(name).pins for name in VIEWS]
        if pins != read:
            read, sight = pins, published(warehouse.root, snapshot)
            if not seen or sight != seen[-1]:
                seen.append(sight)
        time.sleep(0.1)
    return seen


def maintain(warehouse: Warehouse, wishes: dict[str, int]) -> None:
    """Of whatever size, and without waiting for readers."""
    planning.FEW, planning.LEAST_ROWS, trimming.LEAST = 2, 1, 1
    warehouse.maintain(grace=timedelta(0), **wishes)
