"""Messages of sources put back in order, before a maintainer hears them.

Law, per source: a gap is waited for, a duplicate is dropped, a reordered message is put back, and an answer is held
until every unit that it saw has come. An answer that saw no prefix is asked again for those who cannot use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rollview.compensate.maintainer import Answered, Reported


@dataclass(frozen=True, slots=True)
class Inbox:
    """``heard``: per source the last unit that was passed on; ``early`` came before what it has to follow."""

    heard: Mapping[str, int]
    early: tuple[Reported | Answered, ...] = ()

    def take(self, message: Reported | Answered) -> tuple[Inbox, tuple[Reported | Answered, ...]]:
        """The inbox without what is ready now, and that, in order."""
        if isinstance(message, Reported) and (message.number <= self.heard.get(message.source, 0)):
            return self, ()
        inbox, ready = replace(self, early=(*self.early, message)), list[Reported | Answered]()
        while (found := inbox._next()) is not None:
            inbox = inbox._passed(found)
            ready.append(found)
        return inbox, tuple(ready)

    def _next(self) -> Reported | Answered | None:
        return next((message for message in self.early if self._is_ready(message)), None)

    def _is_ready(self, message: Reported | Answered) -> bool:
        heard = self.heard.get(message.source, 0)
        if isinstance(message, Reported):
            return message.number == heard + 1
        return message.seen.through <= heard

    def _passed(self, message: Reported | Answered) -> Inbox:
        early = tuple(other for other in self.early if other != message)
        if isinstance(message, Answered):
            return replace(self, early=early)
        return Inbox({**self.heard, message.source: message.number}, early)
