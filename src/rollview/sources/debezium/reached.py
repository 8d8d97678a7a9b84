"""How far a source was read, and what has to be known there to read on.

Law: it is remembered with the position that it belongs to, so one that is read from again knows what it knew then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rollview.sources.debezium.records import LogPlace
from rollview.sources.debezium.streams import Place

Places = dict[str, Place]

_LOG = "reached"
_PLACES = "passed"
_DONE = "stated"
_TYPES = "types"
_LEFT = "left"


@dataclass(frozen=True, slots=True)
class ReadSoFar:
    """``places``: of the streams, before which statements were followed; ``log``: the place in the source's log up to
    which everything was taken, if that is known; ``done``: marks of the newest statements that were followed;
    ``types``: of the columns of tables, as the server spells them; ``left``: names that tables had, and perhaps have no
    more."""

    places: Places = field(default_factory=dict)
    log: LogPlace | None = None
    done: tuple[str, ...] = ()
    types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    left: tuple[str, ...] = ()

    @classmethod
    def of(cls, memory: Mapping[str, Any]) -> ReadSoFar:
        name, number, place = memory.get(_LOG, ("", 0, 0))
        log = (name, number, place) if name else None
        types = {remote: dict(pairs) for remote, pairs in memory.get(_TYPES, {}).items()}
        return cls(memory.get(_PLACES, {}), log, tuple(memory.get(_DONE, ())), types, tuple(memory.get(_LEFT, ())))

    def memory(self) -> dict[str, Any]:
        types = {remote: [[*one] for one in told.items()] for remote, told in self.types.items()}
        told = {_PLACES: self.places, _DONE: list(self.done), _TYPES: types, _LEFT: list(self.left)}
        return {**told, _LOG: list(self.log)} if self.log else told
