"""Rolling propagation over simulated tables: random histories, the printed algorithm's failure, and query counts.

Law: Salem et al., *How To Roll a Join*, definition 4.2, at every csn up to the mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from rollview.compensate.rolling import CopiedRolling, Rolling, propagate
from rollview.compensate.timed import PropagationQuery, TimedChange, TimedDelta, TimedTables, rolled
from rollview.consistency.bags import Row
from rollview.consistency.join_view import JoinView, Occurrence, natural
from rollview.core.interval import Interval


@dataclass(frozen=True, slots=True)
class ExecutedQuery:
    """A propagation query, when it was executed, and how many rows it gave."""

    query: PropagationQuery
    seen: int
    rows: int


@dataclass
class Propagating:
    """Executes queries on tables that move on: ``now`` is their csn, and grows by up to ``pace`` with each query."""

    tables: TimedTables
    now: int
    random: Random | None = None
    pace: int = 1
    executed: list[ExecutedQuery] = field(default_factory=list)
    delta: dict[tuple[int, Row], int] = field(default_factory=dict)

    def execute(self, query: PropagationQuery) -> int:
        if self.random is not None:
            self.now += self.random.randint(0, self.pace)
        found = self.tables.evaluate(query, [self.now] * len(query.parts))
        self.executed.append(ExecutedQuery(query, self.now, len(found)))
        self.add(found)
        return self.now

    def add(self, found: TimedDelta) -> None:
        for key, count in found.items():
            self.delta[key] = self.delta.get(key, 0) + count

    def wrong_csns(self, mark: int) -> list[int]:
        """Csns up to the mark at which the delta does not give the view."""
        first = self.tables.at(0)
        return [csn for csn in range(mark + 1) if rolled(first, self.delta, csn) != self.tables.at(csn)]


def random_tables(random: Random, tables: int, commits: int, rates: Sequence[int] | None = None) -> TimedTables:
    """A chain of tables that change at these rates, one commit per csn."""
    occurrences = tuple(
        Occurrence(f"R{i}", (f"a{i}", f"v{i}", f"v{i + 1}"), (), "x", f"R{i}") for i in range(1, tables + 1)
    )
    names = [one.table for one in occurrences]
    changes = [TimedChange(name, 0, _row(random), 1) for name in names for _ in range(2)]
    present = {name: [one.row for one in changes if one.table == name] for name in names}
    for csn in range(1, commits + 1):
        name = random.choices(names, rates)[0]
        for _ in range(random.randint(1, 2)):
            changes.append(_change(random, name, csn, present[name]))
    return TimedTables(JoinView(occurrences, tuple(f"a{i}" for i in range(1, tables + 1))), tuple(changes))


def _change(random: Random, name: str, csn: int, present: list[Row]) -> TimedChange:
    if present and random.random() < 0.4:
        return TimedChange(name, csn, present.pop(random.randrange(len(present))), -1)
    present.append(_row(random))
    return TimedChange(name, csn, present[-1], 1)


def _row(random: Random) -> Row:
    return (random.randrange(3), random.randrange(2), random.randrange(2))


def run_propagate(tables: TimedTables, through: int, step: int, random: Random | None = None) -> Propagating:
    """Propagate in equal steps; queries are executed at or behind the end of each."""
    run = Propagating(tables, 0, random)
    for after in range(0, through, step):
        end = min(after + step, through)
        run.now = max(run.now, end)
        propagate(run.execute, len(tables.view.occurrences), Interval(after, end))
    return run


def run_rolling(
    tables: TimedTables, through: int, steps: Sequence[int], random: Random | None = None, *, printed: bool = False
) -> tuple[Propagating, Rolling]:
    """RollingPropagate with an interval per table, until all have reached ``through``."""
    run = Propagating(tables, 0, random)
    rolling = Rolling(len(steps), run.execute, printed)
    while min(rolling.forward) < through:
        place = rolling.next_table
        end = min(rolling.forward[place] + steps[place], through)
        run.now = max(run.now, end)
        rolling.step(place, end)
    return run, rolling


def run_copied(tables: TimedTables, through: int, steps: Sequence[int], random: Random) -> tuple[Propagating, int]:
    """Tables move in any order; those that lead do not wait."""
    run, rolling = Propagating(tables, 0), CopiedRolling(len(steps))
    while min(rolling.forward) < through:
        place = random.choice([one for one in range(len(steps)) if rolling.forward[one] < through])
        interval, others = rolling.step(place, min(rolling.forward[place] + steps[place], through))
        run.add(tables.evaluate_copied(place, interval, others))
        assert not run.wrong_csns(rolling.mark)
    return run, rolling.mark


def failing_tables() -> TimedTables:
    """One row each into R1, R2, R3 at csns 1, 2, 3."""
    view = natural("R1(ab)@x ⋈ R2(bc)@x ⋈ R3(cd)@x")
    rows = [("R1", 1, (1, 2)), ("R2", 2, (2, 3)), ("R3", 3, (3, 4))]
    return TimedTables(view, tuple(TimedChange(table, csn, row, 1) for table, csn, row in rows))


def run_failing(*, printed: bool) -> Propagating:
    """R1 over (0, 1] seen at 2; then R2 and R3 over (0, 3] and R1 over (1, 3], all seen at 3."""
    run = Propagating(failing_tables(), 2)
    rolling = Rolling(3, run.execute, printed)
    rolling.step(0, 1)
    run.now = 3
    for place in (1, 2, 0):
        rolling.step(place, 3)
    return run
