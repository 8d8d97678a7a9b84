"""What held sources tell a maintainer: units of work, and answers with what they saw.

Law: units of a source are numbered from 1 in its order, those of the ledger first; one that changes nothing of what the
view selects has no number, because nothing depends on whether it was seen. An ask that goes on from table to table is
answered by several snapshots, each of which has seen all that was heard; where they must be one state of the source
(``atomic``), snapshots that saw the same units are the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from rollview.algebra.natural_join import NaturalJoin
from rollview.catalog import Relation
from rollview.compensate.maintainer import Answered, AskFor, Reported, Seen
from rollview.consistency.bags import Bag, counted
from rollview.consistency.history import Update
from rollview.consistency.join_view import Partial, join, keys_of
from rollview.core.interval import Csn
from rollview.core.names import COUNT, CSN
from rollview.errors import Retryable
from rollview.relations.answers import KeyRequest, RawAnswer, Telling

_TRIES = 20
_BEFORE_ALL = 0
"""The number of whatever is older than the first unit."""


@dataclass(frozen=True, slots=True)
class CapturedUnit:
    """All parts of one csn."""

    csn: Csn
    parts: tuple[Reported, ...]


@dataclass(slots=True)
class SourceMessages:
    """``after``: what the view shows before the first unit. ``atomic``: tables of one ask are read in one state."""

    join: NaturalJoin
    lookup: Telling
    relations: Mapping[str, Relation]
    after: Csn
    atomic: bool = False
    captured: tuple[CapturedUnit, ...] = ()
    _numbered: dict[str, list[Csn]] = field(default_factory=dict)
    _later: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By source, the places beyond the ledger of the units that have numbers; ``_known``: how many were looked at."""
    _known: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def begin(self) -> None:
        """Hold the sources, and read what they have in the ledger."""
        self.lookup.hold(self.relations.values())
        found: dict[Csn, dict[str, list[Update]]] = defaultdict(lambda: defaultdict(list))
        for one in self.join.view.occurrences:
            changes = self.lookup.captured(self._relation(one.name), self.after)
            for csn, rows in _by_csn(changes).items():
                found[csn][one.source] += self._updates(one.name, rows)
        self._numbered = {source: [] for source in self.join.view.sources}
        self.captured = tuple(unit for csn in sorted(found) if (unit := self._unit(csn, found[csn])) is not None)

    def answers(self, asks: Sequence[AskFor], heard: int) -> tuple[tuple[Reported, ...], tuple[Answered, ...]]:
        """Of one source: units that are known only now, and the answers. ``heard``: its units that these must have
        seen."""
        for _ in range(_TRIES):
            told = self._answers(asks, heard)
            if told is not None:
                return told
        raise Retryable(f"Source '{asks[0].source}' was written to whenever it was asked.", hint="Try again later.")

    def _unit(self, csn: Csn, found: Mapping[str, list[Update]]) -> CapturedUnit | None:
        told = {source: updates for source, updates in found.items() if updates}
        if not told:
            return None
        for source in told:
            self._numbered[source].append(csn)
        transaction = str(csn) if len(told) > 1 else None
        parts = (
            Reported(source, len(self._numbered[source]), tuple(updates), transaction, len(told))
            for source, updates in told.items()
        )
        return CapturedUnit(csn, tuple(parts))

    def take(self, heard: Mapping[str, int]) -> Csn:
        """Units beyond the ledger that were heard get csns; the newest one, at which the view reflects all of them and
        nothing else."""
        places: dict[str, int] = {}
        for source, number in heard.items():
            beyond = number - len(self._numbered[source])
            places[source] = self._later[source][beyond - 1] + 1 if beyond > 0 else 0
        return self.lookup.take(places)

    def _answers(self, asks: Sequence[AskFor], heard: int) -> tuple[tuple[Reported, ...], tuple[Answered, ...]] | None:
        """None if the source went on between two tables of one ask."""
        terms = [[*zip(ask.partials, ask.wanted, strict=True)] for ask in asks]
        source, hops = asks[0].source, list[RawAnswer]()
        while wished := self._wishes(partial for some in terms for partial in some):
            keys = {about: frozenset(found) for about, found in wished.items()}
            wishes = [KeyRequest(self.relations[name], equal, keys[name, equal]) for name, equal in keys]
            hops.append(self.lookup.answer(wishes, self.after))
            if self.atomic and not hops[0].saw_the_same(hops[-1]):
                return None
            rows = dict(zip(keys, hops[-1].rows, strict=True))
            terms = [[self._joined(*term, rows) for term in some] for some in terms]
        units = self._beyond(source, len(hops[-1].beyond))
        seen = _together([self._saw(source, hop) for hop in hops], heard)
        if any(csn <= self.after for hop in hops for csn in hop.missed):
            seen = replace(seen, missing=seen.missing | {_BEFORE_ALL})
        pairs = zip(asks, terms, strict=True)
        return units, tuple(Answered(source, ask.ask, tuple(p for p, _ in some), seen) for ask, some in pairs)

    def _wishes(
        self, terms: Iterable[tuple[Partial, tuple[str, ...]]]
    ) -> dict[tuple[str, tuple[str, ...]], set[tuple[object, ...]]]:
        """By table and columns, the keys of the next hop of every term that has one."""
        found: dict[tuple[str, tuple[str, ...]], set[tuple[object, ...]]] = defaultdict(set)
        for partial, wanted in terms:
            if wanted and partial.rows:
                table, equal = self._hop(partial, wanted[0])
                found[table] |= keys_of(partial, equal).rows.keys()
        return found

    def _hop(self, partial: Partial, name: str) -> tuple[tuple[str, tuple[str, ...]], tuple[str, ...]]:
        one, table = self.join.view.named[name], self.join.tables[name]
        equal = tuple(column for column in one.columns if column in partial.columns)
        return (table.relation, table.own(one, equal)), equal

    def _joined(
        self, partial: Partial, wanted: tuple[str, ...], rows: Mapping[tuple[str, tuple[str, ...]], pa.Table]
    ) -> tuple[Partial, tuple[str, ...]]:
        if not wanted:
            return partial, wanted
        found = rows[self._hop(partial, wanted[0])[0]] if partial.rows else None
        selected = self._selected(wanted[0], [] if found is None else found.to_pylist())
        return join(partial, self.join.view.partial(wanted[0], selected)), wanted[1:]

    def _beyond(self, source: str, known: int) -> tuple[Reported, ...]:
        """Units of a source's log that were not looked at before."""
        found: list[Reported] = []
        for place in range(self._known[source], known):
            updates: list[Update] = []
            for one in self.join.view.occurrences:
                if one.source == source:
                    pieces = self.lookup.beyond(self._relation(one.name), place)
                    updates += self._updates(one.name, [row for piece in pieces for row in piece.to_pylist()])
            if updates:
                self._later[source].append(place)
                number = len(self._numbered[source]) + len(self._later[source])
                found.append(Reported(source, number, tuple(updates)))
        self._known[source] = max(known, self._known[source])
        return tuple(found)

    def _saw(self, source: str, answer: RawAnswer) -> list[bool]:
        """Of each unit that has a number, whether a snapshot saw it."""
        saw = [csn not in answer.missed for csn in self._numbered[source]]
        # Later snapshots may have shown units that this one knew nothing of.
        return saw + [place < len(answer.beyond) and answer.beyond[place] for place in self._later[source]]

    def _relation(self, occurrence: str) -> Relation:
        return self.relations[self.join.tables[occurrence].relation]

    def _updates(self, name: str, rows: Iterable[Mapping[str, object]]) -> Iterator[Update]:
        """The net effect of what is selected, deletes first."""
        net = sorted(self._selected(name, rows).items(), key=lambda item: item[1])
        return (Update(name, row, count) for row, count in net)

    def _selected(self, name: str, rows: Iterable[Mapping[str, object]]) -> Bag:
        table = self.join.tables[name]
        kept = (row for row in rows if table.selects(row))
        return counted((tuple(row[column] for column in table.columns), int(row.get(COUNT, 1))) for row in kept)  # type: ignore[call-overload]


def _by_csn(changes: pa.Table) -> Mapping[Csn, list[Mapping[str, object]]]:
    found: dict[Csn, list[Mapping[str, object]]] = defaultdict(list)
    for row in changes.to_pylist():
        found[row[CSN]].append(row)
    return found


def _together(hops: Sequence[Sequence[bool]], known: int) -> Seen:
    """What several snapshots saw, one after another. Missing is what one of them did not see of the first ``known``
    units, or of those before another that it saw."""
    through = [max((number for number, one in enumerate(saw, start=1) if one), default=0) for saw in hops]
    missing = {
        number
        for saw, last in zip(hops, through, strict=True)
        for number, one in enumerate(saw[: max(last, known)], start=1)
        if not one
    }
    return Seen(max(through), frozenset(missing))
