"""Something that turns on a terminal while work is done."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status
from rich.text import Text


class Spinner:
    def __init__(self) -> None:
        self._status = Status("", console=Console(stderr=True))

    def show(self, doing: str) -> None:
        self._status.update(Text(f"{doing} …"))
        self._status.start()

    def stop(self) -> None:
        self._status.stop()
