"""The judge. Laws, for versions w0, w1, … with equal neighbours taken as one state:

* convergent: the last version is V of the last state;
* weak: each version is V of some vector of prefixes;
* strong: there are whole vectors v0 ≤ v1 ≤ … with wi = V(vi);
* complete: single steps lead from the first vector to the last, and the rows along them are exactly w0, w1, ….

Zhuge et al., *The Strobe Algorithms*, section 4.2. A history that is not at rest is judged so far: its last version
need not be the last state. Versions that claim what they reflect are checked against that, one evaluation each;
without claims every vector is tried, up to a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from rollview.consistency.bags import distance
from rollview.consistency.claims import judge_claims
from rollview.consistency.history import History, PublishedVersion
from rollview.consistency.levels import Level
from rollview.consistency.search import Search
from rollview.consistency.states import Lattice, Vector
from rollview.consistency.verdict import Counterexample, Verdict, differing

BOUND = 20_000
"""Vectors of prefixes that are tried for versions without claims."""


def judge(history: History, bound: int = BOUND, *, believe: bool = True) -> Verdict:
    """``believe``: check what versions claim to reflect, where all of them claim something; else search."""
    states = Lattice(history)
    claims = [states.claimed(version) for version in history.versions]
    known = [claim for claim in claims if claim is not None]
    if believe and len(known) == len(claims):
        return judge_claims(states, history.versions, known, at_rest=history.at_rest)
    return _search(history, states, bound)


def _search(history: History, states: Lattice, bound: int) -> Verdict:
    versions = merged(history.versions)
    wrong = _not_convergent(history, states)
    if wrong is not None:
        return Verdict(Level.NONE, (None,) * len(history.versions), wrong)
    so_far = not history.at_rest
    if states.size > bound:
        return Verdict(Level.CONVERGENT, (None,) * len(history.versions), None, so_far, undecided=True)
    search = Search(states, [version.rows for _, version in versions], at_rest=history.at_rest)
    return _highest(history, search, [place for place, _ in versions], so_far)


def _highest(history: History, search: Search, places: list[int], so_far: bool) -> Verdict:
    lost = search.without_vector()
    if lost is not None:
        nearest = min(search.states.every(), key=lambda at: distance(search.states.show(at), search.rows[lost]))
        rows, right = search.rows[lost], search.states.show(nearest)
        reason = f"version {places[lost]} is the view of no state of the sources"
        wrong = differing(Level.WEAK, reason, places[lost], nearest, rows, right)
        return Verdict(Level.CONVERGENT, _spread(history, places, search.any_vectors()), wrong, so_far)
    chain = search.chain()
    if isinstance(chain, Counterexample):
        found = _placed(chain, places)
        return Verdict(Level.WEAK, _spread(history, places, search.any_vectors()), found, so_far)
    way = search.single_steps()
    if isinstance(way, Counterexample):
        return Verdict(Level.STRONG, _spread(history, places, chain), _placed(way, places), so_far)
    return Verdict(Level.COMPLETE, _spread(history, places, way), None, so_far)


def merged(versions: Sequence[PublishedVersion]) -> list[tuple[int, PublishedVersion]]:
    """Equal neighbours are one state; each with the place of its first."""
    found: list[tuple[int, PublishedVersion]] = []
    for place, version in enumerate(versions):
        if not found or found[-1][1].rows != version.rows:
            found.append((place, version))
    return found


def _not_convergent(history: History, states: Lattice) -> Counterexample | None:
    if not history.at_rest:
        return None
    last, right = history.versions[-1].rows, states.show(states.last)
    if last == right:
        return None
    reason = "the last version is not the view of the last state"
    return differing(Level.CONVERGENT, reason, len(history.versions) - 1, states.last, last, right)


def _spread(history: History, places: list[int], found: Sequence[Vector | None]) -> tuple[Vector | None, ...]:
    """What was found for each merged version, for all that it stands for."""
    by_place = dict(zip(places, found, strict=True))
    spread: list[Vector | None] = []
    for place in range(len(history.versions)):
        spread.append(by_place[place] if place in by_place else spread[-1])
    return tuple(spread)


def _placed(found: Counterexample, places: list[int]) -> Counterexample:
    """Merged versions by their places in the history."""
    numbered = tuple(places[version] for version in found.versions)
    said = "version " + numbered[0].__str__() if len(numbered) == 1 else "versions " + ", ".join(map(str, numbered))
    reason = f"{said}: {found.reason}"
    return Counterexample(found.breaks, reason, numbered, found.nearest, found.missing, found.surplus)
