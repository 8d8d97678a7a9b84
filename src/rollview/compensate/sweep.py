"""Sweep: one table after another, and what an answer saw of other times is corrected here.

Law, for the keys that were asked by:  R@t = answer − Σ Δ(seen, csn > t) + Σ Δ(unseen, csn ≤ t).
A unit of csn c gives ΔV = Σ_i R1@(c−1) ⋈ … ⋈ ΔRi ⋈ … ⋈ Rn@c: n − 1 asks for each table that it changed. Complete, for
bags and without keys in the view; no query is ever compensated by another. After Agrawal et al., *Efficient
View Maintenance at Data Warehouses*, with the set of units that an answer saw in place of the order of messages; a part
that waits for the rest of its transaction has no csn yet, and counts as later than all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rollview.compensate.g_strobe import Waiting, next_whole, received, without
from rollview.compensate.maintainer import (
    Answered,
    AskFor,
    Heard,
    Publish,
    Reported,
    Requirement,
    Said,
    Seen,
    Through,
    counted_in,
)
from rollview.consistency.bags import EMPTY, Bag, counted, minus, plus
from rollview.consistency.join_view import JoinView, Occurrence, Partial, arranged, join, keys_of
from rollview.consistency.levels import Level


@dataclass(frozen=True, slots=True)
class Hop:
    """A term under way: of the changes to occurrence ``of``, joined so far, and the occurrence that is asked."""

    of: int
    partial: Partial
    asks: Occurrence | None = None


@dataclass(frozen=True, slots=True)
class SweepState:
    """``units`` have csns 1, 2, … in this order; ``csn`` is the last that is published. ``waiting`` parts have none.
    ``found`` is the view's change of the next csn so far; ``left`` are its terms not begun."""

    rows: Bag
    through: Through
    ask: int
    units: tuple[tuple[Reported, ...], ...]
    waiting: Waiting
    csn: int = 0
    found: Bag = field(default_factory=dict)
    left: tuple[Hop, ...] | None = None
    hop: Hop | None = None


@dataclass(frozen=True)
class SweepMaintainer:
    view: JoinView
    promises: Level = Level.COMPLETE
    needs: frozenset[Requirement] = frozenset((Requirement.SEEN_SETS, Requirement.WHOLE_OLD_ROWS))

    def begin(self, rows: Bag, through: Through, ask: int = 1) -> SweepState:
        return SweepState(rows, through, ask, (), {})

    def on(self, state: SweepState, event: Heard) -> tuple[SweepState, tuple[Said, ...]]:
        said: list[Said] = []
        if isinstance(event, Reported):
            waiting, units = received(state.waiting, event), state.units
            while unit := next_whole(waiting):
                waiting, units = without(waiting, unit), (*units, unit)
            state = replace(state, waiting=waiting, units=units)
        elif isinstance(event, Answered) and state.hop is not None and event.ask == state.ask - 1:
            state = self._answered(state, state.hop, event)
        while state.hop is None and state.csn < len(state.units):
            state = self._go_on(state, said)
        return state, tuple(said)

    def _go_on(self, state: SweepState, said: list[Said]) -> SweepState:
        """Begin the next csn, or its next term, or publish it."""
        if state.left is None:
            return replace(state, left=self._terms(state.units[state.csn]), found=EMPTY)
        if state.left:
            return self._ask(replace(state, left=state.left[1:]), state.left[0], said)
        through = state.through
        for part in state.units[state.csn]:
            through = counted_in(through, part)
        rows = plus(state.rows, state.found)
        said.append(Publish(rows, through))
        return replace(state, rows=rows, through=through, csn=state.csn + 1, left=None)

    def _terms(self, unit: tuple[Reported, ...]) -> tuple[Hop, ...]:
        """Of each occurrence; those that did not change ask nothing."""
        changed = (self.view.partial(one.name, _delta(unit, one.table)) for one in self.view.occurrences)
        return tuple(Hop(i, partial) for i, partial in enumerate(changed))

    def _ask(self, state: SweepState, hop: Hop, said: list[Said]) -> SweepState:
        """Ask the next table by the keys of what is joined so far, or add the term to what was found."""
        left = [one for one in self.view.occurrences if one.name not in hop.partial.have]
        if not left or not hop.partial.rows:
            found = plus(state.found, self.view.finish(hop.partial)) if not left else state.found
            return replace(state, found=found, hop=None)
        near = [one for one in left if set(one.columns) & set(hop.partial.columns)] or left
        equal = tuple(name for name in near[0].columns if name in hop.partial.columns)
        keys = keys_of(hop.partial, equal)
        said.append(AskFor(state.ask, near[0].source, (keys,), ((near[0].name,),)))
        return replace(state, ask=state.ask + 1, hop=replace(hop, asks=near[0]))

    def _answered(self, state: SweepState, hop: Hop, event: Answered) -> SweepState:
        asked = hop.asks
        assert asked is not None
        assert state.left is not None
        # Tables before the changed one are read before the unit, those behind it after.
        at = state.csn + (asked in self.view.occurrences[hop.of :])
        rows = self._at(state, asked, event, at)
        joined = replace(hop, partial=join(hop.partial, self.view.partial(asked.name, rows)), asks=None)
        return replace(state, hop=None, left=(joined, *state.left))

    def _at(self, state: SweepState, asked: Occurrence, event: Answered, at: int) -> Bag:
        """The law."""
        rows = arranged(event.partials[0], asked.columns).rows
        for csn, unit in enumerate(state.units, start=1):
            for part in unit:
                if part.source == event.source:
                    rows = _corrected(rows, part, asked.table, event.seen, wanted=csn <= at)
        for part in state.waiting.get(event.source, ()):
            rows = _corrected(rows, part, asked.table, event.seen, wanted=False)
        return rows


def _corrected(rows: Bag, part: Reported, table: str, seen: Seen, *, wanted: bool) -> Bag:
    saw = seen.saw(part.number)
    if saw == wanted:
        return rows
    delta = _delta((part,), table)
    return plus(rows, delta) if wanted else minus(rows, delta)


def _delta(unit: tuple[Reported, ...], table: str) -> Bag:
    return counted((one.row, one.count) for part in unit for one in part.updates if one.table == table)
