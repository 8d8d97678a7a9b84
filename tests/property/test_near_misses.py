"""Views that only seem to hold what is asked for are not used: each kind of near miss, with random parts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from rollview.algebra.view import Mode
from rollview.matching import NoMatch, flatten, rewritings
from tests.property.duck import Duck
from tests.property.test_matching import answering, engine
from tests.sizes import times

EACH = times(3, full=30)
"""Of ten kinds: 30, or 300."""

Texts = tuple[str, str]
"""A view, and a query that is near it."""


def _numbers(random: Random) -> tuple[int, int]:
    return random.randint(0, 4), random.randint(5, 9)


def a_wider_condition(random: Random) -> Texts:
    low, high = _numbers(random)
    column = random.choice(("a", "b", "x"))
    shown = random.choice(("a, b", "a", "x, b", "a, b, x"))
    return f"SELECT {shown} FROM o WHERE {column} > {high}", f"SELECT {shown} FROM o WHERE {column} > {low}"


def one_of_two_conditions(random: Random) -> Texts:
    low, high = _numbers(random)
    view = f"SELECT a, b FROM o WHERE x > {high} OR a = {low}"
    return view, random.choice((f"SELECT a, b FROM o WHERE x > {low}", "SELECT a, b FROM o"))


def a_parent_that_may_be_missing(random: Random) -> Texts:
    shown = random.choice(("c.id", "c.x", "c.id, c.x"))
    return f"SELECT {shown} FROM c JOIN p ON c.pid = p.id", f"SELECT {shown} FROM c"


def different_rows_for_all_rows(random: Random) -> Texts:
    column = random.choice(("x", "pid"))
    return f"SELECT DISTINCT {column} FROM c", f"SELECT {column} FROM c"


def groups_for_rows(random: Random) -> Texts:
    column = random.choice(("x", "pid"))
    return f"SELECT {column}, COUNT(*) AS n FROM c GROUP BY {column}", f"SELECT {column} FROM c"


def finer_groups(random: Random) -> Texts:
    key, other = random.choice((("x", "pid"), ("pid", "x"), ("x", "id"), ("pid", "id")))
    call = random.choice(("COUNT(*)", "SUM(id)", "MIN(x)"))
    view = f"SELECT {key}, {call} AS n FROM c WHERE x > {random.randint(0, 3)} GROUP BY {key}"
    return view, f"{view}, {other}"


def another_argument(random: Random) -> Texts:
    call = random.choice(("SUM", "AVG", "VAR_POP"))
    change = random.choice(("x * x", "x + id", "x % 2", "COALESCE(x, 1)"))
    return f"SELECT pid, {call}(x) AS s FROM c GROUP BY pid", f"SELECT pid, {call}({change}) AS s FROM c GROUP BY pid"


def different_values(random: Random) -> Texts:
    call = random.choice(("SUM", "COUNT"))
    view = f"SELECT pid, {call}(x) AS s, COUNT(*) AS n FROM c GROUP BY pid"
    return view, f"SELECT pid, {call}(DISTINCT x) AS s FROM c GROUP BY pid"


def a_condition_below_the_groups(random: Random) -> Texts:
    value = random.randint(0, 5)
    view = "SELECT pid, SUM(x) AS s, COUNT(*) AS n FROM c GROUP BY pid"
    condition = random.choice((f"x > {value}", f"id = {value}", f"x IS NULL OR pid = {value}"))
    return view, f"SELECT pid, SUM(x) AS s FROM c WHERE {condition} GROUP BY pid"


def another_join(random: Random) -> Texts:
    view = "SELECT t0.id, t1.b FROM c t0 JOIN o t1 ON t0.x = t1.a"
    other = random.choice(("t0.x = t1.b", "t0.pid = t1.a", "t0.x < t1.a", "t0.x = t1.x"))
    return view, view.replace("t0.x = t1.a", other)


KINDS: tuple[Callable[[Random], Texts], ...] = (
    a_wider_condition,
    one_of_two_conditions,
    a_parent_that_may_be_missing,
    different_rows_for_all_rows,
    groups_for_rows,
    finer_groups,
    another_argument,
    different_values,
    a_condition_below_the_groups,
    another_join,
)


def is_used(duck: Duck, view: str, query: str) -> bool:
    plan, wanted = duck.compile("v", view), duck.compile("q", query)
    assert plan.mode is not Mode.WHOLE
    assert wanted.outline.rel is not None
    try:
        return next(rewritings(flatten(wanted.outline.rel), answering(plan), remainder=False), None) is not None
    except NoMatch:
        return False


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_near_miss_is_not_used(kind: Callable[[Random], Texts]) -> None:
    texts = [kind(Random(seed)) for seed in range(EACH)]
    assert [pair for pair in texts if is_used(engine(), *pair)] == []


def test_the_same_view_is_used_for_its_own_text() -> None:
    """So that a miss says something: each of the views answers itself."""
    own = [kind(Random(seed))[0] for kind in KINDS for seed in range(3)]
    assert [view for view in own if not is_used(engine(), view, view)] == []
