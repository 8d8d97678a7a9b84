"""How long changes are kept, in words: ``30 days``, ``12 hours``, ``1000 commits``, ``forever``.

``retention``: older changes are pruned. ``detail``: older changes are compressed, so that only some of the older csns
can be returned to. A view's own property wins over the project's setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from rollview.catalog import Catalog, Relation, Snapshot
from rollview.core.interval import Csn
from rollview.errors import UsageError
from rollview.evolve.dispensable import dispensable, wanted_extent
from rollview.evolve.views import ON_SCHEMA_CHANGE, parse_choice
from rollview.relations.plans import DETAIL, EACH_COMMIT, EACH_REFRESH

DEFAULT = "default"
RETENTION = "rollview.retention"

_PERIOD = re.compile(r"(?P<number>\d+)\s+(?P<unit>commit|minute|hour|day|week)s?", re.IGNORECASE)
_FOREVER = "forever"

Words = str | Mapping[str, str] | None
"""One period for all, or periods by name of relation, with one for ``default``."""


@dataclass(frozen=True, slots=True)
class Period:
    """A time, or a number of commits."""

    time: timedelta | None = None
    commits: int = 0


def parse_period(text: str, said_of: str = "", instead: str = "") -> Period | None:
    """None is for ever. ``said_of``: what the words are about, and ``instead``: what else could be said of it."""
    if text.strip().lower() in (_FOREVER, EACH_COMMIT):
        return None
    found = _PERIOD.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"{said_of}{text!r} does not say how long changes are kept.",
            hint=f"Write {instead}for example '30 days', '12 hours', '1000 commits' or 'forever'.",
        )
    number, unit = int(found["number"]), found["unit"].lower()
    return Period(commits=number) if unit == "commit" else Period(timedelta(**{f"{unit}s": number}))


@dataclass(frozen=True, slots=True)
class Keep:
    """What the user gave up. ``prune_before`` and ``compress_before`` are csns named for this one time; ``needed`` are
    tables of which only what views need has to be here; ``asked``: those of them whose rows stay at their sources;
    ``overtake`` are subscribers that hold nothing this time."""

    retention: Words = None
    detail: Words = None
    prune_before: Csn | None = None
    compress_before: Csn | None = None
    needed: frozenset[str] = frozenset()
    overtake: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ShorteningLimit:
    """Up to which csn, by whose words, and whether they named it for this one time."""

    csn: Csn
    why: str
    named: bool


def asked_prune(snapshot: Snapshot, catalog: Catalog, relation: Relation, keep: Keep) -> ShorteningLimit | None:
    return _asked(snapshot, catalog, keep.prune_before, RETENTION, _words(relation, keep.retention, RETENTION))


def asked_compress(snapshot: Snapshot, catalog: Catalog, relation: Relation, keep: Keep) -> ShorteningLimit | None:
    words = _words(relation, keep.detail, DETAIL)
    # What a refresh merged is as coarse as its author wants it.
    return _asked(snapshot, catalog, keep.compress_before, DETAIL, None if words == EACH_REFRESH else words)


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse a view's own words that cannot be understood."""
    for name in (RETENTION, DETAIL):
        if name in properties and (name, properties[name]) != (DETAIL, EACH_REFRESH):
            others = f"'{EACH_COMMIT}', '{EACH_REFRESH}', or " if name == DETAIL else ""
            parse_period(properties[name], f"'{name}': ", others)
    if ON_SCHEMA_CHANGE in properties:
        parse_choice(properties[ON_SCHEMA_CHANGE])
    dispensable(properties)
    wanted_extent(properties)


def check_words(words: Words) -> None:
    """Refuse what cannot be understood before anything is done."""
    for text in words.values() if isinstance(words, Mapping) else [words] if words is not None else []:
        parse_period(text)


def _words(relation: Relation, given: Words, name: str) -> str | None:
    own = relation.definition.properties.get(name) if relation.definition is not None else None
    if own is not None:
        return own
    if given is None or isinstance(given, str):
        return given
    by_name = {key.lower(): text for key, text in given.items()}
    return by_name.get(relation.name.lower(), by_name.get(DEFAULT))


def _asked(
    snapshot: Snapshot, catalog: Catalog, named: Csn | None, name: str, words: str | None
) -> ShorteningLimit | None:
    what = name.rpartition(".")[2]
    if named is not None:
        return ShorteningLimit(min(named, snapshot.moment.csn), f"before csn {named}, as asked", True)
    period = parse_period(words) if words is not None else None
    if period is None:
        return None
    if period.time is None:
        return ShorteningLimit(max(0, snapshot.moment.csn - period.commits), f"{what} is {words}", False)
    return ShorteningLimit(catalog.csn_recorded_by(catalog.now() - period.time), f"{what} is {words}", False)
