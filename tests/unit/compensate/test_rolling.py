"""How To Roll a Join: at every csn up to the mark, and how many queries it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from rollview.compensate.pacing import IntervalWidth, TooManyRowsError, propagate_to, roll_to
from rollview.compensate.rolling import CopiedRolling, Rolling, all_combinations, compute_delta, one_for_each
from rollview.compensate.timed import PropagationQuery, TimedChange, TimedTables, rolled
from rollview.consistency.bags import Row
from rollview.core.interval import Interval
from rollview.lab.figures import count_queries, count_skewed, run_timestamps
from rollview.lab.propagation import Propagating, random_tables, run_copied, run_failing, run_propagate, run_rolling

TABLES = pytest.mark.parametrize("tables", [2, 3, 4])
HISTORIES = {2: 40, 3: 25, 4: 6}


@TABLES
def test_propagate_is_right_at_every_csn(tables: int) -> None:
    for seed in range(HISTORIES[tables]):
        random = Random(seed)
        history = random_tables(random, tables, 8)
        assert run_propagate(history, 6, random.randint(1, 4), random).wrong_csns(6) == []


@TABLES
def test_rolling_is_right_at_every_csn_up_to_its_mark_after_every_step(tables: int) -> None:
    for seed in range(HISTORIES[tables]):
        random = Random(seed)
        history = random_tables(random, tables, 8)
        run = Propagating(history, 0, random)
        rolling = Rolling(tables, run.execute)
        while min(rolling.forward) < 6:
            place = rolling.next_table
            end = min(rolling.forward[place] + random.randint(1, 4), 6)
            run.now = max(run.now, end)
            rolling.step(place, end)
            assert run.wrong_csns(rolling.mark) == []


@TABLES
def test_tables_may_go_on_in_any_order_and_in_another_process(tables: int) -> None:
    """Only how far they are and which queries are open is known of what was before."""
    for seed in range(HISTORIES[tables]):
        random = Random(seed)
        run = Propagating(random_tables(random, tables, 8), 0, random)
        rolling = Rolling(tables, run.execute)
        while min(rolling.forward) < 6:
            place = random.choice([one for one in range(tables) if rolling.forward[one] < 6])
            end = min(rolling.forward[place] + random.randint(1, 4), 6)
            run.now = max(run.now, end)
            rolling = Rolling(tables, run.execute, forward=rolling.forward, queries=rolling.queries)
            rolling.step(place, end)
            assert run.wrong_csns(rolling.mark) == []


@TABLES
def test_no_query_is_executed_over_an_empty_interval(tables: int) -> None:
    """Most choices of lower tables' queries have counted nothing in common."""
    for seed in range(5):
        random = Random(seed)
        run, _ = run_rolling(random_tables(random, tables, 8), 6, [random.randint(1, 4) for _ in range(tables)], random)
        assert all(part is None or part for one in run.executed for part in one.query.parts)


def test_the_mark_moves() -> None:
    history = random_tables(Random(0), 2, 30)
    _, rolling = run_rolling(history, 20, [3, 5], Random(0))
    assert rolling.mark >= 15


def test_rolling_as_printed_is_right_for_two_tables_and_wrong_for_three() -> None:
    wrong = dict.fromkeys((2, 3), 0)
    for tables in wrong:
        for seed in range(60):
            random = Random(seed)
            history = random_tables(random, tables, 8)
            steps = [random.randint(1, 5) for _ in range(tables)]
            run, rolling = run_rolling(history, 6, steps, Random(seed), printed=True)
            wrong[tables] += bool(run.wrong_csns(rolling.mark))
    assert wrong[2] == 0
    assert wrong[3] > 0


def test_the_printed_algorithm_fails_on_three_inserts() -> None:
    row = (1, 2, 3, 4)
    printed = {key: count for key, count in run_failing(printed=True).delta.items() if count}
    right = {key: count for key, count in run_failing(printed=False).delta.items() if count}
    assert printed == {(1, row): -1, (3, row): 1}
    assert right == {(3, row): 1}


def test_minimum_csns_net_to_the_later_insert() -> None:
    """x into R at a, y into S at b: +1 at a, +1 at b, −1 at a."""
    run, mark = run_timestamps()
    given = []
    for one in run.executed:
        found = run.tables.evaluate(one.query, [one.seen] * 2)
        given += [(csn, count) for (csn, _), count in found.items()]
    assert given == [(1, 1), (2, 1), (1, -1)]
    assert {csn: count for (csn, _), count in run.delta.items() if count} == {2: 1}
    assert run.wrong_csns(mark) == []


@pytest.mark.parametrize(("tables", "first", "second", "third"), [(2, 3, 2, 4), (3, 7, 3, 15), (4, 15, 4, 64)])
def test_query_counts(tables: int, first: int, second: int, third: int) -> None:
    found = count_queries(tables)
    assert (found.combinations, found.one_each, found.compute_delta) == (first, second, third)
    assert first == 2**tables - 1


@TABLES
def test_both_equations_give_the_change_over_an_interval(tables: int) -> None:
    for seed in range(10):
        history = random_tables(Random(seed), tables, 5)
        interval = Interval(1, 4)
        for queries in (
            [(query, (4,) * tables) for query in all_combinations(tables, interval)],
            one_for_each(tables, interval),
        ):
            delta: dict[tuple[int, tuple[object, ...]], int] = {}
            for query, seen in queries:
                for (_, row), count in history.evaluate(query, seen).items():
                    delta[4, row] = delta.get((4, row), 0) + count
            assert rolled(history.at(1), delta, 4) == history.at(4)


@TABLES
def test_copied_tables_need_no_compensation(tables: int) -> None:
    """Boxes are disjoint, in whatever order tables move; checked after every step."""
    for seed in range(20):
        random = Random(seed)
        history = random_tables(random, tables, 8)
        run, mark = run_copied(history, 6, [random.randint(1, 4) for _ in range(tables)], random)
        assert mark == 6
        assert run.wrong_csns(6) == []


def test_boxes_of_copied_tables_never_overlap() -> None:
    random, rolling = Random(3), CopiedRolling(3)
    points: dict[tuple[int, ...], int] = {}
    while min(rolling.forward) < 5:
        place = random.choice([one for one in range(3) if rolling.forward[one] < 5])
        interval, others = rolling.step(place, min(rolling.forward[place] + random.randint(1, 3), 5))
        ranges = [range(1, at + 1) for at in others]
        ranges[place] = range(interval.after + 1, interval.through + 1)
        for a in ranges[0]:
            for b in ranges[1]:
                for c in ranges[2]:
                    points[a, b, c] = points.get((a, b, c), 0) + 1
    assert set(points.values()) == {1}
    assert len(points) == 125


def test_a_query_is_as_large_as_its_interval() -> None:
    """Twice the interval, twice the changes; the table itself does not count."""
    view = random_tables(Random(0), 2, 0).view
    rows = [TimedChange("R1", csn, (csn, 0, 0), 1) for csn in range(1, 41)]
    history = TimedTables(view, (*rows, TimedChange("R2", 0, (0, 0, 0), 1)))
    sizes = []
    for length in (10, 20, 40):
        run = Propagating(history, 40)
        compute_delta(run.execute, PropagationQuery(1, (None, None)), [0, 0], length)
        sizes.append(run.executed[0].rows)
    assert sizes == [10, 20, 40]


def test_rolling_takes_fewer_queries_than_propagate_where_tables_change_at_different_rates() -> None:
    two, three = count_skewed(2), count_skewed(3)
    assert two.rolling < two.propagate
    assert two.rolling_needed < two.propagate_needed
    # From three tables on, as long as boxes are not merged, only if empty intervals count too.
    assert three.rolling < three.propagate
    assert three.rolling_needed > three.propagate_needed


@dataclass
class Paced(Propagating):
    """Queries that may have so many rows; what an interval gave counts once it is kept."""

    sizes: list[int] = field(default_factory=list)
    _before: dict[tuple[int, Row], int] = field(default_factory=dict)
    _most: int | None = None
    _first: int = 0

    def begin(self, most: int | None) -> None:
        self._most, self._first, self._before = most, len(self.executed), dict(self.delta)

    def execute(self, query: PropagationQuery) -> int:
        seen = super().execute(query)
        if self._most is not None and self.executed[-1].rows > self._most:
            self.delta = self._before
            raise TooManyRowsError
        return seen

    def keep(self) -> int:
        self.sizes += [one.rows for one in self.executed[self._first :]]
        return max((one.rows for one in self.executed[self._first :]), default=0)


@pytest.mark.parametrize("tables", [2, 3])
@pytest.mark.parametrize("rolls", [False, True])
def test_up_to_a_csn_in_intervals_that_halve_and_double(tables: int, rolls: bool) -> None:
    """Tables move on between queries, so that they see csns beyond the goal."""
    widest = 0
    histories, goal = {2: (20, 12), 3: (4, 6)}[tables]
    for seed in range(histories):
        random = Random(seed)
        run = Paced(random_tables(random, tables, 30), goal, random)
        widths = [IntervalWidth(6, csns=1) for _ in range(tables)]
        if rolls:
            rolling = Rolling(tables, run.execute, begin=0)
            roll_to(run, rolling, goal, widths)
            assert rolling.mark >= goal
        else:
            propagate_to(run, tables, Interval(0, goal), widths[0])
        assert run.wrong_csns(goal) == []
        widest = max(widest, *(one.csns for one in widths))
    assert widest > 1, "they never doubled"


def test_an_interval_whose_queries_are_too_large_is_halved_unless_it_is_one_csn() -> None:
    class Counting:
        def __init__(self) -> None:
            self.most: list[int | None] = []

        def begin(self, most: int | None) -> None:
            self.most.append(most)

        def execute(self, query: PropagationQuery) -> int:
            raise AssertionError

        def keep(self) -> int:
            return 5

    ends: list[int] = []

    def step(end: int) -> None:
        ends.append(end)
        if end > 3 and queries.most[-1] is not None:
            raise TooManyRowsError

    queries, width = Counting(), IntervalWidth(8, csns=16)
    assert width.attempt(queries, 2, 30, step) == 3
    assert ends == [18, 10, 6, 4, 3]
    assert queries.most == [8, 8, 8, 8, None]
    assert width.csns == 1, "5 rows are more than half of 8: it does not grow"
    assert width.attempt(queries, 3, 30, step) == 4, "one csn is done whatever it has"


def test_a_query_that_saw_no_more_than_all_have_come_to_is_compensated() -> None:
    """The mark waits for those that saw more, and not for the last table's: nobody compensates for them later."""
    asked: list[PropagationQuery] = []
    saw = {0: 3, 1: 5}

    def execute(query: PropagationQuery) -> int:
        asked.append(query)
        return saw[rolling.next_table]

    rolling = Rolling(2, execute)
    rolling.step(0, 3)
    assert (rolling.mark, rolling.latest) == (0, 3)
    rolling.step(1, 3)
    assert (rolling.mark, rolling.latest) == (3, 3)
    saw[0] = 9
    rolling.step(0, 6)
    rolling.step(1, 6)
    assert (rolling.forward, rolling.mark, rolling.latest) == ([6, 6], 3, 9)
    assert all(part is None or part.after < part.through for query in asked for part in query.parts), "empty"


def test_what_queries_saw_beyond_the_goal_is_propagated_too() -> None:
    class SawMore:
        executed = 0

        def begin(self, most: int | None) -> None: ...

        def keep(self) -> int:
            return 0

        def execute(self, query: PropagationQuery) -> int:
            self.executed += 1
            assert self.executed < 100, "it does not end"
            return 8

    queries = SawMore()
    rolling = Rolling(2, queries.execute)
    roll_to(queries, rolling, 5, [IntervalWidth(8) for _ in range(2)])
    assert (rolling.mark, rolling.forward) == (8, [8, 8])


@pytest.mark.parametrize(("rows", "csns"), [(4, 32), (5, 16)])
def test_an_interval_whose_queries_had_at_most_half_of_what_they_may_is_doubled(rows: int, csns: int) -> None:
    class Sized:
        def begin(self, most: int | None) -> None: ...

        def execute(self, query: PropagationQuery) -> int:
            raise AssertionError

        def keep(self) -> int:
            return rows

    width = IntervalWidth(8, csns=16)
    assert width.attempt(Sized(), 0, 30, lambda end: None) == 16
    assert width.csns == csns


class Sized:
    """Queries of so many rows."""

    def __init__(self, rows: int) -> None:
        self.rows, self.most = rows, list[int | None]()

    def begin(self, most: int | None) -> None:
        self.most.append(most)

    def execute(self, query: PropagationQuery) -> int:
        return 0

    def keep(self) -> int:
        return self.rows


@pytest.mark.parametrize(("rows", "csns"), [(6, 4), (5, 8), (0, 8)])
def test_an_interval_is_doubled_after_queries_of_at_most_half_of_the_rows(rows: int, csns: int) -> None:
    width = IntervalWidth(10, csns=4)
    assert width.attempt(Sized(rows), 3, 100, lambda end: None) == 7
    assert width.csns == csns


@pytest.mark.parametrize(("csns", "most"), [(1, None), (2, 10)])
def test_only_one_csn_may_have_any_number_of_rows(csns: int, most: int | None) -> None:
    queries = Sized(0)
    IntervalWidth(10, csns).attempt(queries, 3, 100, lambda end: None)
    assert queries.most == [most]
