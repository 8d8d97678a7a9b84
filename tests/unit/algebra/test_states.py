"""What a view may ever read besides changes is known from its definition; no term of any refresh reads more."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import pytest
from tests.golden import cases
from tests.property.duck import Duck
from tests.property.schemas import BAGS, HOSTILE, KEYED

from rollview.algebra.script import Motion
from rollview.algebra.states import states_read
from rollview.algebra.summary import GROUPS
from rollview.algebra.view import Mode, ViewPlan
from rollview.errors import RollviewError

GOLDEN = Path(cases.__file__).parent
MOTIONS = [Motion(False, False, False), Motion(True, False, False, True), Motion()]


@cache
def catalog() -> Duck:
    return Duck((*BAGS, *KEYED, *HOSTILE))


def compiled(query: str, columns: tuple[str, ...] = ()) -> ViewPlan:
    return catalog().compile("v", query, columns)


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SELECT k, x + 1 AS y FROM r WHERE g > 2", set()),
        ("SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM r GROUP BY g HAVING COUNT(*) > 1", set()),
        ("SELECT COUNT(x) AS n FROM r", set()),
        ("SELECT DISTINCT k FROM r", set()),
        ("SELECT k FROM r UNION ALL SELECT k FROM s WHERE w = 'a' UNION ALL SELECT k FROM r", set()),
        ("SELECT k, SUM(n) AS n FROM (SELECT k, x AS n FROM r UNION ALL SELECT k, g FROM t) AS u GROUP BY k", set()),
        ("SELECT g, MIN(x) AS m FROM r GROUP BY g", {"r"}),
        ("SELECT g, COUNT(DISTINCT x) AS n FROM r GROUP BY g", {"r"}),
        ("SELECT r.x, s.y FROM r JOIN s ON r.k = s.k", {"r", "s"}),
        ("SELECT a.x FROM r AS a JOIN r AS b ON a.k = b.g", {"r"}),
        ("SELECT r.x, s.y FROM r LEFT JOIN s ON r.k = s.k", {"r", "s"}),
        ("SELECT k FROM r UNION ALL SELECT s.k FROM s JOIN t ON s.k = t.k", {"s", "t"}),
        ("SELECT k FROM r UNION ALL SELECT MAX(k) AS k FROM s", {"s"}),
        ("SELECT n FROM (SELECT g, COUNT(*) AS n FROM r GROUP BY g) AS c JOIN s ON c.g = s.k", {"r", "s"}),
        ("SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id", {"c", "p"}),
        ("SELECT c.x FROM c JOIN p ON c.pid = p.id", set()),
        ("SELECT c.x FROM c LEFT JOIN h ON c.x = h.id", set()),
        ("SELECT k FROM r WHERE k IN (SELECT k FROM s)", {"r", "s"}),
        ("SELECT k, RANK() OVER (ORDER BY x) AS place FROM r", {"r"}),
    ],
)
def test_what_is_read_besides_changes(query: str, read: set[str]) -> None:
    assert states_read(compiled(query)) == read


@pytest.mark.slow
def test_no_term_of_any_refresh_reads_more() -> None:
    seen = 0
    for case in (case for path in sorted(GOLDEN.glob("*.sql")) for case in cases.read(path)):
        try:
            plan = compiled(case.text, case.columns)
        except RollviewError:
            continue
        if plan.mode is not Mode.WHOLE:
            seen += check(plan)
    assert seen > 20


def check(plan: ViewPlan) -> bool:
    """Whether some relation is read by its changes alone; over all that a refresh may know of an interval."""
    names = [relation.name for relation in plan.reads][:2]
    absent = frozenset(relation.name for relation in plan.reads) - states_read(plan)
    if not absent:
        return False
    closed = frozenset(product(names, names))
    for motions in product(MOTIONS, repeat=len(names)):
        motion = dict(zip(names, motions, strict=True))
        if not any(one.changed for one in motions):
            continue
        for small, sizes, pairs in ((True, 1, closed), (False, 1 << 40, frozenset())):
            known = dict.fromkeys((*names, GROUPS), sizes)
            for ahead in {False, plan.mode is Mode.SUMMARY}:
                made = plan.propagation(motion, small=small, sizes=known, closed=pairs, ahead=ahead, absent=absent)
                assert {name for name, what in made.inputs if what != "delta"} <= states_read(plan)
    return True
