"""Versions without claims: every vector of prefixes is tried.

Law: what can follow a version depends only on the smallest vectors that reach it, so only those are carried on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rollview.consistency.bags import Bag, FrozenBag, frozen
from rollview.consistency.levels import Level
from rollview.consistency.states import Lattice, Vector
from rollview.consistency.verdict import Counterexample, differing

Found = dict[Vector, Vector | None]
"""Vectors of one version, each with that of the version before from which it was reached."""


class Search:
    """``rows`` are those of the versions, neighbours different."""

    def __init__(self, states: Lattice, rows: Sequence[Bag], *, at_rest: bool) -> None:
        self.states = states
        self.rows = rows
        self._at_rest = at_rest
        self._keys = [frozen(one) for one in rows]

    @cached_property
    def _vectors(self) -> dict[FrozenBag, list[Vector]]:
        wanted = set(self._keys)
        found: dict[FrozenBag, list[Vector]] = {key: [] for key in wanted}
        for at in self.states.every():
            key = frozen(self.states.show(at))
            if key in wanted:
                found[key].append(at)
        return found

    def _whole(self, version: int) -> list[Vector]:
        return [at for at in self._vectors[self._keys[version]] if self.states.is_whole(at)]

    def without_vector(self) -> int | None:
        return next((version for version, key in enumerate(self._keys) if not self._vectors[key]), None)

    def any_vectors(self) -> list[Vector | None]:
        return [next(iter(self._vectors[key]), None) for key in self._keys]

    def chain(self) -> list[Vector] | Counterexample:
        """One growing chain of whole vectors, or the fewest versions that have none."""
        ways: list[Found] = []
        for version in range(len(self.rows)):
            found = self._reached(version, ways[-1] if ways else None)
            if not found:
                return self._no_chain(version)
            ways.append(found)
        ends = ways[-1]
        return _back(ways, self.states.last if self.states.last in ends else min(ends, key=sum))

    def _reached(self, version: int, before: Found | None) -> Found:
        candidates = self._whole(version)
        if before is None:
            return dict.fromkeys(candidates)
        smallest = _minimal(list(before))
        found: Found = {}
        for at in candidates:
            below = next((one for one in smallest if _below(one, at)), None)
            if below is not None:
                found[at] = below
        return found

    def _no_chain(self, stuck: int) -> Counterexample:
        split = "every state that fits splits a global transaction"
        alone = next((version for version in range(stuck + 1) if not self._whole(version)), None)
        if alone is not None:
            return Counterexample(Level.STRONG, split, (alone,), self.any_vectors()[alone])
        for apart in range(1, stuck + 1):
            for first in range(stuck + 1 - apart):
                later = self._whole(first + apart)
                if not any(_below(a, b) for a in self._whole(first) for b in later):
                    reason = "the later one fits only states that do not follow those of the earlier one"
                    return Counterexample(Level.STRONG, reason, (first, first + apart))
        reason = "no growing chain of states fits all of them"
        return Counterexample(Level.STRONG, reason, tuple(range(stuck + 1)))

    def single_steps(self) -> list[Vector] | Counterexample:
        """A way of single steps along which every state was published, or where all ways leave what was published."""
        ways: list[Found] = [self._rest(0, {self.states.first: None} if self._fits(self.states.first, 0) else {})]
        for version in range(1, len(self.rows)):
            begun: Found = {
                later: at for at in ways[-1] for later in self.states.steps(at) if self._fits(later, version)
            }
            ways.append(self._rest(version, begun))
        if ways[-1] and (not self._at_rest or self.states.last in ways[-1]):
            return _back(ways, self.states.last if self._at_rest else min(ways[-1], key=sum))
        return self._skipped(ways)

    def _rest(self, version: int, begun: Found) -> Found:
        """All that is reached from these by steps that leave the rows as they are."""
        found, waiting = dict(begun), list(begun)
        while waiting:
            at = waiting.pop()
            for later in self.states.steps(at):
                if later not in found and self._fits(later, version):
                    found[later] = found[at]
                    waiting.append(later)
        return found

    def _fits(self, at: Vector, version: int) -> bool:
        return frozen(self.states.show(at)) == self._keys[version]

    def _skipped(self, ways: list[Found]) -> Counterexample:
        """The last version that single steps reach, and a state after it that was not published next."""
        stuck = max((version for version, found in enumerate(ways) if found), default=0)
        after = min(ways[stuck], key=sum) if ways[stuck] else self.states.first
        missed = next(iter(self.states.steps(after)), after)
        last = min(stuck + 1, len(self.rows) - 1)
        reason = "single steps pass through rows that were not published between them"
        told = differing(Level.COMPLETE, reason, last, missed, self.rows[last], self.states.show(missed))
        return Counterexample(told.breaks, reason, (stuck, last), missed, told.missing, told.surplus)


def _below(one: Vector, other: Vector) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def _minimal(vectors: list[Vector]) -> list[Vector]:
    """Those above no other."""
    found: list[Vector] = []
    for at in sorted(vectors, key=sum):
        if not any(_below(one, at) for one in found):
            found.append(at)
    return found


def _back(ways: list[Found], end: Vector) -> list[Vector]:
    found = [end]
    for way in reversed(ways[1:]):
        before = way[found[-1]]
        assert before is not None
        found.append(before)
    return found[::-1]
