"""Versions that claim what they reflect: one evaluation of the view for each claim and each state between two.

Law: a claim is believed only if the view of that state is what was shown. Where units have csns there is one way of
steps, so the time is linear in units and versions.
"""

from __future__ import annotations

from collections.abc import Sequence

from rollview.consistency.bags import Bag
from rollview.consistency.history import PublishedVersion
from rollview.consistency.levels import Level
from rollview.consistency.states import SourceStates, Vector
from rollview.consistency.verdict import Counterexample, Verdict, differing


def judge_claims(
    states: SourceStates, versions: Sequence[PublishedVersion], claims: Sequence[Vector], *, at_rest: bool
) -> Verdict:
    rows = [version.rows for version in versions]
    mapping = tuple(claims)
    wrong = _unlike(states, rows, claims)
    if at_rest and rows[-1] != states.show(states.last):
        reason = "the last version is not the view of the last state"
        last = differing(Level.CONVERGENT, reason, len(rows) - 1, states.last, rows[-1], states.show(states.last))
        return Verdict(Level.NONE, mapping, last)
    if wrong is not None:
        return Verdict(Level.CONVERGENT, mapping, wrong, not at_rest)
    back = _split_or_back(states, claims)
    if back is not None:
        return Verdict(Level.WEAK, mapping, back, not at_rest)
    skipped = _skipped(states, rows, claims, at_rest)
    level = Level.COMPLETE if skipped is None else Level.STRONG
    return Verdict(level, mapping, skipped, not at_rest)


def _unlike(states: SourceStates, rows: Sequence[Bag], claims: Sequence[Vector]) -> Counterexample | None:
    for version, (shown, claim) in enumerate(zip(rows, claims, strict=True)):
        right = states.show(claim)
        if shown != right:
            reason = f"version {version} is not the view of the state that it claims ({states.named(claim)})"
            return differing(Level.WEAK, reason, version, claim, shown, right)
    return None


def _split_or_back(states: SourceStates, claims: Sequence[Vector]) -> Counterexample | None:
    for version, claim in enumerate(claims):
        if not states.is_whole(claim):
            reason = f"version {version} claims a state that splits a global transaction"
            return Counterexample(Level.STRONG, reason, (version,), claim)
        if version and not all(a <= b for a, b in zip(claims[version - 1], claim, strict=True)):
            reason = f"version {version} claims a state that does not follow that of version {version - 1}"
            return Counterexample(Level.STRONG, reason, (version - 1, version), claim)
    return None


def _skipped(
    states: SourceStates, rows: Sequence[Bag], claims: Sequence[Vector], at_rest: bool
) -> Counterexample | None:
    """A state between two claims that differs from both, or one behind the last claim."""
    ends = [*claims, states.last] if at_rest else list(claims)
    shown = [*rows, rows[-1]] if at_rest else list(rows)
    ends.insert(0, states.first)
    shown.insert(0, rows[0])
    for place in range(len(ends) - 1):
        missed = _way(states, ends[place], ends[place + 1], shown[place], shown[place + 1])
        if missed is not None:
            before, after = max(place - 1, 0), min(place, len(rows) - 1)
            reason = f"between versions {before} and {after} a state was passed that was not published"
            told = differing(Level.COMPLETE, reason, after, missed, rows[after], states.show(missed))
            return Counterexample(told.breaks, reason, (before, after), missed, told.missing, told.surplus)
    return None


def _way(states: SourceStates, begin: Vector, end: Vector, old: Bag, new: Bag) -> Vector | None:
    """None if single steps lead there through the old rows and then the new ones; else a state that has neither."""
    missed: Vector | None = None
    reached = {(begin, states.show(begin) == new and old != new)}
    seen = set(reached)
    while reached:
        if any(at == end for at, _ in reached):
            return None
        further = set()
        for at, turned in reached:
            for later in states.steps(at):
                if not all(a <= b for a, b in zip(later, end, strict=True)):
                    continue
                rows = states.show(later)
                if rows == new or (not turned and rows == old):
                    further.add((later, turned or rows != old))
                else:
                    missed = missed or later
        reached = further - seen
        seen |= further
    return missed or end
