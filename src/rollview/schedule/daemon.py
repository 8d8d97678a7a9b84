"""Rounds of work until somebody says stop.

Law: a round that has begun is finished; nothing begins after the stop. Whatever a kill leaves is recovered by whoever
works next, so a stop is a courtesy and not a need.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def paced(interval: float, stop: threading.Event, rounds: int | None) -> Iterator[int]:
    """The numbers of the rounds, each ``interval`` seconds after the last began, or at once if that took longer."""
    for number in count(1):
        if stop.is_set() or (rounds is not None and number > rounds):
            return
        began = time.monotonic()
        yield number
        if rounds is None or number < rounds:
            stop.wait(max(0.0, interval - (time.monotonic() - began)))


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set while the block runs."""
    stop = threading.Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, ask) for number in _SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
