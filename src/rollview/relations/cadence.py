"""When a source is read or a view refreshed, in words.

``every 10 seconds``; ``cron 0 * * * *`` (in UTC); ``within 5 minutes`` (so often that it is never older than that);
``continuous``; ``manual`` (never by itself). A view's own property ``rollview.schedule`` wins over the project's
setting. Of propagation it may be said table by table: ``orders every 5 seconds, customers every 1 hour``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from cronsim import CronSim, CronSimError

from rollview.errors import UsageError

DEFAULT = "default"
PROPERTY = "rollview.schedule"
PROPAGATE = "rollview.propagate"
CONSISTENCY, WEAK = "rollview.consistency", "weak"
"""The property that says when a view is propagated by itself, and not only when it is refreshed."""

_SPAN = re.compile(r"(every|within)\s+(\d+(?:\.\d+)?)\s*(second|minute|hour|day|s|m|h|d)s?", re.IGNORECASE)
_NEXT_TABLE = re.compile(r",\s*(?=(?:`[^`]+`|\w+)\s+(?:every|within|cron|continuous|manual)\b)", re.IGNORECASE)
_OF_TABLE = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<plain>\w+))\s+(?P<words>.+)", re.DOTALL)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_EVER = datetime(1970, 1, 1, tzinfo=UTC)

Words = str | Mapping[str, str] | None
"""One cadence for all, or cadences by name of source or view, with one for ``default``."""


class CadenceKind(StrEnum):
    EVERY = "every"
    WITHIN = "within"
    CRON = "cron"
    CONTINUOUS = "continuous"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Cadence:
    kind: CadenceKind
    span: timedelta = timedelta()
    cron: str = ""
    words: str = field(default="", compare=False)
    """As somebody wrote it."""

    def due(self, last: datetime, stale_since: datetime | None) -> datetime | None:
        """When it is its turn, if it was last done then and lacks something since then; None is never."""
        if self.kind is CadenceKind.MANUAL or stale_since is None:
            return None
        match self.kind:
            case CadenceKind.EVERY:
                return last + self.span
            case CadenceKind.WITHIN:
                # Half of the time is for the work itself.
                return stale_since + self.span / 2
            case CadenceKind.CRON:
                return next(CronSim(self.cron, last.astimezone(UTC)))
        return _EVER


def every(seconds: float) -> Cadence:
    return Cadence(CadenceKind.EVERY, timedelta(seconds=seconds))


def parse_cadence(text: str) -> Cadence:
    words = " ".join(text.split())
    if words.lower() in (CadenceKind.CONTINUOUS, CadenceKind.MANUAL):
        return Cadence(CadenceKind(words.lower()))
    found = _SPAN.fullmatch(words)
    if found is not None:
        unit = _UNITS[found[3][0].lower()]
        return Cadence(CadenceKind(found[1].lower()), timedelta(**{unit: float(found[2])}))
    if words.lower().startswith("cron "):
        return _cron(words[5:].strip())
    raise _unclear(text)


def parse_turns(text: str) -> dict[str, Cadence] | None:
    """The cadence of each table, by its folded name; None where one cadence is said for all."""
    pieces = _NEXT_TABLE.split(text)
    if len(pieces) == 1 and text.split()[:1] and text.split()[0].lower() in list(CadenceKind):
        return None
    turns: dict[str, Cadence] = {}
    for piece in pieces:
        found = _OF_TABLE.fullmatch(piece)
        if found is None:
            raise _unclear(text)
        name = (found["quoted"] or found["plain"]).lower()
        if name in turns:
            raise UsageError(f"{text!r} says twice when changes of '{name}' are propagated.")
        turns[name] = replace(parse_cadence(found["words"]), words=" ".join(found["words"].split()))
    return turns


def cadence_of(name: str, own: str | None, words: Words, default: Cadence) -> Cadence:
    """What a source's or view's own property says, else the project, else ``default``."""
    given = own or given_for(name, words)
    return default if given is None else parse_cadence(given)


def named_for(name: str, words: Words) -> str | None:
    """What the project says of it by name."""
    return None if words is None or isinstance(words, str) else given_for(name, {**words, DEFAULT: ""}) or None


def given_for(name: str, words: Words) -> str | None:
    if words is None or isinstance(words, str):
        return words
    folded = {key.lower(): text for key, text in words.items()}
    return folded.get(name.lower(), folded.get(DEFAULT))


def _cron(text: str) -> Cadence:
    try:
        CronSim(text, _EVER)
    except CronSimError:
        raise _unclear(f"cron {text}") from None
    return Cadence(CadenceKind.CRON, cron=text)


def _unclear(text: str) -> UsageError:
    return UsageError(
        f"{text!r} does not say when.",
        hint="Write 'every 10 seconds', 'cron 0 * * * *', 'within 5 minutes', 'continuous' or 'manual'.",
    )
