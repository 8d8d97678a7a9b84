"""Threads that work on several views, and on several steps of one, side by side.

Law: what is done does not depend on how many there are. One worker is the caller's own thread, and does everything in
order. A task of theirs never waits for one that nobody has begun: whoever needs it does it.

All refreshes of a process share the same threads. Each has a pool of Spark's fair scheduler, so that a large job keeps
no small one waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from rollview.engine.abilities import use_pool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
Task = Callable[[], T]
_NONE: Mapping[str, Collection[str]] = MappingProxyType({})


class Begun(Generic[T]):
    """A task that may be under way; without a future nobody has begun it."""

    def __init__(self, task: Task[T], future: Future[T] | None = None) -> None:
        self._task = task
        self._future = future

    def do_here(self) -> bool:
        """Do it in this thread if nobody has begun it. Whether that was so."""
        if self._future is not None and not self._future.cancel():
            return False
        self._future = Future()
        try:
            self._future.set_result(self._task())
        except BaseException as error:
            self._future.set_exception(error)
        return True

    def result(self) -> T:
        self.do_here()
        assert self._future is not None
        return self._future.result()

    def find_result(self) -> T | None:
        """None if it failed, or if nobody has begun it, and then nobody will."""
        if self._future is None or self._future.cancel() or self._future.exception() is not None:
            return None
        return self._future.result()


@dataclass(frozen=True, slots=True)
class Workers:
    spark: SparkSession
    number: int = 1

    def run(self, tasks: Mapping[str, Task[None]], after: Mapping[str, Collection[str]] = _NONE) -> None:
        """Each task once those that it comes ``after`` have ended; given in such an order.

        If one raises, nothing else begins, and it is raised when all that had begun have ended.
        """
        if self.number == 1:
            for task in tasks.values():
                task()
            return
        waiting, running = dict(tasks), dict[Future[None], str]()
        try:
            while waiting or running:
                unfinished = {*waiting, *running.values()}
                for name in [name for name in waiting if unfinished.isdisjoint(after.get(name, ()))]:
                    running[self._submitted(waiting.pop(name))] = name
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[ended]
                    ended.result()
        finally:
            wait([future for future in running if not future.cancel()])

    def begin(self, task: Task[T]) -> Begun[T]:
        """Done by whoever is free, or else by whoever asks for its result."""
        return Begun(task) if self.number == 1 else Begun(task, self._submitted(task))

    def _submitted(self, task: Task[T]) -> Future[T]:
        def run() -> T:
            use_pool(self.spark, threading.current_thread().name)
            return task()

        return _threads(self.number).submit(run)


@lru_cache
def _threads(number: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(number, "rollview-worker")
