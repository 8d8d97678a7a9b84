"""ComputeDelta, Propagate and RollingPropagate: Salem et al., *How To Roll a Join*, figures 4, 5 and 10.

Law: the view's delta over (0, mark] is a timed delta at every csn of it, whenever the queries were executed; the mark
is the smallest t_comp. ``Execute`` runs one query on tables as they are, adds its result to the view delta, and
returns the csn that it saw.

Figure 10 as printed is wrong from three tables on (``Rolling(printed=True)``): compensating for an earlier query of a
lower table, it lets the others be seen now, and what they gained since that query vanishes. Here, after the query of
table i over (x, y] at e, for every set of lower tables and every choice of one query of each, or of its future
(t_fwd, ∞] at ∞: each table j of the choice and i ranges over (x_j, min(y_j, the smallest e)], the tables outside are
seen at the smallest e, and the result counts with the sign (−1)^(tables + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import inf

from rollview.compensate.timed import Part, PropagationQuery
from rollview.core.interval import Interval

Execute = Callable[[PropagationQuery], int]
NO_CHANGES = 0
"""The csn that a query saw one of whose changes are none: whatever compensates for it is empty too."""


def all_combinations(tables: int, interval: Interval) -> list[PropagationQuery]:
    """Equation 1: one query for every set of tables; all of them see the tables at the end of the interval."""
    sets = (some for size in range(1, tables + 1) for some in combinations(range(tables), size))
    return [
        PropagationQuery(1 if len(some) % 2 else -1, tuple(interval if one in some else None for one in range(tables)))
        for some in sets
    ]


def one_for_each(tables: int, interval: Interval) -> list[tuple[PropagationQuery, tuple[int, ...]]]:
    """Equation 2: one query for each table; those before it are seen at the beginning, those behind it at the end."""
    begin, end = interval.after, interval.through
    return [
        (
            PropagationQuery(1, _put((None,) * tables, place, interval)),
            tuple(begin if one < place else end for one in range(tables)),
        )
        for place in range(tables)
    ]


def compute_delta(execute: Execute, query: PropagationQuery, old: Sequence[int], new: int) -> None:
    """What the query gains while its tables go from ``old``, each its own csn, to ``new``."""
    for place, part in enumerate(query.parts):
        if part is not None or old[place] >= new:
            continue
        asked = replace(query, parts=_put(query.parts, place, Interval(old[place], new)))
        seen = execute(asked)
        if asked.asks_tables:
            # Tables before this one should have been seen at their old csns, those behind it at the new one.
            intended = [at if one < place else new for one, at in enumerate(old)]
            compute_delta(execute, replace(asked, sign=-asked.sign), intended, seen)


def propagate(execute: Execute, tables: int, interval: Interval) -> None:
    """One step of Propagate: the view's delta over an interval."""
    view = PropagationQuery(1, (None,) * tables)
    compute_delta(execute, view, [interval.after] * tables, interval.through)


def execute_at(execute: Execute, query: PropagationQuery, at: int) -> None:
    """The query as it would have been at an earlier csn."""
    seen = execute(query)
    if query.asks_tables:
        compute_delta(execute, replace(query, sign=-query.sign), [at] * len(query.parts), seen)


@dataclass
class CopiedRolling:
    """Rolling where old states can be read: table i over (f_i, y] joins every other table j at f_j.

    Boxes never overlap, so nothing is compensated; a row's csn is the maximum of its rows' csns. A table without
    changes moves free.
    """

    tables: int
    forward: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.forward = [0] * self.tables

    @property
    def mark(self) -> int:
        return min(self.forward)

    def step(self, place: int, through: int) -> tuple[Interval, tuple[int, ...]]:
        """The interval of the table's changes, and where the others are to be read."""
        interval, others = Interval(self.forward[place], through), tuple(self.forward)
        self.forward[place] = through
        return interval, others


@dataclass(frozen=True, slots=True)
class ForwardQuery:
    """Changes over (after, through], executed at ``seen``; ends that lie in the future are infinite."""

    after: float
    through: float
    seen: float


@dataclass
class Rolling:
    """One process of rolling propagation. ``step`` makes the next query of a table; ``mark`` is what is complete.
    ``forward`` and ``queries`` are all that has to be known to go on later."""

    tables: int
    execute: Execute
    printed: bool = False
    begin: int = 0
    forward: list[int] = field(default_factory=list)
    queries: list[list[ForwardQuery]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.forward = self.forward or [self.begin] * self.tables
        self.queries = self.queries or [[] for _ in range(self.tables)]

    @property
    def mark(self) -> int:
        """Queries are kept until all that overlaps them is compensated: those seen behind the smallest t_fwd."""
        done = min(self.forward)
        begins = [one.after for own in self.queries for one in own]
        return int(min([done, *begins]))

    @property
    def latest(self) -> int:
        """The last csn that a query saw which is not compensated."""
        return int(max((one.seen for own in self.queries for one in own), default=self.mark))

    @property
    def next_table(self) -> int:
        return min(range(self.tables), key=lambda place: self.forward[place])

    def step(self, place: int, through: int) -> None:
        """Propagate the table's changes up to ``through``. Whichever it is, queries must see at least the csns that
        tables have come to."""
        begin = self.forward[place]
        parts = _put((None,) * self.tables, place, Interval(begin, through))
        seen = self.execute(PropagationQuery(1, parts))
        own = ForwardQuery(begin, through, seen)
        if self.printed:
            self._compensate_as_printed(place, own)
        else:
            self._compensate(place, own)
        if place < self.tables - 1:
            self.queries[place].append(own)
        self.forward[place] = through
        self.prune()

    def prune(self) -> None:
        """Forget queries that nothing overlaps any more."""
        done = min(self.forward)
        self.queries = [[one for one in own if one.seen > done] for own in self.queries]

    def _compensate(self, place: int, own: ForwardQuery) -> None:
        for chosen in self._choices(place):
            every = {**chosen, place: own}
            seen = min(query.seen for query in every.values())
            ranges = {one: _counted_by(query, seen) for one, query in every.items()}
            if any(part is None for part in ranges.values()):
                continue
            parts = tuple(ranges.get(one) for one in range(self.tables))
            sign = 1 if len(every) % 2 else -1
            execute_at(self.execute, PropagationQuery(sign, parts), int(seen))

    def _choices(self, place: int) -> Iterator[dict[int, ForwardQuery]]:
        """Non-empty sets of lower tables, with one query of each."""
        for size in range(1, place + 1):
            for some in combinations(range(place), size):
                for chosen in product(*(self._queries_and_future(one) for one in some)):
                    yield dict(zip(some, chosen, strict=True))

    def _queries_and_future(self, place: int) -> list[ForwardQuery]:
        return [*self.queries[place], ForwardQuery(self.forward[place], inf, inf)]

    def _compensate_as_printed(self, place: int, own: ForwardQuery) -> None:
        """Figure 10, with the sign that it loses and the t_fwd that it does not advance."""
        at, through, seen = int(own.after), int(own.through), int(own.seen)
        while at < through:
            later = [one.seen for lower in self.queries[:place] for one in lower if one.seen > at]
            end = int(min([through, *later]))
            old = [self._begin_as_printed(one, at) if one < place else seen for one in range(self.tables)]
            parts = _put((None,) * self.tables, place, Interval(at, end))
            compute_delta(self.execute, PropagationQuery(-1, parts), old, seen)
            at = end

    def _begin_as_printed(self, place: int, at: int) -> int:
        later = [one for one in self.queries[place] if one.seen > at]
        return int(min(later, key=lambda one: one.seen).after) if later else self.forward[place]


def _counted_by(query: ForwardQuery, seen: float) -> Interval | None:
    """The part of a query's changes that one executed at ``seen`` has counted too; nothing if there is none."""
    end = min(query.through, seen)
    return Interval(int(query.after), int(end)) if query.after < end else None


def _put(parts: tuple[Part, ...], place: int, part: Part) -> tuple[Part, ...]:
    return (*parts[:place], part, *parts[place + 1 :])
