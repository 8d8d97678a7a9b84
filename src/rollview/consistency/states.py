"""The states that sources passed through, as vectors of prefixes.

Law: a vector counts, per source, the units that it reflects. It is *whole* if it splits no global transaction; a *step*
adds one transaction. With csns on every unit there is one way of steps, otherwise every order that sources allow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise, product
from math import prod
from typing import Protocol

from rollview.consistency.bags import Bag, plus
from rollview.consistency.history import History, HistoryUnit, PublishedVersion
from rollview.errors import UsageError

Vector = tuple[int, ...]


class SourceStates(Protocol):
    """What the judge asks of the sources."""

    @property
    def first(self) -> Vector: ...
    @property
    def last(self) -> Vector: ...
    def show(self, at: Vector) -> Bag:
        """The view's rows by its definition."""

    def is_whole(self, at: Vector) -> bool: ...
    def steps(self, at: Vector) -> Iterable[Vector]: ...
    def named(self, at: Vector) -> str: ...


class Lattice:
    """The states of a history whose view is evaluated here."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._units = [history.by_source[name] for name in history.sources]
        self._parts = _parts(self._units)
        self._tables = _home(history)
        self._prefixes: dict[tuple[str, int], Bag] = {}
        self._shown: dict[Vector, Bag] = {}
        self._by_csn = _by_csn(history)
        self._csns = list(self._by_csn or ())
        self._way = dict(pairwise(self._by_csn.values())) if self._by_csn is not None else None
        self.first: Vector = (0,) * len(self._units)
        self.last: Vector = tuple(map(len, self._units))

    @property
    def size(self) -> int:
        return prod(count + 1 for count in self.last)

    def every(self) -> Iterator[Vector]:
        return product(*(range(count + 1) for count in self.last))

    def show(self, at: Vector) -> Bag:
        if at not in self._shown:
            tables = {table: self._prefix(table, source, at[source]) for table, source in self._tables.items()}
            self._shown[at] = self._history.view.evaluate(tables)
        return self._shown[at]

    def is_whole(self, at: Vector) -> bool:
        return all(len({number <= at[source] for source, number in parts}) == 1 for parts in self._parts.values())

    def steps(self, at: Vector) -> Iterator[Vector]:
        if self._way is not None:
            if at in self._way:
                yield self._way[at]
            return
        for source, units in enumerate(self._units):
            if at[source] == len(units):
                continue
            name = units[at[source]].transaction
            parts = self._parts[name] if name is not None else [(source, at[source] + 1)]
            # A global transaction is taken once, at its first source, and only when it is next at all of them.
            if parts[0][0] == source and all(at[other] + 1 == number for other, number in parts):
                yield _moved(at, parts)

    def claimed(self, version: PublishedVersion) -> Vector | None:
        through = version.through
        if through is None:
            return None
        if isinstance(through, int):
            return self._at_csn(through)
        return tuple(through.get(name, 0) for name in self._history.sources)

    def _at_csn(self, csn: int) -> Vector:
        if self._by_csn is None:
            raise UsageError("A version claims a csn, but not every unit has one.")
        return self._by_csn[self._csns[max(bisect_right(self._csns, csn) - 1, 0)]]

    def named(self, at: Vector) -> str:
        return ", ".join(f"{name} {count}" for name, count in zip(self._history.sources, at, strict=True))

    def _prefix(self, table: str, source: int, count: int) -> Bag:
        """The table after so many units of its source; each is the one before and one unit more."""
        if (table, count) not in self._prefixes:
            if count == 0:
                found = self._history.initial.get(table, {})
            else:
                found = plus(self._prefix(table, source, count - 1), self._units[source][count - 1].delta(table))
            self._prefixes[table, count] = found
        return self._prefixes[table, count]


def _home(history: History) -> Mapping[str, int]:
    return {one.table: history.sources.index(one.source) for one in history.view.occurrences}


def _parts(units: list[tuple[HistoryUnit, ...]]) -> dict[str, list[tuple[int, int]]]:
    """Per global transaction its sources, and the number of its unit there."""
    found: dict[str, list[tuple[int, int]]] = {}
    for source, own in enumerate(units):
        for number, unit in enumerate(own, start=1):
            if unit.transaction is not None:
                found.setdefault(unit.transaction, []).append((source, number))
    return found


def _by_csn(history: History) -> Mapping[int, Vector] | None:
    """The vector of each csn, in order, if all units have csns; that of csn 0 reflects nothing."""
    csns = [unit.csn for unit in history.units]
    if not csns or any(csn is None for csn in csns):
        return None
    for name in history.sources:
        own = [unit.csn or 0 for unit in history.by_source[name]]
        if own != sorted(own):
            raise UsageError(f"Units of source '{name}' are not in the order of their csns.")
    at = [0] * len(history.sources)
    way = {0: tuple(at)}
    for unit in sorted(history.units, key=lambda unit: unit.csn or 0):
        at[history.sources.index(unit.source)] += 1
        way[unit.csn or 0] = tuple(at)
    return way


def _moved(at: Vector, parts: Iterable[tuple[int, int]]) -> Vector:
    found = list(at)
    for source, number in parts:
        found[source] = number
    return tuple(found)
