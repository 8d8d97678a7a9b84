"""A sign of life on stderr for work that takes over a second.

Law: quick work says nothing; a spinner turns only where somebody can see it turn.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rollview.cli.output import CommandOutput, Form

if TYPE_CHECKING:
    from rollview.cli.spinner import Spinner
    from rollview.results import Progress

PATIENCE = 1.0


class Working:
    """Holds what is being done now; speaks up when it takes long, and then whenever it changes."""

    def __init__(self, output: CommandOutput, form: Form, doing: str) -> None:
        self._output = output
        self._spinner = _spinner() if form is Form.TEXT and sys.stderr.isatty() else None
        self._doing = doing
        self._speaking = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._speak_up)
        self._timer.daemon = True

    def now(self, doing: str) -> None:
        with self._lock:
            changed, self._doing = doing != self._doing, doing
            if self._speaking and changed:
                self._show()

    def tell(self, progress: Progress) -> None:
        """What the warehouse reports while it works."""
        self.now(f"{progress.done}/{progress.total} {progress.stage} {progress.relation}")

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._speaking = False
            if self._spinner is not None:
                self._spinner.stop()

    def _speak_up(self) -> None:
        with self._lock:
            if not self._timer.finished.is_set():
                self._speaking = True
                self._show()

    def _show(self) -> None:
        if self._spinner is not None:
            self._spinner.show(self._doing)
        else:
            self._output.progress(f"{self._doing} …")


def _spinner() -> Spinner:
    # Loaded for people only: rich takes a tenth of a second.
    from rollview.cli.spinner import Spinner

    return Spinner()
