"""The k-th call fails: of the file system, by ``failing.c`` in a process of its own, or of the catalog's database."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from typing import Any

import pytest
from tests.faults.crew import PATIENCE, Task, Worker

from rollview.errors import RollviewError
from rollview.warehouse import Warehouse


class Where(StrEnum):
    """A statement or commit of the catalog fails before it has happened, or after, when its answer is lost."""

    FILES = "files"
    BEFORE = "before a catalog call"
    AFTER = "after a catalog call"


@dataclass(frozen=True, slots=True)
class Order:
    """A task, in which the ``k``-th call fails, ``number`` says how; none if it is 0."""

    task: Task
    arguments: tuple[Any, ...]
    where: Where = Where.FILES
    k: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """``failed``: the call that did, and of how many. ``error``: what the task raised, ``trace`` if it is not ours."""

    failed: str
    seen: int
    error: str = ""
    hint: str | None = None
    trace: str = ""


def tell(worker: Worker, order: Order) -> Told:
    worker.tell(order)
    assert worker.answers.poll(PATIENCE), "the worker does not answer"
    told = worker.answers.recv()
    assert isinstance(told, Told), told
    return told


def obey(warehouse: Warehouse, ears: Connection) -> None:
    """Do what is told, one order after another, in one process."""
    while (order := ears.recv()) is not None:
        failing = _files if order.where is Where.FILES else _statements
        error, hint, trace = "", None, ""
        with failing(warehouse, order) as heard:
            try:
                order.task(warehouse, *order.arguments)
            except RollviewError as caught:
                error, hint = caught.message, caught.hint
            except Exception:
                error = trace = traceback.format_exc()
        ears.send(Told(*heard(), error, hint, trace))


Heard = Callable[[], tuple[str, int]]


@contextmanager
def _files(warehouse: Warehouse, order: Order) -> Iterator[Heard]:
    loaded = ctypes.CDLL(None)
    loaded.rv_failed.restype = ctypes.c_char_p
    heard: list[tuple[str, int]] = []
    loaded.rv_arm(str(warehouse.root).encode(), ctypes.c_long(order.k), order.number)
    try:
        yield heard.pop
    finally:
        heard.append((loaded.rv_failed().decode(), loaded.rv_seen()))
        loaded.rv_arm(b"", 0, 0)


@contextmanager
def _statements(warehouse: Warehouse, order: Order) -> Iterator[Heard]:
    dialect: Any = warehouse.catalog._database.engine.dialect
    calls: list[str] = []

    def failing(call: Callable[..., Any], told: Callable[..., str]) -> Callable[..., Any]:
        def made(*arguments: Any, **named: Any) -> Any:
            calls.append(told(*arguments))
            now = len(calls) == order.k
            if not now or order.where is Where.AFTER:
                answer = call(*arguments, **named)
            if now:
                raise dialect.loaded_dbapi.OperationalError("the connection is gone")
            return answer

        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dialect, "do_execute", failing(dialect.do_execute, lambda _cursor, text, *_: text))
        patch.setattr(dialect, "do_commit", failing(dialect.do_commit, lambda _connection: "COMMIT"))
        yield lambda: ("".join(calls[order.k - 1 : order.k]) if order.k else "", len(calls))
