"""How To Roll a Join in figures: the examples with pictures, and how many queries each way takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from rollview.compensate.rolling import all_combinations, compute_delta, one_for_each
from rollview.compensate.timed import PropagationQuery, TimedChange, TimedTables
from rollview.consistency.bags import shown
from rollview.consistency.join_view import natural
from rollview.core.interval import Interval
from rollview.lab.propagation import Propagating, random_tables, run_failing, run_propagate, run_rolling

PAPER = "Salem et al., How To Roll a Join"
_TWO = natural("R1(ab)@x ⋈ R2(bc)@x")


@dataclass(frozen=True, slots=True)
class Figure:
    """``run`` gives what was executed, and the csn up to which it is meant to be complete."""

    name: str
    title: str
    paper: str
    run: Callable[[], tuple[Propagating, int]]


@dataclass(frozen=True, slots=True)
class QueryCount:
    """Queries for one interval of n tables: equation 1, equation 2 and ComputeDelta."""

    tables: int
    combinations: int
    one_each: int
    compute_delta: int


@dataclass(frozen=True, slots=True)
class SkewedCount:
    """Queries of Propagate and of rolling over the same history, ``_needed`` those whose changes are not empty; the
    largest intervals that one query took changes of."""

    tables: int
    propagate: int
    propagate_needed: int
    rolling: int
    rolling_needed: int


def two_inserts() -> TimedTables:
    """x into R at csn 1, y into S at csn 2."""
    changes = (TimedChange("R1", 1, ("x", 0), 1), TimedChange("R2", 2, (0, "y"), 1))
    return TimedTables(_TWO, changes)


def run_timestamps() -> tuple[Propagating, int]:
    """V over (0, 3], every query later than the one before."""
    run = Propagating(two_inserts(), 3, Random(0), pace=0)
    compute_delta(_later(run), PropagationQuery(1, (None, None)), [0, 0], 3)
    return run, 3


def _later(run: Propagating) -> Callable[[PropagationQuery], int]:
    """Every query is executed one csn later than the one before."""

    def execute(query: PropagationQuery) -> int:
        run.now += 1
        return run.execute(query)

    return execute


def _figure_7() -> tuple[Propagating, int]:
    run = Propagating(random_tables(Random(8), 2, 8), 3)
    compute_delta(_later(run), PropagationQuery(1, (None, None)), [0, 0], 3)
    return run, 3


def _figure_8() -> tuple[Propagating, int]:
    return run_propagate(random_tables(Random(8), 2, 12), 6, 3, Random(1)), 6


def _figure_9() -> tuple[Propagating, int]:
    run, rolling = run_rolling(random_tables(Random(9), 2, 12), 6, (2, 3), Random(1))
    return run, rolling.mark


FIGURES: tuple[Figure, ...] = (
    Figure(
        "timestamps",
        "two inserts: the csn of a row is the minimum, and compensation makes it right",
        PAPER,
        run_timestamps,
    ),
    Figure("compute-delta", "figure 7: one interval, forward queries and compensations", PAPER, _figure_7),
    Figure("propagate", "figure 8: interval after interval", PAPER, _figure_8),
    Figure("rolling", "figure 9: an interval of its own for each table", PAPER, _figure_9),
    Figure(
        "rolling-printed",
        "figure 10 as printed: three tables, and it is wrong",
        PAPER,
        lambda: (run_failing(printed=True), 3),
    ),
    Figure(
        "rolling-right",
        "the same with lower tables' queries seen when they were executed",
        "rollview",
        lambda: (run_failing(printed=False), 3),
    ),
)


def told(run: Propagating, mark: int) -> list[str]:
    """The queries in order, what they gave, and where it is not the view."""
    lines = []
    for executed in run.executed:
        sign = "+" if executed.query.sign > 0 else "−"
        parts = " ⋈ ".join(f"R{i + 1}{part or ''}" for i, part in enumerate(executed.query.parts))
        rows = run.tables.evaluate(executed.query, [executed.seen] * len(executed.query.parts))
        given = ", ".join(f"{count:+d} {_row(row)} at {csn}" for (csn, row), count in sorted(rows.items(), key=str))
        lines.append(f"{sign} {parts} seen at {executed.seen}: {given or 'nothing'}")
    net = {key: count for key, count in run.delta.items() if count}
    given = ", ".join(f"{count:+d} {_row(row)} at {csn}" for (csn, row), count in sorted(net.items(), key=str))
    wrong = run.wrong_csns(mark)
    right = f"right at every csn up to {mark}" if not wrong else f"wrong at csn {', '.join(map(str, wrong))}"
    return [*lines, f"together: {given or 'nothing'}; {right}"]


def _row(row: tuple[object, ...]) -> str:
    return shown({row: 1})[1:-1]


def count_queries(tables: int) -> QueryCount:
    """Counted on a run whose queries all come later than intended, so that nothing is spared."""
    run = Propagating(random_tables(Random(tables), tables, 3), 2)
    compute_delta(_later(run), PropagationQuery(1, (None,) * tables), [0] * tables, 2)
    interval = Interval(0, 2)
    return QueryCount(
        tables, len(all_combinations(tables, interval)), len(one_for_each(tables, interval)), len(run.executed)
    )


def count_skewed(tables: int, commits: int = 60, hot: int = 5, cold: int = 30) -> SkewedCount:
    """The first table changes twenty times as often as the others; Propagate has to follow it with all of them."""
    history = random_tables(Random(tables), tables, commits + 20, [20, *[1] * (tables - 1)])
    every = run_propagate(history, commits, hot, Random(0))
    rolling, _ = run_rolling(history, commits, [hot, *[cold] * (tables - 1)], Random(0))
    return SkewedCount(tables, len(every.executed), _needed(every), len(rolling.executed), _needed(rolling))


def _needed(run: Propagating) -> int:
    return sum(
        all(part is None or run.tables.has_changes(place, part) for place, part in enumerate(one.query.parts))
        for one in run.executed
    )
