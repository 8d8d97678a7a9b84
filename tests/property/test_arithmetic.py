"""The arithmetic of view deltas, each promise with its figure.

The number in a test's name is the failure of other systems that it stands for, in the order of the reliability plan.
39, 41 and 42 are in ``tests/spark/oracle/test_arithmetic.py``, because their rules are Spark's own.
``make faults`` takes the sizes of the plan.
"""

from __future__ import annotations

import math
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from rollview.algebra.resolve import Known
from rollview.algebra.view import Mode
from rollview.core.schema import Column, Schema
from tests.property.duck import Duck, Texts, View, in_duckdb, quoted
from tests.property.histories import Transaction, random_history
from tests.property.schemas import BAGS
from tests.property.test_timed_delta import engine, equal_at_every_csn
from tests.sizes import FULL, times

KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
JOIN_HISTORIES = times(48, full=2_000)
CYCLES = 500 if FULL else 100
EXTREMES = 10_000 if FULL else 1_000
CHURNED = 1_000_000 if FULL else 60_000
GROUPED = Known("r", Schema((Column("g", "int"), Column("x", "int"))))


def kept(duck: Duck, name: str, query: str) -> View:
    return View(duck, name, duck.compile(name, query), 0)


def histories(count: int) -> list[Transaction]:
    return [one for seed in range(count) for one in random_history(Random(seed), BAGS, 8)]


def test_34_three_in_ten_values_are_null_and_null_keys_meet_once() -> None:
    values = [v for one in histories(100) for rows in one.values() for row, n in rows if n > 0 for v in row]
    assert 0.27 <= sum(value is None for value in values) / len(values) <= 0.33
    duck = Duck(BAGS[:2])
    for csn in range(1, 9):
        come = [((None, None, csn, "a"), 1), ((1, None, csn % 3, None), 1)]
        gone = [((None, None, csn - 2, "a"), -1)] if csn > 2 else []
        duck.commit(csn, {"r": come + gone, "s": [((None, None, "a"), 1)]})
    queries = {
        "groups": "SELECT k, g, COUNT(*) AS n, SUM(x) AS x FROM r GROUP BY k, g",
        "distinct_": "SELECT DISTINCT k, g, w FROM r",
        "equal": "SELECT r.x, s.w FROM r LEFT JOIN s ON r.k = s.k",
        "null_safe": "SELECT r.x, s.w FROM r FULL JOIN s ON r.k <=> s.k",
    }
    for name, query in queries.items():
        view = kept(duck, name, query)
        for through in (1, 4, 8):
            view.propagate(through)
        equal_at_every_csn(view, 0, 8, query)


@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", KINDS)
def test_35_every_pair_of_join_kinds_over_three_tables(first: str, second: str) -> None:
    """2,000 random histories over the sixteen pairs, with duplicates and NULL, and a table joined with itself."""
    tables = BAGS[:3]
    duck = engine(tables)
    joined = f"r a {first} s b ON a.k = b.k {second} t c ON {{}}.k = c.k"
    itself = f"r a {first} r b ON a.k = b.g {second} r c ON b.g = c.k"
    columns, own = "a.x, b.w, c.g, c.k", "a.k AS ak, b.x, c.w"
    queries = (
        f"SELECT {columns} FROM {joined.format('a')}",
        f"SELECT {columns} FROM {joined.format('b')}",
        f"SELECT {own} FROM {itself}",
    )
    plans = [(query, duck.compile("v", query), Texts()) for query in queries]
    for seed in range(JOIN_HISTORIES // len(KINDS) ** 2):
        query, plan, texts = plans[seed % len(plans)]
        assert plan.mode is not Mode.WHOLE
        random = Random(f"{first} {second} {seed}")
        duck.reset()
        for csn, transaction in enumerate(random_history(random, tables, 6), 1):
            duck.commit(csn, transaction)
        view = View(duck, "v", plan, 1, texts)
        while view.high_water_mark < 6:
            view.propagate(min(6, view.high_water_mark + random.randint(1, 3)))
        equal_at_every_csn(view, 1, 6, f"seed {seed}, {query}")


def test_36_half_of_the_rows_are_duplicates_and_copies_leave_one_by_one() -> None:
    inserted = [(name, repr(row)) for one in histories(100) for name, rows in one.items() for row, n in rows if n > 0]
    assert 1 - len(set(inserted)) / len(inserted) >= 0.5
    duck = Duck((GROUPED,))
    for csn in range(1, 11):
        duck.commit(csn, {"r": [((1, 1), 1 if csn <= 5 else -1)] * (csn if csn <= 5 else 11 - csn)})
    views = [
        kept(duck, "rows", "SELECT g, x FROM r"),
        kept(duck, "distinct_", "SELECT DISTINCT g FROM r"),
        kept(duck, "pairs", "SELECT a.x FROM r a JOIN r b ON a.g = b.g"),
    ]
    for view in views:
        for through in (2, 3, 7, 10):
            view.propagate(through)
        equal_at_every_csn(view, 0, 10, view.name)
        assert view.at(10) == Counter()


def test_37_a_group_that_is_emptied_and_refilled_500_times() -> None:
    """A sum of nothing is NULL and not 0; a group without rows is not there."""
    random, duck, held = Random(37), Duck((GROUPED,)), []
    calls = "COUNT(*) AS n, COUNT(x) AS m, SUM(x) AS s, AVG(x) AS a, MAX(x) AS h"
    views = [
        kept(duck, "groups", f"SELECT g, {calls} FROM r GROUP BY g"),
        kept(duck, "total", f"SELECT {calls} FROM r"),
        kept(duck, "linear", "SELECT g, COUNT(x) AS m, SUM(x) AS s FROM r GROUP BY g HAVING COUNT(*) > 0"),
    ]
    for cycle in range(CYCLES):
        come = [(random.randint(0, 1), random.choice([None, 0, 1, -1])) for _ in range(random.randint(1, 4))]
        duck.commit(2 * cycle + 1, {"r": [(row, 1) for row in come]})
        held, gone = come, held
        duck.commit(2 * cycle + 2, {"r": [(row, -1) for row in (*gone, *held)]})
        held = []
        if random.random() < 0.3 or cycle + 1 == CYCLES:
            for view in views:
                view.propagate(2 * cycle + 2)
    for view in views:
        for csn in range(0, 2 * CYCLES + 1, 1 if FULL else 7):
            assert view.at(csn) == view.recompute(csn), f"{view.name} at {csn}"
        assert view.at(2 * CYCLES) == view.recompute(2 * CYCLES)


def test_38_the_extreme_is_deleted_10000_times() -> None:
    random, duck = Random(38), Duck((GROUPED,))
    held = [(g, random.randint(0, 60)) for g in range(3) for _ in range(8)]
    duck.commit(1, {"r": [(row, 1) for row in held]})
    calls = "MIN(x) AS l, MAX(x) AS h, COUNT(DISTINCT x) AS d"
    views = [
        kept(duck, "groups", f"SELECT g, {calls} FROM r GROUP BY g"),
        kept(duck, "total", f"SELECT {calls} FROM r"),
    ]
    for step in range(2, EXTREMES + 2):
        group = [row for row in held if row[0] == step % 3]
        extreme = (max if step % 2 else min)(group)
        held.remove(extreme)
        held.append((extreme[0], random.randint(0, 60)))
        duck.commit(step, {"r": [(extreme, -1), (held[-1], 1)]})
        if step % 50 == 0 or step == EXTREMES + 1:
            for view in views:
                view.propagate(step)
                assert view.at(step) == view.recompute(step), f"{view.name} at {step}"


def test_40_a_million_changes_with_1e16_among_them_leave_no_error() -> None:
    """While it is there: within eps · (rows + changes) · Σ|x|. When all of it has left: to the last digit."""
    table = Known("r", Schema((Column("g", "int"), Column("x", "double"))))
    random, duck, commits = Random(40), Duck((table,)), 20
    view = kept(duck, "v", "SELECT g, SUM(x) AS s, AVG(x) AS a FROM r GROUP BY g")
    small: dict[int, list[float]] = {0: [], 1: []}
    huge: list[tuple[int, float]] = []
    done = 0
    for csn in range(1, commits + 1):
        come = [
            (random.randint(0, 1), random.choice([0.1, 1 / 3, -2.5e-9, 7e5])) for _ in range(CHURNED // commits // 2)
        ]
        gone = huge if csn % 2 == 0 else []
        huge = [] if gone else [(random.randint(0, 1), random.choice([1e16, -1e16, 3e17])) for _ in come]
        wild = [(0, math.nan), (1, math.inf), (0, -math.inf), (1, 1e300)] if csn % 2 else []
        past = [(0, math.nan), (1, math.inf), (0, -math.inf), (1, 1e300)] if gone else []
        fresh = come + huge + wild
        append(duck, csn, fresh, gone + past)
        done += len(fresh) + len(gone) + len(past)
        for group, value in come:
            small[group].append(value)
        view.propagate(csn)
        assert sums(view).keys() == small.keys()
        if csn % 2 == 0:
            for group, (total, mean) in sums(view).items():
                exact = math.fsum(small[group])
                assert math.isclose(total, exact, rel_tol=4 * 2**-52), (csn, group, total, exact)
                assert math.isclose(mean, exact / len(small[group]), rel_tol=8 * 2**-52)
        else:
            assert math.isnan(sums(view)[0][0])
            assert sums(view)[1][0] == math.inf
    assert done >= 0.9 * CHURNED


def append(duck: Duck, csn: int, come: list[tuple[int, float]], gone: list[tuple[int, float]]) -> None:
    """As ``commit``, for many rows."""
    rows = come + gone
    table = pa.table(
        {
            "g": pa.array([row[0] for row in rows], pa.int32()),
            "x": pa.array([row[1] for row in rows], pa.float64()),
            "n": pa.array([1] * len(come) + [-1] * len(gone), pa.int64()),
        }
    )
    duck.db.register("appended", table)
    duck.db.execute(f"INSERT INTO {quoted('r@changes')} SELECT g, x, n, {csn} FROM appended")
    duck.db.unregister("appended")
    duck.transactions[csn] = {"r": [(row, 1) for row in come[:1]] + [(row, -1) for row in gone[:1]]}


def sums(view: View) -> dict[int, tuple[Any, Any]]:
    """What the view shows of the groups it holds now, to the last digit."""
    view._hold()
    return {row[0]: row[1:] for row in view.duck.run(in_duckdb(view.plan.visible(view._groups)))}
